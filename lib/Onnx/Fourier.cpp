#include "Onnx/Fourier.h"
#include "Onnx/Compose.h"
#include "Support/MathPoly.h"

#include <cmath>

// A short transform is a product with the matrix of its roots of unity, real and imaginary parts side by side. A longer
// one of L = N1 * N2 numbers is transforms of N1, a factor a number, and transforms of N2 (Cooley and Tukey 1965):
//   X[k1 + N1 k2] = sum over n2 of w(N2)^(n2 k2) * w(L)^(n2 k1) * sum over n1 of w(N1)^(n1 k1) * x[N2 n1 + n2]
// Primes beyond kMostEntries entries of a matrix are refused, and lengths beyond kLongest. Where the length is open, a
// run makes the whole matrix.

namespace fusec {
namespace {

constexpr int64_t kLongestProduct = 1024, kMostEntries = 1 << 24, kLongest = 1 << 20;

struct Root {
  double cosine, sine;
};

/// cos and sin of 2 pi k / n for 0 <= k < n, computed in the first eighth of the circle: exact at its quarters.
Root rootOfUnity(int64_t k, int64_t n) {
  const int64_t quarter = 4 * k / n, rest = 4 * k % n;
  const bool mirrored = 2 * rest > n;
  const double angle =
      M_PI_2 * static_cast<double>(mirrored ? n - rest : rest) / static_cast<double>(n);
  double c = evaluateMath(MathFn::Cos, angle), s = evaluateMath(MathFn::Sin, angle);
  if (mirrored)
    std::swap(c, s);
  switch (quarter) {
  case 0: return {c, s};
  case 1: return {-s, c};
  case 2: return {-c, -s};
  default: return {s, -c};
  }
}

class Transform {
public:
  Transform(NodeImporter &n, DType type, int64_t length, const DftSign &sign)
      : n(n), c(n), t(type), length(length), sign(sign), turn(sign.inverse ? -1 : 1) {}

  /// x[a, size, parts] -> [a, bins, 1 or 2]
  Result<ValueId> of(ValueId x) {
    const int64_t kept = sign.onesided ? length / 2 + 1 : length;
    x = cutTo(x, sign.inverse ? kept : length);
    const double scale = sign.inverse ? 1 / static_cast<double>(length) : 1;
    if (length <= kLongestProduct)
      return byMatrix(x, length, sign.inverse ? length : kept, sign.onesided && sign.inverse,
                      scale);
    if (sign.onesided && sign.inverse) {
      FUSEC_TRY(ValueId whole, mirrored(padTo(x, kept)));
      FUSEC_TRY(ValueId y, stage(whole, length, scale));
      return c.slice(y, 2, 0, 1);
    }
    FUSEC_TRY(ValueId y, stage(padTo(x, length), length, scale));
    return sign.onesided ? c.slice(y, 1, 0, kept) : y;
  }

private:
  int64_t size(ValueId x, size_t d) const { return n.shapeOf(x)[d].constValue(); }
  ValueId cutTo(ValueId x, int64_t most) { return size(x, 1) > most ? c.slice(x, 1, 0, most) : x; }
  ValueId padTo(ValueId x, int64_t wanted) {
    const int64_t missing = wanted - size(x, 1);
    if (missing <= 0)
      return x;
    return c.like(OpKind::Pad, {x},
                  {{"mode", std::string("constant")},
                   {"pads", std::vector<int64_t>{0, 0, 0, 0, missing, 0}}});
  }
  ValueId constant(std::vector<int64_t> dims, const std::vector<double> &values) {
    std::vector<uint8_t> data;
    for (double v : values)
      appendElement(data, t, v);
    return n.constantValue(makeConstant(t, std::move(dims), std::move(data)));
  }

  /// All bins of a one-sided transform of `length` real numbers: bin L - k is the conjugate of bin k.
  Result<ValueId> mirrored(ValueId x) {
    std::vector<int64_t> from;
    std::vector<double> signs;
    for (int64_t k = 0; k < length; ++k) {
      const bool isOwn = k <= length / 2;
      from.push_back(isOwn ? k : length - k);
      signs.insert(signs.end(), {1, isOwn ? 1.0 : -1.0});
    }
    FUSEC_TRY(ValueId all, c.gather(x, n.intsValue(from), 1));
    return c.binary(OpKind::Mul, all, constant({length, 2}, signs));
  }

  /// The first `bins` of a transform of `whole` numbers, of which x[a, numbers, parts] has the first.
  Result<ValueId> byMatrix(ValueId x, int64_t whole, int64_t bins, bool toReal, double scale) {
    const int64_t numbers = size(x, 1), parts = size(x, 2), made = toReal ? 1 : 2;
    if (numbers * parts > kMostEntries / (bins * made))
      return n.unsupported("a transform of length " + std::to_string(length) +
                           ", which has the factor " + std::to_string(whole));
    std::vector<double> matrix;
    for (int64_t i = 0; i < numbers; ++i)
      for (int64_t part = 0; part < parts; ++part)
        for (int64_t k = 0; k < bins; ++k) {
          const Root w = rootOfUnity(i * k % whole, whole);
          // Each bin of a real signal stands for two, except the first and the middle one.
          const double times = scale * (toReal && i != 0 && 2 * i != whole ? 2 : 1);
          matrix.push_back(times * (part == 0 ? w.cosine : turn * w.sine));
          if (!toReal)
            matrix.push_back(times * (part == 0 ? -turn * w.sine : w.cosine));
        }
    const DimExpr rows = n.shapeOf(x)[0];
    FUSEC_TRY(ValueId y, c.matMul(n.reshape(x, {rows, DimExpr(numbers * parts)}),
                                  constant({numbers * parts, bins * made}, matrix)));
    return n.reshape(y, {rows, DimExpr(bins), DimExpr(made)});
  }

  /// All bins of x[a, whole, parts], as complex numbers.
  Result<ValueId> stage(ValueId x, int64_t whole, double scale) {
    int64_t first = 1;
    for (int64_t f = 2; f * f <= whole; ++f)
      if (whole % f == 0)
        first = f;
    if (whole <= kLongestProduct || first == 1)
      return byMatrix(x, whole, whole, false, scale);
    const int64_t second = whole / first;
    const DimExpr rows = n.shapeOf(x)[0], n1(first), n2(second), two(2);
    x = c.transpose(n.reshape(x, {rows, n1, n2, DimExpr(size(x, 2))}), {0, 2, 1, 3});
    FUSEC_TRY(ValueId inner, stage(n.reshape(x, {rows * n2, n1, n.shapeOf(x)[3]}), first, 1));
    FUSEC_TRY(ValueId turned, twiddled(n.reshape(inner, {rows, n2, n1, two}), first, second));
    ValueId across = n.reshape(c.transpose(turned, {0, 2, 1, 3}), {rows * n1, n2, two});
    FUSEC_TRY(ValueId outer, stage(across, second, scale));
    ValueId y = c.transpose(n.reshape(outer, {rows, n1, n2, two}), {0, 2, 1, 3});
    return n.reshape(y, {rows, DimExpr(whole), two});
  }

  /// x[a, n2, k1, 2] times w(n1 * n2)^(n2 k1)
  Result<ValueId> twiddled(ValueId x, int64_t first, int64_t second) {
    std::vector<double> own, other;
    for (int64_t i = 0; i < second; ++i)
      for (int64_t k = 0; k < first; ++k) {
        const Root w = rootOfUnity(i * k, first * second);
        own.push_back(w.cosine);
        other.insert(other.end(), {turn * w.sine, -turn * w.sine});
      }
    FUSEC_TRY(ValueId swapped, c.gather(x, n.intsValue({1, 0}), 3));
    FUSEC_TRY(ValueId a, c.binary(OpKind::Mul, x, constant({second, first, 1}, own)));
    FUSEC_TRY(ValueId b, c.binary(OpKind::Mul, swapped, constant({second, first, 2}, other)));
    return c.binary(OpKind::Add, a, b);
  }

  NodeImporter &n;
  Compose c;
  DType t;
  int64_t length;
  DftSign sign;
  double turn; // the roots turn clockwise going forward
};

/// A transform of an open length L. Entry (i, k) of the matrix is at i k mod L of L steps around the circle.
class OpenTransform {
public:
  OpenTransform(NodeImporter &n, DType type, const DftLength &length, const DftSign &sign)
      : n(n), c(n), t(type), length(length), sign(sign) {}

  /// x[a, size, parts] -> [a, bins, 1 or 2]
  Result<ValueId> of(ValueId x) {
    FUSEC_TRY(x, cut(x));
    const DimExpr rows = n.shapeOf(x)[0], numbers = n.shapeOf(x)[1];
    const bool isComplex = n.shapeOf(x)[2].isConst(2), toReal = sign.onesided && sign.inverse;
    const DimExpr bins = sign.onesided && !sign.inverse ? half() : length.size;
    FUSEC_TRY(const ValueId angles, anglesOf(numbers, bins));
    const ValueId cosines = c.unary(OpKind::Cos, angles), sines = c.unary(OpKind::Sin, angles);
    if (toReal) {
      FUSEC_TRY(x, weighted(x));
    }
    auto part = [&](int64_t i) { return n.reshape(c.slice(x, 2, i, 1), {rows, numbers}); };
    FUSEC_TRY(ValueId real, c.matMul(part(0), cosines));
    if (isComplex) {
      FUSEC_TRY(const ValueId other, c.matMul(part(1), sines));
      FUSEC_TRY(real, c.binary(OpKind::Sub, real, other));
    }
    const Shape column{rows, bins, DimExpr(1)};
    if (toReal)
      return scaled(n.reshape(real, column));
    FUSEC_TRY(ValueId imaginary, c.matMul(part(0), sines));
    if (isComplex) {
      FUSEC_TRY(const ValueId other, c.matMul(part(1), cosines));
      FUSEC_TRY(imaginary, c.binary(OpKind::Add, imaginary, other));
    }
    return scaled(c.concat({n.reshape(real, column), n.reshape(imaginary, column)}, 2));
  }

private:
  DimExpr half() const { return floorDiv(length.size, DimExpr(2)) + DimExpr(1); }
  Result<ValueId> halfNumber() {
    FUSEC_TRY(const ValueId half, c.binary(OpKind::Div, length.number, c.integer(2)));
    return c.binary(OpKind::Add, half, c.integer(1));
  }

  /// Without the numbers that no bin depends on; those that are missing add nothing.
  Result<ValueId> cut(ValueId x) {
    const bool isHalf = sign.onesided && sign.inverse;
    if (n.shapeOf(x)[1] == (isHalf ? half() : length.size))
      return x;
    FUSEC_TRY(const ValueId size, c.extent(x, 1));
    ValueId most = length.number;
    if (isHalf) {
      FUSEC_TRY(most, halfNumber());
    }
    FUSEC_TRY(const ValueId end, c.binary(OpKind::Min, size, most));
    return n.emitOne(OpKind::SliceDynamic,
                     {x, n.intsValue({0}), n.reshape(end, {DimExpr(1)}), n.intsValue({1})});
  }

  /// Clockwise going forward.
  Result<ValueId> anglesOf(const DimExpr &numbers, const DimExpr &bins) {
    FUSEC_TRY(
        ValueId steps,
        c.binary(OpKind::Mul, n.reshape(c.iota(numbers), {numbers, DimExpr(1)}), c.iota(bins)));
    steps = c.like(OpKind::Mod, {steps, length.number}, {{"fmod", int64_t(0)}});
    FUSEC_TRY(const ValueId share,
              c.binary(OpKind::Div, c.cast(steps, t), c.cast(length.number, t)));
    return c.binary(OpKind::Mul, share, c.scalar(t, (sign.inverse ? 2 : -2) * M_PI));
  }

  /// Each bin of a real signal stands for two, except the first and the middle one.
  Result<ValueId> weighted(ValueId x) {
    const DimExpr numbers = n.shapeOf(x)[1];
    const ValueId at = c.iota(numbers);
    FUSEC_TRY(const ValueId twice, c.binary(OpKind::Add, at, at));
    FUSEC_TRY(const ValueId isFirst, c.binary(OpKind::Equal, at, c.integer(0)));
    FUSEC_TRY(const ValueId isMiddle, c.binary(OpKind::Equal, twice, length.number));
    FUSEC_TRY(const ValueId isOne, c.binary(OpKind::Or, isFirst, isMiddle));
    FUSEC_TRY(const ValueId times, c.where(isOne, c.scalar(t, 1), c.scalar(t, 2)));
    return c.binary(OpKind::Mul, x, n.reshape(times, {numbers, DimExpr(1)}));
  }

  Result<ValueId> scaled(ValueId y) {
    return sign.inverse ? c.binary(OpKind::Div, y, c.cast(length.number, t)) : y;
  }

  NodeImporter &n;
  Compose c;
  DType t;
  const DftLength &length;
  const DftSign &sign;
};

/// x[a, size, parts], whose size is open, with `count` numbers: zeros behind them where there are fewer.
ValueId filledUp(NodeImporter &n, ValueId x, int64_t count) {
  Compose c(n);
  const Shape shape = n.shapeOf(x);
  const ValueId zeros = c.filled(n.typeOf(x), 0, {shape[0], DimExpr(count), shape[2]});
  return c.slice(c.concat({x, zeros}, 1), 1, 0, count);
}

Result<ValueId> transformed(NodeImporter &n, ValueId x, const DftLength &length,
                            const DftSign &sign) {
  const DType type = n.typeOf(x);
  if (!length.size.isConst())
    return OpenTransform(n, type, length, sign).of(x);
  const int64_t count = length.size.constValue();
  if (count < 1)
    return n.mismatch("the axis to transform is empty");
  if (count > kLongest)
    return n.unsupported("a transform of " + std::to_string(count) + " numbers, more than 2^20");
  if (!n.shapeOf(x)[1].isConst())
    x = filledUp(n, x, count);
  return Transform(n, type, count, sign).of(x);
}

} // namespace

Result<ValueId> fourier(NodeImporter &n, ValueId x, int64_t axis, const DftLength &length,
                        const DftSign &sign) {
  Compose c(n);
  const DType type = n.typeOf(x), t = type == DType::F64 ? type : DType::F32;
  const auto rank = static_cast<int64_t>(n.shapeOf(x).size());
  std::vector<int64_t> perm, back(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank - 1; ++d)
    if (d != axis)
      perm.push_back(d);
  perm.push_back(axis);
  perm.push_back(rank - 1);
  for (size_t i = 0; i < perm.size(); ++i)
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  x = c.transpose(c.cast(x, t), perm);
  Shape shape = n.shapeOf(x);
  const size_t last = shape.size() - 2;
  FUSEC_TRY(ValueId y,
            transformed(n, n.reshape(x, {product(shape, 0, last), shape[last], shape[last + 1]}),
                        length, sign));
  shape[last] = n.shapeOf(y)[1];
  shape[last + 1] = n.shapeOf(y)[2];
  return c.cast(c.transpose(n.reshape(y, std::move(shape)), back), type);
}

} // namespace fusec
