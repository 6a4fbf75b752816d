#pragma once
#include "Tiling/lower/ReadLowering.h"

#include <memory>

namespace fusec::lowering {

/// What all statements of one kernel are made with; each part uses those above it.
struct LoweringParts {
  LoweringParts(const BoundSchedule &bound, const std::vector<Symbol> &symbols)
      : bound(bound), writer(bound, symbols), buffers(bound, writer), loops(bound, writer),
        steps(bound, writer, buffers, loops), persistent(bound, writer, loops),
        reads(bound, writer, buffers, loops, steps, persistent) {}

  const BoundSchedule &bound;
  KernelWriter writer;
  BufferTable buffers;
  LoopState loops;
  StepValues steps;
  PersistentValues persistent;
  ReadLowering reads;
};

/// The statements of one equation. Each kind of equation has a class, whose constructor adds its registers to the
/// kernel; statements that a kind does not have are problems of the schedule.
class EquationLowering {
public:
  EquationLowering(LoweringParts &parts, int number);
  virtual ~EquationLowering() = default;

  virtual void init(Stmts &result);
  /// Folds or stores the current point; `rank`: of the states of a cascade that it is folded into.
  virtual void compute(int rank, Stmts &result);
  virtual void correct(int rank, Stmts &result);
  virtual void combine(Stmts &result);
  virtual void sort(Stmts &result);
  virtual void select(Stmts &result);
  virtual void store(Stmts &result);

protected:
  NodeId value(NodeId root) { return reads.value(number, root); }
  /// Puts one value of the equation where its edge level says, and where later steps and the stack find it.
  void storeResult(size_t output, NodeId value, Stmts &result);
  void guarded(Bounds bounds, Stmts statements, Stmts &result);
  void refuse(const char *statement);

  const BoundSchedule &bound;
  KernelWriter &writer;
  BufferTable &buffers;
  LoopState &loops;
  StepValues &steps;
  ReadLowering &reads;
  Body &body;
  const int number;
  const Equation &e;
  Accumulator &acc;
};

/// What lanes, units and Unroll loops have folded into one register by a monoid, perhaps with an index beside it.
class FoldLowering : public EquationLowering {
public:
  FoldLowering(LoweringParts &parts, int number, Monoid monoid)
      : EquationLowering(parts, number), monoid(monoid) {}
  void combine(Stmts &result) override;

protected:
  /// Sets the registers to the neutral element.
  virtual void reset(Stmts &result) = 0;

  const Monoid monoid;
  BufferId folded = -1, index = -1;

private:
  void foldParts(Stmts &result);
};

/// True if units have partial results in the accumulator that Combine has to merge.
bool mergesUnits(const Accumulator &acc, const KernelWriter &writer);
/// Shared memory for the partial results of all units in one accumulator.
BufferId addPartials(const Accumulator &acc, const std::string &name, DType type,
                     KernelWriter &writer);
/// `emit` gets the place of a unit's partial results, of each lane's where lanes keep values of their own.
Stmts atPartials(const Accumulator &acc, NodeId unit, KernelWriter &writer,
                 const std::function<Stmts(const std::vector<NodeId> &)> &emit);

/// The lowering of the equation, by its kind.
std::unique_ptr<EquationLowering> lowerEquation(LoweringParts &parts, int number);
std::unique_ptr<EquationLowering> lowerCascade(LoweringParts &parts, int number);
std::unique_ptr<EquationLowering> lowerTopK(LoweringParts &parts, int number);

} // namespace fusec::lowering
