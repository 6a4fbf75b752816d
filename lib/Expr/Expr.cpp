#include "Expr/Expr.h"

#include <limits>

namespace fusec {
namespace {

constexpr std::string_view kMonoids[] = {"sum",    "prod",   "max",        "min",
                                         "and",    "or",     "xor",        "cascade",
                                         "argmax", "argmin", "argmaxlast", "argminlast"};
constexpr std::string_view kCombiners[] = {"assign", "add", "mul", "min", "max"};

int64_t lowestInt(DType t) {
  if (!isSigned(t))
    return 0;
  return t == DType::I64 ? INT64_MIN : -(int64_t(1) << (sizeInBytes(t) * 8 - 1));
}
int64_t highestInt(DType t) {
  if (t == DType::Bool)
    return 1;
  return t == DType::U64 ? -1
         : isSigned(t)   ? ~lowestInt(t)
                         : (int64_t(1) << sizeInBytes(t) * 8) - 1;
}

} // namespace

std::string_view name(Monoid m) { return kMonoids[static_cast<int>(m)]; }
std::string_view name(Combiner c) { return kCombiners[static_cast<int>(c)]; }

std::optional<Monoid> parseMonoid(std::string_view text) {
  for (size_t i = 0; i < std::size(kMonoids); ++i)
    if (kMonoids[i] == text)
      return static_cast<Monoid>(i);
  return std::nullopt;
}

std::optional<Combiner> parseCombiner(std::string_view text) {
  for (size_t i = 0; i < std::size(kCombiners); ++i)
    if (kCombiners[i] == text)
      return static_cast<Combiner>(i);
  return std::nullopt;
}

NodeId identityOf(Body &body, Monoid m, DType t) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (m) {
  case Monoid::Sum:
  case Monoid::Or:
  case Monoid::Xor: return body.constantInt(t, 0);
  case Monoid::Prod: return body.constantInt(t, 1);
  case Monoid::And: return body.constantInt(t, t == DType::Bool ? 1 : -1);
  case Monoid::Max:
  case Monoid::ArgMax:
  case Monoid::ArgMaxLast:
    return isFloat(t) ? body.constant(t, -infinity) : body.constantInt(t, lowestInt(t));
  case Monoid::Min:
  case Monoid::ArgMin:
  case Monoid::ArgMinLast:
    return isFloat(t) ? body.constant(t, infinity) : body.constantInt(t, highestInt(t));
  case Monoid::Cascade: break; // each state has its own
  }
  return kNoNode;
}

bool isArgMonoid(Monoid m) { return m >= Monoid::ArgMax; }
bool isTupleMonoid(Monoid m) { return m >= Monoid::Cascade; }

TensorId ExprProgram::addTensor(Tensor t) {
  tensors.push_back(std::move(t));
  return static_cast<TensorId>(tensors.size()) - 1;
}

std::vector<NodeId> bodyRoots(const Equation &e) {
  std::vector<NodeId> roots = e.results;
  for (const CascadeState &s : e.states)
    if (s.correction != kNoNode)
      roots.push_back(s.correction);
  roots.insert(roots.end(), e.scatterIndex.begin(), e.scatterIndex.end());
  if (e.scatterPredicate != kNoNode)
    roots.push_back(e.scatterPredicate);
  return roots;
}

void compact(Equation &e) {
  // In the order of the text, so that an equation and its printed and parsed twin number their nodes alike.
  std::vector<NodeId *> roots;
  for (NodeId &r : e.scatterIndex)
    roots.push_back(&r);
  for (NodeId &r : e.results)
    roots.push_back(&r);
  for (CascadeState &s : e.states)
    roots.push_back(&s.correction);
  if (e.scatterPredicate != kNoNode)
    roots.push_back(&e.scatterPredicate);
  e.body.compact(roots);
  for (Equation &inner : e.scanBody)
    compact(inner);
}

void setRanges(Equation &e, const std::vector<Symbol> &symbols, const DimExpr *steps) {
  e.body.symbolTable = symbols;
  e.body.axisRanges.clear();
  for (const Axis &a : e.axes)
    e.body.axisRanges.push_back(rangeOfExtent(a.extent, symbols));
  if (steps)
    e.body.stepRange = rangeOfExtent(*steps, symbols);
  for (Equation &inner : e.scanBody)
    setRanges(inner, symbols, &e.steps);
}

} // namespace fusec
