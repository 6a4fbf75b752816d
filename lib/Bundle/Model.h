#pragma once
#include "Bundle/DimCode.h"
#include "Support/DType.h"
#include "Support/Dim.h"
#include "Support/Guard.h"
#include "Support/SizeRules.h"
#include "fusec/bundle_format.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// What a bundle holds, as plain data: the writer takes it, the reader gives it back. Kernel ABI and meaning of
/// the fields: include/fusec/bundle_format.h.
namespace fusec::bundle {

enum class TensorKind : uint8_t { Input = 0, Constant = 1, Temp = 2, Output = 3 };

/// An input or output of the model.
struct Value {
  std::string name;
  DType type = DType::F32;
  std::vector<DimCode> shape;
  /// The default value of an input that a run may leave out: index into Model::weights; -1: none.
  int32_t weight = -1;
};

/// A name of the model for sizes of inputs that are `value`, over the symbols.
struct InferredDim {
  struct Place {
    int32_t input = 0, axis = 0; // an input of the model
  };
  std::string name;
  DimCode value;
  std::vector<Place> places;
};

using DimRule = SizeRuleOf<DimCode>;

/// An input that may lie where an output does (Expr/Caches.h). One that grows has room for rows along `axis` in the
/// tensors of each program, `inputRoom` and `outputRoom` of them, which the shapes of Value lack; else these are -1.
/// `kept` rows of the output are in place. All three are symbols with a definition.
struct Cache {
  int32_t input = 0, output = 0; // of the model
  int32_t axis = 0;
  SymbolId inputRoom = -1, outputRoom = -1, kept = -1;
  bool grows() const { return inputRoom >= 0; }
};

struct Tensor {
  std::string name;
  TensorKind kind = TensorKind::Temp;
  DType type = DType::F32;
  std::vector<DimCode> shape;
  int32_t weight = -1; // kind == Constant: index into Model::weights of equal type and byte size
  // kind == Temp: first and last step that touches it, in the numbering of Liveness.h. Filled by the writer.
  int32_t firstStep = -1, lastStep = -1;
};

struct Param {
  DType type = DType::F32;
  bool written = false; // the kernel writes it (it may read it too)
};

struct Kernel {
  std::string symbol;
  std::vector<DimCode> grids; // blocks of each phase
  std::vector<Param> params;
  std::vector<SymbolId> dims; // ascending
  int64_t scratchBytes = 0;   // CPU: scratch of a worker; GPU and sim: shared memory of a block
  int32_t units = 1, lanes = 1;
  std::vector<std::string> onnxNodes;
  bool gridBarrier = false; // GPU and sim: there is an entry for all phases too
  bool waits = false;       // phases of that entry wait for counters
  /// It does something else where a device holds all blocks of a phase at once.
  bool resident = false;
  // Phases that run again and again, roundsFirst to roundsLast (exclusive); none where these are equal.
  DimCode rounds;
  int32_t roundsFirst = 0, roundsLast = 0;
  /// GPU and sim: shared memory that a launch of each phase's entry gives a block, where that of the entry for all
  /// phases gives scratchBytes; empty: it is static in the image.
  std::vector<int64_t> dynamicShared;
  int64_t dynamicSharedOf(size_t phase) const {
    return dynamicShared.empty() ? 0 : dynamicShared[phase];
  }
  int64_t dynamicSharedOfAll() const { return dynamicShared.empty() ? 0 : scratchBytes; }
  int32_t sharedAlign = FUSEC_SHARED_ALIGN; // GPU and sim: of where a block's shared memory begins
  bool hasRounds() const { return roundsFirst != roundsLast; }
};

using Guard = GuardOf<DimCode>;

struct Variant {
  int32_t kernel = 0;
  std::vector<Guard> guards;
  std::vector<int32_t> arguments; // tensors, one a parameter
};

struct Copy {
  int32_t from = 0, to = 0; // equal type and byte size
};

enum class StepKind : uint8_t { Launch = 0, If = 1, Loop = 2, Size = 3, Where = 4 };

/// What the executor walks.
/// Launch: the first variant whose guards hold; the last one has none.
/// If:   thenSteps, thenCopies when the bool scalar `condition` holds, elseSteps, elseCopies otherwise.
/// Loop: copies `before`; while the trip bound (`tripCount`, i64 scalar, -1: none) and the condition
///       (`condition`, then `nextCondition` after each round; -1: true) allow: writes the round's number to
///       `iteration`, runs thenSteps, thenCopies; copies `after`.
/// Size: gives `symbol`, one of Model::dataSizes, the value of `tripCount`; the run ends where it is no allowed one.
///       Tensors whose shapes use the symbol have no memory before this step.
/// Where: thenSteps where all `guards` hold, which is known when shapes are set, else elseSteps.
struct Step {
  StepKind kind = StepKind::Launch;
  std::string name;
  std::vector<Variant> variants;
  std::vector<Guard> guards;
  int32_t condition = -1, tripCount = -1, iteration = -1, nextCondition = -1;
  SymbolId symbol = -1;
  std::vector<Step> thenSteps, elseSteps;
  std::vector<Copy> before, thenCopies, elseCopies, after;
};

enum class ImageKind : uint8_t { Elf = 0, Cubin = 1, Ptx = 2, CodeObject = 3 };

/// One form of a program's machine code. The runtime takes the first that the device loads.
struct Image {
  ImageKind kind = ImageKind::Elf;
  std::vector<uint8_t> code;
  int32_t minDriver = 0; // as cuDriverGetVersion counts: 12040; 0 = any
};

/// The model for one target.
struct Program {
  std::string target;        // "x86-64-v3", "sm_90", "sim:sm_90", "gfx942"
  std::vector<Image> images; // none exactly when there are no kernels
  // GPU and sim: threads and bytes of shared memory that a block may have on this device; CPU: 0.
  int32_t maxBlockThreads = 0;
  int64_t maxSharedBytes = 0;
  int64_t maxDynamicShared = 0; // the same where launches give it; 0: no kernel has any
  std::vector<Kernel> kernels;
  std::vector<Tensor> tensors;
  std::string decisions; // text for people and fusec diff; not needed to run
  /// GPU: each launch is waited for, so that a failing kernel is known by its name.
  bool checked = false;
  std::vector<int32_t> inputs,
      outputs; // tensors, in the order of Model::inputs and outputs; an output may be
               // any tensor, the same one twice too
  std::vector<Step> steps;
};

/// Constant data, row-major, little-endian. Not owned.
struct Weight {
  DType type = DType::F32;
  const uint8_t *bytes = nullptr;
  int64_t sizeBytes = 0;
};

/// A symbol whose value depends on data: at most `bound`, over symbols in front of it. One that tests the data
/// is at most 0, and nothing is of that size.
struct DataSize {
  SymbolId symbol = 0;
  DimCode bound;
  std::optional<TestOfData> test = std::nullopt;
  bool testsData() const { return test.has_value(); }
};

struct Model {
  std::string name;
  std::string producer; // "fusec 0.1.0"
  std::vector<Symbol> symbols;
  /// By symbol, as tunedSizesOf gives them; empty: `opt` alone.
  std::vector<std::vector<int64_t>> tunedSizes;
  std::vector<InferredDim> inferred;
  std::vector<DimRule> rules;
  std::vector<Value> inputs, outputs;
  std::vector<Cache> caches;
  std::vector<Weight> weights;
  std::vector<Program> programs;
  std::vector<DataSize> dataSizes; // ascending by symbol
};

/// The sizes that kernels are tuned for, ascending, of a symbol that a caller may set.
std::span<const int64_t> tunedSizesOf(const Model &model, size_t symbol);
constexpr size_t kMostTunedSizes = 64; // of a symbol; the compiler tunes for eight at most

/// How many of the symbols a caller may set: they come first. The others are computed.
size_t numGiven(const Model &model);

/// Number of elements under an assignment of the symbols; nullopt on overflow, a negative dimension or more than
/// 2^62 bytes.
std::optional<int64_t> evaluateElements(DType type, const std::vector<DimCode> &shape,
                                        const std::vector<int64_t> &symbols);

} // namespace fusec::bundle
