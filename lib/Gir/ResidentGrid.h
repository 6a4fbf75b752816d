#pragma once
#include "Gir/Gir.h"

namespace fusec {

/// The predicate that is true if all blocks are resident (GirKernel::resident).
NodeId residentTest(GirKernel &kernel);
bool isResidentTest(const GirKernel &kernel, NodeId predicate);

/// For each buffer, true if its values persist from phase to phase: it is a Register or Shared buffer that several
/// phases access under the resident test. A block of the later phase finds the values of the block with its number.
std::vector<bool> heldBuffers(const GirKernel &kernel);

/// The rules of persistent buffers that the kernel breaks.
std::vector<std::string> heldProblems(const GirKernel &kernel);

} // namespace fusec
