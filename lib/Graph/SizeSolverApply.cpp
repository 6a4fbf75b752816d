// What is known of sizes: how they are written by it, over the symbols that are left, and what one rule makes of it. A
// rule replaces a symbol, narrows its range, or stands in place of a part.
#include "Graph/SizeSolver.h"
#include "Support/DimLimits.h"
#include "Support/DimProgram.h"
#include "Support/TunedSizes.h"

#include <algorithm>
#include <numeric>

namespace fusec {

static DimExpr substituted(const DimExpr &e, const std::map<SymbolId, DimExpr> &replaced) {
  return e.substitute([&](SymbolId s) -> std::optional<DimExpr> {
    auto found = replaced.find(s);
    return found == replaced.end() ? std::nullopt : std::optional(found->second);
  });
}

static int64_t floorQuotient(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool isPolynomial(const DimExpr &e) {
  const auto &parts = e.operands();
  return (parts.empty() || e.op() == DimExpr::Op::Add || e.op() == DimExpr::Op::Mul) &&
         std::all_of(parts.begin(), parts.end(), isPolynomial);
}

DimExpr SizeSolver::canonical(const State &state, const DimExpr &size) {
  if (size.isConst())
    return size;
  DimExpr out = state.replaced.empty() ? size : substituted(size, state.replaced);
  for (size_t s = 0; s < state.symbols.size(); ++s)
    if (state.symbols[s].divisor > 1)
      out = underDivisor(out, static_cast<SymbolId>(s), state.symbols[s].divisor);
  return state.parts.empty() ? out : replaceParts(out, state.parts);
}

/// Other sizes are in place of some: parts that hang on these are what they have become.
void SizeSolver::renewParts(State &state) {
  for (auto &[part, value] : state.parts) {
    part = substituted(part, state.replaced);
    value = substituted(value, state.replaced);
  }
  dropFixedParts(state);
}

/// What has become a polynomial over the inputs' symbols stands for nothing else.
void SizeSolver::dropFixedParts(State &state) {
  std::erase_if(state.parts, [&](const auto &pair) {
    const DimExpr &part = pair.first;
    const bool isComputed = part.op() == DimExpr::Op::Symbol &&
                            state.symbols[static_cast<size_t>(part.symbolId())].definition;
    return isPolynomial(part) && !isComputed;
  });
}

DimExpr SizeSolver::canonical(const DimExpr &size) const { return canonical(now, size); }

DimExpr SizeSolver::unified(const DimExpr &size) {
  constexpr size_t kMost = 256;
  const DimExpr own = canonical(size);
  if (own.op() == DimExpr::Op::Add || own.op() == DimExpr::Op::Mul) {
    DimExpr all = own.op() == DimExpr::Op::Add ? 0 : 1;
    for (const DimExpr &operand : own.operands())
      all = own.op() == DimExpr::Op::Add ? all + unified(operand) : all * unified(operand);
    if (all != own && !isTooLarge(all))
      return unified(all);
  }
  if (isPolynomial(own))
    return own;
  const std::vector<int64_t> sample(now.symbols.size(), 89);
  const auto value = own.evaluate(sample);
  for (const DimExpr &other : divided)
    if (other == own || (other.evaluate(sample) == value &&
                         solveEquality(other, own, now.symbols).kind == DimEquation::Kind::Always))
      return other;
  if (divided.size() < kMost)
    divided.push_back(own);
  return own;
}

SizeSolver::Answer SizeSolver::narrow(State &state, SymbolId symbol, int64_t min, int64_t max,
                                      int64_t divisor) const {
  Symbol s = state.symbols[static_cast<size_t>(symbol)];
  int64_t common;
  if (__builtin_mul_overflow(s.divisor / std::gcd(s.divisor, divisor), divisor, &common))
    return Answer::Open;
  s.divisor = common;
  s.min = std::max(s.min, min);
  s.max = std::min(s.max, max);
  // Multiples of the divisor only: the range shrinks to them.
  const int64_t rest = s.min % s.divisor;
  if (rest && __builtin_add_overflow(s.min, rest < 0 ? -rest : s.divisor - rest, &s.min))
    return Answer::Never;
  s.max = s.max == INT64_MAX ? s.max : floorQuotient(s.max, s.divisor) * s.divisor;
  if (s.min > s.max)
    return Answer::Never;
  if (isFavoured(s))
    s.opt = std::max(s.min, std::min(s.max, s.opt) / s.divisor * s.divisor);
  state.symbols[static_cast<size_t>(symbol)] = s;
  if (s.min == s.max) {
    const std::map<SymbolId, DimExpr> one{{symbol, DimExpr(s.min)}};
    for (auto &[id, value] : state.replaced)
      value = substituted(value, one);
    state.replaced.emplace(symbol, s.min);
    renewParts(state);
  }
  return Answer::Holds;
}

static int64_t ceilQuotient(int64_t a, int64_t b) { return -floorQuotient(-a, b); }

/// Values of the symbol of `e` between which e lies in [min, max]; bounds beyond 2^62 are none.
static std::pair<int64_t, int64_t> preimage(const LinearDim &e, int64_t min, int64_t max) {
  constexpr int64_t kFar = int64_t(1) << 62;
  auto isNear = [](int64_t v) { return v > -kFar && v < kFar; };
  int64_t low = INT64_MIN, high = INT64_MAX;
  if (!isNear(e.constant) || e.coefficient == INT64_MIN)
    return {low, high};
  const int64_t c = e.coefficient;
  if (isNear(min))
    (c > 0 ? low : high) =
        c > 0 ? ceilQuotient(min - e.constant, c) : floorQuotient(e.constant - min, -c);
  if (isNear(max))
    (c > 0 ? high : low) =
        c > 0 ? floorQuotient(max - e.constant, c) : ceilQuotient(e.constant - max, -c);
  return {low, high};
}

SizeSolver::Answer SizeSolver::replace(State &state, const SizeRule &rule, SymbolId symbol,
                                       const DimExpr &value) const {
  const Symbol own = state.symbols[static_cast<size_t>(symbol)];
  auto later = [&](SizeRule::Kind kind, DimExpr left, DimExpr right, const std::string &text) {
    SizeRule test = rule;
    test.kind = kind;
    test.left = std::move(left);
    test.right = std::move(right);
    test.text += ", and '" + own.name + "' " + text;
    test.tested = true;
    state.tests.push_back(std::move(test));
  };
  const DimExpr::Range range = value.range(state.symbols);
  if (range.max < own.min || range.min > own.max)
    return Answer::Never;
  const auto linear = asLinear(value);
  if (value.isConst()) {
    if (value.constValue() % own.divisor != 0)
      return Answer::Never;
  } else if (linear) {
    auto [low, high] = preimage(*linear, own.min, own.max);
    const bool isCopy = value.op() == DimExpr::Op::Symbol;
    Symbol &left = state.symbols[static_cast<size_t>(linear->symbol)];
    if (isCopy && isFavoured(own) && given[static_cast<size_t>(symbol)] &&
        !given[static_cast<size_t>(linear->symbol)])
      left.opt = std::clamp(own.opt, left.min, left.max);
    if (narrow(state, linear->symbol, low, high, isCopy ? own.divisor : 1) != Answer::Holds)
      return Answer::Never;
    if (!isCopy && !value.divisibleBy(own.divisor, state.symbols))
      later(SizeRule::Kind::Multiple, value, own.divisor,
            "must be a multiple of " + std::to_string(own.divisor));
  } else {
    if (range.min < own.min)
      later(SizeRule::Kind::AtLeast, value, own.min, "must be at least " + std::to_string(own.min));
    if (range.max > own.max)
      later(SizeRule::Kind::AtLeast, own.max, value, "must be at most " + std::to_string(own.max));
    if (!value.divisibleBy(own.divisor, state.symbols))
      later(SizeRule::Kind::Multiple, value, own.divisor,
            "must be a multiple of " + std::to_string(own.divisor));
  }
  // Narrowing may have left one value for a symbol in it.
  const DimExpr last = substituted(value, state.replaced);
  const std::map<SymbolId, DimExpr> one{{symbol, last}};
  for (auto &[id, other] : state.replaced)
    other = substituted(other, one);
  state.replaced.emplace(symbol, last);
  renewParts(state);
  return Answer::Holds;
}

SizeSolver::Answer SizeSolver::applyLeast(State &state, const SizeRule &rule, const DimExpr &size,
                                          int64_t least) const {
  const DimExpr::Range range = size.range(state.symbols);
  if (range.min >= least)
    return Answer::Holds;
  if (range.max < least)
    return Answer::Never;
  if (isAlwaysAtLeast(size, least, state.symbols))
    return Answer::Holds;
  Answer answer = Answer::Open;
  if (const auto linear = asLinear(size)) {
    auto [low, high] = preimage(*linear, least, INT64_MAX);
    answer = narrow(state, linear->symbol, low, high, 1);
  } else if (const auto from = leastValue(size, least, state.symbols)) {
    answer = narrow(state, from->symbol, from->value, INT64_MAX, 1);
  }
  if (answer == Answer::Holds)
    state.found.push_back(rule);
  return answer;
}

SizeSolver::Answer SizeSolver::applyMultiple(State &state, const SizeRule &rule,
                                             const DimExpr &size, int64_t divisor) const {
  if (size.divisibleBy(divisor, state.symbols))
    return Answer::Holds;
  if (size.isConst())
    return Answer::Never;
  const auto linear = asLinear(size);
  if (!linear || linear->constant % divisor != 0)
    return Answer::Open;
  const int64_t shared = std::gcd(linear->coefficient, divisor);
  const Answer answer = narrow(state, linear->symbol, INT64_MIN, INT64_MAX, divisor / shared);
  if (answer == Answer::Holds)
    state.found.push_back(rule);
  return answer;
}

SizeSolver::Answer SizeSolver::applyPart(State &state, SizeRule rule,
                                         const DimEquation &equation) const {
  for (auto &[part, value] : state.parts) {
    part = replaceParts(part, {{equation.part, equation.value}});
    value = replaceParts(value, {{equation.part, equation.value}});
  }
  dropFixedParts(state);
  state.parts.emplace_back(equation.part, equation.value);
  rule.tested = true;
  state.found.push_back(std::move(rule));
  return Answer::Holds;
}

SizeSolver::Answer SizeSolver::applyEqual(State &state, const SizeRule &rule, const DimExpr &left,
                                          const DimExpr &right) const {
  DimEquation equation = solveEquality(left, right, state.symbols);
  if (equation.kind == DimEquation::Kind::Solved)
    if (const auto [size, other] = sizeOfData(left, right); size >= 0)
      equation = {equation.kind, size, *other};
  switch (equation.kind) {
  case DimEquation::Kind::Always: return Answer::Holds;
  case DimEquation::Kind::Never: return Answer::Never;
  case DimEquation::Kind::Open: return Answer::Open;
  case DimEquation::Kind::AtLeast: {
    // Where the user says how large a size may be, it is for the user to say less.
    const auto linear = asLinear(equation.value);
    const bool isFree = linear && !given[static_cast<size_t>(linear->symbol)];
    return isFree ? applyLeast(state, rule, equation.value, 0) : Answer::Open;
  }
  case DimEquation::Kind::Multiple:
    return applyMultiple(state, rule, DimExpr::symbol(equation.symbol),
                         equation.value.constValue());
  case DimEquation::Kind::Part: return applyPart(state, rule, equation);
  case DimEquation::Kind::Solved: break;
  }
  const Answer answer = replace(state, rule, equation.symbol, equation.value);
  if (answer == Answer::Holds)
    state.found.push_back(rule);
  return answer;
}

SizeSolver::Answer SizeSolver::applyBroadcast(State &state, const SizeRule &rule,
                                              const DimExpr &left, const DimExpr &right) const {
  if (left == right || left.isConst(1))
    return Answer::Holds;
  const DimExpr::Range own = left.range(state.symbols), apart = (left - right).range(state.symbols);
  const bool mayBeOne = own.min <= 1 && own.max >= 1, mayBeEqual = apart.min <= 0 && apart.max >= 0;
  if (!mayBeOne)
    return applyEqual(state, rule, left, right);
  return mayBeEqual ? Answer::Open : applyEqual(state, rule, left, DimExpr(1));
}

SizeSolver::Answer SizeSolver::decide(State &state, const SizeRule &rule) const {
  const DimExpr left = canonical(state, rule.left), right = canonical(state, rule.right);
  switch (rule.kind) {
  case SizeRule::Kind::Equal: return applyEqual(state, rule, left, right);
  case SizeRule::Kind::Broadcast: return applyBroadcast(state, rule, left, right);
  case SizeRule::Kind::Multiple: return applyMultiple(state, rule, left, right.constValue());
  case SizeRule::Kind::AtLeast: return applyLeast(state, rule, left - right, 0);
  case SizeRule::Kind::Either: // what is never 1 is what the other one has to be, or 1
    if (right.isConst(1))
      return Answer::Holds;
    if (left.range(state.symbols).min > 1)
      return applyBroadcast(state, rule, right, left);
    return left == right || left.isConst(1) || right.range(state.symbols).min > 1
               ? applyBroadcast(state, rule, left, right)
               : Answer::Open;
  }
  return Answer::Open;
}

} // namespace fusec
