#pragma once
#include "Gir/Gir.h"
#include "Target/Target.h"

namespace fusec::test {

/// What one launch of a kernel does, read off its Gir: loops and addresses as they stand there, at the symbols' opt
/// values, all blocks resident.
struct GirCounts {
  double barriers = 0; // of a block, that an average block passes, summed over phases
  double ops =
      0; // vector instructions (weightOf) of one unit that compute values, summed over blocks
  double readBytes = 0, writtenBytes = 0;     // of device memory, as MemoryRequests has them
  double readSectors = 0, writtenSectors = 0; // of 32 bytes, of the lanes of a unit
  double sharedBytes = 0;                     // of a block's own memory, read and written
  bool fromData = false; // data decides about an address, a condition or the end of a loop
};

/// `points`: of the loops around a statement so many are looked at, all where there are no more; 0: barriers and
/// instructions of loops that end where constants and symbols say, no addresses.
GirCounts countKernel(const GirKernel &kernel, const Target &target, int points);

} // namespace fusec::test
