#pragma once
// What a micro-kernel makes: sums[m, n] += rows[m, k] * columns[k, n], a tile of registers (Target/MicroKernel.h).
#include "Gir/Gir.h"

#include <optional>

namespace fusec {

/// The operands of such a product. All loops have constant trips, and hold the next one or the sum alone.
struct Product {
  struct TileLoop {
    VarId var = -1;
    int64_t trip = 1;
  };
  std::vector<TileLoop> rows, columns, terms; // Unroll loops, outermost first
  VarId lanes = -1;                           // of the Lane loop: columns go along it
  const Stmt *sum = nullptr;                  // the Accumulate
  NodeId row = kNoNode, column = kNoNode;     // the Reads: the same in all lanes, and of each lane
};

/// Finds them in a loop and what it holds; nullopt where that is anything else: a Sum into registers of a product of
/// two Reads, of which the one steps along rows, the other along columns, both along terms.
std::optional<Product> productOf(const GirKernel &kernel, const Stmt &loop);

} // namespace fusec
