#include "Onnx/Compose.h"
#include "Onnx/DimTools.h"
#include "Onnx/OpTable.h"

#include <numeric>

// Normalisations. Statistics are computed in float32 (stash_type 1), the only form in use.

namespace fusec {
namespace {

constexpr double kEpsilon = static_cast<double>(1e-5f);

Status vectorOf(NodeImporter &n, size_t i, const DimExpr &size, const char *what) {
  if (!n.has(i))
    return success();
  if (n.shape(i) != Shape{size})
    return n.mismatch(std::string(what) + " must be a vector of " + size.str(n.symbols()),
                      n.shape(i), {size});
  return success();
}

/// Opset 14's training mode: the batch's own mean and variance, computed in f32 or wider, and what becomes of the
/// running ones.
Status batchNormOfBatch(NodeImporter &n) {
  Compose c(n);
  const DType t = n.type(0) == DType::F64 ? DType::F64 : DType::F32;
  const Shape data = n.shape(0);
  std::vector<int64_t> axes;
  Shape channels{n.shape(1)[0]}, along(data.size(), DimExpr(1));
  for (size_t d = 0; d < data.size(); ++d)
    if (d != 1)
      axes.push_back(static_cast<int64_t>(d));
  if (data.size() > 1)
    along[1] = channels[0];
  auto mean = [&](ValueId x) {
    return n.emitOne(OpKind::ReduceMean, {x}, {{"axes", axes}, {"keepdims", int64_t(0)}}, t,
                     data.size() > 1 ? channels : Shape{});
  };
  ValueId x = c.cast(n.id(0), t), own[2] = {n.reshape(mean(x), channels), kNoValue};
  FUSEC_TRY(ValueId off, c.binary(OpKind::Sub, x, n.reshape(own[0], along)));
  FUSEC_TRY(ValueId square, c.binary(OpKind::Mul, off, off));
  own[1] = n.reshape(mean(square), channels);
  ValueId y = n.emitOne(OpKind::BatchNormalization, {n.id(0), n.id(1), n.id(2), own[0], own[1]},
                        {{"epsilon", n.attrFloat("epsilon", kEpsilon)}}, n.type(0), data);
  n.result(0, y);
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
  if (n.rank(0) < 1)
    return n.mismatch("the data must have channels");
  DimExpr channels = n.rank(0) > 1 ? n.shape(0)[1] : DimExpr(1);
  for (size_t i = 1; i < 5; ++i)
    FUSEC_CHECK(vectorOf(n, i, channels, "scale, bias, mean and variance"));
  if (trains)
    return batchNormOfBatch(n);
  return n.finish(OpKind::BatchNormalization, n.ids(),
                  {{"epsilon", n.attrFloat("epsilon", kEpsilon)}}, {{n.type(0), n.shape(0)}});
}

Status groupNorm(NodeImporter &n) {
  n.ignore("stash_type");
  int64_t groups = n.attrInt("num_groups");
  if (n.rank(0) < 3)
    return n.mismatch("the data must have rank 3 or more");
  if (!n.shape(0)[1].isConst())
    return n.needsFixed("the number of channels must be fixed", {n.shape(0)[1]});
  int64_t channels = n.shape(0)[1].constValue();
  if (groups < 1 || channels % groups)
    return n.fail(Diag::BadAttribute, "num_groups must divide the number of channels");
  std::vector<ValueId> in = n.ids();
  for (size_t i = 1; i < 3; ++i) {
    // Opset 18 has one scale and bias a group.
    bool perGroup = n.opset() < 21;
    FUSEC_CHECK(vectorOf(n, i, DimExpr(perGroup ? groups : channels), "scale and bias"));
    if (!perGroup || groups == channels)
      continue;
    Shape wide{DimExpr(groups), DimExpr(channels / groups)};
    ValueId column = n.reshape(in[i], {DimExpr(groups), DimExpr(1)});
    ValueId rows = n.emitOne(OpKind::Expand, {column, n.shapeOperand(wide)}, {}, n.type(i), wide);
    in[i] = n.reshape(rows, {DimExpr(channels)});
  }
  return n.finish(OpKind::GroupNormalization, std::move(in),
                  {{"epsilon", n.attrFloat("epsilon", kEpsilon)}, {"num_groups", groups}},
                  {{n.type(0), n.shape(0)}});
}

Status instanceNorm(NodeImporter &n) {
  n.ignore("consumed_inputs");
  if (n.rank(0) < 3)
    return n.mismatch("the data must have rank 3 or more");
  for (size_t i = 1; i < 3; ++i)
    FUSEC_CHECK(vectorOf(n, i, n.shape(0)[1], "scale and bias"));
  return n.finish(OpKind::InstanceNormalization, n.ids(),
                  {{"epsilon", n.attrFloat("epsilon", kEpsilon)}}, {{n.type(0), n.shape(0)}});
}

Status layerNorm(NodeImporter &n) {
  bool rms = n.op() == "RMSNormalization";
  if (n.attrInt("stash_type", 1) != 1)
    return n.unsupported("a stash_type other than float32");
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", -1), n.rank(0)));
  Attributes a{{"axis", axis}, {"epsilon", n.attrFloat("epsilon", kEpsilon)}};
  for (size_t i = 1; i < n.numInputs(); ++i) {
    if (!n.has(i))
      continue;
    FUSEC_TRY(Shape all, n.broadcast({&n.shape(0), &n.shape(i)}));
    if (all != n.shape(0))
      return n.mismatch("scale and bias must broadcast to the data's shape", n.shape(0), all);
  }
  std::vector<TypedShape> outs{{n.type(0), n.shape(0)}};
  if (!rms && (n.wants(1) || n.wants(2))) {
    Shape stats = n.shape(0);
    for (size_t i = static_cast<size_t>(axis); i < stats.size(); ++i)
      stats[i] = DimExpr(1);
    outs.push_back({DType::F32, stats});
    outs.push_back({DType::F32, stats});
  }
  return n.finish(*parseOpKind(n.op()), n.ids(), std::move(a), std::move(outs));
}

Status lpNorm(NodeImporter &n) {
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", -1), n.rank(0)));
  int64_t p = n.attrInt("p", 2);
  if (p != 1 && p != 2)
    return n.fail(Diag::BadAttribute, "p must be 1 or 2");
  return n.finish(OpKind::LpNormalization, {n.id(0)}, {{"axis", axis}, {"p", p}},
                  {{n.type(0), n.shape(0)}});
}

Status lrn(NodeImporter &n) {
  int64_t size = n.attrInt("size");
  if (size < 1 || n.rank(0) < 2)
    return n.fail(Diag::BadAttribute, "size must be at least 1 and the data have channels");
  return n.finish(OpKind::LRN, {n.id(0)},
                  {{"alpha", n.attrFloat("alpha", static_cast<double>(1e-4f))},
                   {"beta", n.attrFloat("beta", 0.75)},
                   {"bias", n.attrFloat("bias", 1.0)},
                   {"size", size}},
                  {{n.type(0), n.shape(0)}});
}

Status meanVariance(NodeImporter &n) {
  FUSEC_TRY(std::vector<int64_t> axes, n.axes(n.attrInts("axes", {0, 2, 3}), n.rank(0)));
  return n.finish(OpKind::MeanVarianceNormalization, {n.id(0)}, {{"axes", axes}},
                  {{n.type(0), n.shape(0)}});
}

constexpr OpRow kRows[] = {
    {"BatchNormalization", 1, 13, 5, 5, 5, batchNorm, "inference only"},
    {"BatchNormalization", 14, 28, 5, 5, 3, batchNorm},
    {"GroupNormalization", 18, 28, 3, 3, 1, groupNorm},
    {"InstanceNormalization", 1, 28, 3, 3, 1, instanceNorm},
    {"LRN", 1, 28, 1, 1, 1, lrn},
    {"LayerNormalization", 17, 28, 2, 3, 3, layerNorm},
    {"LpNormalization", 1, 28, 1, 1, 1, lpNorm},
    {"MeanVarianceNormalization", 9, 28, 1, 1, 1, meanVariance},
    {"RMSNormalization", 23, 28, 2, 2, 1, layerNorm},
};

} // namespace

std::span<const OpRow> normOps() { return kRows; }

} // namespace fusec
