// Reductions over axes, running sums, the softmax family and TopK.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

template <Kind k> Result<Types> reduction(const OpCheck &c) {
  FUSEC_CHECK(c.operand(k));
  FUSEC_CHECK(c.axes("axes", c.rank(0)));
  return one(c.type(0), reducedShape(c.shape(0), c.list("axes"), c.number("keepdims")));
}

Result<Types> argReduction(const OpCheck &c) {
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  FUSEC_CHECK(c.expect(!c.shape(0)[axis].isConst(0), "the axis to search has size 0"));
  FUSEC_CHECK(c.sizes.atLeast(c.shape(0)[axis], 1, "the size of the axis to search"));
  return one(DType::I64,
             reducedShape(c.shape(0), {static_cast<int64_t>(axis)}, c.number("keepdims")));
}

Result<Types> running(const OpCheck &c) {
  FUSEC_CHECK(c.operand(Kind::Number));
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  FUSEC_CHECK(c.oneNumber(1));
  if (auto axis = c.ints(1))
    FUSEC_CHECK(c.expect((*axis)[0] >= -c.rank(0) && (*axis)[0] < c.rank(0),
                         "the axis is out of range for rank " + std::to_string(c.rank(0))));
  return like(c);
}

Result<Types> softmax(const OpCheck &c) {
  FUSEC_CHECK(c.operand(Kind::Float));
  FUSEC_TRY([[maybe_unused]] size_t axis, c.axis("axis", c.rank(0)));
  return like(c);
}

Result<Types> topK(const OpCheck &c) {
  FUSEC_CHECK(c.operand(Kind::Number));
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  FUSEC_CHECK(c.oneNumber(1));
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  if (const Shape &known = c.in(1).known; known.size() == 1) {
    Shape out = c.shape(0);
    const DimExpr most = atBounds(known[0], c.graph.symbols);
    if (min(most, out[axis]) != most)
      FUSEC_CHECK(c.sizes.noLess(out[axis], known[0],
                                 "the axis must have as many elements as are to be found"));
    FUSEC_CHECK(c.sizes.atLeast(known[0], 0, "the number of elements to be found"));
    out[axis] = known[0];
    return Types{{c.type(0), out}, {DType::I64, out}};
  }
  auto given = c.ints(1);
  if (!given)
    return c.fail("k must be a constant, or follow from sizes");
  const int64_t k = (*given)[0];
  Shape out = c.shape(0);
  DimExpr &size = out[axis];
  if (k < 0 || (size.isConst() && k > size.constValue()))
    return c.badValue("k is " + std::to_string(k) + "; it must be between 0 and the axis' size");
  FUSEC_CHECK(c.sizes.atLeast(size, k, "the axis of which the k largest are taken"));
  size = DimExpr(k);
  return Types{{c.type(0), out}, {DType::I64, out}};
}

} // namespace

void addReductions(RuleTable &table) {
  using enum OpKind;
  for (OpKind op : {ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceMean, ReduceProd,
                    ReduceSum, ReduceSumSquare})
    entry(table, op) = reduction<Kind::Number>;
  for (OpKind op : {ReduceMax, ReduceMin})
    entry(table, op) = reduction<Kind::Any>;
  for (OpKind op : {ArgMax, ArgMin})
    entry(table, op) = argReduction;
  for (OpKind op : {CumSum, CumProd})
    entry(table, op) = running;
  for (OpKind op : {Softmax, LogSoftmax, Hardmax})
    entry(table, op) = softmax;
  entry(table, TopK) = topK;
}

} // namespace fusec::rules
