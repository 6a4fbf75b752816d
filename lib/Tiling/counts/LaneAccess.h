#pragma once
// What it costs a CPU that a vector's lanes do not lie side by side.
#include "Tiling/schedule/BoundSchedule.h"

#include <map>
#include <optional>

namespace fusec::tiling {

/// What a lane costs that is not stored beside its neighbour: a CPU stores such lanes one by one, and begins nothing
/// else meanwhile (AMD EPYC, Zen 4: 4.3 to 7.5 ns for 16).
constexpr double kStoreCyclesALane = 1.5;
/// Vector operations in the time in which one lane's place is worked out, by divisions by sizes of a run (AMD EPYC, Zen
/// 5: 30 cycles).
constexpr double kDividedPlaceOps = 40;

/// Extents of the tiles of Shared operands (stagedExtents), by the operands' position in the schedule.
using StagedExtents = std::map<OperandIndex, std::vector<int64_t>>;

double elementsOf(const std::vector<int64_t> &extents);

/// Loads that a Stage of such a tile takes a core the time of: elements that do not lie side by side come, or go, one
/// by one, but for what goes in squares whose rows turn in registers (Gir/TurnCopies.cpp).
double loadsOfStage(const BoundSchedule &bound, const Operand &operand,
                    const std::vector<int64_t> &extents, const Target &target);

/// Turns of an Unroll loop around the lanes that lie side by side, where a leaf's loops have one: of what lanes that
/// lie apart store, or of a read, they make rows of memory that shuffles turn (Codegen/Turns.cpp). 1 where none do.
double turnsStored(const BoundSchedule &bound, int equation, const Loops &loops);
double turnsRead(const BoundSchedule &bound, const ReadPlace &read, AxisId laneAxis,
                 const Loops &loops);

/// Whether a node is the quotient or the rest of an axis by a number of whole vectors: Gir's rules find it by vector
/// (Gir/Simplify.cpp).
bool isDigitOfVectors(const Equation &equation, NodeId id, int lanes);

/// Whether lanes along the axis find what they read neither at one place nor side by side. `staged`: null where the
/// distance does not matter in buffers, as in a GPU's shared memory, which serves all lanes at once.
bool lanesLieApart(const BoundSchedule &bound, const ReadPlace &read, AxisId laneAxis,
                   const StagedExtents *staged);

/// Whether such lanes' places are worked out one by one: along a flat axis of a size that a run tells, rows may end
/// within a vector, and the next one lies elsewhere.
bool placesAreDivided(const BoundSchedule &bound, const ReadPlace &read, AxisId laneAxis);

/// What a CPU's vectors along an axis of a schedule hold where all iterations along it are written out: which of an
/// equation's nodes are constants, one for each lane, and which reads find their lanes at constant distances from one
/// another, so that a few vectors and shuffles replace a gather (Codegen/StridedLoads.cpp).
class LanePattern {
public:
  /// What the code has no loop for.
  struct Written {
    uint64_t axes = 0; // of the equation, all of whose iterations are written out
    bool lanes = true; // the loops along the lanes' axis: else its predicates are computed anew
  };
  /// `positions`: of the equation's axes that the schedule's axis goes along, outermost first.
  LanePattern(const BoundSchedule &bound, int equation, std::vector<int> positions,
              Written written);

  bool isConstant(NodeId id) const { return constants[id]; }
  /// Vectors that such a read loads for one of `lanes` elements, on average; nullopt where it gathers.
  std::optional<double> loads(NodeId read, int64_t lanes) const;

private:
  bool isSum(NodeId id) const;
  std::optional<std::vector<NodeId>> testsOfLanes(NodeId predicate) const;
  bool isUniform(NodeId id) const { return (facts.axes[id] & laneAxes) == 0; }

  const BoundSchedule &bound;
  const EquationFacts &facts;
  const std::vector<int> positions;
  const Written written;
  uint64_t laneAxes = 0;
  std::vector<bool> constants;
};

/// The pattern of a statement about the equation inside the loops. nullopt where Codegen keeps a loop along the lanes'
/// axis: it writes out Unroll loops and short Seq loops.
std::optional<LanePattern> lanePattern(const BoundSchedule &bound, int equation,
                                       const Loops &loops);

} // namespace fusec::tiling
