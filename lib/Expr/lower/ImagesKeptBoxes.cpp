// Greedy suppression of boxes: a scan over them in the order of their scores, in which a step looks at one box of each
// class, and keeps it unless it is blocked; one that is kept blocks those behind that overlap it.
//
//   step i:   kept[b,c]       = allowed[b,c,i] and not blocked[b,c,i] and count[b,c] < limit
//             blocked'[b,c,j] = blocked[b,c,j] or (kept[b,c] and box i overlaps box j)
//             count'[b,c]     = count[b,c] + kept[b,c]
#include "Expr/lower/ScanBuilder.h"

namespace fusec::lower {
namespace {

/// The corners of the box at place `i` of the order of class `c` in batch `b`.
struct Box {
  Val low[2], high[2];
};
Box boxAt(NodeLowering &n, EquationBuilder &b, Val batch, Val classes, Val i) {
  const Val at = wrapIndex(b.read(n.in(1), {batch, classes, i}), n.shape(0)[1]);
  auto corner = [&](int64_t k) {
    return cast(computeType(n.type(0)), b.readClamped(n.in(0), {batch, at, b.index(k)}));
  };
  return {{corner(0), corner(1)}, {corner(2), corner(3)}};
}

Val area(const Box &box) { return (box.high[0] - box.low[0]) * (box.high[1] - box.low[1]); }

Status keptBoxes(NodeLowering &n) {
  const Shape &shape = n.shape(1), rows{shape[0], shape[1]};
  const DimExpr &count = shape[2];
  auto filled = [&](const char *suffix, DType type, const Shape &of) {
    return n.map(n.temp(suffix, type, of), [&](EquationBuilder &b) { return b.constant(type, 0); });
  };
  const TensorId noneBlocked = filled("none", DType::Bool, shape),
                 noneKept = filled("zero", DType::I64, rows),
                 blocked = n.temp("blocked", DType::Bool, shape),
                 blocking = n.temp("blocking", DType::Bool, shape),
                 counted = n.temp("counted", DType::I64, rows),
                 counting = n.temp("counting", DType::I64, rows),
                 kept = n.temp("kept", DType::Bool, rows),
                 stacked = n.temp("steps", DType::Bool, {count, shape[0], shape[1]});
  ScanBuilder scan(n, count);
  scan.body([&] {
    n.map(kept, [&](EquationBuilder &b) {
      const std::vector<Val> here = {b.axis(0), b.axis(1), b.step()};
      const Val isFree = logicalNot(b.read(blocked, here)),
                isFew = lt(b.read(counted, b.axes), b.read(n.in(4), {}));
      return both(b.read(n.in(2), here), both(isFree, isFew));
    });
    n.map(blocking, [&](EquationBuilder &b) {
      const Box own = boxAt(n, b, b.axis(0), b.axis(1), b.step()),
                other = boxAt(n, b, b.axis(0), b.axis(1), b.axis(2));
      Val sides[2];
      for (size_t d : {0, 1})
        sides[d] = min(own.high[d], other.high[d]) - max(own.low[d], other.low[d]);
      const Val common = sides[0] * sides[1], whole = area(own) + area(other) - common,
                threshold = cast(common.type(), b.read(n.in(3), {}));
      const Val overlaps =
          both(both(gt(sides[0], 0.0), gt(sides[1], 0.0)), lt(threshold * whole, common));
      return either(b.read(blocked, b.axes), both(b.read(kept, {b.axis(0), b.axis(1)}), overlaps));
    });
    n.map(counting, [&](EquationBuilder &b) {
      return b.read(counted, b.axes) + cast(DType::I64, b.read(kept, b.axes));
    });
  });
  scan.equation.carries = {{noneBlocked, blocked, blocking, -1}, {noneKept, counted, counting, -1}};
  scan.equation.scanOutputs = {{kept, stacked}};
  scan.finish();
  n.map(n.out(),
        [&](EquationBuilder &b) { return b.read(stacked, {b.axis(2), b.axis(0), b.axis(1)}); });
  return success();
}

} // namespace

void addImagesKeptBoxes(HandlerTable &table) { table[OpKind::KeptBoxes] = keptBoxes; }

} // namespace fusec::lower
