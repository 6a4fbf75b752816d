// Concat of many operands: from equations to kernels the work grows with their number, and no kernel does, since
// machine code takes more than linear time for one function. Counted: kernels that the search prices and estimates,
// statements of kernels, operations of the largest, and allocations.
#include "../AllocationMeter.h"
#include "Driver/Searches.h"

#include <catch2/catch_all.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

std::string number(const char *letter, int i) { return "%" + (letter + std::to_string(i)); }

std::string concatOf(const std::vector<std::string> &operands, int width) {
  std::string list;
  for (const std::string &operand : operands)
    list += (list.empty() ? "" : ", ") + operand;
  return "%y: f32[4," + std::to_string(width) + "] = Concat(" + list +
         ") {axis = 1} @concat\nreturn %y\n";
}

std::string inputs(int n) {
  std::string text = "graph wide\n";
  std::vector<std::string> operands;
  for (int i = 0; i < n; ++i) {
    operands.push_back(number("x", i));
    text += "input " + operands.back() + ": f32[4,3]\n";
  }
  return text + concatOf(operands, 3 * n);
}

std::string parts(int n) {
  std::string text = "graph wide\ninput %x: f32[4," + std::to_string(3 * n) + "]\n";
  std::vector<std::string> operands;
  for (int i = n; i-- > 0;) // the other way round: else nothing is left to do
    operands.push_back(number("s", i));
  for (int i = 0; i < n; ++i)
    text += (i ? ", " : "") + number("s", i) + ": f32[4,3]";
  return text + " = Split(%x) {axis = 1} @split\n" + concatOf(operands, 3 * n);
}

std::string gathered(int n) {
  std::string constants, nodes;
  std::vector<std::string> operands;
  for (int i = 0; i < n; ++i) {
    operands.push_back(number("g", i));
    constants += "constant " + number("i", i) + " = i64[1] {" + std::to_string(i * 7 % n) + "}\n";
    nodes += operands.back() + ": f32[4,1] = Gather(%x, " + number("i", i) +
             ") {axis = 1} @gather" + std::to_string(i) + "\n";
  }
  return "graph wide\n" + constants + "input %x: f32[4," + std::to_string(3 * n) + "]\n" + nodes +
         concatOf(operands, n);
}

struct Work {
  int64_t priced = 0, estimated = 0, statements = 0, largest = 0;
  Allocations allocations;
};

Work workFor(const std::string &text, const std::string &target) {
  const Result<Graph> graph = parseGraph(text, "wide", ConstantStore());
  INFO((graph ? std::string() : format(graph.errors().front())));
  REQUIRE(graph.ok());
  TargetState state;
  state.target = *lookupTarget(target);
  Work work;
  meter = &work.allocations;
  const Result<ExprProgram> program = lowerProgram(*graph, true);
  const bool done = program && planTarget(*program, {}, state).ok() &&
                    scheduleTarget({}, state).ok() && lowerToGir(*program, state).ok();
  meter = nullptr;
  REQUIRE(done);
  work.priced = state.plan.evaluations.accurate;
  work.estimated = state.plan.evaluations.quick;
  const std::string kernels = print(state.gir, nullptr);
  work.statements = std::count(kernels.begin(), kernels.end(), '\n');
  for (const Pattern &pattern : state.plan.patterns) {
    int64_t operations = 0;
    for (const Item &item : pattern.program.items)
      operations += static_cast<int64_t>(std::get<Equation>(item.value).body.nodes.size());
    work.largest = std::max(work.largest, operations);
  }
  return work;
}

} // namespace

TEST_CASE("wide: the work for n, 2n and 4n operands of a Concat") {
  for (const std::string target : {"x86-64-v3", "sm_90", "gfx942"})
    for (const auto &[name, make] :
         {std::pair("inputs", &inputs), {"parts", &parts}, {"gathered", &gathered}}) {
      const Work n = workFor(make(150), target), twice = workFor(make(300), target),
                 fourTimes = workFor(make(600), target);
      INFO(target << " " << name);
      // In steps, where one more kernel is needed; what is quadratic grows to 4 and 16 times as much.
      auto grows = [&](auto count) {
        CHECK(count(twice) <= 3 * count(n));
        CHECK(count(fourTimes) <= 6 * count(n));
      };
      grows([](const Work &w) { return w.priced + w.estimated; });
      grows([](const Work &w) { return w.statements; });
      grows([](const Work &w) { return w.allocations.count; });
      grows([](const Work &w) { return w.allocations.bytes; });
      CHECK(fourTimes.largest <= 2048);
    }
}
