// A register of each column, and row by row one of its element, times which they are added to the row's sums: of
// m x n products only n + 1 registers hold factors.
#include "Codegen/Kernels/Kernels.h"

namespace fusec {

void emitOuterProduct(ProductCode &product) {
  for (int64_t k = 0; k < product.terms; ++k) {
    llvm::SmallVector<llvm::Value *, 8> columns;
    for (int64_t n = 0; n < product.columns; ++n)
      columns.push_back(product.column(k, n));
    for (int64_t m = 0; m < product.rows; ++m) {
      llvm::Value *row = product.row(m, k);
      for (int64_t n = 0; n < product.columns; ++n)
        product.add(m, n, row, columns[static_cast<size_t>(n)]);
    }
  }
}

} // namespace fusec
