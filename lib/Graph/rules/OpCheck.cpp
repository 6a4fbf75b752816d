#include "Graph/rules/OpCheck.h"
#include "Graph/CheckOperator.h"
#include "Graph/OpAttributes.h"

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

Status OpCheck::expect(bool holds, std::string text) const {
  if (holds)
    return success();
  return fail(std::move(text));
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

Status OpCheck::allSameTypes() const {
  for (size_t i = 1; i < node.inputs.size(); ++i)
    FUSEC_CHECK(sameTypes({0, i}));
  return success();
}

Status OpCheck::minRank(size_t i, int64_t least) const {
  return expect(!has(i) || rank(i) >= least, "operand " + std::to_string(i) +
                                                 " must have at least " + std::to_string(least) +
                                                 " axes");
}

Status OpCheck::exactRank(size_t i, int64_t wanted) const {
  return expect(!has(i) || rank(i) == wanted,
                "operand " + std::to_string(i) + " must have rank " + std::to_string(wanted));
}

Status OpCheck::oneNumber(size_t i) const {
  return expect(!has(i) || numElements(shape(i)).isConst(1),
                "operand " + std::to_string(i) + " must have one element");
}

Status OpCheck::vectorOf(size_t i, const DimExpr &size) const { return shapeIs(i, {size}); }

Status OpCheck::shapeIs(size_t i, const Shape &expected) const {
  return expect(!has(i) || same(shape(i), expected), "operand " + std::to_string(i) +
                                                         " must have the shape " +
                                                         str(expected, graph.symbols));
}

Status OpCheck::atLeast(const char *key, int64_t least) const {
  return expect(node.intAttr(key) >= least,
                "attribute '" + std::string(key) + "' must be at least " + std::to_string(least));
}

Result<size_t> OpCheck::axis(const char *key, int64_t rank) const {
  int64_t a = node.intAttr(key);
  if (a < 0 || a >= rank)
    return fail("attribute '" + std::string(key) + "' is " + std::to_string(a) +
                ", out of range for rank " + std::to_string(rank));
  return static_cast<size_t>(a);
}

Status OpCheck::axes(const char *key, int64_t rank) const {
  std::vector<int64_t> sorted = node.intsAttr(key);
  std::sort(sorted.begin(), sorted.end());
  bool inRange = sorted.empty() || (sorted.front() >= 0 && sorted.back() < rank);
  return expect(inRange && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
                "attribute '" + std::string(key) + "' must name different axes of rank " +
                    std::to_string(rank));
}

std::vector<std::vector<int64_t>> sampleSymbols(const std::vector<Symbol> &symbols) {
  constexpr uint64_t kRounds = 12;
  std::vector<std::vector<int64_t>> list;
  for (uint64_t round = 0; round < (symbols.empty() ? 1 : kRounds); ++round) {
    std::vector<int64_t> values;
    uint64_t state = round * 0x9e3779b97f4a7c15u;
    for (const Symbol &s : symbols) {
      state = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9u + 1;
      int64_t last = s.max / s.divisor, first = s.min / s.divisor + (s.min % s.divisor != 0);
      int64_t spread = static_cast<int64_t>((state >> 33) % 61);
      int64_t multiple =
          round == 0 ? first
          : round == 1
              ? s.opt / s.divisor
              : std::min(last, first > last ? last : first + std::min(spread, last - first));
      values.push_back(multiple * s.divisor);
    }
    list.push_back(std::move(values));
  }
  return list;
}

bool OpCheck::same(const DimExpr &a, const DimExpr &b) const {
  return sameSize(a, b, graph.symbols);
}

bool OpCheck::same(const Shape &a, const Shape &b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [this](const DimExpr &x, const DimExpr &y) { return same(x, y); });
}

Diagnostic OpCheck::differ(const DimExpr &a, const DimExpr &b, const std::string &what) const {
  Diag id = a.isConst() && b.isConst() ? Diag::BadIr : Diag::UnsupportedShape;
  return {id, "", what + ": " + a.str(graph.symbols) + " and " + b.str(graph.symbols)};
}

Status OpCheck::sameDim(const DimExpr &a, const DimExpr &b, const std::string &what) const {
  if (same(a, b))
    return success();
  return differ(a, b, what + " must be equal");
}

Status OpCheck::atMost(const DimExpr &a, const DimExpr &b, const std::string &what) const {
  if (a == b || (b - a).range(graph.symbols).min >= 0)
    return success();
  bool holds = forSamples([&](const std::vector<int64_t> &symbols) -> std::optional<bool> {
    auto x = a.evaluate(symbols), y = b.evaluate(symbols);
    return x && y ? std::optional(*x <= *y) : std::nullopt;
  });
  if (holds)
    return success();
  return differ(a, b, what + " must not be larger");
}

Result<Shape> OpCheck::broadcast(const std::vector<const Shape *> &shapes) const {
  size_t rank = 0;
  for (const Shape *s : shapes)
    rank = std::max(rank, s->size());
  Shape out(rank, DimExpr(1));
  for (const Shape *s : shapes)
    for (size_t d = 0; d < s->size(); ++d) {
      DimExpr &size = out[rank - s->size() + d];
      const DimExpr &own = (*s)[d];
      if (own.isConst(1))
        continue;
      if (!size.isConst(1))
        FUSEC_CHECK(sameDim(size, own, "sizes to broadcast together"));
      size = own;
    }
  return out;
}

Status OpCheck::broadcastsTo(const Shape &from, const Shape &to, const std::string &what) const {
  FUSEC_TRY(Shape both, broadcast({&from, &to}));
  return expect(same(both, to), what + " of shape " + str(from, graph.symbols) +
                                    " does not broadcast to " + str(to, graph.symbols));
}

Result<Shape> OpCheck::matMulShape(const Shape &a, const Shape &b) const {
  if (a.empty() || b.empty())
    return fail("a scalar cannot be multiplied as a matrix");
  size_t rowsA = a.size() > 1, columnsB = b.size() > 1;
  FUSEC_CHECK(sameDim(a.back(), b[b.size() - 1 - columnsB], "sizes to sum over"));
  Shape leadA(a.begin(), a.end() - 1 - static_cast<std::ptrdiff_t>(rowsA));
  Shape leadB(b.begin(), b.end() - 1 - static_cast<std::ptrdiff_t>(columnsB));
  FUSEC_TRY(Shape out, broadcast({&leadA, &leadB}));
  if (rowsA)
    out.push_back(a[a.size() - 2]);
  if (columnsB)
    out.push_back(b.back());
  return out;
}

Status OpCheck::output(size_t i, DType type, const Shape &shape) const {
  if (!wants(i))
    return success();
  return expect(outType(i) == type && same(outShape(i), shape),
                "output " + std::to_string(i) + " is " +
                    typeText(outType(i), outShape(i), graph.symbols) + ", it must be " +
                    typeText(type, shape, graph.symbols));
}

DimExpr product(const Shape &shape, size_t from, size_t to) {
  DimExpr p = 1;
  for (size_t d = from; d < to; ++d)
    p = p * shape[d];
  return p;
}

static const RuleTable &table() {
  static const RuleTable all = [] {
    RuleTable t;
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

static Status checkPresence(const OpCheck &c) {
  const Node &n = c.node;
  const OpInfo &row = info(n.op);
  auto outside = [](size_t count, int min, int max) {
    return static_cast<int>(count) < min || (max >= 0 && static_cast<int>(count) > max);
  };
  FUSEC_CHECK(c.expect(n.op != OpKind::Constant, "constants are values, not nodes"));
  FUSEC_CHECK(c.expect(!outside(n.inputs.size(), row.minInputs, row.maxInputs),
                       "has " + std::to_string(n.inputs.size()) + " inputs"));
  FUSEC_CHECK(c.expect(!outside(n.outputs.size(), row.minOutputs, row.maxOutputs),
                       "has " + std::to_string(n.outputs.size()) + " outputs"));
  size_t regions = n.op == OpKind::If ? 2 : n.op == OpKind::Loop || n.op == OpKind::Scan ? 1 : 0;
  FUSEC_CHECK(c.expect(n.regions.size() == regions,
                       "has " + std::to_string(n.regions.size()) + " regions"));
  size_t mandatory = row.maxInputs < 0 ? n.inputs.size() : static_cast<size_t>(row.minInputs);
  for (size_t i = 0; i < mandatory; ++i) {
    bool mayMiss = (n.op == OpKind::Loop || n.op == OpKind::Range) && i < 2;
    FUSEC_CHECK(c.expect(c.has(i) || (mayMiss && (i == 1 || n.op == OpKind::Loop)),
                         "input " + std::to_string(i) + " is missing"));
  }
  bool some = std::any_of(n.outputs.begin(), n.outputs.end(), [](ValueId v) { return v >= 0; });
  return c.expect(some && (c.wants(0) || mayLackFirst(n.op)), "its output is missing");
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
    FUSEC_CHECK(c.expect(std::find(rule.words.begin(), rule.words.end(), given) != rule.words.end(),
                         key + " is '" + given + "'; " + alternatives(rule.words) + " is needed"));
  }
  return c.expect(found == c.node.attributes.size(),
                  "has an attribute that the operator does not have");
}

} // namespace rules

Status checkOperator(const Graph &graph, const Node &node) {
  rules::OpCheck c(graph, node);
  FUSEC_CHECK(rules::checkPresence(c));
  FUSEC_CHECK(rules::checkAttributes(c));
  rules::Rule rule = rules::table().rules[static_cast<size_t>(node.op)];
  return rule ? rule(c) : success();
}

bool sameSize(const DimExpr &a, const DimExpr &b, const std::vector<Symbol> &symbols) {
  if (a == b)
    return true;
  if (a.isConst() && b.isConst())
    return false;
  bool any = false;
  for (const std::vector<int64_t> &values : rules::sampleSymbols(symbols)) {
    auto x = a.evaluate(values), y = b.evaluate(values);
    if (x && y && *x != *y)
      return false;
    any = any || (x && y);
  }
  return any;
}

} // namespace fusec
