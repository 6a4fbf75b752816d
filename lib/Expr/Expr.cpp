#include "Expr/Expr.h"

namespace fusec {

static constexpr std::string_view kCombiners[] = {"assign", "add", "mul", "min", "max"};

std::string_view name(Combiner c) { return kCombiners[static_cast<int>(c)]; }

std::optional<Combiner> parseCombiner(std::string_view text) {
  for (size_t i = 0; i < std::size(kCombiners); ++i)
    if (kCombiners[i] == text)
      return static_cast<Combiner>(i);
  return std::nullopt;
}

TensorId ExprProgram::addTensor(Tensor t) {
  tensors.push_back(std::move(t));
  return static_cast<TensorId>(tensors.size()) - 1;
}

bool testsData(const Control &control, const std::vector<Symbol> &symbols) {
  return control.kind == Control::Kind::Size &&
         symbols[static_cast<size_t>(control.symbol)].testsData();
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

void collectSymbols(const Equation &e, std::vector<SymbolId> &out) {
  for (const Axis &a : e.axes)
    a.extent.collectSymbols(out);
  e.steps.collectSymbols(out);
  for (const Scalar &s : e.body.nodes)
    if (s.op == ScalarOp::Dim)
      s.dim.collectSymbols(out);
  for (const Equation &inner : e.scanBody)
    collectSymbols(inner, out);
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

/// Raises what is a factor of the extent to 1 at least.
static void raiseFactors(const DimExpr &extent, std::vector<Symbol> &symbols) {
  if (extent.op() == DimExpr::Op::Mul)
    for (const DimExpr &factor : extent.operands())
      raiseFactors(factor, symbols);
  if (extent.op() != DimExpr::Op::Symbol)
    return;
  Symbol &symbol = symbols[static_cast<size_t>(extent.symbolId())];
  if (symbol.min == 0 && symbol.max > 0)
    symbol.min = 1;
}

void setRanges(Equation &e, const std::vector<Symbol> &symbols, const DimExpr *steps) {
  e.body.symbolTable = symbols;
  for (const Axis &a : e.axes)
    raiseFactors(a.extent, e.body.symbolTable);
  e.body.axisRanges.clear();
  for (const Axis &a : e.axes)
    e.body.axisRanges.push_back(rangeOfExtent(a.extent, symbols));
  if (steps)
    e.body.stepRange = rangeOfExtent(*steps, symbols);
  for (Equation &inner : e.scanBody)
    setRanges(inner, symbols, &e.steps);
}

} // namespace fusec
