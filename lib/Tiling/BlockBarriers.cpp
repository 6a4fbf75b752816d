// Every list of statements is walked once, as in Gir/Syncs.cpp: its summary says which accesses can be reached from its
// start without a barrier, which reach its end, and whether a path without one leads through. Partial results that
// units exchange are taken to lie at one place. Which other buffers will share bytes, so that one more barrier stands
// between their uses, is not known before the kernel is made; nor are the stores of cut tiles, which stand apart.
#include "Tiling/BlockBarriers.h"

#include "Tiling/Kept.h"
#include "Tiling/LiveReads.h"
#include "Tiling/StatementPlaces.h"

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
  const TreeNode
      *run; // the loop over units around it (over lanes in blocks of one unit); null: none
  bool own; // the element's index names the thread
};

struct Summary {
  std::vector<Access> head, tail;
  bool passes = true;
};

class Barriers {
public:
  Barriers(const Schedule &schedule, const std::vector<TreeNode> &nodes,
           const std::vector<EquationFacts> &facts, const std::map<const TreeNode *, double> &trips)
      : schedule(schedule), nodes(nodes), facts(facts), trips(trips) {
    for (const EquationFacts &of : facts)
      made.insert(of.equation.outputs.begin(), of.equation.outputs.end());
    addStored(nodes, stored);
  }

  double run() {
    list(nodes, 1);
    return count;
  }

private:
  static bool conflict(const Access &a, const Access &b, bool otherIteration) {
    // An element is stored once, save in partial results and staged tiles.
    if (a.place != b.place || (!a.write && !b.write) || (a.write && b.write && a.place >= 0))
      return false;
    const bool sameRun = a.run && a.run == b.run && !otherIteration;
    return !sameRun && !(a.own && b.own);
  }
  static bool conflict(const std::vector<Access> &before, const std::vector<Access> &after,
                       bool otherIteration) {
    return std::any_of(before.begin(), before.end(), [&](const Access &a) {
      return std::any_of(after.begin(), after.end(),
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

  Summary list(const std::vector<TreeNode> &nodes, double times) {
    Summary sum;
    for (const TreeNode &node : nodes) {
      Summary child = node.isLoop ? loop(node, times, sum.tail) : leaf(node, times);
      if (!around && conflict(sum.tail, child.head, false)) {
        count += times;
        sum.tail.clear();
        sum.passes = false;
      }
      append(sum, std::move(child));
    }
    return sum;
  }

  Summary loop(const TreeNode &node, double times, const std::vector<Access> &before) {
    const bool parallel = node.loop == LoopKind::Unit || node.loop == LoopKind::Lane;
    const bool makesRun = node.loop == (schedule.units > 1 ? LoopKind::Unit : LoopKind::Lane);
    const bool repeats = node.loop == LoopKind::Seq || node.loop == LoopKind::Unroll;
    const double trip = trips.at(&node);
    const TreeNode *outside = around;
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

  /// The element's flat index gives the lane, and where there are several the unit, as its lowest digits.
  bool isOwn(int equation, const std::vector<int> &positions) const {
    if (positions.empty())
      return false;
    AxisId axis = -1;
    for (const TreeNode *loop : path)
      if (loop->loop == LoopKind::Lane && loop->step == 1)
        axis = loop->axis;
    const bool units =
        schedule.units == 1 || std::any_of(path.begin(), path.end(), [&](const TreeNode *loop) {
          return loop->loop == LoopKind::Unit && loop->axis == axis && loop->step == schedule.lanes;
        });
    if (axis < 0 || !units)
      return false;
    const AxisUse *use = schedule.axes[static_cast<size_t>(axis)].in(equation);
    return use && use->positions.back() == positions.back();
  }

  void add(Summary &sum, Place place, bool write, bool own) const {
    const Access access{place, write, around, own};
    sum.head.push_back(access);
    sum.tail.push_back(access);
  }

  bool isInMemory(TensorId t) const {
    return made.count(t) != 0 && levelOf(schedule, t) != MemLevel::Register;
  }

  void write(Summary &sum, int equation) {
    const Equation &e = facts[static_cast<size_t>(equation)].equation;
    std::vector<int> positions;
    for (int p = 0; p < e.numSpatial; ++p)
      positions.push_back(p);
    for (TensorId t : e.outputs)
      if (isInMemory(t)) {
        add(sum, t, true, isOwn(equation, positions));
        if (const TreeNode *lanes = laneLoop())
          madeIn[t] = lanes;
      }
  }

  const TreeNode *laneLoop() const {
    const auto lanes = std::find_if(path.rbegin(), path.rend(), [](const TreeNode *loop) {
      return loop->loop == LoopKind::Lane;
    });
    return lanes == path.rend() ? nullptr : *lanes;
  }

  Summary leaf(const TreeNode &node, double times) {
    Summary sum;
    if (node.leaf == LeafKind::Stage) {
      add(sum, placeOf(static_cast<size_t>(node.target)), true, false);
      return sum;
    }
    if (node.isBorder() || node.leaf == LeafKind::Carry || node.leaf == LeafKind::Sort ||
        node.leaf == LeafKind::Init || node.leaf == LeafKind::Correct)
      return sum;
    const EquationFacts &known = facts[static_cast<size_t>(node.target)];
    const Equation &e = known.equation;
    if (e.kind == EquationKind::Opaque)
      return sum;
    if (node.leaf == LeafKind::Combine) {
      std::vector<const TreeNode *> chain;
      if (schedule.units > 1 && findCompute(nodes, node.target, chain) &&
          sharesReduction(schedule, node.target, chain, LoopKind::Unit)) {
        sum.head.push_back({kPartials, true, nullptr, false});
        sum.tail.push_back({kPartials, false, nullptr, false});
        sum.passes = false;
        count += times;
      }
      if (stored.count(node.target) == 0) {
        Summary result;
        write(result, node.target);
        append(sum, std::move(result));
      }
      return sum;
    }
    if (node.leaf == LeafKind::Store) {
      write(sum, node.target);
      return sum;
    }
    for (size_t r = 0; r < known.reads.size(); ++r) {
      if (!known
               .neededOfRank[static_cast<size_t>(node.rank)][static_cast<size_t>(known.reads[r])] ||
          keptAt(schedule, {node.target, node.rank, static_cast<int>(r)}))
        continue;
      if (const Operand *operand = operandOf(schedule, node.target, static_cast<int>(r))) {
        if (operand->level == MemLevel::Shared)
          add(sum, placeOf(static_cast<size_t>(operand - schedule.operands.data())), false, false);
        continue;
      }
      // What a thread has made in the same loop over lanes it keeps, or has in its own order of execution.
      const TensorId t = e.body[known.reads[r]].index;
      const auto maker = madeIn.find(t);
      if (isInMemory(t) && (maker == madeIn.end() || maker->second != laneLoop()))
        add(sum, t, false, isOwnRead(node.target, r));
    }
    if (e.kind == EquationKind::Map)
      write(sum, node.target);
    return sum;
  }

  bool isOwnRead(int equation, size_t read) const {
    const std::optional<FlatAccess> &access = facts[static_cast<size_t>(equation)].accesses[read];
    if (!access)
      return false;
    std::vector<int> along;
    for (size_t p = 0; p < access->stride.size(); ++p)
      if (access->stride[p].isConst(1))
        along.push_back(static_cast<int>(p));
    return isOwn(equation, along);
  }

  const Schedule &schedule;
  const std::vector<TreeNode> &nodes;
  const std::vector<EquationFacts> &facts;
  const std::map<const TreeNode *, double> &trips;
  std::set<TensorId> made;
  std::set<int> stored;                        // equations with a Store
  std::map<TensorId, const TreeNode *> madeIn; // the loop over lanes
  std::vector<const TreeNode *> path;
  const TreeNode *around = nullptr; // the loop that makes a run
  double count = 0;
};

} // namespace

double blockBarriers(const Schedule &schedule, const std::vector<TreeNode> &nodes,
                     const std::vector<EquationFacts> &facts,
                     const std::map<const TreeNode *, double> &trips) {
  return Barriers(schedule, nodes, facts, trips).run();
}

} // namespace fusec::tiling
