#pragma once
#include "Support/Dim.h"
#include "Support/SumText.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fusec::bundle {

/// A dimension expression as the bundle stores it: postfix code over checked int64. It is not simplified, so
/// that reading an untrusted one costs no more than its length.
struct DimCode {
  enum class Op : uint8_t { Const, Symbol, Add, Mul, FloorDiv, CeilDiv, Mod, Min, Max };
  struct Instr {
    Op op;
    int64_t value; // Const: the number; Symbol: the index; else 0
    bool operator==(const Instr &o) const { return op == o.op && value == o.value; }
  };
  static constexpr int kMaxStack = 64;
  static constexpr size_t kMaxLength = 4096;

  std::vector<Instr> code;

  DimCode(int64_t value = 0) : code{{Op::Const, value}} {}
  explicit DimCode(const DimExpr &expr);
  static DimCode symbol(SymbolId id);

  bool isSymbol() const { return code.size() == 1 && code[0].op == Op::Symbol; }
  bool isConst() const { return code.size() == 1 && code[0].op == Op::Const; }
  int64_t constValue() const { return code[0].value; }
  bool operator==(const DimCode &o) const { return code == o.code; }
  /// Calls f(SymbolId) wherever a symbol stands.
  template <typename F> void forEachSymbol(F f) const {
    for (const Instr &i : code)
      if (i.op == Op::Symbol)
        f(static_cast<SymbolId>(i.value));
  }

  /// Well-formed: known operations, symbols below `numSymbols`, stack within its limit, one result.
  bool valid(size_t numSymbols) const;
  /// Value of a valid expression; nullopt on overflow or division by zero or a negative divisor.
  std::optional<int64_t> evaluate(const std::vector<int64_t> &symbols) const;
  /// Infix text, as DimExpr::str writes it but without simplification.
  std::string str(const std::vector<Symbol> &symbols) const;
};

/// Its terms as they are, at least one.
std::vector<SumTerm> sumTerms(const DimCode &dim, const std::vector<Symbol> &symbols);

} // namespace fusec::bundle
