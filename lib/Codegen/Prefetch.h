#pragma once
#include "Gir/Gir.h"

#include <map>

namespace fusec {

/// Lines of Global memory that a core can ask for while one loop computes, since another loop comes by later.
struct Prefetch {
  BufferId buffer = -1;
  bool isWritten = false;
  NodeId index = kNoNode; // where the other loop goes, in its variables
  VarId loop = -1;        // the other loop, of as many iterations as the one that computes
  VarId lane = -1;
  VarId unroll = -1; // between the two, or -1
  int64_t unrollTrip = 1;
  VarId next =
      -1; // what is read: for the next iteration of this loop or block, which the first loop begins with
};

/// The loop that computes -> what it can ask for, of Global buffers of `leastBytes` and more, which no cache holds. A
/// row that several loops go through waits for memory in the first of them and in the one that writes, and for
/// arithmetic in the one with e^x: asked for there, both come while it computes.
std::multimap<const Stmt *, Prefetch> findPrefetches(const GirKernel &kernel, int64_t leastBytes);

} // namespace fusec
