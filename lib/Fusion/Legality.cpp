#include "Fusion/Legality.h"

#include "Expr/Arguments.h"
#include "Expr/Concatenate.h"
#include "Expr/LoopSpace.h"
#include "Expr/Rows.h"
#include "Expr/Wavefront.h"
#include "Support/DimLimits.h"
#include "Support/TunedSizes.h"

#include <algorithm>

namespace fusec {

namespace {

constexpr size_t kMostEquations = 64;
// Operations of several equations: register allocators of LLVM and ptxas take more than linear time for a function.
constexpr size_t kMostNodes = 2048;

std::string_view nameOf(EquationKind kind) {
  switch (kind) {
  case EquationKind::Scan: return "a scan";
  case EquationKind::Scatter: return "a scatter";
  case EquationKind::Opaque: return "opaque";
  default: return "";
  }
}

/// Why a kernel cannot hold the equation beside others.
std::string whyAlone(const SearchGraph::Vertex &v) {
  if (!v.hasElements)
    return v.equation->name + " has no elements";
  if (std::string_view kind = nameOf(v.kind); !kind.empty())
    return v.equation->name + " is " + std::string(kind) + ", a kernel of its own";
  return "";
}

std::string whatHostDoes(const Control &control) {
  return control.name + (control.kind == Control::Kind::Size
                             ? " is a size that the host reads"
                             : " is a branch or a loop of the host");
}

/// What lies side by side in a kernel begins behind the blocks of what comes before it, at a sum of their counts: with
/// symbolic sizes that differ, code grows with the square of their number, and LLVM takes more than linear time for
/// such sums.
bool haveFewSizes(const SearchGraph &region, const std::vector<int> &vertices) {
  constexpr size_t kMostSizes = 8;
  constexpr int64_t kMostNodesOfSizes = 128;
  std::vector<const DimExpr *> sizes;
  int64_t nodes = 0;
  for (int v : vertices)
    for (const Axis &axis : region.vertices[v].equation->axes) {
      const DimExpr &size = axis.extent;
      if (size.isConst() || std::any_of(sizes.begin(), sizes.end(),
                                        [&](const DimExpr *known) { return *known == size; }))
        continue;
      sizes.push_back(&size);
      nodes += sizeOf(size).nodes;
      if (sizes.size() > 1 && (sizes.size() > kMostSizes || nodes > kMostNodesOfSizes))
        return false;
    }
  return true;
}

/// Why so many vertices are too many for a kernel.
std::string whyTooMany(const SearchGraph &region, const std::vector<int> &vertices) {
  if (vertices.size() > kMostEquations)
    return "a kernel holds " + std::to_string(kMostEquations) + " equations at most";
  size_t nodes = 0;
  for (int v : vertices)
    nodes += region.vertices[v].equation->body.nodes.size();
  if (vertices.size() > 1 && nodes > kMostNodes)
    return "they have " + std::to_string(nodes) + " operations, and a kernel has " +
           std::to_string(kMostNodes) + " at most";
  if (vertices.back() - vertices.front() > kSearchWindow)
    return "they lie more than " + std::to_string(kSearchWindow) + " equations apart";
  if (vertices.size() > 1 && !haveFewSizes(region, vertices))
    return "they have more sizes that depend on symbols than a kernel takes";
  size_t most = 0; // arguments, those counted again that several vertices use
  for (int v : vertices)
    most += region.vertices[v].reads.size() + region.vertices[v].writes.size();
  if (most <= kMostArguments)
    return "";
  std::vector<TensorId> arguments;
  arguments.reserve(most);
  for (int v : vertices)
    for (const std::vector<TensorId> *of : {&region.vertices[v].reads, &region.vertices[v].writes})
      arguments.insert(arguments.end(), of->begin(), of->end());
  std::sort(arguments.begin(), arguments.end());
  arguments.erase(std::unique(arguments.begin(), arguments.end()), arguments.end());
  if (arguments.size() > kMostArguments)
    return "a kernel takes " + std::to_string(kMostArguments) + " tensors at most";
  return "";
}

} // namespace

bool isNeededOutside(const FusionContext &context, const SearchGraph &region,
                     const std::vector<int> &vertices, TensorId tensor) {
  int inside = 0;
  for (int v : vertices) {
    const std::vector<TensorId> &reads = region.vertices[v].reads;
    inside += std::find(reads.begin(), reads.end(), tensor) != reads.end();
  }
  auto it = context.uses.find(tensor);
  return it != context.uses.end() && it->second > inside;
}

/// Parts side by side (FusionStitching's kernel packing), each a kernel that spreads over blocks of its own.
static bool isPack(const FusionContext &context, const SearchGraph &region,
                   const std::vector<int> &vertices) {
  if (!whyTooMany(region, vertices).empty())
    return false;
  const VertexSets parts = connectedParts(region, vertices);
  return parts.size() > 1 && std::all_of(parts.begin(), parts.end(), [&](const auto &part) {
           for (int v : part)
             if (!whyAlone(region.vertices[v]).empty())
               return false;
           return whyNotOneKernel(context, region, part).empty();
         });
}

/// Equations that can stand beside others, of which the last one alone makes what others need.
static bool onlyLastIsNeeded(const FusionContext &context, const SearchGraph &region,
                             const std::vector<int> &vertices) {
  for (int v : vertices)
    if (!whyAlone(region.vertices[v]).empty() ||
        (v != vertices.back() &&
         isNeededOutside(context, region, vertices, region.vertices[v].writes[0])))
      return false;
  return whyTooMany(region, vertices).empty();
}

/// Reductions side by side whose results one map puts together: one equation, where they differ in operands alone.
static bool isConcatenation(const FusionContext &context, const SearchGraph &region,
                            const std::vector<int> &vertices) {
  return collectsResults(equationsOf(region, vertices)) &&
         onlyLastIsNeeded(context, region, vertices);
}

std::vector<const Equation *> equationsOf(const SearchGraph &region,
                                          const std::vector<int> &vertices) {
  std::vector<const Equation *> equations;
  equations.reserve(vertices.size());
  for (int v : vertices)
    equations.push_back(region.vertices[v].equation);
  return equations;
}

/// Scans and what stands between them run as one scan, one a step behind the other (Expr/Wavefront.h).
static std::string whyNoWavefront(const FusionContext &context, const SearchGraph &region,
                                  const std::vector<int> &vertices) {
  if (std::string reason = whyTooMany(region, vertices); !reason.empty())
    return reason;
  for (int v : vertices)
    if (region.vertices[v].kind != EquationKind::Scan)
      if (std::string reason = whyAlone(region.vertices[v]); !reason.empty())
        return reason;
  return wavefrontShifts(context.program, equationsOf(region, vertices),
                         [&](TensorId t) { return isNeededOutside(context, region, vertices, t); })
      .why;
}

/// A plan is made for one size of a batch, and runs with all. What is the same for each of a batch has no row of its
/// own there: with what reads it in one kernel, the rows that all of them share go through the whole batch in turn,
/// which costs nothing with a batch of 1 alone.
static std::string whyOnceForBatch(const FusionContext &context, const SearchGraph &region,
                                   const std::vector<int> &vertices) {
  for (int v : vertices) {
    const SearchGraph::Vertex &vertex = region.vertices[v];
    if (vertex.sizes.empty()) // as short with any size
      continue;
    for (int reader : vertex.consumers) {
      if (!std::binary_search(vertices.begin(), vertices.end(), reader))
        continue;
      for (SymbolId s : region.vertices[reader].sizes) {
        const Symbol &symbol = context.program.symbols[static_cast<size_t>(s)];
        if (isOpen(symbol, SymbolKind::Batch) && !isFavoured(symbol) &&
            !std::binary_search(vertex.sizes.begin(), vertex.sizes.end(), s))
          return vertex.equation->name + " is the same for each of " + symbol.name + ", and " +
                 region.vertices[reader].equation->name + " is not";
      }
    }
  }
  return "";
}

/// Why no tree of loops holds the vertices, contractions among them. Trees are small enough to be weighed in many
/// shapes.
static std::string whyTreeless(const SearchGraph &region, const std::vector<int> &vertices) {
  constexpr size_t kMostOfTree = 16;
  if (vertices.size() > kMostOfTree)
    return "a tree of loops with contractions holds " + std::to_string(kMostOfTree) +
           " equations at most";
  const auto [known, isNew] = region.treeless.try_emplace(vertices);
  if (isNew)
    known->second = whyNoTree(loopSpace(equationsOf(region, vertices)));
  return known->second;
}

/// Why a contraction stays alone in a search mode without trees: there, as in Souffle, one map that finishes it joins.
/// Empty where the vertices are these two.
static std::string whyContractionAlone(const FusionContext &context, const SearchGraph &region,
                                       const std::vector<int> &vertices, int contraction) {
  const Equation &own = *region.vertices[contraction].equation;
  if (vertices.size() > 2 || contraction != vertices[0])
    return own.name + " is a contraction, which only one map that finishes it joins";
  const Equation &map = *region.vertices[vertices[1]].equation;
  if (std::string reason = whyNotFinishing(own, map); !reason.empty())
    return reason;
  return isNeededOutside(context, region, vertices, own.outputs[0])
             ? "others than " + map.name + " need it too"
             : "";
}

std::string whyNotOneKernel(const FusionContext &context, const SearchGraph &region,
                            const std::vector<int> &vertices) {
  for (int v : vertices)
    if (!region.vertices[v].equation)
      return whatHostDoes(*region.vertices[v].control);
  if (vertices.size() == 1)
    return "";
  const auto contraction =
      std::ranges::find_if(vertices, [&](int v) { return region.vertices[v].contraction; });
  const bool contracts = contraction != vertices.end();
  if (contracts && !context.joinsContractions)
    return region.vertices[*contraction].equation->name +
           " is a contraction, which this search mode leaves alone";
  if (context.wavefronts && std::any_of(vertices.begin(), vertices.end(), [&](int v) {
        return region.vertices[v].kind == EquationKind::Scan;
      }))
    return whyNoWavefront(context, region, vertices);
  if (context.packs &&
      (isPack(context, region, vertices) || isConcatenation(context, region, vertices)))
    return "";
  if (std::string reason = whyOnceForBatch(context, region, vertices); !reason.empty())
    return reason;
  for (int v : vertices)
    if (std::string reason = whyAlone(region.vertices[v]); !reason.empty())
      return reason;
  // Without common rows one block runs them all, a matrix times one vector included. Contractions use their operands
  // again and again: they need tiles, which a tree has, but no nest among others.
  if (contracts)
    if (std::string reason = context.trees
                                 ? whyTreeless(region, vertices)
                                 : whyContractionAlone(context, region, vertices, *contraction);
        !reason.empty())
      return reason;
  return whyTooMany(region, vertices);
}

std::string whyNotPhases(const SearchGraph &region, const VertexSets &kernels) {
  std::vector<int> all;
  for (const std::vector<int> &kernel : kernels)
    for (int v : kernel) {
      if (!region.vertices[v].equation)
        return whatHostDoes(*region.vertices[v].control);
      if (std::string reason = whyAlone(region.vertices[v]); !reason.empty())
        return reason;
      all.push_back(v);
    }
  std::sort(all.begin(), all.end());
  return whyTooMany(region, all);
}

} // namespace fusec
