#include "Onnx/DimTools.h"
#include "Onnx/OpTable.h"

#include <numeric>

// Reductions, arg-reductions, cumulative sums and the softmax family. Axes became an input in opset 13
// (ReduceSum) and 18 (the others).

namespace fusec {
namespace {

Shape reducedShape(const Shape &in, const std::vector<int64_t> &axes, bool keep) {
  Shape out;
  for (size_t i = 0; i < in.size(); ++i) {
    bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!reduced)
      out.push_back(in[i]);
    else if (keep)
      out.push_back(1);
  }
  return out;
}

/// Axes that are a run-time input, from the output shape that the model declares. An axis of size 1 may
/// be reduced or not, the result is the same. Without keepdims the kept axes must be unambiguous.
std::optional<std::vector<int64_t>> axesFromDeclared(NodeImporter &n, bool keep) {
  auto declared = n.declared(0);
  if (!declared)
    return std::nullopt;
  const Shape &in = n.shape(0), &out = declared->shape;
  if (keep) {
    if (out.size() != in.size())
      return std::nullopt;
    std::vector<int64_t> axes;
    for (size_t i = 0; i < in.size(); ++i) {
      if (out[i] != in[i] && !out[i].isConst(1))
        return std::nullopt;
      if (out[i] != in[i])
        axes.push_back(static_cast<int64_t>(i));
    }
    return axes;
  }
  if (in.size() > 16 || out.size() > in.size())
    return std::nullopt;
  std::optional<std::vector<int64_t>> found;
  for (uint32_t mask = 0; mask < (1u << in.size()); ++mask) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < in.size(); ++i)
      if (mask >> i & 1)
        axes.push_back(static_cast<int64_t>(i));
    if (in.size() - axes.size() != out.size() || reducedShape(in, axes, false) != out)
      continue;
    if (found)
      return std::nullopt;
    found = axes;
  }
  return found;
}

Status reduce(NodeImporter &n) {
  std::string op = n.op();
  bool boolAllowed = (op == "ReduceMax" || op == "ReduceMin") && n.opset() >= 20;
  if (n.type(0) == DType::Bool && !boolAllowed)
    return n.mismatch("the operand must be a number");
  bool keep = n.attrInt("keepdims", 1) != 0;
  bool noop = n.attrInt("noop_with_empty_axes", 0) != 0;
  std::vector<int64_t> list = n.attrInts("axes");
  if (n.has(1)) {
    auto fromInput = n.ints(1);
    if (!fromInput && n.shape(1).size() == 1 && !n.shape(1)[0].isConst(0))
      fromInput = axesFromDeclared(n, keep);
    else if (!fromInput && n.shape(1).size() == 1)
      fromInput = std::vector<int64_t>{};
    if (!fromInput)
      return n.fail(Diag::UnsupportedShape, "the axes are a run-time value; they must be constant");
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
  Shape out = reducedShape(n.shape(0), axes, keep);
  return n.finish(*parseOpKind(op), {n.id(0)}, {{"axes", axes}, {"keepdims", int64_t(keep)}},
                  {{n.type(0), std::move(out)}});
}

Status argReduce(NodeImporter &n) {
  bool keep = n.attrInt("keepdims", 1) != 0;
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", 0), n.rank(0)));
  if (n.shape(0)[static_cast<size_t>(axis)].isConst(0))
    return n.mismatch("the axis to search has size 0");
  Shape out = reducedShape(n.shape(0), {axis}, keep);
  return n.finish(*parseOpKind(n.op()), {n.id(0)},
                  {{"axis", axis},
                   {"keepdims", int64_t(keep)},
                   {"select_last_index", n.attrInt("select_last_index", 0)}},
                  {{DType::I64, std::move(out)}});
}

Status cumulative(NodeImporter &n) {
  auto axis = n.ints(1);
  if (axis && axis->size() != 1)
    return n.mismatch("the axis must be one number");
  ValueId axisValue = n.id(1);
  if (axis) {
    FUSEC_TRY(int64_t a, n.axis((*axis)[0], n.rank(0)));
    axisValue = n.constantValue(makeIntConstant({}, {a}));
  } else if (n.rank(0) == 1) {
    axisValue = n.constantValue(makeIntConstant({}, {0})); // the only axis there is
  } else {
    return n.unsupported("an axis that is a run-time value");
  }
  return n.finish(*parseOpKind(n.op()), {n.id(0), axisValue},
                  {{"exclusive", n.attrInt("exclusive", 0)}, {"reverse", n.attrInt("reverse", 0)}},
                  {{n.type(0), n.shape(0)}});
}

/// Before opset 13 the operand is seen as a matrix [prod(0..axis), prod(axis..rank)].
Status softmax(NodeImporter &n) {
  if (!isFloat(n.type(0)))
    return n.mismatch("the operand must have a float type");
  bool coerces = n.opset() < 13;
  if (n.rank(0) == 0)
    return n.mismatch("the operand must have at least one axis");
  FUSEC_TRY(int64_t axis,
            n.axis(n.attrInt("axis", coerces ? 1 : -1), std::max<int64_t>(n.rank(0), 1)));
  OpKind op = *parseOpKind(n.op());
  if (!coerces || axis == n.rank(0) - 1)
    return n.finish(op, {n.id(0)}, {{"axis", axis}}, {{n.type(0), n.shape(0)}});
  Shape matrix(n.shape(0).begin(), n.shape(0).begin() + axis);
  matrix.push_back(product(n.shape(0), static_cast<size_t>(axis), n.shape(0).size()));
  ValueId x = n.reshape(n.id(0), matrix);
  ValueId y = n.emitOne(op, {x}, {{"axis", axis}}, n.type(0), matrix);
  n.result(0, n.reshape(y, n.shape(0)));
  return success();
}

constexpr OpRow kRows[] = {
    {"ArgMax", 1, 28, 1, 1, 1, argReduce},
    {"ArgMin", 1, 28, 1, 1, 1, argReduce},
    {"CumProd", 26, 28, 2, 2, 1, cumulative, "constant axis"},
    {"CumSum", 11, 28, 2, 2, 1, cumulative, "constant axis"},
    {"Hardmax", 1, 28, 1, 1, 1, softmax},
    {"LogSoftmax", 1, 28, 1, 1, 1, softmax},
    {"ReduceL1", 1, 28, 1, 2, 1, reduce, "constant axes"},
    {"ReduceL2", 1, 28, 1, 2, 1, reduce, "constant axes"},
    {"ReduceLogSum", 1, 28, 1, 2, 1, reduce, "constant axes"},
    {"ReduceLogSumExp", 1, 28, 1, 2, 1, reduce, "constant axes"},
    {"ReduceMax", 1, 28, 1, 2, 1, reduce, "constant axes"},
    {"ReduceMean", 1, 28, 1, 2, 1, reduce, "constant axes"},
    {"ReduceMin", 1, 28, 1, 2, 1, reduce, "constant axes"},
    {"ReduceProd", 1, 28, 1, 2, 1, reduce, "constant axes"},
    {"ReduceSum", 1, 28, 1, 2, 1, reduce, "constant axes"},
    {"ReduceSumSquare", 1, 28, 1, 2, 1, reduce, "constant axes"},
    {"Softmax", 1, 28, 1, 1, 1, softmax},
};

} // namespace

std::span<const OpRow> reduceOps() { return kRows; }

} // namespace fusec
