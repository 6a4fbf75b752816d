#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"
#include "Onnx/TestedInRun.h"

// Losses and Det.

namespace fusec {
namespace {

/// x [N, C, d...], target [N, d...], weight? [C].
Status loss(NodeImporter &n) {
  Attributes a;
  if (n.hasAttribute("ignore_index"))
    a.emplace("ignore_index", n.attrInt("ignore_index"));
  if (n.rank(0) >= 2) {
    Compose make(n);
    ValueId classes = make.cast(n.id(1), DType::I64);
    if (n.hasAttribute("ignore_index")) {
      const ValueId ignored = make.integer(n.attrInt("ignore_index"));
      FUSEC_TRY(const ValueId isIgnored, make.binary(OpKind::Equal, classes, ignored));
      FUSEC_TRY(classes, make.where(isIgnored, make.integer(0), classes));
    }
    FUSEC_CHECK(requireIndices(n, classes, 1));
  }
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
