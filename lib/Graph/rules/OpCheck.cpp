#include "Graph/rules/OpCheck.h"
#include "Graph/CheckOperator.h"
#include "Graph/OpAttributes.h"
#include "Support/Diag.h"

#include <algorithm>

namespace fusec {
namespace rules {

std::optional<std::vector<int64_t>> OpCheck::ints(size_t i) const {
  ConstantRef c = constant(i);
  if (!c || isFloat(c->type))
    return std::nullopt;
  std::vector<int64_t> list;
  for (int64_t e = 0; e < c->numElements(); ++e)
    list.push_back(c->intAt(e));
  return list;
}

Diagnostic OpCheck::fail(std::string text, Misfit::Kind kind) const {
  return sizes.misfit({kind, std::move(text)});
}

Diagnostic OpCheck::badAttribute(std::string text) const {
  return fail(std::move(text), Misfit::Kind::Attribute);
}

Diagnostic OpCheck::badValue(std::string text) const {
  return fail(std::move(text), Misfit::Kind::Value);
}

Status OpCheck::expect(bool holds, std::string text) const {
  if (holds)
    return success();
  return fail(std::move(text));
}

Status OpCheck::expectAttribute(bool holds, std::string text) const {
  if (holds)
    return success();
  return badAttribute(std::move(text));
}

Status OpCheck::fixed(const DimExpr &size, std::string text) const {
  if (size.isConst())
    return success();
  return sizes.misfit({Misfit::Kind::NotFixed, std::move(text), {size}});
}

static bool fits(DType t, Kind kind) {
  switch (kind) {
  case Kind::Any: return true;
  case Kind::Number: return t != DType::Bool;
  case Kind::Float: return isFloat(t);
  case Kind::Integer: return isInteger(t);
  case Kind::Bool: return t == DType::Bool;
  }
  return false;
}

Status OpCheck::operand(Kind kind) const {
  constexpr const char *texts[] = {"", "be a number", "have a float type", "be an integer",
                                   "be bool"};
  return expect(fits(type(0), kind),
                std::string("the operand must ") + texts[static_cast<int>(kind)]);
}

Status OpCheck::operands(Kind kind) const {
  constexpr const char *texts[] = {"", "numbers", "floats", "integers", "bool"};
  FUSEC_CHECK(expect(fits(type(0), kind),
                     std::string("the operands must be ") + texts[static_cast<int>(kind)]));
  for (size_t i = 1; i < node.inputs.size(); ++i)
    FUSEC_CHECK(expect(!has(i) || type(i) == type(0), "the operands must have one type"));
  return success();
}

Status OpCheck::kind(size_t i, Kind kind) const {
  constexpr const char *names[] = {"any type", "a number", "a float", "an integer", "bool"};
  return expect(!has(i) || fits(type(i), kind),
                "operand " + std::to_string(i) + " must be " + names[static_cast<int>(kind)]);
}

Status OpCheck::sameTypes(std::initializer_list<size_t> inputs) const {
  std::optional<DType> first;
  for (size_t i : inputs) {
    if (!has(i))
      continue;
    if (first && type(i) != *first)
      return fail("operands have different types: " + std::string(name(*first)) + " and " +
                  std::string(name(type(i))));
    first = type(i);
  }
  return success();
}

Status OpCheck::minRank(size_t i, int64_t least, std::string text) const {
  return expect(!has(i) || rank(i) >= least, std::move(text));
}

Status OpCheck::hasElements(size_t i, size_t axis, const std::string &text) const {
  const DimExpr &size = shape(i)[axis];
  FUSEC_CHECK(expect(!size.isConst(0), text));
  return sizes.noLess(size, 1, text);
}

Status OpCheck::exactRank(size_t i, int64_t wanted) const {
  return expect(!has(i) || rank(i) == wanted,
                "operand " + std::to_string(i) + " must have rank " + std::to_string(wanted));
}

Status OpCheck::oneNumber(size_t i) const {
  return has(i) ? sizes.sameShape({numElements(shape(i))}, {DimExpr(1)},
                                  "operand " + std::to_string(i) + " must have one element")
                : success();
}

Status OpCheck::shapeIs(size_t i, const Shape &expected, const std::string &text) const {
  return has(i) ? sizes.sameShape(shape(i), expected, text) : success();
}

Status OpCheck::quantParameter(size_t i, const DimExpr &count) const {
  return has(i) ? sizes.quantParameter(shape(i), count, "input " + std::to_string(i)) : success();
}

Status OpCheck::atLeast(const char *key, int64_t least) const {
  return expectAttribute(number(key) >= least,
                         std::string(key) + " must be at least " + std::to_string(least));
}

Result<size_t> OpCheck::axis(const char *key, int64_t rank) const {
  int64_t a = number(key);
  if (a < 0 || a >= rank)
    return badAttribute("attribute '" + std::string(key) + "' is " + std::to_string(a) +
                        ", out of range for rank " + std::to_string(rank));
  return static_cast<size_t>(a);
}

Status OpCheck::axes(const char *key, int64_t rank) const {
  std::vector<int64_t> sorted = list(key);
  std::sort(sorted.begin(), sorted.end());
  bool inRange = sorted.empty() || (sorted.front() >= 0 && sorted.back() < rank);
  return expectAttribute(inRange &&
                             std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
                         "attribute '" + std::string(key) + "' must name different axes of rank " +
                             std::to_string(rank));
}

static const RuleTable &table() {
  static const RuleTable all = [] {
    RuleTable t{};
    addElementwise(t);
    addReductions(t);
    addContractions(t);
    addWindows(t);
    addNormalisations(t);
    addMovement(t);
    addSlices(t);
    addGathers(t);
    addImages(t);
    addGenerators(t);
    addQuantisation(t);
    addRecurrent(t);
    addControlFlow(t);
    addMisc(t);
    return t;
  }();
  return all;
}

/// Operators with several outputs of which any may be left out.
static bool mayLackFirst(OpKind op) {
  using enum OpKind;
  switch (op) {
  case LSTM:
  case GRU:
  case RNN:
  case TopK:
  case MaxPool:
  case LayerNormalization:
  case DynamicQuantizeLinear:
  case SoftmaxCrossEntropyLoss:
  case If:
  case Loop:
  case Scan: return true;
  default: return false;
  }
}

static Status checkInputs(const OpCheck &c) {
  const Node &n = c.node;
  const OpInfo &row = info(n.op);
  auto count = static_cast<int>(n.inputs.size());
  FUSEC_CHECK(c.expect(count >= row.minInputs && (row.maxInputs < 0 || count <= row.maxInputs),
                       "has " + std::to_string(count) + " inputs"));
  size_t regions = n.op == OpKind::If ? 2 : n.op == OpKind::Loop || n.op == OpKind::Scan ? 1 : 0;
  FUSEC_CHECK(c.expect(n.regions.size() == regions,
                       "has " + std::to_string(n.regions.size()) + " regions"));
  size_t mandatory = row.maxInputs < 0 ? n.inputs.size() : static_cast<size_t>(row.minInputs);
  for (size_t i = 0; i < mandatory; ++i) {
    bool mayMiss = (n.op == OpKind::Loop || n.op == OpKind::Range) && i < 2;
    FUSEC_CHECK(c.expect(c.has(i) || (mayMiss && (i == 1 || n.op == OpKind::Loop)),
                         "input " + std::to_string(i) + " is missing"));
  }
  return success();
}

static Status checkOutputs(const OpCheck &c) {
  const Node &n = c.node;
  const OpInfo &row = info(n.op);
  auto count = static_cast<int>(n.outputs.size());
  FUSEC_CHECK(c.expect(count >= row.minOutputs && (row.maxOutputs < 0 || count <= row.maxOutputs),
                       "has " + std::to_string(count) + " outputs"));
  bool some = std::any_of(n.outputs.begin(), n.outputs.end(), [](ValueId v) { return v >= 0; });
  return c.expect(some && (n.hasOutput(0) || mayLackFirst(n.op)), "its output is missing");
}

/// "zeros, border or reflection".
static std::string alternatives(const std::vector<std::string_view> &words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + std::string(words[i]);
  return text;
}

static Status checkAttributes(const OpCheck &c) {
  size_t found = 0;
  for (const AttributeRule &rule : attributeRules(c.node.op)) {
    const std::string key(rule.name);
    auto it = c.node.attributes.find(key);
    if (it == c.node.attributes.end()) {
      FUSEC_CHECK(c.expect(rule.optional, "attribute '" + key + "' is missing"));
      continue;
    }
    ++found;
    FUSEC_CHECK(
        c.expect(it->second.index() == rule.kind, "attribute '" + key + "' has another type"));
    if (rule.words.empty())
      continue;
    const std::string &given = std::get<std::string>(it->second);
    FUSEC_CHECK(c.expectAttribute(
        std::find(rule.words.begin(), rule.words.end(), given) != rule.words.end(),
        key + " is '" + given + "'; " + alternatives(rule.words) + " is needed"));
  }
  return c.expect(found == c.node.attributes.size(),
                  "has an attribute that the operator does not have");
}

static Result<Types> infer(const OpCheck &c) {
  FUSEC_CHECK(checkInputs(c));
  FUSEC_CHECK(checkAttributes(c));
  Rule rule = table()[static_cast<size_t>(c.node.op)];
  if (!rule)
    return c.fail("the operator has no rule");
  return rule(c);
}

} // namespace rules

Result<std::vector<TypedShape>> inferTypes(const Graph &graph, const Node &node,
                                           const std::vector<Shape> &outShapes,
                                           const SizeCheck &sizes) {
  return rules::infer(rules::OpCheck(graph, node, outShapes, sizes));
}

/// As it stands.
static Diagnostic plainly(const Graph &graph, const Misfit &m) {
  std::string text = m.text;
  if (m.kind == Misfit::Kind::Unequal)
    text += m.sizes[0].str(graph.symbols) + " and " + m.sizes[1].str(graph.symbols);
  return {Diag::BadIr, "", std::move(text)};
}

/// Whether it holds in runs, as far as sampled symbols tell that fulfil all that runs are tested for. A pass may have
/// put two operators, each with a test, together.
static bool isTested(const Graph &graph, const SizeRule &asked, const Shape &taken) {
  std::vector<const SizeRule *> tests;
  for (const SizeRule &rule : graph.sizeRules.rules)
    if (rule.tested)
      tests.push_back(&rule);
  for (std::vector<int64_t> &values : sampleSymbols(graph.symbols)) {
    const std::vector<int64_t> symbols = values;
    if (std::any_of(taken.begin(), taken.end(),
                    [&](const DimExpr &e) { return e.evaluate(symbols) == 0; }))
      continue;
    for (const InferredSize &size : graph.sizeRules.inferred)
      values.push_back(size.value.evaluate(symbols).value_or(-1));
    auto holdsHere = [&](const SizeRule &rule) {
      return holds(rule.kind, rule.left.evaluate(values), rule.right.evaluate(values));
    };
    if (std::all_of(tests.begin(), tests.end(), [&](auto *rule) { return holdsHere(*rule); }) &&
        !holdsHere(asked))
      return false;
  }
  return true;
}

Status checkOperator(const Graph &graph, const Node &node, const Shape &taken) {
  SizeCheck sizes(
      graph.symbols, SizeCheck::Equality::Sampled,
      [&](const Misfit &m) { return plainly(graph, m); },
      [&](const SizeRule &asked, Need) { return isTested(graph, asked, taken); });
  std::vector<Shape> outShapes;
  for (ValueId v : node.outputs)
    outShapes.push_back(v == kNoValue ? Shape() : graph.value(v).shape);
  rules::OpCheck c(graph, node, outShapes, sizes);
  FUSEC_CHECK(rules::checkOutputs(c));
  FUSEC_TRY(auto types, rules::infer(c));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.hasOutput(i))
      continue;
    FUSEC_CHECK(c.expect(i < types.size(), "has " + std::to_string(i + 1) + " outputs"));
    const Value &out = graph.value(node.outputs[i]);
    FUSEC_CHECK(c.expect(out.type == types[i].type && c.sameInRuns(out.shape, types[i].shape),
                         "output " + std::to_string(i) + " is " + typeText(out, graph.symbols) +
                             ", it must be " +
                             typeText(types[i].type, types[i].shape, graph.symbols)));
  }
  return success();
}

bool hasRule(OpKind op) { return rules::table()[static_cast<size_t>(op)] != nullptr; }

} // namespace fusec
