// Rules of sizes in textual IRs. A file of its own: the runtime, which has no texts to read, links without libm.
#include "Support/SizeRules.h"
#include "Support/Text.h"
#include "Support/TypeText.h"

namespace fusec {

static constexpr std::string_view kKinds[] = {"equal", "broadcast", "multiple", "least", "either"};

std::string sizeRulesText(const SizeRules &rules, const std::vector<Symbol> &symbols) {
  std::string out;
  for (const InferredSize &size : rules.inferred) {
    out += "inferred " + nameToText(size.name) + " = [" + size.value.str(symbols) + "] of (";
    for (size_t i = 0; i < size.places.size(); ++i)
      out += (i ? ", " : "") + quoted(size.places[i].input) + " " +
             std::to_string(size.places[i].axis);
    out += ")\n";
  }
  const std::vector<Symbol> names = rules.allNames(symbols);
  for (const SizeRule &rule : rules.rules)
    out += std::string(rule.tested ? "rule tested " : "rule ") +
           std::string(kKinds[static_cast<int>(rule.kind)]) + " [" + rule.left.str(names) + ", " +
           rule.right.str(names) + "] by " + quoted(rule.node) + " " + quoted(rule.op) + " " +
           quoted(rule.text) + "\n";
  return out;
}

static Result<InferredSize> parseInferred(TextReader &in, const std::vector<Symbol> &symbols) {
  InferredSize size;
  FUSEC_TRY(size.name, in.nameText());
  FUSEC_CHECK(in.expect("="));
  FUSEC_CHECK(in.expect("["));
  FUSEC_TRY(size.value, parseDim(in, "]", symbols));
  FUSEC_CHECK(in.expect("]"));
  FUSEC_CHECK(in.expect("of"));
  FUSEC_CHECK(in.expect("("));
  FUSEC_TRY(size.places, in.list(")", [&]() -> Result<InferredSize::Place> {
    InferredSize::Place place;
    FUSEC_TRY(place.input, in.string());
    FUSEC_TRY(place.axis, in.integer());
    return place;
  }));
  return size;
}

static Result<SizeRule> parseRule(TextReader &in, const std::vector<Symbol> &names) {
  SizeRule rule;
  rule.tested = in.accept("tested");
  FUSEC_TRY(std::string word, in.identifier());
  size_t kind = 0;
  while (kind < std::size(kKinds) && kKinds[kind] != word)
    ++kind;
  if (kind == std::size(kKinds))
    return in.error("'" + word + "' is no kind of rule");
  rule.kind = static_cast<SizeRule::Kind>(kind);
  FUSEC_CHECK(in.expect("["));
  FUSEC_TRY(Shape sides, parseDims(in, "]", names));
  if (sides.size() != 2)
    return in.error("a rule has two sides");
  rule.left = sides[0];
  rule.right = sides[1];
  FUSEC_CHECK(in.expect("by"));
  FUSEC_TRY(rule.node, in.string());
  FUSEC_TRY(rule.op, in.string());
  FUSEC_TRY(rule.text, in.string());
  return rule;
}

Result<SizeRules> parseSizeRules(TextReader &in, const std::vector<Symbol> &symbols) {
  SizeRules rules;
  while (in.accept("inferred")) {
    FUSEC_TRY(InferredSize size, parseInferred(in, symbols));
    rules.inferred.push_back(std::move(size));
  }
  const std::vector<Symbol> names = rules.allNames(symbols);
  while (in.accept("rule")) {
    FUSEC_TRY(SizeRule rule, parseRule(in, names));
    rules.rules.push_back(std::move(rule));
  }
  return rules;
}

} // namespace fusec
