// Arithmetic of Expr/ScalarOps.def on scalars or vectors alike. f16 and bf16 are f32 values that are rounded after
// every operation. No operation is undefined for any input.
#include "Codegen/Emitter.h"

namespace fusec {

using llvm::Value;
using llvm::Intrinsic::ID;

/// The constant in all lanes, or none.
static const llvm::ConstantFP *constantOf(const Value *v) {
  const auto *constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant && constant->getType()->isVectorTy())
    constant = constant->getSplatValue();
  return llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
}

static bool isNumber(const Value *v) {
  const llvm::ConstantFP *constant = constantOf(v);
  return constant && !constant->isNaN();
}
static bool isZero(const Value *v) {
  const llvm::ConstantFP *constant = constantOf(v);
  return constant && constant->isZero();
}

Value *Emitter::binary(ScalarOp op, DType type, DType operandType, Value *a, Value *c) {
  const bool isF = isFloat(operandType), isS = isSigned(operandType);
  switch (op) {
  case ScalarOp::Eq: return isF ? b.CreateFCmpOEQ(a, c) : b.CreateICmpEQ(a, c);
  case ScalarOp::Ne: return isF ? b.CreateFCmpUNE(a, c) : b.CreateICmpNE(a, c);
  case ScalarOp::Lt:
    return isF ? b.CreateFCmpOLT(a, c) : isS ? b.CreateICmpSLT(a, c) : b.CreateICmpULT(a, c);
  case ScalarOp::Le:
    return isF ? b.CreateFCmpOLE(a, c) : isS ? b.CreateICmpSLE(a, c) : b.CreateICmpULE(a, c);
  default: break;
  }
  if (isF) {
    switch (op) {
    case ScalarOp::Add: return rounded(type, b.CreateFAdd(a, c));
    case ScalarOp::Sub: return rounded(type, b.CreateFSub(a, c));
    case ScalarOp::Mul: return rounded(type, b.CreateFMul(a, c));
    case ScalarOp::Div: return rounded(type, b.CreateFDiv(a, c));
    case ScalarOp::Rem: return floatRemainder(type, a, c);
    case ScalarOp::FloorMod: { // sign of the divisor
      Value *r = floatRemainder(type, a, c), *zero = constantLike(r->getType(), 0);
      Value *wrong = b.CreateAnd(b.CreateFCmpUNE(r, zero),
                                 b.CreateXor(b.CreateFCmpOLT(r, zero), b.CreateFCmpOLT(c, zero)));
      return b.CreateSelect(wrong, rounded(type, b.CreateFAdd(r, c)), r);
    }
    case ScalarOp::FloorDiv:
      return rounded(type, intrinsic(llvm::Intrinsic::floor, {b.CreateFDiv(a, c)}));
    // The first NaN wins; of equals the second one.
    case ScalarOp::Min:
    case ScalarOp::Max: {
      const bool largest = op == ScalarOp::Max;
      // A number in front needs no test for NaN. Of equals the second counts, which only zeros show.
      if (isNumber(c) && !isZero(c))
        std::swap(a, c);
      Value *chosen = hooks.extreme(b, largest, a, c);
      // Beside a number one comparison does. With two, LLVM 19 loses an fabs: max(abs(-1), 0) came to 0.
      if (!chosen && isNumber(c))
        return b.CreateSelect(largest ? b.CreateFCmpUGT(a, c) : b.CreateFCmpULT(a, c), a, c);
      if (!chosen)
        chosen = b.CreateSelect(largest ? b.CreateFCmpOGT(a, c) : b.CreateFCmpOLT(a, c), a, c);
      return isNumber(a) ? chosen : b.CreateSelect(b.CreateFCmpUNO(a, a), a, chosen);
    }
    default: return maths(op, type, a, c);
    }
  }
  const bool isBool = type == DType::Bool;
  switch (op) {
  case ScalarOp::Add: return isBool ? b.CreateOr(a, c) : b.CreateAdd(a, c);
  case ScalarOp::Sub: return isBool ? b.CreateXor(a, c) : b.CreateSub(a, c);
  case ScalarOp::Mul: return isBool ? b.CreateAnd(a, c) : b.CreateMul(a, c);
  case ScalarOp::And: return b.CreateAnd(a, c);
  case ScalarOp::Or: return b.CreateOr(a, c);
  case ScalarOp::Xor: return b.CreateXor(a, c);
  case ScalarOp::Min:
    return b.CreateSelect(isS ? b.CreateICmpSLT(a, c) : b.CreateICmpULT(a, c), a, c);
  case ScalarOp::Max:
    return b.CreateSelect(isS ? b.CreateICmpSGT(a, c) : b.CreateICmpUGT(a, c), a, c);
  case ScalarOp::Shl:
  case ScalarOp::Shr: {
    Value *bits = integerLike(a->getType(), isBool ? 1 : sizeInBytes(type) * 8);
    Value *fits = b.CreateICmpULT(c, bits), *zero = llvm::Constant::getNullValue(a->getType());
    if (isBool)
      return b.CreateAnd(a, b.CreateNot(c));
    Value *count = b.CreateSelect(fits, c, zero);
    Value *shifted = op == ScalarOp::Shl ? b.CreateShl(a, count)
                     : isS               ? b.CreateAShr(a, count)
                                         : b.CreateLShr(a, count);
    return b.CreateSelect(fits, shifted, zero);
  }
  case ScalarOp::Div:
  case ScalarOp::Rem:
  case ScalarOp::FloorDiv:
  case ScalarOp::FloorMod: return integerDivision(op, type, a, c);
  default:
    problem("the operation " + std::string(mnemonic(op)) + " on " + std::string(name(type)));
    return a;
  }
}

/// Division by zero gives 0, MIN / -1 wraps; both are replaced by a division by 1 in front.
Value *Emitter::integerDivision(ScalarOp op, DType type, Value *a, Value *c) {
  llvm::Type *t = a->getType();
  Value *zero = llvm::Constant::getNullValue(t), *one = integerLike(t, 1);
  if (type == DType::Bool) // x / 1 = x, x / 0 = 0; remainders are 0
    return op == ScalarOp::Div || op == ScalarOp::FloorDiv ? b.CreateAnd(a, c) : zero;
  Value *byZero = b.CreateICmpEQ(c, zero);
  if (!isSigned(type)) {
    Value *divisor = b.CreateSelect(byZero, one, c);
    bool quotient = op == ScalarOp::Div || op == ScalarOp::FloorDiv;
    Value *r = quotient ? b.CreateUDiv(a, divisor) : b.CreateURem(a, divisor);
    return b.CreateSelect(byZero, zero, r);
  }
  // x / -1 = -x, which wraps as it should, and leaves no remainder.
  Value *byMinusOne = b.CreateICmpEQ(c, integerLike(t, -1));
  Value *divisor = b.CreateSelect(b.CreateOr(byZero, byMinusOne), one, c);
  Value *q = b.CreateSDiv(a, divisor);
  Value *r = b.CreateSub(a, b.CreateMul(q, divisor));
  Value *corrected =
      b.CreateAnd(b.CreateICmpNE(r, zero),
                  b.CreateXor(b.CreateICmpSLT(r, zero), b.CreateICmpSLT(divisor, zero)));
  Value *result = nullptr;
  switch (op) {
  case ScalarOp::Div:
  case ScalarOp::FloorDiv:
    if (op == ScalarOp::FloorDiv)
      q = b.CreateSub(q, b.CreateZExt(corrected, t));
    result = b.CreateSelect(byMinusOne, b.CreateNeg(a), q);
    break;
  case ScalarOp::Rem: result = r; break;
  default: result = b.CreateSelect(corrected, b.CreateAdd(r, divisor), r);
  }
  return b.CreateSelect(byZero, zero, result);
}

Value *Emitter::unary(ScalarOp op, DType type, DType operandType, Value *a) {
  const bool isF = isFloat(operandType);
  llvm::Type *t = a->getType();
  auto infinity = [&] { return llvm::ConstantFP::getInfinity(t); };
  switch (op) {
  case ScalarOp::IsNan:
    return isF ? b.CreateFCmpUNO(a, a)
               : llvm::Constant::getNullValue(withShapeOf(b.getInt1Ty(), t));
  case ScalarOp::IsInf:
    return isF ? b.CreateFCmpOEQ(intrinsic(llvm::Intrinsic::fabs, {a}), infinity())
               : llvm::Constant::getNullValue(withShapeOf(b.getInt1Ty(), t));
  default: break;
  }
  if (isF) {
    switch (op) {
    case ScalarOp::Neg: return b.CreateFNeg(a);
    case ScalarOp::Abs: return intrinsic(llvm::Intrinsic::fabs, {a});
    case ScalarOp::Sqrt: return rounded(type, intrinsic(llvm::Intrinsic::sqrt, {a}));
    case ScalarOp::Floor: return intrinsic(llvm::Intrinsic::floor, {a});
    case ScalarOp::Ceil: return intrinsic(llvm::Intrinsic::ceil, {a});
    case ScalarOp::Trunc: return intrinsic(llvm::Intrinsic::trunc, {a});
    case ScalarOp::RoundEven: return intrinsic(llvm::Intrinsic::roundeven, {a});
    default: return maths(op, type, a, nullptr);
    }
  }
  switch (op) {
  case ScalarOp::Neg: return type == DType::Bool ? a : b.CreateNeg(a);
  case ScalarOp::Not: return b.CreateNot(a);
  case ScalarOp::Abs:
    if (!isSigned(type))
      return a;
    return b.CreateSelect(b.CreateICmpSLT(a, llvm::Constant::getNullValue(t)), b.CreateNeg(a), a);
  case ScalarOp::Floor:
  case ScalarOp::Ceil:
  case ScalarOp::Trunc:
  case ScalarOp::RoundEven: return a;
  default:
    problem("the operation " + std::string(mnemonic(op)) + " on " + std::string(name(type)));
    return a;
  }
}

Value *Emitter::fma(DType type, Value *a, Value *c, Value *d) {
  return rounded(type, intrinsic(llvm::Intrinsic::fma, {a, c, d}));
}

/// fmod by long division on the bits of doubles, which is exact for every type. One scalar function a module; vectors
/// call it lane by lane.
Value *Emitter::floatRemainder(DType type, Value *a, Value *c) {
  llvm::Type *f64 = b.getDoubleTy(), *i64 = b.getInt64Ty();
  const std::string name = code.symbol + ".fmod"; // PTX texts of several kernels are joined
  llvm::Function *fmod = module.getFunction(name);
  if (!fmod) {
    fmod = llvm::Function::Create(llvm::FunctionType::get(f64, {f64, f64}, false),
                                  llvm::GlobalValue::InternalLinkage, name, module);
    fmod->addFnAttr(llvm::Attribute::NoUnwind);
    if (!threads)
      hooks.markEntry(*fmod, kernel);
    auto saved = b.saveIP();
    auto block = [&](const char *n) { return llvm::BasicBlock::Create(context, n, fmod); };
    auto *entry = block("entry"), *finite = block("finite"), *small = block("small"),
         *scaleUp = block("up"), *down = block("down"), *subtract = block("subtract"),
         *done = block("done"), *bad = block("bad");
    b.SetInsertPoint(entry);
    Value *x = fmod->getArg(0), *y = fmod->getArg(1);
    Value *ax = intrinsic(llvm::Intrinsic::fabs, {x}), *ay = intrinsic(llvm::Intrinsic::fabs, {y});
    Value *inf = llvm::ConstantFP::getInfinity(f64), *zero = constantLike(f64, 0);
    // x finite, y not NaN and not zero
    b.CreateCondBr(b.CreateAnd(b.CreateFCmpOLT(ax, inf), b.CreateFCmpOGT(ay, zero)), finite, bad);
    b.SetInsertPoint(bad);
    b.CreateRet(b.CreateFDiv(b.CreateFMul(x, zero), b.CreateFMul(x, zero)));
    b.SetInsertPoint(finite);
    b.CreateCondBr(b.CreateFCmpOLT(ax, ay), small, scaleUp);
    b.SetInsertPoint(small);
    b.CreateRet(x);
    // t = ay * 2^k, the largest such number <= ax; doubling is exact, as are the subtractions r - t.
    b.SetInsertPoint(scaleUp);
    auto *t = b.CreatePHI(f64, 2);
    t->addIncoming(ay, finite);
    Value *twice = b.CreateFAdd(t, t);
    t->addIncoming(twice, scaleUp);
    b.CreateCondBr(b.CreateFCmpOLE(twice, ax), scaleUp, down);
    b.SetInsertPoint(down);
    auto *r = b.CreatePHI(f64, 2);
    auto *u = b.CreatePHI(f64, 2);
    r->addIncoming(ax, scaleUp);
    u->addIncoming(t, scaleUp);
    Value *rest = b.CreateSelect(b.CreateFCmpOGE(r, u), b.CreateFSub(r, u), r);
    b.CreateCondBr(b.CreateFCmpOLE(u, ay), done, subtract);
    b.SetInsertPoint(subtract);
    r->addIncoming(rest, subtract);
    u->addIncoming(b.CreateFMul(u, constantLike(f64, 0.5)), subtract);
    b.CreateBr(down);
    b.SetInsertPoint(done);
    Value *sign = b.CreateAnd(b.CreateBitCast(x, i64), b.getInt64(INT64_MIN));
    b.CreateRet(b.CreateBitCast(b.CreateOr(b.CreateBitCast(rest, i64), sign), f64));
    b.restoreIP(saved);
  }
  auto one = [&](Value *x, Value *y) {
    Value *r = b.CreateCall(fmod, {b.CreateFPExt(x, f64), b.CreateFPExt(y, f64)});
    return b.CreateFPTrunc(r, x->getType());
  };
  auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(a->getType());
  Value *result = vector ? llvm::PoisonValue::get(vector) : nullptr;
  if (!vector)
    result = one(a, c);
  for (unsigned l = 0; vector && l < vector->getNumElements(); ++l)
    result = b.CreateInsertElement(
        result, one(b.CreateExtractElement(a, l), b.CreateExtractElement(c, l)), l);
  return rounded(type, result);
}

} // namespace fusec
