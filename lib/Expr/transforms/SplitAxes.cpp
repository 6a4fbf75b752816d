// Splits a reduction axis that a reshape has folded into one: what compose leaves of the merge of attention heads,
//
//   reduction o [s:128, j:768; r:768] sum f32
//     %o = mul(%ctx[floordiv(r, 64), s, floormod(r, 64)], %w[r, j])
//
// becomes affine in two axes,
//
//   reduction o [s:128, j:768; r.0:12, r.1:64] sum f32
//     %o = mul(%ctx[r.0, s, r.1], %w[r.0*64 + r.1, j])
//
// The order of the terms, and with it every bit of the sum, stays. Spatial axes are the output's dimensions and stay
// whole. Must run after compose, which makes such divisions.
#include "Expr/IndexAlgebra.h"
#include "Expr/Passes.h"
#include "Expr/transforms/Walk.h"

namespace fusec {
namespace {

constexpr size_t kMaxAxes = 16;

struct Split {
  int axis;
  DimExpr inner; // divides the extent exactly
};

/// The smallest constant (or a symbolic) divisor of a reduction axis itself.
std::optional<Split> findSplit(const Equation &e) {
  std::optional<Split> best;
  for (NodeId id : e.body.reachable(bodyRoots(e))) {
    const Scalar &s = e.body[id];
    if (s.op != ScalarOp::FloorDiv && s.op != ScalarOp::FloorMod)
      continue;
    const Scalar &a = e.body[s.args[0]], &d = e.body[s.args[1]];
    if (a.op != ScalarOp::Axis || a.index < e.numSpatial ||
        (d.op != ScalarOp::Const && d.op != ScalarOp::Dim))
      continue;
    DimExpr inner = d.op == ScalarOp::Const ? DimExpr(d.imm) : d.dim;
    auto outer = exactQuotient(e.axes[a.index].extent, inner);
    if (!outer || inner.isConst(1) || outer->isConst(1) || inner.isConst(0))
      continue;
    if (!best || (best->axis == a.index && inner.isConst() && best->inner.isConst() &&
                  inner.constValue() < best->inner.constValue()))
      best = Split{a.index, inner};
  }
  return best;
}

void apply(Equation &e, const Split &split, const std::vector<Symbol> &symbols,
           const DimExpr *steps) {
  Axis whole = e.axes[split.axis];
  Axis outer{whole.name + ".0", *exactQuotient(whole.extent, split.inner)};
  Axis inner{whole.name + ".1", split.inner};
  auto at = e.axes.begin() + split.axis;
  *at = outer;
  e.axes.insert(at + 1, inner);
  rebuild(e, symbols, steps, [&](Body &body, const Scalar &s, NodeId) {
    if (s.op != ScalarOp::Axis || s.index < split.axis)
      return kNoNode;
    if (s.index > split.axis)
      return body.axis(s.index + 1);
    NodeId scaled = body.binary(ScalarOp::Mul, body.axis(split.axis), body.dim(split.inner));
    return body.binary(ScalarOp::Add, scaled, body.axis(split.axis + 1));
  });
}

} // namespace

ExprProgram splitAxes(ExprProgram program) {
  forEachEquation(program.items, [&](Equation &e, const DimExpr *steps) {
    if (e.kind != EquationKind::Reduction)
      return;
    while (e.axes.size() < kMaxAxes) {
      auto split = findSplit(e);
      if (!split)
        break;
      apply(e, *split, program.symbols, steps);
    }
  });
  return program;
}

} // namespace fusec
