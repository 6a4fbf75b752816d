#pragma once
#include "Onnx/Compose.h"

namespace fusec {

/// An activation of a recurrent or fused operator by its Graph name, with the numbers that it takes (0: none).
struct NamedActivation {
  std::string name;
  double alpha = 0, beta = 0;
  Result<ValueId> operator()(NodeImporter &n, ValueId x) const;
};

/// The activations that `names` lists, whose case does not count. Those that take an alpha or a beta consume the next
/// of `alphas` and `betas`. Where these have run out, ONNX has a default for each function (`defaults`), ONNX Runtime
/// for LeakyRelu, HardSigmoid and Elu alone: the others are refused.
Result<std::vector<NamedActivation>> namedActivations(NodeImporter &n,
                                                      const std::vector<std::string> &names,
                                                      const std::vector<double> &alphas,
                                                      const std::vector<double> &betas,
                                                      bool defaults);

} // namespace fusec
