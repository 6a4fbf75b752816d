#include "Tiling/schedule/PersistentReads.h"

#include "Cost/Occupancy.h"
#include "Gir/Liveness.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/GridScan.h"
#include "Tiling/schedule/LiveReads.h"
#include "Tiling/schedule/ReadReuse.h"
#include "Tiling/schedule/Statements.h"
#include "Tiling/search/JoinPhases.h"
#include "Tiling/search/MatchingLoops.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec::tiling {

bool isHeld(const Schedule &schedule, const Kept &kept) {
  if (!kept.from || *kept.from == kept.read || kept.from->equation < 0)
    return kept.from.has_value();
  if (std::none_of(schedule.tree.begin(), schedule.tree.end(),
                   [](const TreeNode &node) { return node.isBorder(); }) ||
      hasRounds(schedule))
    return false;
  const std::vector<int> starts = phaseStarts(schedule);
  return std::any_of(starts.begin(), starts.end(), [&](int start) {
    return kept.from->equation < start && start <= kept.read.equation;
  });
}

bool holdsValues(const Schedule &schedule) {
  return std::any_of(schedule.kept.begin(), schedule.kept.end(),
                     [&](const Kept &kept) { return isHeld(schedule, kept); });
}

Schedule withoutHeld(Schedule schedule) {
  std::vector<Kept> kept;
  for (const Kept &k : schedule.kept)
    if (!isHeld(schedule, k))
      kept.push_back(k);
  schedule.kept = std::move(kept);
  return schedule;
}

namespace {

/// Each phase of the schedule, those of a round in the place of the rounds, as the parts that its blocks are of.
std::vector<std::vector<std::span<const TreeNode>>> partsOfPhases(const Schedule &schedule) {
  std::vector<std::vector<std::span<const TreeNode>>> phases;
  auto add = [&](std::span<const TreeNode> phase) {
    auto &parts = phases.emplace_back();
    for (size_t i = 0; isPack(phase) && i < phase.size(); ++i)
      parts.push_back(phase.subspan(i, 1));
    if (parts.empty())
      parts.push_back(phase);
  };
  for (std::span<const TreeNode> phase : phasesOf(schedule.tree))
    if (const TreeNode *loop = roundsOf(phase))
      for (std::span<const TreeNode> inner : phasesOf(loop->children))
        add(inner);
    else
      add(phase);
  return phases;
}

using Loops = std::vector<const TreeNode *>;

/// The loops around each equation's first Compute there, outermost first.
void addComputes(std::span<const TreeNode> nodes, Loops &around, std::map<int, Loops> &into) {
  for (const TreeNode &node : nodes) {
    if (node.isLoop) {
      around.push_back(&node);
      addComputes(node.children, around, into);
      around.pop_back();
    } else if (node.leaf == LeafKind::Compute) {
      into.emplace(node.target, around);
    }
  }
}

std::map<int, Loops> computesOf(std::span<const TreeNode> nodes) {
  std::map<int, Loops> found;
  Loops around;
  addComputes(nodes, around, found);
  return found;
}

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

int64_t elementsOf(const Schedule &schedule, const Equation &equation, const ReadPlace &place,
                   const Loops &loops) {
  int64_t elements = 1;
  for (const TreeNode *loop : loopsOfHeld(schedule, equation, place, loops)) {
    const int64_t tile = tileOf(schedule, loops, loop);
    if (tile <= 0 || loop->step <= 0)
      return 0;
    elements *= (tile + loop->step - 1) / loop->step;
  }
  return elements;
}

double registersOf(const Equation &equation, const HeldRead &held) {
  return double(registersFor(held.elements, equation.body[nodeOf(equation, held.kept.read)].type));
}

double sharedBytesOf(const Schedule &schedule, const Equation &equation, const HeldRead &held) {
  const DType type = equation.body[nodeOf(equation, held.kept.read)].type;
  return double(held.elements * sizeInBytes(type)) * schedule.units * schedule.lanes;
}

/// Why rounds cannot hold what the read finds, in the loops of its Compute; empty where they can.
std::string obstacle(const Schedule &schedule, const ExprProgram &program,
                     const std::vector<const Equation *> &equations, const ReadPlace &place,
                     const Loops &loops) {
  const Equation &e = *equations[static_cast<size_t>(place.equation)];
  const Scalar &read = e.body[nodeOf(e, place)];
  const TensorId tensor = read.index;
  const Equation *scan = scanOf(program);
  auto isAround = [&](auto &&matches) { return std::any_of(loops.begin(), loops.end(), matches); };
  if (!scan || !isAround([](const TreeNode *loop) { return loop->axis == kStepAxis; }) ||
      !hasRounds(schedule))
    return "stands in rounds";
  if (!e.states.empty() || e.kind == EquationKind::Opaque || e.kind == EquationKind::Scatter)
    return "is of a map or a sum";
  const bool isState =
      std::any_of(scan->carries.begin(), scan->carries.end(), [&](const ScanCarry &carry) {
        return carry.previous == tensor || carry.next == tensor;
      });
  if (isState || producerOf(equations, tensor) >= 0)
    return "finds what no step writes";
  for (NodeId id : e.body.reachable(read.args))
    if (const ScalarOp op = e.body[id].op;
        op == ScalarOp::Step || op == ScalarOp::Read || op == ScalarOp::ReadIf)
      return "finds the same in each step";
  if (const Operand *operand = operandOf(schedule, place.equation, place.read);
      operand && operand->level == MemLevel::Shared)
    return "is no operand's that is staged";
  for (LoopKind kind : {LoopKind::Unit, LoopKind::Lane})
    if (!isAround([&](const TreeNode *loop) { return loop->loop == kind; }) &&
        (kind == LoopKind::Lane || schedule.units > 1))
      return "is done by each unit and lane for itself";
  if (elementsOf(schedule, e, place, loops) == 0)
    return "is done so many times as a constant says";
  return "";
}

} // namespace

std::vector<const TreeNode *> loopsOfHeld(const Schedule &schedule, const Equation &equation,
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

std::vector<HeldRead> heldReads(const Schedule &schedule, const ExprProgram &program) {
  std::vector<HeldRead> out;
  if (!holdsValues(schedule))
    return out;
  const std::vector<const Equation *> equations = scheduledEquations(program);
  if (!scanOf(program)) {
    const std::map<int, Loops> computes = computesOf(schedule.tree);
    std::vector<ReadPlace> places;
    for (const Kept &kept : schedule.kept)
      if (const auto at = computes.find(kept.read.equation);
          isHeld(schedule, kept) && at != computes.end()) {
        auto place = std::find(places.begin(), places.end(), *kept.from);
        if (place == places.end())
          place = places.insert(place, *kept.from);
        const Equation &e = *equations[static_cast<size_t>(kept.read.equation)];
        out.push_back({kept, 0, static_cast<int>(place - places.begin()),
                       elementsOf(schedule, e, kept.read, at->second)});
      }
    return out;
  }
  int phase = -1;
  for (const auto &parts : partsOfPhases(schedule)) {
    ++phase;
    for (std::span<const TreeNode> part : parts) {
      std::map<MemLevel, int> numbers;
      const std::map<int, Loops> computes = computesOf(part);
      for (const Kept &kept : schedule.kept) {
        const auto at = computes.find(kept.read.equation);
        if (!isHeld(schedule, kept) || at == computes.end())
          continue;
        const Equation &e = *equations[static_cast<size_t>(kept.read.equation)];
        out.push_back(
            {kept, phase, numbers[kept.level]++, elementsOf(schedule, e, kept.read, at->second)});
      }
    }
  }
  return out;
}

std::vector<HeldStorage> heldStorage(const Schedule &schedule, const ExprProgram &program) {
  const std::vector<const Equation *> equations = scheduledEquations(program);
  // A block is of one part of a phase; what lies at the same number is as large as the largest of them.
  std::map<std::tuple<int, MemLevel, int, DType>, double> largest;
  int phases = 0;
  for (const HeldRead &held : heldReads(schedule, program)) {
    const Equation &e = *equations[static_cast<size_t>(held.kept.read.equation)];
    const DType type = e.body[nodeOf(e, held.kept.read)].type;
    double &most = largest[{held.phase, held.kept.level, held.number, type}];
    most = std::max(most, held.kept.level == MemLevel::Register ? registersOf(e, held)
                                                                : sharedBytesOf(schedule, e, held));
    phases = std::max(phases, held.phase + 1);
  }
  std::vector<HeldStorage> out(static_cast<size_t>(phases));
  for (const auto &[place, size] : largest) {
    HeldStorage &storage = out[static_cast<size_t>(std::get<0>(place))];
    (std::get<1>(place) == MemLevel::Register ? storage.registers : storage.sharedBytes) += size;
  }
  return out;
}

std::vector<std::string> heldReadProblems(const Schedule &schedule, const ExprProgram &program) {
  std::vector<std::string> problems;
  if (!holdsValues(schedule))
    return problems;
  const std::vector<const Equation *> equations = scheduledEquations(program);
  const std::map<int, Loops> computes = computesOf(schedule.tree);
  for (const Kept &kept : schedule.kept) {
    if (!isHeld(schedule, kept))
      continue;
    if (*kept.from != kept.read) {
      if (const std::string why = obstacleAcross(schedule, program, kept); !why.empty())
        problems.push_back("what keep " + print(kept.read) + " holds from phase to phase " + why);
      continue;
    }
    const auto at = computes.find(kept.read.equation);
    const std::string why = at == computes.end()
                                ? "stands in rounds"
                                : obstacle(schedule, program, equations, kept.read, at->second);
    if (!why.empty())
      problems.push_back("what keep " + print(kept.read) + " holds from round to round " + why);
  }
  return problems;
}

HeldStorage allHeld(const Schedule &schedule, const ExprProgram &program) {
  HeldStorage all;
  for (const HeldStorage &phase : heldStorage(schedule, program)) {
    all.registers += phase.registers;
    all.sharedBytes += phase.sharedBytes;
  }
  return all;
}

bool areResident(const std::vector<cost::Counts> &phases, const Target &target) {
  return cost::joinsPhases(target) &&
         std::all_of(phases.begin(), phases.end(), [&](const cost::Counts &phase) {
           return phase.registersPerThread <= target.vectorRegisters &&
                  double(cost::places(phase, target)) >= phase.blocks;
         });
}

bool isResident(const Schedule &schedule, const ExprProgram &program, const Target &target) {
  return areResident(WorkMeter(program, target).residentPhases(schedule), target);
}

/// Whether one of these equations reads the tensor and does not find it held.
static bool readsAnew(const Schedule &schedule, const ExprProgram &program,
                      const std::vector<bool> &own, TensorId tensor) {
  const std::vector<const Equation *> equations = scheduledEquations(program);
  for (size_t e = 0; e < equations.size(); ++e) {
    const std::vector<NodeId> reads = readsOf(*equations[e]);
    for (size_t r = 0; own[e] && r < reads.size(); ++r) {
      const Kept *kept = keptAt(schedule, {static_cast<int>(e), 0, static_cast<int>(r)});
      if (equations[e]->body[reads[r]].index == tensor && !(kept && isHeld(schedule, *kept)))
        return true;
    }
  }
  return false;
}

cost::Counts takeHeld(const Schedule &schedule, const ExprProgram &program,
                      const std::vector<bool> &own, Traffic &traffic) {
  cost::Counts taken;
  const std::vector<const Equation *> equations = scheduledEquations(program);
  std::set<TensorId> found;
  for (const HeldRead &held : heldReads(schedule, program)) {
    const Equation &e = *equations[static_cast<size_t>(held.kept.read.equation)];
    const TensorId t = e.body[readsOf(e)[static_cast<size_t>(held.kept.read.read)]].index;
    if (!found.insert(t).second || readsAnew(schedule, program, own, t))
      continue;
    double &bytes = traffic.readOf[static_cast<size_t>(t)];
    taken.readBytes += bytes;
    if (program.tensors[static_cast<size_t>(t)].kind == TensorKind::Constant)
      taken.constantBytes += bytes;
    traffic.readBytes -= bytes;
    bytes = 0;
  }
  return taken;
}

std::optional<Schedule> withHeld(const Schedule &schedule, const ExprProgram &program,
                                 const Target &target) {
  if (!cost::joinsPhases(target))
    return std::nullopt;
  const std::vector<cost::Counts> phases = WorkMeter(program, target).phases(schedule);
  double blocks = 0;
  for (const cost::Counts &phase : phases)
    blocks = std::max(blocks, phase.blocks);
  const auto registers = static_cast<int64_t>(phases.front().registersPerThread),
             sharedBytes = static_cast<int64_t>(phases.front().sharedBytesPerBlock);
  const int64_t threads = int64_t{schedule.units} * schedule.lanes;
  auto fits = [&](int64_t withRegisters, int64_t withShared) {
    return double(cost::residentBlocks(target, withRegisters, withShared, threads)) >= blocks;
  };
  // Registers first: shared memory has fewer bytes, and is asked for them in each step.
  int64_t registersLeft = 0, sharedLeft = 0;
  const int64_t mostRegisters = target.vectorRegisters / 2;
  while (registers + registersLeft < mostRegisters &&
         fits(registers + registersLeft + 1, sharedBytes))
    ++registersLeft;
  constexpr int64_t kStep = 1024;
  while (sharedBytes + sharedLeft + kStep <= target.sharedBytesPerBlock &&
         fits(registers + registersLeft, sharedBytes + sharedLeft + kStep))
    sharedLeft += kStep;

  Schedule out = schedule;
  const std::vector<const Equation *> equations = scheduledEquations(program);
  const std::map<int, Loops> computes = computesOf(schedule.tree);
  HeldStorage before; // of the phases before
  for (const auto &parts : partsOfPhases(schedule)) {
    HeldStorage most = before;
    for (std::span<const TreeNode> part : parts) {
      HeldStorage here = before;
      for (const auto &[equation, inside] : computesOf(part)) {
        const Equation &e = *equations[static_cast<size_t>(equation)];
        for (int r = 0; r < static_cast<int>(readsOf(e).size()); ++r) {
          const ReadPlace place{equation, 0, r};
          const Loops &loops = computes.at(equation);
          if (!obstacle(schedule, program, equations, place, loops).empty())
            continue;
          HeldRead held{
              {place, MemLevel::Register, place}, 0, 0, elementsOf(schedule, e, place, loops)};
          const double inRegisters = registersOf(e, held),
                       shared = sharedBytesOf(schedule, e, held);
          if (here.registers + inRegisters <= double(registersLeft)) {
            here.registers += inRegisters;
          } else if (here.sharedBytes + shared <= double(sharedLeft)) {
            here.sharedBytes += shared;
            held.kept.level = MemLevel::Shared;
          } else {
            continue;
          }
          out.kept.push_back(held.kept);
        }
      }
      most.registers = std::max(most.registers, here.registers);
      most.sharedBytes = std::max(most.sharedBytes, here.sharedBytes);
    }
    before = most;
  }
  if (!holdsValues(out))
    return std::nullopt;
  std::sort(out.kept.begin(), out.kept.end());
  return out;
}

} // namespace fusec::tiling
