#pragma once
#include "Support/DType.h"
#include "Support/Dim.h"

#include <array>

namespace fusec {

/// How a symbol follows from those in front of it where no DimExpr says so: operations on numbers, one behind
/// the other, which the host carries out when shapes are set. What is made of integers is exact or has no
/// value, what is made of floats is rounded to its type once. What has no value leaves none to what is made of
/// it, but for a choice that does not take it. Bools are the integers 0 and 1: their Min is "and", their Max
/// "or".
struct DimProgram {
  enum class Op : uint8_t {
    Symbol,  // of index `value`; i64
    Integer, // `value`
    Float,   // the number whose bits as f64 are `value`
    Cast,    // float to integer: towards zero; to bool: is not 0
    Floor,
    Ceil,
    Round, // to even in the middle
    Sqrt,
    Exp,
    Log,
    Add,
    Sub,
    Mul,
    Div,      // of integers: towards zero
    FloorDiv, // integers alone, as the next two
    CeilDiv,
    Mod, // sign of the divisor
    Rem, // sign of the dividend
    Min, // of floats: NaN where one is, as Max
    Max,
    Pow, // of integers: exact; with a negative exponent the reciprocal, towards zero
    Equal,
    Less,
    LessOrEqual,
    Select, // of a bool: the second where it holds, else the third
  };
  struct Instr {
    Op op = Op::Integer;
    DType type = DType::I64; // of the result
    /// Instructions in front of this one, as many as the operation takes; else -1.
    std::array<int32_t, 3> args = {-1, -1, -1};
    int64_t value = 0;
    bool operator==(const Instr &) const = default;
  };
  static constexpr size_t kMaxLength = 4096;

  std::vector<Instr> code; // the last one is the value, an i64
  std::string node;        // of the ONNX model, that asked for it: for messages

  bool operator==(const DimProgram &) const = default;
  /// Well-formed: known operations of operands in front and of fitting types, symbols below `numSymbols`, an i64 last.
  bool valid(size_t numSymbols) const;
  std::optional<int64_t> evaluate(const std::vector<int64_t> &symbols) const;
  /// "i64(ceil(f32(n)/2))" for people; cut where it is very long.
  std::string str(const std::vector<fusec::Symbol> &symbols) const;
};

int numOperands(DimProgram::Op op);
std::string_view name(DimProgram::Op op);
std::optional<DimProgram::Op> parseDimOp(std::string_view text);

/// What one operation gives.
struct DimNumber {
  bool known = false; // it has a value
  int64_t integer = 0;
  double real = 0;
};
/// Operands have the types that `valid` asks for; those that the operation does not take are not read.
DimNumber apply(const DimProgram::Instr &instr, DType operandType,
                const std::array<const DimNumber *, 3> &args, const std::vector<int64_t> &symbols);

/// Values that a number may have: integers from `min` to `max`, floats from `low` to `high` or NaN.
struct DimNumberRange {
  int64_t min = 0, max = 0;
  double low = 0, high = 0;
  bool mayBeNan = false;
};
DimNumberRange rangeOf(const DimProgram::Instr &instr, DType operandType,
                       const std::array<const DimNumberRange *, 3> &args,
                       const std::vector<Symbol> &symbols);

/// How many symbols nothing computes; they come first.
size_t numGiven(const std::vector<Symbol> &symbols);
/// Appends the values of the symbols behind those in `values`. The first that has none is returned.
std::optional<SymbolId> computeDefined(const std::vector<Symbol> &symbols,
                                       std::vector<int64_t> &values);

} // namespace fusec
