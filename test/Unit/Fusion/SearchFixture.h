#pragma once
// A program with what the searches for its kernels ask: its region, the quick model on sm_80.
#include "Fusion/Beam.h"
#include "Fusion/CutPattern.h"
#include "MapShapes.h"

#include <catch2/catch_all.hpp>

namespace fusec::test {

struct Fixture {
  explicit Fixture(const std::string &text) : Fixture(parse(text)) {}
  explicit Fixture(ExprProgram of)
      : program(std::move(of)), target(*lookupTarget("sm_80")), context{program, {}},
        region(makeSearchGraph(program.items)) {
    countUses(program.items, context.uses);
    for (TensorId t : program.outputs)
      ++context.uses[t];
    quick.emplace(context, region, target);
  }
  int vertex(const std::string &name) const {
    for (size_t v = 0; v < region.vertices.size(); ++v)
      if (region.vertices[v].equation && region.vertices[v].equation->name == name)
        return static_cast<int>(v);
    FAIL("no equation " << name);
    return -1;
  }
  std::vector<int> vertices(const std::vector<std::string> &names) const {
    std::vector<int> out;
    for (const std::string &name : names)
      out.push_back(vertex(name));
    return out;
  }
  bool acyclic(const VertexSets &sets, const std::vector<std::string> &names) const {
    Partition partition(region.vertices.size(), -1);
    for (size_t s = 0; s < sets.size(); ++s)
      for (int v : sets[s])
        partition[v] = static_cast<int>(s);
    return staysAcyclic(region, sets, partition, vertices(names));
  }
  PlanDraft fromTopDown(VertexSets &sets) const {
    Result<PlanDraft> draft = topDown(
        context, region,
        [&](const std::vector<int> &kernel) -> Result<bool> { return quick->gain(kernel) > 0; },
        sets);
    REQUIRE(draft.ok());
    return *draft;
  }

  ExprProgram program;
  Target target;
  FusionContext context;
  SearchGraph region;
  std::optional<QuickCost> quick;
};

/// Maps with names, and what each reads.
inline ExprProgram
maps(const std::vector<std::pair<std::string, std::vector<std::string>>> &equations) {
  Maps all;
  for (const auto &[name, reads] : equations)
    all.add(name, reads);
  return all.program();
}

} // namespace fusec::test
