#include "Tiling/space/OuterProduct.h"

namespace fusec::tiling {

OuterProduct bestOuterProduct(int registers, int products) {
  constexpr double kLong = 1e9;
  OuterProduct best;
  for (int rows = 1; rows < registers; ++rows)
    for (int vectors = 1; rows * vectors < registers; ++vectors) {
      const OuterProduct one{rows, vectors, 1};
      if (one.registers() > registers || (products != 0 && rows * vectors != products))
        continue;
      const double gain = one.intensity(kLong) - best.intensity(kLong);
      if (gain > 0 || (gain == 0 && one.registers() < best.registers()))
        best = one;
    }
  return best;
}

} // namespace fusec::tiling
