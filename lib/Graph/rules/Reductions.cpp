// Reductions over axes, running sums, the softmax family and TopK.
#include "Graph/rules/OpCheck.h"

#include <algorithm>

namespace fusec::rules {
namespace {

Shape reduced(const Shape &in, const std::vector<int64_t> &axes, bool keep) {
  Shape out;
  for (size_t d = 0; d < in.size(); ++d) {
    bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (!gone || keep)
      out.push_back(gone ? DimExpr(1) : in[d]);
  }
  return out;
}

template <Kind k> Status reduction(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, k));
  FUSEC_CHECK(c.axes("axes", c.rank(0)));
  return c.output(c.type(0),
                  reduced(c.shape(0), c.node.intsAttr("axes"), c.node.intAttr("keepdims")));
}

Status argReduction(const OpCheck &c) {
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  FUSEC_CHECK(c.expect(!c.shape(0)[axis].isConst(0), "the axis to search has size 0"));
  return c.output(DType::I64,
                  reduced(c.shape(0), {static_cast<int64_t>(axis)}, c.node.intAttr("keepdims")));
}

Status running(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  FUSEC_CHECK(c.oneNumber(1));
  if (auto axis = c.ints(1))
    FUSEC_CHECK(c.expect((*axis)[0] >= -c.rank(0) && (*axis)[0] < c.rank(0),
                         "the axis is out of range for rank " + std::to_string(c.rank(0))));
  return c.output(c.type(0), c.shape(0));
}

Status softmax(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_TRY([[maybe_unused]] size_t axis, c.axis("axis", c.rank(0)));
  return c.output(c.type(0), c.shape(0));
}

Status topK(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  FUSEC_CHECK(c.oneNumber(1));
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  auto k = c.ints(1);
  if (!k)
    return c.fail("k must be a constant");
  FUSEC_CHECK(c.expect((*k)[0] >= 0, "k is negative"));
  Shape out = c.shape(0);
  FUSEC_CHECK(c.atMost((*k)[0], out[axis], "k and the size of the axis: k"));
  out[axis] = (*k)[0];
  FUSEC_CHECK(c.output(0, c.type(0), out));
  return c.output(1, DType::I64, out);
}

} // namespace

void addReductions(RuleTable &table) {
  using enum OpKind;
  for (OpKind op : {ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceMean, ReduceProd,
                    ReduceSum, ReduceSumSquare})
    table[op] = reduction<Kind::Number>;
  for (OpKind op : {ReduceMax, ReduceMin})
    table[op] = reduction<Kind::Any>;
  for (OpKind op : {ArgMax, ArgMin})
    table[op] = argReduction;
  for (OpKind op : {CumSum, CumProd})
    table[op] = running;
  for (OpKind op : {Softmax, LogSoftmax, Hardmax})
    table[op] = softmax;
  table[TopK] = topK;
}

} // namespace fusec::rules
