#include "Expr/SortKey.h"

namespace fusec {

DType sortKeyType(DType type) {
  const bool isWide =
      type == DType::F64 || type == DType::I64 || type == DType::U64 || type == DType::U32;
  return isWide ? DType::I64 : DType::I32;
}

int64_t largestKey(DType keyType) { return keyType == DType::I32 ? INT32_MAX : INT64_MAX; }
int64_t smallestKey(DType keyType) { return keyType == DType::I32 ? INT32_MIN : INT64_MIN; }

NodeId sortKey(Body &body, NodeId value, bool largestFirst) {
  const DType type = body[value].type, keyType = sortKeyType(type);
  NodeId key;
  if (isFloat(type)) {
    DType wide = keyType == DType::I32 ? DType::F32 : DType::F64;
    value = body.cast(wide, value);
    Scalar bits;
    bits.op = ScalarOp::Bitcast;
    bits.type = keyType;
    bits.args = {value};
    key = body.add(std::move(bits));
    // Negative numbers have their magnitude bits in reverse order. Both zeros are 0; every NaN is above all.
    NodeId sign =
        body.binary(ScalarOp::Shr, key, body.constantInt(keyType, sizeInBytes(keyType) * 8 - 1));
    NodeId magnitude = body.constantInt(keyType, largestKey(keyType));
    key = body.binary(ScalarOp::Xor, key, body.binary(ScalarOp::And, sign, magnitude));
    NodeId isZero = body.binary(ScalarOp::Eq, value, body.constant(wide, 0));
    key = body.select(isZero, body.constantInt(keyType, 0), key);
    key = body.select(body.unary(ScalarOp::IsNan, value), magnitude, key);
  } else if (type == DType::U64) {
    NodeId top = body.constantInt(DType::I64, INT64_MIN);
    key = body.binary(ScalarOp::Xor, body.cast(DType::I64, value), top);
  } else {
    key = body.cast(keyType, value);
  }
  return largestFirst ? key : body.unary(ScalarOp::Not, key);
}

} // namespace fusec
