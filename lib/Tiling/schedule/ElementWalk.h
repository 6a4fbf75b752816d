#pragma once

// How the loops around a statement go through the elements of a tensor that it reads.

#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/Schedule.h"

#include <optional>
#include <span>

namespace fusec::tiling {

/// Loops around the equation's Compute; nothing where it has none, or stands beside other parts of its phase: their
/// blocks come first or behind it.
std::optional<std::vector<const TreeNode *>> loopsAround(const Schedule &schedule, int equation);

/// How an address moves with a schedule's axis: runs of elements at equal distances, outermost first.
using Runs = std::vector<std::pair<DimExpr, DimExpr>>; // elements, distance

Runs runsOf(const Equation &e, const FlatAccess &access, std::span<const int> positions);

/// A read that all threads do where the statement is done, of memory that keeps it; nothing for others.
std::optional<FlatAccess> plainAccess(const Schedule &schedule, const ExprProgram &program,
                                      const ReadPlace &place);

/// The loops that count the elements which a thread holds have as many steps in every block.
bool haveConstantTrips(const Schedule &schedule, const Equation &equation, const ReadPlace &place,
                       const std::vector<const TreeNode *> &loops);

bool areShared(const Schedule &schedule, const std::vector<const TreeNode *> &loops);

TensorId tensorAt(const ExprProgram &program, const ReadPlace &place);

} // namespace fusec::tiling
