#include "Graph/ResizeRule.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/ResizeAtRunTime.h"

namespace fusec {

std::optional<Shape> computedShape(NodeImporter &n, const ResizeForm &form,
                                   const ResizeOperands &operands) {
  using Op = DimProgram::Op;
  using Id = HostNumbers::Id;
  KnownValues &values = n.graphBuilder().knownValues;
  HostNumbers &numbers = values.numbers;
  const size_t count = form.axes.size();
  const auto by = values.elements(n.id(operands.sizes ? *operands.sizes : *operands.scales));
  const auto roi = operands.roi ? values.elements(n.id(*operands.roi)) : std::nullopt;
  if (!by || by->size() != count ||
      (operands.roi && operands.scales && (!roi || roi->size() != 2 * count)))
    return std::nullopt;
  auto wide = [&](Id x) { return numbers.cast(DType::F64, x); };
  auto apply = [&](Op op, std::optional<Id> a, std::optional<Id> b) {
    return a && b ? numbers.apply(op, DType::F64, {*a, *b, -1}) : std::nullopt;
  };
  auto own = [&](size_t i) {
    return wide(numbers.integer(DType::I64, n.shape(0)[static_cast<size_t>(form.axes[i])]));
  };
  const bool keepsAspect = operands.sizes && form.isKeepingAspect();
  std::vector<std::optional<Id>> scales;
  for (size_t i = 0; keepsAspect && i < count; ++i)
    scales.push_back(apply(Op::Div, wide((*by)[i]), own(i)));
  const auto kept = scales.empty() ? std::nullopt : keptScale(scales, form.policy, apply);
  Shape out = n.shape(0);
  for (size_t i = 0; i < count; ++i) {
    DimExpr &d = out[static_cast<size_t>(form.axes[i])];
    std::optional<Id> made;
    if (keepsAspect) {
      made = sizeByKeptScale<std::optional<Id>>(own(i), kept, numbers.real(DType::F64, 0.5), apply);
    } else if (operands.sizes) {
      made = (*by)[i];
    } else {
      std::optional<std::optional<Id>> part;
      if (roi)
        part = apply(Op::Sub, wide((*roi)[i + count]), wide((*roi)[i]));
      made = sizeByScale<std::optional<Id>>(own(i), part, wide((*by)[i]), apply);
    }
    if (made && numbers.type(*made) == DType::F64) {
      made = numbers.apply(Op::Floor, DType::F64, {*made, -1, -1});
      made = made ? numbers.cast(DType::I64, *made) : made;
    }
    const auto size = made ? numbers.size(*made, n.name()) : std::nullopt;
    if (!size)
      return std::nullopt;
    d = *size;
  }
  return out;
}

} // namespace fusec
