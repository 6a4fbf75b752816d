// Operators that move data between shapes.
#include "Graph/rules/OpCheck.h"

#include <algorithm>

namespace fusec::rules {
namespace {

/// The operand that describes the output's shape agrees with it where it is constant.
Status shapeOperand(const OpCheck &c, size_t i) {
  if (!c.has(i))
    return success();
  FUSEC_CHECK(c.kind(i, Kind::Integer));
  return c.exactRank(i, 1);
}

Status reshape(const OpCheck &c) {
  FUSEC_CHECK(shapeOperand(c, 1));
  FUSEC_CHECK(c.sameDim(numElements(c.shape(0)), numElements(c.outShape()), "numbers of elements"));
  return c.output(c.type(0), c.outShape());
}

Status flatten(const OpCheck &c) {
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0) + 1));
  const Shape &in = c.shape(0);
  return c.output(c.type(0), {product(in, 0, axis), product(in, axis, in.size())});
}

Status squeeze(const OpCheck &c) {
  FUSEC_CHECK(c.axes("axes", c.rank(0)));
  const auto &axes = c.node.intsAttr("axes");
  Shape out;
  for (size_t d = 0; d < c.shape(0).size(); ++d) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end())
      out.push_back(c.shape(0)[d]);
    else
      FUSEC_CHECK(c.expect(c.shape(0)[d].isConst(1), "an axis to remove does not have size 1"));
  }
  return c.output(c.type(0), out);
}

Status unsqueeze(const OpCheck &c) {
  const auto &axes = c.node.intsAttr("axes");
  size_t rank = c.shape(0).size() + axes.size();
  FUSEC_CHECK(c.axes("axes", static_cast<int64_t>(rank)));
  Shape out;
  size_t next = 0;
  for (size_t d = 0; d < rank; ++d)
    out.push_back(std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end()
                      ? c.shape(0)[next++]
                      : DimExpr(1));
  return c.output(c.type(0), out);
}

Status transpose(const OpCheck &c) {
  const auto &perm = c.node.intsAttr("perm");
  FUSEC_CHECK(c.expect(perm.size() == c.shape(0).size(), "perm must name each axis once"));
  FUSEC_CHECK(c.axes("perm", c.rank(0)));
  Shape out;
  for (int64_t p : perm)
    out.push_back(c.shape(0)[static_cast<size_t>(p)]);
  return c.output(c.type(0), out);
}

Status expand(const OpCheck &c) {
  FUSEC_CHECK(shapeOperand(c, 1));
  FUSEC_CHECK(c.broadcastsTo(c.shape(0), c.outShape(), "the operand"));
  return c.output(c.type(0), c.outShape());
}

/// Repeat counts are constants where all sizes are; else the output's sizes are multiples of the operand's.
Status tile(const OpCheck &c) {
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
    bool whole = c.forSamples([&](const std::vector<int64_t> &symbols) -> std::optional<bool> {
      auto from = in[d].evaluate(symbols), to = out[d].evaluate(symbols);
      if (!from || !to)
        return std::nullopt;
      return *from == 0 ? *to == 0 : *to % *from == 0;
    });
    FUSEC_CHECK(c.expect(whole, "an output size is no multiple of the operand's"));
  }
  return c.output(c.type(0), out);
}

Status concat(const OpCheck &c) {
  FUSEC_CHECK(c.allSameTypes());
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  Shape out = c.shape(0);
  for (size_t i = 1; i < c.node.inputs.size(); ++i) {
    FUSEC_CHECK(c.exactRank(i, c.rank(0)));
    for (size_t d = 0; d < out.size(); ++d) {
      if (d == axis)
        out[d] = out[d] + c.shape(i)[d];
      else
        FUSEC_CHECK(c.sameDim(out[d], c.shape(i)[d], "sizes off the axis"));
    }
  }
  return c.output(c.type(0), out);
}

Status split(const OpCheck &c) {
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  DimExpr total = 0;
  for (size_t i = 0; i < c.node.outputs.size(); ++i) {
    FUSEC_CHECK(c.expect(c.wants(i), "every part must be an output"));
    FUSEC_CHECK(c.expect(c.outShape(i).size() == c.shape(0).size(),
                         "the parts must have the operand's rank"));
    Shape part = c.shape(0);
    part[axis] = c.outShape(i)[axis];
    total = total + part[axis];
    FUSEC_CHECK(c.output(i, c.type(0), part));
  }
  return c.sameDim(total, c.shape(0)[axis], "the parts' sum and the axis");
}

Status trilu(const OpCheck &c) {
  FUSEC_CHECK(c.minRank(0, 2));
  FUSEC_CHECK(c.oneNumber(1));
  FUSEC_CHECK(c.expect(!c.has(1) || c.type(1) == DType::I64, "the diagonal must be i64"));
  return c.output(c.type(0), c.shape(0));
}

Status reverseSequence(const OpCheck &c) {
  FUSEC_CHECK(c.minRank(0, 2));
  FUSEC_TRY(size_t batch, c.axis("batch_axis", 2));
  FUSEC_TRY(size_t time, c.axis("time_axis", 2));
  FUSEC_CHECK(c.expect(batch != time, "batch_axis and time_axis must be 0 and 1"));
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  FUSEC_CHECK(c.vectorOf(1, c.shape(0)[batch]));
  return c.output(c.type(0), c.shape(0));
}

} // namespace

void addMovement(RuleTable &table) {
  using enum OpKind;
  table[Reshape] = reshape;
  table[Flatten] = flatten;
  table[Squeeze] = squeeze;
  table[Unsqueeze] = unsqueeze;
  table[Transpose] = transpose;
  table[Expand] = expand;
  table[Tile] = tile;
  table[Concat] = concat;
  table[Split] = split;
  table[Trilu] = trilu;
  table[ReverseSequence] = reverseSequence;
}

} // namespace fusec::rules
