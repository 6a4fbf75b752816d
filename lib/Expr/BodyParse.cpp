// Parser of the text that BodyText.cpp writes.
#include "Expr/BodyText.h"
#include "Expr/ScalarEval.h"

namespace fusec {
namespace {

constexpr int kMaxDepth = 160; // texts are cut by lets at 100

bool isComparison(ScalarOp op) {
  return op == ScalarOp::Eq || op == ScalarOp::Ne || op == ScalarOp::Lt || op == ScalarOp::Le;
}
bool isTest(ScalarOp op) { return op == ScalarOp::IsNan || op == ScalarOp::IsInf; }
bool isConversion(ScalarOp op) {
  return op == ScalarOp::Cast || op == ScalarOp::CastSat || op == ScalarOp::Bitcast;
}

} // namespace

Status BodyReader::readLets() {
  while (in.accept("let")) {
    FUSEC_TRY(std::string letName, in.identifier());
    if (lets.count(letName))
      return in.error("'" + letName + "' is bound twice");
    FUSEC_CHECK(in.expect("="));
    FUSEC_TRY(NodeId value, sum(std::nullopt));
    FUSEC_CHECK(in.expect(";"));
    lets[letName] = value;
  }
  return success();
}

NodeId BodyReader::make(ScalarOp op, DType type, std::vector<NodeId> args, int32_t index) {
  return body.addExact({op, type, std::move(args), index, 0, 0, 0});
}
Status BodyReader::needI64(NodeId a, const char *where) {
  if (body[a].type == DType::I64)
    return success();
  return in.error(std::string(where) + " takes i64 operands, this one is " +
                  std::string(name(body[a].type)) + "; write add(..), mul(..) for other types");
}

Result<NodeId> BodyReader::sum(Context context) {
  // Each level of nesting costs stack, about a kilobyte.
  struct Depth {
    int &value;
    ~Depth() { --value; }
  } guard{++depth};
  if (depth > kMaxDepth)
    return in.error("expressions are nested too deeply");
  FUSEC_TRY(NodeId left, term(context));
  while (in.peekIs("+") || in.peekIs("-")) {
    FUSEC_CHECK(needI64(left, "'+'"));
    NodeId right;
    if (in.accept("-")) {
      FUSEC_TRY(int64_t v, in.integer());
      if (v < 0)
        return in.error("after '-' stands a constant without a sign");
      right = body.index(-v);
    } else {
      in.next();
      FUSEC_TRY(right, term(DType::I64));
    }
    FUSEC_CHECK(needI64(right, "'+'"));
    left = make(ScalarOp::Add, DType::I64, {left, right});
  }
  return left;
}

Result<NodeId> BodyReader::term(Context context) {
  FUSEC_TRY(NodeId left, primary(context));
  while (in.accept("*")) {
    FUSEC_TRY(NodeId right, primary(DType::I64));
    FUSEC_CHECK(needI64(left, "'*'"));
    FUSEC_CHECK(needI64(right, "'*'"));
    left = make(ScalarOp::Mul, DType::I64, {left, right});
  }
  return left;
}

Result<NodeId> BodyReader::literal(DType type) {
  if (isFloat(type)) {
    FUSEC_TRY(double v, in.floating());
    return body.constant(type, v);
  }
  FUSEC_TRY(int64_t v, in.integer());
  if (wrapToType(type, v) != v)
    return in.error(std::to_string(v) + " is no value of " + std::string(name(type)));
  return body.constantInt(type, v);
}

bool BodyReader::atLiteral() const {
  auto kind = in.peek().kind;
  return kind == TextReader::Kind::Integer || kind == TextReader::Kind::Float || in.peekIs("-") ||
         in.peekIs("inf") || in.peekIs("nan");
}

Result<NodeId> BodyReader::primary(Context context) {
  if (in.accept("(")) {
    FUSEC_TRY(NodeId inside, sum(DType::I64));
    FUSEC_CHECK(in.expect(")"));
    return inside;
  }
  if (in.peekIs("%"))
    return read();
  if (atLiteral())
    return literal(context.value_or(DType::I64));
  FUSEC_TRY(std::string word, in.identifier());
  if (in.peekIs("("))
    return call(word, context);
  if (word == "true" || word == "false")
    return body.constantInt(DType::Bool, word == "true");
  if (word == "step")
    return body.step();
  if (auto type = parseDType(word); type && atLiteral())
    return literal(*type);
  if (auto it = lets.find(word); it != lets.end())
    return it->second;
  if (auto axis = names.axis(word))
    return body.axis(*axis);
  return in.error("'" + word + "' is neither an axis nor bound by let");
}

Result<std::pair<int32_t, DType>> BodyReader::tensor() {
  FUSEC_TRY(std::string tensorName, in.nameAfter("%"));
  auto found = names.tensor(tensorName);
  if (!found)
    return in.error("there is no tensor %" + nameToText(tensorName) + " here");
  return *found;
}

Result<std::vector<NodeId>> BodyReader::indices() {
  FUSEC_CHECK(in.expect("["));
  return in.list("]", [&]() -> Result<NodeId> {
    FUSEC_TRY(NodeId index, sum(DType::I64));
    FUSEC_CHECK(needI64(index, "an index"));
    return index;
  });
}

Result<NodeId> BodyReader::read() {
  FUSEC_TRY(auto source, tensor());
  FUSEC_TRY(auto at, indices());
  return make(ScalarOp::Read, source.second, std::move(at), source.first);
}

Result<NodeId> BodyReader::conditionalRead() {
  FUSEC_TRY(NodeId predicate, sum(DType::Bool));
  FUSEC_CHECK(in.expect(","));
  FUSEC_TRY(auto source, tensor());
  FUSEC_TRY(auto args, indices());
  FUSEC_CHECK(in.expect(","));
  FUSEC_TRY(NodeId otherwise, sum(source.second));
  FUSEC_CHECK(in.expect(")"));
  if (body[predicate].type != DType::Bool || body[otherwise].type != source.second)
    return in.error(
        "if(predicate, %tensor[..], else) needs a bool and an else-value of the tensor's type");
  args.insert(args.begin(), {predicate, otherwise});
  return make(ScalarOp::ReadIf, source.second, std::move(args), source.first);
}

Result<NodeId> BodyReader::dimension() {
  auto raw = std::string(in.rawUntil(")"));
  auto parsed = DimExpr::parse(raw, *names.symbols);
  if (!parsed.ok())
    return in.error("'" + raw + "' is no dimension: " + parsed.errors().front().text);
  FUSEC_CHECK(in.expect(")"));
  return body.dim(*parsed);
}

Result<NodeId> BodyReader::cascadeState(ScalarOp op) {
  FUSEC_TRY(int64_t state, in.integer());
  if (!names.stateType || state < 0 || state > INT32_MAX)
    return in.error("only cascades have states, counted from 0");
  FUSEC_CHECK(in.expect(")"));
  return make(op, *names.stateType, {}, static_cast<int32_t>(state));
}

Result<NodeId> BodyReader::call(const std::string &word, Context context) {
  FUSEC_CHECK(in.expect("("));
  if (word == "dim")
    return dimension();
  if (word == "if")
    return conditionalRead();
  for (ScalarOp leaf : {ScalarOp::State, ScalarOp::Part})
    if (word == mnemonic(leaf))
      return cascadeState(leaf);
  std::optional<ScalarOp> op;
  for (int i = 0; i <= static_cast<int>(ScalarOp::Bitcast); ++i)
    if (mnemonic(static_cast<ScalarOp>(i)) == word)
      op = static_cast<ScalarOp>(i);
  if (!op || arity(*op) <= 0)
    return in.error("there is no operation '" + word + "'");
  std::optional<DType> target;
  if (isConversion(*op)) {
    FUSEC_TRY(std::string typeName, in.identifier());
    target = parseDType(typeName);
    if (!target)
      return in.error("'" + typeName + "' is no element type");
    FUSEC_CHECK(in.expect(","));
  }
  bool boolResult = isComparison(*op) || isTest(*op);
  Context operand = boolResult || target ? Context() : context;
  if (*op == ScalarOp::Select)
    operand = DType::Bool;
  std::vector<NodeId> args;
  for (int i = 0; i < arity(*op); ++i) {
    if (i > 0)
      FUSEC_CHECK(in.expect(","));
    FUSEC_TRY(NodeId a, sum(operand));
    args.push_back(a);
    if (*op == ScalarOp::Select && i == 0)
      operand = context;
    else
      operand = body[a].type;
  }
  FUSEC_CHECK(in.expect(")"));
  size_t firstValue = *op == ScalarOp::Select ? 1 : 0;
  for (size_t i = firstValue; i < args.size(); ++i)
    if (body[args[i]].type != body[args[firstValue]].type)
      return in.error("operands of " + word + " are " +
                      std::string(name(body[args[firstValue]].type)) + " and " +
                      std::string(name(body[args[i]].type)));
  DType type = boolResult ? DType::Bool : target.value_or(body[args[firstValue]].type);
  return make(*op, type, std::move(args));
}

} // namespace fusec
