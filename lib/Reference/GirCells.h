#pragma once
// Values of the Gir interpreter, and the evaluator of nodes that read no memory.
#include "Gir/Gir.h"

#include <memory>

namespace fusec::girvm {

/// One value: `i` for integers and bool (wrapped to their type), `f` for f32, f16 and bf16, `d` for f64.
union Cell {
  int64_t i;
  double d;
  float f;
};

Cell loadCell(DType type, const uint8_t *bytes);
void storeCell(DType type, uint8_t *bytes, Cell value);

/// One operation, on `count` lanes; an operand's step is 0 where it is the same in all lanes.
struct Instruction {
  using Function = void (*)(const Instruction &, int count);
  Function run = nullptr;
  Cell *out = nullptr;
  const Cell *operands[3] = {};
  int steps[3] = {};
  ScalarOp op = ScalarOp::Const;
  DType type = DType::F32, operandType = DType::F32;
};

/// The function for one operation; every ScalarOp but the leaves and reads has one.
Instruction::Function functionFor(ScalarOp op, DType type, DType operandType);

/// monoid(a, b) for the one-value monoids.
Cell combine(Monoid monoid, DType type, Cell a, Cell b);
/// a*b + c, rounded once to `type`.
Cell fusedMultiplyAdd(DType type, Cell a, Cell b, Cell c);
/// Whether (b, ib) wins over (a, ia): better value, NaN before numbers, on a tie the lower or higher index.
bool winsArg(Monoid monoid, DType type, Cell a, int64_t ia, Cell b, int64_t ib);

/// A cell, or a column of them, for every node of a kernel's body.
///
/// Nodes that read no memory ("pure") are evaluated when the innermost variable that they depend on is set; the
/// others when their statement runs.
class Cells {
public:
  Cells(const GirKernel &kernel, const std::vector<int64_t> &symbols);

  /// Sets a loop's variable (all lanes) and evaluates the pure nodes that belong to it.
  void setVar(VarId var, int64_t value);
  /// Sets a Lane loop's variable to 0, 1, ...
  void setLaneVar(VarId var);
  /// Evaluates one node that is neither a leaf nor a read, in `count` lanes (1 outside Lane loops).
  void evaluate(NodeId id, int count) { code[id].run(code[id], varying[id] ? count : 1); }

  Cell *column(NodeId id) { return columns[id]; }
  int step(NodeId id) const { return varying[id] ? 1 : 0; }
  /// Nodes that a statement with these roots evaluates when it runs, operands first.
  std::vector<NodeId> impure(const std::vector<NodeId> &roots) const;

private:
  void place(VarId var);

  const GirKernel &kernel;
  std::vector<bool> varying;
  std::vector<bool> pure;
  std::vector<Cell> storage;
  std::vector<Cell *> columns;
  std::vector<Instruction> code;
  std::vector<std::vector<NodeId>>
      ofVar;                    // pure nodes by the innermost variable that they depend on
  std::vector<NodeId> axisNode; // by variable
};

} // namespace fusec::girvm
