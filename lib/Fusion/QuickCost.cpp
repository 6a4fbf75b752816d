#include "Fusion/QuickCost.h"

#include "Fusion/QuickSeconds.h"

#include "Cost/Cost.h"
#include "Expr/Concatenate.h"
#include "Expr/OpWeight.h"
#include "Expr/Rows.h"
#include "Expr/transforms/Profile.h"
#include "Expr/transforms/Walk.h"
#include "Support/OptValues.h"

#include <algorithm>
#include <limits>

namespace fusec {

/// The fraction of a contraction's points that load an operand: register tiles reuse what they have loaded.
constexpr double kTiled = 0.125;
/// The fraction of them for which a GPU's block brings an operand into its memory: rows, or columns, of its tile share
/// it.
constexpr double kStaged = 1.0 / 32;

/// Loads for one point of the domain.
static double loadsOf(const Equation &e) {
  double reads = 0;
  for (NodeId id : e.body.reachable(bodyRoots(e)))
    reads += e.body[id].op == ScalarOp::Read || e.body[id].op == ScalarOp::ReadIf;
  return isContraction(e) ? reads * kTiled : reads;
}

namespace {

/// What equations read of one tensor.
struct Reads {
  int equations = 0;
  double elements = 0; // at most: one for each read at each point
};

/// Elements of each of the tensors that an equation of so many points reads, at most; no limit where it takes one as a
/// whole.
std::vector<double> elementsRead(const Equation &e, const std::vector<TensorId> &tensors,
                                 double points) {
  std::map<TensorId, double> reads;
  for (NodeId id : e.body.reachable(bodyRoots(e)))
    if (isRead(e.body[id]))
      ++reads[e.body[id].index];
  for (TensorId t : e.opaqueInputs)
    reads.erase(t);
  std::vector<double> out;
  for (TensorId t : tensors) {
    const auto known = reads.find(t);
    out.push_back(known == reads.end() ? std::numeric_limits<double>::max()
                                       : points * known->second);
  }
  return out;
}

} // namespace

/// Vector instructions for one point of the domain. A GPU's threads test each element that they stage for padding; a
/// CPU's loops do so for whole vectors, or rows.
static double operationsOf(const Equation &e, const ExprProgram &program, const Target &target) {
  const double stages = target.kind == TargetKind::Cpu ? 0 : kStaged;
  return weightOf(e) - (1 - stages) * stagingWeightOf(e, program);
}

/// Points of the result that one block makes. On a GPU, a contraction's threads make a register tile each, and another
/// reduction's block makes one point.
static double pointsPerBlock(const Equation &e, const Target &target) {
  constexpr double kPointsPerThread = 32;
  if (target.kind == TargetKind::Cpu || e.kind != EquationKind::Reduction)
    return target.lanes;
  return isContraction(e) ? target.lanes * kPointsPerThread : 1;
}

QuickCost::QuickCost(const FusionContext &context, const SearchGraph &region, const Target &target,
                     int64_t evaluations)
    : context(context), region(region), target(target), budget(evaluations) {
  symbols = optValues(context.program.symbols);
  for (const SearchGraph::Vertex &v : region.vertices) {
    works.push_back({1,
                     v.equation ? operationsOf(*v.equation, context.program, target) : 0,
                     v.equation ? loadsOf(*v.equation) : 0,
                     v.equation ? rowFacts(*v.equation) : RowFacts{},
                     {}});
    for (size_t a = 0; v.equation && a < v.equation->axes.size(); ++a)
      works.back().points *= elementsOf(v.equation->axes[a].extent);
    if (v.equation)
      works.back().elements = elementsRead(*v.equation, v.reads, works.back().points);
  }
  for (size_t v = 0; v < region.vertices.size(); ++v)
    alone.push_back(region.vertices[v].equation && budget.take() ? together({static_cast<int>(v)})
                                                                 : Estimate{0, 1});
}

double QuickCost::elementsOf(const DimExpr &e) const {
  return double(e.evaluate(symbols).value_or(1));
}

double QuickCost::bytesOf(TensorId t) const {
  double bytes = double(sizeInBytes(context.program.tensors[t].type));
  for (const DimExpr &d : context.program.tensors[t].shape)
    bytes *= elementsOf(d);
  return bytes;
}

double QuickCost::kernelSeconds(const std::vector<int> &vertices) const {
  if (vertices.size() == 1)
    return alone[vertices[0]].seconds;
  auto &met = known[context.packs];
  if (auto place = met.find(vertices); place != met.end())
    return place->second;
  if (!budget.take())
    return std::numeric_limits<double>::infinity();
  return met[vertices] = estimate(vertices);
}

double QuickCost::estimate(const std::vector<int> &vertices) const {
  // The quick model counts only the launches that a wavefront of scans saves.
  if (vertices.size() > 1 && std::any_of(vertices.begin(), vertices.end(), [&](int v) {
        return region.vertices[v].equation->kind == EquationKind::Scan;
      })) {
    double apart = -double(vertices.size() - 1) * target.launchSec;
    for (int v : vertices)
      apart += alone[v].seconds;
    return std::max(apart, target.launchSec);
  }
  const double seconds = together(vertices).seconds;
  const VertexSets parts =
      vertices.size() > 1 && context.packs ? connectedParts(region, vertices) : VertexSets();
  if (parts.size() < 2)
    return seconds;
  // Independent parts of a pack run at once, each on the cores that its blocks fill.
  double longest = 0, shares = 0;
  for (const std::vector<int> &part : parts) {
    const Estimate e = part.size() == 1 ? alone[part[0]] : together(part);
    const double work = e.seconds - target.launchSec;
    longest = std::max(longest, work);
    shares += work * std::min(1.0, e.parallel / target.cores);
  }
  return std::min(seconds, target.launchSec + std::max(longest, shares));
}

QuickCost::Estimate QuickCost::together(const std::vector<int> &vertices) const {
  const std::vector<const Equation *> equations = equationsOf(region, vertices);
  std::vector<TensorId> made;
  std::map<TensorId, Reads> read;
  double operations = 0, loads = 0;
  for (int v : vertices) {
    const SearchGraph::Vertex &vertex = region.vertices[v];
    made.insert(made.end(), vertex.writes.begin(), vertex.writes.end());
    for (size_t r = 0; r < vertex.reads.size(); ++r) {
      Reads &reads = read[vertex.reads[r]];
      ++reads.equations;
      reads.elements += works[v].elements[r];
    }
    operations += works[v].points * works[v].weight;
    loads += works[v].points * works[v].loads;
  }
  cost::Counts counts;
  std::sort(made.begin(), made.end());
  for (const auto &[t, reads] : read)
    // A gather touches no more of its table than it has points.
    if (!std::binary_search(made.begin(), made.end(), t))
      counts.readBytes += std::min(
          bytesOf(t), reads.elements * double(sizeInBytes(context.program.tensors[t].type)));
  for (TensorId t : made) {
    const auto inside = read.find(t);
    auto all = context.uses.find(t);
    if (all != context.uses.end() &&
        all->second > (inside == read.end() ? 0 : inside->second.equations))
      counts.writtenBytes += bytesOf(t);
  }
  double parallel = 1; // values that can be made side by side
  const Equation *tiled = nullptr;
  const bool one = std::all_of(equations.begin() + 1, equations.end(), [&](const Equation *e) {
    return finishesReduction(*equations.front(), *e);
  });
  if (one)
    tiled = equations.front();
  if (!tiled && collectsResults(equations))
    tiled = equations.back();
  if (tiled) {
    for (int d = 0; d < tiled->numSpatial; ++d)
      parallel *= elementsOf(tiled->axes[d].extent);
    parallel = std::max(1.0, parallel / pointsPerBlock(*tiled, target));
  } else {
    std::vector<const RowFacts *> group;
    for (int v : vertices)
      group.push_back(&works[v].rows);
    for (int d : commonRows(group))
      parallel *= elementsOf(equations[0]->axes[d].extent);
  }
  counts.blocks = parallel;
  counts.vectorOps = operations / (target.lanes * parallel);
  counts.vectorLoads = loads / (target.lanes * parallel);
  return {cost::delta(counts, target), parallel};
}

double QuickCost::gain(const std::vector<int> &vertices) const {
  double apart = 0;
  for (int v : vertices)
    apart += alone[v].seconds;
  return apart - kernelSeconds(vertices);
}

double quickSeconds(const ExprProgram &program, const std::map<TensorId, int> &uses,
                    const std::vector<const Equation *> &equations, const Target &target) {
  std::vector<Item> items;
  std::vector<int> vertices;
  for (const Equation *e : equations) {
    vertices.push_back(static_cast<int>(items.size()));
    items.push_back({*e});
  }
  const FusionContext context{program, uses};
  const SearchGraph region = makeSearchGraph(items);
  return QuickCost(context, region, target).kernelSeconds(vertices);
}

} // namespace fusec
