// The kept list of a schedule. With two nests along a row of x, the second one needs no memory:
//
//   keep e1.r0 register from e0.r0
//   tree { block m:8 { unit m:1 {
//     init e0  seq v:128 { unroll v:32 { lane v:1 { compute e0 } } }  combine e0      # sum of x[m, v]
//     seq w:128 { unroll w:32 { lane w:1 { compute e1 } } } } } }                     # y[m, w] = x[m, w] / sum[m]
//
// The list comes from trying: the schedule is lowered with a number on each read, Gir's rules keep what they find room
// for, and what they kept in all branches (full and cut tiles) is wanted from then on, until a try keeps exactly what
// was wanted. The kernel is made by the same steps, so that it does what the list says, and what the model counts
// (counts/MemoryRequests.h, counts/CountWork.h) needs the list alone.
#include "Tiling/schedule/ReadReuse.h"

#include "Expr/Cascade.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/GridScan.h"
#include "Tiling/schedule/LiveReads.h"
#include "Tiling/schedule/PersistentReads.h"

#include <algorithm>
#include <map>

namespace fusec {

namespace {

/// Reads that are kept from one place in all branches.
std::set<KeptRead> everywhere(const NumberedReads &numbered) {
  std::map<int64_t, int> places;
  for (const KeptRead &kept : numbered.kept)
    ++places[kept.read];
  std::set<KeptRead> out;
  for (const KeptRead &kept : numbered.kept)
    if (places[kept.read] == 1 && numbered.left.count(kept.read) == 0 &&
        (!numbered.wanted || numbered.wanted->count(kept) != 0))
      out.insert(kept);
  return out;
}

size_t numComputes(const std::vector<TreeNode> &nodes) {
  size_t count = 0;
  for (const TreeNode &node : nodes)
    count += node.isLoop ? numComputes(node.children) : node.leaf == LeafKind::Compute;
  return count;
}

/// Some value is fetched twice, or stored and fetched: else a lowering would find nothing to keep.
bool mayKeep(const Schedule &schedule, const ExprProgram &program) {
  if (numComputes(schedule.tree) < 2)
    return false;
  if (scanOf(program)) // its states are stored in one step and fetched in the next one
    return true;
  std::map<TensorId, int> fetched;
  std::set<TensorId> stored;
  for (const Equation *e : scheduledEquations(program)) {
    for (NodeId read : readsOf(*e))
      fetched[e->body[read].index] += 1 + std::max(0, lastRank(*e));
    stored.insert(e->outputs.begin(), e->outputs.end());
  }
  for (const EdgeLevel &edge : schedule.edges)
    if (edge.level == MemLevel::Register)
      fetched.erase(edge.tensor);
  const bool staged =
      std::any_of(schedule.operands.begin(), schedule.operands.end(),
                  [](const Operand &operand) { return operand.level == MemLevel::Shared; });
  return staged || std::any_of(fetched.begin(), fetched.end(), [&](const auto &entry) {
           return entry.second > 1 || stored.count(entry.first) != 0;
         });
}

int64_t numberOf(const LoweredKernel &lowered, const ReadPlace &place) {
  const auto it = std::find(lowered.reads.begin(), lowered.reads.end(), place);
  return it == lowered.reads.end() ? 0 : it - lowered.reads.begin() + 1;
}

} // namespace

RewriteLimits rewriteLimits(const Target &target) {
  if (target.kind == TargetKind::Cpu)
    return {};
  return {target.vectorRegisters / 2, target.sharedBytesPerBlock};
}

Status decideKept(Schedule &schedule, const ExprProgram &pattern,
                  const std::vector<Symbol> &symbols, const Target &target) {
  std::vector<Kept> held;
  std::copy_if(schedule.kept.begin(), schedule.kept.end(), std::back_inserter(held),
               [&](const Kept &kept) { return tiling::isHeld(schedule, kept); });
  schedule.kept = std::move(held);
  RewriteLimits limits = rewriteLimits(target);
  if (limits.registers == 0 || !mayKeep(schedule, ScheduledPattern(schedule, pattern).program()))
    return success();
  NumberedReads numbered;
  limits.numbered = &numbered;
  for (;;) {
    FUSEC_TRY(LoweredKernel lowered, lowerSchedule(pattern, schedule, symbols));
    rewrite(lowered.kernel, limits);
    std::set<KeptRead> kept = everywhere(numbered);
    // Where there was room for all, wanting it takes the same steps.
    const bool same = kept == numbered.kept && !numbered.lackedRoom;
    if (!same && numbered.wanted != kept) {
      numbered = {std::move(kept), {}, {}, false};
      continue;
    }
    auto place = [&](int64_t number) { return lowered.reads[static_cast<size_t>(number - 1)]; };
    for (const KeptRead &k : kept)
      schedule.kept.push_back(
          {place(k.read), k.level, k.from == 0 ? std::nullopt : std::optional(place(k.from))});
    std::sort(schedule.kept.begin(), schedule.kept.end());
    return success();
  }
}

Result<LoweredKernel> lowerAndRewrite(const ExprProgram &pattern, const Schedule &schedule,
                                      const std::vector<Symbol> &symbols, const Target &target) {
  FUSEC_TRY(LoweredKernel lowered, lowerSchedule(pattern, schedule, symbols));
  NumberedReads numbered;
  numbered.wanted.emplace();
  for (const Kept &kept : schedule.kept)
    if (!tiling::isHeld(schedule, kept))
      numbered.wanted->insert({numberOf(lowered, kept.read),
                               kept.from ? numberOf(lowered, *kept.from) : 0, kept.level});
  RewriteLimits limits = rewriteLimits(target);
  limits.numbered = &numbered;
  rewrite(lowered.kernel, limits);
  const std::set<KeptRead> done = everywhere(numbered);
  Diagnostics errors;
  for (const Kept &kept : schedule.kept)
    if (!tiling::isHeld(schedule, kept) &&
        done.count({numberOf(lowered, kept.read), kept.from ? numberOf(lowered, *kept.from) : 0,
                    kept.level}) == 0)
      errors.push_back({Diag::BadIr, "schedule " + schedule.name,
                        "keep " + print(kept.read) + ": its threads have not had the value, or " +
                            std::string(name(kept.level)) +
                            " memory has no room for it; without this line they read it"});
  if (!errors.empty())
    return errors;
  return lowered;
}

namespace tiling {

namespace {

using Chain =
    std::vector<const TreeNode *>; // loops around a statement, outermost first, and the statement

/// Places at which the statements of an equation read something themselves: reads that an operand stands for are done
/// where it is staged.
template <typename Matches>
std::vector<ReadPlace> readPlaces(const ExprProgram &program, int equation,
                                  const Matches &matches) {
  const Equation &e = *scheduledEquations(program)[static_cast<size_t>(equation)];
  const std::vector<NodeId> reads = readsOf(e);
  std::vector<ReadPlace> places;
  for (int rank = 0; rank <= std::max(0, lastRank(e)); ++rank)
    for (NodeId id : e.body.reachable(resultsOfRank(e, rank)))
      for (size_t r = 0; r < reads.size(); ++r)
        if (reads[r] == id && matches(static_cast<int>(r), e.body[id]))
          places.push_back({equation, rank, static_cast<int>(r)});
  return places;
}

/// Nobody reads any more: the first of them to go was served by the store.
bool areKept(const Schedule &schedule, const std::vector<ReadPlace> &places) {
  return !places.empty() && std::all_of(places.begin(), places.end(), [&](const ReadPlace &place) {
    return keptAt(schedule, place) != nullptr;
  });
}

class Walk {
public:
  explicit Walk(const Schedule &schedule) { visit(schedule.tree); }
  /// Null where there is no such statement.
  const Chain *at(LeafKind leaf, int target, int rank) const {
    auto it = found.find({leaf, target, rank});
    return it == found.end() ? nullptr : &it->second;
  }

private:
  void visit(const std::vector<TreeNode> &nodes) {
    for (const TreeNode &node : nodes) {
      if (!node.isLoop) {
        chain.push_back(&node);
        found.emplace(std::tuple{node.leaf, node.target, node.rank}, chain);
        chain.pop_back();
        continue;
      }
      chain.push_back(&node);
      visit(node.children);
      chain.pop_back();
    }
  }
  Chain chain;
  std::map<std::tuple<LeafKind, int, int>, Chain> found;
};

} // namespace

std::vector<std::string> keptProblems(const Schedule &schedule, const ExprProgram &program) {
  const std::vector<const Equation *> equations = scheduledEquations(program);
  auto exists = [&](const ReadPlace &place) {
    if (place.equation < 0 || place.equation >= static_cast<int>(equations.size()))
      return false;
    const Equation &e = *equations[static_cast<size_t>(place.equation)];
    return place.rank >= 0 && place.rank <= std::max(0, lastRank(e)) && place.read >= 0 &&
           place.read < static_cast<int>(readsOf(e).size());
  };
  std::vector<std::string> problems;
  for (const Kept &kept : schedule.kept) {
    const std::string who = "keep " + print(kept.read);
    if (!exists(kept.read) || (kept.from && !exists(*kept.from)))
      problems.push_back(who + " names reads of equations");
    if (kept.level == MemLevel::Global)
      problems.push_back(who + " says register or shared");
    if (std::count_if(schedule.kept.begin(), schedule.kept.end(),
                      [&](const Kept &other) { return other.read == kept.read; }) != 1)
      problems.push_back(who + " stands once");
  }
  if (problems.empty())
    problems = heldReadProblems(schedule, program);
  return problems;
}

const Kept *keptAt(const Schedule &schedule, const ReadPlace &place) {
  auto it = std::find_if(schedule.kept.begin(), schedule.kept.end(),
                         [&](const Kept &kept) { return kept.read == place; });
  return it == schedule.kept.end() ? nullptr : &*it;
}

std::optional<MemLevel> keptLevel(const Schedule &schedule, const ExprProgram &program,
                                  int equation, TensorId tensor) {
  const std::vector<ReadPlace> places =
      readPlaces(program, equation, [&](int, const Scalar &read) { return read.index == tensor; });
  return areKept(schedule, places) ? std::optional(keptAt(schedule, places.front())->level)
                                   : std::nullopt;
}

/// One of an equation's several values that nothing needs, as the maximum beside its place.
static bool isUnread(const ExprProgram &program, TensorId tensor) {
  const std::vector<const Equation *> equations = scheduledEquations(program);
  const int producer = producerOf(equations, tensor);
  if (producer < 0 || equations[static_cast<size_t>(producer)]->outputs.size() < 2)
    return false;
  if (const Equation *scan = scanOf(program); scan && outlivesStep(*scan, tensor, true))
    return false;
  return std::none_of(equations.begin(), equations.end(), [&](const Equation *e) {
    const std::vector<NodeId> reads = readsOf(*e);
    return e->base == tensor ||
           std::count(e->opaqueInputs.begin(), e->opaqueInputs.end(), tensor) != 0 ||
           std::any_of(reads.begin(), reads.end(),
                       [&](NodeId read) { return e->body[read].index == tensor; });
  });
}

bool isHandedOn(const Schedule &schedule, const ExprProgram &program, TensorId tensor) {
  if (program.tensors[tensor].kind != TensorKind::Temp)
    return false;
  if (isUnread(program, tensor))
    return true;
  if (schedule.kept.empty())
    return false;
  const std::vector<const Equation *> equations = scheduledEquations(program);
  if (const Equation *scan = scanOf(program)) { // values that are stacked or go on to the next step
    if (outlivesStep(*scan, tensor, true))
      return false;
    for (const ScanCarry &carry : scan->carries)
      if (carry.previous == tensor)
        return false;
  }
  std::vector<ReadPlace> places;
  for (size_t e = 0; e < equations.size(); ++e) {
    const Equation &equation = *equations[e];
    if (std::count(equation.opaqueInputs.begin(), equation.opaqueInputs.end(), tensor) != 0 ||
        equation.base == tensor)
      return false;
    for (int rank = 1; !equation.states.empty() && rank <= lastRank(equation); ++rank)
      for (NodeId id : equation.body.reachable(correctionsOfRank(equation, rank)))
        if (const Scalar &s = equation.body[id];
            (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) && s.index == tensor)
          return false;
    for (const Operand &operand : schedule.operands) // staged from the tensor
      if (operand.equation == static_cast<int>(e) &&
          equation.body[readsOf(equation)[static_cast<size_t>(operand.read)]].index == tensor)
        return false;
    const std::vector<ReadPlace> own =
        readPlaces(program, static_cast<int>(e),
                   [&](int, const Scalar &read) { return read.index == tensor; });
    places.insert(places.end(), own.begin(), own.end());
  }
  return areKept(schedule, places);
}

bool isHandedOn(const Schedule &schedule, const ExprProgram &program, const Operand &operand) {
  return areKept(schedule, readPlaces(program, operand.equation, [&](int read, const Scalar &) {
                   return read == operand.read;
                 }));
}

KeptStorage keptStorage(const Schedule &schedule, const ExprProgram &program,
                        const std::vector<int64_t> &symbols) {
  KeptStorage out;
  if (schedule.kept.empty())
    return out;
  for (const HeldStorage &held : heldStorage(schedule, program)) {
    if (held.registers > 0)
      out.registers.push_back({held.registers, false, {}});
    out.sharedBytes += held.sharedBytes;
  }
  const std::vector<const Equation *> equations = scheduledEquations(program);
  const Walk walk(schedule);
  auto nodeOf = [&](const ReadPlace &place) {
    return readsOf(
        *equations[static_cast<size_t>(place.equation)])[static_cast<size_t>(place.read)];
  };
  auto tensorOf = [&](const ReadPlace &place) {
    return equations[static_cast<size_t>(place.equation)]->body[nodeOf(place)].index;
  };
  // One place for each value that is brought or stored.
  using Source = std::pair<std::optional<ReadPlace>, TensorId>;
  std::map<Source, std::vector<const Kept *>> places;
  for (const Kept &kept : schedule.kept)
    if (!isHeld(schedule, kept))
      places[{kept.from, kept.from ? -1 : tensorOf(kept.read)}].push_back(&kept);
  for (const auto &[source, users] : places) {
    const auto &[from, tensor] = source;
    int equation = from ? from->equation : -1;
    const Chain *chain = from ? walk.at(LeafKind::Compute, equation, from->rank) : nullptr;
    for (size_t e = 0; !from && e < equations.size(); ++e) {
      const std::vector<TensorId> &outputs = equations[e]->outputs;
      if (std::count(outputs.begin(), outputs.end(), tensor) == 0)
        continue;
      equation = static_cast<int>(e);
      chain = walk.at(LeafKind::Store, equation, 0);
      if (!chain)
        chain = walk.at(LeafKind::Compute, equation, 0);
    }
    if (!chain)
      continue;
    size_t common = chain->size() - 1;
    std::vector<const TreeNode *> leaves = {chain->back()};
    for (const Kept *kept : users)
      if (const Chain *reader = walk.at(LeafKind::Compute, kept->read.equation, kept->read.rank)) {
        leaves.push_back(reader->back());
        const auto [end, other] =
            std::mismatch(chain->begin(), chain->begin() + static_cast<ptrdiff_t>(common),
                          reader->begin(), reader->end());
        common = static_cast<size_t>(end - chain->begin());
      }
    const uint64_t axes =
        from ? axisDependence(equations[static_cast<size_t>(equation)]->body, nodeOf(*from))
             : ~uint64_t{0};
    double elements = 1;
    for (size_t i = common; i + 1 < chain->size(); ++i) {
      const TreeNode &loop = *(*chain)[i];
      if (loop.axis < 0 || (loop.loop != LoopKind::Seq && loop.loop != LoopKind::Unroll))
        continue;
      const AxisUse *use = schedule.axes[static_cast<size_t>(loop.axis)].in(equation);
      if (!use || std::none_of(use->positions.begin(), use->positions.end(),
                               [&](int p) { return (axes >> p & 1) != 0; }))
        continue;
      const int64_t extent =
          schedule.axes[static_cast<size_t>(loop.axis)].extent.evaluate(symbols).value_or(1);
      int64_t tile = extent;
      for (size_t outer = 0; outer < i; ++outer)
        if ((*chain)[outer]->axis == loop.axis)
          tile = (*chain)[outer]->step;
      tile = loop.loop == LoopKind::Seq ? std::min(tile, extent) : tile;
      elements *= double((tile + loop.step - 1) / loop.step);
    }
    const auto bytes = double(sizeInBytes(program.tensors[from ? tensorOf(*from) : tensor].type));
    if (users.front()->level == MemLevel::Register)
      out.registers.push_back({elements * std::max(1.0, bytes / 4), !from, std::move(leaves)});
    else
      out.sharedBytes += elements * bytes * schedule.units * schedule.lanes;
  }
  return out;
}

} // namespace tiling
} // namespace fusec
