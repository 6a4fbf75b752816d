// An operator of Ops.def has a place in every stage: what it lacks is named here, with the reason, or the test fails.
#include "Expr/Lower.h"
#include "Graph/CheckOperator.h"
#include "Onnx/NodeImporter.h"
#include "Onnx/OpTable.h"
#include "Reference/OpCall.h"
#include "Reference/RandomGraph.h"

#include <catch2/catch_all.hpp>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

using namespace fusec;

namespace {

struct Stage {
  std::string name; // and where what is missing belongs
  std::set<OpKind> has;
};

std::set<OpKind> operators(const std::function<bool(OpKind)> &wanted) {
  std::set<OpKind> found;
  for (size_t i = 0; i < kNumOpKinds; ++i)
    if (wanted(static_cast<OpKind>(i)))
      found.insert(static_cast<OpKind>(i));
  return found;
}

std::set<OpKind> generated() {
  std::set<OpKind> found;
  for (uint64_t seed = 1; seed <= 600; ++seed)
    for (const Node &n : makeRandomGraph(seed).graph.body.nodes)
      found.insert(n.op);
  return found;
}

/// Whether `text` has `word` between characters that no name has.
bool hasWord(const std::string &text, const std::string &word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    auto isOpen = [&](size_t i) { return i >= text.size() || !std::isalnum(text[i]); };
    if ((at == 0 || isOpen(at - 1)) && isOpen(at + word.size()))
      return true;
  }
  return false;
}

std::vector<Stage> stages() {
  std::ifstream file(FUSEC_SOURCE_DIR "/lib/Onnx/OPERATORS.md");
  std::stringstream listed;
  listed << file.rdbuf();
  auto name = [](OpKind op) { return std::string(info(op).name); };
  return {
      {"rule (lib/Graph/rules)", operators(hasRule)},
      {"import (lib/Onnx/ops)",
       operators([&](OpKind op) { return findOpRow("", name(op), kNewestOpset) != nullptr; })},
      {"lowering (lib/Expr/lower)", operators(hasLowering)},
      {"reference (lib/Reference/GraphOps)",
       operators([](OpKind op) { return referenceOp(op) != nullptr; })},
      {"random graphs (lib/Reference/Random)", generated()},
      {"list (lib/Onnx/OPERATORS.md)",
       operators([&](OpKind op) { return hasWord(listed.str(), name(op)); })},
  };
}

struct Gap {
  std::string stage; // how its name begins
  std::string reason;
  std::vector<OpKind> ops;
};

std::vector<Gap> acceptedGaps() {
  using enum OpKind;
  return {
      {"import", "it is Slice with other bounds", {SliceDynamic}},
      {"list", "it is Slice with other bounds", {SliceDynamic}},
      {"import",
       "the importer makes it of operators whose outputs' sizes depend on data",
       {DataSize, Chosen, KeptBoxes}},
      {"list",
       "the importer makes it of operators whose outputs' sizes depend on data",
       {DataSize, Chosen, KeptBoxes}},
      {"reference", "GraphInterpreter runs regions itself", {If, Loop, Scan}},
      {"reference", "GraphInterpreter gives symbols their values", {DataSize}},
      {"random", "the importer makes it where bounds are symbolic", {SliceDynamic}},
      {"random", "random graphs are flat", {If, Loop, Scan}},
      {"random",
       "random graphs have sizes that follow from their inputs' shapes",
       {DataSize, Chosen, KeptBoxes}},
      {"random",
       "it is made of sizes alone, which the importer folds",
       {Shape, Size, Range, ConstantOfShape, EyeLike, HannWindow, HammingWindow, BlackmanWindow}},
      {"random",
       "one step of rounding decides between whole numbers, which no bound of an error covers",
       {MatMulInteger, QLinearMatMul, ConvInteger, QLinearConv, QuantizeLinear, DequantizeLinear,
        DynamicQuantizeLinear, BitCast, IsInf, IsNaN, Hardmax}},
      {"random", "errors grow from step to step, without a bound", {LSTM, GRU, RNN, CumProd, Det}},
      {"random",
       "one that is drawn differs in its formula alone: unit tests of each stage compare it",
       {Acos,
        Acosh,
        Asin,
        Asinh,
        Celu,
        Cosh,
        Selu,
        Shrink,
        Sinh,
        Swish,
        Tan,
        ThresholdedRelu,
        Pow,
        PRelu,
        ReduceL2,
        ReduceLogSum,
        Gemm,
        Einsum,
        LpPool,
        GlobalAveragePool,
        GlobalMaxPool,
        GlobalLpPool,
        BatchNormalization,
        GroupNormalization,
        InstanceNormalization,
        LpNormalization,
        MeanVarianceNormalization,
        RMSNormalization,
        GatherND,
        ScatterND,
        TensorScatter,
        ReverseSequence,
        SpaceToDepth,
        NegativeLogLikelihoodLoss,
        SoftmaxCrossEntropyLoss}},
      {"random",
       "its attributes have more forms than a draw meets: ONNX's own cases and ONNX Runtime do",
       {ConvTranspose, Resize, Col2Im, GridSample, RoiAlign, LRN}},
  };
}

} // namespace

TEST_CASE("every operator has its place in every stage, or a reason to have none") {
  std::vector<Gap> accepted = acceptedGaps();
  for (const Stage &stage : stages()) {
    std::string missing, needless;
    for (size_t i = 0; i < kNumOpKinds; ++i) {
      const auto op = static_cast<OpKind>(i);
      const bool isAccepted = std::any_of(accepted.begin(), accepted.end(), [&](const Gap &gap) {
        return stage.name.starts_with(gap.stage) &&
               std::find(gap.ops.begin(), gap.ops.end(), op) != gap.ops.end();
      });
      const bool has = stage.has.count(op) != 0;
      if (!has && !isAccepted)
        missing += " " + std::string(info(op).name);
      if (has && isAccepted)
        needless += " " + std::string(info(op).name);
    }
    INFO(stage.name << ": missing:" << missing << "; accepted as missing, but there:" << needless);
    CHECK(missing + needless == "");
  }
}
