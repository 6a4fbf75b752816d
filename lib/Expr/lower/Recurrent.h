#pragma once
#include "Expr/lower/Lowering.h"

#include <functional>
#include <map>

namespace fusec::lower {

struct Activation {
  std::string name;
  double alpha, beta;
  Val operator()(Val x) const;
};

/// One direction of a recurrent node. Inputs are in ONNX order: X [T,B,I], W [dirs,G*H,I], R [dirs,G*H,H],
/// B [dirs,2*G*H], sequence lengths [B], initial states [dirs,B,H], peepholes [dirs,3*H].
class RecurrentCell {
public:
  RecurrentCell(NodeLowering &n, int64_t gates, int64_t direction);

  /// The contraction with W for all steps, biases added; the recurrent bias of the first `biasedRecurrent`
  /// gates only.
  void projectInput(int64_t biasedRecurrent);
  /// Adds a carried state [B,H] and returns the tensor that a step reads.
  TensorId carry(const std::string &name, size_t initialInput);
  /// Builds the scan: `body` adds a step's equations, which write the carries' next tensors.
  void run(const std::function<void()> &body);

  // Inside the body
  TensorId temp(const std::string &suffix, Shape shape);
  /// state [B,H] times `count` gates of R from `firstGate` on: [B,count,H].
  TensorId recur(TensorId state, const std::string &name, int64_t firstGate, int64_t count);
  // Inside an equation over [B,H]
  Val input(EquationBuilder &b, int64_t gate);
  Val gateOf(EquationBuilder &b, TensorId tensor, int64_t gate);
  /// Element of a weight operand of this direction, in the type of computation.
  Val weight(EquationBuilder &b, size_t input, const std::vector<Val> &at);
  /// Element `at` of one gate's part of W, R or B. A constant is read with an axis for the gates, so that no index
  /// needs arithmetic.
  Val gateWeight(EquationBuilder &b, size_t input, Val gate, const std::vector<Val> &at);
  Val clipped(Val x);
  /// The step is inside the sequence.
  Val valid(EquationBuilder &b);

  NodeLowering &n;
  int64_t d, gates, hidden;
  DType t;
  DimExpr steps, batch;
  double clip;
  std::vector<Activation> activations;
  Equation scan;
  TensorId stacked = -1;        // [T,B,H], when Y is wanted
  std::vector<TensorId> finals; // by state, [B,H]

private:
  std::string prefix;
  TensorId projected = -1;          // [T,B,G,H]
  std::map<size_t, TensorId> views; // of constant operands, by input: [dirs,G,H,..]
};

} // namespace fusec::lower
