// Operators that move data between shapes.
#include "Graph/rules/OpCheck.h"

#include <algorithm>

namespace fusec::rules {
namespace {

bool contains(const std::vector<int64_t> &axes, size_t d) {
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
}

/// The operand that describes the output's shape.
Status shapeOperand(const OpCheck &c, size_t i) {
  FUSEC_CHECK(notNegative(c));
  FUSEC_CHECK(c.kind(i, Kind::Integer));
  return c.exactRank(i, 1);
}

/// The output's shape is the target.
Result<Types> reshape(const OpCheck &c) {
  FUSEC_CHECK(shapeOperand(c, 1));
  FUSEC_CHECK(c.sizes.sameCount(numElements(c.shape(0)), numElements(c.outShape())));
  return one(c.type(0), c.outShape());
}

Result<Types> flatten(const OpCheck &c) {
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0) + 1));
  const Shape &in = c.shape(0);
  return one(c.type(0), {product(in, 0, axis), product(in, axis, in.size())});
}

Result<Types> squeeze(const OpCheck &c) {
  FUSEC_CHECK(c.axes("axes", c.rank(0)));
  Shape out;
  for (size_t d = 0; d < c.shape(0).size(); ++d) {
    const DimExpr &size = c.shape(0)[d];
    if (!contains(c.list("axes"), d))
      out.push_back(size);
    else
      FUSEC_CHECK(c.sizes.sameShape({size}, {DimExpr(1)},
                                    "axis " + std::to_string(d) + " to remove must have size 1"));
  }
  return one(c.type(0), std::move(out));
}

Result<Types> unsqueeze(const OpCheck &c) {
  const auto &axes = c.list("axes");
  size_t rank = c.shape(0).size() + axes.size(), next = 0;
  FUSEC_CHECK(c.axes("axes", static_cast<int64_t>(rank)));
  Shape out;
  for (size_t d = 0; d < rank; ++d)
    out.push_back(contains(axes, d) ? DimExpr(1) : c.shape(0)[next++]);
  return one(c.type(0), std::move(out));
}

Result<Types> transpose(const OpCheck &c) {
  const auto &perm = c.list("perm");
  bool isPermutation = perm.size() == c.shape(0).size();
  for (size_t d = 0; d < perm.size(); ++d)
    isPermutation = isPermutation && contains(perm, d);
  FUSEC_CHECK(c.expectAttribute(isPermutation, "perm must name each axis of the operand once"));
  Shape out;
  for (int64_t p : perm)
    out.push_back(c.shape(0)[static_cast<size_t>(p)]);
  return one(c.type(0), std::move(out));
}

/// The output's shape is the target.
Result<Types> expand(const OpCheck &c) {
  FUSEC_CHECK(shapeOperand(c, 1));
  FUSEC_CHECK(c.sizes.broadcastsTo(c.shape(0), c.outShape(),
                                   "the operand must broadcast to the output's shape"));
  return one(c.type(0), c.outShape());
}

/// Repeat counts are constants where all sizes are; else the output's sizes are multiples of the operand's.
Result<Types> tile(const OpCheck &c) {
  const Shape &in = c.shape(0), &out = c.outShape();
  FUSEC_CHECK(shapeOperand(c, 1));
  FUSEC_CHECK(c.expect(out.size() == in.size(), "the output must have the operand's rank"));
  auto counts = c.ints(1);
  FUSEC_CHECK(
      c.expect(!counts || counts->size() == in.size(), "one count for each axis is needed"));
  for (size_t d = 0; d < in.size(); ++d) {
    if (counts) {
      FUSEC_CHECK(c.expect((*counts)[d] >= 0, "a repeat count is negative"));
      FUSEC_CHECK(c.sameDim(out[d], in[d] * DimExpr((*counts)[d]), "sizes after repetition"));
      continue;
    }
    for (const std::vector<int64_t> &symbols : sampleSymbols(c.graph.symbols)) {
      auto from = in[d].evaluate(symbols), to = out[d].evaluate(symbols);
      if (from && to)
        FUSEC_CHECK(c.expect(*from == 0 ? *to == 0 : *to % *from == 0,
                             "an output size is no multiple of the operand's"));
    }
  }
  return one(c.type(0), out);
}

Result<Types> concat(const OpCheck &c) {
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  Shape out = c.shape(0);
  for (size_t i = 1; i < c.node.inputs.size(); ++i) {
    FUSEC_CHECK(c.expect(c.type(i) == c.type(0) && c.rank(i) == c.rank(0),
                         "the operands must have one type and rank"));
    for (size_t d = 0; d < out.size(); ++d) {
      if (d == axis)
        out[d] = out[d] + c.shape(i)[d];
      else
        FUSEC_CHECK(c.sameDim(out[d], c.shape(i)[d], "sizes off the axis"));
    }
  }
  return one(c.type(0), std::move(out));
}

/// The parts' sizes are those of the outputs.
Result<Types> split(const OpCheck &c) {
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  const DimExpr size = c.shape(0)[axis], count = static_cast<int64_t>(c.numOutputs());
  bool isEven = !size.isConst();
  DimExpr total = 0;
  Types parts;
  for (size_t i = 0; i < c.numOutputs(); ++i) {
    FUSEC_CHECK(c.expect(c.outShape(i).size() == c.shape(0).size(),
                         "the parts must have the operand's rank"));
    Shape part = c.shape(0);
    part[axis] = c.outShape(i)[axis];
    isEven = isEven && c.sizes.same(part[axis], floorDiv(size, count));
    total = total + part[axis];
    parts.push_back({c.type(0), std::move(part)});
  }
  if (isEven)
    FUSEC_CHECK(
        c.sizes.multiple(size, count.constValue(), "an axis that is split into equal parts"));
  else
    FUSEC_CHECK(c.sizes.sameShape(
        {size}, {total}, "the parts' sizes must be as many as the outputs and sum to the axis",
        Need::Tested));
  return parts;
}

Result<Types> trilu(const OpCheck &c) {
  FUSEC_CHECK(c.minRank(0, 2, "the operand must be at least a matrix"));
  if (c.has(1)) {
    const char *text = "the diagonal must be one number of type i64";
    FUSEC_CHECK(c.expect(c.type(1) == DType::I64, text));
    FUSEC_CHECK(c.sizes.sameShape({numElements(c.shape(1))}, {DimExpr(1)}, text));
  }
  return like(c);
}

Result<Types> reverseSequence(const OpCheck &c) {
  int64_t batch = c.number("batch_axis"), time = c.number("time_axis");
  FUSEC_CHECK(c.expectAttribute(c.rank(0) >= 2 && batch != time && batch >= 0 && batch <= 1 &&
                                    time >= 0 && time <= 1,
                                "batch_axis and time_axis must be 0 and 1 in either order"));
  const char *text = "one length of type i64 for each batch entry is needed";
  FUSEC_CHECK(c.expect(c.type(1) == DType::I64, text));
  FUSEC_CHECK(c.shapeIs(1, {c.shape(0)[static_cast<size_t>(batch)]}, text));
  return like(c);
}

} // namespace

void addMovement(RuleTable &table) {
  using enum OpKind;
  entry(table, Reshape) = reshape;
  entry(table, Flatten) = flatten;
  entry(table, Squeeze) = squeeze;
  entry(table, Unsqueeze) = unsqueeze;
  entry(table, Transpose) = transpose;
  entry(table, Expand) = expand;
  entry(table, Tile) = tile;
  entry(table, Concat) = concat;
  entry(table, Split) = split;
  entry(table, Trilu) = trilu;
  entry(table, ReverseSequence) = reverseSequence;
}

} // namespace fusec::rules
