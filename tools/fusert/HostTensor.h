#pragma once
#include "Support/DType.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace fusert {

/// Memory as kernels read and write it fastest, and equally fast in every run: it begins with a page, so that no output
/// begins a few lines behind an input in their pages (loads would wait for stores), and large tensors lie in huge
/// pages, as NumPy's and the runtime's own do.
void *allocatePages(size_t bytes);
template <typename T> struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <typename U> PageAllocator(const PageAllocator<U> &) {}
  T *allocate(size_t n) { return static_cast<T *>(allocatePages(n * sizeof(T))); }
  void deallocate(T *p, size_t) { std::free(p); }
  bool operator==(const PageAllocator &) const = default;
};
using HostBytes = std::vector<uint8_t, PageAllocator<uint8_t>>;

/// A tensor in host memory, row-major.
struct HostTensor {
  fusec::DType type = fusec::DType::F32;
  std::vector<int64_t> dims;
  HostBytes bytes;

  int64_t numElements() const;
  /// Element `i` as a double, whatever the type.
  double at(int64_t i) const;
  std::string describe() const; // "f32 [1, 3, 224, 224]"
};

/// NumPy's .npy, versions 1 to 3, little-endian, C order. bf16 is written as the two-byte void type "|V2", as the
/// Python package ml_dtypes does. Throws ToolError.
HostTensor readNpy(const std::string &path);
void writeNpy(const std::string &path, const HostTensor &tensor);

/// A .npy file, or a .pb file that holds one ONNX TensorProto, by extension. Throws ToolError.
HostTensor readTensor(const std::string &path);

} // namespace fusert
