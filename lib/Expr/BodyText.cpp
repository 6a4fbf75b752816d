// Text of a Body, its parser, and `compact`, which numbers nodes as the parser would.
#include "Expr/Body.h"
#include "Expr/ScalarEval.h"

#include <algorithm>
#include <map>

namespace fusec {
namespace {

bool isLeaf(const Scalar &s) {
  return s.op == ScalarOp::Const || s.op == ScalarOp::Axis || s.op == ScalarOp::Step ||
         s.op == ScalarOp::Dim;
}
bool isComparison(ScalarOp op) {
  return op == ScalarOp::Eq || op == ScalarOp::Ne || op == ScalarOp::Lt || op == ScalarOp::Le;
}
bool isTest(ScalarOp op) { return op == ScalarOp::IsNan || op == ScalarOp::IsInf; }
bool isConversion(ScalarOp op) {
  return op == ScalarOp::Cast || op == ScalarOp::CastSat || op == ScalarOp::Bitcast;
}

/// Which nodes get a `let`, in the order of their lets: those used more than once, short index expressions
/// and leaves excepted.
class LetOrder {
public:
  LetOrder(const Body &body, const std::vector<NodeId> &roots)
      : body(body), uses(body.nodes.size()), size(body.nodes.size()), done(body.nodes.size()) {
    for (NodeId id : body.reachable(roots))
      for (NodeId a : body[id].args)
        ++uses[a];
    for (NodeId r : roots)
      ++uses[r];
    for (NodeId r : roots)
      visit(r);
  }
  std::vector<NodeId> lets;

private:
  static constexpr int kInlineNodes = 12;

  void visit(NodeId id) {
    if (done[id])
      return;
    done[id] = true;
    const Scalar &s = body[id];
    int nodes = 1; // tree size, or more than kInlineNodes for what is no index expression
    for (NodeId a : operandsInTextOrder(s)) {
      visit(a);
      nodes = std::min(nodes + size[a], kInlineNodes + 1);
    }
    if (s.type != DType::I64 || s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf || isConversion(s.op))
      nodes = kInlineNodes + 1;
    size[id] = nodes;
    if (uses[id] > 1 && !isLeaf(s) && nodes > kInlineNodes)
      lets.push_back(id);
  }

  const Body &body;
  std::vector<int> uses, size;
  std::vector<bool> done;
};

class BodyPrinter {
public:
  BodyPrinter(const Body &body, const BodyNames &names) : body(body), names(names) {}
  std::map<NodeId, std::string> bound;

  enum Level { Sum, Term, Primary };
  using Context = std::optional<DType>;

  std::string text(NodeId id, Context context, Level level = Sum) {
    if (auto it = bound.find(id); it != bound.end())
      return it->second;
    return definition(id, context, level);
  }

  std::string definition(NodeId id, Context context, Level level = Sum) {
    const Scalar &s = body[id];
    switch (s.op) {
    case ScalarOp::Const: return constant(s, context);
    case ScalarOp::Axis: return names.axis(s.index);
    case ScalarOp::Step: return "step";
    case ScalarOp::Dim: return "dim(" + s.dim.str(*names.symbols) + ")";
    case ScalarOp::Read: return names.tensor(s.index) + indices(s, 0);
    case ScalarOp::ReadIf:
      return "if(" + text(s.args[0], DType::Bool) + ", " + names.tensor(s.index) + indices(s, 2) + ", " +
             text(s.args[1], s.type) + ")";
    case ScalarOp::Select:
      return "select(" + text(s.args[0], DType::Bool) + ", " + text(s.args[1], context) + ", " +
             text(s.args[2], body[s.args[1]].type) + ")";
    default: break;
    }
    if (s.type == DType::I64 && s.op == ScalarOp::Add)
      return parenthesised(level > Sum, sum(s));
    if (s.type == DType::I64 && s.op == ScalarOp::Mul)
      return parenthesised(level > Term,
                           text(s.args[0], DType::I64, Term) + "*" + text(s.args[1], DType::I64, Primary));
    std::string out = std::string(mnemonic(s.op)) + "(";
    if (isConversion(s.op))
      out += std::string(name(s.type)) + ", ";
    Context operand = isComparison(s.op) || isTest(s.op) || isConversion(s.op) ? Context() : context;
    for (size_t i = 0; i < s.args.size(); ++i) {
      out += (i ? ", " : "") + text(s.args[i], operand);
      operand = body[s.args[0]].type;
    }
    return out + ")";
  }

private:
  static std::string parenthesised(bool needed, std::string s) { return needed ? "(" + s + ")" : s; }

  std::string sum(const Scalar &s) {
    const Scalar &b = body[s.args[1]];
    std::string left = text(s.args[0], DType::I64, Sum);
    if (b.op == ScalarOp::Const && b.imm < 0 && b.imm != INT64_MIN)
      return left + " - " + std::to_string(-b.imm);
    return left + " + " + text(s.args[1], DType::I64, Term);
  }

  std::string indices(const Scalar &s, size_t first) {
    std::string out = "[";
    for (size_t i = first; i < s.args.size(); ++i)
      out += (i > first ? ", " : "") + text(s.args[i], DType::I64);
    return out + "]";
  }

  std::string constant(const Scalar &s, Context context) {
    if (s.type == DType::Bool)
      return s.imm ? "true" : "false";
    std::string value = !isFloat(s.type)       ? std::to_string(s.imm)
                        : s.type == DType::F64 ? floatToText(s.fimm)
                                               : floatToText(static_cast<float>(s.fimm));
    bool implied = context ? *context == s.type : s.type == DType::I64;
    return implied ? value : std::string(name(s.type)) + " " + value;
  }

  const Body &body;
  const BodyNames &names;
};

class Parser {
public:
  Parser(TextReader &in, Body &body, const BodyParser &names) : in(in), body(body), names(names) {}

  using Context = std::optional<DType>;

  Result<std::vector<NodeId>> run(size_t count) {
    while (in.accept("let")) {
      FUSEC_TRY(std::string letName, in.identifier());
      if (lets.count(letName))
        return in.error("'" + letName + "' is bound twice");
      FUSEC_CHECK(in.expect("="));
      FUSEC_TRY(NodeId value, sum(std::nullopt));
      FUSEC_CHECK(in.expect(";"));
      lets[letName] = value;
    }
    std::vector<NodeId> roots;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0)
        FUSEC_CHECK(in.expect(","));
      Context context = i < rootTypes.size() ? Context(rootTypes[i]) : Context();
      FUSEC_TRY(NodeId root, sum(context));
      roots.push_back(root);
    }
    return roots;
  }
  std::vector<DType> rootTypes;

private:
  NodeId make(ScalarOp op, DType type, std::vector<NodeId> args, int32_t index = 0) {
    return body.addExact({op, type, std::move(args), index, 0, 0, 0});
  }
  Status needI64(NodeId a, const char *where) {
    if (body[a].type == DType::I64)
      return success();
    return in.error(std::string(where) + " takes i64 operands, this one is " +
                    std::string(name(body[a].type)) + "; write add(..), mul(..) for other types");
  }

  Result<NodeId> sum(Context context) {
    FUSEC_TRY(NodeId left, term(context));
    while (in.peekIs("+") || in.peekIs("-")) {
      FUSEC_CHECK(needI64(left, "'+'"));
      NodeId right;
      if (in.accept("-")) {
        FUSEC_TRY(int64_t v, in.integer());
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

  Result<NodeId> term(Context context) {
    FUSEC_TRY(NodeId left, primary(context));
    while (in.accept("*")) {
      FUSEC_TRY(NodeId right, primary(DType::I64));
      FUSEC_CHECK(needI64(left, "'*'"));
      FUSEC_CHECK(needI64(right, "'*'"));
      left = make(ScalarOp::Mul, DType::I64, {left, right});
    }
    return left;
  }

  Result<NodeId> literal(DType type) {
    if (isFloat(type)) {
      FUSEC_TRY(double v, in.floating());
      return body.constant(type, v);
    }
    FUSEC_TRY(int64_t v, in.integer());
    if (wrapToType(type, v) != v)
      return in.error(std::to_string(v) + " is no value of " + std::string(name(type)));
    return body.constantInt(type, v);
  }

  bool atLiteral() const {
    auto kind = in.peek().kind;
    return kind == TextReader::Kind::Integer || kind == TextReader::Kind::Float || in.peekIs("-") ||
           in.peekIs("inf") || in.peekIs("nan");
  }

  Result<NodeId> primary(Context context) {
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

  Result<std::pair<int32_t, DType>> tensor() {
    FUSEC_CHECK(in.expect("%"));
    FUSEC_TRY(std::string tensorName, in.nameText());
    auto found = names.tensor(tensorName);
    if (!found)
      return in.error("there is no tensor %" + nameToText(tensorName) + " here");
    return *found;
  }

  Result<std::vector<NodeId>> indices() {
    FUSEC_CHECK(in.expect("["));
    std::vector<NodeId> out;
    while (!in.peekIs("]")) {
      if (!out.empty())
        FUSEC_CHECK(in.expect(","));
      FUSEC_TRY(NodeId index, sum(DType::I64));
      FUSEC_CHECK(needI64(index, "an index"));
      out.push_back(index);
    }
    FUSEC_CHECK(in.expect("]"));
    return out;
  }

  Result<NodeId> read() {
    FUSEC_TRY(auto source, tensor());
    FUSEC_TRY(auto at, indices());
    return make(ScalarOp::Read, source.second, std::move(at), source.first);
  }

  Result<NodeId> conditionalRead() {
    FUSEC_TRY(NodeId predicate, sum(DType::Bool));
    FUSEC_CHECK(in.expect(","));
    FUSEC_TRY(auto source, tensor());
    FUSEC_TRY(auto args, indices());
    FUSEC_CHECK(in.expect(","));
    FUSEC_TRY(NodeId otherwise, sum(source.second));
    FUSEC_CHECK(in.expect(")"));
    if (body[predicate].type != DType::Bool || body[otherwise].type != source.second)
      return in.error("if(predicate, %tensor[..], else) needs a bool and an else-value of the tensor's type");
    args.insert(args.begin(), {predicate, otherwise});
    return make(ScalarOp::ReadIf, source.second, std::move(args), source.first);
  }

  Result<NodeId> dimension() {
    auto raw = std::string(in.rawUntil(")"));
    auto parsed = DimExpr::parse(raw, *names.symbols);
    if (!parsed.ok())
      return in.error("'" + raw + "' is no dimension: " + parsed.errors().front().text);
    FUSEC_CHECK(in.expect(")"));
    return body.dim(*parsed);
  }

  Result<NodeId> call(const std::string &word, Context context) {
    FUSEC_CHECK(in.expect("("));
    if (word == "dim")
      return dimension();
    if (word == "if")
      return conditionalRead();
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
        return in.error("operands of " + word + " are " + std::string(name(body[args[firstValue]].type)) +
                        " and " + std::string(name(body[args[i]].type)));
    return make(*op, boolResult ? DType::Bool : target.value_or(body[args[firstValue]].type),
                std::move(args));
  }

  TextReader &in;
  Body &body;
  const BodyParser &names;
  std::map<std::string, NodeId> lets;
};

} // namespace

std::string print(const Body &body, const std::vector<NodeId> &roots, const BodyNames &names, int indent) {
  LetOrder order(body, roots);
  BodyPrinter printer(body, names);
  std::string newLine = "\n" + std::string(static_cast<size_t>(indent), ' ');
  std::string out;
  std::vector<std::string> axisNames;
  for (NodeId id : body.reachable(roots))
    if (body[id].op == ScalarOp::Axis)
      axisNames.push_back(names.axis(body[id].index));
  int counter = 0;
  for (NodeId id : order.lets) {
    std::string letName;
    do
      letName = "t" + std::to_string(counter++);
    while (std::find(axisNames.begin(), axisNames.end(), letName) != axisNames.end());
    out += newLine + "let " + letName + " = " + printer.definition(id, std::nullopt) + ";";
    printer.bound[id] = letName;
  }
  if (!order.lets.empty())
    out += newLine;
  for (size_t i = 0; i < roots.size(); ++i)
    out += (i ? ", " : "") +
           printer.text(roots[i], i < names.rootTypes.size() ? std::optional(names.rootTypes[i]) : std::nullopt);
  return out;
}

Result<std::vector<NodeId>> parseBody(TextReader &in, Body &body, const BodyParser &names, size_t count) {
  Parser parser(in, body, names);
  parser.rootTypes = names.rootTypes;
  return parser.run(count);
}

void Body::compact(const std::vector<NodeId *> &roots) {
  std::vector<NodeId> ids;
  for (NodeId *r : roots)
    if (*r != kNoNode)
      ids.push_back(*r);
  Body out;
  out.axisRanges = axisRanges;
  out.symbolTable = symbolTable;
  out.stepRange = stepRange;
  std::vector<NodeId> copy(nodes.size(), kNoNode);
  auto visit = [&](auto &&self, NodeId id) -> void {
    if (copy[id] != kNoNode)
      return;
    for (NodeId a : operandsInTextOrder(nodes[id]))
      self(self, a);
    Scalar s = nodes[id];
    for (NodeId &a : s.args)
      a = copy[a];
    copy[id] = out.addExact(std::move(s));
  };
  for (NodeId let : LetOrder(*this, ids).lets)
    visit(visit, let);
  for (NodeId r : ids)
    visit(visit, r);
  for (NodeId *r : roots)
    if (*r != kNoNode)
      *r = copy[*r];
  *this = std::move(out);
}

} // namespace fusec
