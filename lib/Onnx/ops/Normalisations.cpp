#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"
#include "Support/Diag.h"

// Normalisations. Statistics are computed in float32 (stash_type 1), the only form in use.

namespace fusec {
namespace {

constexpr double kEpsilon = static_cast<double>(1e-5f);

Status vectorOf(NodeImporter &n, size_t i, const DimExpr &size, const char *what) {
  if (!n.has(i))
    return success();
  return n.sizes().sameShape(n.shape(i), {size},
                             std::string(what) + " must be a vector of " + size.str(n.symbols()));
}

/// Opset 14's training mode: the batch's own mean and variance, computed in f32 or wider, and what becomes of the
/// running ones.
Status batchNormOfBatch(NodeImporter &n) {
  Compose c(n);
  if (n.rank(0) < 1)
    return n.mismatch("the data must have channels");
  for (size_t i = 1; i < 5; ++i)
    FUSEC_CHECK(vectorOf(n, i, n.rank(0) > 1 ? n.shape(0)[1] : DimExpr(1),
                         "scale, bias, mean and variance"));
  const DType t = n.type(0) == DType::F64 ? DType::F64 : DType::F32;
  const Shape data = n.shape(0);
  std::vector<int64_t> axes;
  Shape channels{n.shape(1)[0]}, along(data.size(), DimExpr(1));
  for (size_t d = 0; d < data.size(); ++d)
    if (d != 1)
      axes.push_back(static_cast<int64_t>(d));
  if (data.size() > 1)
    along[1] = channels[0];
  ValueId x = c.cast(n.id(0), t), own[2];
  FUSEC_TRY(ValueId mean, c.reduce(OpKind::ReduceMean, x, axes));
  own[0] = n.reshape(mean, channels);
  FUSEC_TRY(ValueId off, c.binary(OpKind::Sub, x, n.reshape(own[0], along)));
  FUSEC_TRY(ValueId square, c.binary(OpKind::Mul, off, off));
  FUSEC_TRY(ValueId variance, c.reduce(OpKind::ReduceMean, square, axes));
  own[1] = n.reshape(variance, channels);
  n.result(0, c.like(OpKind::BatchNormalization, {n.id(0), n.id(1), n.id(2), own[0], own[1]},
                     {{"epsilon", n.attrFloat("epsilon", kEpsilon)}}));
  const double momentum = n.attrFloat("momentum", static_cast<double>(0.9f));
  for (size_t i = 0; i < 2; ++i) {
    if (!n.wants(i + 1))
      continue;
    FUSEC_TRY(ValueId old, c.binary(OpKind::Mul, c.cast(n.id(3 + i), t), c.scalar(t, momentum)));
    FUSEC_TRY(ValueId now, c.binary(OpKind::Mul, own[i], c.scalar(t, 1 - momentum)));
    FUSEC_TRY(ValueId sum, c.binary(OpKind::Add, old, now));
    n.result(i + 1, c.cast(sum, n.type(3 + i)));
  }
  return success();
}

Status batchNorm(NodeImporter &n) {
  n.ignore("momentum");
  n.ignore("consumed_inputs");
  const bool trains = n.opset() >= 14 && n.attrInt("training_mode", 0) != 0;
  for (size_t i = 1; i < n.numOutputs(); ++i)
    if (n.wants(i) && n.opset() < 14)
      return n.unsupported("batch normalisation in training mode, for which more outputs than the "
                           "first stand");
  if (n.opset() < 7 && n.attrInt("is_test", 0) == 0)
    return n.unsupported("batch normalisation in training mode (is_test = 0)");
  if (n.opset() < 9 && n.attrInt("spatial", 1) == 0)
    return n.unsupported("batch normalisation with spatial = 0");
  if (trains)
    return batchNormOfBatch(n);
  return n.finish(OpKind::BatchNormalization, n.ids());
}

Status groupNorm(NodeImporter &n) {
  n.ignore("stash_type");
  int64_t groups = n.attrInt("num_groups");
  if (n.rank(0) < 3)
    return n.mismatch("the data must have rank 3 or more");
  if (!n.shape(0)[1].isConst()) {
    if (n.opset() >= 21 && n.rank(1) == 1 && n.shape(1)[0].isConst())
      FUSEC_CHECK(n.sameDim(n.shape(0)[1], n.shape(1)[0], "the channels of data and scale"));
    return n.needsFixed("the number of channels must be fixed", {n.shape(0)[1]});
  }
  int64_t channels = n.shape(0)[1].constValue();
  if (groups < 1 || channels % groups)
    return n.fail(Diag::BadAttribute, "num_groups must divide the number of channels");
  std::vector<ValueId> in = n.ids();
  // Opset 18 has one scale and bias a group.
  for (size_t i = 1; i < 3 && n.opset() < 21 && groups != channels; ++i) {
    FUSEC_CHECK(vectorOf(n, i, DimExpr(groups), "scale and bias"));
    ValueId column = n.reshape(in[i], {DimExpr(groups), DimExpr(1)});
    ValueId rows = Compose(n).expand(column, {DimExpr(groups), DimExpr(channels / groups)});
    in[i] = n.reshape(rows, {DimExpr(channels)});
  }
  return n.finish(OpKind::GroupNormalization, std::move(in));
}

Status instanceNorm(NodeImporter &n) {
  n.ignore("consumed_inputs");
  return n.finish(OpKind::InstanceNormalization, n.ids());
}

Status layerNorm(NodeImporter &n) {
  if (n.attrInt("stash_type", 1) != 1)
    return n.unsupported("a stash_type other than float32");
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", -1), n.rank(0)));
  return n.finish(*parseOpKind(n.op()), n.ids(), {{"axis", axis}});
}

Status lpNorm(NodeImporter &n) {
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", -1), n.rank(0)));
  return n.finish(OpKind::LpNormalization, {n.id(0)}, {{"axis", axis}});
}

Status meanVariance(NodeImporter &n) {
  FUSEC_TRY(std::vector<int64_t> axes, n.axes(n.attrInts("axes", {0, 2, 3}), n.rank(0)));
  return n.finish(OpKind::MeanVarianceNormalization, {n.id(0)}, {{"axes", axes}});
}

constexpr OpRow kRows[] = {
    {"BatchNormalization", 1, 13, 5, 5, 5, batchNorm, "inference only"},
    {"BatchNormalization", 14, kNewestOpset, 5, 5, 3, batchNorm},
    {"GroupNormalization", 18, kNewestOpset, 3, 3, 1, groupNorm},
    {"InstanceNormalization", 1, kNewestOpset, 3, 3, 1, instanceNorm},
    {"LRN", 1, kNewestOpset, 1, 1, 1, sameOperator},
    {"LayerNormalization", 17, kNewestOpset, 2, 3, 3, layerNorm},
    {"LpNormalization", 1, kNewestOpset, 1, 1, 1, lpNorm},
    {"MeanVarianceNormalization", 9, kNewestOpset, 1, 1, 1, meanVariance},
    {"RMSNormalization", 23, kNewestOpset, 2, 2, 1, layerNorm},
};

} // namespace

std::span<const OpRow> normalisationsOps() { return kRows; }

} // namespace fusec
