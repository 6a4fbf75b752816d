#include "Onnx/DimTools.h"

#include <algorithm>
#include <numeric>

namespace fusec {

std::optional<DimExpr> broadcastDim(const DimExpr &a, const DimExpr &b) {
  if (a == b || b.isConst(1))
    return a;
  if (a.isConst(1))
    return b;
  return std::nullopt;
}

DimExpr product(const Shape &shape, size_t begin, size_t end) {
  DimExpr p(1);
  for (size_t i = begin; i < end; ++i)
    p = p * shape[i];
  return p;
}

/// Splits into non-constant factors and one constant; false when the constant overflows.
static bool factorise(const Shape &dims, std::vector<DimExpr> &factors, int64_t &constant) {
  for (const DimExpr &d : dims) {
    if (d.isConst()) {
      if (__builtin_mul_overflow(constant, d.constValue(), &constant))
        return false;
    } else if (d.op() == DimExpr::Op::Mul) {
      if (!factorise(d.operands(), factors, constant))
        return false;
    } else {
      factors.push_back(d);
    }
  }
  return true;
}

std::optional<DimExpr> exactQuotient(const Shape &num, const Shape &den,
                                     const std::vector<Symbol> &symbols) {
  std::vector<DimExpr> up, down;
  int64_t upConstant = 1, downConstant = 1;
  if (!factorise(num, up, upConstant) || !factorise(den, down, downConstant) || downConstant == 0)
    return std::nullopt;
  for (auto it = down.begin(); it != down.end();) {
    auto same = std::find(up.begin(), up.end(), *it);
    if (same == up.end()) {
      ++it;
      continue;
    }
    up.erase(same);
    it = down.erase(it);
  }
  int64_t common = upConstant ? std::gcd(upConstant, downConstant) : downConstant;
  upConstant /= common;
  downConstant /= common;
  DimExpr top(upConstant);
  for (const DimExpr &d : up)
    top = top * d;
  if (!down.empty()) {
    // One factor below may still divide a sum above: (n*4 + 4) / (n + 1) is beyond us.
    return std::nullopt;
  }
  if (downConstant == 1)
    return top;
  if (top.divisibleBy(downConstant, symbols))
    return floorDiv(top, DimExpr(downConstant));
  return std::nullopt;
}

} // namespace fusec
