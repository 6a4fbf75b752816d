#include "Tiling/schedule/PersistentReads.h"

#include "Gir/Liveness.h"
#include "Tiling/schedule/Phases.h"

#include <algorithm>
#include <map>

namespace fusec::tiling {

bool isPersistent(const Schedule &schedule, const ReusedRead &kept) {
  if (!kept.from || *kept.from == kept.read || kept.from->equation < 0)
    return kept.from.has_value();
  if (std::ranges::none_of(schedule.tree, [](const TreeNode &node) { return node.isBorder(); }) ||
      hasGridScan(schedule))
    return false;
  const std::vector<int> starts = phaseStarts(schedule);
  return std::ranges::any_of(starts, [&](int start) {
    return kept.from->equation < start && start <= kept.read.equation;
  });
}

bool hasPersistentReads(const Schedule &schedule) {
  return std::ranges::any_of(schedule.kept,
                             [&](const ReusedRead &kept) { return isPersistent(schedule, kept); });
}

Schedule withoutPersistentReads(Schedule schedule) {
  std::erase_if(schedule.kept,
                [&](const ReusedRead &kept) { return isPersistent(schedule, kept); });
  return schedule;
}

Loops loopsOfPersistent(const BoundSchedule &bound, const ReadPlace &place, const Loops &loops) {
  const uint64_t axes =
      bound.facts(place.equation).axes[static_cast<size_t>(bound.program.nodeOf(place))];
  Loops out;
  for (const LoopNode *loop : loops) {
    const AxisUse *use = bound.use(loop->axis, place.equation);
    if ((loop->kind == LoopKind::Seq || loop->kind == LoopKind::Unroll) && use && use->meets(axes))
      out.push_back(loop);
  }
  return out;
}

int64_t persistentElements(const BoundSchedule &bound, const ReadPlace &place, const Loops &loops) {
  int64_t elements = 1;
  for (const LoopNode *loop : loopsOfPersistent(bound, place, loops)) {
    const DimExpr tile = bound.tile(*loop);
    if (!tile.isConst() || tile.constValue() <= 0 || loop->step <= 0)
      return 0;
    elements *= (tile.constValue() + loop->step - 1) / loop->step;
  }
  return elements;
}

static DType typeOf(const BoundSchedule &bound, const ReadPlace &place) {
  return bound.equation(place.equation).body[bound.program.nodeOf(place)].type;
}

double persistentRegisters(const BoundSchedule &bound, const PersistentRead &held) {
  return double(registersFor(held.elements, typeOf(bound, held.kept.read)));
}

double persistentSharedBytes(const BoundSchedule &bound, const PersistentRead &held) {
  return double(held.elements * sizeInBytes(typeOf(bound, held.kept.read))) * bound.schedule.units *
         bound.schedule.lanes;
}

std::vector<PersistentRead> persistentReads(const BoundSchedule &bound) {
  std::vector<PersistentRead> out;
  const Schedule &schedule = bound.schedule;
  if (!hasPersistentReads(schedule))
    return out;
  if (!bound.scan()) {
    std::vector<ReadPlace> places;
    for (const ReusedRead &kept : schedule.kept)
      if (const Loops *loops = bound.loopsOf(kept.read.equation);
          loops && isPersistent(schedule, kept)) {
        auto place = std::ranges::find(places, *kept.from);
        if (place == places.end())
          place = places.insert(place, *kept.from);
        out.push_back({kept, 0, static_cast<int>(place - places.begin()),
                       persistentElements(bound, kept.read, *loops)});
      }
    return out;
  }
  for (size_t phase = 0; phase < bound.phases().size(); ++phase)
    for (std::span<const TreeNode> part : sideBySide(bound.phases()[phase])) {
      std::map<MemLevel, int> numbers;
      const std::set<int> inside = equationsIn(part, schedule);
      for (const ReusedRead &kept : schedule.kept)
        if (const Loops *loops = bound.loopsOf(kept.read.equation);
            loops && isPersistent(schedule, kept) && inside.count(kept.read.equation) != 0)
          out.push_back({kept, static_cast<int>(phase), numbers[kept.level]++,
                         persistentElements(bound, kept.read, *loops)});
    }
  return out;
}

std::vector<PersistentStorage> persistentStorage(const BoundSchedule &bound) {
  // A block is of one part of a phase; what lies at the same number is as large as the largest of them.
  std::map<std::tuple<int, MemLevel, int, DType>, double> largest;
  int phases = 0;
  for (const PersistentRead &held : persistentReads(bound)) {
    double &most =
        largest[{held.phase, held.kept.level, held.number, typeOf(bound, held.kept.read)}];
    most =
        std::max(most, held.kept.level == MemLevel::Register ? persistentRegisters(bound, held)
                                                             : persistentSharedBytes(bound, held));
    phases = std::max(phases, held.phase + 1);
  }
  std::vector<PersistentStorage> out(static_cast<size_t>(phases));
  for (const auto &[place, size] : largest) {
    PersistentStorage &storage = out[static_cast<size_t>(std::get<0>(place))];
    (std::get<1>(place) == MemLevel::Register ? storage.registers : storage.sharedBytes) += size;
  }
  return out;
}

PersistentStorage allPersistentStorage(const BoundSchedule &bound) {
  PersistentStorage all;
  for (const PersistentStorage &phase : persistentStorage(bound)) {
    all.registers += phase.registers;
    all.sharedBytes += phase.sharedBytes;
  }
  return all;
}

const Loops *loopsAround(const BoundSchedule &bound, int equation) {
  const Loops *loops = bound.loopsOf(equation);
  for (std::span<const TreeNode> phase : phasesOf(bound.schedule.tree))
    if (loops && isPack(phase) && std::ranges::any_of(phase, [&](const TreeNode &part) {
          return part.loop() == loops->front();
        }))
      return nullptr;
  return loops;
}

Runs runsOf(const Equation &e, const FlatAccess &access, std::span<const int> positions) {
  Runs runs;
  for (int p : positions) {
    const DimExpr &extent = e.axes[static_cast<size_t>(p)].extent,
                  &stride = access.stride[static_cast<size_t>(p)];
    if (extent.isConst(1))
      continue;
    if (!runs.empty() && runs.back().second == extent * stride)
      runs.back() = {runs.back().first * extent, stride};
    else
      runs.emplace_back(extent, stride);
  }
  return runs;
}

std::optional<FlatAccess> plainAccess(const BoundSchedule &bound, const ReadPlace &place) {
  const Equation &e = bound.equation(place.equation);
  if (place.rank != 0 || !bound.facts(place.equation).isPlain() ||
      e.body[bound.program.nodeOf(place)].op != ScalarOp::Read ||
      bound.operand(place.equation, place.read))
    return std::nullopt;
  const std::optional<FlatAccess> &access =
      bound.facts(place.equation).accesses[static_cast<size_t>(place.read)];
  return access && access->rests.empty() ? access : std::nullopt;
}

bool haveConstantTrips(const BoundSchedule &bound, const ReadPlace &place, const Loops &loops) {
  for (const LoopNode *loop : loopsOfPersistent(bound, place, loops)) {
    const DimExpr &extent = bound.schedule.axes[loop->axis].extent;
    // Loops in order end with the axis, and units past its end have nothing to do.
    auto isCut = [&](const LoopNode *tile) {
      return !(extent.isConst() && extent.constValue() % tile->step == 0);
    };
    const LoopNode *around = nullptr;
    bool pastEnd = false;
    for (const LoopNode *outer : loops) {
      if (outer == loop)
        break;
      if (outer->axis != loop->axis)
        continue;
      pastEnd = pastEnd || (around && outer->kind == LoopKind::Unit && isCut(around));
      around = outer;
    }
    if (!around ? !extent.isConst() : loop->kind == LoopKind::Seq && (pastEnd || isCut(around)))
      return false;
  }
  return true;
}

bool areShared(const Schedule &schedule, const Loops &loops) {
  return innermost(loops, LoopKind::Lane) &&
         (schedule.units == 1 || innermost(loops, LoopKind::Unit));
}

} // namespace fusec::tiling
