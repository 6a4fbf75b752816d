#pragma once
#include "Tiling/counts/Neighbours.h"
#include "Tiling/schedule/LoopRanges.h"

#include <array>
#include <functional>

namespace fusec::tiling {

constexpr int64_t kSectorBytes = 32;

/// Where in device memory a scan's steps find a value of theirs: in rows, each as long as the value of one step.
struct ScanPlace {
  StepRange within; // steps that have a row
  int64_t turn = 0; // the row of step s is (s + turn) modulo `rows`
  int64_t rows = 1;
  int64_t row(int64_t step) const { return (step + turn) % rows; }
};

/// Where a value is written: in the stack of all steps, which may begin with a later one, and in the half of a state
/// that rounds hand on. One row for all steps is a place too; none where device memory does not hold the value.
std::vector<ScanPlace> writtenPlaces(const BoundSchedule &bound, TensorId t);
/// Where the equations of a step, and its Carry statements, read a value that lies in device memory.
ScanPlace readPlace(const BoundSchedule &bound, TensorId t);

/// What the threads of a kernel ask of device memory with one access of a statement.
struct AccessCount {
  double bytes = 0; // summed over threads
  /// Distinct 32-byte sectors per warp access, summed over all accesses.
  double sectors = 0;
  /// True if addresses or predicates of lanes depend on data, which is taken to be random.
  bool fromData = false;
};

/// For each residue modulo a sector's bytes, the fraction of some elements or bytes that have it.
using Residues = std::array<double, kSectorBytes>;

/// How many different numbers these are; sorts them.
double different(std::vector<int64_t> &sectors);
/// The place that a sample looks at: all in their order, or some spread evenly, at multiples of the golden ratio.
double sampledPlace(int64_t sample, int64_t samples, double places);

/// An element's address as a sum over the axes of a schedule: that of the first one, where an access serves several
/// turns.
struct Address {
  int64_t constant = 0;
  std::vector<Residues> beside; // of elements that no axis gives: a scan's step, data
  std::function<int64_t(AxisId, int64_t)> offset; // of an axis' value from its value 0
  std::function<bool(AxisId)> isLinear;
};

/// Quick, for searches: few points are looked at where no formula says it, and what the unrolled copies of a statement
/// read in common is read once, as compiled code does. Thorough, for reports: instructions as they are emitted.
enum class Effort : uint8_t { Quick, Thorough };

/// The schedule whose accesses are counted, and how.
struct AccessContext {
  const BoundSchedule &bound;
  bool vectorLanes; // as Target has it
  Effort effort;
};

/// Address of a constant that was repacked into the operand's digits.
Address packedAddress(const BoundSchedule &bound, const Operand &operand);

/// Accesses to a tensor from its first element to its last, `times` times, by threads of a block side by side.
AccessCount straightCopy(const AccessContext &context, TensorId tensor, double times,
                         const ScanPlace &place);

/// Measures the accesses of one statement of a schedule, which belongs to an equation. Addresses that are affine in the
/// axes are counted by formula; others, and those under a predicate, over points of the domain. An index that comes
/// from data is taken to be anywhere, and a predicate that does to hold.
class SectorCounter {
public:
  /// The axes that stop at their extent: reads of a reduction go on with the last element, save in lanes.
  enum class Bounds : uint8_t { All, ReductionAndLanes, Reduction };

  /// `loops`: around a statement of the equation.
  SectorCounter(const AccessContext &context, int number, const LoopRanges &loops, Bounds bounds);

  /// Every thread that runs the statement reads; of writers one a block where it has no lanes, one a unit where it has
  /// units. `bytes`: of an element; `together`: turns that one access serves.
  AccessCount affine(const Address &address, int64_t bytes, bool writers,
                     const TurnsTogether &together = {}) const;
  /// A read of the equation's body, where all of `guards` hold.
  AccessCount read(NodeId read, const std::vector<NodeId> &guards,
                   const TurnsTogether &together) const;
  /// A write where a predicate holds, if there is one.
  AccessCount write(const std::vector<NodeId> &indices, TensorId tensor, NodeId predicate) const;
  /// Threads that run the statement (or those of them that write), summed over blocks and iterations.
  double threads(bool writers) const;
  /// Address of an access to a tensor, whose rows lie at `place` where it is a value of a scan's step.
  Address addressOf(const FlatAccess &access, TensorId tensor, const ScanPlace &place) const;

private:
  /// A point of the equation's domain, and the step of a scan.
  struct Point {
    std::vector<int64_t> axes;
    int64_t step = 0;
  };
  bool stops(AxisId axis) const;
  double points(AxisId axis) const;
  double others(bool writers) const;
  AccessCount sampled(const std::vector<NodeId> &indices, TensorId tensor,
                      const std::vector<NodeId> &guards, bool writers, const ScanPlace &place,
                      const TurnsTogether &together) const;
  Residues residues(const Address &address, int64_t bytes, const TurnsTogether &together) const;
  int64_t offset(const std::vector<int64_t> &strides, AxisId axis, int64_t value) const;
  bool isLinear(const std::vector<int64_t> &strides, AxisId axis) const;
  template <typename F> void digitsOf(AxisId axis, int64_t value, F each) const;
  void moveTo(Point &point, AxisId axis, int64_t value) const;
  std::vector<std::pair<AxisId, double>> axesAroundLanes() const;
  std::vector<LaneGroup> sampledLanes() const;
  uint64_t positionsOfLanes() const;

  const AccessContext &context;
  const BoundSchedule &bound;
  const Schedule &schedule;
  const EquationFacts &facts;
  const Equation &equation;
  const int ordinal;
  const LoopRanges &loops;
  const Bounds bounds;
  std::vector<int64_t> extents; // of the equation's axes
};

} // namespace fusec::tiling
