#include "Driver/State.h"
#include "Tiling/lower/Lower.h"
#include "Tiling/schedule/FlatAccess.h"

#include <algorithm>

namespace fusec {

TensorId ConstantPacker::packed(GirProgram &gir, TensorId source, const ExprProgram &pattern,
                                const Schedule &schedule, size_t index) {
  const Operand &operand = schedule.operands[index];
  const Equation &e = *scheduledEquations(pattern)[operand.equation];
  std::optional<FlatAccess> access = flatAccess(e, readsOf(e)[operand.read], pattern);
  assert(access && access->rests.empty() && access->constant.isConst() &&
         "only affine reads of constants are packed");
  PackedConstant constant;
  constant.source = gir.tensors[source].constant;
  constant.base = access->constant.constValue();
  Shape shape = packedShape(schedule, operand);
  std::string key = constant.source->digest.hex() + ":" + std::to_string(constant.base);
  std::vector<AxisId> axes;
  for (size_t d = 0; d < operand.digits.size(); ++d) {
    const LayoutDigit &digit = operand.digits[d];
    const ScheduleAxis &axis = schedule.axes[digit.axis];
    auto known = std::find(axes.begin(), axes.end(), digit.axis);
    const auto position = static_cast<int>(known - axes.begin());
    if (known == axes.end()) {
      axes.push_back(digit.axis);
      constant.axisExtents.push_back(axis.extent.constValue());
    }
    // A digit counts in units of its divisor; merged axes are walked with one stride.
    int64_t stride = access->stride[axis.in(operand.equation)->positions.back()].constValue();
    constant.digits.push_back(
        {position, shape[d].constValue(), digit.divide, digit.divide * stride});
    key += "," + std::to_string(position) + "/" + std::to_string(digit.divide) + "%" +
           std::to_string(digit.modulus) + "*" + std::to_string(stride) + "<" +
           std::to_string(axis.extent.constValue());
  }
  if (auto it = known.find(key); it != known.end())
    return it->second;
  constant.identity = hash128(key);
  Tensor tensor;
  tensor.name = gir.tensors[source].name + ".packed" + std::to_string(known.size());
  tensor.kind = TensorKind::Constant;
  tensor.type = constant.source->type;
  tensor.shape = shape;
  gir.tensors.push_back(std::move(tensor));
  const auto target = static_cast<TensorId>(gir.tensors.size() - 1);
  known[key] = target;
  gir.packed.emplace(target, std::move(constant));
  return target;
}

} // namespace fusec
