// What lets blocks of two phases run side by side: no block waits in vain, and none for less than it may.
//
// A block does all that it has to do in one phase before it begins the next one, and waits only for what earlier phases
// signal. So the blocks of phase 0 end; and if those of all phases before p end, every counter that phase p waits for
// reaches what it gets, and those of p end too: no deadlock, whatever the number of blocks that run at once, as long as
// each of these has its place. The counts of a kernel's blocks are taken one by one: at the symbols' `opt`, where they
// have to be few enough, and at the ends of their ranges, or as near to these as can be counted.
#include "Gir/Scope.h"
#include "Gir/Walk.h"
#include "Support/OptValues.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

namespace fusec {
namespace {

bool counts(const Stmt &s) { return s.kind == StmtKind::Signal || s.kind == StmtKind::Wait; }

using Counting = std::unordered_set<const Stmt *>;

/// Adds the statements that count and those that hold some; true if there are any.
bool findCounting(const std::vector<Stmt> &stmts, Counting &found) {
  const size_t before = found.size();
  for (const Stmt &s : stmts) {
    const bool inBody = findCounting(s.body, found), inElse = findCounting(s.elseBody, found);
    if (counts(s) || inBody || inElse)
      found.insert(&s);
  }
  return found.size() > before;
}

class CounterVerifier {
public:
  CounterVerifier(const GirKernel &kernel, std::vector<int64_t> symbols, int64_t mostSteps)
      : kernel(kernel), symbols(std::move(symbols)), mostSteps(mostSteps),
        integers(kernel, this->symbols), values(kernel.vars.size()),
        signalPhase(kernel.counters.size(), -1), signals(kernel.counters.size()) {}

  std::vector<std::string> run() {
    for (const GirCounters &c : kernel.counters)
      sizes.push_back(c.count.evaluate(symbols).value_or(0));
    need(!kernel.phases[0].waiting,
         [&] { return std::string("the first phase waits for nothing"); });
    need(!kernel.rounds || kernel.counters.empty(),
         [&] { return std::string("a kernel with rounds has no counters"); });
    places();
    for (const Phase &p : kernel.phases) {
      if (!problems.empty() || !findCounting(p.body, counting))
        continue;
      steps = 0;
      blocks(p, 0);
      uncounted = uncounted || steps >= mostSteps;
    }
    return std::move(problems);
  }
  bool isCounted() const { return !uncounted; }

private:
  static constexpr size_t kMostProblems = 4;

  /// `rule` makes the rule's text, where it is broken.
  template <typename Rule> void need(bool holds, const Rule &rule) {
    if (holds || problems.size() >= kMostProblems)
      return;
    std::string text = rule();
    if (std::find(problems.begin(), problems.end(), text) == problems.end())
      problems.push_back(std::move(text));
  }

  std::string named(const Stmt &s) const {
    return "%" + kernel.counters[static_cast<size_t>(s.counter)].name;
  }

  /// Checks the phases of signals and waits, and notes the phase that signals each set of counters.
  void places() {
    for (int p = 0; p < static_cast<int>(kernel.phases.size()); ++p)
      forEachStmt(kernel.phases[static_cast<size_t>(p)].body, [&](const Stmt &s) {
        if (s.kind != StmtKind::Signal)
          return;
        int &from = signalPhase[static_cast<size_t>(s.counter)];
        need(from < 0 || from == p,
             [&] { return "all signals of " + named(s) + " stand in one phase"; });
        from = p;
      });
    for (int p = 0; p < static_cast<int>(kernel.phases.size()); ++p)
      forEachStmt(kernel.phases[static_cast<size_t>(p)].body, [&](const Stmt &s) {
        if (s.kind != StmtKind::Wait)
          return;
        const int from = signalPhase[static_cast<size_t>(s.counter)];
        need(from >= 0 && from < p,
             [&] { return "a wait for " + named(s) + " stands in a phase behind its signals"; });
      });
  }

  void blocks(const Phase &p, size_t depth) {
    if (depth == p.blocks.size())
      return list(p.body);
    const int64_t trip = p.blocks[depth].trip.evaluate(symbols).value_or(0);
    for (int64_t i = 0; i < trip && steps < mostSteps; ++i) {
      values[static_cast<size_t>(p.blocks[depth].var)] = i;
      blocks(p, depth + 1);
    }
  }

  std::optional<int64_t> valueOf(NodeId id) const { return integers.at(id, values); }

  void list(const std::vector<Stmt> &stmts) {
    for (const Stmt &s : stmts) {
      if (counting.count(&s) == 0)
        continue;
      ++steps;
      if (counts(s)) {
        statement(s);
        continue;
      }
      const std::optional<int64_t> decides =
          valueOf(s.kind == StmtKind::Loop ? s.trip : s.predicate);
      need(decides.has_value(),
           [&] { return std::string("no data decides how often counters rise"); });
      if (s.kind == StmtKind::If)
        list(decides.value_or(1) ? s.body : s.elseBody);
      for (int64_t i = 0; s.kind == StmtKind::Loop && i < decides.value_or(0) && steps < mostSteps;
           ++i) {
        values[static_cast<size_t>(s.var)] = i;
        list(s.body);
      }
    }
  }

  void statement(const Stmt &s) {
    std::vector<int64_t> at;
    for (NodeId root : exprRoots(s)) {
      const std::optional<int64_t> value = valueOf(root);
      need(value.has_value(),
           [&] { return "no data decides which counter of " + named(s) + " is meant"; });
      at.push_back(value.value_or(0));
    }
    const int64_t size = sizes[static_cast<size_t>(s.counter)];
    std::map<int64_t, int64_t> &counted = signals[static_cast<size_t>(s.counter)];
    if (s.kind == StmtKind::Signal) {
      need(at[0] >= 0 && at[0] < size, [&] {
        return "signals rise counters that exist: " + named(s) + "[" + std::to_string(at[0]) +
               "] of " + std::to_string(size);
      });
      ++counted[at[0]];
      return;
    }
    if (at[0] > at[1] || !seen.insert({s.counter, at[0], at[1], at[2]}).second)
      return;
    need(at[0] >= 0 && at[1] < size, [&] {
      return "waits name counters that exist: " + named(s) + "[" + std::to_string(at[1]) + "] of " +
             std::to_string(size);
    });
    for (int64_t i = at[0]; i <= at[1] && problems.empty(); ++i)
      need(counted[i] == at[2], [&] {
        return "a wait is for all signals of its counter: " + named(s) + "[" + std::to_string(i) +
               "] gets " + std::to_string(counted[i]) + ", waited for are " + std::to_string(at[2]);
      });
  }

  const GirKernel &kernel;
  const std::vector<int64_t> symbols;
  const int64_t mostSteps;
  const IntegerValues integers;
  std::vector<int64_t> values; // of loop variables
  std::vector<int64_t> sizes;  // of each set of counters, as all of these
  std::vector<int> signalPhase;
  std::vector<std::map<int64_t, int64_t>> signals; // counter -> how many
  std::set<std::tuple<CounterId, int64_t, int64_t, int64_t>> seen;
  Counting counting; // in the phases that were looked at
  int64_t steps = 0;
  bool uncounted = false;
  std::vector<std::string> problems;
};

/// Blocks of the largest phase; nullopt where they are no number of 64 bits.
std::optional<int64_t> mostBlocks(const GirKernel &kernel, const std::vector<int64_t> &symbols) {
  int64_t most = 0;
  for (const Phase &p : kernel.phases) {
    const std::optional<int64_t> blocks = gridSize(p).evaluate(symbols);
    if (!blocks)
      return std::nullopt;
    most = std::max(most, *blocks);
  }
  return most;
}

/// Values of the symbols beside `opt`: all at the lower ends of their ranges, all at the upper ones, and each alone.
std::vector<std::vector<int64_t>> endsOfRanges(const std::vector<Symbol> &symbols) {
  const std::vector<int64_t> opt = optValues(symbols);
  std::vector<int64_t> low, high;
  for (const Symbol &s : symbols) {
    low.push_back((s.min + s.divisor - 1) / s.divisor * s.divisor);
    high.push_back(s.max / s.divisor * s.divisor);
  }
  std::vector<std::vector<int64_t>> list = {low, high};
  for (size_t i = 0; symbols.size() > 1 && i < symbols.size(); ++i)
    for (const int64_t end : {low[i], high[i]}) {
      list.push_back(opt);
      list.back()[i] = end;
    }
  return list;
}

/// ", at n=4, m=1"
std::string valuesText(const std::vector<Symbol> &symbols, const std::vector<int64_t> &values) {
  std::string text;
  for (size_t i = 0; i < symbols.size(); ++i)
    text += (i == 0 ? ", at " : ", ") + symbols[i].name + "=" + std::to_string(values[i]);
  return text;
}

/// Half the way back to `opt`.
std::vector<int64_t> nearer(const std::vector<int64_t> &values,
                            const std::vector<Symbol> &symbols) {
  std::vector<int64_t> half = optValues(symbols);
  for (size_t i = 0; i < symbols.size(); ++i)
    half[i] += (values[i] - half[i]) / 2 / symbols[i].divisor * symbols[i].divisor;
  return half;
}

} // namespace

std::vector<std::string> counterProblems(const GirKernel &kernel) {
  const bool waits = std::any_of(kernel.phases.begin(), kernel.phases.end(),
                                 [](const Phase &p) { return p.waiting; });
  if (kernel.phases.empty() || (kernel.counters.empty() && !waits))
    return {};
  const std::vector<int64_t> opt = optValues(kernel.symbols);
  CounterVerifier atOpt(kernel, opt, kMostCountingSteps);
  std::vector<std::string> problems = atOpt.run();
  if (!atOpt.isCounted())
    problems.push_back("blocks of a phase with counters are few enough to be counted");
  constexpr int64_t kMostStepsAtEnds = 1 << 17;
  for (std::vector<int64_t> values : endsOfRanges(kernel.symbols))
    for (bool counted = false; !counted && problems.empty() && values != opt;
         values = nearer(values, kernel.symbols)) {
      if (mostBlocks(kernel, values).value_or(kMostStepsAtEnds) >= kMostStepsAtEnds)
        continue;
      CounterVerifier verifier(kernel, values, kMostStepsAtEnds);
      std::vector<std::string> found = verifier.run();
      counted = verifier.isCounted();
      if (counted)
        for (const std::string &problem : found)
          problems.push_back(problem + valuesText(kernel.symbols, values));
    }
  return problems;
}

} // namespace fusec
