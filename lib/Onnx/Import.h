#pragma once
#include "Graph/Graph.h"
#include "Graph/Passes.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace fusec {

/// One entry of `--shape x:[batch,3,224,224]`: a size or the name of a symbol.
using ShapeEntry = std::variant<int64_t, std::string>;

/// Bounds against hostile or runaway models; exceeding one is a LimitExceeded diagnostic.
struct Limits {
  int subgraphDepth = 32;
  int functionDepth = 100;
  int64_t functions = 10'000;
  int64_t nodes = 5'000'000; // after inlining
  int64_t rank = 64;
  int64_t nameBytes = 64 << 10;
  int64_t tensorBytes = int64_t(1) << 40; // declared; memory is taken only for data that is there
  int64_t modelBytes = int64_t(1) << 31;  // the wire format's own limit
};

struct ImportOptions {
  std::map<std::string, Symbol> dims; // range of a dim_param, from --dim
  std::map<std::string, std::vector<ShapeEntry>> shapes;
  /// Inputs that become constants: "sr=16000", "x=[1,2]", "x=@x.npy".
  std::vector<std::string> setInputs;
  bool constantInitialisers = false;    // no run may give those that are inputs too other values
  std::vector<std::string> markOutputs; // inner tensors that become outputs as well
  std::string outputPath; // a file that will be replaced: refused as external data; empty: none
  Limits limits;
  ConstantEvaluator evaluator; // folds small constant work when set
};

/// "batch=4", "batch=1..64" or "batch=1..64:8" (the value to tune for).
Status parseDimOption(std::string_view text, ImportOptions &options);
/// "x:1x3x224x224" or "x:[batch,3,224,224]". The last colon separates, so names may contain colons.
Status parseShapeOption(std::string_view text, ImportOptions &options);

/// Reads an ONNX model: checks its bytes, inlines functions, infers types and shapes, folds shape
/// arithmetic and removes dead code. Everything unsupported is reported in one run.
/// `warnings` takes what is wrong with the model and does not matter.
Result<Graph> importOnnx(const std::string &path, const ImportOptions &options,
                         Diagnostics *warnings = nullptr);

/// Reads a file that holds one TensorProto, or, where its name ends with .npy, an array of NumPy's. A bfloat16 is there
/// what the Python package ml_dtypes makes of it, two bytes of type V; where `wanted` is bf16, NumPy's own u16 is taken
/// as its bits.
Result<ConstantRef> readTensorFile(const std::string &path, std::optional<DType> wanted = {},
                                   const Limits &limits = {});

/// The operators that importOnnx accepts, as a Markdown table.
std::string supportedOperatorsMarkdown();

} // namespace fusec
