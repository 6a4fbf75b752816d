#pragma once
#include "Runtime/Device.h"
#include "Runtime/DimBounds.h"
#include "Runtime/PlanOutline.h"

namespace fusec::rt {

/// Who gives memory to what has its size during a run.
class SizedMemory {
public:
  virtual ~SizedMemory() = default;
  /// At least `bytes` of the second arena, for all of one of the outline's segments. What was there may be gone.
  virtual fusert_status arena(size_t segment, size_t bytes, void **memory) = 0;
  /// Where the kernels write an output.
  virtual fusert_status output(int32_t tensor, size_t bytes, void **memory) = 0;
};

/// The steps of a program with all that depends on shapes worked out: variants chosen, grids and sizes computed,
/// temporaries packed, argument lists laid out. What depends on sizes that a run computes is worked out when it has
/// (setSize), again where they change. Belongs to one context. Building it again takes no memory where the last build
/// took as much.
class ExecPlan {
public:
  explicit ExecPlan(const PlanOutline &outline);

  /// Replaces what was there; on failure only another build can follow. `symbols` has values for all of the model's
  /// symbols, bounds where runs compute them.
  fusert_status build(const std::vector<int64_t> &symbols);
  /// Sets the addresses of temporaries (null base: forget them) and constants.
  void bindWorkspace(const Device &device, void *base);
  void setAddress(int32_t tensor, void *p);

  /// The size that one of the outline's segments begins with, and what can be worked out once it is known: the symbols
  /// of all this have values then. OUT_OF_RANGE for a value that is not allowed.
  fusert_status setSize(size_t segment, int64_t value, SizedMemory &memory);
  /// Whether a run computes the tensor's size.
  bool isSized(int32_t tensor) const { return outline.segmentOf[tensor] > 0; }
  /// The most bytes that such a tensor has under the shapes set; INT64_MAX: more than there are.
  int64_t mostBytes(int32_t tensor) const;
  /// Bytes of the second arena where all sizes that runs compute are the largest. For a plan that is not run.
  fusert_status mostSizedBytes(size_t &bytes);
  /// Whether thenSteps of a where run under the shapes set, or elseSteps.
  bool isThen(int32_t where) const { return isTaken[static_cast<size_t>(2 * where + 1)]; }
  /// Values of all symbols: those that runs compute as the last setSize() left them, or at their bounds.
  const std::vector<int64_t> &symbols() const { return symbolValues; }

  const PlanOutline &outline;
  std::vector<Launch> launches;
  std::vector<size_t> tensorBytes; // of sized ones once they are
  std::vector<void *> addresses;   // of each tensor
  size_t workspaceBytes = 0;
  void *workspace = nullptr;

private:
  /// What launches of a kernel have in common; -1: cannot be computed.
  struct KernelSizes {
    std::vector<int64_t> dims, grids;
    int64_t rounds = 1;
  };
  /// One of the outline's segments.
  struct Segment {
    std::vector<uint64_t> bytes; // of the temporaries that are used
    MemoryPlan memory;           // of these
    uint64_t seen = 0;           // `changes` when all this was worked out
  };
  void takeSides();
  fusert_status workOut(size_t segment);
  void evaluate(const bundle::Kernel &kernel, KernelSizes &sizes) const;
  size_t choose(const bundle::Step &step) const;
  fusert_status evaluateBytes(const std::vector<int32_t> &tensors);
  fusert_status resolve(int32_t launch);
  fusert_status pack(size_t segment);
  fusert_status planCopies();
  /// Hands the addresses of their buffers to the segment's launches.
  void bindLaunches(size_t segment);
  void setBounds();
  fusert_status testRules(size_t segment) const;

  std::vector<int64_t> symbolValues;
  std::vector<int64_t>
      ruleValues;                 // behind them those of inferred sizes; none without sizes of runs
  std::vector<DimBounds> bounds;  // of the symbols in a run; none without sizes of runs
  std::vector<int64_t> typeBytes; // by the outline's types; -1: cannot be computed
  std::vector<KernelSizes> kernels;
  std::vector<size_t> choices;                 // by the outline's choices: the variant
  std::vector<const bundle::Variant *> chosen; // of each launch
  std::vector<bool> isUsed;                    // by tensor
  std::vector<bool> isTaken;                   // by side of the outline's wheres
  std::vector<Segment> segments;
  size_t stagingBytes = 0;
  uint64_t changes = 1; // of the sizes that runs compute
};

} // namespace fusec::rt
