#pragma once

namespace fusec::tiling {

/// Chimera's CPU micro-kernel (Algorithm 2): a block of a result in registers, to which each step along the sum adds
/// the product of a column of one factor, broadcast, and a row of the other.
struct OuterProduct {
  int rows = 1, vectors = 1; // MI, NI
  int broadcasts = 1;        // MII: elements of the column at once

  int registers() const { return rows * vectors + vectors + broadcasts; }
  /// Products by loads and stores, over so many steps: each loads a column and a row; the block comes and goes once.
  double intensity(double steps) const {
    const double products = rows * vectors;
    return products * steps / (steps * (rows + vectors) + 2 * products);
  }
};

/// The block of the highest intensity over long sums that fits the registers; of equal ones the one with fewest
/// registers. With `products`, blocks of so many alone: enough in flight to hide the latency of one, and a constraint
/// that section V-B has in its example and not in its formula.
OuterProduct bestOuterProduct(int registers, int products = 0);

} // namespace fusec::tiling
