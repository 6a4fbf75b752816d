#pragma once
// What the Expr interpreter keeps between equations, and how it runs one. Internal to Reference.
#include "Reference/ExprMachine.h"
#include "Reference/TensorValue.h"

#include <functional>

namespace fusec::machine {

/// Values of tensors and symbols during one run.
struct State {
  State(const ExprProgram &program, bool floatsInDouble);

  const ExprProgram &program;
  const bool floatsInDouble;
  std::vector<Array> arrays; // by tensor; dims and bytes of the value it has now
  std::vector<int64_t> symbols;
  std::vector<bool> symbolKnown;
  std::function<void(TensorId)> written;

  DType storage(DType t) const { return floatsInDouble && isFloat(t) ? DType::F64 : t; }
  Diagnostic error(const std::string &where, const std::string &text) const;
  /// Value of an expression whose symbols are known.
  Result<int64_t> evaluate(const DimExpr &d, const std::string &where) const;
  Result<std::vector<int64_t>> dims(const Shape &shape, const std::string &where) const;
  /// Learns symbols from the dims that a tensor has, and checks those known already.
  Status bind(TensorId id);
  /// Gives symbols with a definition their values, as far as those that they are made of have one.
  void define();
  /// Zeros in the tensor's declared shape.
  Status allocate(TensorId id, const std::string &where);
  Array copy(TensorId id) const;
  void take(TensorId id, Array value);
};

TensorValue toTensorValue(const Array &a, DType declared);
Array fromTensorValue(const TensorValue &t, DType storage);

/// Map, Reduction or Scatter.
Status runDense(State &state, const Equation &e, int64_t step);
Status runOpaque(State &state, const Equation &e);

/// Lanes of several axes that run through a box in row-major order.
class Odometer {
public:
  /// Axis k of the box goes to registers[k].
  Odometer(std::vector<int64_t> extents, std::vector<Lane *> registers);
  int64_t numPoints() const { return points; }
  /// Writes the next `count` points to lanes 0...
  void next(int count);
  /// Writes the next point to `count` lanes.
  void nextToAll(int count);
  void restart();

private:
  void advance();
  std::vector<int64_t> extents, at;
  std::vector<Lane *> registers;
  int64_t points = 1;
};

} // namespace fusec::machine
