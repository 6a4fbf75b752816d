#include "Expr/LoopSpace.h"

#include "Expr/Padding.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace fusec {

namespace {

class SpaceMaker {
public:
  explicit SpaceMaker(const std::vector<const Equation *> &equations) {
    space.equations = equations;
    for (const Equation *e : equations) {
      first.push_back(static_cast<int>(classOf.size()));
      for (size_t p = 0; p < e->axes.size(); ++p)
        classOf.push_back(static_cast<int>(classOf.size()));
    }
  }

  LoopSpace run() {
    for (int e = 0; e < count(); ++e)
      for (TensorId t : equation(e).outputs)
        makers[t] = e;
    for (int e = 0; e < count(); ++e)
      addReads(e);
    addLoops();
    findRows();
    return std::move(space);
  }

private:
  int count() const { return static_cast<int>(space.equations.size()); }
  const Equation &equation(int e) const { return *space.equations[static_cast<size_t>(e)]; }
  const DimExpr &extent(int e, int p) const {
    return equation(e).axes[static_cast<size_t>(p)].extent;
  }
  /// An axis among those of all equations.
  size_t axis(int e, int p) const { return static_cast<size_t>(first[static_cast<size_t>(e)] + p); }

  void addReads(int e) {
    const Body &body = equation(e).body;
    for (NodeId id : body.reachable(bodyRoots(equation(e)))) {
      if (!isRead(body[id]))
        continue;
      auto maker = makers.find(body[id].index);
      if (maker == makers.end() || maker->second == e)
        continue;
      InsideRead read{maker->second, e, body[id].index, id, {}};
      const std::vector<NodeId> indices = indexOperands(body[id]);
      for (size_t d = 0; d < indices.size(); ++d)
        read.own.push_back(isOwn(read, static_cast<int>(d), body[indices[d]]));
      space.reads.push_back(std::move(read));
    }
  }

  /// Index 0 of a dimension of extent 1, or one axis of the reader alone, which the maker's becomes one loop with.
  bool isOwn(const InsideRead &read, int d, const Scalar &index) {
    if (d >= equation(read.maker).numSpatial)
      return false;
    if (extent(read.maker, d).isConst(1))
      return true;
    return index.op == ScalarOp::Axis &&
           extent(read.maker, d) == extent(read.reader, index.index) &&
           unite(axis(read.maker, d), axis(read.reader, index.index));
  }

  /// False where one equation would have two of its axes in one loop.
  bool unite(size_t a, size_t b) {
    const int from = classOf[std::max(a, b)], to = classOf[std::min(a, b)];
    if (from == to)
      return true;
    for (int e = 0; e < count(); ++e) {
      int met = 0;
      for (size_t p = 0; p < equation(e).axes.size(); ++p) {
        const int own = classOf[axis(e, static_cast<int>(p))];
        met += own == from || own == to;
      }
      if (met > 1)
        return false;
    }
    std::ranges::replace(classOf, from, to);
    return true;
  }

  void addLoops() {
    std::map<int, int> numbers;
    for (int e = 0; e < count(); ++e) {
      auto &own = space.loopOf.emplace_back();
      for (size_t p = 0; p < equation(e).axes.size(); ++p) {
        const Axis &a = equation(e).axes[p];
        if (a.extent.isConst(1)) {
          own.push_back(-1);
          continue;
        }
        const auto [place, isNew] = numbers.try_emplace(classOf[axis(e, static_cast<int>(p))],
                                                        static_cast<int>(space.loops.size()));
        if (isNew)
          space.loops.push_back({a.name, a.extent, std::vector<int>(space.equations.size(), -1)});
        space.loops[static_cast<size_t>(place->second)].positions[static_cast<size_t>(e)] =
            static_cast<int>(p);
        own.push_back(place->second);
      }
    }
  }

  void findRows() {
    std::vector<bool> isRow(space.loops.size(), true);
    for (size_t l = 0; l < space.loops.size(); ++l)
      for (int e = 0; e < count(); ++e) {
        const int p = space.loops[l].positions[static_cast<size_t>(e)];
        if (p < 0 || p >= equation(e).numSpatial)
          isRow[l] = false;
      }
    for (const InsideRead &read : space.reads)
      // Scans and the like have no axes.
      for (size_t d = 0;
           d < read.own.size() && static_cast<int>(d) < equation(read.maker).numSpatial; ++d) {
        const int loop = space.loopOf[static_cast<size_t>(read.maker)][d];
        if (!read.own[d] && loop >= 0)
          isRow[static_cast<size_t>(loop)] = false;
      }
    for (int loop : space.loopOf[0])
      if (loop >= 0 && isRow[static_cast<size_t>(loop)])
        space.rows.push_back(loop);
  }

  LoopSpace space;
  std::vector<int> first;   // by equation: its first axis among those of all
  std::vector<int> classOf; // by axis: the lowest axis of its loop
  std::map<TensorId, int> makers;
};

} // namespace

LoopSpace loopSpace(const std::vector<const Equation *> &equations) {
  return SpaceMaker(equations).run();
}

/// Whether terms of neighbouring sums lie in the same places along a dimension: those of x[i*2 + k] do where k takes
/// three values, those of x[h*16 + d] do not, whose d counts up to 16.
static bool slides(const Equation &e, NodeId index) {
  const std::optional<AffineForm> form = affineForm(e.body, index, static_cast<int>(e.axes.size()));
  if (!form)
    return true;
  // The step that spatial axes have in common, and others, and how far all of each kind together lead.
  int64_t common[2] = {0, 0}, reach[2] = {0, 0};
  for (size_t a = 0; a < e.axes.size(); ++a) {
    const DimExpr &step = form->coefficients[a], &extent = e.axes[a].extent;
    if (step.isConst(0) || extent.isConst(1))
      continue;
    const DimExpr way = step * (extent - 1);
    if (!step.isConst() || !way.isConst() || step.constValue() < 0)
      return true;
    const bool spatial = static_cast<int>(a) < e.numSpatial;
    common[spatial] = std::gcd(common[spatial], step.constValue());
    if (__builtin_add_overflow(reach[spatial], way.constValue(), &reach[spatial]))
      return true;
  }
  return std::min(common[true], reach[true]) > 0 && std::min(common[false], reach[false]) > 0 &&
         common[true] <= reach[false] && common[false] <= reach[true];
}

/// A read of a sum's term that another equation makes, behind a test of its place, or at a place that slides along a
/// window: a block would need what other blocks make, too.
static bool readsWindowsInside(const LoopSpace &space, const Equation &e) {
  const std::vector<uint64_t> axes = axisDependences(e.body);
  const uint64_t spatial = (uint64_t{1} << e.numSpatial) - 1;
  return e.kind == EquationKind::Reduction &&
         std::ranges::any_of(e.body.reachable(bodyRoots(e)), [&](NodeId id) {
           const Scalar &node = e.body[id];
           if (!isRead(node) ||
               !std::ranges::count(space.reads, TensorId(node.index), &InsideRead::tensor))
             return false;
           return node.op == ScalarOp::ReadIf ||
                  std::ranges::any_of(indexOperands(node), [&](NodeId index) {
                    const uint64_t of = axes[static_cast<size_t>(index)];
                    return (of & spatial) != 0 && (of & ~spatial) != 0 && slides(e, index);
                  });
         });
}

std::string whyNoNest(const LoopSpace &space) {
  for (const Equation *e : space.equations) {
    if (e->kind != EquationKind::Map && e->kind != EquationKind::Reduction)
      return e->name + " is neither a map nor a reduction";
    if (!e->states.empty() || isTupleMonoid(e->monoid))
      return e->name + " reduces to several values, which no tree holds beside a contraction";
    if (readsWindowsInside(space, *e))
      return e->name + " sums windows of what another equation makes";
  }
  return "";
}

std::string whyNoTree(const LoopSpace &space) {
  if (std::string reason = whyNoNest(space); !reason.empty() || !space.rows.empty())
    return reason;
  for (const InsideRead &read : space.reads)
    for (size_t d = 0; d < read.own.size(); ++d)
      if (!read.own[d]) // of a map or a reduction, which has an axis for each dimension
        return space.equations[static_cast<size_t>(read.reader)]->name + " reads " +
               space.equations[static_cast<size_t>(read.maker)]->name +
               " at other points than its own along " +
               space.equations[static_cast<size_t>(read.maker)]->axes[d].name +
               ", and all of them have no other loop in common";
  return "they have no loop in common that none of them reduces";
}

} // namespace fusec
