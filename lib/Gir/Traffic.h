#pragma once
#include "Gir/StatementPaths.h"

namespace fusec {

/// Elements that a kernel reads from and writes to Global memory, by its text: each access times the trips of the loops
/// around it, with symbols at their `opt`. Both ways of an If count, and a While counts as one round, so that the
/// numbers compare a kernel with what a rewrite made of it and not with what runs.
struct ElementTraffic {
  double read = 0, written = 0;
};
ElementTraffic globalTraffic(const GirKernel &kernel);
/// Elements that are read from and written to each buffer of any level.
std::vector<ElementTraffic> trafficByBuffer(const GirKernel &kernel);

/// How often a block executes the site's statement, counted in the same way.
double timesInBlock(const GirKernel &kernel, const StatementPath &site);

/// True if `after` reads and writes no more than `before`: every rewrite must satisfy this.
bool isMonotone(const ElementTraffic &before, const ElementTraffic &after);

} // namespace fusec
