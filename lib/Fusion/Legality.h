#pragma once
#include "Fusion/SearchGraph.h"

#include <string>

namespace fusec {

/// What the search for kernels needs to know of the whole program.
struct FusionContext {
  const ExprProgram &program;
  std::map<TensorId, int> uses; // equations, control items and model outputs that read a tensor
  bool packs = true;            // kernels may hold independent equations, which run side by side
  /// Kernels may hold several scans and what lies between them, if all blocks can take a scan's steps together.
  bool wavefronts = false;
  /// Kernels may hold a contraction with the map that finishes it, and in packs.
  bool joinsContractions = true;
  /// Kernels may hold any number of contractions and what lies between them, if one tree of loops does (LoopSpace.h).
  bool trees = false;
};

/// Why the equations (vertices of one region, ascending) cannot be one kernel, for people: "logits is a contraction,
/// and only a map that finishes it joins one". Empty if they can: a kernel's equations run over common rows
/// (Expr/Rows.h) without contractions, or have none and run in one block, or are a reduction and the map that
/// finishes it, or reductions whose results one map puts together, or, with `trees`, contractions and what lies between
/// them with a tree of loops (Expr/LoopSpace.h); or they are a wavefront of scans (Expr/Wavefront.h), or fall into
/// parts that do not need each other, of which each is one of these. Order among kernels is not looked at
/// (staysAcyclic).
std::string whyNotOneKernel(const FusionContext &context, const SearchGraph &region,
                            const std::vector<int> &vertices);

/// Why the kernels cannot be phases of one, for people; empty if they can: their equations are maps and reductions with
/// elements, and few enough. `kernels` follow each other in an order in which they can run.
std::string whyNotPhases(const SearchGraph &region, const VertexSets &kernels);

/// True if a tensor that the vertices write is read by others, or is an output of the model.
bool isNeededOutside(const FusionContext &context, const SearchGraph &region,
                     const std::vector<int> &vertices, TensorId tensor);

/// The vertices' equations.
std::vector<const Equation *> equationsOf(const SearchGraph &region,
                                          const std::vector<int> &vertices);

} // namespace fusec
