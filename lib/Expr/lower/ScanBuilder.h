#pragma once
#include "Expr/lower/Lowering.h"

namespace fusec::lower {

/// A scan under construction: its body, then carries and what is stacked, then finish().
class ScanBuilder {
public:
  ScanBuilder(NodeLowering &n, const DimExpr &steps) : n(n) {
    equation.kind = EquationKind::Scan;
    equation.onnxNodes = {n.node.name};
    equation.steps = steps;
  }
  /// `fill` makes the equations of a step.
  template <typename F> void body(F fill) {
    std::vector<Item> items = n.l.nested([&] {
      n.l.scanSteps = &equation.steps;
      fill();
      n.l.scanSteps = nullptr;
    });
    for (Item &item : items)
      equation.scanBody.push_back(std::move(std::get<Equation>(item.value)));
  }
  void finish() {
    for (const ScanCarry &carry : equation.carries)
      if (carry.final >= 0)
        equation.outputs.push_back(carry.final);
    for (const ScanOutput &output : equation.scanOutputs)
      equation.outputs.push_back(output.stacked);
    equation.name = n.l.program.tensors[equation.outputs[0]].name;
    n.l.items->push_back({std::move(equation)});
  }

  NodeLowering &n;
  Equation equation;
};

} // namespace fusec::lower
