// A map is computed again where it is read, in place of being kept: the edge level "recompute". Softmax of long rows on
// two passes over e^(x - m),
//
//   map e1 [i:64, j:30522]
//     %e = exp(sub(%x[i, j], %m[i]))
//   reduction e2 [i:64; k:30522] sum f32
//     %s = %e[i, k]
//   map e3 [i:64, j:30522]
//     %y = div(%e[i, j], %s[i])
//
// becomes, with choice 2 (the second equation),
//
//   reduction e2 [i:64; k:30522] sum f32
//     %s = exp(sub(%x[i, k], %m[i]))
//   map e3 [i:64, j:30522]
//     %y = div(exp(sub(%x[i, j], %m[i])), %s[i])
//
// which needs no room for %e and does its arithmetic twice. Every bit stays. A choice is the position of one map,
// counted from 1. Not handled: maps that others than the kernel need, readers that are no maps or reductions, several
// maps at once.
#include "Expr/Alternatives.h"
#include "Expr/transforms/Inline.h"
#include "Expr/transforms/Walk.h"
#include "Support/OptValues.h"

#include <algorithm>

namespace fusec {
namespace {

const Equation &equationAt(const ExprProgram &pattern, size_t i) {
  return std::get<Equation>(pattern.items[i].value);
}

bool reads(const Equation &e, TensorId t) {
  const std::vector<NodeId> nodes = e.body.reachable(bodyRoots(e));
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](NodeId id) { return isRead(e.body[id]) && e.body[id].index == t; });
}

/// The map is kept for this kernel alone, which has readers that can do its work themselves.
bool isKept(const ExprProgram &pattern, size_t i) {
  const Equation &map = equationAt(pattern, i);
  if (map.kind != EquationKind::Map)
    return false;
  size_t readers = 0;
  for (TensorId t : map.outputs) {
    if (pattern.tensors[t].kind != TensorKind::Temp)
      return false;
    for (const Item &item : pattern.items) {
      const Equation &e = std::get<Equation>(item.value);
      if (e.kind != EquationKind::Map && e.kind != EquationKind::Reduction)
        return false;
      readers += reads(e, t);
    }
  }
  return readers > 0;
}

} // namespace

std::vector<int64_t> recomputeChoices(const ExprProgram &pattern, const Target &) {
  // Room is what there is to save: the largest values, in patterns whose schedules are quickly weighed.
  constexpr size_t kMostEquations = 12, kMostChoices = 2;
  if (pattern.items.size() > kMostEquations)
    return {};
  const std::vector<int64_t> symbols = optValues(pattern.symbols);
  std::vector<std::pair<int64_t, int64_t>> kept; // -elements, choice
  for (size_t i = 0; i < pattern.items.size(); ++i)
    if (isKept(pattern, i)) {
      DimExpr elements(1);
      for (const Axis &axis : equationAt(pattern, i).axes)
        elements = elements * axis.extent;
      kept.push_back({-elements.evaluate(symbols).value_or(1), static_cast<int64_t>(i) + 1});
    }
  std::sort(kept.begin(), kept.end());
  std::vector<int64_t> choices;
  for (size_t i = 0; i < std::min(kMostChoices, kept.size()); ++i)
    choices.push_back(kept[i].second);
  return choices;
}

std::optional<ExprProgram> recompute(const ExprProgram &pattern, int64_t choice) {
  const auto position = static_cast<size_t>(choice - 1);
  if (choice < 1 || position >= pattern.items.size() || !isKept(pattern, position))
    return std::nullopt;
  ExprProgram program = pattern;
  const Equation map = equationAt(pattern, position);
  for (Item &item : program.items) {
    Equation &e = std::get<Equation>(item.value);
    if (std::none_of(map.outputs.begin(), map.outputs.end(),
                     [&](TensorId t) { return reads(e, t); }))
      continue;
    rebuild(e, program.symbols, nullptr, [&](Body &body, const Scalar &s, NodeId) {
      return isRead(s) && std::count(map.outputs.begin(), map.outputs.end(), s.index) != 0
                 ? inlineMap(body, map, s)
                 : kNoNode;
    });
    if (e.body.nodes.size() > kMaxBodyNodes)
      return std::nullopt;
  }
  dropUnneeded(program);
  return program;
}

} // namespace fusec
