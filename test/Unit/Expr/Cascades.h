#pragma once
// Shared by the tests of cascades: pairs of reductions, and what the repair makes of them.
#include "Expr/Cascade.h"
#include "Expr/transforms/Walk.h"
#include "ProgramTools.h"

#include <cmath>

namespace fusec::test {

/// Two reductions over k in f64: r of %x and perhaps %y, and s, whose body may hold %r[i].
inline ExprProgram pairOf(const std::string &first, const std::string &second) {
  return parse(R"(expr pair
tensor %x: f64[5,37] input
tensor %y: f64[5,37] input
tensor %r: f64[5] output
tensor %s: f64[5] output
inputs (%x, %y)
outputs (%r, %s)
reduction r [i:5; k:37] )" +
               first + "\nreduction s [i:5; k:37] " + second + "\n");
}

inline std::vector<TensorValue> inputsOf(const ExprProgram &p, std::mt19937 &random,
                                         double offset = 0.5, double scale = 1) {
  std::vector<TensorValue> out;
  for (TensorId id : p.inputs) {
    std::vector<int64_t> dims;
    for (const DimExpr &d : p.tensors[static_cast<size_t>(id)].shape)
      dims.push_back(d.constValue());
    TensorValue t(p.tensors[static_cast<size_t>(id)].type, dims);
    for (int64_t i = 0; i < t.numElements(); ++i)
      t.setNumber(i, offset + scale * static_cast<double>(random()) / 4294967296.0);
    out.push_back(std::move(t));
  }
  return out;
}

/// Relative to the element, or to 1 where that is less; infinities and NaN must be the same.
inline void requireClose(const std::vector<TensorValue> &a, const std::vector<TensorValue> &b,
                         double tolerance) {
  REQUIRE(a.size() == b.size());
  for (size_t o = 0; o < a.size(); ++o)
    for (int64_t i = 0; i < b[o].numElements(); ++i) {
      const double x = a[o].number(i), y = b[o].number(i);
      INFO("output " << o << " element " << i << ": " << x << ", in two passes " << y);
      CHECK((x == y || (std::isnan(x) && std::isnan(y)) ||
             std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y))));
    }
}

inline ExprProgram repaired(const ExprProgram &p) {
  std::vector<std::string> refusals;
  std::optional<ExprProgram> made = repairCascades(p, &refusals);
  if (!made)
    FAIL("not repaired: " << (refusals.empty() ? "no pair" : refusals[0]) << "\n"
                          << print(p, nullptr));
  requireValid(*made);
  return std::move(*made);
}

inline std::string refusalOf(const ExprProgram &p) {
  std::vector<std::string> refusals;
  std::optional<ExprProgram> made = repairCascades(p, &refusals);
  INFO(print(made ? *made : p, nullptr));
  CHECK(!made);
  return refusals.size() == 1 ? refusals[0] : std::to_string(refusals.size()) + " refusals";
}

inline const Equation &cascadeIn(const ExprProgram &p) {
  for (const Item &item : p.items)
    if (const Equation &e = std::get<Equation>(item.value); !e.states.empty())
      return e;
  FAIL("no cascade\n" << print(p, nullptr));
  std::abort();
}

/// One pass and two passes give the same.
inline void check(const ExprProgram &p, std::mt19937 &random) {
  const ExprProgram one = repaired(p);
  INFO(print(one, nullptr));
  const auto inputs = inputsOf(p, random);
  requireClose(run(one, inputs), run(p, inputs), 1e-12);
}

inline const char *const kMax = "max f64\n  %r = %x[i, k]";
inline const char *const kSum = "sum f64\n  %r = %x[i, k]";

} // namespace fusec::test
