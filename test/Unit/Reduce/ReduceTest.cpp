// What fusec-reduce leaves: no part too many, and programs that verify.
#include "Minimise.h"
#include "Parts.h"

#include "Expr/Lower.h"
#include "Expr/Passes.h"
#include "Graph/Passes.h"
#include "Onnx/Import.h"
#include "Reference/GraphInterpreter.h"

#include <catch2/catch_all.hpp>

#include <algorithm>
#include <filesystem>
#include <random>

using namespace fusec;
using namespace fusec::reduce;

namespace {

size_t countKept(const Choice &kept) {
  return static_cast<size_t>(std::count(kept.begin(), kept.end(), true));
}

Graph importTiny(const std::string &path) {
  ImportOptions options;
  options.evaluator = referenceEvaluator();
  Result<Graph> graph = importOnnx(path, options);
  REQUIRE(graph.ok());
  return std::move(*graph);
}

/// Calls `visit` for each network under models/tiny.
template <typename Visit> void forEachTiny(Visit visit) {
  int seen = 0;
  for (const auto &entry : std::filesystem::directory_iterator(FUSEC_SOURCE_DIR "/models/tiny"))
    if (entry.path().extension() == ".onnx") {
      INFO(entry.path().stem());
      visit(importTiny(entry.path().string()));
      ++seen;
    }
  CHECK(seen == 16);
}

Choice randomKept(size_t count, std::mt19937 &random) {
  Choice kept(count);
  for (size_t i = 0; i < count; ++i)
    kept[i] = random() % 3 == 0;
  return kept;
}

} // namespace

TEST_CASE("What is needed stays, and nothing else") {
  std::mt19937 random(3);
  for (size_t count : {1, 2, 3, 7, 64, 100})
    for (int round = 0; round < 20; ++round) {
      Choice needed(count);
      for (size_t i = 0; i < count; ++i)
        needed[i] = random() % 10 == 0;
      int tried = 0;
      Choice kept = minimise(count, [&](const Choice &some) {
        ++tried;
        for (size_t i = 0; i < count; ++i)
          if (needed[i] && !some[i])
            return false;
        return true;
      });
      CHECK(kept == needed);
      CHECK(tried <= static_cast<int>(8 * count + 16));
    }
}

TEST_CASE("No single part can go from what is left, also where parts stand for each other") {
  std::mt19937 random(4);
  for (int round = 0; round < 50; ++round) {
    constexpr size_t kCount = 40;
    std::vector<int> group(kCount);
    for (int &g : group)
      g = static_cast<int>(random() % 6);
    // Of each group at least one, and an even number of all.
    auto interesting = [&](const Choice &some) {
      std::vector<bool> present(6);
      for (size_t i = 0; i < kCount; ++i)
        if (some[i])
          present[static_cast<size_t>(group[i])] = true;
      return std::count(present.begin(), present.end(), true) == 6 && countKept(some) % 2 == 0;
    };
    Choice kept = minimise(kCount, interesting);
    REQUIRE(interesting(kept));
    for (size_t i = 0; i < kCount; ++i)
      if (kept[i]) {
        Choice fewer = kept;
        fewer[i] = false;
        CHECK_FALSE(interesting(fewer));
      }
  }
}

TEST_CASE("Any choice of a network's nodes is a program of its own") {
  std::mt19937 random(5);
  forEachTiny([&](const Graph &graph) {
    const size_t count = graph.body.nodes.size();
    std::optional<Graph> all = partOf(graph, Choice(count, true));
    REQUIRE(all);
    CHECK(all->body.nodes.size() == count);
    CHECK_FALSE(partOf(graph, Choice(count, false)));
    int made = 0;
    for (int round = 0; round < 10; ++round) {
      Choice kept = randomKept(count, random);
      if (std::optional<Graph> part = partOf(graph, kept)) {
        CHECK(verify(*part).ok());
        CHECK(part->body.nodes.size() == countKept(kept));
        ++made;
      }
    }
    CHECK(made >= 8);
    for (size_t i = 0; i < graph.body.outputs.size(); ++i) {
      Choice one(graph.body.outputs.size());
      one[i] = true;
      std::optional<Graph> part = withOutputs(graph, one);
      REQUIRE(part);
      CHECK(part->body.outputs.size() == 1);
    }
  });
}

TEST_CASE("Any choice of a network's equations is a program of its own") {
  std::mt19937 random(6);
  forEachTiny([&](const Graph &graph) {
    Result<ExprProgram> lowered = lowerGraph(graph);
    REQUIRE(lowered.ok());
    std::optional<ExprProgram> program = eliminateDeadCode(std::move(*lowered));
    const size_t count = program->items.size();
    CHECK_FALSE(partOf(*program, Choice(count, false)));
    int made = 0;
    for (int round = 0; round < 10; ++round) {
      Choice kept = randomKept(count, random);
      if (std::optional<ExprProgram> part = partOf(*program, kept)) {
        CHECK(verify(*part).ok());
        CHECK(part->items.size() == countKept(kept));
        ++made;
      }
    }
    CHECK(made >= 8);
  });
}
