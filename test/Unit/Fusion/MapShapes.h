#pragma once
// Programs of many maps, in the shapes that networks have, and an oracle that answers at once.
#include "../ParseProgram.h"
#include "../ProgramText.h"
#include "Cost/Cost.h"
#include "Fusion/Plan.h"

#include <utility>

namespace fusec::test {

/// Maps over [64, 256], each the sum of what it reads, of one input %x.
class Maps {
public:
  Maps() { text.input("x", "64,256"); }
  /// The tensor that it makes.
  std::string add(const std::vector<std::string> &reads) {
    return add("m" + std::to_string(count), reads);
  }
  std::string add(const std::string &name, const std::vector<std::string> &reads) {
    std::string value = "%" + reads[0] + "[i, j]";
    for (size_t r = 1; r < reads.size(); ++r)
      value = "add(" + value + ", %" + reads[r] + "[i, j])";
    text.map(name, "i:64, j:256", "add(" + value + ", 1.0)");
    ++count;
    return name;
  }
  ExprProgram program() const { return parse(text); }
  int size() const { return count; }

private:
  int count = 0;
  ProgramText text{"maps"};
};

inline Maps chain(int operations) {
  Maps maps;
  for (std::string last = "x"; maps.size() < operations;)
    last = maps.add({last});
  return maps;
}

/// Every tenth one is read by the nine behind it, and the next tenth by one of those.
inline Maps fans(int operations) {
  Maps maps;
  std::string head = "x";
  while (maps.size() < operations) {
    head = maps.add({head});
    std::string last;
    for (int i = 0; i < 9; ++i)
      last = maps.add({head});
    head = last;
  }
  return maps;
}

/// All of them read the input.
inline Maps wide(int operations) {
  Maps maps;
  while (maps.size() < operations)
    maps.add({"x"});
  return maps;
}

/// Five operations with a branch, a join and a value that passes them by.
inline Maps layers(int operations) {
  Maps maps;
  for (std::string before = "x"; maps.size() < operations;) {
    const std::string a = maps.add({before}), b = maps.add({a}), c = maps.add({a});
    before = maps.add({maps.add({b, c}), before});
  }
  return maps;
}

struct Shape {
  const char *name;
  Maps (*make)(int operations);
};
inline constexpr Shape kShapes[] = {
    {"chain", chain}, {"fans", fans}, {"wide", wide}, {"layers", layers}};

/// A launch, and what its equations take: more of them spill what they keep.
inline double secondsOf(int equations) {
  return 3e-6 + 1e-7 * equations + 2e-8 * equations * equations;
}
inline KernelTime timeOf(const Pattern &pattern) {
  const double seconds = secondsOf(static_cast<int>(pattern.program.items.size()));
  return KernelTime{seconds, {{8, {seconds, {cost::Counts{}}}}}};
}

inline double secondsOf(const Plan &plan, const Target &target) {
  double seconds = 0;
  for (const PlanStep &step : plan.steps) {
    const Pattern &pattern = plan.patterns[static_cast<size_t>(step.pattern)];
    std::vector<int> bounds = pattern.phaseStarts;
    bounds.push_back(static_cast<int>(pattern.program.items.size()));
    seconds -= double(pattern.phaseStarts.size()) * cost::savedByPhase(target);
    for (int first = 0; int bound : bounds)
      seconds += secondsOf(bound - std::exchange(first, bound));
  }
  return seconds;
}

} // namespace fusec::test
