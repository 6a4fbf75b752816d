#pragma once
#include "Gir/Gir.h"
#include "Support/Pass.h"

#include <span>

namespace fusec {

/// Renumbers nodes, loop variables and their names in the order of the kernel's text; each loop gets a
/// variable of its own, buffers and variables get names that the text can hold. Required before print.
void canonicalise(GirKernel &kernel);

/// Drops what does nothing: If with a known predicate, loops of no or one iteration, empty control, buffers
/// that nothing reads; folds the expressions again under the loops' ranges. Canonical afterwards.
void simplify(GirKernel &kernel);

/// Asks at a border once what each term of a window, or each place of a copy, would ask (on a CPU, whose masks are
/// few): see there.
void splitBorders(GirKernel &kernel);

/// Writes a row while the next one's functions are computed (a CPU's core waits for memory in between): see there.
void delayStores(GirKernel &kernel);

/// Makes squares of copies that store along columns, for the emitter to turn in registers (on a CPU): see there.
void turnCopies(GirKernel &kernel);
/// Rows of such a square, of a copy that comes to so many columns; 1 where it stays as it is.
int64_t rowsOfTurnedCopy(int64_t turns, int64_t lanes);

/// Drops scratch parameters that nothing accesses any more. Returns for each buffer there was whether it stays.
std::vector<bool> dropUnusedScratch(GirKernel &kernel);

/// Inserts the barriers that a kernel without Sync statements needs, and no more than its structure asks for.
/// Must run before allocate: two buffers that share bytes need a barrier between their uses, which it puts.
void insertSyncs(GirKernel &kernel);

/// Gives every Shared buffer its offset, with reuse of dead space, and sets `sharedBytes`.
void allocate(GirKernel &kernel);
/// Bytes of a block's Shared memory that these phases use: those up to the end of the last buffer (after allocate).
int64_t sharedBytesOf(const GirKernel &kernel, std::span<const Phase> phases);
/// The largest alignment of its Shared buffers.
int64_t sharedAlignment(const GirKernel &kernel);

/// Registers of 32 bits that a lane needs: the most that its live Register buffers come to at any point.
int64_t registersPerLane(const GirKernel &kernel);

/// What a kernel goes through behind its lowering, in the order in which the compiler runs it: unused scratch, on CPUs
/// borders, delayed stores and turned copies, barriers, offsets.
std::vector<Pass<GirKernel>> kernelPasses(bool isCpu);
/// Every pass and rule by name, for texts.
std::vector<Pass<GirKernel>> girPasses();

} // namespace fusec
