#include "Onnx/OpTable.h"
#include "Onnx/Import.h"

#include <map>

namespace fusec {

const std::vector<OpFamily> &opFamilies() {
  static const std::vector<OpFamily> families = {
      {"Element-wise", elementwiseOps()},
      {"Conversions", convertOps()},
      {"Reductions and softmax", reduceOps()},
      {"Contractions", matMulOps()},
      {"Attention", attentionOps()},
      {"Convolutions", convOps()},
      {"Pools", poolOps()},
      {"Normalisations", normOps()},
      {"Data movement", movementOps()},
      {"Slices and pads", sliceOps()},
      {"Gather, scatter, order", gatherOps()},
      {"Resampling", resizeOps()},
      {"Grids and regions", samplingOps()},
      {"Signals", signalOps()},
      {"Text", textOps()},
      {"Recurrent", recurrentOps()},
      {"Control flow", controlFlowOps()},
      {"Quantisation", quantOps()},
      {"Generators", generatorOps()},
      {"Losses", lossOps()},
      {"Attention", previewOps(), "ai.onnx.preview"},
      {"Quantised", quantisedOps(), "com.microsoft"},
      {"Quantised", microsoftQuantOps(), "com.microsoft"},
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
