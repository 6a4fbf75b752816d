#include "Expr/Expr.h"

#include <map>

namespace fusec {
namespace {

/// Moves an equation into a program of its own in which tensors, axes and symbols are numbered in the order
/// of their first use and have no other name.
class Canonical {
public:
  explicit Canonical(const ExprProgram &from) : from(from) {}

  std::string text(Equation e) {
    rename(e, 0);
    for (TensorId id : order) {
      // A constant's data is a parameter; that it is known when the bundle is made is not.
      const Tensor &t = from.tensors[id];
      Shape shape;
      for (const DimExpr &d : t.shape)
        shape.push_back(dim(d));
      constants += t.kind == TensorKind::Constant ? "c" : "t";
      out.addTensor(
          {"t" + std::to_string(out.tensors.size()), TensorKind::Temp, t.type, shape, nullptr});
    }
    out.items.push_back({std::move(e)});
    return print(out, nullptr) + constants;
  }

private:
  DimExpr dim(const DimExpr &d) {
    std::vector<SymbolId> used;
    d.collectSymbols(used);
    for (SymbolId s : used)
      if (symbols.emplace(s, static_cast<SymbolId>(out.symbols.size())).second) {
        out.symbols.push_back(from.symbols[s]);
        out.symbols.back().name = "q" + std::to_string(out.symbols.size() - 1);
        // Over symbols that have other numbers here; the range says what an equation may rely on.
        out.symbols.back().definition = nullptr;
        out.symbols.back().bound.reset();
        out.symbols.back().test.reset();
        out.symbols.back().favouredKind.reset();
      }
    return d.substitute([&](SymbolId s) { return std::optional(DimExpr::symbol(symbols.at(s))); });
  }

  void tensor(TensorId &id) {
    if (id < 0)
      return;
    auto [it, isNew] = numbers.emplace(id, static_cast<TensorId>(order.size()));
    if (isNew)
      order.push_back(id);
    id = it->second;
  }

  void rename(Equation &e, int number) {
    compact(e);
    e.name = "e" + std::to_string(number);
    e.onnxNodes.clear();
    for (size_t i = 0; i < e.axes.size(); ++i)
      e.axes[i] = {"a" + std::to_string(i), dim(e.axes[i].extent)};
    e.steps = dim(e.steps);
    for (ScanCarry &c : e.carries)
      for (TensorId *id : {&c.init, &c.previous, &c.next, &c.final})
        tensor(*id);
    for (ScanOutput &o : e.scanOutputs)
      for (TensorId *id : {&o.perStep, &o.stacked})
        tensor(*id);
    for (TensorId &id : e.opaqueInputs)
      tensor(id);
    tensor(e.base);
    for (Scalar &s : e.body.nodes) {
      if (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf)
        tensor(s.index);
      if (s.op == ScalarOp::Dim)
        s.dim = dim(s.dim);
    }
    for (size_t i = 0; i < e.scanBody.size(); ++i)
      rename(e.scanBody[i], static_cast<int>(i) + 1);
    for (TensorId &id : e.outputs)
      tensor(id);
  }

  const ExprProgram &from;
  ExprProgram out;
  std::map<TensorId, TensorId> numbers;
  std::map<SymbolId, SymbolId> symbols;
  std::vector<TensorId> order;
  std::string constants;
};

} // namespace

std::string canonicalText(const Equation &equation, const ExprProgram &program) {
  return Canonical(program).text(equation);
}

} // namespace fusec
