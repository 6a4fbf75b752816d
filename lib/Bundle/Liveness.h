#pragma once
#include "Bundle/Model.h"

namespace fusec::bundle {

/// First and last step in which each tensor is touched (-1, -1 when never), indexed as Program::tensors.
///
/// Steps are numbered in the order of the text: a Launch has one number. An If has one for its condition, those
/// of thenSteps, one for thenCopies, those of elseSteps, one for elseCopies. A Where has those of both its lists.
/// A Loop has one for `before`, those of its body, one for thenCopies and one for `after`. A tensor that is
/// touched both inside and outside a loop's body lives from `before` to `after`: two tensors with disjoint
/// intervals can share memory.
struct Interval {
  int32_t first = -1, last = -1;
};
std::vector<Interval> computeLiveness(const Program &program);

} // namespace fusec::bundle
