#pragma once
#include "Codegen/Emitter.h"

namespace fusec {

/// The columns of a matrix of which `rows` are the rows, vectors of one type: as many vectors as a row has elements,
/// each of as many elements as there are rows. Both numbers are powers of two; a row that nobody wants is poison.
std::vector<llvm::Value *> transposed(Builder &b, const std::vector<llvm::Value *> &rows);

} // namespace fusec
