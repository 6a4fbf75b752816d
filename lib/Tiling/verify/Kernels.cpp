// The rules of micro-kernels: a Compute that names one sums products of what two reads find, and the loops around it
// that the kernel owns step over rows of the one, columns of the other, and terms.
#include "Tiling/counts/LaneAccess.h"
#include "Tiling/schedule/StagedTile.h"
#include "Tiling/verify/RuleChecker.h"
#include "Tiling/verify/Rules.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

class Kernels : RuleChecker {
public:
  Kernels(const BoundSchedule &bound, const Target *target) : RuleChecker(bound), target(target) {}

  std::vector<std::string> run() {
    for (const Statement &statement : bound.statements())
      if (!statement.leaf->kernel.empty())
        verifyKernel(statement);
    return list();
  }

private:
  struct Tile {
    int rows = -1, columns = -1; // which reads
    int64_t m = 1, n = 1, k = 1; // elements of the kernel's loops
  };

  void verifyKernel(const Statement &compute) {
    const LeafNode &leaf = *compute.leaf;
    const EquationFacts &facts = bound.facts(leaf.equation);
    const Equation &e = facts.equation;
    const Scalar *product = facts.form == EquationForm::Reduction && e.monoid == Monoid::Sum
                                ? &e.body[e.results[0]]
                                : nullptr;
    const bool ofReads =
        product && product->op == ScalarOp::Mul && product->args[0] != product->args[1] &&
        std::ranges::all_of(product->args, [&](NodeId factor) { return isRead(facts, factor); });
    require(ofReads, leaf, " sums products of two values that are read as they are, given e",
            leaf.equation, ", which does not");
    if (!ofReads)
      return;
    // What has no terms is lowered without its reads.
    const bool hasElements =
        std::ranges::none_of(bound.schedule.axes, [&](const ScheduleAxis &axis) {
          return axis.in(leaf.equation) && axis.extent.isConst(0);
        });
    require(hasElements, leaf, " has elements, given an axis of extent 0");
    if (!hasElements)
      return;
    const std::span loops = kernelLoops(leaf, compute.loops);
    const LoopNode *lanes = innermost(loops, LoopKind::Lane);
    const AxisUse *along = lanes ? bound.use(lanes->axis, leaf.equation) : nullptr;
    require(along && !along->reduction, leaf,
            " has around it unroll loops and one lane loop over a spatial axis, given ",
            Loops(loops.begin(), loops.end()));
    if (!along || along->reduction)
      return;
    Tile tile;
    for (NodeId factor : product->args)
      (along->meets(facts.axes[factor]) ? tile.columns : tile.rows) = facts.ordinalOf(factor);
    require(tile.rows >= 0 && tile.columns >= 0, leaf,
            " multiplies what is the same in all lanes by what lanes have along ", lanes,
            ", given ", tile.rows < 0 ? "two values that lanes have" : "none that lanes have");
    if (tile.rows < 0 || tile.columns < 0)
      return;
    for (const LoopNode *loop : loops)
      addLoop(leaf, *loop, tile);
    verifyReads(compute, tile, lanes->axis);
    if (target && none())
      verifyTarget(leaf, tile);
  }

  /// A read of the equation that is done in any case: what a block has copied has its padding written out.
  bool isRead(const EquationFacts &facts, NodeId node) const {
    const ScalarOp op = facts.equation.body[node].op;
    const int equation = static_cast<int>(&facts - bound.program.facts.data());
    return op == ScalarOp::Read ||
           (op == ScalarOp::ReadIf && bound.operand(equation, facts.ordinalOf(node)));
  }

  void addLoop(const LeafNode &leaf, const LoopNode &loop, Tile &tile) {
    const EquationFacts &facts = bound.facts(leaf.equation);
    const AxisUse *use = bound.use(loop.axis, leaf.equation);
    const DimExpr trip = bound.trip(loop);
    if (!use || !trip.isConst())
      return require(false, leaf, " has constant loops over axes of e", leaf.equation,
                     " around it, given ", loop, " of ", trip);
    const bool ofRows = use->meets(facts.axes[facts.reads[tile.rows]]),
               ofColumns = use->meets(facts.axes[facts.reads[tile.columns]]);
    if (use->reduction)
      tile.k *= trip.constValue();
    else
      (ofRows ? tile.m : tile.n) *= trip.constValue();
    require(use->reduction ? ofRows && ofColumns : ofRows != ofColumns, leaf,
            " steps along rows of one factor, columns of the other or terms of both, given ", loop,
            ofRows && ofColumns ? " along both" : " along neither or one alone");
  }

  void verifyReads(const Statement &compute, const Tile &tile, AxisId lanes) {
    const LeafNode &leaf = *compute.leaf;
    for (int read : {tile.rows, tile.columns}) {
      const TensorId tensor = bound.facts(leaf.equation).tensors[read];
      require(bound.program.producer(tensor) < 0 || bound.level(tensor) != MemLevel::Register, leaf,
              " reads memory, given ", bound.program.tensor(tensor).name, " in registers");
    }
    StagedExtents staged;
    const ReadPlace columns{leaf.equation, 0, tile.columns};
    if (const Operand *operand = bound.operand(leaf.equation, tile.columns)) {
      const OperandIndex index(operand - bound.schedule.operands.data());
      for (const Statement *stage : bound.stages(index))
        staged[index] = stagedExtents(bound, *operand, stage->loops);
    }
    const bool isFlat = bound.operand(leaf.equation, tile.columns) ||
                        bound.facts(leaf.equation).accesses[static_cast<size_t>(tile.columns)];
    require(isFlat && !lanesLieApart(bound, columns, lanes, &staged), leaf,
            " reads columns side by side in ", "memory, given ", columns,
            ", which lanes find apart");
  }

  void verifyTarget(const LeafNode &leaf, const Tile &tile) {
    const MicroKernel *kernel = target->kernel(leaf.kernel);
    if (!kernel) {
      std::string known;
      for (const MicroKernel &one : target->kernels)
        known += (known.empty() ? "" : ", ") + one.name;
      return require(false, leaf, " names a kernel of ", target->name, " (",
                     known.empty() ? "it has none" : known, "), given ", leaf.kernel);
    }
    const EquationFacts &facts = bound.facts(leaf.equation);
    const auto typeOf = [&](int read) { return bound.program.tensor(facts.tensors[read]).type; };
    const std::vector<DType> wanted = {kernel->rowType, kernel->columnType, kernel->sumType};
    const std::vector<DType> given = {typeOf(tile.rows), typeOf(tile.columns),
                                      facts.equation.accumulateType};
    require(wanted == given, leaf, " has rows, columns and sums of ", typeNames(wanted), ", given ",
            typeNames(given));
    require(tile.m % kernel->m == 0 && tile.n % kernel->n == 0 && tile.k % kernel->k == 0, leaf,
            " has loops over multiples of ", kernel->m, " rows, ", kernel->n, " columns, ",
            kernel->k, " terms, given ", tile.m, ", ", tile.n, ", ", tile.k);
    const int64_t registers = kernel->registersOf(tile.m, tile.n);
    require(registers <= kernel->registers, leaf, " has ", kernel->registers,
            " registers, given a tile of ", tile.m, " rows and ", tile.n, " columns, which takes ",
            registers);
  }

  static std::string typeNames(const std::vector<DType> &types) {
    std::string text;
    for (DType type : types)
      text += (text.empty() ? "" : ", ") + std::string(name(type));
    return text;
  }

  const Target *target;
};

} // namespace

std::vector<std::string> kernelProblems(const BoundSchedule &bound, const Target *target) {
  return Kernels(bound, target).run();
}

} // namespace fusec::tiling
