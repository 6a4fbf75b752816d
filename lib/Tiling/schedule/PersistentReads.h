#pragma once
// Values that threads hold from round to round and from phase to phase.
//
// Where a scan's blocks take its steps together (Schedule.h), a thread reads the same weights in each of them. Where
// all blocks are resident (Gir/ResidentGrid.h) it reads them once, in front of the rounds, into its registers or into
// shared memory that no other thread touches:
//
//   keep e0.r1 register from e0.r1
//
// says that the read has its value from itself, in the round before. Threads that go through the same elements in two
// phases keep in registers what they read in the first one (an SE block's x, behind the barrier where its gates are
// made):
//
//   keep e6.r0 register from e0.r0
//
// The kernel does both: blocks that a device does not hold at once read as without that line. Souffle calls it temporal
// reuse (souffle.txt, section 6.5).
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// True if the value survives phases or steps; false if it is reused within one phase. `schedule` may be a single phase
/// cut out by schedulesOfPhases: equation numbers outside of it then count as other phases.
bool isPersistent(const Schedule &schedule, const ReusedRead &kept);
bool hasPersistentReads(const Schedule &schedule);
/// The schedule whose rounds and phases read everything anew.
Schedule withoutPersistentReads(Schedule schedule);

/// A read that is held.
struct PersistentRead {
  ReusedRead kept;
  int phase = 0; // of a round
  /// Its number among the reads of its level in its part of that phase, or among the places that phases have it from.
  int number = 0;
  int64_t elements = 1; // that a thread holds; 0: not constant
};
std::vector<PersistentRead> persistentReads(const BoundSchedule &bound);
/// What a thread's registers and a block's shared memory hold in each phase of a round, or, without rounds, behind the
/// first phase.
struct PersistentStorage {
  double registers = 0; // a thread, of 32 bits
  double sharedBytes = 0;
};
std::vector<PersistentStorage> persistentStorage(const BoundSchedule &bound);
/// The sum over all phases.
PersistentStorage allPersistentStorage(const BoundSchedule &bound);

/// The loops around a Compute, of `loops`, whose iterations each have an element of the read.
Loops loopsOfPersistent(const BoundSchedule &bound, const ReadPlace &place, const Loops &loops);

/// Elements that a thread holds of the read inside these loops around its Compute; 0: not constant.
int64_t persistentElements(const BoundSchedule &bound, const ReadPlace &place, const Loops &loops);
/// Registers of a thread, of 32 bits, or bytes of a block's shared memory that hold the read.
double persistentRegisters(const BoundSchedule &bound, const PersistentRead &held);
double persistentSharedBytes(const BoundSchedule &bound, const PersistentRead &held);

/// Loops around the equation's Compute; null where it has none, or stands beside other parts of its phase: their
/// blocks come first or behind it.
const Loops *loopsAround(const BoundSchedule &bound, int equation);

/// How an address moves with a schedule's axis: runs of elements at equal distances, outermost first.
using Runs = std::vector<std::pair<DimExpr, DimExpr>>; // elements, distance

Runs runsOf(const Equation &e, const FlatAccess &access, std::span<const int> positions);

/// A read that all threads do where the statement is done, of memory that keeps it; nothing for others.
std::optional<FlatAccess> plainAccess(const BoundSchedule &bound, const ReadPlace &place);

/// The loops that count the elements which a thread holds have as many steps in every block.
bool haveConstantTrips(const BoundSchedule &bound, const ReadPlace &place, const Loops &loops);

/// Whether the lanes, and the units where there are several, share the statement's work.
bool areShared(const Schedule &schedule, const Loops &loops);

} // namespace fusec::tiling
