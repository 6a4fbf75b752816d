#include "Support/DimNode.h"
#include "Support/DimProgram.h"

#include <algorithm>
#include <cmath>
#include <limits>

// Bounds of what a DimProgram computes. Rounding is monotonic, so that the ends of an interval bound what an operation
// makes of it wherever the exact operation is monotonic in each operand.

namespace fusec {

using Op = DimProgram::Op;
using Instr = DimProgram::Instr;
using dim::Wide;
using dim::WideRange;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

DimNumberRange anyReal() { return {0, 0, -kInfinity, kInfinity, true}; }

WideRange rangeOfType(DType type) {
  switch (type) {
  case DType::Bool: return {0, 1};
  case DType::I8: return {INT8_MIN, INT8_MAX};
  case DType::I16: return {INT16_MIN, INT16_MAX};
  case DType::I32: return {INT32_MIN, INT32_MAX};
  case DType::U8: return {0, UINT8_MAX};
  case DType::U16: return {0, UINT16_MAX};
  case DType::U32: return {0, UINT32_MAX};
  case DType::U64: return {0, INT64_MAX};
  default: return {INT64_MIN, INT64_MAX};
  }
}

/// Results outside the type do not exist.
DimNumberRange integers(WideRange r, DType type) {
  const WideRange all = rangeOfType(type);
  return {static_cast<int64_t>(std::clamp(r.min, all.min, all.max)),
          static_cast<int64_t>(std::clamp(r.max, all.min, all.max))};
}

/// What the operation makes of all ends of the operands' intervals.
DimNumberRange ofEnds(const Instr &i, DType type, const DimNumberRange &a,
                      const DimNumberRange *b) {
  DimNumberRange r{0, 0, kInfinity, -kInfinity, a.mayBeNan || (b && b->mayBeNan)};
  for (double x : {a.low, a.high})
    for (double y : {b ? b->low : 0, b ? b->high : 0}) {
      const DimNumber first{true, 0, x}, second{true, 0, y};
      const double made = apply(i, type, {&first, &second, nullptr}, {}).real;
      if (std::isnan(made))
        return anyReal();
      r.low = std::min(r.low, made);
      r.high = std::max(r.high, made);
    }
  return r;
}

DimNumberRange ofReals(const Instr &i, DType type, const DimNumberRange &a,
                       const DimNumberRange *b) {
  switch (i.op) {
  case Op::Div:
    if (b->low <= 0 && b->high >= 0)
      return anyReal();
    break;
  case Op::Log:
  case Op::Pow:
    if (!(a.low > 0))
      return anyReal();
    break;
  case Op::Rem: return anyReal();
  case Op::Sqrt:
    if (!(a.low >= 0))
      return anyReal();
    break;
  default: break;
  }
  return ofEnds(i, type, a, b);
}

/// 1 where it always holds, 0 where it never does.
DimNumberRange truth(bool always, bool never) { return {always ? 1 : 0, never ? 0 : 1}; }

DimNumberRange compared(Op op, bool real, const DimNumberRange &a, const DimNumberRange &b) {
  const bool ordered = !real || (!a.mayBeNan && !b.mayBeNan);
  const bool below = real ? a.high < b.low : a.max < b.min;    // in all cases
  const bool above = real ? a.low > b.high : a.min > b.max;    // likewise
  const bool atMost = real ? a.high <= b.low : a.max <= b.min; // likewise
  const bool atLeast = real ? a.low >= b.high : a.min >= b.max;
  if (op == Op::Equal)
    return truth(ordered && atMost && atLeast, below || above);
  return op == Op::Less ? truth(ordered && below, atLeast) : truth(ordered && atMost, above);
}

DimNumberRange cast(DType to, DType from, const DimNumberRange &a) {
  if (to == DType::Bool)
    return isFloat(from) ? truth(a.low > 0 || a.high < 0, a.low == 0 && a.high == 0 && !a.mayBeNan)
                         : truth(a.min > 0 || a.max < 0, a.min == 0 && a.max == 0);
  if (isFloat(to)) {
    const Instr i{Op::Cast, to};
    const DimNumber low{true, a.min, a.low}, high{true, a.max, a.high};
    return {0, 0, apply(i, from, {&low}, {}).real, apply(i, from, {&high}, {}).real, a.mayBeNan};
  }
  if (!isFloat(from))
    return integers({a.min, a.max}, to);
  constexpr double kLimit = 0x1p63;
  auto whole = [](double v) {
    return v < -kLimit ? Wide(INT64_MIN) : v >= kLimit ? Wide(INT64_MAX) : Wide(v);
  };
  return integers({whole(a.low), whole(a.high)}, to);
}

/// Powers of what is not negative grow with base and exponent, but for 0 to the power of 0, which is 1.
DimNumberRange powers(const Instr &i, const DimNumberRange &a, const DimNumberRange &b) {
  const WideRange all = rangeOfType(i.type);
  if (a.min < 0 || b.min < 0)
    return integers(all, i.type);
  auto power = [&](int64_t base, int64_t exponent) {
    const DimNumber x{true, base, 0}, e{true, exponent, 0};
    const DimNumber made = apply(i, i.type, {&x, &e, nullptr}, {});
    return made.known ? Wide(made.integer) : all.max;
  };
  return integers({a.min > 0 ? power(a.min, b.min) : 0, std::max(power(a.max, b.max), Wide(1))},
                  i.type);
}

Wide truncate(Wide a, Wide b) { return a / b; }

} // namespace

DimNumberRange rangeOf(const Instr &i, DType type,
                       const std::array<const DimNumberRange *, 3> &args,
                       const std::vector<Symbol> &symbols) {
  const DimNumberRange *a = args[0], *b = args[1];
  switch (i.op) {
  case Op::Symbol: {
    const auto id = static_cast<size_t>(i.value);
    return id < symbols.size() ? DimNumberRange{symbols[id].min, symbols[id].max}
                               : DimNumberRange{INT64_MIN, INT64_MAX};
  }
  case Op::Integer: return {i.value, i.value};
  case Op::Float: {
    const double v = apply(i, type, {}, {}).real;
    return std::isnan(v) ? anyReal() : DimNumberRange{0, 0, v, v};
  }
  case Op::Cast: return cast(i.type, type, *a);
  case Op::Equal:
  case Op::Less:
  case Op::LessOrEqual: return compared(i.op, isFloat(type), *a, *b);
  case Op::Select:
    if (a->min == a->max)
      return *args[a->min ? 1 : 2];
    return {std::min(b->min, args[2]->min), std::max(b->max, args[2]->max),
            std::min(b->low, args[2]->low), std::max(b->high, args[2]->high),
            b->mayBeNan || args[2]->mayBeNan};
  default: break;
  }
  if (isFloat(type))
    return ofReals(i, type, *a, numOperands(i.op) == 2 ? b : nullptr);
  const WideRange x{a->min, a->max}, y{b->min, b->max};
  switch (i.op) {
  case Op::Add: return integers(dim::addRanges(x, y), i.type);
  case Op::Sub: return integers(dim::addRanges(x, {-y.max, -y.min}), i.type);
  case Op::Mul: return integers(dim::multiplyRanges(x, y), i.type);
  case Op::Div: return integers(dim::divideRanges(x, y, truncate), i.type);
  case Op::FloorDiv: return integers(dim::divideRanges(x, y, dim::floorDivide), i.type);
  case Op::CeilDiv: return integers(dim::divideRanges(x, y, dim::ceilDivide), i.type);
  case Op::Mod: return integers(dim::moduloRange(x, y), i.type);
  case Op::Rem: {
    const Wide most = std::max(y.max < 0 ? -y.max : y.max, y.min < 0 ? -y.min : y.min);
    return integers({x.min < 0 ? std::max(x.min, -most) : 0, x.max > 0 ? std::min(x.max, most) : 0},
                    i.type);
  }
  case Op::Pow: return powers(i, *a, *b);
  case Op::Min: return integers({std::min(x.min, y.min), std::min(x.max, y.max)}, i.type);
  default: return integers({std::max(x.min, y.min), std::max(x.max, y.max)}, i.type);
  }
}

} // namespace fusec
