#include "Graph/SizeSolver.h"
#include "Support/DimLimits.h"
#include "Support/DimProgram.h"

#include <algorithm>

namespace fusec {

SymbolId SizeSolver::symbol(const Symbol &range, bool byUser) {
  for (size_t s = 0; s < first.size(); ++s) {
    const auto &known = first[s].definition;
    if (range.definition ? !known || *known != *range.definition : first[s].name != range.name)
      continue;
    if (known || range.bound)
      renewRange(s, range);
    return static_cast<SymbolId>(s);
  }
  first.push_back(range);
  now.symbols.push_back(range);
  given.push_back(byUser);
  const auto id = static_cast<SymbolId>(first.size() - 1);
  if (noneEmpty && isFree(first.size() - 1)) {
    forced.push_back(*noneEmpty);
    forced.back().left = DimExpr::symbol(id);
    apply(now, forced.back());
  }
  return id;
}

void SizeSolver::renewRange(size_t id, const Symbol &range) {
  Symbol &natural = first[id], &own = now.symbols[id];
  if (range.min < natural.min || range.max > natural.max) {
    natural.min = std::min(natural.min, range.min);
    natural.max = std::max(natural.max, range.max);
    startsAnew = true;
  }
  if (range.min <= own.max && range.max >= own.min) {
    own.min = std::max(own.min, range.min);
    own.max = std::min(own.max, range.max);
  }
}

void SizeSolver::test(const SizeRule &rule) { test(rule, now); }

void SizeSolver::test(const SizeRule &rule, const State &in) {
  SizeRule tested = rule;
  tested.left = canonical(in, rule.left);
  tested.right = canonical(in, rule.right);
  tested.tested = true;
  roundTests.push_back(std::move(tested));
}

/// What fulfils the rule, or has 0 for `isTaken`, which else is 1.
static SizeRule whereTaken(SizeRule rule, const DimExpr &isTaken) {
  const bool isMultiple = rule.kind == SizeRule::Kind::Multiple;
  DimExpr left = isMultiple ? rule.left * isTaken : rule.right + (rule.left - rule.right) * isTaken;
  if (!isTooLarge(left))
    rule.left = std::move(left);
  return rule;
}

void SizeSolver::enterBranch(const std::string &name, const IsTaken &isTaken) {
  branches.push_back({name, now});
  const auto known = solvedInside.find(name);
  if (known == solvedInside.end())
    return;
  for (const SizeRule &rule : std::vector(known->second)) {
    State next = now;
    if (apply(next, rule) == Answer::Holds && next.found.size() != now.found.size())
      solveInBranch(rule, std::move(next), isTaken);
  }
}

void SizeSolver::leaveBranch() {
  State outer = std::move(branches.back().around);
  branches.pop_back();
  for (size_t s = outer.symbols.size(); s < first.size(); ++s)
    outer.symbols.push_back(first[s]);
  now = std::move(outer);
}

bool SizeSolver::solveInBranch(const SizeRule &rule, State next, const IsTaken &isTaken) {
  const auto taken = isTaken && !branches.empty() ? isTaken() : std::nullopt;
  if (!taken)
    return false;
  // The test is for the size as it is outside, which what is solved inside does not fix.
  test(whereTaken(rule, *taken), branches.front().around);
  now = std::move(next);
  for (size_t s = now.symbols.size(); s < first.size(); ++s) // made to tell which branch is taken
    now.symbols.push_back(first[s]);
  return true;
}

SizeSolver::Answer SizeSolver::require(const SizeRule &rule, Need need, bool mayBeLeftOut,
                                       const IsTaken &isTaken) {
  if (isTooLarge(rule.left) || isTooLarge(rule.right) ||
      (need == Need::Case && !standsOn(kCases)) || (need == Need::Declared && !standsOn(kDeclared)))
    return Answer::Open;
  if (need == Need::Case)
    stoodOn |= kCases;
  if (need == Need::Unlikely) {
    stoodOn |= kUsual;
    if (standsOn(kUsual))
      return Answer::Open;
  }
  const bool isEnough = need != Need::Solved && need != Need::Likely; // a test
  State next = now;
  Answer answer = apply(next, rule);
  if (answer == Answer::Never)
    return answer;
  // What only some runs need determines nothing for all of them.
  if (mayBeLeftOut && next.found.size() != now.found.size()) {
    if (need == Need::Solved && solveInBranch(rule, next, isTaken)) {
      solvedInside[branches.back().name].push_back(rule);
      foundForced = true;
      return answer;
    }
    answer = Answer::Open;
  }
  // Sizes that nothing takes for granted are not written otherwise.
  if (isEnough && next.parts.size() > now.parts.size())
    answer = Answer::Open;
  if (answer == Answer::Open) {
    if (!isEnough)
      return answer;
    const auto taken = isTaken ? isTaken() : std::nullopt;
    test(taken ? whereTaken(rule, *taken) : rule);
    if (!mayBeLeftOut)
      narrowByTest(rule);
    return Answer::Holds;
  }
  if (next.found.size() == now.found.size())
    return answer;
  if (need == Need::Declared && overrulesUser(next))
    return Answer::Open;
  if (need == Need::Likely || need == Need::Declared) {
    (need == Need::Likely ? pending : declared).push_back(rule);
    return answer;
  }
  now = std::move(next);
  forced.push_back(rule);
  foundForced = true;
  return answer;
}

void SizeSolver::narrowByTest(SizeRule rule) {
  if (rule.kind != SizeRule::Kind::AtLeast || rule.right.isConst() ||
      rule.left.op() != DimExpr::Op::Symbol)
    return;
  rule.right = rule.right.range(now.symbols).min;
  State next = now;
  if (apply(next, rule) != Answer::Holds || next.found.size() == now.found.size() ||
      next.parts.size() > now.parts.size() || overrulesUser(next))
    return;
  now = std::move(next);
  forced.push_back(std::move(rule));
  foundForced = true;
}

void SizeSolver::suppose(const std::vector<SizeRule> &rules) {
  State next = now;
  for (const SizeRule &rule : rules)
    if (isTooLarge(rule.left) || isTooLarge(rule.right) || apply(next, rule) != Answer::Holds)
      return;
  if (next.found.size() != now.found.size() && !overrulesUser(next))
    pending.insert(pending.end(), rules.begin(), rules.end());
}

bool SizeSolver::overrulesUser(const State &next) const {
  for (size_t s = 0; s < now.symbols.size(); ++s) {
    if (!given[s])
      continue;
    const Symbol &before = now.symbols[s], &after = next.symbols[s];
    const auto size = next.replaced.find(static_cast<SymbolId>(s));
    const bool isFixed = size != next.replaced.end() && size->second.isConst() &&
                         !canonical(DimExpr::symbol(static_cast<SymbolId>(s))).isConst();
    if (isFixed || before.min != after.min || before.max != after.max ||
        before.divisor != after.divisor)
      return true;
    // One that is another size has that one's room.
    if (const auto is = now.replaced.find(static_cast<SymbolId>(s)); is != now.replaced.end()) {
      const DimExpr::Range was = is->second.range(now.symbols),
                           left = is->second.range(next.symbols);
      if (was.min != left.min || was.max != left.max)
        return true;
    }
  }
  return false;
}

bool SizeSolver::giveUp(const std::optional<SizeRule> &refused) {
  bool mayBeEmpty = false;
  for (size_t s = 0; s < first.size(); ++s)
    mayBeEmpty = mayBeEmpty || isFree(s);
  if (mayBeEmpty && refused)
    stoodOn |= kEmpty;
  if (assumedDeclared)
    stoodOn |= kDeclared;
  const unsigned mayGo = refused ? stoodOn : stoodOn & ~unsigned{kEmpty};
  constexpr unsigned kAll = kCases | kEmpty | kDeclared | kUsual;
  unsigned next = givenUp + 1;
  while (next <= kAll && (next & ~mayGo) != 0)
    ++next;
  if (next > kAll)
    return false;
  SizeSolver fresh;
  fresh.givenUp = next;
  fresh.stoodOn = stoodOn;
  if (!fresh.standsOn(kEmpty)) {
    fresh.noneEmpty = refused;
    fresh.noneEmpty->kind = SizeRule::Kind::AtLeast;
    fresh.noneEmpty->right = DimExpr(1);
  }
  *this = std::move(fresh);
  return true;
}

bool SizeSolver::isFree(size_t id) const {
  return !given[id] && !first[id].definition && !first[id].bound;
}

void SizeSolver::beginRound() {
  pending.clear();
  declared.clear();
  divided.clear();
  roundTests.clear();
  foundForced = false;
}

void SizeSolver::replay() {
  now = State();
  now.symbols = first;
  for (const SizeRule &rule : forced)
    apply(now, rule);
  hasAssumed = assumedDeclared = startsAnew = false;
}

bool SizeSolver::assume(const std::vector<SizeRule> &rules) {
  bool found = false;
  for (const SizeRule &rule : rules) {
    State next = now;
    if (apply(next, rule) != Answer::Holds || next.found.size() == now.found.size())
      continue;
    now = std::move(next);
    found = hasAssumed = true;
  }
  return found;
}

bool SizeSolver::endRound() {
  if (foundForced || startsAnew) {
    if (hasAssumed || startsAnew)
      replay();
    return true;
  }
  if (assume(pending))
    return true;
  const bool found = assume(declared);
  assumedDeclared |= found;
  return found;
}

SizeRules SizeSolver::rules(const std::vector<SymbolId> &newIds,
                            std::vector<InferredSize> inferred) const {
  SizeRules out;
  auto renumbered = [&](const DimExpr &e) {
    return e.substitute(
        [&](SymbolId s) { return std::optional(DimExpr::symbol(newIds[static_cast<size_t>(s)])); });
  };
  auto isThere = [&](const DimExpr &e) {
    std::vector<SymbolId> used;
    e.collectSymbols(used);
    return std::all_of(used.begin(), used.end(),
                       [&](SymbolId s) { return newIds[static_cast<size_t>(s)] >= 0; });
  };
  auto add = [&](SizeRule rule) {
    if (!isThere(rule.left) || !isThere(rule.right))
      return;
    rule.tested = rule.tested || isOfData(rule);
    rule.left = renumbered(rule.left);
    rule.right = renumbered(rule.right);
    // What a node asks of a size may become more as more is known of others.
    const auto known = std::ranges::find_if(out.rules, [&](const SizeRule &r) {
      const bool isWeaker = r.kind == SizeRule::Kind::AtLeast && r.right.isConst() &&
                            rule.right.isConst() && r.node == rule.node && r.text == rule.text &&
                            !r.tested && r.right.constValue() < rule.right.constValue();
      return r.kind == rule.kind && r.left == rule.left && (r.right == rule.right || isWeaker);
    });
    if (known == out.rules.end())
      out.rules.push_back(std::move(rule));
    else if (known->right != rule.right && !rule.tested)
      *known = std::move(rule);
  };
  for (InferredSize &size : inferred)
    size.value = renumbered(size.value);
  out.inferred = std::move(inferred);
  for (const SizeRule &rule : now.found)
    add(rule);
  for (const auto *tests : {&now.tests, &roundTests})
    for (SizeRule rule : *tests) {
      rule.left = canonical(rule.left);
      rule.right = canonical(rule.right);
      State scratch = now;
      const bool decided =
          apply(scratch, rule) == Answer::Holds && scratch.found.size() == now.found.size();
      if (!decided)
        add(std::move(rule));
    }
  return out;
}

} // namespace fusec
