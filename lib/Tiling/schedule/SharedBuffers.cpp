#include "Tiling/schedule/SharedBuffers.h"

#include "Tiling/schedule/ReadReuse.h"
#include "Tiling/schedule/StagedTile.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

/// Finds out whether the result of a map may take the place of a tensor that it reads.
class InPlace {
public:
  InPlace(const BoundSchedule &bound, TensorId source, TensorId result)
      : bound(bound), source(source), map(bound.program.producer(result)),
        maker(bound.program.producer(source)) {
    const auto computes = bound.statements(LeafKind::Compute, map);
    if (bound.facts(map).form != EquationForm::Map || computes.size() != 1 || maker < 0 ||
        bound.equation(map).outputs.size() > 1 || !areAlike(bound.program, source, result) ||
        !readsOwn(map) || !haveOneOrder())
      return;
    const std::optional<Loops> ofSource = loopsOfEdge(bound, source),
                               ofResult = loopsOfEdge(bound, result);
    if (!ofSource || ofSource != ofResult)
      return;
    depth = ofSource->size();
    const Statement &last = *computes[0];
    allowed = std::ranges::all_of(bound.statements(), [&](const Statement &statement) {
      return &statement == &last || !touches(*statement.leaf) || isBefore(statement, last);
    });
  }

  bool allowed = false;

private:
  /// Whether tiles of both have the same axes in the same places.
  bool haveOneOrder() const {
    for (AxisId a{0}; a < AxisId(bound.schedule.axes.size()); ++a) {
      const AxisUse *ofMaker = bound.use(a, maker), *ofMap = bound.use(a, map);
      const bool isOfTile = ofMaker && !ofMaker->reduction;
      if (isOfTile != (ofMap != nullptr) || (isOfTile && ofMaker->positions != ofMap->positions))
        return false;
    }
    return true;
  }

  /// Whether all reads of the source by an equation, with a place each, are of the element that it is about.
  bool readsOwn(int equation) const {
    const EquationFacts &facts = bound.facts(equation);
    bool any = false;
    for (size_t r = 0; r < facts.reads.size(); ++r) {
      if (facts.tensors[r] != source)
        continue;
      any = true;
      const Body &body = facts.equation.body;
      const Scalar &read = body[facts.reads[r]];
      const std::vector<NodeId> indices = indexOperands(read);
      if (read.op != ScalarOp::Read)
        return false;
      for (size_t d = 0; d < indices.size(); ++d)
        if (!isOne(d) && !isAxis(body[indices[d]], static_cast<int>(d)))
          return false;
    }
    return any;
  }
  bool isOne(size_t dimension) const {
    return bound.program.tensor(source).shape[dimension].isConst(1);
  }
  static bool isAxis(const Scalar &s, int position) {
    return s.op == ScalarOp::Axis && s.index == position;
  }

  bool touches(const LeafNode &leaf) const {
    if (leaf.equation == maker || readsValue(bound, leaf, source))
      return true;
    // Corrections of a cascade's states read what its elements do.
    return leaf.equation >= 0 && bound.facts(leaf.equation).form == EquationForm::Cascade &&
           std::ranges::count(bound.facts(leaf.equation).tensors, source) != 0;
  }

  /// Whether the statement is done with an element when the map comes to it: it stands in front of the map, and the
  /// loops that both are inside take it to elements of its own.
  bool isBefore(const Statement &statement, const Statement &last) const {
    const LeafNode &leaf = *statement.leaf;
    if (statement.order > last.order || (leaf.equation != maker && leaf.kind != LeafKind::Compute))
      return false;
    const size_t common = commonLoops(statement.loops, last.loops);
    for (size_t i = depth; i < common; ++i)
      if (!isOwn(statement.loops[i]->axis, leaf.equation))
        return false;
    return true;
  }

  /// Whether an axis of the source's tile is one of the equation's, which touches the source's elements along it one by
  /// one.
  bool isOwn(AxisId axis, int equation) const {
    const AxisUse *use = bound.use(axis, maker), *own = bound.use(axis, equation);
    if (!use || use->reduction || !own)
      return false;
    if (equation == maker)
      return true;
    const EquationFacts &facts = bound.facts(equation);
    if (facts.takesWhole(source))
      return false;
    for (size_t r = 0; r < facts.reads.size(); ++r) {
      if (facts.tensors[r] != source)
        continue;
      const std::vector<NodeId> indices = indexOperands(facts.equation.body[facts.reads[r]]);
      for (size_t p = 0; p < use->positions.size(); ++p) {
        const auto dimension = static_cast<size_t>(use->positions[p]);
        if (!isOne(dimension) &&
            (p >= own->positions.size() ||
             !isAxis(facts.equation.body[indices[dimension]], own->positions[p])))
          return false;
      }
    }
    return true;
  }

  const BoundSchedule &bound;
  const TensorId source;
  const int map, maker;
  size_t depth = 0; // of the loops around the tile
};

bool liesInBlock(const BoundSchedule &bound, TensorId tensor) {
  return bound.level(tensor) == MemLevel::Shared && !isStoreElided(bound, tensor) &&
         bound.program.producer(tensor) >= 0;
}

} // namespace

bool mayTakePlace(const BoundSchedule &bound, TensorId result, TensorId source) {
  return !bound.scan() && bound.schedule.units == 1 && liesInBlock(bound, result) &&
         liesInBlock(bound, source) && InPlace(bound, source, result).allowed;
}

void takePlaces(Schedule &schedule, const ScheduledProgram &program) {
  const BoundSchedule bound(schedule, program);
  for (EdgeLevel &edge : schedule.edges)
    if (edge.level == MemLevel::Shared)
      for (TensorId source : bound.facts(program.producer(edge.tensor)).tensors)
        if (edge.in < 0 && mayTakePlace(bound, edge.tensor, source))
          edge.in = source;
}

std::map<TensorId, TensorId> sharedBuffers(const BoundSchedule &bound) {
  std::map<TensorId, TensorId> buffers;
  for (const EdgeLevel &edge : bound.schedule.edges)
    if (edge.level == MemLevel::Shared) {
      const auto taken = buffers.find(edge.in);
      buffers[edge.tensor] = taken == buffers.end() ? edge.tensor : taken->second;
    }
  return buffers;
}

} // namespace fusec::tiling
