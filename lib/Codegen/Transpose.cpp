// A matrix in registers, transposed by shuffles of two vectors. An x86 core has those that interleave the elements of
// two vectors within each 128 bits (unpack), and those that choose whole parts of 128 bits (shuf, perm2). So a square
// of vectors takes two networks: one transposes the squares that are as wide as such a part, one the matrix of parts.
//
//   rows of 4 elements, parts of 2:    a0 a1 a2 a3      a0 b0 a2 b2      a0 b0 c0 d0
//                                      b0 b1 b2 b3  ->  a1 b1 a3 b3  ->  a1 b1 c1 d1
//                                      c0 c1 c2 c3      c0 d0 c2 d2      a2 b2 c2 d2
//                                      d0 d1 d2 d3      c1 d1 c3 d3      a3 b3 c3 d3
//
// It is log2(n) shuffles a vector of n elements, where a gather or a store of each lane by itself takes n accesses.
#include "Codegen/Transpose.h"

#include <numeric>

namespace fusec {

using llvm::Value;

namespace {

unsigned widthOf(Value *vector) {
  return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

/// In turn an element of each, of the low or the high half of every part.
Value *interleaved(Builder &b, Value *x, Value *y, unsigned part, bool high) {
  const unsigned width = widthOf(x), half = part / 2;
  std::vector<int> order;
  for (unsigned begin = 0; begin < width; begin += part)
    for (unsigned i = 0; i < half; ++i) {
      const auto at = static_cast<int>(begin + i + (high ? half : 0));
      order.push_back(at);
      order.push_back(at + static_cast<int>(width));
    }
  return b.CreateShuffleVector(x, y, order);
}

/// Each second part of both, from the first on or from the second.
Value *everySecond(Builder &b, Value *x, Value *y, unsigned part, bool second) {
  std::vector<int> order;
  for (unsigned begin = second ? part : 0; begin < 2 * widthOf(x); begin += 2 * part)
    for (unsigned i = 0; i < part; ++i)
      order.push_back(static_cast<int>(begin + i));
  return b.CreateShuffleVector(x, y, order);
}

std::vector<Value *> square(Builder &b, std::vector<Value *> rows) {
  constexpr unsigned kPartBits = 128;
  const auto width = static_cast<unsigned>(rows.size());
  const unsigned part = std::min(width, kPartBits / rows[0]->getType()->getScalarSizeInBits()),
                 parts = width / part;
  std::vector<Value *> next(width);
  for (unsigned done = 1; done < part; done *= 2) {
    for (unsigned begin = 0; begin < width; begin += part)
      for (unsigned i = 0; i < part; ++i)
        next[begin + i] =
            interleaved(b, rows[begin + i / 2], rows[begin + i / 2 + part / 2], part, i % 2);
    rows.swap(next);
  }
  // Row r * part + c: of `part` rows from the r-th on, column c of each of their parts.
  for (unsigned done = 1; done < parts; done *= 2) {
    for (unsigned r = 0; r < parts; ++r)
      for (unsigned c = 0; c < part; ++c) {
        const unsigned from = 2 * (r % (parts / 2)) * part + c;
        next[r * part + c] = everySecond(b, rows[from], rows[from + part], part, r >= parts / 2);
      }
    rows.swap(next);
  }
  return rows;
}

/// Both halves behind one another, of vectors of one width, again and again.
Value *joined(Builder &b, std::vector<Value *> pieces) {
  while (pieces.size() > 1) {
    std::vector<int> order(2 * widthOf(pieces[0]));
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = 0; i < pieces.size() / 2; ++i)
      pieces[i] = b.CreateShuffleVector(pieces[2 * i], pieces[2 * i + 1], order);
    pieces.resize(pieces.size() / 2);
  }
  return pieces[0];
}

} // namespace

std::vector<Value *> transposed(Builder &b, const std::vector<Value *> &rows) {
  const auto height = static_cast<unsigned>(rows.size()), width = widthOf(rows[0]),
             side = std::min(height, width);
  std::vector<std::vector<Value *>> columns(width);
  for (unsigned y = 0; y < height; y += side)
    for (unsigned x = 0; x < width; x += side) {
      std::vector<int> order(side);
      std::iota(order.begin(), order.end(), static_cast<int>(x));
      std::vector<Value *> piece;
      for (unsigned r = 0; r < side; ++r)
        piece.push_back(side == width ? rows[y + r] : b.CreateShuffleVector(rows[y + r], order));
      piece = square(b, std::move(piece));
      for (unsigned c = 0; c < side; ++c)
        columns[x + c].push_back(piece[c]);
    }
  std::vector<Value *> result;
  for (std::vector<Value *> &pieces : columns)
    result.push_back(joined(b, std::move(pieces)));
  return result;
}

} // namespace fusec
