#pragma once
#include "Support/Dim.h"

namespace fusec {

class TextReader;

enum class SizeRuleKind : uint8_t {
  Equal,     // left == right
  Broadcast, // left is right or 1
  Multiple,  // left is a multiple of right
  AtLeast,   // left >= right
  Either     // left == right, or one of them is 1
};

/// What the sizes of a run must fulfil for a node of the model, beyond the ranges of the symbols. `Expr` is DimExpr, or
/// what a bundle has in its place.
template <typename Expr> struct SizeRuleOf {
  using Kind = SizeRuleKind;
  Kind kind = Kind::Equal;
  Expr left, right; // over the symbols and, with the ids behind these, the inferred sizes
  std::string node; // of the model
  std::string op;   // its operator
  std::string text; // what must be so, in words: "the sizes to sum over must be equal"
  /// Shapes that fit the inputs' expressions may break it. Else it follows from these, and tells why they are so.
  bool tested = false;
};
using SizeRule = SizeRuleOf<DimExpr>;

/// A size of inputs that the model gives a name, and that follows from rules.
struct InferredSize {
  struct Place {
    std::string input;
    int64_t axis;
    bool operator==(const Place &o) const { return input == o.input && axis == o.axis; }
  };
  std::string name;
  DimExpr value; // over the symbols
  std::vector<Place> places;
};

/// What a model says of its sizes. Rules speak of the symbols and, with the ids behind those, of `inferred`.
struct SizeRules {
  std::vector<InferredSize> inferred;
  std::vector<SizeRule> rules;

  bool empty() const { return inferred.empty() && rules.empty(); }
  /// The symbols, and behind them the names that were inferred: for texts of rules.
  std::vector<Symbol> allNames(const std::vector<Symbol> &symbols) const;
};

/// Whether the rule holds for values of its sides; one that overflows has none.
bool holds(SizeRuleKind kind, std::optional<int64_t> left, std::optional<int64_t> right);

/// "b = c", "m is 4 or 1".
std::string ruleText(SizeRuleKind kind, const std::string &left, const std::string &right);

std::string dimensionText(const std::string &input, int64_t axis);

/// One of the symbols or inferred sizes in a run.
struct RunSize {
  std::optional<int64_t> value; // none where it is not known
  std::string place; // that it comes from, in words: "dimension 1 of input 'x'"; "": none
};

/// The first rule that values break, of those whose sizes are all known as `isKnown(SymbolId)` says; null: none. Those
/// that are not tested count where `all`.
template <typename Expr, typename F>
const SizeRuleOf<Expr> *firstBroken(const std::vector<SizeRuleOf<Expr>> &rules,
                                    const std::vector<int64_t> &values, F isKnown, bool all) {
  auto areKnown = [&](const Expr &e) {
    bool known = true;
    e.forEachSymbol([&](SymbolId id) { known = known && isKnown(id); });
    return known;
  };
  for (const SizeRuleOf<Expr> &rule : rules)
    if ((rule.tested || all) && areKnown(rule.left) && areKnown(rule.right) &&
        !holds(rule.kind, rule.left.evaluate(values), rule.right.evaluate(values)))
      return &rule;
  return nullptr;
}

/// One side of a rule in a run that breaks it.
struct RuleSide {
  std::string text; // of the expression
  bool isConst = false;
  std::optional<int64_t> value;
  std::vector<std::string> names; // of the sizes that it mentions; one of its text: it is that size
  std::vector<RunSize> sizes;     // these
};
std::string brokenText(const std::string &node, const std::string &op, const std::string &text,
                       const RuleSide &left, const RuleSide &right);
std::vector<int64_t> valuesOf(const std::vector<RunSize> &sizes);

/// "node 'mm' (MatMul): the sizes to sum over must be equal: 'b' is 6 (dimension 1 of input 'A') and 'c' is 5
/// (dimension 0 of input 'B')"; `names` and `sizes` are those of the symbols and, behind these, of the inferred sizes.
template <typename Expr>
std::string brokenText(const SizeRuleOf<Expr> &rule, const std::vector<Symbol> &names,
                       const std::vector<RunSize> &sizes) {
  const std::vector<int64_t> values = valuesOf(sizes);
  auto side = [&](const Expr &e) {
    RuleSide s{e.str(names), e.isConst(), e.evaluate(values), {}, {}};
    e.forEachSymbol([&](SymbolId id) {
      const auto at = static_cast<size_t>(id);
      for (const std::string &name : s.names)
        if (name == names[at].name)
          return;
      s.names.push_back(names[at].name);
      s.sizes.push_back(sizes[at]);
    });
    return s;
  };
  return brokenText(rule.node, rule.op, rule.text, side(rule.left), side(rule.right));
}

/// What firstBroken() finds, in words; "": none.
template <typename Expr>
std::string brokenRule(const std::vector<SizeRuleOf<Expr>> &rules, const std::vector<Symbol> &names,
                       const std::vector<RunSize> &sizes, bool all) {
  auto isKnown = [&](SymbolId id) { return sizes[static_cast<size_t>(id)].value.has_value(); };
  const SizeRuleOf<Expr> *rule = firstBroken(rules, valuesOf(sizes), isKnown, all);
  return rule ? brokenText(*rule, names, sizes) : "";
}
std::string brokenRule(const SizeRules &rules, const std::vector<Symbol> &symbols,
                       const std::vector<RunSize> &sizes, bool all);

/// Lines of a textual IR, none where there are no rules:
///   inferred b = [c] of ("A" 1, "B" 0)
///   rule equal [b, c] by "mm" "MatMul" "the sizes to sum over must be equal"
///   rule tested broadcast [m, 12] by ...
std::string sizeRulesText(const SizeRules &rules, const std::vector<Symbol> &symbols);
Result<SizeRules> parseSizeRules(TextReader &in, const std::vector<Symbol> &symbols);
/// Names are unique, symbols exist; else what is wrong.
std::string faultOf(const SizeRules &rules, const std::vector<Symbol> &symbols);
/// What is wrong with symbols that test the data (Symbol::test): their bound is 0, and no other bound is on them.
std::string faultOfDataTests(const std::vector<Symbol> &symbols);
/// Why these symbols make no size: the first that tests the data. Empty: none does.
std::string dataTestAmong(const std::vector<SymbolId> &used, const std::vector<Symbol> &symbols);
/// Whether one of the rules is on the symbol.
bool speakOf(const SizeRules &rules, SymbolId symbol);

} // namespace fusec
