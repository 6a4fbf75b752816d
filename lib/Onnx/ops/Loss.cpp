#include "Onnx/OpTable.h"
#include "Support/Diag.h"

// Losses and Det.

namespace fusec {
namespace {

/// x [N, C, d...], target [N, d...], weight? [C].
Status loss(NodeImporter &n) {
  if (n.rank(0) < 2 || n.rank(1) != n.rank(0) - 1)
    return n.mismatch("the target must have one axis less than the data");
  for (size_t i = 0; i < n.shape(1).size(); ++i) {
    FUSEC_TRY([[maybe_unused]] DimExpr d,
              n.sameDim(n.shape(0)[i ? i + 1 : 0], n.shape(1)[i], "data and target sizes"));
  }
  if (n.has(2) && n.shape(2) != Shape{n.shape(0)[1]})
    return n.mismatch("there must be one weight a class", n.shape(2), {n.shape(0)[1]});
  std::string reduction = n.attrString("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return n.fail(Diag::BadAttribute, "reduction must be mean, sum or none");
  Attributes a{{"reduction", reduction}};
  if (n.hasAttribute("ignore_index"))
    a.emplace("ignore_index", n.attrInt("ignore_index"));
  std::vector<TypedShape> outs{{n.type(0), reduction == "none" ? n.shape(1) : Shape{}}};
  if (n.wants(1))
    outs.push_back({n.type(0), n.shape(0)});
  return n.finish(*parseOpKind(n.op()), n.ids(), std::move(a), std::move(outs));
}

Status det(NodeImporter &n) {
  if (n.rank(0) < 2)
    return n.mismatch("the operand must be at least a matrix");
  Shape out(n.shape(0).begin(), n.shape(0).end() - 2);
  FUSEC_TRY([[maybe_unused]] DimExpr d,
            n.sameDim(n.shape(0)[out.size()], n.shape(0)[out.size() + 1], "rows and columns"));
  return n.finish(OpKind::Det, {n.id(0)}, {}, {{n.type(0), std::move(out)}});
}

constexpr OpRow kRows[] = {
    {"Det", 11, 28, 1, 1, 1, det},
    {"NegativeLogLikelihoodLoss", 12, 28, 2, 3, 1, loss},
    {"SoftmaxCrossEntropyLoss", 12, 28, 2, 3, 2, loss},
};

} // namespace

std::span<const OpRow> lossOps() { return kRows; }

} // namespace fusec
