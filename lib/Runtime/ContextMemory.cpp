// The memory of a context: the workspace, the arenas of sizes that runs compute, and buffers of its own.
#include "Runtime/Context.h"
#include "Runtime/Error.h"

#include <algorithm>
#include <cstring>

namespace fusec::rt {

fusert_status KernelMemory::grow(Device &of, const fusert_allocator &allocator, size_t bytes) {
  if (of.hostMemory())
    return ofHost.size() < bytes ? ofHost.allocate(allocator, bytes) : FUSERT_OK;
  if (deviceBytes >= bytes)
    return FUSERT_OK;
  release();
  FUSERT_TRY(of.allocate(bytes, &ofDevice));
  device = &of;
  deviceBytes = bytes;
  return FUSERT_OK;
}

void KernelMemory::release() {
  ofHost.reset();
  if (ofDevice)
    device->release(ofDevice);
  ofDevice = nullptr;
  deviceBytes = 0;
}

fusert_status Context::workspaceBytes(size_t *bytes) const {
  FUSERT_TRY(ready());
  *bytes = plan->workspaceBytes;
  return FUSERT_OK;
}

fusert_status Context::setWorkspace(void *p, size_t bytes) {
  FUSERT_TRY(ready());
  if (bytes < plan->workspaceBytes || reinterpret_cast<uintptr_t>(p) % kAlign != 0)
    return fail(FUSERT_INVALID_ARGUMENT, "the workspace must have " +
                                             std::to_string(plan->workspaceBytes) +
                                             " bytes and be aligned to " + std::to_string(kAlign));
  bool ofDevice = false;
  FUSERT_TRY(model->device->findMemory(p, "the workspace", ofDevice));
  if (!ofDevice)
    return fail(FUSERT_INVALID_ARGUMENT, "the workspace is not memory of the device");
  callerWorkspace = p;
  bound = false;
  return FUSERT_OK;
}

fusert_status Context::ensureWorkspace() {
  if (bound)
    return FUSERT_OK;
  void *base = callerWorkspace;
  if (!base && plan->workspaceBytes > 0) {
    FUSERT_TRY(ownWorkspace.grow(*model->device, memory, plan->workspaceBytes));
    base = ownWorkspace.data();
  }
  plan->bindWorkspace(*model->device, base);
  bound = true;
  return FUSERT_OK;
}

fusert_status Context::arena(size_t segment, size_t bytes, void **base) {
  if (arenas.size() <= segment)
    arenas.resize(segment + 1);
  FUSERT_TRY(arenas[segment].grow(*model->device, memory, bytes));
  *base = arenas[segment].data();
  model->device->poison(*base, bytes);
  return FUSERT_OK;
}

/// Memory for what the run has found an output to have: the caller's, which holds the most that it may have, or ours.
fusert_status Context::output(int32_t tensor, size_t bytes, void **address) {
  Slot &s = *std::find_if(outputs.begin(), outputs.end(),
                          [&](const Slot &o) { return o.primary && o.tensor == tensor; });
  if (!s.data && s.own.size() < bytes)
    FUSERT_TRY(s.own.allocate(memory, bytes));
  if (s.staged)
    FUSERT_TRY(s.device.grow(*model->device, memory, bytes));
  *address = s.staged ? s.device.data() : s.data ? s.data : s.own.data();
  if (bytes > 0)
    model->device->poison(*address, bytes);
  return FUSERT_OK;
}

fusert_status Context::ownBuffer(bool input, size_t index, void **data, size_t *bytes) {
  FUSERT_TRY(ready());
  std::vector<Slot> &side = input ? inputs : outputs;
  if (index >= side.size())
    return fail(FUSERT_INVALID_ARGUMENT, "no such " + std::string(input ? "input" : "output"));
  Slot &s = side[index];
  if (s.cache >= 0)
    return ownBuffer(true, static_cast<size_t>(s.cache), data, bytes);
  if (plan->isSized(s.tensor)) {
    const bool isOwn = sizesAreKnown && !s.data;
    *bytes = isOwn ? plan->tensorBytes[s.tensor] : 0;
    *data = isOwn ? s.own.data() : nullptr;
    return FUSERT_OK;
  }
  *bytes = plan->tensorBytes[s.tensor];
  if (!s.own.data()) {
    FUSERT_TRY(s.own.allocate(memory, *bytes));
    if (const int32_t weight = input ? model->content.inputs[index].weight : -1; weight >= 0)
      std::memcpy(s.own.data(), model->content.weights[weight].bytes, *bytes);
  }
  *data = s.own.data();
  return FUSERT_OK;
}

} // namespace fusec::rt
