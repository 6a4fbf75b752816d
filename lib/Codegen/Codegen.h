#pragma once
#include "Codegen/Resources.h"
#include "Gir/Gir.h"
#include "Target/Target.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fusec {

/// What a launcher needs to know of a compiled kernel. Entry points: CPU: `symbol`; GPUs and sim: one a phase,
/// `symbol` + "_p0", "_p1", ..., and with `gridBarrier` one for all phases, `symbol` + "_grid" (bundle_format.h).
struct KernelCode {
  std::string symbol;
  int phases = 1;
  int64_t sharedBytes = 0; // shared memory of a block, scratch on a CPU
  int units = 1, lanes = 1;
  bool gridBarrier = false;
  int64_t sharedAlign = kSharedAlignment;
  /// Bytes that a launch of each phase's entry gives a block, sharedBytes for that of all phases; empty: the code has
  /// its shared memory as static data.
  std::vector<int64_t> dynamicShared;
};

/// One loadable file with the code of all kernels.
struct CodeImage {
  enum class Format : uint8_t { Elf, Ptx, Cubin, Hsaco, SimElf };
  Format format = Format::Elf;
  std::string arch; // "x86-64-v3", "sm_90", "gfx90a"
  int ptxIsa = 0;   // Ptx: 10 * major + minor of the text's .version
  /// Ptx, Cubin: lowest CUDA version (1000 * major + 10 * minor) whose driver loads it.
  int minDriverCuda = 0;
  std::vector<uint8_t> bytes;
  std::vector<EntryResources> resources; // Cubin, Hsaco: by the names of entries
};

struct CodegenOptions {
  int threads = 1;
  std::string ptxasPath; // empty: NVIDIA targets get PTX only
  /// Waits for other blocks that last for ever end with an error (NVIDIA; sim finds them in any case).
  bool checked = false;
  int minDriverCuda = 0; // leave out images that a driver of this CUDA version cannot load; 0: none
  std::string tempDir = "/tmp"; // of the files that linker and ptxas exchange
};

/// Symbols and facts of the kernels, in order; symbols are C identifiers and unique.
std::vector<KernelCode> kernelCodes(const std::vector<GirKernel> &kernels, const Target &target);

/// LLVM IR as the emitter makes it, before any optimisation: stage "llvm". `checked`: as in CodegenOptions.
Result<std::string> emitLlvmText(const std::vector<GirKernel> &kernels, const Target &target,
                                 bool checked);

/// Assembly of each kernel, in order, as the target's assembler reads it: stage "asm".
Result<std::vector<std::string>> assemblyTexts(const std::vector<GirKernel> &kernels,
                                               const Target &target, const CodegenOptions &options);

/// Machine code: stage "object". The kernels have passed `verify` and `allocate`. The bytes do not depend on
/// `threads`. The first image is the preferred one; an NVIDIA target has its cubin (where ptxas is given)
/// before its PTX.
Result<std::vector<CodeImage>> compileKernels(const std::vector<GirKernel> &kernels,
                                              const Target &target, const CodegenOptions &options);

} // namespace fusec
