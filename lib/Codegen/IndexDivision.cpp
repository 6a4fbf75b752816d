// Indices divided by a size that all lanes have in common and a run alone knows, as where a flat index is taken apart
// into rows of n: no vector unit divides integers, and 16 lanes one after the other take some 150 cycles. What lanes
// have in common is divided once, as a scalar:
//
//   (u + r) floordiv n  =  u floordiv n + (u mod n + r) floordiv n        r: 0, 1, 2, .. in the lanes
//
// u may be negative: a part of a launch takes the blocks in front of it away. The second quotient is of small numbers.
// Up to 2^32 doubles hold it exactly: a correctly rounded quotient of integers below 2^53 is at no integer that the
// true one does not reach. A larger n it reaches once at most.
#include "Codegen/Emitter.h"

namespace fusec {

using llvm::Value;

namespace {

constexpr int64_t kMostApart = int64_t{1} << 30; // what lanes have of their own
constexpr int64_t kSmall = int64_t{1} << 32;     // divisors that doubles serve

/// Whole numbers in [0, 2^52) and back, by the bits of 2^52 + x: older vector units convert none of 64 bits.
class WholeDoubles {
public:
  WholeDoubles(Builder &b, int width)
      : b(b), integers(llvm::FixedVectorType::get(b.getInt64Ty(), static_cast<unsigned>(width))),
        doubles(llvm::FixedVectorType::get(b.getDoubleTy(), static_cast<unsigned>(width))),
        bits(llvm::ConstantInt::get(integers, 0x4330000000000000)),
        offset(llvm::ConstantFP::get(doubles, 4503599627370496.0)) {}

  Value *from(Value *x) {
    return b.CreateFSub(b.CreateBitCast(b.CreateOr(x, bits), doubles), offset);
  }
  Value *to(Value *x) {
    return b.CreateXor(b.CreateBitCast(b.CreateFAdd(x, offset), integers), bits);
  }
  /// The largest whole number that is no larger: one step below the nearest where that is above.
  Value *floor(Value *x) {
    Value *nearest = b.CreateFSub(b.CreateFAdd(x, offset), offset);
    return b.CreateSelect(b.CreateFCmpOGT(nearest, x),
                          b.CreateFSub(nearest, llvm::ConstantFP::get(doubles, 1.0)), nearest);
  }

private:
  Builder &b;
  llvm::Type *integers, *doubles;
  llvm::Constant *bits, *offset;
};

} // namespace

/// Adds an index to the sum of what all lanes have, and of what each has of its own. False if it is no such sum, or
/// what lanes have of their own may be negative or far apart.
bool Emitter::splitIndex(NodeId id, Value *&common, Value *&apart, int64_t &mostApart) {
  const Val v = eval(id);
  const Scalar &s = kernel.body[id];
  if (v.varying && s.op == ScalarOp::Add)
    return splitIndex(s.args[0], common, apart, mostApart) &&
           splitIndex(s.args[1], common, apart, mostApart);
  const IndexRange range = kernel.body.rangeOf(id);
  const int64_t most = v.varying ? range.max : v.step * (width - 1);
  if ((v.varying && range.min < 0) || v.step < 0 || most > kMostApart - mostApart)
    return false;
  mostApart += most;
  if (v.varying) {
    apart = b.CreateAdd(apart, v.v);
    return true;
  }
  common = b.CreateAdd(common, v.v);
  if (v.step != 0)
    apart = b.CreateAdd(apart, asVector({b.getInt64(0), v.step}));
  return true;
}

std::pair<Value *, Value *> floorDivision(Builder &b, Value *x, Value *by) {
  Value *rest = b.CreateSRem(x, by), *quotient = b.CreateSDiv(x, by);
  Value *isBelow = b.CreateICmpSLT(rest, b.getInt64(0));
  return {b.CreateSub(quotient, b.CreateZExt(isBelow, b.getInt64Ty())),
          b.CreateAdd(rest, b.CreateSelect(isBelow, by, b.getInt64(0)))};
}

/// An invalid value for what is no such division.
Val Emitter::divideIndex(const Scalar &s) {
  const bool isQuotient = s.op == ScalarOp::FloorDiv;
  if (width == 1 || s.type != DType::I64 || (!isQuotient && s.op != ScalarOp::FloorMod))
    return {};
  const Val x = eval(s.args[0]), n = eval(s.args[1]);
  if (x.uniform() || !n.uniform() || llvm::isa<llvm::ConstantInt>(n.v) ||
      kernel.body.rangeOf(s.args[1]).min <= 0)
    return {};
  Value *common = b.getInt64(0), *apart = b.CreateVectorSplat(width, b.getInt64(0));
  int64_t mostApart = 0;
  if (!splitIndex(s.args[0], common, apart, mostApart))
    return {};
  // Told to be no 0, a division may leave the loops that it does not depend on.
  Value *by = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, n.v, b.getInt64(1));
  Value *all = b.CreateVectorSplat(width, by);
  const auto [quotient, rest] = floorDivision(b, common, by);
  Value *left = b.CreateAdd(b.CreateVectorSplat(width, rest), apart);
  WholeDoubles whole(b, width);
  Value *small = b.CreateICmpULE(by, b.getInt64(kSmall));
  Value *held = b.CreateVectorSplat(width, b.CreateSelect(small, by, b.getInt64(1)));
  Value *dividend = b.CreateSelect(small, left, llvm::Constant::getNullValue(left->getType()));
  Value *times = whole.floor(b.CreateFDiv(whole.from(dividend), whole.from(held)));
  Value *isReached = b.CreateICmpUGE(left, all);
  if (isQuotient) {
    Value *more = b.CreateSelect(small, whole.to(times), b.CreateZExt(isReached, left->getType()));
    return {b.CreateAdd(b.CreateVectorSplat(width, quotient), more), 0, true};
  }
  Value *product = whole.to(b.CreateFMul(times, whole.from(held)));
  Value *taken = b.CreateSelect(isReached, all, llvm::Constant::getNullValue(left->getType()));
  return {b.CreateSub(left, b.CreateSelect(small, product, taken)), 0, true};
}

} // namespace fusec
