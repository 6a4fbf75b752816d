#include "Reference/GraphOps/Quantise.h"
#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <cmath>
#include <limits>

namespace fusec {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The elements of one output element, gathered in row-major order of the reduced axes.
struct Group {
  std::vector<double> floats;
  std::vector<int64_t> ints;
  DType type;
  size_t size() const { return floats.size() + ints.size(); }
  double number(size_t i) const { return floats.empty() ? numberOf(type, ints[i]) : floats[i]; }
};

double sumOf(const Group &g, double (*f)(double)) {
  double s = 0;
  for (size_t i = 0; i < g.size(); ++i)
    s += f(g.number(i));
  return s;
}
double plain(double x) { return x; }
double square(double x) { return x * x; }
double magnitude(double x) { return std::fabs(x); }

double extremeFloat(const Group &g, bool max) {
  double best = max ? -infinity : infinity;
  for (double v : g.floats) {
    if (std::isnan(v))
      return v;
    best = max ? std::fmax(best, v) : std::fmin(best, v);
  }
  return best;
}

int64_t extremeInt(const Group &g, bool max) {
  int64_t best = max ? lowestInt(g.type) : highestInt(g.type);
  for (int64_t v : g.ints) {
    bool less =
        g.type == DType::U64 ? static_cast<uint64_t>(v) < static_cast<uint64_t>(best) : v < best;
    if (less != max)
      best = v;
  }
  return best;
}

double logSumExp(const Group &g) {
  double top = -infinity;
  for (size_t i = 0; i < g.size(); ++i) {
    if (std::isnan(g.number(i)))
      return g.number(i);
    top = std::fmax(top, g.number(i));
  }
  if (std::isinf(top))
    return top;
  double s = 0;
  for (size_t i = 0; i < g.size(); ++i)
    s += std::exp(g.number(i) - top);
  return top + std::log(s);
}

double reduceFloats(OpKind op, const Group &g) {
  auto count = static_cast<double>(g.size());
  switch (op) {
  case OpKind::ReduceL1: return sumOf(g, magnitude);
  case OpKind::ReduceL2: return std::sqrt(sumOf(g, square));
  case OpKind::ReduceLogSum: return std::log(sumOf(g, plain));
  case OpKind::ReduceLogSumExp: return logSumExp(g);
  case OpKind::ReduceMax: return extremeFloat(g, true);
  case OpKind::ReduceMean: return sumOf(g, plain) / count;
  case OpKind::ReduceMin: return extremeFloat(g, false);
  case OpKind::ReduceProd: {
    double p = 1;
    for (double v : g.floats)
      p *= v;
    return p;
  }
  case OpKind::ReduceSum: return sumOf(g, plain);
  case OpKind::ReduceSumSquare: return sumOf(g, square);
  default: assert(false); return 0;
  }
}

/// Sums and products wrap; roots and logarithms are taken in double and truncated.
int64_t reduceInts(OpKind op, const Group &g) {
  uint64_t sum = 0, product = 1, squares = 0, magnitudes = 0;
  for (int64_t v : g.ints) {
    auto u = static_cast<uint64_t>(v);
    sum += u;
    product *= u;
    squares += u * u;
    magnitudes += isSigned(g.type) && v < 0 ? 0 - u : u;
  }
  auto truncated = [&](double v) { return truncateToInt(g.type, v); };
  switch (op) {
  case OpKind::ReduceL1: return static_cast<int64_t>(magnitudes);
  case OpKind::ReduceL2: return truncated(std::sqrt(sumOf(g, square)));
  case OpKind::ReduceLogSum: return truncated(std::log(sumOf(g, plain)));
  case OpKind::ReduceLogSumExp: return truncated(logSumExp(g));
  case OpKind::ReduceMax: return extremeInt(g, true);
  case OpKind::ReduceMean:
    if (g.ints.empty())
      return 0;
    return isSigned(g.type) ? static_cast<int64_t>(sum) / static_cast<int64_t>(g.size())
                            : static_cast<int64_t>(sum / g.size());
  case OpKind::ReduceMin: return extremeInt(g, false);
  case OpKind::ReduceProd: return static_cast<int64_t>(product);
  case OpKind::ReduceSum: return static_cast<int64_t>(sum);
  case OpKind::ReduceSumSquare: return static_cast<int64_t>(squares);
  default: assert(false); return 0;
  }
}

Result<Outputs> reduce(const OpCall &call) {
  const TensorValue &x = call.in(0);
  std::vector<bool> reduced(x.dims.size(), false);
  for (int64_t a : call.node.intsAttr("axes"))
    reduced[static_cast<size_t>(a)] = true;
  bool keep = call.node.intAttr("keepdims");

  Dims strides = rowMajorStrides(x.dims), kept, keptStrides, inner, innerStrides, outDims;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    (reduced[d] ? inner : kept).push_back(x.dims[d]);
    (reduced[d] ? innerStrides : keptStrides).push_back(strides[d]);
    if (!reduced[d])
      outDims.push_back(x.dims[d]);
    else if (keep)
      outDims.push_back(1);
  }
  TensorValue out(x.type, outDims);
  size_t i = 0;
  Group g{{}, {}, x.type};
  for (Walker o(kept, {keptStrides}); !o.done(); o.next(), ++i) {
    g.floats.clear();
    g.ints.clear();
    for (Walker r(inner, {innerStrides}); !r.done(); r.next()) {
      auto p = static_cast<size_t>(o.offset(0) + r.offset(0));
      if (x.isFloating())
        g.floats.push_back(x.floats[p]);
      else
        g.ints.push_back(x.ints[p]);
    }
    if (x.isFloating())
      out.floats[i] = reduceFloats(call.node.op, g);
    else
      out.ints[i] = wrapToDType(x.type, reduceInts(call.node.op, g));
  }
  return Outputs{std::move(out)};
}

/// A NaN counts as the extreme; of equal ones the first or, with select_last_index, the last is taken.
template <bool max> Result<Outputs> argExtreme(const OpCall &call) {
  const TensorValue x = call.rounded(0);
  int64_t axis = call.node.intAttr("axis");
  bool last = call.node.intAttr("select_last_index");
  AxisView v(x.dims, axis);
  if (v.extent == 0 && v.outer * v.inner > 0)
    return call.fail("the axis is empty", Diag::ShapeMismatch);
  auto rank = [&](int64_t p, int64_t q) -> int { // > 0: element p beats element q
    if (x.isFloating()) {
      double a = x.floats[static_cast<size_t>(p)], b = x.floats[static_cast<size_t>(q)];
      if (std::isnan(a) || std::isnan(b))
        return std::isnan(a) - std::isnan(b);
      return max ? (a > b) - (a < b) : (a < b) - (a > b);
    }
    int64_t a = x.ints[static_cast<size_t>(p)], b = x.ints[static_cast<size_t>(q)];
    if (x.type == DType::U64) {
      a ^= INT64_MIN; // maps unsigned order to signed order
      b ^= INT64_MIN;
    }
    return max ? (a > b) - (a < b) : (a < b) - (a > b);
  };
  Dims dims = x.dims;
  if (call.node.intAttr("keepdims"))
    dims[static_cast<size_t>(axis)] = 1;
  else
    dims.erase(dims.begin() + axis);
  TensorValue out(DType::I64, dims);
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t i = 0; i < v.inner; ++i) {
      int64_t best = 0;
      for (int64_t e = 1; e < v.extent; ++e) {
        int r = rank(v.index(o, e, i), v.index(o, best, i));
        if (r > 0 || (r == 0 && last))
          best = e;
      }
      out.ints[static_cast<size_t>(o * v.inner + i)] = best;
    }
  return Outputs{std::move(out)};
}

template <bool product> Result<Outputs> cumulate(const OpCall &call) {
  const TensorValue &x = call.in(0);
  int64_t axis = call.in(1).ints[0];
  if (axis < 0)
    axis += x.rank();
  if (axis < 0 || axis >= x.rank())
    return call.fail("axis " + std::to_string(call.in(1).ints[0]) +
                     " is outside the tensor's rank");
  bool exclusive = call.node.intAttr("exclusive"), reverse = call.node.intAttr("reverse");
  AxisView v(x.dims, axis);
  TensorValue out(x.type, x.dims);
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t i = 0; i < v.inner; ++i) {
      double sum = product ? 1 : 0;
      uint64_t intSum = product ? 1 : 0;
      for (int64_t step = 0; step < v.extent; ++step) {
        auto p = static_cast<size_t>(v.index(o, reverse ? v.extent - 1 - step : step, i));
        double before = sum;
        uint64_t intBefore = intSum;
        if (x.isFloating()) {
          sum = product ? sum * x.floats[p] : sum + x.floats[p];
          out.floats[p] = exclusive ? before : sum;
        } else {
          auto u = static_cast<uint64_t>(x.ints[p]);
          intSum = product ? intSum * u : intSum + u;
          out.ints[p] = wrapToDType(x.type, static_cast<int64_t>(exclusive ? intBefore : intSum));
        }
      }
    }
  return Outputs{std::move(out)};
}

} // namespace

void addReductions(OpTable &t) {
  using enum OpKind;
  for (OpKind op : {ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceMax, ReduceMean,
                    ReduceMin, ReduceProd, ReduceSum, ReduceSumSquare})
    entry(t, op) = reduce;
  entry(t, ArgMax) = argExtreme<true>;
  entry(t, ArgMin) = argExtreme<false>;
  entry(t, CumSum) = cumulate<false>;
  entry(t, CumProd) = cumulate<true>;
}

} // namespace fusec
