#pragma once
#include "Gir/Gir.h"

namespace fusec {

/// The predicate that holds where all blocks are resident (GirKernel::resident).
NodeId residentTest(GirKernel &kernel);
bool isResidentTest(const GirKernel &kernel, NodeId predicate);

/// Of each buffer whether it holds values from phase to phase: a Register or Shared one that several phases touch under
/// that test. The block of a number finds in it what the block of that number has left there.
std::vector<bool> heldBuffers(const GirKernel &kernel);

/// The rules of such buffers that the kernel breaks.
std::vector<std::string> heldProblems(const GirKernel &kernel);

} // namespace fusec
