// Rules that speak of sizes that depend on data. These are known once the run has told them: shapes have to decide the
// others, and what is in front of a size of the data may stand in its place. The rule stays, to be tested in the run.
#include "Graph/SizeSolver.h"

#include <algorithm>

namespace fusec {

bool SizeSolver::isOfData(const SizeRule &rule) const {
  std::vector<SymbolId> used;
  rule.left.collectSymbols(used);
  rule.right.collectSymbols(used);
  return std::any_of(used.begin(), used.end(),
                     [&](SymbolId s) { return first[static_cast<size_t>(s)].isDataDependent(); });
}

/// The last size that depends on data where it stands alone on a side, and the other side.
std::pair<SymbolId, const DimExpr *> SizeSolver::sizeOfData(const DimExpr &left,
                                                            const DimExpr &right) const {
  std::pair<SymbolId, const DimExpr *> last{-1, nullptr};
  for (auto [own, other] : {std::pair(&left, &right), std::pair(&right, &left)})
    if (own->op() == DimExpr::Op::Symbol && own->symbolId() > last.first &&
        first[static_cast<size_t>(own->symbolId())].isDataDependent())
      last = {own->symbolId(), other};
  return last;
}

bool SizeSolver::isKnownInTime(const State &before, const State &after) const {
  if (after.parts.size() != before.parts.size())
    return false;
  return std::all_of(after.replaced.begin(), after.replaced.end(), [&](const auto &pair) {
    const auto &[symbol, value] = pair;
    const bool isOwn = first[static_cast<size_t>(symbol)].isDataDependent();
    std::vector<SymbolId> used;
    value.collectSymbols(used);
    return std::all_of(used.begin(), used.end(), [&, own = symbol](SymbolId s) {
      return !first[static_cast<size_t>(s)].isDataDependent() || (isOwn && s < own);
    });
  });
}

SizeSolver::Answer SizeSolver::apply(State &state, const SizeRule &rule) const {
  if (!isOfData(rule))
    return decide(state, rule);
  State next = state;
  const Answer answer = decide(next, rule);
  if (answer != Answer::Holds)
    return answer;
  if (!isKnownInTime(state, next))
    return Answer::Open;
  state = std::move(next);
  return answer;
}

} // namespace fusec
