#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"
#include "Onnx/TestedInRun.h"

#include <numeric>

// Reductions, arg-reductions, cumulative sums and the softmax family. Axes became an input in opset 13
// (ReduceSum) and 18 (the others).

namespace fusec {
namespace {

using Axes = std::vector<int64_t>;

/// Sets of axes that a run-time input may name, from the output shape that the model declares. An axis of size 1 may
/// be reduced or not, the result is the same: with keepdims there is one set.
std::vector<Axes> axesFromDeclared(NodeImporter &n, bool keep) {
  constexpr size_t kMaxSets = 8;
  auto declared = n.declared(0);
  if (!declared)
    return {};
  const Shape &in = n.shape(0), &out = declared->shape;
  if (keep) {
    if (out.size() != in.size())
      return {};
    Axes axes;
    for (size_t i = 0; i < in.size(); ++i) {
      if (out[i] != in[i] && !out[i].isConst(1))
        return {};
      if (out[i] != in[i])
        axes.push_back(static_cast<int64_t>(i));
    }
    return {axes};
  }
  if (in.size() > 16 || out.size() > in.size())
    return {};
  std::vector<Axes> sets;
  for (uint32_t mask = 0; mask < (1u << in.size()); ++mask) {
    Axes axes;
    for (size_t i = 0; i < in.size(); ++i)
      if (mask >> i & 1)
        axes.push_back(static_cast<int64_t>(i));
    if (in.size() - axes.size() == out.size() && reducedShape(in, axes, false) == out)
      sets.push_back(std::move(axes));
  }
  return sets.size() <= kMaxSets ? sets : std::vector<Axes>{};
}

/// Reduces over each of several sets of axes of one size, and takes the result of the set that input 1 names:
///   where(all(axes in sets[0]), reduce(x, sets[0]), where(..., reduce(x, sets.back())))
Status reduceByChoice(NodeImporter &n, const std::vector<Axes> &sets) {
  const char *text = "the axes must be as many as the declared output lacks";
  if (n.type(1) != DType::I64)
    return n.mismatch(text);
  FUSEC_CHECK(
      n.sizes().sameShape(n.shape(1), {DimExpr(static_cast<int64_t>(sets[0].size()))}, text));
  Compose c(n);
  auto number = [&](int64_t v) { return Compose(n).integer(v); };
  const OpKind op = *parseOpKind(n.op());
  ValueId axes = n.id(1);
  FUSEC_TRY(ValueId negative, c.binary(OpKind::Less, axes, number(0)));
  FUSEC_TRY(ValueId wrapped, c.binary(OpKind::Add, axes, number(n.rank(0))));
  FUSEC_TRY(axes, c.where(negative, wrapped, axes));
  FUSEC_TRY(ValueId result, c.reduce(op, n.id(0), sets.back()));
  for (size_t i = sets.size() - 1; i-- > 0;) {
    ValueId within = kNoValue;
    for (int64_t a : sets[i]) {
      FUSEC_TRY(ValueId isIt, c.binary(OpKind::Equal, axes, number(a)));
      if (within != kNoValue) {
        FUSEC_TRY(isIt, c.binary(OpKind::Or, within, isIt));
      }
      within = isIt;
    }
    FUSEC_TRY(ValueId all, c.reduce(OpKind::ReduceMin, within, {0}));
    FUSEC_TRY(ValueId reduced, c.reduce(op, n.id(0), sets[i]));
    FUSEC_TRY(result, c.where(all, reduced, result));
  }
  n.result(0, result);
  return success();
}

/// Whether reducing along one axis after the other is reducing along all of them; integers must not be rounded between.
bool isInSteps(OpKind op, DType type) {
  switch (op) {
  case OpKind::ReduceSum:
  case OpKind::ReduceProd:
  case OpKind::ReduceMax:
  case OpKind::ReduceMin:
  case OpKind::ReduceL1: return true;
  case OpKind::ReduceMean:
  case OpKind::ReduceL2:
  case OpKind::ReduceLogSumExp: return isFloat(type);
  default: return false;
  }
}

/// Reduces along the axes that a run names, and keeps these with a size of 1, one axis after the other: behind x along
/// an axis stands what it reduces to, and the data says which of them are taken, and how many these are:
///   gather(concat(x, reduce(x, d)), where(d in axes, size of d, 0) + (0, 1, ...))
Status reduceByData(NodeImporter &n) {
  Compose c(n);
  FUSEC_CHECK(requireAxes(n, n.id(1)));
  const ValueId zero = c.integer(0);
  ValueId made = n.id(0);
  for (int64_t axis = 0; axis < n.rank(0); ++axis) {
    const auto place = static_cast<size_t>(axis);
    FUSEC_TRY(const ValueId fromFront, c.binary(OpKind::Equal, n.id(1), c.integer(axis)));
    FUSEC_TRY(const ValueId fromEnd, c.binary(OpKind::Equal, n.id(1), c.integer(axis - n.rank(0))));
    FUSEC_TRY(const ValueId isIt, c.binary(OpKind::Or, fromFront, fromEnd));
    FUSEC_TRY(ValueId named, c.reduce(OpKind::ReduceMax, c.cast(isIt, DType::I64), {0}));
    named = c.cast(named, DType::Bool);
    FUSEC_TRY(const ValueId all, c.extent(n.id(0), axis));
    FUSEC_TRY(const ValueId count, c.where(named, c.integer(1), all));
    FUSEC_TRY(const DimExpr size, n.dataSize(count, max(n.shape(0)[place], DimExpr(1)), 0, place));
    FUSEC_TRY(const ValueId first, c.where(named, all, zero));
    FUSEC_TRY(const ValueId places, c.binary(OpKind::Add, c.iota(size), first));
    FUSEC_TRY(const ValueId reduced, c.reduce(*parseOpKind(n.op()), made, {axis}, true));
    FUSEC_TRY(made, c.gather(c.concat({made, reduced}, axis), places, axis));
  }
  n.result(0, made);
  return success();
}

Status reduce(NodeImporter &n) {
  if (n.type(0) == DType::Bool && n.opset() < 20)
    return n.mismatch("the operand must be a number");
  bool keep = n.attrInt("keepdims", 1) != 0;
  bool noop = n.attrInt("noop_with_empty_axes", 0) != 0;
  std::vector<int64_t> list = n.attrInts("axes");
  if (n.has(1)) {
    auto fromInput = n.ints(1);
    if (!fromInput && n.shape(1).size() == 1 && !n.shape(1)[0].isConst(0)) {
      std::vector<Axes> sets = axesFromDeclared(n, keep);
      if (!sets.empty())
        FUSEC_CHECK(requireReduced(n, sets, noop));
      if (sets.size() > 1)
        return reduceByChoice(n, sets);
      if (!sets.empty())
        fromInput = sets[0];
    } else if (!fromInput && n.shape(1).size() == 1)
      fromInput = std::vector<int64_t>{};
    const bool namesSome = n.shape(1).size() == 1 && n.shape(1)[0].range(n.symbols()).min >= 1;
    if (!fromInput && keep && namesSome && n.type(1) == DType::I64 &&
        isInSteps(*parseOpKind(n.op()), n.type(0)))
      return reduceByData(n);
    if (!fromInput)
      return n.needsConstant("the axes are a run-time value; they must be constant", {1});
    list = *fromInput;
    if (list.empty() && !n.ints(1) &&
        !n.shape(1)[0].isConst(0)) // nothing to reduce but size-1 axes
      noop = true;
  }
  FUSEC_TRY(std::vector<int64_t> axes, n.axes(list, n.rank(0)));
  if (axes.empty() && !noop) {
    axes.resize(static_cast<size_t>(n.rank(0)));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return n.finish(*parseOpKind(n.op()), {n.id(0)}, {{"axes", axes}, {"keepdims", int64_t(keep)}});
}

Status argReduce(NodeImporter &n) {
  bool keep = n.attrInt("keepdims", 1) != 0;
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", 0), n.rank(0)));
  return n.finish(*parseOpKind(n.op()), {n.id(0)}, {{"axis", axis}, {"keepdims", int64_t(keep)}});
}

Status cumulative(NodeImporter &n) {
  auto axis = n.ints(1);
  if (axis && axis->size() != 1)
    return n.mismatch("the axis must be one number");
  Compose c(n);
  Attributes attributes{{"exclusive", n.attrInt("exclusive", 0)},
                        {"reverse", n.attrInt("reverse", 0)}};
  auto number = [&](int64_t v) { return Compose(n).integer(v); };
  auto along = [&](int64_t a) {
    return c.like(*parseOpKind(n.op()), {n.id(0), number(a)}, attributes);
  };
  if (axis) {
    FUSEC_TRY(int64_t a, n.axis((*axis)[0], n.rank(0)));
    n.result(0, along(a));
    return success();
  }
  constexpr int64_t kMaxChoices = 8;
  if (n.rank(0) < 1 || n.rank(0) > kMaxChoices || !isInteger(n.type(1)) ||
      !numElements(n.shape(1)).isConst(1))
    return n.unsupported("an axis that is a run-time value, for data of this rank");
  // A run-time axis chooses between the results along all of them.
  ValueId given = c.cast(n.reshape(n.id(1), {}), DType::I64);
  FUSEC_CHECK(
      requireBetween(n, given, number(-n.rank(0)), number(n.rank(0) - 1), DataTest::Indices));
  ValueId result = along(n.rank(0) - 1);
  for (int64_t a = n.rank(0) - 1; a-- > 0;) {
    FUSEC_TRY(ValueId first, c.binary(OpKind::Equal, given, number(a)));
    FUSEC_TRY(ValueId second, c.binary(OpKind::Equal, given, number(a - n.rank(0))));
    FUSEC_TRY(ValueId isIt, c.binary(OpKind::Or, first, second));
    FUSEC_TRY(result, c.where(isIt, along(a), result));
  }
  n.result(0, result);
  return success();
}

/// Before opset 13 the operand is seen as a matrix [prod(0..axis), prod(axis..rank)].
Status softmax(NodeImporter &n) {
  bool coerces = n.opset() < 13;
  if (n.rank(0) == 0)
    return n.mismatch("the operand must have at least one axis");
  FUSEC_TRY(int64_t axis,
            n.axis(n.attrInt("axis", coerces ? 1 : -1), std::max<int64_t>(n.rank(0), 1)));
  OpKind op = *parseOpKind(n.op());
  if (!coerces || axis == n.rank(0) - 1)
    return n.finish(op, {n.id(0)}, {{"axis", axis}});
  n.result(0, Compose(n).flatSoftmax(op, n.id(0), axis));
  return success();
}

constexpr const char *kAxes =
    "axes known at compile time, or that fit the declared output, or, with keepdims, one at least";
constexpr const char *kKnownAxes = "axes known at compile time or that fit the declared output";

constexpr OpRow kRows[] = {
    {"ArgMax", 1, kNewestOpset, 1, 1, 1, argReduce},
    {"ArgMin", 1, kNewestOpset, 1, 1, 1, argReduce},
    {"CumProd", 26, kNewestOpset, 2, 2, 1, cumulative},
    {"CumSum", 11, kNewestOpset, 2, 2, 1, cumulative},
    {"Hardmax", 1, kNewestOpset, 1, 1, 1, softmax},
    {"LogSoftmax", 1, kNewestOpset, 1, 1, 1, softmax},
    {"ReduceL1", 1, kNewestOpset, 1, 2, 1, reduce, kAxes},
    {"ReduceL2", 1, kNewestOpset, 1, 2, 1, reduce, kAxes},
    {"ReduceLogSum", 1, kNewestOpset, 1, 2, 1, reduce, kKnownAxes},
    {"ReduceLogSumExp", 1, kNewestOpset, 1, 2, 1, reduce, kAxes},
    {"ReduceMax", 1, kNewestOpset, 1, 2, 1, reduce, kAxes},
    {"ReduceMean", 1, kNewestOpset, 1, 2, 1, reduce, kAxes},
    {"ReduceMin", 1, kNewestOpset, 1, 2, 1, reduce, kAxes},
    {"ReduceProd", 1, kNewestOpset, 1, 2, 1, reduce, kAxes},
    {"ReduceSum", 1, kNewestOpset, 1, 2, 1, reduce, kAxes},
    {"ReduceSumSquare", 1, kNewestOpset, 1, 2, 1, reduce, kKnownAxes},
    {"Softmax", 1, kNewestOpset, 1, 1, 1, softmax},
};

} // namespace

std::span<const OpRow> reductionsOps() { return kRows; }

} // namespace fusec
