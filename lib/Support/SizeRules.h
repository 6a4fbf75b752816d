#pragma once
#include "Support/Dim.h"

namespace fusec {

class TextReader;

/// What the sizes of a run must fulfil for a node of the model, beyond the ranges of the symbols.
struct SizeRule {
  enum class Kind : uint8_t {
    Equal,     // left == right
    Broadcast, // left is right or 1
    Multiple,  // left is a multiple of right
    AtLeast,   // left >= right
    Either     // left == right, or one of them is 1
  };
  Kind kind = Kind::Equal;
  DimExpr left, right; // over SizeRules::allNames()
  std::string node;    // of the model
  std::string op;      // its operator
  std::string text;    // what must be so, in words: "the sizes to sum over must be equal"
  /// Shapes that fit the inputs' expressions may break it. Else it follows from these, and tells why they are so.
  bool tested = false;
};

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
bool holds(SizeRule::Kind kind, std::optional<int64_t> left, std::optional<int64_t> right);

/// "b = c", "m is 4 or 1".
std::string ruleText(SizeRule::Kind kind, const std::string &left, const std::string &right);

/// One side of a rule in a run that breaks it.
struct RuleSide {
  std::string text; // of the expression
  bool isConst = false;
  bool isKnown = true; // its sizes are; what it is may be beyond all numbers
  std::optional<int64_t> value;
  std::vector<std::string> sizes;             // that it mentions; one of its text: it is that size
  std::vector<std::optional<int64_t>> values; // of these
  std::vector<std::string> places; // of these, in words: "dimension 1 of input 'x'"; "": none
};
/// "node 'mm' (MatMul): the sizes to sum over must be equal: 'b' is 6 (dimension 1 of input 'A') and 'c' is 5
/// (dimension 0 of input 'B')".
std::string brokenRule(const std::string &node, const std::string &op, const std::string &text,
                       const RuleSide &left, const RuleSide &right);
std::string dimensionText(const std::string &input, int64_t axis);

/// One of allNames() in a run.
struct RunSize {
  std::optional<int64_t> value;
  std::string place; // that it comes from, in words
};
/// The first rule that the sizes of a run break, of those whose sizes are all known, in words; "": none. Those that are
/// not tested count where `all`.
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

} // namespace fusec
