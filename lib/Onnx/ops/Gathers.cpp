#include "Onnx/Compose.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/OpTable.h"
#include "Onnx/SizedByData.h"
#include "Onnx/TestedInRun.h"
#include "Support/Diag.h"

#include <algorithm>

// Gather, scatter, ordering. Indices that follow from sizes are checked here, those of the data by a test in the run.

namespace fusec {
namespace {

/// Pairs of an index and a larger one, between which all are: constants in one pair, other known ones each in its own.
/// None where a run may leave the node out, which may then have any sizes.
std::vector<std::pair<DimExpr, DimExpr>> endsOfIndices(NodeImporter &n) {
  constexpr size_t kMostPairs = 16;
  if (n.graphBuilder().isConditional())
    return {};
  std::vector<std::pair<DimExpr, DimExpr>> ends;
  std::optional<std::pair<int64_t, int64_t>> constants;
  for (const DimExpr &e : n.peek(1).value_or(Shape())) {
    if (!e.isConst()) {
      ends.emplace_back(e, e);
      continue;
    }
    const int64_t v = e.constValue();
    constants = constants ? std::pair(std::min(constants->first, v), std::max(constants->second, v))
                          : std::pair(v, v);
  }
  if (constants)
    ends.emplace_back(constants->first, constants->second);
  const GraphBuilder &builder = n.graphBuilder();
  if (ends.empty())
    if (const auto ramp = rampOf(n.graph(), builder.ramps, n.id(1)))
      ends.push_back(endsOf(*ramp, n.shape(1)));
  return ends.size() <= kMostPairs ? ends : decltype(ends)();
}

/// In every run `axis` of the data, of this size, is as long as indices between these ends reach; those below 0 count
/// from its end.
Status requireReach(const SizeCheck &sizes, const DimExpr &size, int64_t axis,
                    const std::vector<std::pair<DimExpr, DimExpr>> &ends) {
  const std::string text =
      "axis " + std::to_string(axis) + " of the data must be as long as the indices reach";
  for (const auto &[least, largest] : ends)
    for (const DimExpr &reached : {largest + DimExpr(1), least * DimExpr(-1)})
      FUSEC_CHECK(sizes.noLess(size, reached, text));
  return success();
}

/// Constant indices lie within `axis`, and so do those that follow from sizes, in every run: a table of positions
/// bounds the length of a text. Indices of the data are tested in the run, but for those that operators keep within.
Status requireOwnIndices(NodeImporter &n, int64_t axis) {
  const DimExpr size = n.shape(0)[static_cast<size_t>(axis)];
  if (const auto indices = n.peekInts(1); indices && size.isConst() && !size.isConst(0))
    for (int64_t v : *indices)
      if (v < -size.constValue() || v >= size.constValue())
        return n.fail(Diag::BadOperand, "index " + std::to_string(v) +
                                            " is out of range for an axis of size " +
                                            std::to_string(size.constValue()));
  const auto ends = endsOfIndices(n);
  FUSEC_CHECK(requireReach(n.sizes(), size, axis, ends));
  const bool isKnown =
      !ends.empty() ||
      areWithin(rangeOf(n.graph(), n.graphBuilder().integerRanges, n.id(1)), size, n.symbols());
  return isKnown ? success() : requireIndices(n, n.id(1), static_cast<size_t>(axis));
}

/// Gather, GatherElements and ScatterElements.
Status indexed(NodeImporter &n, OpKind op) {
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", 0), n.rank(0)));
  FUSEC_CHECK(requireOwnIndices(n, axis));
  return n.finish(op, n.ids(), {{"axis", axis}});
}

/// An index of one number is one along the first axis behind the batch, as Gather has.
Status requireRows(NodeImporter &n, int64_t axis) {
  Compose make(n);
  const Shape indices = n.shape(1);
  if (indices.empty() || !indices.back().isConst() || axis < 0 || axis >= n.rank(0))
    return success();
  if (indices.back().isConst(1))
    return requireOwnIndices(n, axis);
  const GraphBuilder &builder = n.graphBuilder();
  const IntegerRange range = rangeOf(n.graph(), builder.integerRanges, n.id(1));
  const int64_t last = n.rank(1) - 1;
  const bool areRead = !builder.isConditional() && numElements(indices).range(n.symbols()).min >= 1;
  const bool areApart = range.axis == static_cast<size_t>(last) &&
                        static_cast<int64_t>(range.parts.size()) == indices.back().constValue();
  for (int64_t i = 0; i < indices.back().constValue() && axis + i < n.rank(0); ++i) {
    const auto along = static_cast<size_t>(axis + i);
    const IntegerRange &own = areApart ? range.parts[static_cast<size_t>(i)] : range;
    if (areApart && own.areReached && areRead)
      FUSEC_CHECK(
          requireReach(n.sizes(), n.shape(0)[along], axis + i, {{*own.least, *own.largest}}));
    else if (!areWithin(own, n.shape(0)[along], n.symbols()))
      FUSEC_CHECK(requireIndices(n, make.slice(n.id(1), last, i, 1), along));
  }
  return success();
}

Status gatherND(NodeImporter &n) {
  const int64_t batch = n.attrInt("batch_dims", 0);
  if (n.rank(1) > 0 && !n.shape(1).back().isConst())
    if (const auto out = n.declaredSizes(0)) {
      const int64_t named = n.rank(0) + n.rank(1) - 1 - batch - static_cast<int64_t>(out->size());
      FUSEC_CHECK(n.sameDim(n.shape(1).back(), DimExpr(named),
                            "the last axis of the indices and how many axes the declared rank has "
                            "it name"));
    }
  FUSEC_CHECK(requireRows(n, batch));
  return n.finish(OpKind::GatherND, n.ids());
}
Status gather(NodeImporter &n) { return indexed(n, OpKind::Gather); }
Status gatherElements(NodeImporter &n) { return indexed(n, OpKind::GatherElements); }
Status scatterElements(NodeImporter &n) { return indexed(n, OpKind::ScatterElements); }

Status scatterND(NodeImporter &n) {
  FUSEC_CHECK(requireRows(n, 0));
  return sameOperator(n);
}

Status topK(NodeImporter &n) {
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", -1), n.rank(0)));
  int64_t k;
  if (n.opset() < 10) {
    k = n.attrInt("k");
  } else {
    auto given = n.ints(1);
    if (const auto sizes = n.known(1); !given && sizes && sizes->size() == 1)
      return n.finish(OpKind::TopK, {n.id(0), n.id(1)}, {{"axis", axis}});
    auto declared = n.declared(0);
    if (given && given->size() == 1)
      k = (*given)[0];
    else if (!given && declared && declared->shape.size() == n.shape(0).size() &&
             declared->shape[static_cast<size_t>(axis)].isConst()) {
      const DimExpr &size = declared->shape[static_cast<size_t>(axis)];
      FUSEC_CHECK(requireDeclared(n, n.id(1), {size}));
      k = size.constValue();
    } else {
      return topKOfData(n, axis);
    }
  }
  return n.finish(OpKind::TopK, {n.id(0), n.intsValue({k})}, {{"axis", axis}});
}

Status nonZero(NodeImporter &n) {
  ConstantRef c = n.constant(0);
  if (!c || c->numElements() > kMaxFoldedElements)
    return nonZeroOfData(n);
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
  if (n.type(1) != DType::Bool || n.rank(1) != 1)
    return n.mismatch("the condition must be a vector of bool");
  auto condition = n.ints(1);
  DimExpr size = flat ? numElements(n.shape(0)) : n.shape(0)[static_cast<size_t>(axis)];
  FUSEC_CHECK(n.sizes().noLess(size, n.shape(1)[0], "the axis must be as long as the condition"));
  if (!condition) {
    FUSEC_TRY(const ValueId places, chosenOnes(n, n.id(1), flat ? 0 : static_cast<size_t>(axis)));
    ValueId x = flat ? n.reshape(n.id(0), {size}) : n.id(0);
    return n.finish(OpKind::Gather, {x, places}, {{"axis", flat ? 0 : axis}});
  }
  // A selection by constants is a gather.
  std::vector<int64_t> kept;
  for (size_t i = 0; i < condition->size(); ++i)
    if ((*condition)[i])
      kept.push_back(static_cast<int64_t>(i));
  ValueId x = flat ? n.reshape(n.id(0), {size}) : n.id(0);
  return n.finish(OpKind::Gather, {x, n.intsValue(kept)}, {{"axis", flat ? 0 : axis}});
}

Status tensorScatter(NodeImporter &n) {
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", -2), n.rank(0)));
  if (n.rank(1) == n.rank(0)) {
    const auto along = static_cast<size_t>(axis);
    FUSEC_CHECK(n.sizes().noLess(n.shape(0)[along], n.shape(1)[along],
                                 "the cache must have room for the rows to write"));
    Compose make(n);
    if (n.has(2) && n.attrString("mode", "linear") != "linear") {
      FUSEC_CHECK(requireBetween(n, n.id(2), make.integer(0), kNoValue, DataTest::Turns));
    } else if (n.has(2)) {
      FUSEC_TRY(const ValueId size, make.extent(n.id(0), axis));
      FUSEC_TRY(const ValueId rows, make.extent(n.id(1), axis));
      FUSEC_TRY(const ValueId last, make.binary(OpKind::Sub, size, rows));
      FUSEC_CHECK(requireBetween(n, n.id(2), make.integer(0), last, DataTest::Writes));
    }
  }
  return n.finish(OpKind::TensorScatter, n.ids(), {{"axis", axis}});
}

constexpr OpRow kRows[] = {
    {"Compress", 9, kNewestOpset, 2, 2, 1, compress},
    {"Gather", 1, kNewestOpset, 2, 2, 1, gather},
    {"GatherElements", 11, kNewestOpset, 2, 2, 1, gatherElements},
    {"GatherND", 11, kNewestOpset, 2, 2, 1, gatherND},
    {"NonZero", 9, kNewestOpset, 1, 1, 1, nonZero},
    {"Scatter", 9, 10, 3, 3, 1, scatterElements},
    {"ScatterElements", 11, kNewestOpset, 3, 3, 1, scatterElements},
    {"ScatterND", 11, kNewestOpset, 3, 3, 1, scatterND},
    {"TensorScatter", 24, kNewestOpset, 2, 3, 1, tensorScatter},
    {"TopK", 1, kNewestOpset, 1, 2, 2, topK},
    {"Unique", 11, kNewestOpset, 1, 1, 4, uniqueOfData},
};

} // namespace

std::span<const OpRow> gathersOps() { return kRows; }

} // namespace fusec
