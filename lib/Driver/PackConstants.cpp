#include "Driver/State.h"
#include "Support/AtOnce.h"
#include "Tiling/Access.h"
#include "Tiling/Lower.h"

#include <algorithm>
#include <cstring>

namespace fusec {

TensorId ConstantPacker::packed(GirProgram &gir, TensorId source, const ExprProgram &pattern,
                                const Schedule &schedule, size_t index) {
  const Operand &operand = schedule.operands[index];
  const Equation &e = *scheduledEquations(pattern)[operand.equation];
  std::optional<FlatAccess> access = flatAccess(e, readsOf(e)[operand.read], pattern);
  assert(access && access->rests.empty() && access->constant.isConst() &&
         "only affine reads of constants are packed");
  ConstantRef constant = gir.tensors[source].constant;
  Job job;
  job.source = constant;
  job.base = access->constant.constValue();
  Shape shape = packedShape(schedule, operand);
  std::string key = constant->digest.hex() + ":" + std::to_string(job.base);
  std::vector<AxisId> axes;
  for (size_t d = 0; d < operand.digits.size(); ++d) {
    const LayoutDigit &digit = operand.digits[d];
    const ScheduleAxis &axis = schedule.axes[digit.axis];
    auto known = std::find(axes.begin(), axes.end(), digit.axis);
    job.digitAxis.push_back(static_cast<int>(known - axes.begin()));
    if (known == axes.end()) {
      axes.push_back(digit.axis);
      job.axisExtents.push_back(axis.extent.constValue());
    }
    // A digit counts in units of its divisor; merged axes are walked with one stride.
    int64_t stride = access->stride[axis.in(operand.equation)->positions.back()].constValue();
    int64_t extent = shape[d].constValue();
    std::vector<int64_t> offsets, values;
    for (int64_t v = 0; v < extent; ++v) {
      values.push_back(v * digit.divide);
      offsets.push_back(v * digit.divide * stride);
    }
    key += "," + std::to_string(job.digitAxis.back()) + "/" + std::to_string(digit.divide) + "%" +
           std::to_string(digit.modulus) + "*" + std::to_string(stride) + "<" +
           std::to_string(axis.extent.constValue());
    job.digitOffsets.push_back(std::move(offsets));
    job.digitValues.push_back(std::move(values));
  }
  if (auto it = known.find(key); it != known.end())
    return it->second;
  Tensor tensor;
  tensor.name = gir.tensors[source].name + ".packed" + std::to_string(known.size());
  tensor.kind = TensorKind::Constant;
  tensor.type = constant->type;
  tensor.shape = shape;
  gir.tensors.push_back(std::move(tensor));
  job.target = static_cast<TensorId>(gir.tensors.size() - 1);
  known[key] = job.target;
  jobs.push_back(std::move(job));
  return jobs.back().target;
}

std::vector<uint8_t> ConstantPacker::pack(const Job &job) {
  size_t digits = job.digitOffsets.size();
  int64_t elements = 1;
  for (const auto &d : job.digitOffsets)
    elements *= static_cast<int64_t>(d.size());
  int64_t size = sizeInBytes(job.source->type);
  std::vector<uint8_t> out(static_cast<size_t>(elements * size), 0); // padding stays zero
  std::vector<int64_t> counter(digits, 0);
  std::vector<int64_t> axisValue(job.axisExtents.size(), 0);
  const std::vector<int64_t> &lastOffsets = job.digitOffsets.back(),
                             &lastValues = job.digitValues.back();
  int lastAxis = job.digitAxis.back();
  uint8_t *write = out.data();
  for (int64_t done = 0; done < elements; done += static_cast<int64_t>(lastOffsets.size())) {
    std::fill(axisValue.begin(), axisValue.end(), 0);
    int64_t offset = job.base;
    for (size_t d = 0; d + 1 < digits; ++d) {
      axisValue[job.digitAxis[d]] += job.digitValues[d][counter[d]];
      offset += job.digitOffsets[d][counter[d]];
    }
    bool inside = true;
    for (size_t a = 0; a < axisValue.size(); ++a)
      inside = inside && axisValue[a] < job.axisExtents[a];
    for (size_t v = 0; inside && v < lastOffsets.size(); ++v)
      if (axisValue[lastAxis] + lastValues[v] < job.axisExtents[lastAxis])
        std::memcpy(write + v * size, job.source->bytes + (offset + lastOffsets[v]) * size, size);
    write += lastOffsets.size() * size;
    for (size_t d = digits - 1; d-- > 0;) {
      if (++counter[d] < static_cast<int64_t>(job.digitOffsets[d].size()))
        break;
      counter[d] = 0;
    }
  }
  return out;
}

void ConstantPacker::run(GirProgram &gir, int threads) {
  forEachAtOnce(jobs.size(), threads, [&](size_t i) {
    Tensor &tensor = gir.tensors[jobs[i].target];
    tensor.constant = makeConstant(tensor.type, staticDims(tensor.shape), pack(jobs[i]));
  });
}

} // namespace fusec
