#pragma once
#include "Support/MathPolyF32.h"
#include "Support/MathPolyF64.h"

namespace fusec::mathpoly {

/// Functions that have f32 code of their own.
constexpr bool hasF32Code(MathFn fn) {
  return fn == MathFn::Exp || fn == MathFn::Log || fn == MathFn::Tanh || fn == MathFn::Erf ||
         fn == MathFn::Sigmoid;
}

template <typename N> typename N::F evaluateF32(MathFn fn, N &n, typename N::F x) {
  switch (fn) {
  case MathFn::Exp: return expF32(n, x);
  case MathFn::Log: return logF32(n, x);
  case MathFn::Tanh: return tanhF32(n, x);
  case MathFn::Erf: return erfF32(n, x);
  default: return sigmoidF32(n, x);
  }
}

template <typename N> typename N::F evaluateF64(MathFn fn, N &n, typename N::F x, typename N::F y) {
  switch (fn) {
  case MathFn::Pow: return powF64(n, x, y);
  case MathFn::Exp: return expF64(n, x);
  case MathFn::Log: return logF64(n, x);
  case MathFn::Log1p: return log1pF64(n, x);
  case MathFn::Expm1: return expm1F64(n, x);
  case MathFn::Tanh: return tanhF64(n, x);
  case MathFn::Erf: return erfF64(n, x);
  case MathFn::Sigmoid: return sigmoidF64(n, x);
  case MathFn::Sin: return sinF64(n, x);
  case MathFn::Cos: return cosF64(n, x);
  case MathFn::Tan: return tanF64(n, x);
  case MathFn::Asin: return asinF64(n, x);
  case MathFn::Acos: return acosF64(n, x);
  case MathFn::Atan: return atanF64(n, x);
  case MathFn::Sinh: return sinhF64(n, x);
  case MathFn::Cosh: return coshF64(n, x);
  case MathFn::Asinh: return asinhF64(n, x);
  case MathFn::Acosh: return acoshF64(n, x);
  case MathFn::Atanh: return atanhF64(n, x);
  }
  return x;
}

} // namespace fusec::mathpoly
