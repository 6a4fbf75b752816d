// The maths functions of Support/MathPoly.h as instructions: the same sequence of operations as the interpreters run.
#include "Codegen/Emitter.h"

#include "Support/MathDispatch.h"

namespace fusec {
namespace {

using llvm::Value;

/// Support/MathNumber.h's number over scalars or vectors of `Float`.
template <typename Float> struct ValueNumber {
  using F = Value *;
  using I = Value *;
  using B = Value *;
  using Native = Float;
  Builder &b;
  const TargetHooks &hooks;
  llvm::Type *floatType, *intType;

  ValueNumber(Builder &b, const TargetHooks &hooks, llvm::Type *type)
      : b(b), hooks(hooks), floatType(type),
        intType(type->getWithNewType(b.getIntNTy(sizeof(Float) * 8))) {}

  F constant(double v) { return llvm::ConstantFP::get(floatType, v); }
  I integer(int64_t v) { return llvm::ConstantInt::get(intType, static_cast<uint64_t>(v), true); }
  F add(F x, F y) { return b.CreateFAdd(x, y); }
  F sub(F x, F y) { return b.CreateFSub(x, y); }
  F mul(F x, F y) { return b.CreateFMul(x, y); }
  F div(F x, F y) { return b.CreateFDiv(x, y); }
  F fma(F x, F y, F z) { return b.CreateIntrinsic(llvm::Intrinsic::fma, {floatType}, {x, y, z}); }
  F sqrt(F x) { return b.CreateIntrinsic(llvm::Intrinsic::sqrt, {floatType}, {x}); }
  F trunc(F x) { return b.CreateIntrinsic(llvm::Intrinsic::trunc, {floatType}, {x}); }
  B less(F x, F y) { return b.CreateFCmpOLT(x, y); }
  B equal(F x, F y) { return b.CreateFCmpOEQ(x, y); }
  B isNan(F x) { return b.CreateFCmpUNO(x, x); }
  B both(B p, B q) { return b.CreateAnd(p, q); }
  B either(B p, B q) { return b.CreateOr(p, q); }
  B negate(B p) { return b.CreateNot(p); }
  F select(B p, F x, F y) { return b.CreateSelect(p, x, y); }
  I selectInt(B p, I x, I y) { return b.CreateSelect(p, x, y); }
  I bits(F x) { return b.CreateBitCast(x, intType); }
  F fromBits(I x) { return b.CreateBitCast(x, floatType); }
  I addInt(I x, I y) { return b.CreateAdd(x, y); }
  I subInt(I x, I y) { return b.CreateSub(x, y); }
  I andInt(I x, I y) { return b.CreateAnd(x, y); }
  I orInt(I x, I y) { return b.CreateOr(x, y); }
  I xorInt(I x, I y) { return b.CreateXor(x, y); }
  I shiftLeft(I x, int n) { return b.CreateShl(x, n); }
  I shiftRight(I x, int n) { return b.CreateAShr(x, n); }
  B equalInt(I x, I y) { return b.CreateICmpEQ(x, y); }
  B lessInt(I x, I y) { return b.CreateICmpSLT(x, y); }
  F toFloat(I x) { return b.CreateSIToFP(x, floatType); }
  bool scales() { return hooks.scales(floatType); }
  F scale(F x, F k) { return hooks.scale(b, x, k); }
};

MathFn functionOf(ScalarOp op) {
  if (op == ScalarOp::Pow)
    return MathFn::Pow;
  return static_cast<MathFn>(static_cast<int>(op) - static_cast<int>(ScalarOp::Exp) +
                             static_cast<int>(MathFn::Exp));
}
static_assert(static_cast<int>(ScalarOp::Atanh) - static_cast<int>(ScalarOp::Exp) ==
              static_cast<int>(MathFn::Atanh) - static_cast<int>(MathFn::Exp));

} // namespace

Value *Emitter::maths(ScalarOp op, DType type, Value *x, Value *y) {
  const bool known = op == ScalarOp::Pow || (op >= ScalarOp::Exp && op <= ScalarOp::Atanh);
  if (!known) {
    problem("the operation " + std::string(mnemonic(op)) + " on " + std::string(name(type)));
    return x;
  }
  const MathFn fn = functionOf(op);
  if (type != DType::F64 && mathpoly::hasF32Code(fn)) {
    ValueNumber<float> n(b, hooks, x->getType());
    return rounded(type, mathpoly::evaluateF32(fn, n, x));
  }
  llvm::Type *f64 = withShapeOf(b.getDoubleTy(), x->getType());
  ValueNumber<double> n(b, hooks, f64);
  Value *wideX = b.CreateFPExt(x, f64), *wideY = y ? b.CreateFPExt(y, f64) : nullptr;
  Value *r = mathpoly::evaluateF64(fn, n, wideX, wideY);
  return type == DType::F64
             ? r
             : rounded(type, b.CreateFPTrunc(r, withShapeOf(b.getFloatTy(), r->getType())));
}

} // namespace fusec
