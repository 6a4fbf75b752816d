#pragma once
#include "Onnx/Compose.h"

namespace fusec {

/// The name of an activation of a recurrent operator as Graph spells it; names are case-insensitive, "" means unknown.
std::string activationName(const std::string &given);

/// An activation by its Graph name with the numbers that it takes.
struct NamedActivation {
  std::string name;
  double alpha = 0, beta = 0;
  Result<ValueId> operator()(NodeImporter &n, ValueId x) const;
};

/// The activations that `names` lists. Those that take an alpha or a beta consume the next of `alphas` and `betas`;
/// where these have run out, LeakyRelu, HardSigmoid and Elu have defaults, the others are refused.
Result<std::vector<NamedActivation>> namedActivations(NodeImporter &n,
                                                      const std::vector<std::string> &names,
                                                      const std::vector<double> &alphas,
                                                      const std::vector<double> &betas);

} // namespace fusec
