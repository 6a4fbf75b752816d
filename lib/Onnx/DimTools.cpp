#include "Onnx/DimTools.h"

#include "Support/DimLimits.h"

#include <algorithm>
#include <numeric>

namespace fusec {

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

namespace {

/// A fraction after common factors are gone; nothing where the constants overflow or divide by zero.
struct Fraction {
  std::vector<DimExpr> up, down; // not constant
  int64_t upConstant = 1, downConstant = 1;
};
std::optional<Fraction> reduce(const Shape &num, const Shape &den) {
  Fraction f;
  if (!factorise(num, f.up, f.upConstant) || !factorise(den, f.down, f.downConstant) ||
      f.downConstant == 0)
    return std::nullopt;
  for (auto it = f.down.begin(); it != f.down.end();) {
    auto same = std::find(f.up.begin(), f.up.end(), *it);
    if (same == f.up.end()) {
      ++it;
      continue;
    }
    f.up.erase(same);
    it = f.down.erase(it);
  }
  int64_t common = f.upConstant ? std::gcd(f.upConstant, f.downConstant) : f.downConstant;
  f.upConstant /= common;
  f.downConstant /= common;
  return f;
}

} // namespace

std::optional<DimExpr> exactQuotient(const Shape &num, const Shape &den,
                                     const std::vector<Symbol> &symbols) {
  auto f = reduce(num, den);
  // One factor below may still divide a sum above: (n*4 + 4) / (n + 1) is beyond us.
  if (!f || !f->down.empty())
    return std::nullopt;
  DimExpr top(f->upConstant);
  for (const DimExpr &d : f->up)
    top = top * d;
  if (f->downConstant == 1)
    return top;
  if (top.divisibleBy(f->downConstant, symbols))
    return floorDiv(top, DimExpr(f->downConstant));
  return std::nullopt;
}

std::optional<std::pair<DimExpr, int64_t>> missingDivisor(const Shape &num, const Shape &den) {
  auto f = reduce(num, den);
  if (!f || !f->down.empty() || f->up.size() != 1 || f->downConstant == 1)
    return std::nullopt;
  return std::pair(f->up[0], f->downConstant);
}

std::set<SymbolId> symbolsOf(const Shape &sizes) {
  std::set<SymbolId> used;
  for (const DimExpr &size : sizes) {
    std::vector<SymbolId> own;
    size.collectSymbols(own);
    used.insert(own.begin(), own.end());
  }
  return used;
}

constexpr std::string_view kInFrontOfAxis = "_d";

std::string nameOfSize(const std::string &tensor, size_t axis) {
  return tensor + std::string(kInFrontOfAxis) + std::to_string(axis);
}

bool mayNameSize(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  name = name.substr(0, name.find_last_not_of('_') + 1);
  const size_t end = name.find_last_not_of(kDigits);
  return end != name.npos && end + 1 < name.size() &&
         name.substr(0, end + 1).ends_with(kInFrontOfAxis);
}

std::string tooLargeExpression() {
  return "an expression over the symbolic sizes of more than " +
         std::to_string(kLargestSizeOfModel.depth) + " operations one inside the other, or " +
         std::to_string(kLargestSizeOfModel.nodes) + " in all";
}

/// " --dim NAME=0..N" for each size of the data.
static std::string dataSizeOptions(const Shape &shape, const std::vector<Symbol> &symbols) {
  std::string text;
  for (SymbolId s : symbolsOf(shape))
    if (symbols[static_cast<size_t>(s)].isDataDependent())
      text += " --dim " + DimExpr::symbol(s).str(symbols) + "=0..N";
  return text;
}

std::string tooLarge(DType type, const Shape &shape, const std::vector<Symbol> &symbols,
                     const Limits &limits) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (isTooLarge(shape[i], kLargestSizeOfModel))
      return "dimension " + std::to_string(i) + " is " + tooLargeExpression() +
             "; fix sizes of the inputs with --dim or --shape";
  int64_t bytes = sizeInBytes(type);
  bool over = false, byData = false;
  for (const DimExpr &d : shape) {
    const DimExpr most = atBounds(d, symbols);
    byData = byData || most != d;
    int64_t least = std::max<int64_t>(most.range(symbols).min, 0);
    if (least == 0)
      return "";
    over = over || __builtin_mul_overflow(bytes, least, &bytes);
  }
  if (!over && bytes <= limits.tensorBytes)
    return "";
  const std::string limit = std::to_string(limits.tensorBytes) + " bytes";
  if (!byData)
    return typeText(type, shape, symbols) + " has more than " + limit;
  return typeText(type, shape, symbols) + " may have " +
         (over ? "more than 2^63" : std::to_string(bytes)) + " bytes, as the data decides, and " +
         limit + " are the most; give what it has at most with" + dataSizeOptions(shape, symbols);
}

} // namespace fusec
