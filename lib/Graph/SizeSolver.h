#pragma once
#include "Support/DimSolve.h"
#include "Support/SizeRules.h"

#include <functional>
#include <map>

namespace fusec {

/// How a rule has to hold for what stands on it.
enum class Need {
  Solved, // shapes take it for granted
  Likely, // likewise; but there is another way, less likely, to fulfil what the node needs
  Tested, // shapes stand as they are: a test is enough
  Case,   // likewise, where shapes serve more than the likely way, which may lead nowhere
  Unlikely, // likewise, where the likely way is no symbol's to solve: when nothing else has led anywhere
  Declared // likewise, by the model of what its nodes make: what these and the user say comes first
};

/// What the nodes of a model ask of its sizes. What determines a symbol, or narrows its range, is solved: from then on
/// canonical() writes sizes over the symbols that are left. The rest is kept, to be tested when shapes are set.
///
/// A model is imported in rounds: what one of them finds may decide more in the next one, whose sizes are canonical
/// from the inputs on. Where a node leaves a choice (two sizes to broadcast together are equal or one is 1), shapes
/// serve all of it first. Where a later node then asks what no symbol solves, everything begins anew and the likely way
/// is assumed, when all that must be so is found; what must be so afterwards takes the assumptions back.
class SizeSolver {
public:
  enum class Answer {
    Holds, // as it is, or now that it is solved, or by a test
    Never,
    Open // it neither determines a symbol, nor can shapes stand as they are while it is merely tested
  };

  /// The symbols by id, with the ranges as they were found to be.
  const std::vector<Symbol> &symbols() const { return now.symbols; }
  /// The id of a name, or of a definition; a new one gets this range. `given`: by the user.
  SymbolId symbol(const Symbol &range, bool given);

  DimExpr canonical(const DimExpr &size) const;
  /// canonical(), and of sizes that are equal for all values of their symbol, though not as expressions, the first one:
  /// who asks for a form makes it the one that others are given.
  DimExpr unified(const DimExpr &size);
  /// The one size that is left for a symbol, or the symbol's expression.
  DimExpr valueOf(SymbolId id) const { return canonical(DimExpr::symbol(id)); }

  /// Makes an expression that is 1 in runs that take the branch around a node, else 0, or nothing.
  using IsTaken = std::function<std::optional<DimExpr>()>;
  /// `mayBeLeftOut`: a run may leave the node out. With `isTaken` a test is of runs alone that do not.
  Answer require(const SizeRule &rule, Need need, bool mayBeLeftOut = false,
                 const IsTaken &isTaken = {});
  /// Assumes rules that shapes can do without: all of them, or none where one of them finds nothing, or overrules what
  /// the user says. What must be so afterwards takes them back.
  void suppose(const std::vector<SizeRule> &rules);
  /// Until leaveBranch(), what is asked is a branch's, by a name of its own; branches may lie in each other. What
  /// determines a symbol there is solved for the branch alone, and tested in runs that take it.
  void enterBranch(const std::string &name, const IsTaken &isTaken);
  void leaveBranch();
  /// Why what was found before excludes a rule: ", where c is b by node 'sum' (Add), and b is 3 by node 'conv' (Conv)";
  /// "" where it does not.
  std::string contradiction(const SizeRule &rule) const;

  /// The rule that determined a size as the last one; nothing where none has.
  std::optional<SizeRule> lastSolved() const {
    return forced.empty() ? std::nullopt : std::optional(forced.back());
  }
  /// What rounds stand on, and may lead nowhere by. Sets of these are bits of a number, in whose order they are given
  /// up: equality of sizes to broadcast is likelier than that none is 0, both than that the model declares what its
  /// nodes do not make, and all of these than ways of which no symbol solves the likely one.
  enum Ground : unsigned {
    kCases = 1,    // choices are served; without it equality is assumed
    kEmpty = 2,    // sizes of which the user does not speak may be 0
    kDeclared = 4, // sizes that the model declares of its tensors hold
    kUsual = 8     // no unlikely way is taken (Need::Unlikely)
  };
  /// Where a round has led nowhere: forgets all, and from then on stands on less; false where nothing is left to give
  /// up. `refused`: the node that may have failed for a size of 0, and in words what it needs; without it sizes of 0
  /// are not given up.
  bool giveUp(const std::optional<SizeRule> &refused);
  bool standsOn(Ground ground) const { return (givenUp & ground) == 0; }

  void beginRound();
  /// Whether something was found that the next round has to begin with.
  bool endRound();

  /// What the last round leaves, where the symbols are numbered as `newIds` says and `inferred` are behind them. A
  /// symbol that is gone has -1, and no rule.
  SizeRules rules(const std::vector<SymbolId> &newIds, std::vector<InferredSize> inferred) const;

private:
  struct State {
    std::vector<Symbol> symbols;
    std::map<SymbolId, DimExpr> replaced;           // by expressions over symbols that are not
    std::vector<std::pair<DimExpr, DimExpr>> parts; // of sizes, and what they are: that is tested
    std::vector<SizeRule> found; // what determined a symbol or narrowed its range
    std::vector<SizeRule> tests; // that come of these
  };
  /// Whether it is a size of the inputs of which the user does not speak.
  bool isFree(size_t id) const;
  /// Says which of `rules` have made these sizes what they are, or gave them their range.
  std::string reasons(const Shape &sizes, const std::vector<SizeRule> &rules) const;
  static DimExpr canonical(const State &state, const DimExpr &size);
  static void renewParts(State &state);
  static void dropFixedParts(State &state);
  /// What computes it may give more or less now than when it was added.
  void renewRange(size_t id, const Symbol &range);
  Answer apply(State &state, const SizeRule &rule) const;
  Answer decide(State &state, const SizeRule &rule) const;
  Answer applyEqual(State &state, const SizeRule &rule, const DimExpr &left,
                    const DimExpr &right) const;
  Answer applyPart(State &state, SizeRule rule, const DimEquation &equation) const;
  Answer applyLeast(State &state, const SizeRule &rule, const DimExpr &size, int64_t least) const;
  Answer applyMultiple(State &state, const SizeRule &rule, const DimExpr &size,
                       int64_t divisor) const;
  Answer applyBroadcast(State &state, const SizeRule &rule, const DimExpr &left,
                        const DimExpr &right) const;
  Answer replace(State &state, const SizeRule &rule, SymbolId symbol, const DimExpr &value) const;
  Answer narrow(State &state, SymbolId symbol, int64_t min, int64_t max, int64_t divisor) const;
  void test(const SizeRule &rule);
  void test(const SizeRule &rule, const State &in);
  /// Solves it for the branch at hand; false where runs that take this cannot be told.
  bool solveInBranch(const SizeRule &rule, State next, const IsTaken &isTaken);
  /// Applies those of these rules that find something more and contradict nothing; whether there are any.
  bool assume(const std::vector<SizeRule> &rules);
  /// A symbol that a test asks to be at least a size is at least the least that this one may be.
  void narrowByTest(SizeRule rule);
  /// Whether one of the user's sizes has less room in `next` than it has.
  bool overrulesUser(const State &next) const;
  /// Whether it speaks of sizes that depend on data.
  bool isOfData(const SizeRule &rule) const;
  bool isKnownInTime(const State &before, const State &after) const;
  std::pair<SymbolId, const DimExpr *> sizeOfData(const DimExpr &left, const DimExpr &right) const;
  void replay();

  State now;
  std::vector<Symbol> first;    // the symbols as they were added
  std::vector<bool> given;      // by the user
  std::vector<SizeRule> forced; // all that is not assumed, in the order in which it was found
  std::vector<SizeRule> pending, declared; // assumptions of this round
  std::vector<SizeRule> roundTests;
  std::vector<DimExpr> divided; // what unified() has given that is no polynomial
  struct Branch {
    std::string name;
    State around;
  };
  std::vector<Branch> branches;                              // that were entered, from outside
  std::map<std::string, std::vector<SizeRule>> solvedInside; // by the name of a branch
  bool hasAssumed = false, foundForced = false, startsAnew = false;
  unsigned givenUp = 0, stoodOn = 0; // sets of grounds; on the latter some round has built
  bool assumedDeclared = false;
  std::optional<SizeRule>
      noneEmpty; // why sizes of which the user does not speak are not 0, where that is given up
};

} // namespace fusec
