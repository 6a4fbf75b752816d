#pragma once
// Kernels as text, compiled and run on this machine, beside the Gir interpreter.
#include "Codegen/Codegen.h"
#include "Gir/Passes.h"

#include <string>
#include <vector>

namespace fusec::test {

GirKernel kernelFrom(const std::string &text, const std::vector<Symbol> &symbols = {});
Target targetNamed(const std::string &name);
/// True if this machine can run the code of the CPU target.
bool canRun(const Target &cpu);

/// A loaded CPU image.
class LoadedImage {
public:
  explicit LoadedImage(const std::vector<uint8_t> &elf);
  LoadedImage(const LoadedImage &) = delete;
  ~LoadedImage();
  void *symbol(const std::string &name) const;

private:
  void *handle = nullptr;
};

struct Instruction {
  uint64_t address;
  std::string text; // as llvm-objdump has it: "vfmadd213ps\t(%rax), %ymm1, %ymm2"
};
/// All instructions of a CPU image, by LLVM's objdump.
std::vector<Instruction> disassembled(const std::vector<uint8_t> &elf);

using Bytes = std::vector<uint8_t>;

/// Code of a CPU kernel, which runs all phases and blocks.
class CompiledKernel {
public:
  CompiledKernel(const GirKernel &kernel, const Target &target);
  void run(const std::vector<void *> &buffers, const std::vector<int64_t> &symbols) const;
  /// In place, and so that an access beside an argument is a fault: behind it or, `inFront`, in front of it no page is.
  void runAtPages(std::vector<Bytes> &arguments, const std::vector<int64_t> &symbols,
                  bool inFront) const;

private:
  const GirKernel &kernel;
  const KernelCode code;
  const LoadedImage image;
};

/// Compiles for `target` and runs all phases and blocks over `arguments` (in place).
void runCompiled(const GirKernel &kernel, const Target &target, std::vector<Bytes> &arguments,
                 const std::vector<int64_t> &symbols = {});
/// The same by the interpreter.
void runInterpreted(const GirKernel &kernel, std::vector<Bytes> &arguments,
                    const std::vector<int64_t> &symbols = {});

/// Compiled and interpreted results have the same bits, from the same arguments, for both CPU targets that can run
/// here. Returns the results.
std::vector<Bytes> requireSameBits(const GirKernel &kernel, const std::vector<Bytes> &arguments,
                                   const std::vector<int64_t> &symbols = {});

/// `count` elements of `type`: small numbers, or, with `wild`, any bit patterns too.
Bytes randomBytes(DType type, int64_t count, uint64_t seed, bool wild = false);

} // namespace fusec::test
