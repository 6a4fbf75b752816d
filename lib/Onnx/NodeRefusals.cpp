#include "Onnx/DimTools.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/NodeImporter.h"
#include "Support/Diag.h"
#include "Support/DimProgram.h"

#include <algorithm>
#include <set>

// What NodeImporter says of a node that is refused, and which option would mend it.

namespace fusec {

Diagnostic NodeImporter::fail(Diag id, std::string text) const { return {id, "", std::move(text)}; }

std::string NodeImporter::inputTypes() const {
  std::string text = "(";
  for (size_t i = 0; i < inputs.size(); ++i) {
    text += i ? ", " : "";
    text += has(i) ? typeText(in(i), symbols()) : "absent";
  }
  return text + ")";
}

Diagnostic NodeImporter::mismatch(std::string text) const {
  return fail(Diag::ShapeMismatch, text + "; the inputs are " + inputTypes());
}

Diagnostic NodeImporter::undecided(std::string text) const {
  return fail(Diag::UnsupportedShape, text + "; the inputs are " + inputTypes());
}

/// " --dim n=SIZE --dim m=SIZE".
static std::string optionsOf(std::set<SymbolId> used, const std::vector<Symbol> &symbols) {
  // In place of what is computed those that it is computed of, which come in front.
  for (auto last = used.rbegin();
       last != used.rend() && symbols[static_cast<size_t>(*last)].definition;
       last = used.rbegin()) {
    for (const DimProgram::Instr &i : symbols[static_cast<size_t>(*last)].definition->code)
      if (i.op == DimProgram::Op::Symbol)
        used.insert(static_cast<SymbolId>(i.value));
    used.erase(std::prev(used.end()));
  }
  std::string options;
  for (SymbolId s : used)
    options += " --dim " + symbols[static_cast<size_t>(s)].name + "=SIZE";
  return options;
}

static std::string dimOptions(const Shape &sizes, const std::vector<Symbol> &symbols) {
  return optionsOf(symbolsOf(sizes), symbols);
}

Diagnostic NodeImporter::needsConstant(const std::string &text,
                                       const std::vector<size_t> &operands) const {
  const std::vector<ValueId> &given = graph().body.inputs;
  std::vector<std::string> beyond; // the operands of which the limit is in the way
  std::set<SymbolId> toFix;
  std::set<std::string> toSet;
  bool suffices = true;
  for (size_t i : operands) {
    if (!has(i) || in(i).constant || !in(i).known.empty())
      continue;
    if (const std::set<SymbolId> *symbols = builder.beyondLimit(id(i))) {
      beyond.push_back(std::to_string(i));
      toFix.insert(symbols->begin(), symbols->end());
      continue;
    }
    ask(id(i));
    if (std::find(given.begin(), given.end(), id(i)) != given.end())
      toSet.insert(in(i).name);
    else
      suffices = false;
  }
  std::string limit;
  if (!beyond.empty() && suffices) {
    limit = beyond.size() == 1 ? "what input " : "what inputs ";
    for (size_t k = 0; k < beyond.size(); ++k)
      limit += (k == 0 ? "" : k + 1 < beyond.size() ? ", " : " and ") + beyond[k];
    limit += (beyond.size() == 1 ? " holds is " : " hold is ") + tooLargeExpression() +
             "; fix sizes with" + optionsOf(toFix, symbols());
    if (toSet.empty())
      return fail(Diag::LimitExceeded, limit);
    limit.insert(0, "; ");
  }
  std::string options;
  if (suffices && !toSet.empty()) {
    options = ";";
    for (const std::string &name : toSet)
      options += " --set-input " + name + "=VALUE";
    options += toSet.size() == 1 ? " makes it a constant" : " makes them constants";
  }
  return fail(Diag::UnsupportedShape, text + options + limit);
}

Diagnostic NodeImporter::needsFixed(const std::string &text, Shape sizes, const Shape &more) const {
  sizes.insert(sizes.end(), more.begin(), more.end());
  std::string options = dimOptions(sizes, symbols());
  const bool one = options.rfind(" --dim") == 0;
  return undecided(options.empty() ? text
                                   : text + "; fix " + (one ? "it" : "them") + " with" + options);
}

Diagnostic NodeImporter::unsupported(std::string text) const {
  return fail(Diag::UnsupportedOp, text + "; the inputs are " + inputTypes());
}

SizeCheck NodeImporter::sizes() const {
  return SizeCheck(
      symbols(), SizeCheck::Equality::Exact, [this](const Misfit &m) { return say(m); },
      [this](const SizeRule &rule, Need need) { return require(rule, need); });
}

bool NodeImporter::require(SizeRule rule, Need need) const {
  rule.node = nodeName;
  rule.op = opType;
  return builder.solver().require(rule, need, builder.frame->branch != nullptr, [this] {
    return builder.isTaken(nodeName);
  }) == SizeSolver::Answer::Holds;
}

/// What a misfit asks of open sizes.
static std::optional<SizeRule> ruleOf(const Misfit &m) {
  using enum SizeRule::Kind;
  auto rule = [&](SizeRule::Kind kind, const DimExpr &right) {
    return SizeRule{kind, m.sizes[0], right, {}, {}, {}};
  };
  switch (m.kind) {
  case Misfit::Kind::Unequal: return rule(Equal, m.sizes[1]);
  case Misfit::Kind::Indivisible: return rule(Multiple, m.number);
  case Misfit::Kind::TooSmall: return rule(AtLeast, m.number);
  case Misfit::Kind::Less: return rule(AtLeast, m.sizes[1]);
  default: return std::nullopt;
  }
}

std::optional<Diagnostic> NodeImporter::contradiction(const Misfit &m) const {
  const auto rule = ruleOf(m);
  // In the next round the sizes may tell that a branch is not taken.
  if (!rule || builder.frame->branch)
    return std::nullopt;
  const std::string reasons = builder.solver().contradiction(*rule);
  if (reasons.empty())
    return std::nullopt;
  builder.foundContradiction = true;
  if (m.kind == Misfit::Kind::Less)
    return mismatch(m.text + reasons);
  if (m.kind == Misfit::Kind::Unequal)
    return mismatch(m.text + rule->left.str(symbols()) + " and " + rule->right.str(symbols()) +
                    reasons);
  return mismatch(m.rule + "; it is " + rule->left.str(symbols()) + reasons);
}

Diagnostic NodeImporter::say(const Misfit &m) const {
  if (auto said = contradiction(m))
    return std::move(*said);
  switch (m.kind) {
  case Misfit::Kind::Operands: return mismatch(m.text);
  case Misfit::Kind::Attribute: return fail(Diag::BadAttribute, m.text);
  case Misfit::Kind::Value: return fail(Diag::BadOperand, m.text);
  case Misfit::Kind::Unequal: return openSizes(m.text, m.sizes[0], m.sizes[1]);
  case Misfit::Kind::Indivisible:
    require({SizeRule::Kind::Multiple, m.sizes[0], m.number, "", "", m.rule}, Need::Solved);
    break;
  case Misfit::Kind::TooSmall:
    require({SizeRule::Kind::AtLeast, m.sizes[0], m.number, "", "", m.rule}, Need::Solved);
    break;
  case Misfit::Kind::Less:
  case Misfit::Kind::NotFixed: break;
  }
  return needsFixed(m.text, m.sizes);
}

Diagnostic NodeImporter::openSizes(std::string text, const DimExpr &a, const DimExpr &b) const {
  text += a.str(symbols()) + " and " + b.str(symbols());
  if (auto advice = builder.boundAdvice(a, b))
    return undecided(text + "; " + *advice);
  text += " may differ";
  const bool isSymbol = a.op() == DimExpr::Op::Symbol;
  if (isSymbol && b.op() == DimExpr::Op::Symbol)
    return undecided(text + "; give both one name with --shape or fix them with" +
                     dimOptions({a, b}, symbols()));
  const DimExpr &open = isSymbol ? a : b, &size = isSymbol ? b : a;
  if (open.op() == DimExpr::Op::Symbol && size.isConst())
    return undecided(text + "; fix it with --dim " + open.str(symbols()) + "=" +
                     size.str(symbols()));
  return needsFixed(text, {a, b});
}

} // namespace fusec
