#pragma once
#include "Codegen/Resources.h"
#include "Support/Result.h"

#include <optional>

namespace fusec {

struct TargetState;

/// What the machine code of one kernel takes on a GPU.
struct KernelResources {
  std::string kernel;             // name in the code: k_...
  std::vector<std::string> nodes; // nodes of the model
  bool contracts = false;         // it sums products
  std::vector<EntryResources> entries;
};

/// The resources of all kernels; nullopt if the code is not for a GPU, or is text that the driver translates.
std::optional<std::vector<KernelResources>> resourcesOf(const TargetState &target);

/// SpilledRegisters for kernels that sum products: each spill is a trip to memory in their innermost loops.
Diagnostics spillWarnings(const std::vector<KernelResources> &kernels, const std::string &target);

/// Lines of explain.
std::string resourcesText(const std::optional<std::vector<KernelResources>> &kernels);
/// A JSON array, or null.
std::string resourcesJson(const std::optional<std::vector<KernelResources>> &kernels);

} // namespace fusec
