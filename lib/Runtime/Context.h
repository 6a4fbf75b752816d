#pragma once
#include "Runtime/ExecPlan.h"
#include "Runtime/Memory.h"

#include <atomic>

namespace fusec::rt {

/// What a fusert_context handle stands for. One call at a time: the API takes `busy` around each.
class Context {
public:
  Context(std::shared_ptr<Model> model) : model(std::move(model)) {}
  ~Context();

  fusert_status init(const fusert_context_options &options);
  fusert_status setShapes(const fusert_shape *shapes, size_t count);
  /// The values are those of the symbols that the inputs' shapes give; the others follow.
  fusert_status setSymbols(std::vector<int64_t> values);
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
    void *device = nullptr; // GPU: stands in for a buffer in host memory
    void *data = nullptr;   // as given for the current run
    bool staged = false;    // GPU: `data` is host memory
  };

  fusert_status ready() const;
  fusert_status ensureWorkspace();
  fusert_status resolve(std::vector<Slot> &slots, const fusert_buffer *buffers, size_t count,
                        bool input, bool &changed);
  fusert_status checkOverlap() const;
  fusert_status stage(Slot &slot, bool input);
  bool anyStaged() const;
  bool anyOfCallersDevice() const;
  fusert_status execute();
  void releaseDeviceMemory();

  fusert_allocator memory{};
  bool counting = false;
  bool callerStream = false;
  std::unique_ptr<Queue> queue;
  std::vector<int64_t> symbols;
  std::unique_ptr<ExecPlan> plan; // null: shapes are not set
  HostBlock ownWorkspace;
  void *deviceWorkspace = nullptr;
  size_t deviceWorkspaceBytes = 0;
  void *callerWorkspace = nullptr;
  bool bound = false; // the plan knows its workspace
  std::vector<Slot> inputs, outputs;
  std::string countersText;
};

} // namespace fusec::rt
