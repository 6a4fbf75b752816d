// Plans of ten thousand operations: the work grows with their number, whatever their shape, in under five seconds.
// The oracle here answers at once; what schedules cost is asked once a pattern, and networks repeat theirs.
#include "../ParseProgram.h"
#include "Fusion/Plan.h"

#include <catch2/catch_all.hpp>
#include <ctime>
#include <set>

using namespace fusec;
using test::parse;

namespace {

/// Maps over [64, 256], each the sum of what it reads.
class Maps {
public:
  /// The tensor that it makes.
  std::string add(const std::vector<std::string> &reads) {
    const std::string name = "m" + std::to_string(count++);
    std::string value = "%" + reads[0] + "[i, j]";
    for (size_t r = 1; r < reads.size(); ++r)
      value = "add(" + value + ", %" + reads[r] + "[i, j])";
    bodies += "map " + name + " [i:64, j:256]\n  %" + name + " = add(" + value + ", 1.0)\n";
    read.insert(reads.begin(), reads.end());
    return name;
  }
  ExprProgram program() const {
    std::string tensors = "tensor %x: f32[64,256] input\n", outputs;
    for (int i = 0; i < count; ++i) {
      const std::string name = "m" + std::to_string(i);
      const bool isRead = read.count(name) != 0;
      tensors += "tensor %" + name + ": f32[64,256] " + (isRead ? "temp\n" : "output\n");
      if (!isRead)
        outputs += (outputs.empty() ? "%" : ", %") + name;
    }
    return parse("expr maps\n" + tensors + "inputs (%x)\noutputs (" + outputs + ")\n" + bodies);
  }
  int size() const { return count; }

private:
  int count = 0;
  std::string bodies;
  std::set<std::string> read;
};

Maps chain(int operations) {
  Maps maps;
  for (std::string last = "x"; maps.size() < operations;)
    last = maps.add({last});
  return maps;
}

/// Every tenth one is read by the nine behind it, and the next tenth by one of those.
Maps fans(int operations) {
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
Maps wide(int operations) {
  Maps maps;
  while (maps.size() < operations)
    maps.add({"x"});
  return maps;
}

/// Five operations with a branch, a join and a value that passes them by.
Maps layers(int operations) {
  Maps maps;
  for (std::string before = "x"; maps.size() < operations;) {
    const std::string a = maps.add({before}), b = maps.add({a}), c = maps.add({a});
    before = maps.add({maps.add({b, c}), before});
  }
  return maps;
}

struct Work {
  double seconds; // of the processor
  int asked = 0;
};

Work workFor(const Maps &maps) {
  const ExprProgram program = maps.program();
  Work work{};
  const ScheduleOracle oracle = [&](const Pattern &pattern) -> Result<KernelTime> {
    ++work.asked;
    // More of them spill what they keep.
    const double equations = double(pattern.program.items.size());
    const double seconds = 3e-6 + 1e-7 * equations + 2e-8 * equations * equations;
    return KernelTime{seconds, {{8, seconds}}};
  };
  const std::clock_t start = std::clock();
  const Result<Plan> plan = buildPlan(program, *lookupTarget("sm_80"), oracle);
  work.seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  REQUIRE(plan.ok());
  CHECK(plan->steps.size() < static_cast<size_t>(maps.size()));
  return work;
}

} // namespace

TEST_CASE(
    "plan: ten thousand operations take work that grows with their number, and no long time") {
  struct Shape {
    const char *name;
    Maps (*make)(int operations);
  };
  for (const auto &[name, make] :
       {Shape{"chain", chain}, Shape{"fans", fans}, Shape{"wide", wide}, Shape{"layers", layers}}) {
    INFO(name);
    const Work small = workFor(make(1000)), large = workFor(make(10000));
    WARN(name << ": " << large.seconds << " s, " << large.asked << " patterns asked, of 1000 "
              << small.seconds << " s, " << small.asked);
    CHECK(large.asked < 11 * small.asked);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
    CHECK(large.seconds < 5);
#endif
  }
}
