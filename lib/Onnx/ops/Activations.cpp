#include "Onnx/ops/Activations.h"

#include "Support/Diag.h"

#include <algorithm>
#include <cctype>

namespace fusec {

namespace {

struct Row {
  std::string_view name;
  bool hasAlpha = false, hasBeta = false;
  double alpha = 0, beta = 0; // defaults
  bool isOnnxAlone = false;   // has the defaults
};
constexpr Row kActivations[] = {{"Relu"},
                                {"Tanh"},
                                {"Sigmoid"},
                                {"Softsign"},
                                {"Softplus"},
                                {"Affine", true, true, 1, 0, true},
                                {"ScaledTanh", true, true, 1, 1, true},
                                {"ThresholdedRelu", true, false, 1, 0, true},
                                {"LeakyRelu", true, false, 0.01},
                                {"HardSigmoid", true, true, 0.2, 0.5},
                                {"Elu", true, false, 1}};

bool sameLetter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

} // namespace

Result<ValueId> NamedActivation::operator()(NodeImporter &n, ValueId x) const {
  Compose c(n);
  DType type = n.typeOf(x);
  auto number = [&](double v) { return c.scalar(type, v); };
  auto with = [&](OpKind op, Attributes attrs) { return c.like(op, {x}, std::move(attrs)); };
  if (name == "Affine") {
    FUSEC_TRY(ValueId scaled, c.binary(OpKind::Mul, x, number(alpha)));
    return c.binary(OpKind::Add, scaled, number(beta));
  }
  if (name == "ScaledTanh") {
    FUSEC_TRY(ValueId scaled, c.binary(OpKind::Mul, x, number(beta)));
    return c.binary(OpKind::Mul, c.unary(OpKind::Tanh, scaled), number(alpha));
  }
  if (name == "LeakyRelu")
    return with(OpKind::LeakyRelu, {{"alpha", alpha}});
  if (name == "ThresholdedRelu")
    return with(OpKind::ThresholdedRelu, {{"alpha", alpha}});
  if (name == "HardSigmoid")
    return with(OpKind::HardSigmoid, {{"alpha", alpha}, {"beta", beta}});
  if (name == "Elu")
    return with(OpKind::Elu, {{"alpha", alpha}});
  return with(*parseOpKind(name), {}); // Relu, Tanh, Sigmoid, Softsign, Softplus
}

Result<std::vector<NamedActivation>> namedActivations(NodeImporter &n,
                                                      const std::vector<std::string> &names,
                                                      const std::vector<double> &alphas,
                                                      const std::vector<double> &betas,
                                                      bool defaults) {
  size_t nextAlpha = 0, nextBeta = 0;
  std::vector<NamedActivation> list;
  for (const std::string &given : names) {
    const Row *row =
        std::find_if(std::begin(kActivations), std::end(kActivations), [&](const Row &r) {
          return std::equal(r.name.begin(), r.name.end(), given.begin(), given.end(), sameLetter);
        });
    if (row == std::end(kActivations))
      return n.fail(Diag::BadAttribute, "activation '" + given + "' does not exist");
    NamedActivation a{std::string(row->name)};
    auto take = [&](const char *key, const std::vector<double> &values, size_t &next,
                    double otherwise) -> Result<double> {
      if (next < values.size())
        return values[next++];
      if (row->isOnnxAlone && !defaults)
        return n.fail(Diag::BadAttribute, "activation '" + a.name + "' needs a value of " + key +
                                              ", which has too few");
      return otherwise;
    };
    if (row->hasAlpha) {
      FUSEC_TRY(a.alpha, take("activation_alpha", alphas, nextAlpha, row->alpha));
    }
    if (row->hasBeta) {
      FUSEC_TRY(a.beta, take("activation_beta", betas, nextBeta, row->beta));
    }
    list.push_back(std::move(a));
  }
  return list;
}

} // namespace fusec
