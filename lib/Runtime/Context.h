#pragma once
#include "Runtime/ExecPlan.h"
#include "Runtime/Memory.h"
#include "Runtime/Model.h"

#include <atomic>
#include <span>

namespace fusec::rt {

/// What a fusert_context handle stands for. One call at a time: the API takes `busy` around each.
class Context : private SizedMemory {
public:
  Context(std::shared_ptr<Model> model) : model(std::move(model)) {}
  ~Context() override;

  fusert_status init(const fusert_context_options &options);
  fusert_status setShapes(const fusert_shape *shapes, size_t count);
  /// The values are those of the symbols that the inputs' shapes give; the others follow.
  fusert_status setSymbols(std::span<const int64_t> values);
  /// 0: no longer.
  fusert_status shareCaches(int64_t rows);
  fusert_status shapeOf(const bundle::Value &value, int64_t *dims, int32_t *rank) const;
  fusert_status workspaceBytes(size_t *bytes) const;
  fusert_status setWorkspace(void *memory, size_t bytes);
  fusert_status ownBuffer(bool input, size_t index, void **data, size_t *bytes);
  fusert_status run(const fusert_buffer *inputs, size_t inputCount, const fusert_buffer *outputs,
                    size_t outputCount);
  fusert_status counters(const char **json);

  const std::shared_ptr<Model> model;
  std::atomic<bool> busy{false};

private:
  /// One input or output.
  struct Slot {
    int32_t tensor;
    bool primary; // the kernels use this buffer themselves; else it is copied to at the end
    HostBlock own;
    KernelMemory device{}; // GPU: stands in for a buffer in host memory
    /// As given for the current run; null: no elements, or the size is computed by the run and `own` grows with it.
    void *data = nullptr;
    bool staged = false;   // GPU: `data`, or `own` in its place, is host memory
    int64_t mostBytes = 0; // where the run computes the size
    int32_t cache = -1;    // of an output that lies where this input does: the input
  };

  fusert_status ready() const;
  fusert_status planFor(std::span<const int64_t> given, int64_t rows);
  void *deviceOf(const Slot &slot) const {
    return (slot.cache >= 0 ? inputs[static_cast<size_t>(slot.cache)] : slot).device.data();
  }
  fusert_status ensureWorkspace();
  fusert_status resolve(std::vector<Slot> &slots, const fusert_buffer *buffers, size_t count,
                        bool input, bool &changed);
  fusert_status checkOverlap() const;
  fusert_status stage(Slot &slot, bool input);
  bool anyStaged() const;
  bool anyOfCallersDevice() const;
  fusert_status execute();
  fusert_status giveOutput(Slot &slot);
  fusert_status arena(size_t size, size_t bytes, void **memory) override;
  fusert_status output(int32_t tensor, size_t bytes, void **memory) override;

  fusert_allocator memory{};
  bool counting = false;
  bool callerStream = false;
  std::unique_ptr<Queue> queue;
  std::vector<int64_t> dims;       // of all inputs, in setShapes()
  std::vector<int64_t> solved;     // symbols that follow from these
  std::vector<int64_t> fresh;      // all symbols, in planFor()
  std::vector<int64_t> symbols;    // bounds where runs compute them
  bool sizesAreKnown = false;      // the last run has computed them
  int64_t cacheRows = 0;           // 0: inputs and outputs share no memory
  std::unique_ptr<ExecPlan> plan;  // null: shapes are not set
  std::unique_ptr<ExecPlan> spare; // built for the next shapes, which may turn out not to fit
  KernelMemory ownWorkspace;
  std::vector<KernelMemory> arenas; // one for each size that runs compute
  void *callerWorkspace = nullptr;
  bool bound = false; // the plan knows its workspace
  std::vector<Slot> inputs, outputs;
  std::string countersText;
};

} // namespace fusec::rt
