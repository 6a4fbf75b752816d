#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"

// Linear quantisation.

namespace fusec {
namespace {

/// Checks scale and zero point against the data: one value, one an axis entry, or one a block.
Status checkScale(NodeImporter &n, int64_t &axis, int64_t blockSize) {
  if (blockSize < 0)
    return n.fail(Diag::BadAttribute, "block_size must not be negative");
  auto isOne = [&](size_t i) { return numElements(n.shape(i)).isConst(1); };
  if (n.has(2) && n.shape(2) != n.shape(1) && !(isOne(1) && isOne(2)))
    return n.mismatch("scale and zero point must have one shape", n.shape(2), n.shape(1));
  const bool scalar = n.rank(1) == 0 || (n.rank(1) == 1 && n.shape(1)[0].isConst(1));
  if (scalar && blockSize == 0) {
    axis = 0;
    return success();
  }
  FUSEC_TRY(axis, n.axis(axis, n.rank(0)));
  auto a = static_cast<size_t>(axis);
  if (blockSize == 0) {
    if (n.shape(1) != Shape{n.shape(0)[a]})
      return n.mismatch("the scale must have one value for each entry of the axis", n.shape(1),
                        {n.shape(0)[a]});
    return success();
  }
  if (n.rank(1) != n.rank(0))
    return n.mismatch("a block scale must have the data's rank");
  for (size_t i = 0; i < n.shape(0).size(); ++i) {
    DimExpr expected = i == a ? ceilDiv(n.shape(0)[i], DimExpr(blockSize)) : n.shape(0)[i];
    if (n.shape(1)[i] != expected)
      return n.mismatch("the scale does not fit blocks of " + std::to_string(blockSize),
                        {n.shape(1)[i]}, {expected});
  }
  return success();
}

/// The operands; of scale and zero point, both one number, one may be a vector and the other none.
std::vector<ValueId> operands(NodeImporter &n) {
  std::vector<ValueId> in = n.ids();
  if (n.has(2) && n.shape(2) != n.shape(1))
    in[2] = n.reshape(in[2], n.shape(1));
  return in;
}

/// com.microsoft's operators are ONNX's of opset 13, for more types: of attributes they have the axis alone.
enum class Domain { Onnx, Microsoft };

template <Domain domain> Status dequantize(NodeImporter &n) {
  constexpr bool isOnnx = domain == Domain::Onnx;
  int64_t axis = n.attrInt("axis", 1), blockSize = isOnnx ? n.attrInt("block_size", 0) : 0;
  if (!isInteger(n.type(0)))
    return n.mismatch("the data must be integers");
  FUSEC_CHECK(checkScale(n, axis, blockSize));
  DType out = n.type(1);
  if (isOnnx && n.attrType("output_dtype").value_or(out) != out)
    return n.unsupported("an output_dtype other than the scale's type");
  return n.finish(OpKind::DequantizeLinear, operands(n),
                  {{"axis", axis}, {"block_size", blockSize}}, {{out, n.shape(0)}});
}

template <Domain domain> Status quantize(NodeImporter &n) {
  constexpr bool isOnnx = domain == Domain::Onnx;
  int64_t axis = n.attrInt("axis", 1), blockSize = isOnnx ? n.attrInt("block_size", 0) : 0;
  int64_t saturate = isOnnx ? n.attrInt("saturate", 1) : 1;
  int64_t precision = isOnnx ? n.attrInt("precision", 0) : 0;
  FUSEC_CHECK(checkScale(n, axis, blockSize));
  DType out = DType::U8;
  if (n.has(2))
    out = n.type(2);
  else if (isOnnx && n.attrInt("output_dtype", 0) != 0)
    out = n.attrType("output_dtype").value_or(DType::U8);
  if (!isInteger(out) || precision != 0)
    return n.unsupported("quantisation to a float type or with a precision");
  std::vector<ValueId> in = operands(n);
  if (!isOnnx) // ONNX divides in the scale's type, ONNX Runtime in f32
    for (size_t i : {0, 1})
      in[i] = Compose(n).cast(in[i], DType::F32);
  if (!n.has(2) && out != DType::U8) {
    Shape scale = n.shape(1);
    in.resize(2);
    in.push_back(Compose(n).filled(out, 0, scale));
  }
  return n.finish(OpKind::QuantizeLinear, std::move(in),
                  {{"axis", axis}, {"block_size", blockSize}, {"saturate", saturate}},
                  {{out, n.shape(0)}});
}

Status dynamicQuantize(NodeImporter &n) {
  if (n.type(0) != DType::F32)
    return n.mismatch("the data must be f32");
  return n.finish(OpKind::DynamicQuantizeLinear, {n.id(0)}, {},
                  {{DType::U8, n.shape(0)}, {DType::F32, {}}, {DType::U8, {}}});
}

constexpr OpRow kRows[] = {
    {"DequantizeLinear", 10, 28, 2, 3, 1, dequantize<Domain::Onnx>},
    {"DynamicQuantizeLinear", 11, 28, 1, 1, 3, dynamicQuantize},
    {"QuantizeLinear", 10, 28, 2, 3, 1, quantize<Domain::Onnx>, "to integer types"},
};

constexpr OpRow kMicrosoftRows[] = {
    {"DequantizeLinear", 1, 1, 2, 3, 1, dequantize<Domain::Microsoft>},
    {"QuantizeLinear", 1, 1, 2, 3, 1, quantize<Domain::Microsoft>},
};

} // namespace

std::span<const OpRow> quantOps() { return kRows; }
std::span<const OpRow> microsoftQuantOps() { return kMicrosoftRows; }

} // namespace fusec
