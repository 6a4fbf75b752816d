#pragma once
// Emitters of micro-kernels, by the names that rows of the registry have for them (Target/MicroKernel.h). A new one has
// a file here and a row in Kernels.cpp.
#include "Codegen/Llvm.h"
#include "Target/MicroKernel.h"

namespace fusec {

/// A product whose code is to be made: sums[m, n] += rows[m, k] * columns[k, n], of `rows` x `columns` x `terms`
/// elements of the kernel's registers. Each call makes its own load, or addition, where the builder stands.
class ProductCode {
public:
  virtual ~ProductCode() = default;
  virtual llvm::Value *row(int64_t m, int64_t k) = 0;
  virtual llvm::Value *column(int64_t k, int64_t n) = 0;
  /// sums[m, n] += row * column
  virtual void add(int64_t m, int64_t n, llvm::Value *row, llvm::Value *column) = 0;

  int64_t rows = 1, columns = 1, terms = 1;
};

using KernelEmitter = void (*)(ProductCode &product);

/// nullptr where there is none of that name.
KernelEmitter kernelEmitter(std::string_view name);

void emitOuterProduct(ProductCode &product);

} // namespace fusec
