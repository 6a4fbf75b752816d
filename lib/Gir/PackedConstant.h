#pragma once
#include "Graph/Constant.h"
#include "Support/Pieces.h"

namespace fusec {

/// A constant in the layout that a kernel reads, made in pieces when somebody writes it: packed copies of all weights
/// beside the weights would double the memory that a compile takes.
struct PackedConstant {
  /// One dimension of the layout. Along it a value of one of the source's axes grows by `step`, 0 at first, and the
  /// place in the source by `stride` elements.
  struct Digit {
    int axis; // position in axisExtents
    int64_t extent, step, stride;
  };
  ConstantRef source;
  int64_t base = 0;          // element of the source where all digits are 0
  std::vector<Digit> digits; // at least one, outer to inner
  std::vector<int64_t>
      axisExtents;  // where the digits' values add up to more, the element is padding: 0
  Hash128 identity; // equal for equal source and layout

  int64_t numElements() const;
  int64_t sizeBytes() const { return numElements() * sizeInBytes(source->type); }
  /// Elements [first, first + count), row-major.
  void write(int64_t first, int64_t count, uint8_t *to) const;
};

/// All of the constant, made by up to `threads` threads; some megabytes of it are alive at a time.
Status giveInPieces(const PackedConstant &packed, int threads, const TakeBytes &take);
/// The constant as a whole.
ConstantRef makeWhole(const PackedConstant &packed, std::vector<int64_t> dims);

} // namespace fusec
