// Rows that are written while the next one's functions are computed: right for whatever number of rows a block has.
#include "Candidates.h"

using namespace fusec;
using namespace fusec::test;

namespace {

const std::string kLogSoftmax = R"(expr rows
symbol n = 1..64 opt 40 divisor 1
tensor %x: f32[n,75] input
tensor %m: f32[n] temp
tensor %s: f32[n] temp
tensor %l: f32[n] temp
tensor %y: f32[n,75] output
inputs (%x)
outputs (%y)
reduction r0 [i:n; p:75] max f32
  %m = %x[i, p]
reduction r1 [i:n; p:75] sum f32
  %s = exp(sub(%x[i, p], %m[i]))
map l0 [i:n]
  %l = log(%s[i])
map m0 [i:n, p:75]
  %y = sub(sub(%x[i, p], %m[i]), %l[i])
)";

bool isDelayed(const GirKernel &kernel) {
  return std::any_of(kernel.buffers.begin(), kernel.buffers.end(),
                     [](const GirBuffer &buffer) { return buffer.name.ends_with(".row"); });
}

} // namespace

TEST_CASE("delayed stores: the numbers of rows that are written at once") {
  const ExprProgram pattern = patternFrom(kLogSoftmax);
  int delayed = 0;
  for (const char *target : {"x86-64-v3", "x86-64-v4"})
    for (const Schedule &schedule : valueOf(candidateSchedules(pattern, targetNamed(target)))) {
      INFO(print(schedule, pattern));
      LoweredKernel lowered = valueOf(lowerSchedule(pattern, schedule, pattern.symbols));
      GirKernel &kernel = lowered.kernel;
      rewrite(kernel, {}); // a CPU's threads keep nothing
      delayStores(kernel);
      if (!isDelayed(kernel))
        continue;
      ++delayed;
      insertSyncs(kernel);
      allocate(kernel);
      require(verify(kernel));
      const std::string text = print(kernel);
      TextReader in(text, "kernel");
      CHECK(print(valueOf(parseGirKernel(in, pattern.symbols))) == text);
      for (int64_t n : {1, 2, 7, 40, 64}) {
        const std::vector<TensorValue> inputs = randomInputs(pattern, {n});
        const std::vector<TensorValue> expected = valueOf(evaluate(pattern, inputs));
        CHECK(difference(runKernel(lowered, pattern, schedule, inputs, {n}), expected, 1e-5) == "");
      }
    }
  CHECK(delayed >= 2);
}
