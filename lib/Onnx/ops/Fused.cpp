#include "Onnx/OpTable.h"
#include "Onnx/ops/Activations.h"
#include "Support/Diag.h"

// What ONNX Runtime's optimiser writes for floats, domain com.microsoft: operators of ONNX with a bias, a summand or
// an activation.

namespace fusec {
namespace {

/// The importer of the operator `name` of ONNX, applied to this node. Its function must not ask for the opset, which
/// is that of com.microsoft here.
Status standard(NodeImporter &n, std::string_view name) {
  constexpr int opset = 13;
  return findOpRow("", name, opset)->import(n);
}

Status checkFloats(NodeImporter &n) {
  for (size_t i = 0; i < n.numInputs(); ++i)
    if (n.has(i) && (!isFloat(n.type(i)) || n.type(i) != n.type(0)))
      return n.mismatch("the operands must have one float type");
  return success();
}

Status checkVector(NodeImporter &n, size_t i, const DimExpr &size, const char *what) {
  if (n.has(i) && n.shape(i) != Shape{size})
    return n.mismatch(std::string(what) + " must be a vector of " + size.str(n.symbols()),
                      n.shape(i), {size});
  return success();
}

/// Gelu(x), or Gelu(x + input 1).
Status gelu(NodeImporter &n, const char *approximate) {
  FUSEC_CHECK(checkFloats(n));
  ValueId x = n.id(0);
  if (n.has(1)) {
    if (n.rank(0) == 0)
      return n.mismatch("the data must have at least one axis");
    FUSEC_CHECK(checkVector(n, 1, n.shape(0).back(), "the bias"));
    FUSEC_TRY(x, Compose(n).binary(OpKind::Add, x, n.id(1)));
  }
  n.result(0, Compose(n).like(OpKind::Gelu, {x}, {{"approximate", std::string(approximate)}}));
  return success();
}
Status exactGelu(NodeImporter &n) { return gelu(n, "none"); }
Status fastGelu(NodeImporter &n) { return gelu(n, "tanh"); }

Status quickGelu(NodeImporter &n) {
  FUSEC_CHECK(checkFloats(n));
  n.result(0, Compose(n).like(OpKind::Swish, {n.id(0)},
                              {{"alpha", n.attrFloat("alpha", static_cast<double>(1.702f))}}));
  return success();
}

constexpr double kEpsilon = static_cast<double>(1e-12f);

/// Binds a normalisation of `sum` over its last axis to outputs 0 to 2 and `sum` to output 3. Inputs: gamma at
/// `gamma`, beta behind it where the operator has one.
Status normalised(NodeImporter &n, ValueId sum, size_t gamma, bool centred) {
  const Shape shape = n.shapeOf(sum);
  auto axis = static_cast<int64_t>(shape.size()) - 1;
  FUSEC_CHECK(checkVector(n, gamma, shape.back(), "gamma"));
  Attributes attrs{{"axis", axis}, {"epsilon", n.attrFloat("epsilon", kEpsilon)}};
  if (!centred) {
    n.result(0, Compose(n).like(OpKind::RMSNormalization, {sum, n.id(gamma)}, std::move(attrs)));
    return success();
  }
  FUSEC_CHECK(checkVector(n, gamma + 1, shape.back(), "beta"));
  std::vector<ValueId> in{sum, n.id(gamma)};
  if (n.has(gamma + 1))
    in.push_back(n.id(gamma + 1));
  FUSEC_TRY(std::vector<ValueId> made, n.emit(OpKind::LayerNormalization, in, std::move(attrs)));
  for (size_t i = 0; i < 3; ++i)
    n.result(i, made[i]);
  return success();
}

/// Inputs: x, skip, gamma, beta (not of the simplified form), bias. skip may lack the batch or have one.
Status skipNorm(NodeImporter &n, bool centred) {
  Compose c(n);
  FUSEC_CHECK(checkFloats(n));
  if (n.rank(0) != 2 && n.rank(0) != 3)
    return n.mismatch("the data must have rank 2 or 3");
  FUSEC_CHECK(n.sizes().broadcastsTo(n.shape(1), n.shape(0),
                                     "the summand must broadcast to the data's shape"));
  FUSEC_TRY(ValueId sum, c.binary(OpKind::Add, n.id(0), n.id(1)));
  size_t bias = centred ? 4 : 3;
  FUSEC_CHECK(checkVector(n, bias, n.shape(0).back(), "the bias"));
  if (n.has(bias)) {
    FUSEC_TRY(sum, c.binary(OpKind::Add, sum, n.id(bias)));
  }
  FUSEC_CHECK(normalised(n, sum, 2, centred));
  n.result(3, sum);
  return success();
}
Status skipLayerNorm(NodeImporter &n) { return skipNorm(n, true); }
Status skipRmsNorm(NodeImporter &n) { return skipNorm(n, false); }

/// activation(x) by the attributes `activation`, and activation_alpha and _beta or activation_params.
Status activated(NodeImporter &n, const std::string &name, const std::vector<double> &numbers) {
  if (name.empty() || !n.wants(0))
    return success();
  ValueId x = n.results[0];
  if (name == "Clip") {
    if (numbers.size() != 2)
      return n.fail(Diag::BadAttribute, "activation 'Clip' needs a lowest and a highest value");
    std::vector<ValueId> in{x};
    for (double v : numbers)
      in.push_back(n.scalarValue(n.typeOf(x), v));
    n.result(0, Compose(n).like(OpKind::Clip, std::move(in)));
    return success();
  }
  std::vector<double> alphas, betas;
  if (!numbers.empty())
    alphas.push_back(numbers[0]);
  if (numbers.size() > 1)
    betas.push_back(numbers[1]);
  FUSEC_TRY(std::vector<NamedActivation> list,
            namedActivations(n, {name}, alphas, betas, /*defaults=*/false));
  FUSEC_TRY(ValueId y, list[0](n, x));
  n.result(0, y);
  return success();
}

Status fusedGemm(NodeImporter &n) {
  FUSEC_CHECK(checkFloats(n));
  FUSEC_CHECK(standard(n, "Gemm"));
  std::vector<double> numbers;
  if (!n.hasAttribute("activation_alpha") && n.hasAttribute("activation_beta"))
    return n.unsupported("attribute 'activation_beta' without 'activation_alpha'");
  for (const char *key : {"activation_alpha", "activation_beta"})
    if (n.hasAttribute(key))
      numbers.push_back(n.attrFloat(key, 0.0));
  if (n.hasAttribute("activation_gamma"))
    return n.unsupported("attribute 'activation_gamma'");
  return activated(n, n.attrString("activation", ""), numbers);
}

/// Inputs: x, weights, bias?, summand?. The summand is added before the activation.
Status fusedConv(NodeImporter &n) {
  FUSEC_CHECK(checkFloats(n));
  FUSEC_CHECK(standard(n, "Conv"));
  if (n.has(3) && n.wants(0)) {
    FUSEC_CHECK(n.sizes().sameShape(n.shape(3), n.shapeOf(n.results[0]),
                                    "the summand must have the convolution's shape"));
    FUSEC_TRY(ValueId sum, Compose(n).binary(OpKind::Add, n.results[0], n.id(3)));
    n.result(0, sum);
  }
  return activated(n, n.attrString("activation", ""), n.attrFloats("activation_params"));
}

constexpr OpRow kRows[] = {
    {"BiasGelu", 1, 1, 2, 2, 1, exactGelu},
    {"FastGelu", 1, 1, 1, 2, 1, fastGelu},
    {"FusedConv", 1, 1, 2, 4, 1, fusedConv},
    {"FusedGemm", 1, 1, 2, 3, 1, fusedGemm},
    {"Gelu", 1, 1, 1, 1, 1, exactGelu},
    {"QuickGelu", 1, 1, 1, 1, 1, quickGelu},
    {"SkipLayerNormalization", 1, 1, 3, 5, 4, skipLayerNorm},
    {"SkipSimplifiedLayerNormalization", 1, 1, 3, 4, 4, skipRmsNorm, "no mean, no deviation"},
};

} // namespace

std::span<const OpRow> fusedOps() { return kRows; }

} // namespace fusec
