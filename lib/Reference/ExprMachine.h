#pragma once
// The evaluator of scalar bodies behind the Expr interpreter: a body becomes a list of instructions, each of which
// works on up to kLanes points of the domain at once.
#include "Expr/Expr.h"
#include "Expr/ScalarEval.h"

namespace fusec::machine {

constexpr int kLanes = 256;

/// A tensor in memory. `storage` differs from the declared type only where floats are kept in double.
struct Array {
  DType storage = DType::F32;
  std::vector<int64_t> dims;
  std::vector<uint8_t> owned;
  const uint8_t *bytes = nullptr; // `owned` or a constant's

  int64_t numElements() const;
  void allocate(DType type, std::vector<int64_t> newDims);
};
ScalarValue load(const Array &a, int64_t element);
void store(Array &a, int64_t element, ScalarValue v); // the value is one of a.storage

/// One register: a value for each lane.
union Lane {
  double f;
  int64_t i;
};

class Machine {
public:
  /// `lookup` gives the arrays of the tensors that the body reads; `symbols` the values of all symbols.
  /// `reductionAxes`: bit a set iff axis a is a reduction axis, for `runSpatial`.
  Machine(const Body &body, const std::vector<NodeId> &roots,
          const std::function<const Array *(TensorId)> &lookup, const std::vector<int64_t> &symbols,
          int64_t step, bool floatsInDouble, uint64_t reductionAxes);

  /// Value of axis a at lane l is setAxis(a)[l].
  Lane *axis(int a) { return &registers[static_cast<size_t>(a) * kLanes]; }
  /// Evaluates what does not depend on reduction axes, then `run` the rest, for `count` lanes. False when a
  /// read left its tensor: `fault` says which.
  bool runSpatial(int count);
  bool run(int count);
  /// Where the caller puts the values of a State or Part leaf before `run`.
  Lane *leaf(NodeId id) { return lanes(registerOf[id]); }
  const Lane *value(NodeId id) const {
    return &registers[static_cast<size_t>(registerOf[id]) * kLanes];
  }

  TensorId fault = -1;

private:
  struct Instruction {
    ScalarOp op;
    DType type;        // of the result; F64 instead of any float when floats are kept in double
    DType operandType; // of the last operand
    int result;
    int a = -1, b = -1, c = -1;
    std::vector<int> indices; // Read, ReadIf
    std::vector<int64_t> strides;
    const Array *array = nullptr;
    TensorId tensor = -1;
  };
  bool execute(const std::vector<Instruction> &list, int count);
  bool read(const Instruction &in, int count);
  Lane *lanes(int r) { return &registers[static_cast<size_t>(r) * kLanes]; }

  std::vector<Instruction> spatial, rest;
  std::vector<int> registerOf; // by node
  std::vector<Lane> registers;
};

} // namespace fusec::machine
