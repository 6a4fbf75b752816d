#pragma once
#include "Expr/Alternatives.h"
#include "Expr/Expr.h"
#include "Gir/Levels.h"
#include "Target/Target.h"

#include <algorithm>
#include <compare>
#include <concepts>
#include <optional>
#include <span>
#include <variant>

namespace fusec {

/// A number of one kind: made of an integer explicitly, it indexes a vector as it is, and is no number of another kind.
template <typename Kind> class Index {
public:
  constexpr Index() = default; // -1: none
  template <std::integral T>
  constexpr explicit Index(T number) : number(static_cast<int>(number)) {}
  template <std::same_as<size_t> T> constexpr operator T() const { return static_cast<T>(number); }
  constexpr int value() const { return number; }
  Index &operator++() { return ++number, *this; }
  auto operator<=>(const Index &) const = default;
  bool operator==(const Index &) const = default;
  constexpr auto operator<=>(int other) const { return number <=> other; }
  constexpr bool operator==(int other) const { return number == other; }

private:
  int number = -1;
};
using AxisId = Index<struct ScheduleAxis>;  // -1: none, or kStepAxis
using OperandIndex = Index<struct Operand>; // in Schedule::operands

/// What a schedule's axis stands for in some of the pattern's equations.
struct AxisUse {
  bool reduction = false;     // else spatial
  std::vector<int> positions; // axes of the equations, outermost first
  std::vector<int> equations; // positions in the pattern

  /// Whether one of its axes is among these (bits: axes of the equation).
  bool meets(uint64_t axes) const {
    return std::ranges::any_of(positions,
                               [&](int position) { return (axes >> position & 1) != 0; });
  }
};

/// A loop axis of a schedule: one axis of the pattern's equations, or several fused into one (the last one
/// runs fastest). Equations that share loops share the axis, with equal extents: a map may run along what the next
/// equation sums.
struct ScheduleAxis {
  std::string name;
  std::vector<AxisUse> uses; // an equation stands in one of them at most
  DimExpr extent;            // product

  /// What it is in that equation; null where the equation does not have it.
  const AxisUse *in(int equation) const;
};

/// A digit of an operand's layout or staging buffer: (axis floordiv divide) mod modulus (0 = no mod), or with
/// `index` >= 0 the read's index expression of that dimension instead of an axis.
struct LayoutDigit {
  AxisId axis{};
  int index = -1;
  int64_t divide = 1;
  int64_t modulus = 0;
};

/// An operand kept closer than where it comes from. `read` counts the Read and ReadIf nodes of the equation's
/// body, in node order. level Global: a constant repacked at build time into `digits` (row-major).
/// Shared: copied into a buffer by a Stage statement, whose place in the tree fixes the buffer's extents.
struct Operand {
  std::string name;
  int equation = 0;
  int read = 0;
  MemLevel level = MemLevel::Shared;
  std::vector<LayoutDigit> digits;
  int64_t padElements = 0; // Shared: added to the innermost extent against bank conflicts
};

/// Level of an internal edge: where the value of an equation is kept for the equations that read it.
struct EdgeLevel {
  TensorId tensor; // of the pattern
  MemLevel level = MemLevel::Register;
  TensorId in =
      -1; // Shared: the edge whose place it takes (SharedBuffers.h); -1: it has one of its own
};

/// A read where it is done: `read` counts as in Operand, `rank` is that of the equation's Compute.
struct ReadPlace {
  int equation = 0, rank = 0, read = 0;
  auto operator<=>(const ReadPlace &) const = default;
};

/// A read of memory that is not done, since the thread has what it would get: from the read `from`, or from its own
/// store of the value. It keeps that in registers, or in Shared memory that no other thread touches.
struct ReusedRead {
  ReadPlace read;
  MemLevel level = MemLevel::Register;
  std::optional<ReadPlace> from;
  auto operator<=>(const ReusedRead &) const = default;
};

/// Statements at the leaves of the loop tree. Init: accumulators to the neutral element. Compute: one point of
/// the equation's domain. Combine: partial results of Lane- (and Unit-) bound reduction axes are merged. Store:
/// the accumulator goes to its tensor. Stage: an operand's tile is copied. Carry: the values of a scan's step move on.
/// Sort: all threads of the block put a row of topk's operand in order, in shared memory; a Store then writes it.
/// Barrier: at the root alone, between two phases: all blocks have ended the statements before it when the first one
/// begins what comes after it. Counters: in the place of a barrier; a block begins what comes after it when those
/// blocks have ended that make what it reads (PhaseSignals.h).
/// A cascade's states have ranks (Expr/Cascade.h), and its Compute folds a point into those of one rank. Over each
/// tile of points the tree holds, in this order: Compute of rank 0, Correct of rank 1, Compute of rank 1, and so on
/// to a Correct behind the last rank. Correct: the states of the rank below take in what the tile gave them, and
/// those of this rank, which hold the points of the tiles before, go over to the new states.
enum class LeafKind : uint8_t {
  Init,
  Compute,
  Combine,
  Store,
  Stage,
  Carry,
  Sort,
  Select,
  Barrier,
  Correct,
  Counters
};

struct TreeNode;

/// A loop over `axis` with step s inside another loop over the same axis with step t covers t elements; the outermost
/// covers the extent; the innermost has step 1. A scan's step is the loop with axis == kStepAxis.
struct LoopNode {
  LoopKind kind = LoopKind::Seq;
  AxisId axis{};
  int64_t step = 1;
  std::vector<TreeNode> children = {};
};

/// A statement. `compute e0 kernel avx2.f32` names a micro-kernel (Target/MicroKernel.h): the Unroll and Lane loops
/// around it, up to the first that is of another kind or holds something else, are the kernel's own. It sums products
/// of what two reads find; rows are those of the one that is the same in all lanes.
struct LeafNode {
  LeafKind kind = LeafKind::Compute;
  int equation = -1;       // of none: Stage, Carry, Barrier, Counters
  OperandIndex operand{};  // Stage alone
  int carry = -1;          // Carry alone: 0 sets the states, 1 hands them on, 2 takes the last ones
  int rank = 0;            // Compute and Correct of a cascade
  std::string kernel = {}; // Compute alone

  /// Finds a topk's places in one statement.
  bool findsPlaces() const { return kind == LeafKind::Sort || kind == LeafKind::Select; }
  /// Between two phases.
  bool isBorder() const { return kind == LeafKind::Barrier || kind == LeafKind::Counters; }
};

/// The tiling expression: loops nested or side by side, statements at the leaves.
struct TreeNode {
  TreeNode(LoopNode &&loop) : value(std::move(loop)) {}
  TreeNode(LeafNode &&leaf) : value(std::move(leaf)) {}
  explicit TreeNode(const LeafNode &leaf) : value(leaf) {}

  /// Null where it is a leaf, or a loop of another kind.
  const LoopNode *loop() const { return std::get_if<LoopNode>(&value); }
  LoopNode *loop() { return std::get_if<LoopNode>(&value); }
  const LoopNode *loop(LoopKind kind) const {
    return loop() && loop()->kind == kind ? loop() : nullptr;
  }
  /// Null where it is a loop, or a leaf of another kind.
  const LeafNode *leaf() const { return std::get_if<LeafNode>(&value); }
  LeafNode *leaf() { return std::get_if<LeafNode>(&value); }
  const LeafNode *leaf(LeafKind kind) const {
    return leaf() && leaf()->kind == kind ? leaf() : nullptr;
  }
  /// Between two phases.
  bool isBorder() const { return leaf() && leaf()->isBorder(); }
  /// What a loop holds; nothing of a leaf.
  std::span<const TreeNode> children() const {
    return loop() ? std::span(loop()->children) : std::span<const TreeNode>();
  }
  std::span<TreeNode> children() {
    return loop() ? std::span(loop()->children) : std::span<TreeNode>();
  }

private:
  std::variant<LoopNode, LeafNode> value;
};
constexpr AxisId kStepAxis{-2};

/// Several block loops side by side: parts that do not need each other and share one grid, each with blocks of its own.
bool isPack(std::span<const TreeNode> nodes);
/// The parts that the blocks of a phase are of: several side by side, or all of it.
std::vector<std::span<const TreeNode>> sideBySide(std::span<const TreeNode> phase);

/// The loop over blocks that these nodes are; null where they are none, or several.
const LoopNode *onlyBlockLoop(std::span<const TreeNode> nodes);

/// Whether that holds for one of the nodes, or of those below them.
template <typename Holds> bool anyNode(std::span<const TreeNode> nodes, const Holds &holds) {
  return std::ranges::any_of(
      nodes, [&](const TreeNode &node) { return holds(node) || anyNode(node.children(), holds); });
}

/// How one pattern runs on one kind of target.
struct Schedule {
  std::string name; // pattern's name and a suffix
  int units = 1, lanes = 1;
  std::vector<Rewrite> via; // alternatives taken: all else is about what they make of the pattern
  std::vector<ScheduleAxis> axes;
  std::vector<Operand> operands;
  std::vector<EdgeLevel> edges;
  std::vector<ReusedRead> kept; // sorted
  std::vector<TreeNode> tree;   // root's children
};

/// The root's children from border to border: a kernel's phases.
std::vector<std::span<const TreeNode>> phasesOf(const std::vector<TreeNode> &tree);

/// Equations that a schedule talks about: those of the pattern, or the body of its one Scan.
std::vector<const Equation *> scheduledEquations(const ExprProgram &pattern);

/// The pattern's Scan, or nullptr.
const Equation *scanOf(const ExprProgram &pattern);

std::string print(const ReadPlace &place);
std::string print(const Schedule &schedule, const ExprProgram &pattern);
Result<Schedule> parseSchedule(TextReader &in, const ExprProgram &pattern);

namespace tiling {

// A grid scan: all blocks take a scan's steps together. The step loop stands at the root and holds phases, with
// device-wide barriers between them and between the steps (a kernel's rounds, Gir.h). States lie in device memory,
// twice: a step reads the one half and writes the other, so that no block overwrites what another one still reads.

/// The step loop of such a scan if this phase of the root is one; nullptr else.
const LoopNode *gridScanOf(std::span<const TreeNode> phase);
bool hasGridScan(const Schedule &schedule);

/// What a step finds of a state, what it makes of it, and a value of each step that the scan stacks.
bool isPreviousState(const Equation &scan, TensorId t);
bool isNextState(const Equation &scan, TensorId t);
bool isStacked(const Equation &scan, TensorId t);
/// From where to where a Carry statement copies states. 0: previous = init; 1: previous = next; 2: final = previous.
std::vector<std::pair<TensorId, TensorId>> carriedStates(const Equation &scan, int when);

/// Level of an edge; what is none lies in device memory.
MemLevel levelOf(const Schedule &schedule, TensorId tensor);

/// Makes it an edge of that level; none where that is device memory.
void setLevel(Schedule &schedule, TensorId tensor, MemLevel level);

/// Tensors that the pattern's equations make for each other, a scan's states too, in the order of the tensors: each has
/// a level.
std::vector<TensorId> valuesInside(const ExprProgram &pattern);

/// The schedule's axis that stands for an axis of an equation; -1 for one of extent 1 without a loop.
AxisId axisOf(const Schedule &schedule, int equation, int position);

/// A CPU schedule's axes at most, and a pack's: sets of them are kept as bits.
constexpr size_t kMostAxes = 64;
/// True if a schedule has more axes: it is no candidate, and verify refuses it.
inline bool hasTooManyAxes(const Schedule &schedule, const Target &target) {
  return target.nearestIsCache && schedule.axes.size() > kMostAxes;
}

} // namespace tiling
} // namespace fusec
