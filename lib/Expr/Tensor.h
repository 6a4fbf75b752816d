#pragma once
#include "Graph/Constant.h"
#include "Support/Dim.h"

#include <string>

namespace fusec {

using TensorId = int32_t;

enum class TensorKind : uint8_t { Input, Constant, Temp, Output };

/// A dense tensor, row-major in the order of `shape`. A temp's dimensions may be a permutation of the
/// graph value's (channels last, for instance): every access goes through maps, so only the producer and the
/// readers know.
struct Tensor {
  std::string
      name; // name of the ONNX value it comes from, suffixed where one value needs several tensors
  TensorKind kind = TensorKind::Temp;
  DType type = DType::F32;
  Shape shape;
  ConstantRef constant;               // kind == Constant
  ConstantRef defaultValue = nullptr; // of an input that a run may leave out: what it is then
};

} // namespace fusec
