#include "Graph/ResizeRule.h"
#include "Onnx/Compose.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/ResizeAtRunTime.h"
#include "Onnx/TestedInRun.h"

#include <cstdlib>

namespace fusec {

namespace {

using Op = DimProgram::Op;
using Id = HostNumbers::Id;
using Made = std::optional<Id>;

/// Numbers that follow from shapes, in f32.
class Floats {
public:
  explicit Floats(HostNumbers &numbers) : numbers(numbers) {}

  Made number(Id x) const { return numbers.cast(DType::F32, x); }
  Made number(const DimExpr &size) const { return number(numbers.integer(DType::I64, size)); }
  Made operator()(Op op, Made a, Made b) const {
    return a && b ? numbers.apply(op, DType::F32, {*a, *b, -1}) : std::nullopt;
  }

  /// The integer below, or `nearest`: up in the middle.
  Made whole(Made x, bool nearest) const {
    x = x ? numbers.cast(DType::F64, *x) : x;
    if (x && nearest)
      x = numbers.apply(Op::Add, DType::F64, {*x, numbers.real(DType::F64, 0.5), -1});
    x = x ? numbers.apply(Op::Floor, DType::F64, {*x, -1, -1}) : x;
    return x ? numbers.cast(DType::I64, *x) : x;
  }

private:
  HostNumbers &numbers;
};

} // namespace

std::optional<DimExpr> scaledSize(NodeImporter &n, const DimExpr &own, Id scale,
                                  std::optional<Id> part) {
  HostNumbers &numbers = n.graphBuilder().knownValues.numbers;
  const auto constant = numbers.constantReal(scale);
  if (const auto isShort = constant && !part ? shortScale(*constant) : std::nullopt) {
    const DimExpr product = own * DimExpr(isShort->factor), power = int64_t(1)
                                                                    << std::abs(isShort->exponent);
    return isShort->exponent < 0 ? floorDiv(product, power) : product * power;
  }
  const Floats floats(numbers);
  std::optional<Made> taken;
  if (part)
    taken = floats.number(*part);
  const Made size = floats.whole(
      sizeByScale<Made>(floats.number(own), taken, floats.number(scale), floats), false);
  return size ? n.sizeOf(*size) : std::nullopt;
}

std::optional<Shape> computedShape(NodeImporter &n, const ResizeForm &form,
                                   const ResizeOperands &operands) {
  KnownValues &values = n.graphBuilder().knownValues;
  HostNumbers &numbers = values.numbers;
  const Floats floats(numbers);
  const size_t count = form.axes.size();
  const auto by = values.elements(n.id(operands.sizes ? *operands.sizes : *operands.scales));
  const auto roi = operands.roi ? values.elements(n.id(*operands.roi)) : std::nullopt;
  if (!by || by->size() != count ||
      (operands.roi && operands.scales && (!roi || roi->size() != 2 * count)))
    return std::nullopt;
  auto own = [&](size_t i) { return n.shape(0)[static_cast<size_t>(form.axes[i])]; };
  const bool keepsAspect = operands.sizes && form.isKeepingAspect();
  std::vector<Made> scales;
  for (size_t i = 0; keepsAspect && i < count; ++i)
    scales.push_back(floats(Op::Div, floats.number((*by)[i]), floats.number(own(i))));
  const Made kept = scales.empty() ? std::nullopt : keptScale(scales, form.policy, floats);
  Shape out = n.shape(0);
  for (size_t i = 0; i < count; ++i) {
    std::optional<DimExpr> size;
    if (operands.sizes) {
      const Made made = keepsAspect
                            ? floats.whole(floats(Op::Mul, floats.number(own(i)), kept), true)
                            : std::optional((*by)[i]);
      size = made ? n.sizeOf(*made) : std::nullopt;
    } else {
      const Made part =
          roi ? floats(Op::Sub, floats.number((*roi)[i + count]), floats.number((*roi)[i]))
              : std::nullopt;
      size = roi && !part ? std::nullopt : scaledSize(n, own(i), (*by)[i], part);
    }
    if (!size)
      return std::nullopt;
    out[static_cast<size_t>(form.axes[i])] = *size;
  }
  return out;
}

Status requireResized(NodeImporter &n, const ResizeForm &form, const ResizeOperands &operands,
                      const Shape &out) {
  const auto count = static_cast<int64_t>(form.axes.size());
  if (count == 0)
    return success();
  Shape declared;
  for (int64_t a : form.axes)
    declared.push_back(out[static_cast<size_t>(a)]);
  if (operands.sizes && !form.isKeepingAspect())
    return requireDeclared(n, n.id(*operands.sizes), declared);
  // In the floats in which ONNX Runtime computes them.
  Compose c(n);
  const auto floats = [&](size_t i) { return Compose(n).cast(n.id(i), DType::F32); };
  FUSEC_TRY(const ValueId all,
            n.emitOne(OpKind::Shape, {n.id(0)}, {{"start", int64_t(0)}, {"end", n.rank(0)}}));
  FUSEC_TRY(const ValueId given, c.gather(all, n.intsValue(form.axes), 0));
  const ValueId own = c.cast(given, DType::F32);
  ValueId asked = own;
  if (operands.sizes) {
    FUSEC_TRY(const ValueId scales, c.binary(OpKind::Div, floats(*operands.sizes), own));
    const OpKind choice = form.policy == "not_larger" ? OpKind::ReduceMin : OpKind::ReduceMax;
    FUSEC_TRY(const ValueId kept, c.reduce(choice, scales, {0}));
    FUSEC_TRY(asked, c.binary(OpKind::Mul, own, kept));
    FUSEC_TRY(asked, c.binary(OpKind::Add, asked, c.scalar(DType::F32, 0.5)));
  } else {
    if (operands.roi) {
      const ValueId roi = floats(*operands.roi);
      FUSEC_TRY(const ValueId part,
                c.binary(OpKind::Sub, c.slice(roi, 0, count, count), c.slice(roi, 0, 0, count)));
      FUSEC_TRY(asked, c.binary(OpKind::Mul, own, part));
    }
    FUSEC_TRY(asked, c.binary(OpKind::Mul, asked, floats(*operands.scales)));
  }
  return requireDeclared(n, c.unary(OpKind::Floor, asked), declared);
}

} // namespace fusec
