#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"

// Linear quantisation.

namespace fusec {
namespace {

/// The axis of the scales, 0 where there is one for all.
Result<int64_t> scaleAxis(NodeImporter &n, int64_t blockSize) {
  const int64_t axis = n.attrInt("axis", 1);
  const bool scalar = n.rank(1) == 0 || (n.rank(1) == 1 && n.shape(1)[0].isConst(1));
  if (scalar && blockSize == 0)
    return 0;
  return n.axis(axis, n.rank(0));
}

/// The operands; of scale and zero point, both one number, one may be a vector and the other none.
std::vector<ValueId> operands(NodeImporter &n) {
  auto isOne = [&](size_t i) { return numElements(n.shape(i)).isConst(1); };
  std::vector<ValueId> in = n.ids();
  if (n.has(2) && isOne(1) && isOne(2))
    in[2] = n.reshape(in[2], n.shape(1));
  return in;
}

/// com.microsoft's operators are ONNX's of opset 13, for more types: of attributes they have the axis alone.
enum class Domain { Onnx, Microsoft };

template <Domain domain> Status dequantize(NodeImporter &n) {
  constexpr bool isOnnx = domain == Domain::Onnx;
  int64_t blockSize = isOnnx ? n.attrInt("block_size", 0) : 0;
  FUSEC_TRY(int64_t axis, scaleAxis(n, blockSize));
  DType out = n.type(1);
  if (isOnnx && n.attrType("output_dtype").value_or(out) != out)
    return n.unsupported("an output_dtype other than the scale's type");
  return n.finish(OpKind::DequantizeLinear, operands(n),
                  {{"axis", axis}, {"block_size", blockSize}});
}

template <Domain domain> Status quantize(NodeImporter &n) {
  constexpr bool isOnnx = domain == Domain::Onnx;
  int64_t blockSize = isOnnx ? n.attrInt("block_size", 0) : 0;
  int64_t saturate = isOnnx ? n.attrInt("saturate", 1) : 1;
  int64_t precision = isOnnx ? n.attrInt("precision", 0) : 0;
  FUSEC_TRY(int64_t axis, scaleAxis(n, blockSize));
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
                  {{"axis", axis}, {"block_size", blockSize}, {"saturate", saturate}});
}

constexpr OpRow kRows[] = {
    {"DequantizeLinear", 10, kNewestOpset, 2, 3, 1, dequantize<Domain::Onnx>},
    {"DynamicQuantizeLinear", 11, kNewestOpset, 1, 1, 3, sameOperator},
    {"QuantizeLinear", 10, kNewestOpset, 2, 3, 1, quantize<Domain::Onnx>, "to integer types"},
};

constexpr OpRow kMicrosoftRows[] = {
    {"DequantizeLinear", 1, 1, 2, 3, 1, dequantize<Domain::Microsoft>},
    {"QuantizeLinear", 1, 1, 2, 3, 1, quantize<Domain::Microsoft>},
};

} // namespace

std::span<const OpRow> quantisationOps() { return kRows; }
std::span<const OpRow> microsoftQuantisationOps() { return kMicrosoftRows; }

} // namespace fusec
