#include "Onnx/OpTable.h"

// Losses and Det.

namespace fusec {
namespace {

/// x [N, C, d...], target [N, d...], weight? [C].
Status loss(NodeImporter &n) {
  Attributes a;
  if (n.hasAttribute("ignore_index"))
    a.emplace("ignore_index", n.attrInt("ignore_index"));
  return n.finish(*parseOpKind(n.op()), n.ids(), std::move(a));
}

constexpr OpRow kRows[] = {
    {"Det", 11, kNewestOpset, 1, 1, 1, sameOperator},
    {"NegativeLogLikelihoodLoss", 12, kNewestOpset, 2, 3, 1, loss},
    {"SoftmaxCrossEntropyLoss", 12, kNewestOpset, 2, 3, 2, loss},
};

} // namespace

std::span<const OpRow> miscOps() { return kRows; }

} // namespace fusec
