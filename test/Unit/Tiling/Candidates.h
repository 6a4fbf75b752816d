#pragma once
// Runs a pattern by a schedule under the Gir interpreter, and by the Expr interpreter.
#include "../ParseProgram.h"
#include "../ProgramText.h"
#include "Gir/Passes.h"
#include "Gir/Rewrite.h"
#include "Reference/ExprInterpreter.h"
#include "Reference/GirInterpreter.h"
#include "Tiling/lower/Lower.h"
#include "Tiling/schedule/BoundSchedule.h"
#include "Tiling/search/BestSchedules.h"
#include "Tiling/verify/Verify.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

namespace fusec::test {

template <typename T> T valueOf(Result<T> result) {
  if (!result.ok())
    FAIL(format(result.errors().front()));
  return std::move(*result);
}
inline void require(const Status &status) {
  if (!status.ok())
    FAIL(format(status.errors().front()));
}

inline ExprProgram patternFrom(const std::string &text) { return parse(text); }

inline Target targetNamed(const std::string &name) { return valueOf(lookupTarget(name)); }

/// All schedules that Tiling knows for a pattern on a target, unranked, those of the pattern as it is first, then those
/// of its alternatives (Expr/Alternatives.h); none where no single kernel can hold it.
inline Result<std::vector<Schedule>> candidateSchedules(const ExprProgram &pattern,
                                                        const Target &target) {
  FUSEC_TRY(tiling::PricedSchedules all, tiling::pricedCandidates(pattern, target));
  std::vector<Schedule> schedules;
  for (tiling::PricedSchedule &candidate : all)
    schedules.push_back(std::move(candidate.schedule));
  return schedules;
}

/// A kernel as the driver makes it from a schedule, rewritten as for a GPU whatever the target.
inline LoweredKernel kernelOf(const ExprProgram &pattern, const Schedule &schedule) {
  require(verify(schedule, pattern));
  LoweredKernel lowered = valueOf(lowerSchedule(pattern, schedule, pattern.symbols));
  rewrite(lowered.kernel, {127, 48 << 10});
  insertSyncs(lowered.kernel);
  allocate(lowered.kernel);
  require(verify(lowered.kernel));
  return lowered;
}

/// Elements of a constant in the layout of a packed operand.
inline std::vector<uint8_t> packed(const ExprProgram &pattern, const Schedule &schedule,
                                   const Operand &operand, const ConstantRef &source) {
  const Equation &e = *scheduledEquations(pattern)[operand.equation];
  FlatAccess access = *flatAccess(e, readsOf(e)[operand.read], pattern);
  std::vector<int64_t> extents;
  int64_t elements = 1, size = sizeInBytes(source->type);
  for (const DimExpr &d : packedShape(schedule, operand)) {
    extents.push_back(d.constValue());
    elements *= extents.back();
  }
  std::vector<uint8_t> out(static_cast<size_t>(elements * size), 0);
  for (int64_t at = 0; at < elements; ++at) {
    std::map<AxisId, int64_t> place;
    int64_t rest = at, from = access.constant.constValue();
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d])
      place[operand.digits[d].axis] += rest % extents[d] * operand.digits[d].divide;
    bool inside = true;
    for (auto [axis, value] : place) {
      const ScheduleAxis &info = schedule.axes[axis];
      inside = inside && value < info.extent.constValue();
      from += value * access.stride[info.in(operand.equation)->positions.back()].constValue();
    }
    if (inside)
      std::memcpy(&out[static_cast<size_t>(at * size)], source->bytes + from * size,
                  static_cast<size_t>(size));
  }
  return out;
}

/// The pattern's outputs by a kernel of this schedule. Memory that nobody writes holds 0xcd.
inline std::vector<TensorValue> runKernel(const LoweredKernel &lowered, const ExprProgram &original,
                                          const Schedule &schedule,
                                          const std::vector<TensorValue> &inputs,
                                          const std::vector<int64_t> &symbols,
                                          const GirInterpreterOptions &options = {}) {
  const tiling::ScheduledProgram scheduled(original, schedule.via);
  const ExprProgram &pattern = scheduled.expr;
  std::vector<std::vector<uint8_t>> memory;
  auto dimsOf = [&](TensorId id) {
    std::vector<int64_t> dims;
    for (const DimExpr &d : pattern.tensors[id].shape)
      dims.push_back(*d.evaluate(symbols));
    return dims;
  };
  for (const KernelParam &param : lowered.params) {
    const Tensor &tensor = pattern.tensors[param.tensor];
    ConstantRef data = tensor.constant;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (pattern.inputs[i] == param.tensor)
        data = toConstant(inputs[i]);
    if (param.operand >= 0) {
      memory.push_back(packed(pattern, schedule, schedule.operands[param.operand], data));
    } else if (data) {
      memory.emplace_back(data->bytes, data->bytes + data->sizeBytes);
    } else {
      int64_t bytes = sizeInBytes(tensor.type) * param.copies;
      for (int64_t d : dimsOf(param.tensor))
        bytes *= d;
      memory.emplace_back(static_cast<size_t>(bytes), 0xcd);
    }
  }
  std::vector<GirArgument> arguments;
  for (std::vector<uint8_t> &m : memory)
    arguments.push_back({m.data(), static_cast<int64_t>(m.size())});
  require(run(lowered.kernel, arguments, symbols, options));
  std::vector<TensorValue> outputs;
  for (TensorId id : pattern.outputs)
    for (size_t p = 0; p < lowered.params.size(); ++p)
      if (lowered.params[p].tensor == id)
        outputs.push_back(
            toTensorValue(*makeConstant(pattern.tensors[id].type, dimsOf(id), memory[p])));
  return outputs;
}

inline std::vector<TensorValue> runSchedule(const ExprProgram &pattern, const Schedule &schedule,
                                            const std::vector<TensorValue> &inputs,
                                            const std::vector<int64_t> &symbols,
                                            const GirInterpreterOptions &options = {}) {
  return runKernel(kernelOf(pattern, schedule), pattern, schedule, inputs, symbols, options);
}

/// The text of the first difference above `tolerance` (relative, and absolute below 1), or "". A NaN equals a NaN.
inline std::string difference(const std::vector<TensorValue> &actual,
                              const std::vector<TensorValue> &expected, double tolerance) {
  if (actual.size() != expected.size())
    return "another number of outputs";
  for (size_t o = 0; o < actual.size(); ++o)
    for (int64_t i = 0; i < expected[o].numElements(); ++i) {
      double a = actual[o].number(i), b = expected[o].number(i);
      bool same =
          expected[o].isFloating()
              ? (std::isnan(a) && std::isnan(b)) || a == b ||
                    std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))
              : actual[o].ints[static_cast<size_t>(i)] == expected[o].ints[static_cast<size_t>(i)];
      if (!same)
        return "output " + std::to_string(o) + "[" + std::to_string(i) + "] is " +
               std::to_string(a) + ", not " + std::to_string(b);
    }
  return "";
}

/// Every candidate prints and parses to itself, and gives the numbers of the Expr interpreter.
inline void checkCandidates(const ExprProgram &pattern, const std::vector<TensorValue> &inputs,
                            const std::vector<int64_t> &symbols, double tolerance,
                            size_t atLeast = 2) {
  std::vector<TensorValue> expected = valueOf(evaluate(pattern, inputs));
  for (const char *name : {"x86-64-v3", "x86-64-v4", "sim:sm_90", "sim:gfx90a"}) {
    Target target = targetNamed(name);
    std::vector<Schedule> candidates = valueOf(candidateSchedules(pattern, target));
    CHECK(candidates.size() >= atLeast);
    for (const Schedule &schedule : candidates) {
      std::string text = print(schedule, pattern);
      INFO(name << "\n" << text);
      TextReader in(text, "schedule");
      CHECK(print(valueOf(parseSchedule(in, pattern)), pattern) == text);
      CHECK(difference(runSchedule(pattern, schedule, inputs, symbols), expected, tolerance) == "");
    }
  }
}

/// Small numbers that repeat, so that there are ties; integers where the type is one.
inline TensorValue randomTensor(std::mt19937 &random, DType type, std::vector<int64_t> dims,
                                int range = 8) {
  TensorValue t(type, std::move(dims));
  int low = isSigned(type) ? -range : 0;
  for (int64_t i = 0; i < t.numElements(); ++i)
    t.setNumber(i, static_cast<int>(random() % static_cast<unsigned>(range - low + 1)) + low);
  return t;
}

/// Inputs for the pattern, with symbols at the given values.
inline std::vector<TensorValue> randomInputs(const ExprProgram &pattern,
                                             const std::vector<int64_t> &symbols, int range = 4) {
  std::mt19937 random(7);
  std::vector<TensorValue> inputs;
  for (TensorId id : pattern.inputs) {
    const Tensor &t = pattern.tensors[id];
    std::vector<int64_t> dims;
    for (const DimExpr &d : t.shape)
      dims.push_back(*d.evaluate(symbols));
    inputs.push_back(randomTensor(random, t.type, dims, range));
  }
  return inputs;
}

inline void check(const std::string &text, const std::vector<int64_t> &symbols = {},
                  double tolerance = 0, size_t atLeast = 2) {
  INFO(text);
  ExprProgram pattern = patternFrom(text);
  checkCandidates(pattern, randomInputs(pattern, symbols), symbols, tolerance, atLeast);
}

/// Makes the input a constant with whole numbers in it.
inline void fix(ExprProgram &pattern, const std::string &name) {
  std::mt19937 random(9);
  for (size_t t = 0; t < pattern.tensors.size(); ++t) {
    Tensor &tensor = pattern.tensors[t];
    if (tensor.name != name)
      continue;
    tensor.kind = TensorKind::Constant;
    tensor.constant = toConstant(randomTensor(random, tensor.type, staticDims(tensor.shape), 4));
    std::erase(pattern.inputs, static_cast<TensorId>(t));
  }
  require(verify(pattern));
}

inline const std::string kSymbols = "symbol n = 1..300 opt 64 divisor 1\n";

} // namespace fusec::test
