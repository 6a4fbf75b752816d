#pragma once
#include "Fusion/Region.h"

#include <string>

namespace fusec {

/// What the search for kernels needs to know of the whole program.
struct FusionContext {
  const ExprProgram &program;
  std::map<TensorId, int> uses; // equations, control items and model outputs that read a tensor
};

/// Why the equations (vertices of one region, ascending) cannot be one kernel, for people: "logits is a contraction,
/// and only a map that finishes it joins one". Empty if they can: a kernel's equations run over common rows
/// (Expr/Rows.h) without contractions, or have none and run in one block, or are a reduction and the map that
/// finishes it. Order among kernels is not looked at (staysAcyclic).
std::string whyNotOneKernel(const FusionContext &context, const Region &region,
                            const std::vector<int> &vertices);

/// True if a tensor that the vertices write is read by others, or is an output of the model.
bool isNeededOutside(const FusionContext &context, const Region &region,
                     const std::vector<int> &vertices, TensorId tensor);

/// The vertices' equations.
std::vector<const Equation *> equationsOf(const Region &region, const std::vector<int> &vertices);

} // namespace fusec
