#include "Reference/OpCall.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fusec {

namespace {

/// Applies `row` to every line along the axis.
template <typename F> Result<Outputs> alongAxis(const OpCall &call, F row) {
  TensorValue out = call.in(0);
  AxisView v(out.dims, call.node.intAttr("axis"));
  std::vector<double> line(static_cast<size_t>(v.extent));
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t i = 0; i < v.inner; ++i) {
      for (int64_t e = 0; e < v.extent; ++e)
        line[static_cast<size_t>(e)] = out.floats[static_cast<size_t>(v.index(o, e, i))];
      row(line);
      for (int64_t e = 0; e < v.extent; ++e)
        out.floats[static_cast<size_t>(v.index(o, e, i))] = line[static_cast<size_t>(e)];
    }
  return Outputs{std::move(out)};
}

double largest(const std::vector<double> &line) {
  double top = -std::numeric_limits<double>::infinity();
  for (double v : line) {
    if (std::isnan(v))
      return v;
    top = std::fmax(top, v);
  }
  return top;
}

/// A line of -inf gives NaN, since -inf - -inf is NaN; with zero_masked it gives zeros.
Result<Outputs> softmax(const OpCall &call) {
  const bool zeroMasked = call.node.hasAttr("zero_masked") && call.node.intAttr("zero_masked") != 0;
  return alongAxis(call, [=](std::vector<double> &line) {
    double top = largest(line), sum = 0;
    if (zeroMasked && std::isinf(top) && top < 0) {
      std::fill(line.begin(), line.end(), 0.0);
      return;
    }
    for (double &v : line)
      sum += v = std::exp(v - top);
    for (double &v : line)
      v /= sum;
  });
}

Result<Outputs> logSoftmax(const OpCall &call) {
  return alongAxis(call, [](std::vector<double> &line) {
    double top = largest(line), sum = 0;
    for (double v : line)
      sum += std::exp(v - top);
    for (double &v : line)
      v = v - top - std::log(sum);
  });
}

/// 1 at the first of the largest elements; a NaN counts as the largest.
Result<Outputs> hardmax(const OpCall &call) {
  return alongAxis(call, [](std::vector<double> &line) {
    double top = largest(line);
    bool found = false;
    for (double &v : line) {
      bool here = !found && (v == top || (std::isnan(v) && std::isnan(top)));
      found = found || here;
      v = here;
    }
  });
}

} // namespace

void addReductionsSoftmax(OpTable &t) {
  entry(t, OpKind::Softmax) = softmax;
  entry(t, OpKind::LogSoftmax) = logSoftmax;
  entry(t, OpKind::Hardmax) = hardmax;
}

} // namespace fusec
