#pragma once
// Values that rounds hold: where a scan's blocks take its steps together (Rounds.h), a thread reads the same weights in
// each of them. Where all blocks are resident (Gir/Resident.h) it reads them once, in front of the rounds, into its
// registers or into shared memory that no other thread touches:
//
//   keep e0.r1 register from e0.r1
//
// says that the read has its value from itself, in the round before. The kernel does both: blocks that a device does
// not hold at once read as without that line. Souffle calls it temporal reuse (souffle.txt, section 6.5).
#include "Tiling/Schedule.h"

namespace fusec::tiling {

inline bool isHeld(const Kept &kept) { return kept.from == kept.read; }
bool holdsValues(const Schedule &schedule);
/// The schedule whose rounds read everything anew.
Schedule withoutHeld(Schedule schedule);

/// A read that is held.
struct HeldRead {
  Kept kept;
  int phase = 0;        // of a round
  int number = 0;       // among those of its level in its part of that phase
  int64_t elements = 1; // that a thread holds; 0: not constant
};
std::vector<HeldRead> heldReads(const Schedule &schedule, const ExprProgram &equations);
/// What a thread's registers and a block's shared memory hold in each phase of a round.
struct HeldStorage {
  double registers = 0; // a thread, of 32 bits
  double sharedBytes = 0;
};
std::vector<HeldStorage> heldStorage(const Schedule &schedule, const ExprProgram &equations);

/// The loops around a Compute, of `loops`, whose iterations each have an element of the read.
std::vector<const TreeNode *> loopsOfHeld(const Schedule &schedule, const Equation &equation,
                                          const ReadPlace &place,
                                          const std::vector<const TreeNode *> &loops);

/// The rules of reads that are held which the schedule breaks.
std::vector<std::string> heldReadProblems(const Schedule &schedule, const ExprProgram &equations);

/// Whether the target holds all blocks of a schedule with rounds at once, with what they hold.
bool isResident(const Schedule &schedule, const ExprProgram &equations, const Target &target);

/// The schedule with all held that its blocks have room for while the target still holds all of them at once; nothing
/// where that is none, or where it does not even hold blocks that keep nothing.
std::optional<Schedule> withHeld(const Schedule &schedule, const ExprProgram &equations,
                                 const Target &target);

} // namespace fusec::tiling
