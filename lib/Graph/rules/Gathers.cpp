// Indirect reads and writes. Indices are bounded where they are used; here it is the shapes that must fit.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

/// Operand 1 are indices into an axis of `size`.
Status indices(const OpCheck &c, const DimExpr &size) {
  FUSEC_CHECK(
      c.expect(c.type(1) == DType::I32 || c.type(1) == DType::I64, "indices must be i32 or i64"));
  return c.expect(!size.isConst(0) || numElements(c.shape(1)).isConst(0),
                  "the axis that the indices are for is empty");
}

Result<Types> gather(const OpCheck &c) {
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  FUSEC_CHECK(indices(c, c.shape(0)[axis]));
  const Shape &data = c.shape(0);
  auto at = data.begin() + static_cast<std::ptrdiff_t>(axis);
  Shape out(data.begin(), at);
  out.insert(out.end(), c.shape(1).begin(), c.shape(1).end());
  out.insert(out.end(), at + 1, data.end());
  return one(c.type(0), std::move(out));
}

/// Off the axis the indices stay within the data.
Status within(const OpCheck &c, size_t axis) {
  FUSEC_CHECK(c.expect(c.rank(1) == c.rank(0), "data and indices must have one rank"));
  FUSEC_CHECK(indices(c, c.shape(0)[axis]));
  for (size_t d = 0; d < c.shape(0).size(); ++d) {
    const DimExpr &size = c.shape(0)[d], &count = c.shape(1)[d];
    if (d == axis)
      continue;
    FUSEC_CHECK(c.expect((size - count).range(c.graph.symbols).max >= 0,
                         "the indices reach beyond the data"));
    FUSEC_CHECK(c.sizes.noLess(size, count,
                               "along axis " + std::to_string(d) +
                                   " the data must have as many entries as the indices"));
  }
  return success();
}

Result<Types> gatherElements(const OpCheck &c) {
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  FUSEC_CHECK(within(c, axis));
  return one(c.type(0), c.shape(1));
}

/// How many axes of the data each row of the indices names, behind the first `batch`.
Result<std::ptrdiff_t> indexDepth(const OpCheck &c, int64_t batch) {
  const DimExpr &last = c.shape(1).back();
  FUSEC_CHECK(c.fixed(last, "the last axis of the indices must be fixed"));
  FUSEC_CHECK(c.expect(last.constValue() >= 1 && last.constValue() <= c.rank(0) - batch,
                       "the last axis of the indices must be between 1 and the data's rank"));
  return static_cast<std::ptrdiff_t>(last.constValue());
}

Result<Types> gatherND(const OpCheck &c) {
  int64_t batch = c.number("batch_dims");
  FUSEC_CHECK(c.expectAttribute(batch >= 0 && batch < c.rank(0) && batch < c.rank(1),
                                "batch_dims must be smaller than both ranks"));
  FUSEC_CHECK(c.expect(isInteger(c.type(1)), "indices must be i64 with a fixed last axis"));
  FUSEC_TRY(std::ptrdiff_t depth, indexDepth(c, batch));
  for (size_t d = 0; d < static_cast<size_t>(batch); ++d)
    FUSEC_CHECK(c.sameDim(c.shape(0)[d], c.shape(1)[d], "batch sizes"));
  Shape out(c.shape(1).begin(), c.shape(1).end() - 1);
  out.insert(out.end(), c.shape(0).begin() + batch + depth, c.shape(0).end());
  return one(c.type(0), std::move(out));
}

Result<Types> scatterElements(const OpCheck &c) {
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  const char *text =
      "indices and updates must have one shape of the data's rank, updates the data's type";
  FUSEC_CHECK(c.expect(c.rank(1) == c.rank(0) && c.type(2) == c.type(0), text));
  FUSEC_CHECK(c.sizes.sameShape(c.shape(1), c.shape(2), text));
  FUSEC_CHECK(within(c, axis));
  return like(c);
}

Result<Types> scatterND(const OpCheck &c) {
  FUSEC_CHECK(
      c.expect(isInteger(c.type(1)) && c.rank(1) >= 1 && c.type(2) == c.type(0),
               "indices must be i64 with a fixed last axis and updates of the data's type"));
  if (const DimExpr &last = c.shape(1).back(); !last.isConst())
    FUSEC_CHECK(c.sameDim(last, DimExpr(c.rank(0) + c.rank(1) - 1 - c.rank(2)),
                          "the last axis of the indices and how many axes the ranks have it name"));
  FUSEC_TRY(std::ptrdiff_t depth, indexDepth(c, 0));
  Shape updates(c.shape(1).begin(), c.shape(1).end() - 1);
  updates.insert(updates.end(), c.shape(0).begin() + depth, c.shape(0).end());
  FUSEC_CHECK(c.shapeIs(2, updates,
                        "the updates must have the shape " +
                            typeText(c.type(2), updates, c.graph.symbols)));
  return like(c);
}

/// data [B, ..., max, ...], update [B, ..., length, ...], write_indices? [B]
Result<Types> tensorScatter(const OpCheck &c) {
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  FUSEC_CHECK(
      c.expect(axis > 0 && c.rank(1) == c.rank(0) && c.type(1) == c.type(0),
               "cache and update must have one type and rank, and the axis must not be the batch"));
  for (size_t d = 0; d < c.shape(0).size(); ++d)
    if (d != axis)
      FUSEC_CHECK(c.sameDim(c.shape(0)[d], c.shape(1)[d], "the sizes of cache and update"));
  const char *text = "the write indices must be i64, one for each batch entry";
  FUSEC_CHECK(c.expect(!c.has(2) || c.type(2) == DType::I64, text));
  FUSEC_CHECK(c.shapeIs(2, {c.shape(0)[0]}, text));
  return like(c);
}

/// The depth is the output's size where it is no constant.
Result<Types> oneHot(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.oneNumber(1));
  FUSEC_CHECK(c.shapeIs(2, {DimExpr(2)}, "values must be the pair off, on"));
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0) + 1));
  Shape out = c.shape(0);
  auto depth = c.ints(1);
  if (!depth)
    FUSEC_CHECK(c.expect(c.outShape().size() == out.size() + 1,
                         "the output must have one axis more than the indices"));
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis),
             depth ? DimExpr((*depth)[0]) : c.outShape()[axis]);
  return one(c.type(2), std::move(out));
}

/// How many there are is the output's size.
Result<Types> chosen(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Bool));
  FUSEC_CHECK(c.exactRank(0, 1));
  FUSEC_CHECK(c.expect(c.outShape().size() == 1, "the output must be a vector"));
  return one(DType::I64, c.outShape());
}

} // namespace

void addGathers(RuleTable &table) {
  using enum OpKind;
  entry(table, Gather) = gather;
  entry(table, GatherElements) = gatherElements;
  entry(table, GatherND) = gatherND;
  entry(table, ScatterElements) = scatterElements;
  entry(table, ScatterND) = scatterND;
  entry(table, TensorScatter) = tensorScatter;
  entry(table, OneHot) = oneHot;
  entry(table, Chosen) = chosen;
}

} // namespace fusec::rules
