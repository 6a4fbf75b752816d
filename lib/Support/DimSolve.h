#pragma once
#include "Support/Dim.h"

namespace fusec {

/// What it means that two sizes are equal.
struct DimEquation {
  enum class Kind {
    Always,   // for all values of the symbols
    Never,    // for none
    Solved,   // exactly where `symbol` is `value`, in which it does not occur
    Multiple, // exactly where `symbol` is a multiple of `value`, a constant
    AtLeast,  // exactly where `value` >= 0
    Part,     // exactly where `part` is `value`, in which it does not occur
    Open      // for some
  };
  Kind kind;
  SymbolId symbol = -1;
  DimExpr value = 0;
  DimExpr part = 0; // a symbol with a definition, or no symbol, sum or product
};

/// Factors that are at least 1 for all values of the symbols cancel: a*b = b says that a is 1. Of several symbols the
/// one whose value subtracts nothing, then the last one is solved for. A symbol with a definition is a part: it is not
/// solved for, and no other symbol by it.
DimEquation solveEquality(const DimExpr &left, const DimExpr &right,
                          const std::vector<Symbol> &symbols);

/// What `e` is where the symbol is a multiple of `divisor`, in one form: n for floordiv(n, 2)*2 with an even n.
DimExpr underDivisor(const DimExpr &e, SymbolId symbol, int64_t divisor);

/// `e` with the second of each pair in place of the first, which is a part (DimEquation).
DimExpr replaceParts(const DimExpr &e, const std::vector<std::pair<DimExpr, DimExpr>> &pairs);

/// Whether e >= least for all values of its symbols: as one operand of a maximum tells, or of an only symbol remainders
/// and a rise in between.
bool isAlwaysAtLeast(const DimExpr &e, int64_t least, const std::vector<Symbol> &symbols);

/// The least value of the only symbol of `e` from which on e >= least, where e never falls as that rises.
struct LeastValue {
  SymbolId symbol;
  int64_t value;
};
std::optional<LeastValue> leastValue(const DimExpr &e, int64_t least,
                                     const std::vector<Symbol> &symbols);

/// `e` as coefficient * symbol + constant, where it is that with a coefficient other than 0.
struct LinearDim {
  SymbolId symbol;
  int64_t coefficient, constant;
};
std::optional<LinearDim> asLinear(const DimExpr &e);

} // namespace fusec
