#pragma once
#include "Graph/SizeSolver.h"
#include "Onnx/FloatFraction.h"
#include "Support/DimProgram.h"

#include <set>
#include <unordered_map>

namespace fusec {

/// The program where symbols that nothing computes are what the solver has found them to be.
DimProgram canonical(const DimProgram &program, const SizeSolver &solver);

/// The numbers that small tensors hold where these follow from shapes: integers and bools as expressions over the
/// symbols, and what operations make of numbers where no expression says it. Equal ones have one id.
class HostNumbers {
public:
  using Id = int32_t;
  using Op = DimProgram::Op;

  /// Symbols that `size` makes are added to both; expressions are canonical.
  HostNumbers(std::vector<Symbol> &symbols, SizeSolver &solver)
      : symbols(symbols), solver(solver) {}

  Id integer(DType type, DimExpr value); // or bool: 0 or 1
  Id real(DType type, double value);
  /// One that has no value: a choice must not take it, or there is none.
  Id none(DType type);
  /// As an expression where one is exact for all values of the symbols. Nothing where there is no value, and where it
  /// would be too deep. Types fit (DimProgram::valid), and integers are i32 or i64.
  std::optional<Id> apply(Op op, DType type, std::array<Id, 3> args);
  std::optional<Id> cast(DType to, Id x);

  DType type(Id x) const { return at(x).type; }
  /// The expression of an integer or bool that is one.
  const std::optional<DimExpr> &expression(Id x) const { return at(x).dim; }
  /// The value of a constant integer or bool.
  std::optional<int64_t> constant(Id x) const {
    const auto &d = expression(x);
    return d && d->isConst() ? std::optional(d->constValue()) : std::nullopt;
  }
  /// The value of a constant float.
  std::optional<double> constantReal(Id x) const;
  /// An integer or bool as an expression, over new symbols that are defined by programs where it is none itself.
  /// `node` asks for it. Nothing where these would be too large.
  std::optional<DimExpr> size(Id x, const std::string &node);
  /// What has to be so for an integer made of floats to be an expression: within these limits they are exact. None
  /// where it is one, or would be none in any case.
  std::vector<SizeRule> limits(Id x) const;
  /// Its expression, or what size() has made of it.
  std::optional<DimExpr> knownSize(Id x) const;
  /// Symbols that size() has made, ascending.
  const std::set<SymbolId> &made() const { return madeSymbols; }

private:
  struct Number {
    DType type;
    std::optional<DimExpr> dim; // else `instr`, whose operands are ids here
    DimProgram::Instr instr;
    DimNumberRange range;
    std::optional<FloatFraction> fraction;
    int depth = 0;
    std::optional<DimExpr> tooLarge = std::nullopt; // it, or what it is made of, as an expression
  };

  const Number &at(Id x) const { return numbers[static_cast<size_t>(x)]; }
  Id add(Number n);
  std::optional<Id> fold(const DimProgram::Instr &instr);
  std::optional<Id> decided(const DimProgram::Instr &instr);
  std::optional<Id> chosen(const DimProgram::Instr &instr);
  std::optional<DimExpr> newSymbol(Id x, const std::string &node);

  std::vector<Symbol> &symbols;
  SizeSolver &solver;
  std::vector<Number> numbers;
  std::unordered_multimap<size_t, Id> byHash;
  std::unordered_map<Id, DimExpr> sizes; // that were asked for
  std::set<SymbolId> madeSymbols;
};

} // namespace fusec
