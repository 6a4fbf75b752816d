// Every list of statements is walked once, as in Gir/Syncs.cpp: its summary says which accesses can be reached from its
// start without a barrier, which reach its end, and whether a path without one leads through. Partial results that
// units exchange are taken to lie at one place. Which other buffers will share bytes, so that one more barrier stands
// between their uses, is not known before the kernel is made: of kernels with such buffers this is the least there are.
#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/SharedBuffers.h"

#include <algorithm>
#include <set>

namespace fusec::tiling {

namespace {

/// A tensor, partial results that units exchange, or (from -2 downwards) the buffer of a staged operand.
using Place = int;
constexpr Place kPartials = -1;
Place placeOf(size_t operand) { return -2 - static_cast<Place>(operand); }

struct Access {
  Place place;
  bool write;
  const LoopNode
      *run; // the loop over units around it (over lanes in blocks of one unit); null: none
  bool own; // the element's index names the thread
  const LeafNode *statement;
};

struct Summary {
  std::vector<Access> head, tail;
  bool passes = true;
};

class Barriers {
public:
  Barriers(const BoundSchedule &bound, std::span<const TreeNode> nodes)
      : bound(bound), schedule(bound.schedule), nodes(nodes), scan(bound.scan()),
        buffers(sharedBuffers(bound)) {
    for (const EquationFacts &of : bound.program.facts)
      made.insert(of.equation.outputs.begin(), of.equation.outputs.end());
    for (size_t c = 0; scan && c < scan->carries.size(); ++c)
      made.insert(scan->carries[c].previous);
    findScopes();
  }

  double run() {
    list(nodes, 1);
    return count;
  }

private:
  void findScopes() {
    for (const Statement &statement : bound.statements())
      if (const LeafNode &leaf = *statement.leaf;
          leaf.kind == LeafKind::Compute || leaf.kind == LeafKind::Store) {
        const EquationFacts &known = bound.facts(leaf.equation);
        for (TensorId t : known.equation.outputs)
          narrowScope(t, statement.loops);
        for (TensorId t : known.tensors)
          narrowScope(t, statement.loops);
      }
  }

  void narrowScope(TensorId t, const Loops &loops) {
    if (scan || bound.level(t) != MemLevel::Shared)
      return;
    Loops &scope = scopes.try_emplace(t, loops).first->second;
    scope.resize(commonLoops(scope, loops));
  }

  /// All of the tensor that there is in memory at a time has one element along that axis of an equation.
  bool isOne(TensorId t, int equation, int position) const {
    const auto scope = scopes.find(t);
    if (scope == scopes.end())
      return false;
    for (const LoopNode *loop : scope->second) {
      if (loop->kind == LoopKind::Unit || loop->kind == LoopKind::Lane)
        return false;
      const AxisUse *use = bound.use(loop->axis, equation);
      if (loop->step == 1 && use && std::ranges::count(use->positions, position) != 0)
        return true;
    }
    return false;
  }

  bool conflict(const Access &a, const Access &b, bool otherIteration) const {
    if (a.place != b.place || (!a.write && !b.write))
      return false;
    // An element of device memory is stored once, and no statement overwrites what it has stored.
    if (a.write && b.write &&
        (a.statement == b.statement || (a.place >= 0 && bound.level(a.place) == MemLevel::Global)))
      return false;
    const bool sameRun = a.run && a.run == b.run && !otherIteration;
    return !sameRun && !(a.own && b.own);
  }
  bool conflict(const std::vector<Access> &before, const std::vector<Access> &after,
                bool otherIteration) const {
    return std::ranges::any_of(before, [&](const Access &a) {
      return std::ranges::any_of(after,
                                 [&](const Access &b) { return conflict(a, b, otherIteration); });
    });
  }

  static void append(std::vector<Access> &list, std::vector<Access> next) {
    if (list.empty())
      list = std::move(next);
    else
      list.insert(list.end(), next.begin(), next.end());
  }

  static void append(Summary &sum, Summary next) {
    if (sum.passes)
      append(sum.head, std::move(next.head));
    if (!next.passes)
      sum.tail.clear();
    append(sum.tail, std::move(next.tail));
    sum.passes = sum.passes && next.passes;
  }

  Summary list(std::span<const TreeNode> nodes, double times) {
    Summary sum;
    for (const TreeNode &node : nodes) {
      const LoopNode *inner = node.loop();
      Summary child = inner ? loop(*inner, times, sum.tail) : leaf(*node.leaf(), times);
      if (!around && conflict(sum.tail, child.head, false)) {
        count += times;
        sum.tail.clear();
        sum.passes = false;
      }
      append(sum, std::move(child));
    }
    return sum;
  }

  Summary loop(const LoopNode &node, double times, const std::vector<Access> &before) {
    const bool parallel = node.kind == LoopKind::Unit || node.kind == LoopKind::Lane;
    const bool makesRun = node.kind == (schedule.units > 1 ? LoopKind::Unit : LoopKind::Lane);
    const bool repeats = node.kind == LoopKind::Seq || node.kind == LoopKind::Unroll;
    const double trip = bound.optTrip(node);
    const LoopNode *outside = around;
    if (makesRun && !around)
      around = &node;
    path.push_back(&node);
    Summary body = list(node.children, repeats ? times * trip : times);
    path.pop_back();
    around = outside;
    if (parallel || !repeats || around || trip <= 1 || !conflict(body.tail, body.head, true))
      return body;
    count += times * trip;
    Summary out;
    out.passes = false;
    if (conflict(before, body.head, false))
      out.tail = body.tail;
    else
      out.head = body.head;
    return out;
  }

  /// The element's flat address gives the lane, and where there are several the unit, as its lowest digits.
  bool isOwn(int equation, TensorId t, const FlatAccess &address) const {
    const LoopNode *lanes = innermost(path, LoopKind::Lane);
    const AxisId axis = lanes && lanes->step == 1 ? lanes->axis : AxisId();
    const bool units =
        schedule.units == 1 || std::ranges::any_of(path, [&](const LoopNode *loop) {
          return loop->kind == LoopKind::Unit && loop->axis == axis && loop->step == schedule.lanes;
        });
    const AxisUse *use = bound.use(axis, equation);
    if (!units || !use || !address.stride[static_cast<size_t>(use->positions.back())].isConst(1))
      return false;
    const std::vector<Axis> &axes = bound.equation(equation).axes;
    DimExpr run(1);
    for (size_t i = use->positions.size(); i-- > 0;) {
      const auto p = static_cast<size_t>(use->positions[i]);
      if (address.stride[p] != run && !axes[p].extent.isConst(1))
        return false;
      run = run * axes[p].extent;
    }
    for (size_t p = 0; p < axes.size(); ++p)
      if (std::ranges::count(use->positions, static_cast<int>(p)) == 0 &&
          !axes[p].extent.isConst(1) && !isOfThreads(address.stride[p]) &&
          !isOne(t, equation, static_cast<int>(p)))
        return false;
    return isOfThreads(address.constant) && isOfThreads(stepOf(t)) &&
           std::ranges::all_of(address.rests, [&](const FlatAccess::Rest &rest) {
             return isOfThreads(rest.stride);
           });
  }

  /// True if addresses that lie so many elements apart belong to the same thread.
  bool isOfThreads(const DimExpr &elements) const {
    return elements.divisibleBy(int64_t{schedule.units} * schedule.lanes,
                                bound.program.expr.symbols);
  }

  /// Elements from where a value of the scan's step lies to where the next step's does.
  DimExpr stepOf(TensorId t) const {
    const bool stacked = scan && bound.level(t) == MemLevel::Global && !scan->steps.isConst(1) &&
                         isStacked(*scan, t);
    return stacked ? numElements(bound.program.tensor(t).shape) : DimExpr(0);
  }

  void add(Summary &sum, Place place, bool write, bool own) const {
    if (const auto buffer = buffers.find(place); buffer != buffers.end())
      place = buffer->second;
    const Access access{place, write, around, own, statement};
    sum.head.push_back(access);
    sum.tail.push_back(access);
  }

  bool isInMemory(TensorId t) const {
    return made.count(t) != 0 && bound.level(t) != MemLevel::Register;
  }

  void write(Summary &sum, int equation) {
    const Equation &e = bound.equation(equation);
    for (TensorId t : e.outputs)
      if (isInMemory(t)) {
        add(sum, t, true, isOwn(equation, t, outputAccess(e, bound.program.tensor(t))));
        if (const LoopNode *lanes = innermost(path, LoopKind::Lane))
          madeIn[t] = lanes;
      }
  }

  /// A sum whose lanes have one each, the last of them beyond the extent: each read asks for itself, and finds in
  /// memory what was made beside it.
  bool isAskedByLanes(int equation) const {
    const LoopNode *lanes = innermost(path, LoopKind::Lane);
    const AxisUse *use = lanes ? bound.use(lanes->axis, equation) : nullptr;
    return use && !use->reduction && bound.facts(equation).reduces() &&
           !schedule.axes[lanes->axis].extent.divisibleBy(schedule.lanes,
                                                          bound.program.expr.symbols);
  }

  Summary leaf(const LeafNode &node, double times) {
    Summary sum;
    statement = &node;
    if (node.kind == LeafKind::Stage) {
      add(sum, placeOf(node.operand), true, false);
      return sum;
    }
    if (node.kind == LeafKind::Carry)
      return carry(node.carry);
    if (node.isBorder() || node.findsPlaces() || node.kind == LeafKind::Init ||
        node.kind == LeafKind::Correct)
      return sum;
    const EquationFacts &known = bound.facts(node.equation);
    if (known.form == EquationForm::TopK)
      return sum;
    if (node.kind == LeafKind::Combine) {
      if (schedule.units > 1 && sharesReduction(bound, node.equation, LoopKind::Unit)) {
        sum.head.push_back({kPartials, true, nullptr, false, &node});
        sum.tail.push_back({kPartials, false, nullptr, false, &node});
        sum.passes = false;
        count += times;
      }
      if (!bound.has(LeafKind::Store, node.equation)) {
        Summary result;
        write(result, node.equation);
        append(sum, std::move(result));
      }
      return sum;
    }
    if (node.kind == LeafKind::Store) {
      write(sum, node.equation);
      return sum;
    }
    for (size_t r = 0; r < known.reads.size(); ++r) {
      if (!known
               .neededOfRank[static_cast<size_t>(node.rank)][static_cast<size_t>(known.reads[r])] ||
          bound.reuse({node.equation, node.rank, static_cast<int>(r)}))
        continue;
      if (const Operand *operand = bound.operand(node.equation, static_cast<int>(r))) {
        if (operand->level == MemLevel::Shared)
          add(sum, placeOf(static_cast<size_t>(operand - schedule.operands.data())), false, false);
        continue;
      }
      // What a thread has made in the same loop over lanes it keeps, or has in its own order of execution.
      const TensorId t = known.tensors[r];
      const auto maker = madeIn.find(t);
      if (isInMemory(t) &&
          (maker == madeIn.end() || maker->second != innermost(path, LoopKind::Lane) ||
           isAskedByLanes(node.equation)))
        add(sum, t, false, isOwnRead(node.equation, r));
    }
    if (known.form == EquationForm::Map)
      write(sum, node.equation);
    return sum;
  }

  /// Each state is copied by threads side by side, from its first element to its last.
  Summary carry(int when) const {
    Summary sum;
    for (const auto &[from, to] : carriedStates(*scan, when)) {
      if (isInMemory(from))
        add(sum, from, false, isOfThreads(stepOf(from)));
      if (isInMemory(to))
        add(sum, to, true, true);
    }
    return sum;
  }

  bool isOwnRead(int equation, size_t read) const {
    const EquationFacts &known = bound.facts(equation);
    const std::optional<FlatAccess> &access = known.accesses[read];
    return access && isOwn(equation, known.tensors[read], *access);
  }

  const BoundSchedule &bound;
  const Schedule &schedule;
  const std::span<const TreeNode> nodes;
  const Equation *const scan;
  const std::map<TensorId, TensorId> buffers;
  std::set<TensorId> made;
  std::map<TensorId, const LoopNode *> madeIn; // the loop over lanes
  /// Loops around all that touches an inner value in shared memory: below them lies a tile of it.
  std::map<TensorId, Loops> scopes;
  Loops path;
  const LoopNode *around = nullptr; // the loop that makes a run
  const LeafNode *statement = nullptr;
  double count = 0;
};

} // namespace

double blockBarriers(const BoundSchedule &bound, std::span<const TreeNode> nodes) {
  return Barriers(bound, nodes).run();
}

} // namespace fusec::tiling
