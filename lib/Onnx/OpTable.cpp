#include "Onnx/OpTable.h"
#include "Onnx/Import.h"

#include <map>

namespace fusec {

Status sameOperator(NodeImporter &n) { return n.finish(*parseOpKind(n.op()), n.ids()); }

const std::vector<OpFamily> &opFamilies() {
  static const std::vector<OpFamily> families = {
      {"Element-wise", elementwiseOps()},
      {"Conversions", elementwiseCastOps()},
      {"Reductions and softmax", reductionsOps()},
      {"Contractions", contractionsOps()},
      {"Attention", attentionOps()},
      {"Convolutions", windowsConvOps()},
      {"Pools", windowsPoolOps()},
      {"Normalisations", normalisationsOps()},
      {"Data movement", movementOps()},
      {"Slices and pads", slicesOps()},
      {"Gather, scatter, order", gathersOps()},
      {"Resampling", imagesOps()},
      {"Grids and regions", imagesSamplingOps()},
      {"Signals", signalOps()},
      {"Text", textOps()},
      {"Recurrent", recurrentOps()},
      {"Control flow", controlFlowIfOps()},
      {"Control flow", controlFlowOps()},
      {"Quantisation", quantisationOps()},
      {"Generators", generatorOps()},
      {"Losses", miscOps()},
      {"Attention", previewOps(), "ai.onnx.preview"},
      {"Quantised", quantisedOps(), "com.microsoft"},
      {"Quantised", microsoftQuantisationOps(), "com.microsoft"},
      {"Quantised contractions", quantisedMatMulOps(), "com.microsoft"},
      {"Quantised LSTM", quantisedRecurrentOps(), "com.microsoft"},
      {"Quantised attention", quantisedAttentionOps(), "com.microsoft"},
      {"Fused", fusedOps(), "com.microsoft"},
  };
  return families;
}

const OpRow *findOpRow(std::string_view domain, std::string_view name, int opset) {
  using Key = std::pair<std::string_view, std::string_view>;
  static const auto index = [] {
    std::multimap<Key, const OpRow *> map;
    for (const OpFamily &family : opFamilies())
      for (const OpRow &row : family.rows)
        map.emplace(Key(family.domain, row.name), &row);
    return map;
  }();
  auto [begin, end] = index.equal_range(Key(domain, name));
  for (auto it = begin; it != end; ++it)
    if (opset >= it->second->minOpset && opset <= it->second->maxOpset)
      return it->second;
  return nullptr;
}

std::string supportedOperatorsMarkdown() {
  std::string text = "| family | operator | opsets | remarks |\n|---|---|---|---|\n";
  for (const OpFamily &family : opFamilies())
    for (const OpRow &row : family.rows)
      text += "| " + std::string(family.title) + " | " +
              (family.domain.empty() ? "" : std::string(family.domain) + "::") +
              std::string(row.name) + " | " + std::to_string(row.minOpset) + "-" +
              std::to_string(row.maxOpset) + " | " + std::string(row.note) + " |\n";
  return text;
}

} // namespace fusec
