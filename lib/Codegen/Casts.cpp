// Conversions. Rounding to the 16-bit floats is done with what every target has: f16 through the hardware's f32 -> f16,
// bf16 in integers.
#include "Codegen/Emitter.h"

#include <cmath>

namespace fusec {

using llvm::Value;

Value *Emitter::widenBits(DType t, Value *bits) {
  llvm::Type *f32 = withShapeOf(b.getFloatTy(), bits->getType());
  if (t == DType::F16)
    return b.CreateFPExt(b.CreateBitCast(bits, withShapeOf(b.getHalfTy(), bits->getType())), f32);
  Value *wide = b.CreateZExt(bits, withShapeOf(b.getInt32Ty(), bits->getType()));
  return b.CreateBitCast(b.CreateShl(wide, integerLike(wide->getType(), 16)), f32);
}

Value *Emitter::narrowBits(DType t, Value *v) {
  llvm::Type *i16 = withShapeOf(b.getInt16Ty(), v->getType());
  if (t == DType::F16)
    return b.CreateBitCast(b.CreateFPTrunc(v, withShapeOf(b.getHalfTy(), v->getType())), i16);
  Value *bits = b.CreateBitCast(v, withShapeOf(b.getInt32Ty(), v->getType()));
  return b.CreateTrunc(b.CreateLShr(bits, integerLike(bits->getType(), 16)), i16);
}

Value *Emitter::rounded(DType t, Value *v) {
  if (t == DType::F16) {
    llvm::Type *f16 = withShapeOf(b.getHalfTy(), v->getType());
    return b.CreateFPExt(b.CreateFPTrunc(v, f16), v->getType());
  }
  if (t != DType::BF16)
    return v;
  // Adding 0x7fff and the lowest kept bit carries exactly when nearest-even rounds up; NaN becomes quiet instead.
  llvm::Type *i32 = withShapeOf(b.getInt32Ty(), v->getType());
  Value *bits = b.CreateBitCast(v, i32);
  Value *odd = b.CreateAnd(b.CreateLShr(bits, integerLike(i32, 16)), integerLike(i32, 1));
  Value *up = b.CreateAdd(bits, b.CreateAdd(odd, integerLike(i32, 0x7fff)));
  Value *quiet = b.CreateOr(bits, integerLike(i32, 0x400000));
  Value *kept =
      b.CreateAnd(b.CreateSelect(b.CreateFCmpUNO(v, v), quiet, up), integerLike(i32, -65536));
  return b.CreateBitCast(kept, v->getType());
}

/// Rounds once: the f32 in between is rounded to odd, which keeps the information that the second rounding needs.
Value *Emitter::roundedFromDouble(DType t, Value *v) {
  llvm::Type *f32 = withShapeOf(b.getFloatTy(), v->getType()),
             *i32 = withShapeOf(b.getInt32Ty(), v->getType());
  Value *near = b.CreateFPTrunc(v, f32);
  if (t != DType::F16 && t != DType::BF16)
    return near;
  Value *back = b.CreateFPExt(near, v->getType());
  Value *bits = b.CreateBitCast(near, i32);
  // Truncate towards zero: step back where rounding went away from zero.
  Value *away = b.CreateFCmpOGT(intrinsic(llvm::Intrinsic::fabs, {back}),
                                intrinsic(llvm::Intrinsic::fabs, {v}));
  Value *truncated = b.CreateSub(bits, b.CreateZExt(away, i32));
  Value *odd = b.CreateOr(truncated, integerLike(i32, 1));
  Value *inexact = b.CreateFCmpONE(back, v);
  return rounded(t, b.CreateBitCast(b.CreateSelect(inexact, odd, bits), f32));
}

Value *Emitter::cast(DType to, DType from, Value *v) {
  llvm::Type *type = withShapeOf(valueType(to), v->getType());
  if (to == from)
    return v;
  if (isFloat(from)) {
    if (to == DType::Bool)
      return b.CreateFCmpUNE(v, constantLike(v->getType(), 0));
    if (to == DType::F64)
      return b.CreateFPExt(v, type);
    if (isFloat(to))
      return from == DType::F64 ? roundedFromDouble(to, v) : rounded(to, v);
    // To i64 with NaN and out of range = INT64_MIN, then wrapped.
    llvm::Type *i64 = withShapeOf(b.getInt64Ty(), v->getType());
    const double limit = 9223372036854775808.0; // 2^63
    Value *low = constantLike(v->getType(), -limit), *high = constantLike(v->getType(), limit);
    Value *inside = b.CreateAnd(b.CreateFCmpOGE(v, low), b.CreateFCmpOLT(v, high));
    Value *safe = b.CreateSelect(inside, v, low);
    if (to != DType::U64)
      return b.CreateTrunc(b.CreateFPToSI(safe, i64), type);
    // The upper half of u64 is converted 2^63 lower, which is exact, and moved back.
    Value *upper = b.CreateAnd(b.CreateFCmpOGE(v, high),
                               b.CreateFCmpOLT(v, constantLike(v->getType(), 2 * limit)));
    safe = b.CreateSelect(upper, b.CreateFSub(v, high), safe);
    Value *back = b.CreateSelect(upper, integerLike(i64, INT64_MIN), integerLike(i64, 0));
    return b.CreateXor(b.CreateFPToSI(safe, i64), back);
  }
  if (to == DType::Bool)
    return b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  if (!isFloat(to))
    return b.CreateIntCast(v, type, isSigned(from));
  auto convert = [&](Value *x, llvm::Type *t) {
    return isSigned(from) ? b.CreateSIToFP(x, t) : b.CreateUIToFP(x, t);
  };
  if (to == DType::F32 || to == DType::F64)
    return convert(v, type);
  if (sizeInBytes(from) <= 2) // exact in f32
    return rounded(to, convert(v, type));
  llvm::Type *f64 = withShapeOf(b.getDoubleTy(), v->getType());
  if (sizeInBytes(from) == 8) {
    // Beyond 2^53 a sticky bit keeps the second rounding right.
    llvm::Type *i64 = v->getType();
    Value *magnitude =
        isSigned(from) ? b.CreateSelect(b.CreateICmpSLT(v, integerLike(i64, 0)), b.CreateNeg(v), v)
                       : v;
    Value *low =
        b.CreateICmpNE(b.CreateAnd(magnitude, integerLike(i64, 2047)), integerLike(i64, 0));
    Value *sticky = b.CreateOr(b.CreateAnd(magnitude, integerLike(i64, -2048)),
                               b.CreateSelect(low, integerLike(i64, 2048), integerLike(i64, 0)));
    Value *large =
        b.CreateICmpNE(b.CreateLShr(magnitude, integerLike(i64, 53)), integerLike(i64, 0));
    Value *d = b.CreateUIToFP(b.CreateSelect(large, sticky, magnitude), f64);
    if (isSigned(from))
      d = b.CreateSelect(b.CreateICmpSLT(v, integerLike(i64, 0)), b.CreateFNeg(d), d);
    return roundedFromDouble(to, d);
  }
  return roundedFromDouble(to, convert(v, f64)); // exact in f64
}

/// Half to even, then clamped; NaN gives 0.
Value *Emitter::castSat(DType to, DType from, Value *v) {
  if (isFloat(to) || !isFloat(from))
    return cast(to, from, v);
  llvm::Type *type = withShapeOf(valueType(to), v->getType()), *f = v->getType();
  Value *r = intrinsic(llvm::Intrinsic::roundeven, {v});
  Value *isNan = b.CreateFCmpUNO(v, v);
  if (to == DType::Bool)
    return b.CreateAnd(b.CreateNot(isNan), b.CreateFCmpUNE(r, constantLike(f, 0)));
  const int bits = static_cast<int>(sizeInBytes(to)) * 8 - (isSigned(to) ? 1 : 0);
  const double limit = std::ldexp(1.0, bits); // first value beyond
  Value *low = constantLike(f, isSigned(to) ? -limit : 0.0), *high = constantLike(f, limit);
  Value *over = b.CreateFCmpOGE(r, high);
  Value *inside = b.CreateAnd(b.CreateFCmpOGE(r, low), b.CreateNot(over));
  Value *safe = b.CreateSelect(inside, r, low);
  // Small types by way of i32, which vectors convert at once.
  llvm::Type *wide = withShapeOf(b.getIntNTy(sizeInBytes(to) <= 2 ? 32 : sizeInBytes(to) * 8), f);
  Value *converted = isSigned(to) || sizeInBytes(to) <= 2 ? b.CreateFPToSI(safe, wide)
                                                          : b.CreateFPToUI(safe, wide);
  converted = b.CreateIntCast(converted, type, true);
  const int width = static_cast<int>(sizeInBytes(to)) * 8;
  llvm::APInt most =
      isSigned(to) ? llvm::APInt::getSignedMaxValue(width) : llvm::APInt::getMaxValue(width);
  converted = b.CreateSelect(over, llvm::ConstantInt::get(type, most), converted);
  return b.CreateSelect(isNan, llvm::Constant::getNullValue(type), converted);
}

Value *Emitter::bitcast(DType to, DType from, Value *v) {
  auto isSmall = [](DType t) { return t == DType::F16 || t == DType::BF16; };
  if (isSmall(from))
    v = narrowBits(from, v);
  else if (from == DType::Bool)
    v = b.CreateZExt(v, withShapeOf(b.getInt8Ty(), v->getType()));
  if (isSmall(to))
    return widenBits(to, v);
  if (to == DType::Bool)
    return b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  return b.CreateBitCast(v, withShapeOf(valueType(to), v->getType()));
}

} // namespace fusec
