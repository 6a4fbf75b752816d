#pragma once
#include "Gir/Sites.h"

namespace fusec {

/// Elements that a kernel reads from and writes to Global memory, by its text: each access times the trips of the loops
/// around it, with symbols at their `opt`. Both ways of an If count, and a While counts as one round, so that the
/// numbers compare a kernel with what a rewrite made of it and not with what runs.
struct ElementTraffic {
  double read = 0, written = 0;
};
ElementTraffic globalTraffic(const GirKernel &kernel);
/// The same of each buffer, whatever its level.
std::vector<ElementTraffic> trafficByBuffer(const GirKernel &kernel);

/// How often a block comes to the site, counted the same way.
double timesInBlock(const GirKernel &kernel, const Site &site);

/// A rewrite may not make a kernel move more.
bool isMonotone(const ElementTraffic &before, const ElementTraffic &after);

} // namespace fusec
