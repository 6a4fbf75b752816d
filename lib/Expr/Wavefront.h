#pragma once
#include "Expr/Expr.h"

#include <functional>

namespace fusec {

/// Equations that run step by step beside each other, in the loop of one scan: equation i takes its own step t in step
/// t + shift of the loop. Which shift follows from how far apart the steps are that one equation makes and the next one
/// reads (transforms/Wavefront.cpp).
struct WavefrontShifts {
  std::string why; // not empty: the equations are not like that, for this reason
  struct Part {
    int timeAxis = -1; // of a map or reduction: the axis that runs over the steps
    int64_t shift = 0;
    DimExpr steps; // its own
    bool feedsScan =
        false; // it is a scan, or one reads it, if through others: it reads scans' states of the step before
  };
  std::vector<Part> parts; // of each equation
  DimExpr steps;           // of the loop

  /// The tensors that the equations make, by the dimension that runs over the steps.
  std::map<TensorId, int> timeDims;

  /// Runs of a scan's step, over all scans: what the loop has to do, however it is shifted.
  DimExpr cells(const std::vector<const Equation *> &equations) const;
};

/// `isOutside` says whether others than the equations need a tensor that they make.
WavefrontShifts wavefrontShifts(const ExprProgram &program,
                                const std::vector<const Equation *> &equations,
                                const std::function<bool(TensorId)> &isOutside);

/// The offset of an index that is the leaf (Axis or Step) and a constant; nullopt for any other one.
std::optional<int64_t> offsetFromLeaf(const Body &body, NodeId index, ScalarOp leaf, int axis);

/// The state that holds between two steps what `scan` stacks in `stacked`; nullptr where there is none.
const ScanCarry *stateBehind(const Equation &scan, TensorId stacked);

} // namespace fusec
