#pragma once
#include <cstdint>

namespace fusec {

/// The maths functions of the scalar language, in the order of Expr/ScalarOps.def (Pow first).
enum class MathFn : uint8_t {
  Pow,
  Exp,
  Log,
  Log1p,
  Expm1,
  Tanh,
  Erf,
  Sigmoid,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Asinh,
  Acosh,
  Atanh
};

/// One definition for interpreters and generated code: polynomials over IEEE operations and integer bit operations
/// (MathPolyF32.h, MathPolyF64.h), so that every target gives the same bits. `y` is Pow's second operand.
///
/// f32: exp, log, tanh, erf, sigmoid have f32 code with at most 2 ulp (sigmoid 3; tanh and erf, which never leave
/// [-1, 1], 6.1: all numbers were tried); the others are the f64 functions rounded to f32. f64: at most 4 ulp, pow
/// 2; sin, cos, tan for |x| < 2^51, NaN beyond. f16 and bf16 are computed in f32 and rounded by the caller.
float evaluateMath(MathFn fn, float x, float y = 0);
double evaluateMath(MathFn fn, double x, double y = 0);

} // namespace fusec
