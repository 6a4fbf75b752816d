// Schedules of stitched patterns: several reductions and maps over common rows in one kernel.
//
// All equations run inside the loops over the rows that they share (Expr/Rows.h), one after another, each with a tree
// of its own for what is left of its domain. A value of one element a row stays in registers, a longer one in the
// block's own memory while there is room, else in device memory, where only its own block reads it. Softmax of [m,k]
// on a CPU:
//
//   block m:8 { seq m:1 {
//     init e0  seq k0:64 { unroll k0:16 { lane k0:1 { compute e0 } } }  combine e0       # row maximum, register
//     init e1  seq k1:64 { ... compute e1 ... }  combine e1                               # sum of e^(x - maximum)
//     seq x2:64 { unroll x2:16 { lane x2:1 { compute e2 } } } } }                         # quotient
//
// On a GPU a row belongs to a unit (FusionStitching's warp composition) or to a block (block composition). Equations
// without common rows run in one block, which has all that they make: right for what is smaller than a launch.
#include "Expr/Rows.h"
#include "Tiling/Pieces.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

enum class RowOwner : uint8_t { Unit, Block };
constexpr int kThreads = 256; // of a block on a GPU

struct StitchShape {
  RowOwner owner;
  int unroll;             // vectors of a step along a row
  int threads = kThreads; // of a block on a GPU
};

class Stitch {
public:
  Stitch(const ExprProgram &pattern, const Target &target, std::vector<int> rowPositions,
         StitchShape shape)
      : pattern(pattern), target(target), equations(scheduledEquations(pattern)),
        rowPositions(std::move(rowPositions)), shape(shape) {}

  Schedule build() {
    const bool cpu = target.kind == TargetKind::Cpu;
    const int units = cpu ? 1 : shape.threads / target.lanes;
    const bool oneBlock = rowPositions.empty();
    schedule.name = oneBlock                                ? "one-block"
                    : shape.owner == RowOwner::Unit && !cpu ? "stitch-units"
                                                            : "stitch";
    schedule.units = units;
    schedule.lanes = target.lanes;
    if (!oneBlock)
      addRows();
    pieceUnits = shape.owner == RowOwner::Unit ? 1 : units;
    sharedLeft = target.sharedBytesPerBlock / (shape.owner == RowOwner::Unit ? units : 1);
    std::vector<TreeNode> row;
    for (size_t e = 0; e < equations.size(); ++e)
      addPiece(static_cast<int>(e), row);
    if (oneBlock) {
      schedule.tree = std::move(row);
      return schedule;
    }
    std::vector<TreeNode> around;
    if (cpu) {
      around = {Builder::loop(LoopKind::Block, 0, rowsPerBlock()),
                Builder::loop(LoopKind::Seq, 0, 1)};
    } else if (shape.owner == RowOwner::Unit) {
      around = {Builder::loop(LoopKind::Block, 0, units), Builder::loop(LoopKind::Unit, 0, 1),
                Builder::loop(LoopKind::Seq, 0, 1)};
    } else {
      around = {Builder::loop(LoopKind::Block, 0, 1)};
    }
    schedule.tree = {Builder::nest(around, row)};
    return schedule;
  }

private:
  void addRows() {
    ScheduleAxis m{"m", {{false, rowPositions, {}}}, DimExpr(1)};
    for (size_t e = 0; e < equations.size(); ++e)
      m.uses[0].equations.push_back(static_cast<int>(e));
    for (int p : rowPositions)
      m.extent = m.extent * equations[0]->axes[p].extent;
    schedule.axes.push_back(std::move(m));
  }

  void addPiece(int e, std::vector<TreeNode> &row) {
    const Equation &equation = *equations[e];
    View view = makeView(pattern, target, e, -1, rowPositions);
    bool value = view.spatial.empty();
    MemLevel level = MemLevel::Global;
    for (TensorId t : equation.outputs)
      level = place(t, value, view);
    Schedule piece;
    bool reduces = equation.kind == EquationKind::Reduction;
    if (!reduces)
      piece = mapPiece(view, pieceUnits, shape.unroll);
    else if (value)
      piece = valuePiece(view, pieceUnits, shape.unroll);
    else if (pieceUnits == 1)
      piece = columnsPiece(view, shape.unroll);
    else
      piece = view.reduction.empty() ? mapPiece(view, pieceUnits, shape.unroll)
                                     : rowsPiece(view, pieceUnits);
    for (TreeNode &node : appendPiece(schedule, std::move(piece), std::to_string(e)))
      row.push_back(std::move(node));
    if (reduces && value && level != MemLevel::Register)
      row.push_back(Builder::leaf(LeafKind::Store, e));
  }

  /// Level of a value that the pattern keeps to itself.
  MemLevel place(TensorId t, bool value, const View &view) {
    if (pattern.tensors[t].kind != TensorKind::Temp || !isRead(t))
      return MemLevel::Global;
    MemLevel level = MemLevel::Global;
    if (value && view.equation().outputs.size() == 1) {
      level = MemLevel::Register;
    } else {
      DimExpr elements(1);
      for (const auto &group : view.spatial)
        elements = elements * view.extent(group);
      if (elements.isConst()) {
        int64_t bytes = roundUp(elements.constValue() * sizeInBytes(pattern.tensors[t].type), 128);
        if (bytes <= sharedLeft) {
          sharedLeft -= bytes;
          level = MemLevel::Shared;
        }
      }
    }
    if (level != MemLevel::Global)
      schedule.edges.push_back({t, level});
    return level;
  }

  bool isRead(TensorId t) const {
    return std::any_of(equations.begin(), equations.end(), [&](const Equation *e) {
      std::vector<NodeId> reads = readsOf(*e);
      return std::any_of(reads.begin(), reads.end(),
                         [&](NodeId read) { return e->body[read].index == t; });
    });
  }

  int64_t rowsPerBlock() const {
    constexpr int64_t kElementsPerBlock =
        8192;                       // handing out a block costs as much as some hundred vectors
    constexpr int64_t kBlocks = 16; // enough for several cores
    int64_t rows = 1, longest = 1;
    for (int p : rowPositions)
      rows *= optOf(equations[0]->axes[p].extent);
    for (const Equation *e : equations) {
      int64_t elements = 1;
      for (size_t p = 0; p < e->axes.size(); ++p)
        if (std::find(rowPositions.begin(), rowPositions.end(), static_cast<int>(p)) ==
            rowPositions.end())
          elements = std::min<int64_t>(elements * optOf(e->axes[p].extent), int64_t{1} << 24);
      longest = std::max(longest, elements);
    }
    return std::clamp<int64_t>(kElementsPerBlock / longest, 1,
                               std::max<int64_t>(1, rows / kBlocks));
  }

  int64_t optOf(const DimExpr &extent) const {
    std::vector<int64_t> values;
    for (const Symbol &s : pattern.symbols)
      values.push_back(s.opt);
    return std::max<int64_t>(1, extent.evaluate(values).value_or(1));
  }

  const ExprProgram &pattern;
  const Target &target;
  std::vector<const Equation *> equations;
  std::vector<int> rowPositions;
  StitchShape shape;
  Schedule schedule;
  int pieceUnits = 1;
  int64_t sharedLeft = 0;
};

} // namespace

Candidates stitchCandidates(const ExprProgram &pattern, const Target &target) {
  for (const Equation *e : scheduledEquations(pattern))
    if (e->kind != EquationKind::Map && e->kind != EquationKind::Reduction)
      return {};
  std::vector<int> rows = commonRows(scheduledEquations(pattern));
  const bool cpu = target.kind == TargetKind::Cpu;
  std::vector<StitchShape> shapes = {{RowOwner::Unit, 4}, {RowOwner::Unit, 1}};
  if (rows.empty()) {
    shapes = {{RowOwner::Block, 4}, {RowOwner::Block, 1}};
    if (!cpu)
      shapes.push_back({RowOwner::Block, 1, 4 * kThreads});
  } else if (!cpu) {
    shapes.push_back({RowOwner::Block, 1});
  }
  Candidates out;
  for (const StitchShape &shape : shapes)
    out.push_back(Stitch(pattern, target, rows, shape).build());
  return out;
}

} // namespace fusec::tiling
