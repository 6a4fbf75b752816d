#include "Onnx/SizedByData.h"

#include "Onnx/Compose.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/TestedInRun.h"
#include "Support/Diag.h"

namespace fusec {

Result<ValueId> chosenOnes(NodeImporter &n, ValueId mask, size_t axis, size_t output,
                           const DimExpr *most) {
  Compose make(n);
  FUSEC_TRY(const ValueId count, make.reduce(OpKind::ReduceSum, make.cast(mask, DType::I64), {0}));
  FUSEC_TRY(const DimExpr size,
            n.dataSize(count, most ? *most : DimExpr(n.shapeOf(mask)[0]), output, axis));
  return n.emitOne(OpKind::Chosen, {mask}, {}, {{size}});
}

/// The indices of the elements that are not zero, [rank, size].
Status nonZeroOfData(NodeImporter &n) {
  Compose make(n);
  const Shape shape = n.shape(0);
  ValueId mask = n.id(0);
  if (n.type(0) != DType::Bool) {
    FUSEC_TRY(const ValueId isZero, make.binary(OpKind::Equal, mask, make.scalar(n.type(0), 0)));
    mask = make.unary(OpKind::Not, isZero);
  }
  FUSEC_TRY(const ValueId places, chosenOnes(n, n.reshape(mask, {numElements(shape)}), 1));
  const DimExpr size = n.shapeOf(places)[0];
  const auto rank = static_cast<int64_t>(shape.size());
  if (rank == 0) {
    n.result(0, make.filled(DType::I64, 0, {DimExpr(0), size}));
    return success();
  }
  std::vector<ValueId> rows(shape.size());
  ValueId rest = places;
  for (int64_t a = rank - 1; a >= 0; --a) {
    ValueId index = rest;
    if (a > 0) {
      FUSEC_TRY(const ValueId extent, make.extent(n.id(0), a));
      FUSEC_TRY(index, n.emitOne(OpKind::Mod, {rest, extent}, {{"fmod", int64_t(0)}}));
      FUSEC_TRY(rest, make.binary(OpKind::Div, rest, extent));
    }
    const ValueId row = n.reshape(index, {DimExpr(1), size});
    n.graphBuilder().integerRanges[row] = {DimExpr(0), shape[static_cast<size_t>(a)] - DimExpr(1)};
    rows[static_cast<size_t>(a)] = row;
  }
  n.result(0, rank == 1 ? rows[0] : make.concat(rows, 0));
  return success();
}

Status topKOfData(NodeImporter &n, int64_t axis) {
  const char *text = "k must be one integer";
  if (n.type(1) != DType::I64)
    return n.mismatch(text);
  FUSEC_CHECK(n.oneElement(1, text));
  Compose make(n);
  FUSEC_TRY(const ValueId all, make.extent(n.id(0), axis));
  FUSEC_CHECK(requireBetween(n, n.id(1), make.integer(0), all, DataTest::Counts));
  const auto place = static_cast<size_t>(axis);
  const DimExpr found = n.newSize(n.shape(0)[place], n.wants(0) ? 0 : 1, place);
  FUSEC_TRY(const ValueId k, n.tellSize(found, n.reshape(n.id(1), {})));
  return n.finish(OpKind::TopK, {n.id(0), k}, {{"axis", axis}});
}

namespace {

/// Sorted order of x along its only axis, equal elements in their order: values and places.
Result<std::vector<ValueId>> sorted(NodeImporter &n, ValueId x) {
  FUSEC_TRY(const ValueId all, Compose(n).extent(x, 0));
  return n.emit(OpKind::TopK, {x, all},
                {{"axis", int64_t(0)}, {"largest", int64_t(0)}, {"sorted", int64_t(1)}});
}

/// 0, 1, ... in the order in which `places`, a permutation, names them.
Result<ValueId> inverse(NodeImporter &n, ValueId places) {
  FUSEC_TRY(auto order, sorted(n, places));
  return order[1];
}

/// `order`, places of rows, sorted by these keys of all rows, i64[m]; equal keys in their order.
Result<ValueId> sortedBy(NodeImporter &n, ValueId order, ValueId keys) {
  Compose c(n);
  FUSEC_TRY(keys, c.gather(keys, order, 0));
  FUSEC_TRY(const auto found, sorted(n, keys));
  return c.gather(order, found[1], 0);
}

/// The order of the rows of x, [m, columns], by their columns, the first first; equal rows in their order. It is sorted
/// by each column, the last one first, by a Scan where there are several.
Result<ValueId> orderOfRows(NodeImporter &n, ValueId x) {
  const DimExpr m = n.shapeOf(x)[0];
  if (n.shapeOf(x)[1].isConst(1)) {
    FUSEC_TRY(const auto found, sorted(n, n.reshape(x, {m})));
    return found[1];
  }
  std::vector<Region> regions;
  FUSEC_TRY(regions.emplace_back(),
            n.graphBuilder().makeRegion(
                {{DType::I64, {m}}, {n.typeOf(x), {m}}},
                [&](const std::vector<ValueId> &in) -> Result<std::vector<ValueId>> {
                  FUSEC_TRY(const ValueId order, sortedBy(n, in[0], in[1]));
                  return std::vector{order};
                }));
  using Ints = std::vector<int64_t>;
  FUSEC_TRY(const auto made, n.emit(OpKind::Scan, {Compose(n).iota(m), x},
                                    {{"num_scan_inputs", int64_t(1)},
                                     {"scan_input_axes", Ints{1}},
                                     {"scan_input_directions", Ints{1}},
                                     {"scan_output_axes", Ints{}},
                                     {"scan_output_directions", Ints{}}},
                                    {}, std::move(regions)));
  return made[0];
}

/// Whether each row of x, [m, columns], is another than the one before it: bool[m].
Result<ValueId> isNewRow(NodeImporter &n, ValueId x) {
  Compose c(n);
  const ValueId places = c.iota(n.shapeOf(x)[0]);
  FUSEC_TRY(ValueId before, c.binary(OpKind::Sub, places, c.integer(1)));
  FUSEC_TRY(before, c.binary(OpKind::Max, before, c.integer(0)));
  FUSEC_TRY(const ValueId previous, c.gather(x, before, 0));
  FUSEC_TRY(const ValueId isSame, c.binary(OpKind::Equal, x, previous));
  const ValueId differs = c.cast(c.unary(OpKind::Not, isSame), DType::I64);
  FUSEC_TRY(const ValueId many, c.reduce(OpKind::ReduceMax, differs, {1}));
  FUSEC_TRY(const ValueId isFirst, c.binary(OpKind::Equal, places, c.integer(0)));
  return c.binary(OpKind::Or, isFirst, c.cast(many, DType::Bool));
}

/// How many elements of m there are from each place of `first`, i64[size], to the next one.
Result<ValueId> gaps(NodeImporter &n, ValueId first, ValueId m) {
  Compose c(n);
  FUSEC_TRY(const ValueId size, c.extent(first, 0));
  FUSEC_TRY(const ValueId last, c.binary(OpKind::Sub, size, c.integer(1)));
  const ValueId places = c.iota(n.shapeOf(first)[0]);
  FUSEC_TRY(ValueId next, c.binary(OpKind::Add, places, c.integer(1)));
  FUSEC_TRY(next, c.binary(OpKind::Min, next, last));
  FUSEC_TRY(next, c.gather(first, next, 0));
  FUSEC_TRY(const ValueId isLast, c.binary(OpKind::Equal, places, last));
  FUSEC_TRY(next, c.where(isLast, m, next));
  return c.binary(OpKind::Sub, next, first);
}

} // namespace

// The rows are sorted; where one differs from the one before it, a new one begins. With sorted=0 these are put in the
// order of their first occurrence.
Status uniqueOfData(NodeImporter &n) {
  Compose c(n);
  const bool isFlat = !n.hasAttribute("axis"), isSorted = n.attrInt("sorted", 1) != 0;
  int64_t axis = 0;
  if (!isFlat) {
    FUSEC_TRY(axis, n.axis(n.attrInt("axis"), n.rank(0)));
  }
  // x as [m, columns], one row for each of the things that may be equal.
  ValueId x = n.id(0);
  if (n.type(0) == DType::Bool)
    x = c.cast(x, DType::U8);
  std::vector<int64_t> perm;
  Shape moved;
  if (!isFlat) {
    for (int64_t d = 0; d < n.rank(0); ++d)
      perm.push_back(d == 0 ? axis : d <= axis ? d - 1 : d);
    x = c.transpose(x, perm);
    moved = n.shapeOf(x);
  }
  const DimExpr m = isFlat ? numElements(n.shape(0)) : moved[0],
                columns = isFlat ? DimExpr(1) : product(moved, 1, moved.size());
  x = n.reshape(x, {m, columns});
  FUSEC_TRY(const ValueId order, orderOfRows(n, x));
  FUSEC_TRY(const ValueId rows, c.gather(x, order, 0));
  FUSEC_TRY(const ValueId isNew, isNewRow(n, rows));
  FUSEC_TRY(const ValueId first, chosenOnes(n, isNew, static_cast<size_t>(axis)));
  FUSEC_TRY(const ValueId many, c.extent(x, 0));
  FUSEC_TRY(ValueId counts, gaps(n, first, many));
  FUSEC_TRY(ValueId places, c.gather(order, first, 0)); // of first occurrences in x
  // Number of its row among the new ones, by place in x.
  FUSEC_TRY(ValueId number, n.emitOne(OpKind::CumSum, {c.cast(isNew, DType::I64), c.integer(0)},
                                      {{"exclusive", int64_t(0)}, {"reverse", int64_t(0)}}));
  FUSEC_TRY(number, c.binary(OpKind::Sub, number, c.integer(1)));
  FUSEC_TRY(const ValueId from, inverse(n, order));
  FUSEC_TRY(number, c.gather(number, from, 0));
  if (!isSorted) {
    FUSEC_TRY(auto byPlace, sorted(n, places));
    places = byPlace[0];
    FUSEC_TRY(counts, c.gather(counts, byPlace[1], 0));
    FUSEC_TRY(const ValueId back, inverse(n, byPlace[1]));
    FUSEC_TRY(number, c.gather(back, number, 0));
  }
  ValueId found = n.id(0);
  if (isFlat)
    found = n.reshape(found, {m});
  FUSEC_TRY(found, c.gather(found, places, axis));
  const ValueId results[] = {found, places, number, counts};
  for (size_t i = 0; i < 4; ++i)
    n.result(i, results[i]);
  return success();
}

namespace {

/// Two corners, the lower one first, of boxes [B,N,4]: given by two opposite corners, or by centre and size.
Result<ValueId> cornersOf(NodeImporter &n, bool byCentre) {
  Compose c(n);
  const ValueId boxes = n.id(0);
  const ValueId first = c.slice(boxes, 2, 0, 2), second = c.slice(boxes, 2, 2, 2);
  ValueId low, high;
  if (byCentre) { // x, y, width, height
    FUSEC_TRY(const ValueId half, c.binary(OpKind::Mul, second, c.scalar(n.type(0), 0.5)));
    FUSEC_TRY(low, c.binary(OpKind::Sub, first, half));
    FUSEC_TRY(high, c.binary(OpKind::Add, first, half));
  } else {
    FUSEC_TRY(low, c.binary(OpKind::Min, first, second));
    FUSEC_TRY(high, c.binary(OpKind::Max, first, second));
  }
  return c.concat({low, high}, 2);
}

/// Operand `i` as one number, `otherwise` where it is absent.
Result<ValueId> numberOr(NodeImporter &n, size_t i, DType type, double otherwise) {
  Compose c(n);
  if (!n.has(i))
    return c.scalar(type, otherwise);
  FUSEC_CHECK(n.oneElement(i, "limit and thresholds must be one number each"));
  return c.cast(n.reshape(n.id(i), {}), type);
}

} // namespace

// The boxes of each class in the order of their scores, those that are kept (KeptBoxes), and of these the places.
Status nonMaxSuppression(NodeImporter &n) {
  Compose c(n);
  const char *text = "boxes [B, N, 4] and scores [B, C, N] of one type of floats are needed";
  if (n.rank(0) != 3 || n.rank(1) != 3 || n.type(0) != n.type(1) || !isFloat(n.type(0)))
    return n.mismatch(text);
  const Shape boxes = n.shape(0), scores = n.shape(1);
  FUSEC_CHECK(n.sizes().sameShape({boxes[2]}, {DimExpr(4)}, text));
  FUSEC_CHECK(n.sameDim(boxes[0], scores[0], "the batches of boxes and scores"));
  FUSEC_CHECK(n.sameDim(boxes[1], scores[2], "the numbers of boxes and of their scores"));
  const int64_t byCentre = n.attrInt("center_point_box", 0);
  FUSEC_TRY(const ValueId corners, cornersOf(n, byCentre != 0));
  FUSEC_TRY(const ValueId limit, numberOr(n, 2, DType::I64, 0));
  FUSEC_TRY(const ValueId threshold, numberOr(n, 3, n.type(0), 0));
  const DimExpr batches = scores[0], classes = scores[1], count = scores[2];
  FUSEC_TRY(const ValueId all, c.extent(n.id(1), 2));
  FUSEC_TRY(auto order,
            n.emit(OpKind::TopK, {n.id(1), all},
                   {{"axis", int64_t(2)}, {"largest", int64_t(1)}, {"sorted", int64_t(1)}}));
  ValueId allowed;
  if (n.has(4)) {
    FUSEC_TRY(const ValueId least, numberOr(n, 4, n.type(0), 0));
    FUSEC_TRY(allowed, c.binary(OpKind::Greater, order[0], least));
  } else {
    allowed = c.filled(DType::Bool, 1, scores);
  }
  FUSEC_TRY(ValueId kept,
            n.emitOne(OpKind::KeptBoxes, {corners, order[1], allowed, threshold, limit}));
  kept = n.reshape(kept, {batches * classes * count});
  DimExpr most = batches * classes * count;
  if (const auto known = n.peekInts(2); known && known->size() == 1)
    most = batches * classes * min(count, DimExpr(std::max<int64_t>((*known)[0], 0)));
  FUSEC_TRY(const ValueId places, chosenOnes(n, kept, 0, 0, &most));
  const DimExpr size = n.shapeOf(places)[0];
  // places = (batch * classes + class) * count + place in the order
  FUSEC_TRY(const ValueId boxesOfClass, c.extent(n.id(1), 2));
  FUSEC_TRY(const ValueId classesOfBatch, c.extent(n.id(1), 1));
  FUSEC_TRY(const ValueId row, c.binary(OpKind::Div, places, boxesOfClass));
  FUSEC_TRY(const ValueId batch, c.binary(OpKind::Div, row, classesOfBatch));
  FUSEC_TRY(const ValueId which,
            n.emitOne(OpKind::Mod, {row, classesOfBatch}, {{"fmod", int64_t(0)}}));
  FUSEC_TRY(const ValueId box,
            c.gather(n.reshape(order[1], {batches * classes * count}), places, 0));
  std::vector<ValueId> columns;
  for (ValueId column : {batch, which, box})
    columns.push_back(n.reshape(column, {size, DimExpr(1)}));
  n.result(0, c.concat(columns, 1));
  return success();
}

} // namespace fusec
