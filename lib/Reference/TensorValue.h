#pragma once
#include "Graph/Constant.h"
#include "Support/DType.h"

#include <cstdint>
#include <vector>

namespace fusec {

/// A dense tensor of the reference interpreters. Floats are held as doubles, so that intermediate values of f16,
/// bf16 and f32 keep 53 bits until round() is called; integers and bool are exact (u64 by its bits).
struct TensorValue {
  DType type = DType::F32;
  std::vector<int64_t> dims;
  std::vector<double> floats; // iff isFloat(type)
  std::vector<int64_t> ints;  // iff not

  TensorValue() = default;
  /// All zeros.
  TensorValue(DType type, std::vector<int64_t> dims);

  bool isFloating() const { return isFloat(type); }
  int64_t numElements() const;
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  /// Element `i` as a number: for operands that may be of any type.
  double number(int64_t i) const;
  /// Stores a number, converted as by Cast where the type is an integer.
  void setNumber(int64_t i, double v);
  /// Copies element `j` of `other`, which has the same type.
  void copyElement(int64_t i, const TensorValue &other, int64_t j) {
    if (isFloating())
      floats[static_cast<size_t>(i)] = other.floats[static_cast<size_t>(j)];
    else
      ints[static_cast<size_t>(i)] = other.ints[static_cast<size_t>(j)];
  }

  /// Rounds floats to the nearest value of `type`, ties to even.
  void round();
};

TensorValue toTensorValue(const Constant &c);
/// Rounds to the declared type.
ConstantRef toConstant(const TensorValue &t);

double roundToDType(DType t, double v);
/// `v` mod 2^width of `t`, sign- or zero-extended; bool: v != 0.
int64_t wrapToDType(DType t, int64_t v);
/// Truncation to int64, and for `to` u64 to uint64 above that (by bits); NaN and values outside give INT64_MIN.
int64_t truncateToInt(DType to, double v);
double numberOf(DType t, int64_t bits);

/// Product, or -1 where it is negative or above `kMaxElements`.
int64_t checkedProduct(const std::vector<int64_t> &dims);
constexpr int64_t kMaxElements = int64_t(1) << 31;

} // namespace fusec
