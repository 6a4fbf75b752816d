// The operations of the scalar language on columns of cells: code of their own for the frequent ones, the rest by
// way of the constant folder, which has the same bits.
#include "Expr/ScalarEval.h"
#include "Reference/GirCells.h"
#include "Support/Half.h"
#include "Support/MathPoly.h"

#include <cassert>
#include <cmath>

namespace fusec::girvm {
namespace {

ScalarValue toScalar(DType type, Cell c) {
  if (!isFloat(type))
    return {c.i, 0};
  return {0, type == DType::F64 ? c.d : static_cast<double>(c.f)};
}

Cell toCell(DType type, ScalarValue v) {
  Cell c{.i = v.i};
  if (type == DType::F64)
    c.d = v.f;
  else if (isFloat(type)) {
    c.i = 0;
    c.f = static_cast<float>(v.f);
  }
  return c;
}

void viaFolder(const Instruction &in, int count) {
  // Select's first operand is a bool, all others have the operand type.
  for (int l = 0; l < count; ++l) {
    ScalarValue values[3];
    for (int i = 0; i < 3 && in.operands[i]; ++i)
      values[i] = toScalar(in.op == ScalarOp::Select && i == 0 ? DType::Bool : in.operandType,
                           in.operands[i][l * in.steps[i]]);
    auto result = evaluateScalar(in.op, in.type, in.operandType, values);
    assert(result && "the folder knows every operation but leaves and maths");
    in.out[l] = toCell(in.type, *result);
  }
}

// How each kind of value is read from a cell and rounded into one.
struct F32 {
  using V = float;
  static V get(Cell c) { return c.f; }
  static void put(Cell &c, V v) { c.f = v; }
};
struct F16 : F32 {
  static void put(Cell &c, V v) { c.f = halfToFloat(halfFromFloat(v)); }
};
struct BF16 : F32 {
  static void put(Cell &c, V v) { c.f = bfloatToFloat(bfloatFromFloat(v)); }
};
struct F64 {
  using V = double;
  static V get(Cell c) { return c.d; }
  static void put(Cell &c, V v) { c.d = v; }
};
struct I64 {
  using V = int64_t;
  static V get(Cell c) { return c.i; }
  static void put(Cell &c, V v) { c.i = v; }
};
struct I32 : I64 {
  static void put(Cell &c, V v) { c.i = static_cast<int32_t>(v); }
};

template <typename From, typename To, typename F> Instruction::Function unary() {
  return [](const Instruction &in, int count) {
    for (int l = 0; l < count; ++l)
      To::put(in.out[l], F()(From::get(in.operands[0][l * in.steps[0]])));
  };
}
template <typename From, typename To, typename F> Instruction::Function binary() {
  return [](const Instruction &in, int count) {
    for (int l = 0; l < count; ++l)
      To::put(in.out[l], F()(From::get(in.operands[0][l * in.steps[0]]),
                             From::get(in.operands[1][l * in.steps[1]])));
  };
}

// Integers wrap: arithmetic in unsigned, which signed overflow would make undefined.
struct Add {
  float operator()(float a, float b) const { return a + b; }
  double operator()(double a, double b) const { return a + b; }
  int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct Sub {
  float operator()(float a, float b) const { return a - b; }
  double operator()(double a, double b) const { return a - b; }
  int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};
struct Mul {
  float operator()(float a, float b) const { return a * b; }
  double operator()(double a, double b) const { return a * b; }
  int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
struct Div {
  template <typename T> T operator()(T a, T b) const { return a / b; }
};
struct Minimum {
  template <typename T> T operator()(T a, T b) const {
    return a != a ? a : b != b ? b : a < b ? a : b;
  }
};
struct Maximum {
  template <typename T> T operator()(T a, T b) const {
    return a != a ? a : b != b ? b : a > b ? a : b;
  }
};
struct Less {
  template <typename T> int64_t operator()(T a, T b) const { return a < b; }
};
struct LessEqual {
  template <typename T> int64_t operator()(T a, T b) const { return a <= b; }
};
struct Equal {
  template <typename T> int64_t operator()(T a, T b) const { return a == b; }
};
struct Negate {
  template <typename T> T operator()(T a) const { return -a; }
};
struct FloorDiv {
  int64_t operator()(int64_t a, int64_t b) const {
    if (b == 0 || b == -1)
      return b == 0 ? 0 : static_cast<int64_t>(0 - static_cast<uint64_t>(a));
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
  }
};
struct FloorMod {
  int64_t operator()(int64_t a, int64_t b) const {
    if (b == 0 || b == -1)
      return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
};
struct BitAnd {
  int64_t operator()(int64_t a, int64_t b) const { return a & b; }
};
struct BitOr {
  int64_t operator()(int64_t a, int64_t b) const { return a | b; }
};

template <typename N> Instruction::Function floatFunction(ScalarOp op) {
  switch (op) {
  case ScalarOp::Add: return binary<N, N, Add>();
  case ScalarOp::Sub: return binary<N, N, Sub>();
  case ScalarOp::Mul: return binary<N, N, Mul>();
  case ScalarOp::Div: return binary<N, N, Div>();
  case ScalarOp::Min: return binary<N, N, Minimum>();
  case ScalarOp::Max: return binary<N, N, Maximum>();
  case ScalarOp::Neg: return unary<N, N, Negate>();
  default: return nullptr;
  }
}

template <typename N> Instruction::Function integerFunction(ScalarOp op) {
  switch (op) {
  case ScalarOp::Add: return binary<N, N, Add>();
  case ScalarOp::Sub: return binary<N, N, Sub>();
  case ScalarOp::Mul: return binary<N, N, Mul>();
  case ScalarOp::Min: return binary<N, N, Minimum>();
  case ScalarOp::Max: return binary<N, N, Maximum>();
  case ScalarOp::FloorDiv: return binary<N, N, FloorDiv>();
  case ScalarOp::FloorMod: return binary<N, N, FloorMod>();
  default: return nullptr;
  }
}

template <typename N> Instruction::Function comparison(ScalarOp op) {
  switch (op) {
  case ScalarOp::Lt: return binary<N, I64, Less>();
  case ScalarOp::Le: return binary<N, I64, LessEqual>();
  case ScalarOp::Eq: return binary<N, I64, Equal>();
  default: return nullptr;
  }
}

void select(const Instruction &in, int count) {
  for (int l = 0; l < count; ++l)
    in.out[l] = in.operands[0][l * in.steps[0]].i ? in.operands[1][l * in.steps[1]]
                                                  : in.operands[2][l * in.steps[2]];
}

void fma(const Instruction &in, int count) {
  for (int l = 0; l < count; ++l)
    in.out[l] = fusedMultiplyAdd(in.type, in.operands[0][l * in.steps[0]],
                                 in.operands[1][l * in.steps[1]], in.operands[2][l * in.steps[2]]);
}

std::optional<MathFn> mathFunction(ScalarOp op) {
  if (op == ScalarOp::Pow)
    return MathFn::Pow;
  if (op >= ScalarOp::Exp && op <= ScalarOp::Atanh)
    return static_cast<MathFn>(static_cast<int>(op) - static_cast<int>(ScalarOp::Exp) +
                               static_cast<int>(MathFn::Exp));
  return std::nullopt;
}

template <typename N> void maths(const Instruction &in, int count) {
  MathFn fn = *mathFunction(in.op);
  for (int l = 0; l < count; ++l) {
    typename N::V y = in.operands[1] ? N::get(in.operands[1][l * in.steps[1]]) : 0;
    N::put(in.out[l], evaluateMath(fn, N::get(in.operands[0][l * in.steps[0]]), y));
  }
}

/// `choose` gets a tag of the kind of `type`.
template <typename F> Instruction::Function byFloatType(DType type, F choose) {
  switch (type) {
  case DType::F16: return choose(F16());
  case DType::BF16: return choose(BF16());
  case DType::F32: return choose(F32());
  default: return choose(F64());
  }
}

} // namespace

Instruction::Function functionFor(ScalarOp op, DType type, DType operandType) {
  Instruction::Function f = nullptr;
  if (op == ScalarOp::Select)
    return select;
  if (op == ScalarOp::Fma)
    return fma;
  if (mathFunction(op) && isFloat(type))
    return byFloatType(type, [](auto n) -> Instruction::Function { return maths<decltype(n)>; });
  bool compares = op == ScalarOp::Lt || op == ScalarOp::Le || op == ScalarOp::Eq;
  if (compares && operandType == DType::F64)
    f = comparison<F64>(op);
  else if (compares && isFloat(operandType))
    f = comparison<F32>(op);
  else if (compares && operandType != DType::U64)
    f = comparison<I64>(op);
  else if (isFloat(type) && type == operandType)
    f = byFloatType(type, [op](auto n) { return floatFunction<decltype(n)>(op); });
  else if (type == DType::I64 && operandType == DType::I64)
    f = integerFunction<I64>(op);
  else if (type == DType::I32 && operandType == DType::I32)
    f = integerFunction<I32>(op);
  if (!f && !isFloat(type) && type == operandType && op == ScalarOp::And)
    f = binary<I64, I64, BitAnd>();
  if (!f && !isFloat(type) && type == operandType && op == ScalarOp::Or)
    f = binary<I64, I64, BitOr>();
  return f ? f : viaFolder;
}

Cell fusedMultiplyAdd(DType type, Cell a, Cell b, Cell c) {
  Cell out{.i = 0};
  switch (type) {
  case DType::F64: out.d = std::fma(a.d, b.d, c.d); break;
  case DType::F16: F16::put(out, std::fmaf(a.f, b.f, c.f)); break;
  case DType::BF16: BF16::put(out, std::fmaf(a.f, b.f, c.f)); break;
  default: out.f = std::fmaf(a.f, b.f, c.f);
  }
  return out;
}

Cell combine(Monoid monoid, DType type, Cell a, Cell b) {
  constexpr ScalarOp ops[] = {ScalarOp::Add, ScalarOp::Mul, ScalarOp::Max, ScalarOp::Min,
                              ScalarOp::And, ScalarOp::Or,  ScalarOp::Xor};
  Instruction in;
  in.op = ops[static_cast<int>(monoid)];
  in.type = in.operandType = type;
  Cell out{.i = 0};
  in.out = &out;
  in.operands[0] = &a;
  in.operands[1] = &b;
  functionFor(in.op, type, type)(in, 1);
  return out;
}

bool winsArg(Monoid monoid, DType type, Cell a, int64_t ia, Cell b, int64_t ib) {
  bool largest = monoid == Monoid::ArgMax || monoid == Monoid::ArgMaxLast;
  bool last = monoid == Monoid::ArgMaxLast || monoid == Monoid::ArgMinLast;
  ScalarValue va = toScalar(type, a), vb = toScalar(type, b);
  ScalarValue ordered[] = {largest ? va : vb, largest ? vb : va};
  bool better = evaluateScalar(ScalarOp::Lt, DType::Bool, type, ordered)->i != 0;
  bool tie = evaluateScalar(ScalarOp::Eq, DType::Bool, type, ordered)->i != 0;
  if (isFloat(type)) {
    better = better || (std::isnan(vb.f) && !std::isnan(va.f));
    tie = tie || (std::isnan(vb.f) && std::isnan(va.f));
  }
  return better || (tie && (last ? ia < ib : ib < ia));
}

} // namespace fusec::girvm
