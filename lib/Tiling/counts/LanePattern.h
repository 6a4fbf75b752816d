#pragma once
#include "Tiling/schedule/EquationFacts.h"
#include "Tiling/schedule/Schedule.h"

#include <optional>

namespace fusec::tiling {

/// What a CPU's vectors along an axis of a schedule hold where all iterations along it are written out: which of an
/// equation's nodes are constants, one for each lane, and which reads find their lanes at constant distances from one
/// another, so that a few vectors and shuffles replace a gather (Codegen/Distances.cpp).
class LanePattern {
public:
  /// What the code has no loop for.
  struct Written {
    uint64_t axes = 0; // of the equation, all of whose iterations are written out
    bool lanes = true; // the loops along the lanes' axis: else its predicates are computed anew
  };
  /// `positions`: of the equation's axes that the schedule's axis goes along, outermost first; `symbols`: values of the
  /// program's symbols.
  LanePattern(const EquationFacts &facts, const ExprProgram &program, std::vector<int> positions,
              Written written, const std::vector<int64_t> &symbols);

  bool isConstant(NodeId id) const { return constants[id]; }
  /// Vectors that such a read loads for one of `lanes` elements, on average; nullopt where it gathers.
  std::optional<double> loads(NodeId read, int64_t lanes) const;

private:
  bool isSum(NodeId id) const;
  std::optional<std::vector<NodeId>> testsOfLanes(NodeId predicate) const;
  bool isUniform(NodeId id) const { return (facts.axes[id] & laneAxes) == 0; }

  const EquationFacts &facts;
  const ExprProgram &program;
  const std::vector<int> positions;
  const Written written;
  const std::vector<int64_t> &symbols;
  uint64_t laneAxes = 0;
  std::vector<bool> constants;
};

/// The lane pattern of a statement about the pattern's `ordinal`th equation, inside the loops of `path`, outermost
/// first, which have `trips`. nullopt if Codegen keeps a loop along the lanes' axis: it unrolls Unroll loops and short
/// Seq loops.
std::optional<LanePattern> lanePattern(const Schedule &schedule, const ExprProgram &pattern,
                                       const EquationFacts &facts, int ordinal,
                                       const std::vector<const TreeNode *> &path,
                                       const std::vector<double> &trips,
                                       const std::vector<int64_t> &symbols);

} // namespace fusec::tiling
