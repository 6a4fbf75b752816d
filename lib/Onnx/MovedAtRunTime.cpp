#include "Onnx/MovedAtRunTime.h"
#include "Onnx/Compose.h"
#include "Onnx/KnownValues.h"
#include "Onnx/TestedInRun.h"
#include "Support/Diag.h"

#include <algorithm>

namespace fusec {
namespace {

/// A bool for each entry of `axes`: it names axis `d` of the operand.
Result<ValueId> areOfAxis(NodeImporter &n, ValueId axes, int64_t d) {
  Compose c(n);
  FUSEC_TRY(ValueId first, c.binary(OpKind::Equal, axes, c.integer(d)));
  FUSEC_TRY(ValueId second, c.binary(OpKind::Equal, axes, c.integer(d - n.rank(0))));
  return c.binary(OpKind::Or, first, second);
}

/// The entry of `list` whose entry of `axes` (kNoValue: 0, 1, ...) names axis `d` of the operand, or 0: a sum over all
/// of them.
Result<ValueId> entryOfAxis(NodeImporter &n, ValueId list, ValueId axes, int64_t d) {
  Compose c(n);
  if (axes == kNoValue)
    return d < n.shapeOf(list)[0].constValue() ? n.reshape(c.slice(list, 0, d, 1), {})
                                               : c.integer(0);
  FUSEC_TRY(ValueId isIt, areOfAxis(n, axes, d));
  FUSEC_TRY(ValueId own, c.where(isIt, list, c.integer(0)));
  return c.reduce(OpKind::ReduceSum, own, {0});
}

/// Whether one of `axes` (kNoValue: all) may be axis `d` of the operand.
bool mayName(const NodeImporter &n, ValueId axes, int64_t d) {
  const auto named =
      axes == kNoValue ? std::nullopt : allConstants(knownElements(n.graph().value(axes)));
  return !named || std::any_of(named->begin(), named->end(),
                               [&](int64_t a) { return a == d || a == d - n.rank(0); });
}

/// The size of an axis of the operand, as an i64 of rank 0.
Result<ValueId> sizeOfAxis(NodeImporter &n, size_t d) {
  if (const DimExpr &size = n.shape(0)[d]; size.isConst())
    return Compose(n).integer(size.constValue());
  const auto axis = static_cast<int64_t>(d);
  FUSEC_TRY(ValueId size,
            n.emitOne(OpKind::Shape, {n.id(0)}, {{"start", axis}, {"end", axis + 1}}));
  return n.reshape(size, {});
}

} // namespace

PadOperands padOperands(NodeImporter &n) {
  Compose c(n);
  const int64_t count = n.shape(1)[0].constValue() / 2;
  return {c.slice(n.id(1), 0, 0, count), c.slice(n.id(1), 0, count, count),
          n.has(3) ? c.cast(n.id(3), DType::I64) : kNoValue,
          n.has(2) ? n.reshape(n.id(2), {}) : c.scalar(n.type(0), 0)};
}

namespace {

/// By how much the pads of an axis ask for more than it has to repeat.
Result<ValueId> lackingToRepeat(NodeImporter &n, const std::string &mode, ValueId extent,
                                ValueId begin, ValueId end) {
  Compose c(n);
  const ValueId zero = c.integer(0), one = c.integer(1);
  FUSEC_TRY(const ValueId before, c.binary(OpKind::Min, begin, zero));
  FUSEC_TRY(const ValueId behind, c.binary(OpKind::Min, end, zero));
  FUSEC_TRY(ValueId rest, c.binary(OpKind::Add, extent, before));
  FUSEC_TRY(rest, c.binary(OpKind::Add, rest, behind));
  FUSEC_TRY(ValueId added, c.binary(OpKind::Max, begin, end));
  FUSEC_TRY(added, c.binary(OpKind::Max, added, zero));
  // An element is left, but of an axis that has none and gets none.
  FUSEC_TRY(ValueId least, c.binary(OpKind::Max, extent, added));
  FUSEC_TRY(least, c.binary(OpKind::Min, least, one));
  if (mode == "reflect") { // about the last element, which is not repeated
    FUSEC_TRY(const ValueId isAdded, c.binary(OpKind::Greater, added, zero));
    FUSEC_TRY(added, c.binary(OpKind::Add, added, one));
    FUSEC_TRY(least, c.where(isAdded, added, least));
  }
  return c.binary(OpKind::Sub, least, rest);
}

/// The larger one of two sizes, of which the first may be none yet.
Result<ValueId> largerOf(NodeImporter &n, ValueId a, ValueId b) {
  return a == kNoValue ? b : Compose(n).binary(OpKind::Max, a, b);
}

} // namespace

Status requirePads(NodeImporter &n, const std::string &mode, const Shape &out,
                   const PadOperands &pads) {
  Compose c(n);
  if (pads.axes != kNoValue)
    FUSEC_CHECK(requireAxes(n, pads.axes));
  const PadOperands near{bounded(n, pads.begins), bounded(n, pads.ends), pads.axes, pads.fill};
  std::vector<ValueId> asked;
  ValueId lacking = kNoValue;
  for (size_t d = 0; d < out.size(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    FUSEC_TRY(const ValueId extent, sizeOfAxis(n, d));
    FUSEC_TRY(const ValueId begin, entryOfAxis(n, near.begins, near.axes, axis));
    FUSEC_TRY(const ValueId end, entryOfAxis(n, near.ends, near.axes, axis));
    FUSEC_TRY(ValueId size, c.binary(OpKind::Add, extent, begin));
    FUSEC_TRY(size, c.binary(OpKind::Add, size, end));
    if (near.axes != kNoValue) { // each is named once at most
      FUSEC_TRY(const ValueId are, areOfAxis(n, near.axes, axis));
      FUSEC_TRY(const ValueId times, c.reduce(OpKind::ReduceSum, c.cast(are, DType::I64), {0}));
      FUSEC_TRY(const ValueId isWrong, c.binary(OpKind::Greater, times, c.integer(1)));
      FUSEC_TRY(size, c.where(isWrong, c.integer(-1), size));
    }
    asked.push_back(n.reshape(size, {DimExpr(1)}));
    if (mode == "constant" || !mayName(n, near.axes, axis))
      continue;
    FUSEC_CHECK(n.sizes().noLess(n.shape(0)[d], min(out[d], DimExpr(1)),
                                 "an axis must have an element to repeat"));
    FUSEC_TRY(const ValueId own, lackingToRepeat(n, mode, extent, begin, end));
    FUSEC_TRY(lacking, largerOf(n, lacking, own));
  }
  if (asked.empty())
    return success();
  FUSEC_CHECK(requireDeclared(n, c.concat(asked, 0), out));
  if (lacking == kNoValue)
    return success();
  FUSEC_TRY(lacking, c.binary(OpKind::Max, lacking, c.integer(0)));
  return requireNone(n, lacking, DataTest::Pads);
}

namespace {

/// `at` brought back inside of an axis of `extent` elements, of which pads may cut some.
Result<ValueId> repeated(NodeImporter &n, const std::string &mode, ValueId at, ValueId extent,
                         const PadOperands &pads) {
  Compose c(n);
  const ValueId zero = c.integer(0), one = c.integer(1);
  FUSEC_TRY(const ValueId last, c.binary(OpKind::Sub, extent, one));
  if (mode != "edge") {
    // What negative pads cut, before and behind, is gone before anything is repeated.
    FUSEC_TRY(ValueId before, c.binary(OpKind::Sub, zero, pads.begins));
    FUSEC_TRY(ValueId behind, c.binary(OpKind::Sub, zero, pads.ends));
    FUSEC_TRY(before, c.binary(OpKind::Max, before, zero));
    FUSEC_TRY(behind, c.binary(OpKind::Max, behind, zero));
    FUSEC_TRY(ValueId rest, c.binary(OpKind::Sub, extent, before));
    FUSEC_TRY(rest, c.binary(OpKind::Sub, rest, behind));
    FUSEC_TRY(at, c.binary(OpKind::Sub, at, before));
    if (mode == "reflect") { // a triangle wave of period 2 (rest - 1)
      FUSEC_TRY(rest, c.binary(OpKind::Sub, rest, one));
      FUSEC_TRY(rest, c.binary(OpKind::Add, rest, rest));
    }
    FUSEC_TRY(ValueId period, c.binary(OpKind::Max, rest, one));
    at = c.like(OpKind::Mod, {at, period}, {{"fmod", int64_t(0)}});
    if (mode == "reflect") {
      FUSEC_TRY(ValueId back, c.binary(OpKind::Sub, period, at));
      FUSEC_TRY(at, c.binary(OpKind::Min, at, back));
    }
    FUSEC_TRY(at, c.binary(OpKind::Add, at, before));
  }
  return c.like(OpKind::Clip, {at, zero, last});
}

} // namespace

/// Pads that are a run-time vector, where the model declares the output's shape: each axis is gathered at
/// iota(size of the output) - begin, brought back inside as the mode says. With mode constant all that lay outside is
/// one element behind the last one, which each axis has then.
Status padAtRunTime(NodeImporter &n, const std::string &mode, const Shape &out,
                    const PadOperands &pads) {
  Compose c(n);
  const bool isConstant = mode == "constant";
  std::vector<size_t> padded;
  std::vector<int64_t> fill(2 * out.size(), 0);
  for (size_t d = 0; d < out.size(); ++d) {
    if (!mayName(n, pads.axes, static_cast<int64_t>(d)))
      continue;
    padded.push_back(d);
    fill[out.size() + d] = 1;
  }
  ValueId result = n.id(0);
  if (isConstant) {
    FUSEC_TRY(result, n.emitOne(OpKind::Pad, {result, kNoValue, pads.fill},
                                {{"mode", mode}, {"pads", fill}}));
  }
  for (size_t d : padded) {
    const auto axis = static_cast<int64_t>(d);
    FUSEC_TRY(const ValueId extent, sizeOfAxis(n, d));
    FUSEC_TRY(const ValueId begin, entryOfAxis(n, pads.begins, pads.axes, axis));
    FUSEC_TRY(const ValueId end, entryOfAxis(n, pads.ends, pads.axes, axis));
    FUSEC_TRY(ValueId at, c.binary(OpKind::Sub, c.iota(out[d]), begin));
    if (isConstant) {
      FUSEC_TRY(const ValueId low, c.binary(OpKind::GreaterOrEqual, at, c.integer(0)));
      FUSEC_TRY(const ValueId high, c.binary(OpKind::Less, at, extent));
      FUSEC_TRY(const ValueId here, c.binary(OpKind::And, low, high));
      FUSEC_TRY(at, c.where(here, at, extent));
    } else {
      FUSEC_TRY(at, repeated(n, mode, at, extent, {begin, end, kNoValue, kNoValue}));
    }
    FUSEC_TRY(result, c.gather(result, at, axis));
  }
  n.result(0, result);
  return success();
}

bool mayBeSlicedAtRunTime(const NodeImporter &n, const Shape &out) {
  if (out.size() != n.shape(0).size())
    return false;
  bool atRunTime = false;
  for (size_t i : {1, 2, 3, 4}) {
    if (!n.has(i))
      continue;
    atRunTime = atRunTime || !n.known(i);
    if (n.shape(i) != n.shape(1) || (n.type(i) != DType::I64 && n.type(i) != DType::I32))
      return false;
  }
  for (size_t d = 0; d < out.size(); ++d)
    if (out[d].range(n.symbols()).min > n.shape(0)[d].range(n.symbols()).max)
      return false;
  return atRunTime;
}

namespace {

/// What a slice with run-time values takes of one axis: `length` elements, or -1 where the operands are wrong.
struct SliceOfAxis {
  ValueId start, step, length;
};

/// The operands of a Slice whose axes may be a run-time value too, as i64; kNoValue: it has none.
struct SliceOperands {
  explicit SliceOperands(NodeImporter &n) : named(n.ints(3)) {
    auto operand = [&](size_t i) {
      return n.has(i) ? Compose(n).cast(n.id(i), DType::I64) : kNoValue;
    };
    starts = operand(1);
    ends = operand(2);
    axes = operand(3);
    steps = operand(4);
  }
  std::optional<std::vector<int64_t>> named; // the axes, where these are constants
  ValueId starts, ends, axes, steps;

  bool mayName(const NodeImporter &n, int64_t d) const {
    if (axes == kNoValue)
      return d < n.shape(1)[0].constValue();
    auto isIt = [&](int64_t a) { return a == d || a == d - n.rank(0); };
    return !named || std::any_of(named->begin(), named->end(), isIt);
  }
};

/// `at`, a start or an end, counted from the front, between `low` and `high`.
Result<ValueId> clampedBound(NodeImporter &n, ValueId at, ValueId size, ValueId low, ValueId high) {
  Compose c(n);
  FUSEC_TRY(const ValueId wrapped, c.binary(OpKind::Add, at, size));
  FUSEC_TRY(const ValueId isNegative, c.binary(OpKind::Less, at, c.integer(0)));
  FUSEC_TRY(at, c.where(isNegative, wrapped, at));
  FUSEC_TRY(at, c.binary(OpKind::Max, at, low));
  return c.binary(OpKind::Min, at, high);
}

/// How many elements there are from `start` to `end`, in steps that are not 0.
Result<ValueId> lengthOfSlice(NodeImporter &n, ValueId start, ValueId end, ValueId step) {
  Compose c(n);
  const ValueId one = c.integer(1);
  FUSEC_TRY(const ValueId isBackward, c.binary(OpKind::Less, step, c.integer(0)));
  FUSEC_TRY(const ValueId up, c.binary(OpKind::Sub, end, start));
  FUSEC_TRY(ValueId span, c.where(isBackward, c.unary(OpKind::Neg, up), up));
  FUSEC_TRY(span, c.binary(OpKind::Max, span, c.integer(0)));
  // (max(span, 1) - 1) / width + 1, which does not overflow, but where there is none.
  FUSEC_TRY(ValueId length, c.binary(OpKind::Max, span, one));
  FUSEC_TRY(length, c.binary(OpKind::Sub, length, one));
  FUSEC_TRY(length, c.binary(OpKind::Div, length, c.unary(OpKind::Abs, step)));
  FUSEC_TRY(length, c.binary(OpKind::Add, length, one));
  return c.binary(OpKind::Min, length, span);
}

Result<SliceOfAxis> sliceOfAxis(NodeImporter &n, const SliceOperands &operands, size_t d) {
  Compose c(n);
  const auto axis = static_cast<int64_t>(d);
  const ValueId zero = c.integer(0), one = c.integer(1);
  ValueId given = one, times = one; // the step, and how often the axis is named
  if (operands.steps != kNoValue) {
    FUSEC_TRY(given, entryOfAxis(n, operands.steps, operands.axes, axis));
  }
  if (operands.axes != kNoValue && !operands.named) {
    FUSEC_TRY(const ValueId are, areOfAxis(n, operands.axes, axis));
    FUSEC_TRY(times, c.reduce(OpKind::ReduceSum, c.cast(are, DType::I64), {0}));
  }
  FUSEC_TRY(const ValueId isZero, c.binary(OpKind::Equal, given, zero));
  FUSEC_TRY(const ValueId step, c.where(isZero, one, given));
  FUSEC_TRY(const ValueId isBackward, c.binary(OpKind::Less, step, zero));
  FUSEC_TRY(const ValueId size, sizeOfAxis(n, d));
  FUSEC_TRY(const ValueId last, c.binary(OpKind::Sub, size, one));
  FUSEC_TRY(const ValueId high, c.where(isBackward, last, size));
  FUSEC_TRY(const ValueId low, c.where(isBackward, c.integer(-1), zero));
  FUSEC_TRY(ValueId start, entryOfAxis(n, operands.starts, operands.axes, axis));
  FUSEC_TRY(start, clampedBound(n, start, size, zero, high));
  FUSEC_TRY(ValueId end, entryOfAxis(n, operands.ends, operands.axes, axis));
  FUSEC_TRY(end, clampedBound(n, end, size, low, high));
  FUSEC_TRY(ValueId length, lengthOfSlice(n, start, end, step));
  FUSEC_TRY(const ValueId isNot, c.binary(OpKind::Equal, times, zero));
  FUSEC_TRY(length, c.where(isNot, size, length));
  FUSEC_TRY(const ValueId isOnce, c.binary(OpKind::Equal, times, one));
  FUSEC_TRY(const ValueId stands, c.binary(OpKind::And, isZero, isOnce));
  FUSEC_TRY(const ValueId isTwice, c.binary(OpKind::Greater, times, one));
  FUSEC_TRY(const ValueId isWrong, c.binary(OpKind::Or, stands, isTwice));
  FUSEC_TRY(length, c.where(isWrong, c.integer(-1), length));
  return SliceOfAxis{start, step, length};
}

} // namespace

/// at[i] = start + i * step, brought back inside
Status sliceAtRunTime(NodeImporter &n, const Shape &out) {
  Compose c(n);
  const SliceOperands operands(n);
  if (operands.axes != kNoValue && !operands.named)
    FUSEC_CHECK(requireBetween(n, operands.axes, c.integer(-n.rank(0)), c.integer(n.rank(0) - 1),
                               DataTest::Indices));
  ValueId result = n.id(0);
  const Shape shape = n.shape(0);
  std::vector<ValueId> lengths;
  Shape declared;
  for (size_t d = 0; d < out.size(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    if (shape[d].isConst(0) || !operands.mayName(n, axis)) {
      if (out[d] != shape[d])
        return n.mismatch("the declared output is smaller along axis " + std::to_string(d) +
                          ", which is not sliced");
      continue;
    }
    if (min(out[d], shape[d]) != out[d])
      FUSEC_CHECK(n.sizes().noLess(shape[d], out[d],
                                   "axis " + std::to_string(d) +
                                       " must be as long as the declared output"));
    FUSEC_TRY(const SliceOfAxis of, sliceOfAxis(n, operands, d));
    lengths.push_back(n.reshape(of.length, {DimExpr(1)}));
    declared.push_back(out[d]);
    FUSEC_TRY(ValueId size, sizeOfAxis(n, d));
    FUSEC_TRY(ValueId last, c.binary(OpKind::Sub, size, c.integer(1)));
    FUSEC_TRY(ValueId at, c.binary(OpKind::Mul, c.iota(out[d]), of.step));
    FUSEC_TRY(at, c.binary(OpKind::Add, at, of.start));
    at = c.like(OpKind::Clip, {at, c.integer(0), last});
    FUSEC_TRY(result, c.gather(result, at, axis));
  }
  n.result(0, result);
  return lengths.empty() ? success() : requireDeclared(n, c.concat(lengths, 0), declared);
}

namespace {

/// Entry `i` of starts or ends (input `input`), counted from the front, between `low` and `high`. The least and the
/// largest number of the operand's type stand for the ends of the axis, whatever its size.
Result<ValueId> boundOfSlice(NodeImporter &n, size_t input, int64_t i, ValueId size, ValueId low,
                             ValueId high) {
  Compose c(n);
  const bool isNarrow = n.type(input) == DType::I32;
  if (const auto known = n.peek(input); known && (*known)[static_cast<size_t>(i)].isConst()) {
    const int64_t v = (*known)[static_cast<size_t>(i)].constValue();
    if (v >= (isNarrow ? INT32_MAX : INT64_MAX))
      return high;
    if (v <= (isNarrow ? INT32_MIN : INT64_MIN))
      return low;
  }
  const ValueId list = c.cast(n.id(input), DType::I64);
  return clampedBound(n, n.reshape(c.slice(list, 0, i, 1), {}), size, low, high);
}

/// `step`, or one in its place: all that are longer than any axis take its first element alone.
DimExpr withinSizes(const DimExpr &step) {
  constexpr int64_t kFar = int64_t(1) << 42;
  return step.isConst() ? DimExpr(std::clamp(step.constValue(), -kFar, kFar)) : step;
}

} // namespace

Status sliceByData(NodeImporter &n, const std::vector<int64_t> &axes, const Shape &steps) {
  Compose c(n);
  ValueId result = n.id(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i];
    const auto entry = static_cast<int64_t>(i);
    const DimExpr by = withinSizes(steps[i]);
    const DimExpr::Range signs = by.range(n.symbols());
    if (by.isConst(0))
      return n.fail(Diag::BadOperand, "a step is 0");
    if (signs.min <= 0 && signs.max >= 0)
      return n.needsFixed("the step " + by.str(n.symbols()) + " must have one sign and never be 0",
                          {by});
    const bool backward = signs.max < 0;
    const DimExpr width = backward ? by * DimExpr(-1) : by;
    ValueId step = kNoValue;
    if (by.isConst())
      step = c.integer(by.constValue());
    else
      step = n.reshape(c.slice(c.cast(n.id(4), DType::I64), 0, entry, 1), {});
    FUSEC_TRY(const ValueId size, c.extent(n.id(0), axis));
    // Backwards from the last element at most, to the first one, behind which is -1.
    ValueId low = c.integer(0), high = size, first = low;
    if (backward) {
      FUSEC_TRY(high, c.binary(OpKind::Sub, size, c.integer(1)));
      low = c.integer(-1);
    }
    FUSEC_TRY(const ValueId start, boundOfSlice(n, 1, entry, size, first, high));
    FUSEC_TRY(const ValueId end, boundOfSlice(n, 2, entry, size, low, high));
    FUSEC_TRY(ValueId length,
              backward ? c.binary(OpKind::Sub, start, end) : c.binary(OpKind::Sub, end, start));
    FUSEC_TRY(length, c.binary(OpKind::Max, length, c.integer(0)));
    if (!width.isConst(1)) {
      const ValueId forward = backward ? c.unary(OpKind::Neg, step) : step;
      FUSEC_TRY(const ValueId rest, c.binary(OpKind::Sub, forward, c.integer(1)));
      FUSEC_TRY(length, c.binary(OpKind::Add, length, rest));
      FUSEC_TRY(length, c.binary(OpKind::Div, length, forward));
    }
    const DimExpr most = ceilDiv(n.shape(0)[static_cast<size_t>(axis)], width);
    FUSEC_TRY(const DimExpr count, n.dataSize(length, most, 0, static_cast<size_t>(axis)));
    FUSEC_TRY(ValueId at, c.binary(OpKind::Mul, c.iota(count), step));
    FUSEC_TRY(at, c.binary(OpKind::Add, at, start));
    FUSEC_TRY(result, c.gather(result, at, axis));
  }
  n.result(0, result);
  return success();
}

} // namespace fusec
