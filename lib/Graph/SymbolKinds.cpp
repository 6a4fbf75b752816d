// What symbols are, for whoever chooses sizes to tune kernels for where the user favours none, or to have a plan of
// their own. It follows from their uses:
//   image   a window or a resize slides along it, in two directions or more
//   length  rows are summed, normalised, joined or stepped through along it, or it lies inside of an input's shape
//   batch   otherwise, where it leads an input's shape
#include "Graph/SymbolKinds.h"

#include <algorithm>

namespace fusec {
namespace {

class KindFinder {
public:
  explicit KindFinder(const Graph &graph)
      : graph(graph), kinds(graph.symbols.size(), SymbolKind::Batch),
        leads(graph.symbols.size(), false) {
    for (ValueId id : graph.body.inputs)
      input(graph.value(id).shape);
    for (size_t s = 0; s < kinds.size(); ++s)
      if (!leads[s])
        kinds[s] = SymbolKind::Length;
    region(graph.body);
  }

  const Graph &graph;
  std::vector<SymbolKind> kinds;

private:
  void note(const DimExpr &size, SymbolKind kind) {
    std::vector<SymbolId> used;
    size.collectSymbols(used);
    for (SymbolId s : used)
      kinds[static_cast<size_t>(s)] =
          std::min(kinds[static_cast<size_t>(s)], kind); // Image is the least
  }

  void input(const Shape &shape) {
    for (size_t d = 0; d < shape.size(); ++d)
      if (d > 0)
        note(shape[d], SymbolKind::Length);
      else if (shape[0].op() == DimExpr::Op::Symbol && shape.size() > 1)
        leads[static_cast<size_t>(shape[0].symbolId())] = true;
  }

  void region(const Region &r) {
    for (const Node &n : r.nodes) {
      node(n);
      for (const Region &inner : n.regions)
        region(inner);
    }
  }

  const Shape *shapeOf(const Node &n, size_t operand) const {
    return n.hasInput(operand) ? &graph.value(n.inputs[operand]).shape : nullptr;
  }

  void node(const Node &n) {
    switch (n.op) {
    case OpKind::Conv:
    case OpKind::ConvInteger:
    case OpKind::QLinearConv:
    case OpKind::ConvTranspose:
    case OpKind::AveragePool:
    case OpKind::MaxPool:
    case OpKind::LpPool:
    case OpKind::GlobalAveragePool:
    case OpKind::GlobalMaxPool:
    case OpKind::GlobalLpPool:
    case OpKind::Resize:
    case OpKind::GridSample: return windows(*shapeOf(n, 0));
    case OpKind::LSTM:
    case OpKind::GRU:
    case OpKind::RNN: return note(shapeOf(n, 0)->at(0), SymbolKind::Length);
    case OpKind::Softmax:
    case OpKind::LogSoftmax:
    case OpKind::Concat:
      for (size_t i = 0; i < n.inputs.size(); ++i)
        note(shapeOf(n, i)->at(static_cast<size_t>(n.intAttr("axis"))), SymbolKind::Length);
      return;
    case OpKind::Scan: return steps(n);
    case OpKind::MatMul:
    case OpKind::MatMulInteger:
    case OpKind::QLinearMatMul:
    case OpKind::Gemm:
    case OpKind::Einsum: return contraction(n);
    default: break;
    }
    // A reduction of all elements, as of the indices that a run tests, tells none of the axes from the others.
    if (n.hasAttr("axes") && n.hasAttr("keepdims") &&
        n.intsAttr("axes").size() < shapeOf(n, 0)->size())
      for (int64_t axis : n.intsAttr("axes"))
        note(shapeOf(n, 0)->at(static_cast<size_t>(axis)), SymbolKind::Length);
  }

  void windows(const Shape &shape) {
    for (size_t d = 2; d < shape.size(); ++d)
      note(shape[d], shape.size() > 3 ? SymbolKind::Image : SymbolKind::Length);
  }

  void steps(const Node &n) {
    const std::vector<int64_t> &axes = n.intsAttr("scan_input_axes");
    for (size_t i = 0; i < axes.size(); ++i)
      if (const Shape *shape = shapeOf(n, n.inputs.size() - axes.size() + i))
        note(shape->at(static_cast<size_t>(axes[i])), SymbolKind::Length);
  }

  /// What it sums over stands in no dimension of its result, or, as rows and columns both, in two.
  void contraction(const Node &n) {
    const Shape &made = graph.value(n.outputs[0]).shape;
    std::vector<SymbolId> once, twice;
    for (const DimExpr &size : made) {
      std::vector<SymbolId> own;
      size.collectSymbols(own);
      for (SymbolId s : own)
        (std::count(once.begin(), once.end(), s) ? twice : once).push_back(s);
    }
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const Shape *shape = shapeOf(n, i);
      std::vector<SymbolId> own;
      for (size_t d = 0; shape && d < shape->size(); ++d)
        (*shape)[d].collectSymbols(own);
      for (SymbolId s : own)
        if (std::count(once.begin(), once.end(), s) == 0 ||
            std::count(twice.begin(), twice.end(), s) != 0)
          note(DimExpr::symbol(s), SymbolKind::Length);
    }
  }

  std::vector<bool> leads; // an input's shape
};

} // namespace

std::vector<Symbol> withKinds(const Graph &graph) {
  std::vector<Symbol> symbols = graph.symbols;
  const std::vector<SymbolKind> kinds = KindFinder(graph).kinds;
  for (size_t s = 0; s < symbols.size(); ++s)
    if (kindOf(symbols[s]) == SymbolKind::Any)
      symbols[s].opt = static_cast<int64_t>(kinds[s]);
    else if (!kindOf(symbols[s]) && !symbols[s].definition && !symbols[s].isDataDependent())
      symbols[s].favouredKind = kinds[s];
  return symbols;
}

} // namespace fusec
