#include "Tiling/schedule/ReadReuse.h"

#include "Expr/Cascade.h"
#include "Support/Diag.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/GridScan.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/Schedule.h"

#include <algorithm>
#include <map>

namespace fusec::tiling {

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
    return findReuse(schedule, place) != nullptr;
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

const ReusedRead *findReuse(const Schedule &schedule, const ReadPlace &place) {
  auto it = std::find_if(schedule.kept.begin(), schedule.kept.end(),
                         [&](const ReusedRead &kept) { return kept.read == place; });
  return it == schedule.kept.end() ? nullptr : &*it;
}

std::optional<MemLevel> reusedLevel(const Schedule &schedule, const ExprProgram &program,
                                    int equation, TensorId tensor) {
  const std::vector<ReadPlace> places =
      readPlaces(program, equation, [&](int, const Scalar &read) { return read.index == tensor; });
  return areKept(schedule, places) ? std::optional(findReuse(schedule, places.front())->level)
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

bool isStoreElided(const Schedule &schedule, const ExprProgram &program, TensorId tensor) {
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

bool isStoreElided(const Schedule &schedule, const ExprProgram &program, const Operand &operand) {
  return areKept(schedule, readPlaces(program, operand.equation, [&](int read, const Scalar &) {
                   return read == operand.read;
                 }));
}

ReuseStorage reuseStorage(const Schedule &schedule, const ExprProgram &program,
                          const std::vector<int64_t> &symbols) {
  ReuseStorage out;
  if (schedule.kept.empty())
    return out;
  for (const PersistentStorage &held : persistentStorage(schedule, program)) {
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
  std::map<Source, std::vector<const ReusedRead *>> places;
  for (const ReusedRead &kept : schedule.kept)
    if (!isPersistent(schedule, kept))
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
    for (const ReusedRead *kept : users)
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

} // namespace fusec::tiling
