// Indirect reads and writes. Indices are bounded where they are used; here it is the shapes that must fit.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

Status gather(const OpCheck &c) {
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  const Shape &data = c.shape(0), &indices = c.shape(1);
  auto at = data.begin() + static_cast<std::ptrdiff_t>(axis);
  Shape out(data.begin(), at);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), at + 1, data.end());
  FUSEC_CHECK(c.expect(!data[axis].isConst(0) || numElements(out).isConst(0),
                       "nothing can be gathered from an empty axis"));
  return c.output(c.type(0), out);
}

/// Off the axis the indices stay within the data.
Status alongAxis(const OpCheck &c, size_t indices, size_t axis) {
  FUSEC_CHECK(c.exactRank(indices, c.rank(0)));
  for (size_t d = 0; d < c.shape(0).size(); ++d)
    if (d != axis)
      FUSEC_CHECK(c.atMost(c.shape(indices)[d], c.shape(0)[d],
                           "sizes of operand " + std::to_string(indices) +
                               " and of the data off the axis: the first"));
  return c.expect(!c.shape(0)[axis].isConst(0) || numElements(c.shape(indices)).isConst(0),
                  "the axis of the data is empty");
}

Status gatherElements(const OpCheck &c) {
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  FUSEC_CHECK(alongAxis(c, 1, axis));
  return c.output(c.type(0), c.shape(1));
}

Result<std::ptrdiff_t> indexDepth(const OpCheck &c, int64_t batch) {
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  FUSEC_CHECK(c.minRank(1, 1));
  const DimExpr &last = c.shape(1).back();
  FUSEC_CHECK(
      c.expect(last.isConst() && last.constValue() >= 1 && last.constValue() <= c.rank(0) - batch,
               "the last axis of the indices must be between 1 and the data's rank"));
  return static_cast<std::ptrdiff_t>(last.constValue());
}

Status gatherND(const OpCheck &c) {
  int64_t batch = c.node.intAttr("batch_dims");
  FUSEC_CHECK(c.expect(batch >= 0 && batch < c.rank(0) && batch < c.rank(1),
                       "batch_dims must be smaller than both ranks"));
  FUSEC_TRY(std::ptrdiff_t depth, indexDepth(c, batch));
  for (size_t d = 0; d < static_cast<size_t>(batch); ++d)
    FUSEC_CHECK(c.sameDim(c.shape(0)[d], c.shape(1)[d], "batch sizes"));
  Shape out(c.shape(1).begin(), c.shape(1).end() - 1);
  out.insert(out.end(), c.shape(0).begin() + batch + depth, c.shape(0).end());
  return c.output(c.type(0), out);
}

Status reductions(const OpCheck &c) { return c.sameTypes({0, 2}); }

Status scatterElements(const OpCheck &c) {
  FUSEC_CHECK(reductions(c));
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  FUSEC_CHECK(alongAxis(c, 1, axis));
  FUSEC_CHECK(c.shapeIs(2, c.shape(1)));
  return c.output(c.type(0), c.shape(0));
}

Status scatterND(const OpCheck &c) {
  FUSEC_CHECK(reductions(c));
  FUSEC_TRY(std::ptrdiff_t depth, indexDepth(c, 0));
  Shape updates(c.shape(1).begin(), c.shape(1).end() - 1);
  updates.insert(updates.end(), c.shape(0).begin() + depth, c.shape(0).end());
  FUSEC_CHECK(c.shapeIs(2, updates));
  return c.output(c.type(0), c.shape(0));
}

/// data [B, ..., max, ...], update [B, ..., length, ...], write_indices? [B]
Status tensorScatter(const OpCheck &c) {
  FUSEC_CHECK(c.sameTypes({0, 1}));
  FUSEC_CHECK(c.kind(2, Kind::Integer));
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  FUSEC_CHECK(c.expect(axis > 0, "the axis must not be the batch"));
  FUSEC_CHECK(alongAxis(c, 1, axis));
  FUSEC_CHECK(c.vectorOf(2, c.shape(0)[0]));
  return c.output(c.type(0), c.shape(0));
}

Status oneHot(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.oneNumber(1));
  FUSEC_CHECK(c.vectorOf(2, 2));
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0) + 1));
  FUSEC_CHECK(c.expect(c.outShape().size() == c.shape(0).size() + 1,
                       "the output must have one axis more than the indices"));
  const DimExpr depth = c.outShape()[axis];
  if (auto given = c.ints(1))
    FUSEC_CHECK(c.sameDim(depth, (*given)[0], "depth and the output's size"));
  Shape out = c.shape(0);
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  return c.output(c.type(2), out);
}

} // namespace

void addGathers(RuleTable &table) {
  using enum OpKind;
  table[Gather] = gather;
  table[GatherElements] = gatherElements;
  table[GatherND] = gatherND;
  table[ScatterElements] = scatterElements;
  table[ScatterND] = scatterND;
  table[TensorScatter] = tensorScatter;
  table[OneHot] = oneHot;
}

} // namespace fusec::rules
