#pragma once
// Shared by the tests of the Expr passes: programs from text, random inputs, bitwise comparison of outputs.
#include "../ParseProgram.h"
#include "../ProgramText.h"
#include "Expr/Passes.h"
#include "Reference/ExprInterpreter.h"

#include <cstring>
#include <random>

namespace fusec::test {

inline void requireValid(const ExprProgram &p) {
  auto status = verify(p);
  if (!status.ok())
    FAIL(format(status.errors().front()) << "\n" << print(p, nullptr));
}

/// Small integers and halves, so that sums are exact and NaN does not hide differences.
inline std::vector<TensorValue>
randomInputs(const ExprProgram &p, const std::vector<int64_t> &symbols, std::mt19937 &random) {
  std::vector<TensorValue> out;
  for (TensorId id : p.inputs) {
    std::vector<int64_t> dims;
    for (const DimExpr &d : p.tensors[id].shape)
      dims.push_back(*d.evaluate(symbols));
    TensorValue t(p.tensors[id].type, dims);
    for (int64_t i = 0; i < t.numElements(); ++i)
      t.setNumber(i, static_cast<double>(static_cast<int>(random() % 33)) /
                             (t.isFloating() ? 2.0 : 1.0) -
                         (t.isFloating() ? 8 : 0));
    out.push_back(std::move(t));
  }
  return out;
}

inline std::vector<TensorValue> run(const ExprProgram &p, const std::vector<TensorValue> &inputs) {
  auto r = evaluate(p, inputs);
  if (!r.ok())
    FAIL(format(r.errors().front()) << "\n" << print(p, nullptr));
  return *r;
}

inline bool sameBits(const std::vector<TensorValue> &a, const std::vector<TensorValue> &b) {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].dims != b[i].dims || a[i].ints != b[i].ints ||
        a[i].floats.size() != b[i].floats.size())
      return false;
    for (size_t k = 0; k < a[i].floats.size(); ++k) {
      double x = a[i].floats[k], y = b[i].floats[k];
      if (std::memcmp(&x, &y, sizeof x) != 0 && !(x != x && y != y))
        return false;
    }
  }
  return true;
}

inline const Equation &equation(const ExprProgram &p, size_t i) {
  return std::get<Equation>(p.items.at(i).value);
}
inline std::string body(const ExprProgram &p, size_t i) {
  std::string text = print(p, nullptr);
  size_t at = text.find("\n", text.find("outputs (")) + 1;
  for (; i > 0; --i) // two lines an equation without lets
    at = text.find("\n", text.find("\n", at) + 1) + 1;
  size_t second = text.find("\n", at) + 1;
  size_t start = text.find_first_not_of(' ', second);
  return text.substr(start, text.find("\n", start) - start);
}

} // namespace fusec::test
