// Concat of many operands: from equations to kernels the work grows with their number, and no kernel does, since
// machine code takes more than linear time for one function. Counted: kernels that the search prices and estimates,
// statements of kernels, operations of the largest, and allocations.
#include "../AllocationMeter.h"
#include "Driver/TargetSearch.h"
#include "Graph/Passes.h"

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

/// Each Concat takes what the one before it makes, and one more.
std::string chained(int n) {
  std::string text = "graph wide\n";
  for (int i = 0; i < n; ++i)
    text += "input " + number("x", i) + ": f32[4,3]\n";
  std::string before = number("x", 0);
  for (int i = 1; i + 1 < n; ++i) {
    text += number("c", i) + ": f32[4," + std::to_string(3 * i + 3) + "] = Concat(" + before +
            ", " + number("x", i) + ") {axis = 1} @c" + std::to_string(i) + "\n";
    before = number("c", i);
  }
  return text + concatOf({before, number("x", n - 1)}, 3 * n);
}

/// Maps side by side, each of a symbolic size of its own.
std::string sizes(int n) {
  std::string symbols, inputs, nodes, outputs;
  for (int i = 0; i < n; ++i) {
    const std::string size = "s" + std::to_string(i);
    symbols += "symbol " + size + " = 1..9223372036854775807 opt 1 divisor 1\n";
    inputs += "input " + number("x", i) + ": f32[" + size + "]\n";
    nodes += number("y", i) + ": f32[" + size + "] = Relu(" + number("x", i) + ") @relu" +
             std::to_string(i) + "\n";
    outputs += (i ? ", " : "") + number("y", i);
  }
  return "graph wide\n" + symbols + inputs + nodes + "return " + outputs + "\n";
}

struct Work {
  int64_t priced = 0, estimated = 0, statements = 0, characters = 0, largest = 0;
  Allocations allocations;
};

Work workFor(const std::string &text, const std::string &target) {
  Result<Graph> graph = parseGraph(text, "wide", ConstantStore());
  INFO((graph ? std::string() : format(graph.errors().front())));
  REQUIRE(graph.ok());
  TargetState state;
  state.target = *lookupTarget(target);
  Work work;
  meter = &work.allocations;
  for (const auto pass : {mergeConcatenations, eliminateDeadCode})
    graph = pass(std::move(*graph), {});
  const Result<ExprProgram> program = lowerProgram(*graph, true);
  const bool done = program && planTarget(*program, {}, {}, state).ok() &&
                    scheduleTarget({}, state).ok() && lowerToGir(*program, state).ok();
  meter = nullptr;
  REQUIRE(done);
  work.priced = state.plan.evaluations.accurate;
  work.estimated = state.plan.evaluations.quick;
  const std::string kernels = print(state.gir, nullptr);
  work.characters = static_cast<int64_t>(kernels.size());
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
    for (const auto &[name, make] : {std::pair("inputs", &inputs),
                                     {"parts", &parts},
                                     {"gathered", &gathered},
                                     {"chained", &chained}}) {
      const Work n = workFor(make(150), target), twice = workFor(make(300), target),
                 fourTimes = workFor(make(600), target);
      INFO(target << " " << name);
      // In steps, where one more kernel is needed; what is quadratic grows to 4 and 16 times as much. A body is looked
      // at as a whole for each of its reads, up to its 512 nodes, and that by each schedule of a map.
      auto grows = [&](auto count) {
        CHECK(count(twice) <= 3.3 * count(n));
        CHECK(count(fourTimes) <= 8 * count(n));
      };
      grows([](const Work &w) { return w.priced + w.estimated; });
      grows([](const Work &w) { return w.statements; });
      grows([](const Work &w) { return w.allocations.count; });
      grows([](const Work &w) { return w.allocations.bytes; });
      CHECK(fourTimes.largest <= 2048);
    }
}

TEST_CASE("wide: code for symbolic sizes that differ grows with their number") {
  for (const std::string target : {"x86-64-v3", "sm_90", "gfx942"}) {
    INFO(target);
    const Work n = workFor(sizes(16), target), twice = workFor(sizes(32), target),
               fourTimes = workFor(sizes(64), target);
    CHECK(twice.characters <= 2.5 * n.characters);
    CHECK(fourTimes.characters <= 5 * n.characters);
  }
}
