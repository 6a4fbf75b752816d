#pragma once
#include "Expr/Expr.h"
#include "Support/Result.h"

namespace fusec {

/// A tensor's elements in another order, or those that a gather picks, which several equations of one list read at
/// places that lie apart, or through indices that each would look up for itself.
struct SharedCopy {
  std::string name;                 // of the map that makes it, and of the tensor that it makes
  std::vector<std::string> readers; // equations, in the list's order
};

/// What may be worth copying once for all that read it, each with all equations that could read the copy: of those at
/// least two would want it as it is, and together they use its elements twice or more often.
struct PossibleCopies {
  struct Copy {
    SharedCopy copy;
    Equation map;                  // makes the copy
    std::vector<Equation> readers; // as they read it
  };
  ExprProgram program; // the equations' tensors, the program's own first; no items
  std::vector<Copy> copies;
};
PossibleCopies possibleCopies(const ExprProgram &program);

/// The program with these copies, each made in front of the first of its readers. Every bit stays; so do the numbers of
/// tensors. An error names what is not possible.
Result<ExprProgram> withSharedCopies(const ExprProgram &program,
                                     const std::vector<SharedCopy> &copies);

} // namespace fusec
