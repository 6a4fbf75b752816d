// Combining of reductions, and the exchange between lanes.
#include "Codegen/Emitter.h"

namespace fusec {

using llvm::Value;

Value *Emitter::combine(Monoid m, DType t, Value *a, Value *c) {
  switch (m) {
  case Monoid::Sum: return binary(ScalarOp::Add, t, t, a, c);
  case Monoid::Prod: return binary(ScalarOp::Mul, t, t, a, c);
  case Monoid::Max: return binary(ScalarOp::Max, t, t, a, c);
  case Monoid::Min: return binary(ScalarOp::Min, t, t, a, c);
  case Monoid::And: return binary(ScalarOp::And, t, t, a, c);
  case Monoid::Or: return binary(ScalarOp::Or, t, t, a, c);
  case Monoid::Xor: return binary(ScalarOp::Xor, t, t, a, c);
  default: assert(false && "arg monoids combine pairs"); return a;
  }
}

/// The pair that wins: a strictly better value, a NaN before a number, and on a tie the lower (or higher) index.
std::pair<Value *, Value *> Emitter::combineArg(Monoid m, DType t, DType indexType,
                                                std::pair<Value *, Value *> a,
                                                std::pair<Value *, Value *> c) {
  const bool largest = m == Monoid::ArgMax || m == Monoid::ArgMaxLast;
  const bool last = m == Monoid::ArgMaxLast || m == Monoid::ArgMinLast;
  Value *better = largest ? binary(ScalarOp::Lt, DType::Bool, t, a.first, c.first)
                          : binary(ScalarOp::Lt, DType::Bool, t, c.first, a.first);
  Value *tie = binary(ScalarOp::Eq, DType::Bool, t, a.first, c.first);
  if (isFloat(t)) {
    Value *aNan = b.CreateFCmpUNO(a.first, a.first), *cNan = b.CreateFCmpUNO(c.first, c.first);
    better = b.CreateOr(better, b.CreateAnd(cNan, b.CreateNot(aNan)));
    tie = b.CreateOr(tie, b.CreateAnd(aNan, cNan));
  }
  Value *nearer = last ? binary(ScalarOp::Lt, DType::Bool, indexType, a.second, c.second)
                       : binary(ScalarOp::Lt, DType::Bool, indexType, c.second, a.second);
  Value *takes = b.CreateOr(better, b.CreateAnd(tie, nearer));
  return {b.CreateSelect(takes, c.first, a.first), b.CreateSelect(takes, c.second, a.second)};
}

Value *Emitter::shuffleXor(Value *v, int distance) {
  if (threads) {
    llvm::Type *i32 = b.getInt32Ty();
    return overLanes(v, machine("fusec.gpu.shuffle.xor", i32, {i32, i32}), b.getInt32(distance));
  }
  if (width == 1)
    return v;
  std::vector<int> order;
  for (int l = 0; l < width; ++l)
    order.push_back(l ^ distance);
  return b.CreateShuffleVector(v, order);
}

/// Sends a value of any type through a function on 32-bit words.
Value *Emitter::overLanes(Value *v, llvm::Function *perWord, Value *extra) {
  llvm::Type *type = v->getType(), *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
  const unsigned bits = type->getPrimitiveSizeInBits();
  auto send = [&](Value *word) -> Value * {
    return extra ? b.CreateCall(perWord, {word, extra}) : b.CreateCall(perWord, {word});
  };
  Value *raw = b.CreateBitCast(v, b.getIntNTy(bits));
  Value *result;
  if (bits <= 32) {
    result = b.CreateTrunc(send(b.CreateZExt(raw, i32)), b.getIntNTy(bits));
  } else {
    Value *low = send(b.CreateTrunc(raw, i32)),
          *high = send(b.CreateTrunc(b.CreateLShr(raw, b.getInt64(32)), i32));
    result =
        b.CreateOr(b.CreateZExt(low, i64), b.CreateShl(b.CreateZExt(high, i64), b.getInt64(32)));
  }
  return b.CreateBitCast(result, type);
}

} // namespace fusec
