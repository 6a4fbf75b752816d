#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/Phases.h"

#include "Gir/Liveness.h"
#include "Tiling/schedule/GridScan.h"
#include "Tiling/schedule/Statements.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec::tiling {

bool isPersistent(const Schedule &schedule, const ReusedRead &kept) {
  if (!kept.from || *kept.from == kept.read || kept.from->equation < 0)
    return kept.from.has_value();
  if (std::none_of(schedule.tree.begin(), schedule.tree.end(),
                   [](const TreeNode &node) { return node.isBorder(); }) ||
      hasGridScan(schedule))
    return false;
  const std::vector<int> starts = phaseStarts(schedule);
  return std::any_of(starts.begin(), starts.end(), [&](int start) {
    return kept.from->equation < start && start <= kept.read.equation;
  });
}

bool hasPersistentReads(const Schedule &schedule) {
  return std::any_of(schedule.kept.begin(), schedule.kept.end(),
                     [&](const ReusedRead &kept) { return isPersistent(schedule, kept); });
}

Schedule withoutPersistentReads(Schedule schedule) {
  std::vector<ReusedRead> kept;
  for (const ReusedRead &k : schedule.kept)
    if (!isPersistent(schedule, k))
      kept.push_back(k);
  schedule.kept = std::move(kept);
  return schedule;
}

namespace {

using Loops = std::vector<const TreeNode *>;

/// Elements of the axis that the loop steps over, where it is a constant.
int64_t tileOf(const Schedule &schedule, const Loops &loops, const TreeNode *loop) {
  const DimExpr &extent = schedule.axes[static_cast<size_t>(loop->axis)].extent;
  int64_t tile = extent.isConst() ? extent.constValue() : 0;
  for (const TreeNode *around : loops) {
    if (around == loop)
      break;
    if (around->axis == loop->axis)
      tile = around->step;
  }
  return tile;
}

NodeId nodeOf(const Equation &equation, const ReadPlace &place) {
  return readsOf(equation)[static_cast<size_t>(place.read)];
}

} // namespace

std::vector<const TreeNode *> loopsOfPersistent(const Schedule &schedule, const Equation &equation,
                                                const ReadPlace &place,
                                                const std::vector<const TreeNode *> &loops) {
  const uint64_t axes = axisDependence(equation.body, nodeOf(equation, place));
  std::vector<const TreeNode *> out;
  for (const TreeNode *loop : loops) {
    if (loop->axis < 0 || (loop->loop != LoopKind::Seq && loop->loop != LoopKind::Unroll))
      continue;
    const AxisUse *use = schedule.axes[static_cast<size_t>(loop->axis)].in(place.equation);
    if (use && std::any_of(use->positions.begin(), use->positions.end(),
                           [&](int p) { return (axes >> p & 1) != 0; }))
      out.push_back(loop);
  }
  return out;
}

int64_t persistentElements(const Schedule &schedule, const Equation &equation,
                           const ReadPlace &place, const std::vector<const TreeNode *> &loops) {
  int64_t elements = 1;
  for (const TreeNode *loop : loopsOfPersistent(schedule, equation, place, loops)) {
    const int64_t tile = tileOf(schedule, loops, loop);
    if (tile <= 0 || loop->step <= 0)
      return 0;
    elements *= (tile + loop->step - 1) / loop->step;
  }
  return elements;
}

double persistentRegisters(const Equation &equation, const PersistentRead &held) {
  return double(registersFor(held.elements, equation.body[nodeOf(equation, held.kept.read)].type));
}

double persistentSharedBytes(const Schedule &schedule, const Equation &equation,
                             const PersistentRead &held) {
  const DType type = equation.body[nodeOf(equation, held.kept.read)].type;
  return double(held.elements * sizeInBytes(type)) * schedule.units * schedule.lanes;
}

std::vector<PersistentRead> persistentReads(const Schedule &schedule, const ExprProgram &program) {
  std::vector<PersistentRead> out;
  if (!hasPersistentReads(schedule))
    return out;
  const std::vector<const Equation *> equations = scheduledEquations(program);
  if (!scanOf(program)) {
    const std::map<int, Loops> computes = computesOf(schedule.tree);
    std::vector<ReadPlace> places;
    for (const ReusedRead &kept : schedule.kept)
      if (const auto at = computes.find(kept.read.equation);
          isPersistent(schedule, kept) && at != computes.end()) {
        auto place = std::find(places.begin(), places.end(), *kept.from);
        if (place == places.end())
          place = places.insert(place, *kept.from);
        const Equation &e = *equations[static_cast<size_t>(kept.read.equation)];
        out.push_back({kept, 0, static_cast<int>(place - places.begin()),
                       persistentElements(schedule, e, kept.read, at->second)});
      }
    return out;
  }
  int phase = -1;
  for (const auto &parts : partsOfPhases(schedule)) {
    ++phase;
    for (std::span<const TreeNode> part : parts) {
      std::map<MemLevel, int> numbers;
      const std::map<int, Loops> computes = computesOf(part);
      for (const ReusedRead &kept : schedule.kept) {
        const auto at = computes.find(kept.read.equation);
        if (!isPersistent(schedule, kept) || at == computes.end())
          continue;
        const Equation &e = *equations[static_cast<size_t>(kept.read.equation)];
        out.push_back({kept, phase, numbers[kept.level]++,
                       persistentElements(schedule, e, kept.read, at->second)});
      }
    }
  }
  return out;
}

std::vector<PersistentStorage> persistentStorage(const Schedule &schedule,
                                                 const ExprProgram &program) {
  const std::vector<const Equation *> equations = scheduledEquations(program);
  // A block is of one part of a phase; what lies at the same number is as large as the largest of them.
  std::map<std::tuple<int, MemLevel, int, DType>, double> largest;
  int phases = 0;
  for (const PersistentRead &held : persistentReads(schedule, program)) {
    const Equation &e = *equations[static_cast<size_t>(held.kept.read.equation)];
    const DType type = e.body[nodeOf(e, held.kept.read)].type;
    double &most = largest[{held.phase, held.kept.level, held.number, type}];
    most = std::max(most, held.kept.level == MemLevel::Register
                              ? persistentRegisters(e, held)
                              : persistentSharedBytes(schedule, e, held));
    phases = std::max(phases, held.phase + 1);
  }
  std::vector<PersistentStorage> out(static_cast<size_t>(phases));
  for (const auto &[place, size] : largest) {
    PersistentStorage &storage = out[static_cast<size_t>(std::get<0>(place))];
    (std::get<1>(place) == MemLevel::Register ? storage.registers : storage.sharedBytes) += size;
  }
  return out;
}

PersistentStorage allPersistentStorage(const Schedule &schedule, const ExprProgram &program) {
  PersistentStorage all;
  for (const PersistentStorage &phase : persistentStorage(schedule, program)) {
    all.registers += phase.registers;
    all.sharedBytes += phase.sharedBytes;
  }
  return all;
}

} // namespace fusec::tiling
