#include "Expr/Cascade.h"

#include "Expr/transforms/Walk.h"

#include <algorithm>

namespace fusec {

void dropStates(Equation &e, const std::vector<bool> &needed) {
  while (!e.states.empty() && !needed[e.outputs.back()]) {
    e.outputs.pop_back();
    e.results.pop_back();
    e.states.pop_back();
  }
  while (!e.states.empty() && !needed[e.outputs.front()])
    e.outputs.erase(e.outputs.begin());
}

std::vector<int> stateRanks(const Equation &e) {
  std::vector<int> ranks;
  for (size_t s = 0; s < e.states.size(); ++s) {
    int rank = 0;
    for (NodeId id : e.body.reachable({e.results[s]}))
      if (e.body[id].op == ScalarOp::State)
        rank = std::max(rank, ranks[static_cast<size_t>(e.body[id].index)] + 1);
    ranks.push_back(rank);
  }
  return ranks;
}

int lastRank(const Equation &e) {
  int last = -1;
  for (int rank : stateRanks(e))
    last = std::max(last, rank);
  return last;
}

std::vector<NodeId> resultsOfRank(const Equation &e, int rank) {
  if (e.states.empty())
    return bodyRoots(e);
  const std::vector<int> ranks = stateRanks(e);
  std::vector<NodeId> roots;
  for (size_t s = 0; s < ranks.size(); ++s)
    if (ranks[s] == rank)
      roots.push_back(e.results[s]);
  return roots;
}

std::vector<NodeId> correctionsOfRank(const Equation &e, int rank) {
  const std::vector<int> ranks = stateRanks(e);
  std::vector<NodeId> roots;
  for (size_t s = 0; s < ranks.size(); ++s)
    if (ranks[s] == rank && e.states[s].correction != kNoNode)
      roots.push_back(e.states[s].correction);
  return roots;
}

namespace {

/// True if some node below `root` is a leaf `op` of a state from `first` on.
bool usesState(const Body &body, NodeId root, ScalarOp op, size_t first) {
  for (NodeId id : body.reachable({root}))
    if (body[id].op == op && body[id].index >= static_cast<int>(first))
      return true;
  return false;
}

} // namespace

std::vector<std::string> cascadeProblems(const Equation &e) {
  if (e.kind != EquationKind::Reduction || e.monoid != Monoid::Cascade || e.states.empty() ||
      e.results.size() != e.states.size() || e.outputs.empty() ||
      e.outputs.size() > e.states.size())
    return {"a cascade has one result for each state, and the last states are outputs"};
  std::vector<std::string> problems;
  for (const Axis &a : e.axes)
    if (a.extent.isConst(0))
      problems.push_back("a cascade has elements");
  const std::vector<uint64_t> axes = axisDependences(e.body);
  for (size_t s = 0; s < e.states.size(); ++s) {
    const std::string state = "state " + std::to_string(s);
    auto require = [&](bool holds, const std::string &rule) {
      if (!holds)
        problems.push_back(rule);
    };
    const NodeId value = e.results[s], correction = e.states[s].correction;
    require(!isTupleMonoid(e.states[s].monoid), state + " folds one value");
    require(e.body[value].type == e.accumulateType &&
                (correction == kNoNode || e.body[correction].type == e.accumulateType),
            state + " is not " + std::string(name(e.accumulateType)));
    require(!usesState(e.body, value, ScalarOp::State, s) &&
                !usesState(e.body, value, ScalarOp::Part, 0),
            "the value of " + state + " uses a state that is not there yet");
    require((correction != kNoNode) == usesState(e.body, value, ScalarOp::State, 0),
            state + " has a correction if and only if its value uses states");
    if (correction == kNoNode)
      continue;
    require(!usesState(e.body, correction, ScalarOp::State, s) &&
                !usesState(e.body, correction, ScalarOp::Part, s + 1),
            "the correction of " + state + " uses a state that is not there yet");
    require(axes[correction] >> e.numSpatial == 0,
            "the correction of " + state + " depends on a single point");
  }
  if (!problems.empty())
    return problems;
  const std::vector<int> ranks = stateRanks(e);
  for (size_t s = 0; s < e.states.size(); ++s)
    for (NodeId id : e.body.reachable({e.states[s].correction}))
      if (const Scalar &leaf = e.body[id];
          (leaf.op == ScalarOp::State || leaf.op == ScalarOp::Part) &&
          leaf.index != static_cast<int>(s) && ranks[leaf.index] >= ranks[s])
        problems.push_back("the correction of state " + std::to_string(s) +
                           " uses a state of its own rank");
  return problems;
}

} // namespace fusec
