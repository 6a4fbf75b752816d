// The rules that made sizes what they are, for what then contradicts them.
#include "Graph/SizeSolver.h"

#include <algorithm>
#include <set>

namespace fusec {

namespace {

/// What a rule has made of symbols: where one of them matters, those that the rule speaks of do too.
struct Finding {
  std::set<SymbolId> changed, mentioned;
  std::string text;
};

} // namespace

static bool shareSymbol(const std::set<SymbolId> &a, const std::set<SymbolId> &b) {
  return std::any_of(a.begin(), a.end(), [&](SymbolId s) { return b.count(s) != 0; });
}

static std::set<SymbolId> symbolsOf(const Shape &sizes) {
  std::vector<SymbolId> used;
  for (const DimExpr &size : sizes)
    size.collectSymbols(used);
  return {used.begin(), used.end()};
}

std::string SizeSolver::reasons(const Shape &sizes, const std::vector<SizeRule> &rules) const {
  std::vector<Finding> findings;
  State state;
  state.symbols = first;
  for (const SizeRule &rule : rules) {
    const State before = state;
    apply(state, rule);
    Finding f{{}, symbolsOf({rule.left, rule.right}), ""};
    for (size_t s = 0; s < first.size(); ++s) {
      const auto id = static_cast<SymbolId>(s);
      const Symbol &was = before.symbols[s], &is = state.symbols[s];
      const bool isFound = state.replaced.count(id) > before.replaced.count(id);
      if (isFound)
        f.text = is.name + " is " + state.replaced.at(id).str(first);
      if (isFound || was.min != is.min || was.max != is.max || was.divisor != is.divisor)
        f.changed.insert(id);
    }
    if (f.text.empty())
      f.text = ruleText(rule.kind, rule.left.str(first), rule.right.str(first));
    f.text += " by node '" + rule.node + "' (" + rule.op + ")";
    findings.push_back(std::move(f));
  }
  std::set<SymbolId> used = symbolsOf(sizes);
  for (size_t before = 0; before != used.size();) {
    before = used.size();
    for (const Finding &f : findings)
      if (shareSymbol(f.changed, used))
        used.insert(f.mentioned.begin(), f.mentioned.end());
  }
  std::string text;
  for (const Finding &f : findings)
    if (shareSymbol(f.changed, used))
      text += (text.empty() ? ", where " : ", and ") + f.text;
  return text;
}

std::string SizeSolver::contradiction(const SizeRule &rule) const {
  State scratch = now;
  if (apply(scratch, rule) != Answer::Never)
    return "";
  // That sizes are not 0 says nothing of sizes that contradict each other without it.
  State others;
  others.symbols = first;
  std::vector<SizeRule> rules;
  for (const SizeRule &found : now.found)
    if (!noneEmpty || found.text != noneEmpty->text) {
      apply(others, found);
      rules.push_back(found);
    }
  return reasons({rule.left, rule.right}, apply(others, rule) == Answer::Never ? rules : now.found);
}

} // namespace fusec
