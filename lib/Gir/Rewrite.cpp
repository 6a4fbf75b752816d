// rewrite: the rules of data movement, to a fixpoint.
//
// Guarantees: no rule holds any more, or there is no room for what it would keep; the kernel moves no more Global
// elements than before, after each rule. Each rule takes an access or a computation away and none puts one back, so
// the rounds end. Needs a kernel without barriers, or one whose barriers may stay; stands between simplify and
// insertSyncs, which puts only the barriers that what is left needs.
#include "Gir/Rewrite.h"

#include "Gir/Passes.h"
#include "Gir/Traffic.h"
#include "Gir/Walk.h"

#include <algorithm>
#include <cassert>

namespace fusec {
namespace {

/// Takes the reads' numbers away; `left` gets them.
void dropNumbers(GirKernel &kernel, std::set<int64_t> &left) {
  auto isNumbered = [](const Scalar &s) {
    return (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) && s.imm != 0;
  };
  if (std::none_of(kernel.body.nodes.begin(), kernel.body.nodes.end(), isNumbered))
    return;
  forEachStmtOf(kernel, [&](const Stmt &s) {
    for (NodeId id : kernel.body.reachable(exprRoots(s)))
      if (isNumbered(kernel.body[id]))
        left.insert(kernel.body[id].imm);
  });
  Body body;
  body.axisRanges = kernel.body.axisRanges;
  body.symbolTable = kernel.body.symbolTable;
  std::vector<NodeId> copy;
  for (Scalar s : kernel.body.nodes) {
    for (NodeId &a : s.args)
      a = copy[static_cast<size_t>(a)];
    if (isNumbered(s))
      s.imm = 0;
    copy.push_back(body.addExact(std::move(s)));
  }
  kernel.body = std::move(body);
  forEachStmtOf(kernel, [&](Stmt &s) {
    for (NodeId *ref : exprRefs(s))
      *ref = copy[static_cast<size_t>(*ref)];
  });
  canonicalise(kernel);
}

} // namespace

const std::vector<RewriteRule> &rewriteRules() {
  static const std::vector<RewriteRule> rules = {
      {"swap-moves", "computes behind scratch memory that values pass through", swapMoves},
      {"merge-moves", "reads values where they came from before they passed through scratch memory",
       mergeMoves},
      {"reuse-values", "computes once what a thread needs in several nests", reuseValues},
      {"merge-write-read", "hands on in registers what a thread reads back", mergeWriteRead},
      {"merge-reads", "reads what a thread has read once", mergeReads},
  };
  return rules;
}

std::vector<std::string_view> rewrite(GirKernel &kernel, const RewriteLimits &limits) {
  const std::vector<RewriteRule> &rules = rewriteRules();
  std::vector<bool> held(rules.size(), false);
  simplify(kernel);
  ElementTraffic moved = globalTraffic(kernel);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t r = 0; r < rules.size(); ++r) {
      if (!rules[r].run(kernel, limits))
        continue;
      changed = held[r] = true;
      simplify(kernel);
      const ElementTraffic left = globalTraffic(kernel);
      assert(isMonotone(moved, left) && "rewriting moves no more than before");
      moved = left;
    }
  }
  std::set<int64_t> left;
  dropNumbers(kernel, limits.numbered ? limits.numbered->left : left);
  std::vector<std::string_view> names;
  for (size_t r = 0; r < rules.size(); ++r)
    if (held[r])
      names.push_back(rules[r].name);
  return names;
}

} // namespace fusec
