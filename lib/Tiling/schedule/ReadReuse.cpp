#include "Tiling/schedule/ReadReuse.h"

#include "Expr/Cascade.h"
#include "Tiling/schedule/PersistentReads.h"

#include <algorithm>
#include <map>

namespace fusec::tiling {

namespace {

/// Places at which the statements of an equation read something themselves: reads that an operand stands for are done
/// where it is staged.
template <typename Matches>
std::vector<ReadPlace> readPlaces(const BoundSchedule &bound, int equation,
                                  const Matches &matches) {
  const Equation &e = bound.equation(equation);
  const std::vector<NodeId> &reads = bound.facts(equation).reads;
  std::vector<ReadPlace> places;
  for (int rank = 0; rank < bound.facts(equation).ranks(); ++rank)
    for (NodeId id : e.body.reachable(resultsOfRank(e, rank)))
      for (size_t r = 0; r < reads.size(); ++r)
        if (reads[r] == id && matches(static_cast<int>(r), e.body[id]))
          places.push_back({equation, rank, static_cast<int>(r)});
  return places;
}

/// Nobody reads any more: the first of them to go was served by the store.
bool areKept(const BoundSchedule &bound, const std::vector<ReadPlace> &places) {
  return !places.empty() && std::ranges::all_of(places, [&](const ReadPlace &place) {
    return bound.reuse(place) != nullptr;
  });
}

/// The first statement of a kind about an equation; null where there is none.
const Statement *statementOf(const BoundSchedule &bound, LeafKind kind, int equation, int rank) {
  for (const Statement *statement : bound.statements(kind, equation))
    if (statement->leaf->rank == rank)
      return statement;
  return nullptr;
}

} // namespace

std::optional<MemLevel> reusedLevel(const BoundSchedule &bound, int equation, TensorId tensor) {
  const std::vector<ReadPlace> places =
      readPlaces(bound, equation, [&](int, const Scalar &read) { return read.index == tensor; });
  return areKept(bound, places) ? std::optional(bound.reuse(places.front())->level) : std::nullopt;
}

/// One of an equation's several values that nothing needs, as the maximum beside its place.
static bool isUnread(const BoundSchedule &bound, TensorId tensor) {
  const int producer = bound.program.producer(tensor);
  if (producer < 0 || bound.equation(producer).outputs.size() < 2)
    return false;
  return std::ranges::none_of(bound.program.facts, [&](const EquationFacts &facts) {
    return facts.takesWhole(tensor) || std::ranges::count(facts.tensors, tensor) != 0;
  });
}

bool isStoreElided(const BoundSchedule &bound, TensorId tensor) {
  if (bound.program.tensor(tensor).kind != TensorKind::Temp)
    return false;
  // Values that are stacked or go on to the next step.
  if (const Equation *scan = bound.scan();
      scan &&
      (isStacked(*scan, tensor) || isNextState(*scan, tensor) || isPreviousState(*scan, tensor)))
    return false;
  if (isUnread(bound, tensor))
    return true;
  if (bound.schedule.kept.empty())
    return false;
  std::vector<ReadPlace> places;
  for (int e = 0; e < bound.numEquations(); ++e) {
    if (bound.facts(e).takesWhole(tensor))
      return false;
    const Equation &equation = bound.equation(e);
    for (int rank = 1; rank < bound.facts(e).ranks(); ++rank)
      for (NodeId id : equation.body.reachable(correctionsOfRank(equation, rank)))
        if (const Scalar &s = equation.body[id];
            (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) && s.index == tensor)
          return false;
    for (const Operand &operand : bound.schedule.operands) // staged from the tensor
      if (operand.equation == e && bound.program.tensorOf(operand) == tensor)
        return false;
    const std::vector<ReadPlace> own =
        readPlaces(bound, e, [&](int, const Scalar &read) { return read.index == tensor; });
    places.insert(places.end(), own.begin(), own.end());
  }
  return areKept(bound, places);
}

bool isStoreElided(const BoundSchedule &bound, const Operand &operand) {
  return areKept(bound, readPlaces(bound, operand.equation,
                                   [&](int read, const Scalar &) { return read == operand.read; }));
}

ReuseStorage reuseStorage(const BoundSchedule &bound) {
  ReuseStorage out;
  const Schedule &schedule = bound.schedule;
  if (schedule.kept.empty())
    return out;
  for (const PersistentStorage &held : persistentStorage(bound)) {
    if (held.registers > 0)
      out.registers.push_back({held.registers, false, {}});
    out.sharedBytes += held.sharedBytes;
  }
  // One place for each value that is brought or stored.
  using Source = std::pair<std::optional<ReadPlace>, TensorId>;
  std::map<Source, std::vector<const ReusedRead *>> places;
  for (const ReusedRead &kept : schedule.kept)
    if (!isPersistent(schedule, kept))
      places[{kept.from, kept.from ? -1 : bound.program.tensorOf(kept.read)}].push_back(&kept);
  for (const auto &[source, users] : places) {
    const auto &[from, tensor] = source;
    const int equation = from ? from->equation : bound.program.producer(tensor);
    const Statement *origin = nullptr;
    if (!from && equation >= 0)
      origin = statementOf(bound, LeafKind::Store, equation, 0);
    if (!origin && equation >= 0)
      origin = statementOf(bound, LeafKind::Compute, equation, from ? from->rank : 0);
    if (!origin)
      continue;
    const Loops &loops = origin->loops;
    size_t common = loops.size();
    std::vector<const LeafNode *> leaves = {origin->leaf};
    for (const ReusedRead *kept : users)
      if (const Statement *reader =
              statementOf(bound, LeafKind::Compute, kept->read.equation, kept->read.rank)) {
        leaves.push_back(reader->leaf);
        common = std::min(common, commonLoops(loops, reader->loops));
      }
    const uint64_t axes =
        from ? bound.facts(equation).axes[static_cast<size_t>(bound.program.nodeOf(*from))]
             : ~uint64_t{0};
    double elements = 1;
    for (size_t i = common; i < loops.size(); ++i) {
      const LoopNode &loop = *loops[i];
      const AxisUse *use = bound.use(loop.axis, equation);
      if ((loop.kind == LoopKind::Seq || loop.kind == LoopKind::Unroll) && use && use->meets(axes))
        elements *= bound.optTrip(loop);
    }
    const TensorId kept = from ? bound.program.tensorOf(*from) : tensor;
    const auto bytes = double(sizeInBytes(bound.program.tensor(kept).type));
    if (users.front()->level == MemLevel::Register)
      out.registers.push_back({elements * std::max(1.0, bytes / 4), !from, std::move(leaves)});
    else
      out.sharedBytes += elements * bytes * schedule.units * schedule.lanes;
  }
  return out;
}

} // namespace fusec::tiling
