#pragma once
#include "Tiling/space/TreeSpace.h"

namespace fusec::tiling {

/// What a block has of a contraction's axes.
struct BlockPoints {
  int64_t rows = 1;    // of register tiles
  int64_t outside = 1; // of the innermost axis around the rows
  int64_t columns = 1;
};

/// The part of a tensor that one read of a block touches: an interval of each dimension.
struct ReadBox {
  std::vector<int64_t> extents;
  int64_t elementBytes = 1;

  int64_t elements() const;
};

/// Axes that move an index of the read together with another axis, as a convolution's window does; bit a for axis a.
uint64_t slidingAxes(const Equation &e, NodeId read);

/// Whether a block on a CPU copies what the read touches, with its padding written out.
bool isPadded(const TreeSpace &tree, int equation, size_t read);

/// nullopt where the read's indices are no sums of axes, or extents are not known.
std::optional<ReadBox> boxOf(const TreeSpace &tree, int equation, size_t read,
                             const BlockPoints &block);

} // namespace fusec::tiling
