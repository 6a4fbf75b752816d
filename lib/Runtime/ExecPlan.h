#pragma once
#include "Runtime/Model.h"

namespace fusec::rt {

/// Who gives memory to what has its size during a run.
class SizedMemory {
public:
  virtual ~SizedMemory() = default;
  /// At least `bytes` of the second arena, for all that has its size from plan.sizes[size]. What was there may be gone.
  virtual fusert_status arena(size_t size, size_t bytes, void **memory) = 0;
  /// Where the kernels write an output.
  virtual fusert_status output(int32_t tensor, size_t bytes, void **memory) = 0;
};

/// The steps of a program with all that depends on shapes worked out: variants chosen, grids and sizes computed,
/// temporaries packed, argument lists laid out. What depends on sizes that a run computes is worked out when it has
/// (setSize), again where they change. Belongs to one context.
class ExecPlan {
public:
  struct Copy {
    int32_t from, to;
    /// Offset in the workspace where `from` waits, when an earlier copy overwrites it.
    int64_t staging = -1;
  };
  struct Node {
    bundle::StepKind kind;
    int32_t launch = -1; // index into `launches`
    int32_t size = -1;   // index into `sizes`
    int32_t condition = -1, tripCount = -1, iteration = -1, nextCondition = -1;
    std::vector<Node> thenNodes, elseNodes;
    std::vector<Copy> before, thenCopies, elseCopies, after;
  };

  /// Replaces what was there; on failure the object is unusable. `program` is one of the model's; `symbols` has values
  /// for all of its symbols, bounds where runs compute them. Where all outputs are empty nothing `runs`.
  fusert_status build(const Model &model, const bundle::Program &program,
                      const std::vector<int64_t> &symbols, bool runs);
  /// Sets the addresses of temporaries (null base: forget them) and constants.
  void bindWorkspace(const Model &model, void *base);
  void setAddress(int32_t tensor, void *p) {
    if (addresses[tensor] == p)
      return;
    addresses[tensor] = p;
    for (const Use &u : uses[tensor])
      launches[u.launch].buffers[u.index] = p;
  }

  /// One size that the data decides, and what can be worked out once it is known: the symbols of all this have values
  /// then. OUT_OF_RANGE for a value that is not allowed.
  fusert_status setSize(size_t index, int64_t value, SizedMemory &memory);
  /// Whether a run computes the tensor's size.
  bool isSized(int32_t tensor) const { return sizeOf[tensor] >= 0; }
  /// The most bytes that such a tensor has under the shapes set; INT64_MAX: more than there are.
  int64_t mostBytes(int32_t tensor) const;
  /// Bytes of the second arena where all sizes that runs compute are the largest. For a plan that is not run.
  fusert_status mostSizedBytes(size_t &bytes);
  /// Values of all symbols: those that runs compute as the last setSize() left them, or at their bounds.
  const std::vector<int64_t> &symbols() const { return symbolValues; }

  std::vector<Node> nodes;
  std::vector<Launch> launches;
  std::vector<size_t> tensorBytes; // of sized ones once they are
  std::vector<void *> addresses;   // of each tensor
  size_t workspaceBytes = 0;
  void *workspace = nullptr;

private:
  struct Use {
    int32_t launch, index;
  };
  struct Size {
    const bundle::Step *step;
    const bundle::DimCode *bound;
    std::vector<int32_t> temps, outputs;        // tensors
    std::vector<const bundle::DimRule *> rules; // to be tested when it is known
    struct Launched {
      int32_t number; // of `launches`
      const bundle::Step *step;
      const bundle::Variant *variant = nullptr; // the one chosen
    };
    std::vector<Launched> launches;
    std::vector<uint64_t> offsets; // of temps
    size_t bytes = 0;              // of temps
    uint64_t seen = 0;             // `changes` when all this was worked out
  };
  void findSizes();
  void findSizes(const std::vector<bundle::Step> &steps);
  /// The last of `sizes` that this depends on; -1: none.
  int32_t lastSize(const bundle::DimCode &code) const;
  int32_t lastSize(const std::vector<bundle::DimCode> &list) const;
  int32_t lastSize(const bundle::Step &step) const;
  /// Clears the mark of each tensor that the nodes use.
  void markUsed(const std::vector<Node> &list, std::vector<bool> &isIdle) const;
  fusert_status buildNodes(const std::vector<bundle::Step> &steps, std::vector<Node> &out);
  fusert_status buildLaunch(const bundle::Step &step, Node &node);
  /// Fills in all but the buffers' addresses, in the memory that is there.
  fusert_status resolve(const bundle::Variant &variant, Launch &launch) const;
  const bundle::Variant &variantOf(const bundle::Step &step) const;
  fusert_status buildCopies(const std::vector<bundle::Copy> &list, std::vector<Copy> &out);
  fusert_status evaluateBytes(int32_t tensor);
  fusert_status pack(const std::vector<int32_t> &tensors, std::vector<uint64_t> &offsets,
                     size_t &bytes) const;
  fusert_status workOut(Size &size);
  void findRules();
  fusert_status testRules(const Size &size, size_t index) const;

  const Model *model = nullptr;
  const bundle::Program *program = nullptr;
  std::vector<int64_t> symbolValues;
  std::vector<int64_t>
      ruleValues; // behind them those of inferred sizes; empty where no size has rules
  std::vector<std::vector<Use>> uses; // of each tensor, in launches that do not wait for sizes
  std::vector<int32_t> packed;        // tensors in the workspace
  std::vector<uint64_t> offsets;      // theirs
  size_t stagingBytes = 0;

  std::vector<Size> sizes;         // in the order of their steps
  std::vector<int32_t> sizeOf;     // by tensor: the last of `sizes` that it waits for, or -1
  std::vector<int32_t> sizeNumber; // by symbol: of `sizes`, or -1
  uint64_t changes = 1;            // of the values of `sizes`
};

} // namespace fusec::rt
