#include "Codegen/Kernels/Kernels.h"

#include <utility>

namespace fusec {

KernelEmitter kernelEmitter(std::string_view name) {
  constexpr std::pair<std::string_view, KernelEmitter> kEmitters[] = {
      {"outer-product", emitOuterProduct},
  };
  for (const auto &[known, emitter] : kEmitters)
    if (known == name)
      return emitter;
  return nullptr;
}

} // namespace fusec
