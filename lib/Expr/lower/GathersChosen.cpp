// Finds which of n things are chosen, in order. The places of a dense mask are counted and found again:
//
//   mask    0 1 1 0 0 1        rows of 3 side by side, each thing counted with those before it in its row:
//   inRow   0 1 2 | 0 0 1      before each row: 0, 2
//   out     j -> the first i with inRow[i] + before[row of i] > j:   1 2 5
//
// Rows are counted at once, their sums one after the other, and each element of the output looks for its place by
// halving: a scatter of the places at their counts would run one after the other, for two of them might meet.
#include "Expr/lower/ScanBuilder.h"
#include "Support/DimLimits.h"

#include <bit>

namespace fusec::lower {
namespace {

constexpr int64_t kRow = 512; // things that are counted one after the other
// No tensor in memory has more elements.
constexpr int64_t kMostThings = int64_t{1} << 43;

TensorId zeros(NodeLowering &n, const std::string &suffix, const Shape &shape) {
  return n.map(n.temp(suffix, DType::I64, shape),
               [](EquationBuilder &b) { return b.constant(DType::I64, 0); });
}

/// Things that are chosen, up to each place and with it.
class Counts {
public:
  explicit Counts(NodeLowering &n)
      : n(n), size(n.shape(0)[0]), row(size.isConst() ? std::min(size.constValue(), kRow) : kRow),
        rows(ceilDiv(size, DimExpr(row))) {
    countRows();
    addRows();
  }

  /// The count of place `i`, where `exists`.
  Val at(EquationBuilder &b, Val exists, Val i) const {
    const Val r = floorDiv(i, DimExpr(row)), none = b.constant(DType::I64, 0);
    return b.readIf(exists, inRow, {floorMod(i, DimExpr(row)), r}, none) +
           b.readIf(exists, before, {r}, none);
  }

private:
  void countRows() {
    const DimExpr steps = min(size, DimExpr(row));
    inRow = n.temp("in_row", DType::I64, {steps, rows});
    sums = n.temp("of_rows", DType::I64, {rows});
    const TensorId init = zeros(n, "none", {rows}), next = n.temp("counted", DType::I64, {rows}),
                   previous = n.temp("counts", DType::I64, {rows});
    ScanBuilder scan(n, steps);
    scan.body([&] {
      n.map(next, [&](EquationBuilder &b) {
        const Val i = b.axis(0) * DimExpr(row) + b.step();
        const Val chosen = b.readIf(lt(i, size), n.in(0), {i}, b.truth(false));
        return b.read(previous, b.axes) + cast(DType::I64, chosen);
      });
    });
    scan.equation.carries = {{init, previous, next, sums}};
    scan.equation.scanOutputs = {{next, inRow}};
    scan.finish();
  }

  void addRows() {
    before = n.temp("before_rows", DType::I64, {rows});
    const TensorId init = zeros(n, "no_rows", {}), next = n.temp("summed", DType::I64, {}),
                   previous = n.temp("sum", DType::I64, {}), step = n.temp("step", DType::I64, {});
    ScanBuilder scan(n, rows);
    scan.body([&] {
      n.map(next,
            [&](EquationBuilder &b) { return b.read(previous, {}) + b.read(sums, {b.step()}); });
      n.copy(step, previous);
    });
    scan.equation.carries = {{init, previous, next, -1}};
    scan.equation.scanOutputs = {{step, before}};
    scan.finish();
  }

  NodeLowering &n;
  const DimExpr size;
  const int64_t row;
  const DimExpr rows;
  TensorId inRow = -1, sums = -1, before = -1;
};

/// Halvings that find a place among `size` things, where no more than `most` are enough: a multiple of four of them, as
/// sizes have no logarithm.
DimExpr halvings(const DimExpr &size, int64_t most) {
  constexpr int kTogether = 4;
  DimExpr steps(0);
  for (int done = 0; done < most; done += kTogether)
    steps =
        steps + min(floorDiv(size, DimExpr(int64_t{1} << done)), DimExpr(1)) * DimExpr(kTogether);
  return size.isConst() || isTooLarge(steps) ? DimExpr(most) : min(steps, DimExpr(most));
}

Status chosen(NodeLowering &n) {
  const DimExpr &size = n.shape(0)[0];
  const int64_t most = std::min(size.range(n.l.program.symbols).max, kMostThings);
  if (most <= 0) {
    n.map(n.out(), [](EquationBuilder &b) { return b.constant(DType::I64, 0); });
    return success();
  }
  const Counts counts(n);
  std::vector<int64_t> strides;
  for (int64_t stride = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most))); stride;
       stride /= 2)
    strides.push_back(stride);
  const DimExpr all(std::ssize(strides)), steps = halvings(size, all.constValue());
  const TensorId table = n.constant("strides", makeIntConstant({all.constValue()}, strides));
  const TensorId init = zeros(n, "begin", n.outShape()),
                 previous = n.temp("place", DType::I64, n.outShape()),
                 next = n.temp("nearer", DType::I64, n.outShape());
  // The places in front of `place` count too little.
  ScanBuilder scan(n, steps);
  scan.body([&] {
    n.map(next, [&](EquationBuilder &b) {
      const Val place = b.read(previous, b.axes),
                further = place + b.load(table, {b.step() + (all - steps)});
      const Val exists = le(further, size);
      const Val counted = counts.at(b, exists, further - 1);
      return select(both(exists, le(counted, b.axis(0))), further, place);
    });
  });
  scan.equation.carries = {{init, previous, next, n.out()}};
  scan.finish();
  return success();
}

} // namespace

void addGathersChosen(HandlerTable &table) { table[OpKind::Chosen] = chosen; }

} // namespace fusec::lower
