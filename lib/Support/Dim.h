#pragma once
#include "Support/DataTests.h"
#include "Support/Result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fusec {

/// Index into the symbol table of a model. Graph, Expr, Gir and bundle use the same numbering.
using SymbolId = int32_t;

struct DimProgram;
struct Symbol;
enum class SymbolKind : int64_t; // TunedSizes.h

/// Size of a tensor dimension, trip count or buffer: an immutable expression over int64 constants and
/// symbols. Every operation is checked: evaluation reports overflow and division by zero instead of
/// wrapping. Expressions are kept in a normal form (sum of products with constant coefficients, sorted),
/// so equal expressions compare equal in the usual cases: `n*2 + n` == `n*3`.
class DimExpr {
public:
  enum class Op : uint8_t { Const, Symbol, Add, Mul, FloorDiv, CeilDiv, Mod, Min, Max };

  DimExpr(int64_t value = 0);
  static DimExpr symbol(SymbolId id);

  bool isConst() const;
  bool isConst(int64_t v) const { return isConst() && constValue() == v; }
  int64_t constValue() const; // asserts isConst()
  Op op() const;
  SymbolId symbolId() const;                    // asserts op() == Symbol
  const std::vector<DimExpr> &operands() const; // Add and Mul are n-ary; constants come last

  friend DimExpr operator+(const DimExpr &a, const DimExpr &b);
  friend DimExpr operator-(const DimExpr &a, const DimExpr &b);
  friend DimExpr operator*(const DimExpr &a, const DimExpr &b);
  friend DimExpr floorDiv(const DimExpr &a, const DimExpr &b);
  friend DimExpr ceilDiv(const DimExpr &a, const DimExpr &b);
  friend DimExpr mod(const DimExpr &a, const DimExpr &b);
  friend DimExpr min(const DimExpr &a, const DimExpr &b);
  friend DimExpr max(const DimExpr &a, const DimExpr &b);
  bool operator==(const DimExpr &other) const;
  bool operator!=(const DimExpr &other) const { return !(*this == other); }
  /// Total structural order (for canonical sorting), no relation to the values.
  bool structurallyLess(const DimExpr &other) const;

  /// Value under an assignment of all symbols (indexed by SymbolId); nullopt on overflow, division by
  /// zero or a symbol out of range.
  std::optional<int64_t> evaluate(const std::vector<int64_t> &symbols) const;
  /// Replaces symbols by expressions (identity where `map` returns nullopt).
  DimExpr substitute(const std::function<std::optional<DimExpr>(SymbolId)> &map) const;
  /// Inclusive bounds under the symbols' ranges; saturates at INT64_MIN/MAX.
  struct Range {
    int64_t min, max;
  };
  Range range(const std::vector<Symbol> &symbols) const;
  /// True if the value is provably a multiple of `m` (> 0) for all legal symbol values.
  bool divisibleBy(int64_t m, const std::vector<Symbol> &symbols) const;
  void collectSymbols(std::vector<SymbolId> &out) const; // sorted, unique
  /// Calls f(SymbolId) for each of these.
  template <typename F> void forEachSymbol(F f) const {
    std::vector<SymbolId> used;
    collectSymbols(used);
    for (SymbolId id : used)
      f(id);
  }

  /// Infix text over symbol names: "batch*seq", "floordiv(n + 1, 2)", "max(a, 1)". A name that is not an
  /// identifier is quoted with `backquotes` and \xNN escapes.
  std::string str(const std::vector<Symbol> &symbols) const;
  /// Inverse of str(); unknown names are errors.
  static Result<DimExpr> parse(std::string_view text, const std::vector<Symbol> &symbols);
  size_t hash() const;

private:
  struct Node;
  friend struct DimBuilder;         // DimNode.h
  std::shared_ptr<const Node> node; // nullptr is not allowed
  explicit DimExpr(std::shared_ptr<const Node> n) : node(std::move(n)) {}
};

/// A named integer that is known when shapes are set, or where it depends on data, once a part of the run has computed
/// it. `min`/`opt`/`max` are inclusive; every value is a multiple of `divisor`. Names are ONNX dim_params or made up
/// ("x_d0"). Symbols that the inputs' shapes give come first.
struct Symbol {
  std::string name;
  int64_t min = 1;
  int64_t opt = 1;
  int64_t max = INT64_MAX;
  int64_t divisor = 1;
  /// How it follows from symbols in front of it that do not depend on data; nullptr where it does not. It may be
  /// negative.
  std::shared_ptr<const DimProgram> definition = nullptr;
  /// What a size that depends on data has at most, over symbols in front of it; no value for other symbols.
  std::optional<DimExpr> bound = std::nullopt;
  /// What a size of the data tests: it is by how many elements something lies outside of what it may be. Its bound is
  /// 0, and nothing is of that size. No value for other symbols.
  std::optional<TestOfData> test = std::nullopt;
  /// What it is to a model whose user favours a size of it (TunedSizes.h); without such a size `opt` says that.
  std::optional<SymbolKind> favouredKind = std::nullopt;

  bool isDataDependent() const { return bound.has_value(); }
  bool testsData() const { return test.has_value(); }
};
/// A size of the data, from 0 up to `bound`: its range follows from those of `symbols`.
Symbol dataDependentSymbol(std::string name, const DimExpr &bound,
                           const std::vector<Symbol> &symbols);

/// The larger value of `size` where sizes that depend on data are as small or as large as they may be, one by one: an
/// upper bound of one that is linear in each of them, or does not fall with them.
DimExpr atBounds(const DimExpr &size, const std::vector<Symbol> &symbols);

using Shape = std::vector<DimExpr>;

/// Product of all dims (1 for rank 0).
DimExpr numElements(const Shape &shape);
bool isStatic(const Shape &shape);
/// Dims of a static shape; asserts isStatic().
std::vector<int64_t> staticDims(const Shape &shape);
/// "1x128x768", "(batch)x128" with symbolic dims in parentheses, "[]" for rank 0.
std::string str(const Shape &shape, const std::vector<Symbol> &symbols);

} // namespace fusec
