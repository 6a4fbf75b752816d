#include "Support/SizeRules.h"

#include <algorithm>
#include <set>

namespace fusec {

std::vector<Symbol> SizeRules::allNames(const std::vector<Symbol> &symbols) const {
  std::vector<Symbol> all = symbols;
  for (const InferredSize &size : inferred)
    all.push_back({size.name});
  return all;
}

bool holds(SizeRuleKind kind, std::optional<int64_t> left, std::optional<int64_t> right) {
  if (!left || !right)
    return false;
  switch (kind) {
  case SizeRuleKind::Equal: return *left == *right;
  case SizeRuleKind::Broadcast: return *left == *right || *left == 1;
  case SizeRuleKind::Multiple: return *right > 0 && *left % *right == 0;
  case SizeRuleKind::AtLeast: return *left >= *right;
  case SizeRuleKind::Either: return *left == *right || *left == 1 || *right == 1;
  }
  return false;
}

std::string ruleText(SizeRuleKind kind, const std::string &left, const std::string &right) {
  switch (kind) {
  case SizeRuleKind::Equal: return left + " = " + right;
  case SizeRuleKind::Broadcast: return left + " is " + right + " or 1";
  case SizeRuleKind::Multiple: return left + " is a multiple of " + right;
  case SizeRuleKind::AtLeast: return left + " is at least " + right;
  case SizeRuleKind::Either: return left + " is " + right + ", or one of them is 1";
  }
  return "";
}

std::string dimensionText(const std::string &input, int64_t axis) {
  return "dimension " + std::to_string(axis) + " of input '" + input + "'";
}

/// "'n' is 4", and where that is from.
static std::string valueText(const std::string &name, std::optional<int64_t> value,
                             const std::string &place) {
  return "'" + name + "' is " + (value ? std::to_string(*value) : "not computable") + place;
}

static std::string sideText(const RuleSide &side) {
  if (side.isConst)
    return side.text;
  const bool isName = side.names.size() == 1 && side.names[0] == side.text;
  std::string from;
  for (size_t i = 0; i < side.names.size(); ++i) {
    const auto &[value, place] = side.sizes[i];
    if (isName) {
      from = place;
      continue;
    }
    from += from.empty() ? "" : ", ";
    from += valueText(side.names[i], value, place.empty() ? "" : ", " + place);
  }
  return valueText(side.text, side.value, from.empty() ? "" : " (" + from + ")");
}

std::string brokenText(const std::string &node, const std::string &op, const std::string &text,
                       const RuleSide &left, const RuleSide &right) {
  return "node '" + node + "' (" + op + "): " + text + ": " + sideText(left) + " and " +
         sideText(right);
}

std::vector<int64_t> valuesOf(const std::vector<RunSize> &sizes) {
  std::vector<int64_t> values;
  for (const RunSize &size : sizes)
    values.push_back(size.value.value_or(0));
  return values;
}

std::string brokenRule(const SizeRules &rules, const std::vector<Symbol> &symbols,
                       const std::vector<RunSize> &sizes, bool all) {
  return brokenRule(rules.rules, rules.allNames(symbols), sizes, all);
}

std::string faultOf(const SizeRules &rules, const std::vector<Symbol> &symbols) {
  std::set<std::string_view> names;
  for (const Symbol &s : symbols)
    names.insert(s.name);
  const size_t all = symbols.size() + rules.inferred.size();
  auto fault = [&](const DimExpr &e, size_t count) -> std::string {
    std::vector<SymbolId> used;
    e.collectSymbols(used);
    if (!used.empty() && (used.front() < 0 || static_cast<size_t>(used.back()) >= count))
      return "a symbol that there is not";
    return dataTestAmong(used, symbols);
  };
  for (const InferredSize &size : rules.inferred) {
    if (size.name.empty() || !names.insert(size.name).second)
      return "inferred size '" + size.name + "': names of sizes are unique and not empty";
    if (std::string why = fault(size.value, symbols.size()); !why.empty())
      return "inferred size '" + size.name + "' hangs on " + why;
    for (const InferredSize::Place &place : size.places)
      if (place.axis < 0)
        return "inferred size '" + size.name + "' is of an axis that there is not";
  }
  for (const SizeRule &rule : rules.rules)
    for (const DimExpr *side : {&rule.left, &rule.right})
      if (std::string why = fault(*side, all); !why.empty())
        return "the rule of node '" + rule.node + "' is on " + why;
  return "";
}

std::string dataTestAmong(const std::vector<SymbolId> &used, const std::vector<Symbol> &symbols) {
  for (SymbolId s : used)
    if (const auto at = static_cast<size_t>(s); at < symbols.size() && symbols[at].testsData())
      return "'" + symbols[at].name + "', which tests the data and is no size";
  return "";
}

std::string faultOfDataTests(const std::vector<Symbol> &symbols) {
  for (const Symbol &s : symbols) {
    if (s.testsData() && (!s.bound || !s.bound->isConst(0)))
      return "'" + s.name + "' tests the data, and its bound is not 0";
    std::vector<SymbolId> used;
    if (s.bound)
      s.bound->collectSymbols(used);
    if (std::string test = dataTestAmong(used, symbols); !test.empty())
      return "the bound of '" + s.name + "' is on " + test;
  }
  return "";
}

bool speakOf(const SizeRules &rules, SymbolId symbol) {
  return std::ranges::any_of(rules.rules, [&](const SizeRule &rule) {
    std::vector<SymbolId> used;
    rule.left.collectSymbols(used);
    rule.right.collectSymbols(used);
    return std::ranges::count(used, symbol) != 0;
  });
}

} // namespace fusec
