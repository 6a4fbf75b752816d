#pragma once
#include "Expr/Expr.h"

#include <string>
#include <vector>

namespace fusec {

constexpr size_t kMostBodyNodes = 512; // of an equation

/// A reduction whose results another one over the same points uses, read at `indices`.
struct CascadeSource {
  const Equation *equation;
  std::vector<NodeId> indices; // nodes of the other one's new body, without reduced axes
  bool visible = false;        // over the same domain: its outputs become the cascade's
  int firstState = 0;          // of its states in the cascade
};

/// A reduction's value with all maps written into it that lie between it and other reductions, and those that it
/// reads then; ones with further states first that are not visible.
struct CascadePair {
  Body body;
  NodeId value = kNoNode;
  std::vector<CascadeSource> sources;
  std::string refusal; // why there are none; empty where it uses none
};
CascadePair findSources(const ExprProgram &program, const Equation &reduction);

} // namespace fusec
