#pragma once
// A schedule bound to the program that it is about: whoever looks at one looks through this.

#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/Schedule.h"

#include <map>
#include <memory>
#include <optional>
#include <set>

namespace fusec::tiling {

/// Loops around a statement, outermost first.
using Loops = std::vector<const LoopNode *>;
/// How many loops two statements have in common.
size_t commonLoops(const Loops &a, const Loops &b);
/// The innermost of these loops that is of a kind, or over an axis; null where there is none.
const LoopNode *innermost(std::span<const LoopNode *const> loops, LoopKind kind);
const LoopNode *innermost(std::span<const LoopNode *const> loops, AxisId axis);

/// A statement and the loops around it.
struct Statement {
  const LeafNode *leaf;
  Loops loops;
  size_t order; // among all statements

  bool isInside(const LoopNode *loop) const;
};

/// The loops that a Compute's micro-kernel owns, of those around it: the innermost Unroll and Lane loops that hold each
/// other and nothing else. None where it names no kernel.
std::span<const LoopNode *const> kernelLoops(const LeafNode &leaf,
                                             std::span<const LoopNode *const> loops);

/// The equation that a statement is about, that of a Stage the reader; -1: none.
int equationOf(const LeafNode &leaf, const Schedule &schedule);
/// The equations that statements among the nodes or in their loops are about.
std::set<int> equationsIn(std::span<const TreeNode> nodes, const Schedule &schedule);

/// Decides which statements an equation has, in a scan's step too. A Scan has none: schedules are about its step.
enum class EquationForm : uint8_t { Map, Reduction, Cascade, TopK, Scatter, Scan };

/// What is asked of an equation again and again, found once for all schedules of its pattern.
struct EquationFacts {
  explicit EquationFacts(const Equation &equation, const ExprProgram &program);

  const Equation &equation;
  EquationForm form;
  std::vector<NodeId> reads;                       // readsOf
  std::vector<TensorId> tensors;                   // that they read
  std::vector<std::optional<FlatAccess>> accesses; // of each of `reads`
  std::vector<uint64_t> axes;                      // axisDependences of all nodes
  std::vector<std::vector<bool>> neededOfRank;     // nodes that the Compute of a rank evaluates

  /// A map, or a reduction to one state.
  bool isPlain() const { return form == EquationForm::Map || form == EquationForm::Reduction; }
  bool reduces() const { return form == EquationForm::Reduction || form == EquationForm::Cascade; }
  /// Ranks of its states, each with a Compute; one of what is no cascade.
  int ranks() const { return static_cast<int>(neededOfRank.size()); }
  /// It needs all of a tensor, whatever its points read: a scatter's base, the operand of topk.
  bool takesWhole(TensorId tensor) const;
  /// Nodes that the Compute of a rank evaluates where the values of these reads are at hand.
  std::vector<bool> neededBeside(const std::vector<NodeId> &atHand, int rank) const;
  /// Position of a read in `reads`.
  int ordinalOf(NodeId read) const;
  /// Axes that decide whether a read is done: its own, and those of the reads that it is an index of.
  uint64_t decidingAxes(NodeId read) const;
};

/// What alternatives make of a pattern, as its schedules see it: found once for all of them. The pattern outlives it.
class ScheduledProgram {
  const std::optional<ExprProgram> made;

public:
  explicit ScheduledProgram(const ExprProgram &pattern, const std::vector<Rewrite> &via = {});
  ScheduledProgram(const ScheduledProgram &) = delete;

  const bool
      exists; // false where an alternative does not apply; the program is then the pattern itself
  const ExprProgram &expr;
  const Equation *const scan;                    // the program's only item, or null
  const std::vector<const Equation *> equations; // scheduledEquations
  const std::vector<EquationFacts> facts;        // one an equation
  const std::vector<int64_t> symbols;            // their opt values

  const Tensor &tensor(TensorId t) const { return expr.tensors[static_cast<size_t>(t)]; }
  /// A size at the symbols' opt values.
  int64_t valueOf(const DimExpr &size) const { return size.evaluate(symbols).value_or(1); }
  /// The most that a size may be, as what holds so many elements has it; nullopt: no memory has room for that.
  std::optional<int64_t> mostOf(const DimExpr &size) const;
  /// Elements between neighbours along each dimension of a tensor.
  std::vector<int64_t> stridesOf(TensorId t) const;
  /// Bytes of one element of a tensor, and of all.
  int64_t bytesOf(TensorId t) const { return sizeInBytes(tensor(t).type); }
  double allBytesOf(TensorId t) const {
    return double(valueOf(numElements(tensor(t).shape))) * double(bytesOf(t));
  }

  /// The equation that makes a tensor; -1: none of them.
  int producer(TensorId tensor) const;
  /// A read's node in its equation's body, and the tensor that it reads.
  NodeId nodeOf(const ReadPlace &place) const {
    return facts[static_cast<size_t>(place.equation)].reads[static_cast<size_t>(place.read)];
  }
  TensorId tensorOf(const ReadPlace &place) const {
    return facts[static_cast<size_t>(place.equation)].tensors[static_cast<size_t>(place.read)];
  }
  /// Finds both of an operand's read.
  NodeId nodeOf(const Operand &o) const { return nodeOf({o.equation, 0, o.read}); }
  TensorId tensorOf(const Operand &o) const { return tensorOf({o.equation, 0, o.read}); }
};

/// A schedule and its program, made once a candidate and never changed. Schedule, and pattern or program, outlive it.
class BoundSchedule {
  const std::unique_ptr<const ScheduledProgram> own; // where nobody else has it

public:
  /// Binds to what the schedule's alternatives make of the pattern.
  BoundSchedule(const Schedule &schedule, const ExprProgram &pattern);
  /// Binds to a program that its alternatives have made.
  BoundSchedule(const Schedule &schedule, const ScheduledProgram &program);
  BoundSchedule(const BoundSchedule &) = delete;

  const Schedule &schedule;
  const ScheduledProgram &program;

  int numEquations() const { return static_cast<int>(program.equations.size()); }
  const Equation &equation(int e) const { return *program.equations[static_cast<size_t>(e)]; }
  const EquationFacts &facts(int e) const { return program.facts[static_cast<size_t>(e)]; }
  /// The program's scan; null where it has none.
  const Equation *scan() const { return program.scan; }
  int64_t valueOf(const DimExpr &size) const { return program.valueOf(size); }

  /// All statements in their order, each with its loops.
  const std::vector<Statement> &statements() const { return all; }
  /// Finds those of one kind about one equation.
  std::vector<const Statement *> statements(LeafKind kind, int equation) const;
  /// Finds those that copy a tile of an operand.
  std::vector<const Statement *> stages(OperandIndex operand) const;
  bool has(LeafKind kind, int equation) const { return !statements(kind, equation).empty(); }
  /// The loops around an equation's first Compute; null where it has none.
  const Loops *loopsOf(int equation) const;
  /// Elements of its axis that a loop steps over: what the loop around it over that axis leaves of the extent.
  DimExpr tile(const LoopNode &loop) const;
  /// Elements of an axis below these loops.
  DimExpr tile(AxisId axis, std::span<const LoopNode *const> loops) const;
  /// Steps of a loop, the last one cut where the tile is no multiple.
  DimExpr trip(const LoopNode &loop) const { return ceilDiv(tile(loop), DimExpr(loop.step)); }
  /// Steps of a loop at the symbols' opt values: loops in order end at the extent, those of a constant trip do not.
  double optTrip(const LoopNode &loop) const { return around.at(&loop).trip; }

  /// Level of a value inside the program; what is no edge lies in device memory.
  MemLevel level(TensorId tensor) const { return levelOf(schedule, tensor); }
  /// The operand that stands for an equation's read, or null.
  const Operand *operand(int equation, int read) const;
  /// What the schedule says of a read that is not done; null where it is done.
  const ReusedRead *reuse(const ReadPlace &place) const;
  /// The schedule's axis that stands for an axis of an equation; -1 for one of extent 1 without a loop.
  AxisId axisOf(int equation, int position) const {
    return tiling::axisOf(schedule, equation, position);
  }
  /// What a schedule's axis is in an equation; null where that does not have it, and of a scan's step.
  const AxisUse *use(AxisId axis, int equation) const {
    return axis < 0 ? nullptr : schedule.axes[axis].in(equation);
  }

  /// The loop at the root in which all blocks take the scan's steps together; null where it has none.
  const LoopNode *gridScan() const { return stepLoop; }
  /// The kernel's phases, those of a grid scan's step in the place of its loop.
  const std::vector<std::span<const TreeNode>> &phases() const { return allPhases; }

private:
  void note();

  std::vector<Statement> all;
  struct Around {
    const LoopNode *loop = nullptr; // around a loop, over its axis
    double trip = 0;
  };
  std::map<const LoopNode *, Around> around;
  std::vector<std::span<const TreeNode>> allPhases;
  const LoopNode *stepLoop = nullptr;
};

/// Numbers the phases in which the equations are computed.
std::vector<int> phaseOfEquations(const BoundSchedule &bound);
/// The loops around the Computes of the equations that read a tensor.
std::vector<const Loops *> readersOf(const BoundSchedule &bound, TensorId tensor);
/// The tensors that a statement reads, or copies a tile of.
std::vector<TensorId> valuesReadBy(const BoundSchedule &bound, const LeafNode &leaf);
/// The value leaves its step by device memory, at whatever level the step itself reads it: it is stacked, or a state
/// that rounds hand on. A step loop inside one block moves states by its Carry statements, from where they lie.
bool outlivesStep(const BoundSchedule &bound, TensorId t);
bool readsValue(const BoundSchedule &bound, const LeafNode &leaf, TensorId value);

/// True if several threads side by side, lanes or units, each have a part of what an equation reduces to: among the
/// loops around its Compute, one of that kind runs over a reduced axis of it.
bool sharesReduction(const BoundSchedule &bound, int equation, LoopKind kind);
/// True if a loop, of those around a statement, runs over neighbours along its axis that one lane has: their sum is one
/// chain, beside those of other lanes.
bool isInsideLanes(std::span<const LoopNode *const> loops, size_t loop);
/// True if each lane reduces to a value of its own: lanes run over a spatial axis of the equation.
bool lanesKeep(const BoundSchedule &bound, int equation);

/// The element that a read of the reader names by a constant, if a register of the maker holds all elements along a
/// schedule's axis, as an LSTM's sums hold the gates of a point.
std::optional<int64_t> namedElement(const BoundSchedule &bound, int maker, AxisId axis, int reader,
                                    NodeId read);

} // namespace fusec::tiling
