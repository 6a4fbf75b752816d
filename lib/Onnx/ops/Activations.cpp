#include "Onnx/ops/Activations.h"

#include "Support/Diag.h"

#include <cctype>

namespace fusec {

std::string activationName(const std::string &given) {
  static const char *const names[] = {
      "Relu",       "Tanh",        "Sigmoid", "Affine",   "LeakyRelu", "ThresholdedRelu",
      "ScaledTanh", "HardSigmoid", "Elu",     "Softsign", "Softplus"};
  for (const char *name : names) {
    std::string candidate = name;
    bool same = candidate.size() == given.size();
    for (size_t i = 0; same && i < given.size(); ++i)
      same = std::tolower(static_cast<unsigned char>(given[i])) ==
             std::tolower(static_cast<unsigned char>(candidate[i]));
    if (same)
      return candidate;
  }
  return "";
}

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
                                                      const std::vector<double> &betas) {
  struct Row {
    std::string_view name;
    bool hasAlpha, hasBeta;
    std::optional<double> alpha, beta; // defaults
  };
  static const Row rows[] = {{"Affine", true, true, {}, {}},
                             {"LeakyRelu", true, false, static_cast<double>(0.01f), {}},
                             {"ThresholdedRelu", true, false, {}, {}},
                             {"ScaledTanh", true, true, {}, {}},
                             {"HardSigmoid", true, true, static_cast<double>(0.2f), 0.5},
                             {"Elu", true, false, 1.0, {}}};
  size_t nextAlpha = 0, nextBeta = 0;
  std::vector<NamedActivation> list;
  for (const std::string &given : names) {
    NamedActivation a{activationName(given)};
    if (a.name.empty())
      return n.fail(Diag::BadAttribute, "activation '" + given + "' does not exist");
    for (const Row &row : rows) {
      if (row.name != a.name)
        continue;
      auto take = [&](const char *key, const std::vector<double> &values, size_t &next,
                      std::optional<double> otherwise) -> Result<double> {
        if (next < values.size())
          return values[next++];
        if (!otherwise)
          return n.fail(Diag::BadAttribute, "activation '" + a.name + "' needs a value of " + key +
                                                ", which has too few");
        return *otherwise;
      };
      if (row.hasAlpha) {
        FUSEC_TRY(a.alpha, take("activation_alpha", alphas, nextAlpha, row.alpha));
      }
      if (row.hasBeta) {
        FUSEC_TRY(a.beta, take("activation_beta", betas, nextBeta, row.beta));
      }
    }
    list.push_back(std::move(a));
  }
  return list;
}

} // namespace fusec
