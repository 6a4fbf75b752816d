#include "Onnx/DimTools.h"
#include "Onnx/OpTable.h"
#include "Support/Diag.h"

// Gather, scatter, ordering. Constant indices are checked here; run-time ones where they are read.

namespace fusec {
namespace {

bool isIndex(DType t) { return t == DType::I32 || t == DType::I64; }

Status checkIndices(NodeImporter &n, size_t i, const DimExpr &size) {
  if (!isIndex(n.type(i)))
    return n.mismatch("indices must be i32 or i64");
  if (size.isConst(0) && !numElements(n.shape(i)).isConst(0))
    return n.mismatch("the axis that the indices are for is empty");
  auto indices = n.peekInts(i);
  if (!indices || !size.isConst())
    return success();
  for (int64_t v : *indices)
    if (v < -size.constValue() || v >= size.constValue())
      return n.fail(Diag::BadOperand, "index " + std::to_string(v) +
                                          " is out of range for an axis of size " +
                                          std::to_string(size.constValue()));
  return success();
}

Status gather(NodeImporter &n) {
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", 0), n.rank(0)));
  FUSEC_CHECK(checkIndices(n, 1, n.shape(0)[static_cast<size_t>(axis)]));
  const Shape &data = n.shape(0);
  Shape out(data.begin(), data.begin() + axis);
  out.insert(out.end(), n.shape(1).begin(), n.shape(1).end());
  out.insert(out.end(), data.begin() + axis + 1, data.end());
  return n.finish(OpKind::Gather, n.ids(), {{"axis", axis}}, {{n.type(0), std::move(out)}});
}

/// The indices (input 1) have no more entries than the data (input 0) along all axes but `axis`.
Status checkWithin(NodeImporter &n, int64_t axis) {
  for (size_t i = 0; i < n.shape(0).size(); ++i) {
    const DimExpr &data = n.shape(0)[i], &indices = n.shape(1)[i];
    if (static_cast<int64_t>(i) == axis || data == indices)
      continue;
    if (indices.range(n.symbols()).max <= data.range(n.symbols()).min)
      continue;
    if (indices.range(n.symbols()).min > data.range(n.symbols()).max)
      return n.mismatch("the indices reach beyond the data");
    return n.needsFixed("along axis " + std::to_string(i) + " the data has " +
                            data.str(n.symbols()) + " entries and the indices " +
                            indices.str(n.symbols()) + ", which may be more",
                        {data, indices});
  }
  return success();
}

Status gatherElements(NodeImporter &n) {
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", 0), n.rank(0)));
  if (n.rank(1) != n.rank(0))
    return n.mismatch("data and indices must have one rank");
  FUSEC_CHECK(checkIndices(n, 1, n.shape(0)[static_cast<size_t>(axis)]));
  FUSEC_CHECK(checkWithin(n, axis));
  return n.finish(OpKind::GatherElements, n.ids(), {{"axis", axis}}, {{n.type(0), n.shape(1)}});
}

Status gatherND(NodeImporter &n) {
  int64_t batch = n.attrInt("batch_dims", 0), rank = n.rank(0), indexRank = n.rank(1);
  if (batch < 0 || batch >= std::min(rank, indexRank))
    return n.fail(Diag::BadAttribute, "batch_dims must be smaller than both ranks");
  if (!isIndex(n.type(1)))
    return n.mismatch("indices must be i64 with a fixed last axis");
  if (!n.shape(1).back().isConst())
    return n.needsFixed("the last axis of the indices must be fixed", {n.shape(1).back()});
  int64_t depth = n.shape(1).back().constValue();
  if (depth < 1 || depth > rank - batch)
    return n.mismatch("the last axis of the indices must be between 1 and the data's rank");
  for (size_t i = 0; i < static_cast<size_t>(batch); ++i) {
    FUSEC_TRY([[maybe_unused]] DimExpr d, n.sameDim(n.shape(0)[i], n.shape(1)[i], "batch sizes"));
  }
  Shape out(n.shape(1).begin(), n.shape(1).end() - 1);
  out.insert(out.end(), n.shape(0).begin() + batch + depth, n.shape(0).end());
  return n.finish(OpKind::GatherND, n.ids(), {{"batch_dims", batch}},
                  {{n.type(0), std::move(out)}});
}

Result<std::string> reduction(NodeImporter &n) {
  std::string r = n.attrString("reduction", "none");
  if (r != "none" && r != "add" && r != "mul" && r != "max" && r != "min")
    return n.fail(Diag::BadAttribute,
                  "reduction is '" + r + "'; none, add, mul, max or min is needed");
  return r;
}

Status scatterElements(NodeImporter &n) {
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", 0), n.rank(0)));
  FUSEC_TRY(std::string r, reduction(n));
  const char *text =
      "indices and updates must have one shape of the data's rank, updates the data's type";
  if (n.rank(1) != n.rank(0) || n.type(2) != n.type(0))
    return n.mismatch(text);
  if (n.shape(1) != n.shape(2))
    return n.mismatch(text, n.shape(1), n.shape(2));
  FUSEC_CHECK(checkIndices(n, 1, n.shape(0)[static_cast<size_t>(axis)]));
  FUSEC_CHECK(checkWithin(n, axis));
  return n.finish(OpKind::ScatterElements, n.ids(), {{"axis", axis}, {"reduction", r}},
                  {{n.type(0), n.shape(0)}});
}

Status scatterND(NodeImporter &n) {
  FUSEC_TRY(std::string r, reduction(n));
  if (!isIndex(n.type(1)) || n.rank(1) < 1 || n.type(2) != n.type(0))
    return n.mismatch("indices must be i64 with a fixed last axis and updates of the data's type");
  if (!n.shape(1).back().isConst())
    return n.needsFixed("the last axis of the indices must be fixed", {n.shape(1).back()});
  int64_t depth = n.shape(1).back().constValue();
  if (depth < 1 || depth > n.rank(0))
    return n.mismatch("the last axis of the indices must be between 1 and the data's rank");
  Shape expected(n.shape(1).begin(), n.shape(1).end() - 1);
  expected.insert(expected.end(), n.shape(0).begin() + depth, n.shape(0).end());
  if (n.shape(2) != expected)
    return n.mismatch("the updates must have the shape " +
                          typeText(n.type(2), expected, n.symbols()),
                      n.shape(2), expected);
  return n.finish(OpKind::ScatterND, n.ids(), {{"reduction", r}}, {{n.type(0), n.shape(0)}});
}

Status topK(NodeImporter &n) {
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", -1), n.rank(0)));
  int64_t k;
  if (n.opset() < 10) {
    k = n.attrInt("k");
  } else {
    auto given = n.ints(1);
    auto declared = n.declared(0);
    if (given && given->size() == 1)
      k = (*given)[0];
    else if (!given && declared && declared->shape.size() == n.shape(0).size() &&
             declared->shape[static_cast<size_t>(axis)].isConst())
      k = declared->shape[static_cast<size_t>(axis)].constValue();
    else
      return n.needsConstant("k is a run-time value; it must be constant", {1});
  }
  Shape out = n.shape(0);
  DimExpr &size = out[static_cast<size_t>(axis)];
  if (k < 0 || (size.isConst() && k > size.constValue()))
    return n.fail(Diag::BadOperand,
                  "k is " + std::to_string(k) + "; it must be between 0 and the axis' size");
  if (k > size.range(n.symbols()).min)
    return n.needsAtLeast(size, k, "the axis of which the k largest are taken");
  size = DimExpr(k);
  return n.finish(
      OpKind::TopK, {n.id(0), n.intsValue({k})},
      {{"axis", axis}, {"largest", n.attrInt("largest", 1)}, {"sorted", n.attrInt("sorted", 1)}},
      {{n.type(0), out}, {DType::I64, out}});
}

Status nonZero(NodeImporter &n) {
  ConstantRef c = n.constant(0);
  if (!c || c->numElements() > kMaxFoldedElements)
    return n.needsConstant("how many elements are not zero depends on the data; the operand "
                           "must be constant",
                           {0});
  auto rank = static_cast<int64_t>(c->dims.size());
  std::vector<int64_t> found;
  for (int64_t i = 0; i < c->numElements(); ++i)
    if (isFloat(c->type) ? c->floatAt(i) != 0 : c->intAt(i) != 0)
      found.push_back(i);
  auto count = static_cast<int64_t>(found.size());
  std::vector<int64_t> indices(static_cast<size_t>(rank * count));
  for (int64_t f = 0; f < count; ++f)
    for (int64_t a = rank - 1, rest = found[static_cast<size_t>(f)]; a >= 0; --a) {
      indices[static_cast<size_t>(a * count + f)] = rest % c->dims[static_cast<size_t>(a)];
      rest /= c->dims[static_cast<size_t>(a)];
    }
  n.result(0, n.constantValue(makeIntConstant({rank, count}, indices)));
  return success();
}

Status compress(NodeImporter &n) {
  bool flat = !n.hasAttribute("axis");
  int64_t axis = -1;
  if (!flat) {
    FUSEC_TRY(axis, n.axis(n.attrInt("axis"), n.rank(0)));
  }
  auto condition = n.ints(1);
  if (!condition || n.type(1) != DType::Bool)
    return n.needsConstant("how many elements remain depends on the data; the condition must "
                           "be constant",
                           {1});
  DimExpr size = flat ? numElements(n.shape(0)) : n.shape(0)[static_cast<size_t>(axis)];
  if (static_cast<int64_t>(condition->size()) > size.range(n.symbols()).min)
    return n.fail(Diag::BadOperand, "the condition is longer than the axis");
  // A selection by constants is a gather.
  std::vector<int64_t> kept;
  for (size_t i = 0; i < condition->size(); ++i)
    if ((*condition)[i])
      kept.push_back(static_cast<int64_t>(i));
  ValueId x = flat ? n.reshape(n.id(0), {size}) : n.id(0);
  auto a = static_cast<size_t>(flat ? 0 : axis);
  Shape out = n.shapeOf(x);
  out[a] = DimExpr(static_cast<int64_t>(kept.size()));
  return n.finish(OpKind::Gather, {x, n.intsValue(kept)}, {{"axis", static_cast<int64_t>(a)}},
                  {{n.type(0), std::move(out)}});
}

Status tensorScatter(NodeImporter &n) {
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", -2), n.rank(0)));
  std::string mode = n.attrString("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return n.fail(Diag::BadAttribute, "mode must be linear or circular");
  if (axis == 0 || n.rank(1) != n.rank(0) || n.type(1) != n.type(0))
    return n.mismatch(
        "cache and update must have one type and rank, and the axis must not be the batch");
  for (size_t i = 0; i < n.shape(0).size(); ++i)
    if (static_cast<int64_t>(i) != axis) {
      FUSEC_TRY([[maybe_unused]] DimExpr d,
                n.sameDim(n.shape(0)[i], n.shape(1)[i], "the sizes of cache and update"));
    }
  const char *text = "the write indices must be i64, one for each batch entry";
  if (n.has(2) && n.type(2) != DType::I64)
    return n.mismatch(text);
  if (n.has(2) && n.shape(2) != Shape{n.shape(0)[0]})
    return n.mismatch(text, n.shape(2), {n.shape(0)[0]});
  return n.finish(OpKind::TensorScatter, n.ids(), {{"axis", axis}, {"mode", mode}},
                  {{n.type(0), n.shape(0)}});
}

constexpr OpRow kRows[] = {
    {"Compress", 9, 28, 2, 2, 1, compress, "constant condition"},
    {"Gather", 1, 28, 2, 2, 1, gather},
    {"GatherElements", 11, 28, 2, 2, 1, gatherElements},
    {"GatherND", 11, 28, 2, 2, 1, gatherND},
    {"NonZero", 9, 28, 1, 1, 1, nonZero, "constant operand"},
    {"Scatter", 9, 10, 3, 3, 1, scatterElements},
    {"ScatterElements", 11, 28, 3, 3, 1, scatterElements},
    {"ScatterND", 11, 28, 3, 3, 1, scatterND},
    {"TensorScatter", 24, 28, 2, 3, 1, tensorScatter},
    {"TopK", 1, 28, 1, 2, 2, topK, "k known at compile time or declared"},
};

} // namespace

std::span<const OpRow> gatherOps() { return kRows; }

} // namespace fusec
