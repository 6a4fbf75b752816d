#pragma once
#include "Expr/Expr.h"

#include <set>

namespace fusec {

/// What the values of a map or reduction are made of, index computations aside.
struct Profile {
  bool movement = true;        // reads, choices by place, constants and iota only
  int operations = 0;          // arithmetic nodes
  bool expensive = false;      // a division, root or maths function among them
  std::set<NodeId> valueReads; // reads whose element is the value or an operand of it
};
Profile profileOf(const Equation &e);

/// By tensor: whether maps make it of constants and sizes alone, whatever the inputs of a run are.
std::vector<bool> madeOfConstants(ExprProgram &program);
/// Reads at an index that is not affine in the axes: where an element is follows from data, or from a division.
bool looksUp(const Equation &map);

/// A sum of products, of floats or integers, along an axis that both factors depend on, in which either is used by
/// several outputs: there is a spatial axis that the left factor does not depend on, and one for the right.
bool isContraction(const Equation &e);
/// A contraction, or a sum of products of which one factor alone is used by several outputs, as the vector that a
/// matrix is multiplied with or the weights of a depthwise convolution: what register tiles are for.
bool sharesFactor(const Equation &e);

} // namespace fusec
