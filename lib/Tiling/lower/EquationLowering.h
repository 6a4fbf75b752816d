#pragma once
#include "Tiling/lower/ReadLowering.h"

#include <memory>

namespace fusec::lowering {

/// What all statements of one kernel are made with; each part uses those above it.
struct LoweringParts {
  LoweringParts(const tiling::BoundSchedule &bound, const std::vector<Symbol> &symbols)
      : view(bound, symbols), writer(view), buffers(view, writer), loops(view, writer),
        steps(view, writer, buffers, loops), persistent(view, writer, loops),
        reads(view, writer, buffers, loops, steps, persistent) {}

  const ScheduleView view;
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
  virtual void store(Stmts &result);

protected:
  NodeId value(NodeId root) { return reads.value(number, root); }
  /// Puts one value of the equation where its edge level says, and where later steps and the stack find it.
  void storeResult(size_t output, NodeId value, Stmts &result);
  void guarded(Bounds bounds, Stmts statements, Stmts &result);
  /// True if units have partial results that Combine has to merge.
  bool mergesUnits();
  BufferId addPartials(const std::string &name, DType type);
  /// `emit` gets the place of a unit's partial results, of each lane's where lanes keep values of their own.
  Stmts atPartials(NodeId unit, const std::function<Stmts(const std::vector<NodeId> &)> &emit);
  void refuse(const char *statement);

  const ScheduleView &view;
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

/// The lowering of the equation, by its kind.
std::unique_ptr<EquationLowering> lowerEquation(LoweringParts &parts, int number);
std::unique_ptr<EquationLowering> lowerReduction(LoweringParts &parts, int number);
std::unique_ptr<EquationLowering> lowerCascade(LoweringParts &parts, int number);
std::unique_ptr<EquationLowering> lowerTopK(LoweringParts &parts, int number);

} // namespace fusec::lowering
