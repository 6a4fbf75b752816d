#pragma once
// What threads keep: which reads of memory a schedule leaves out since their threads have the values already. Gir's
// rules (Gir/Rewrite.h) know where that holds and what there is room for; the schedule says what is done.
#include "Gir/Rewrite.h"
#include "Target/Target.h"
#include "Tiling/lower/Lower.h"

namespace fusec {

/// What threads of this target may keep: on a GPU half of a thread's registers, 32 bits each, hold values, the other
/// half addresses and what is being computed; and the bytes that a block has. On a CPU nothing: a core reads a row
/// again from its first cache as fast as from anywhere else.
RewriteLimits rewriteLimits(const Target &target);

/// Sets `kept` to all that threads of this target can keep. `symbols`: as for lowerSchedule.
Status decideKept(Schedule &schedule, const ExprProgram &pattern,
                  const std::vector<Symbol> &symbols, const Target &target);

/// The kernel of a schedule, rewritten, without barriers. BadIr where its threads cannot keep what the schedule says.
Result<LoweredKernel> lowerAndRewrite(const ExprProgram &pattern, const Schedule &schedule,
                                      const std::vector<Symbol> &symbols, const Target &target);

namespace tiling {

/// The rules that the list breaks, but for whether a thread has what it is to keep: that shows when it is lowered.
std::vector<std::string> keptProblems(const Schedule &schedule, const ExprProgram &equations);

/// The schedule's entry for a read, null where the read is done.
const Kept *keptAt(const Schedule &schedule, const ReadPlace &place);

/// Where an equation has a tensor's values, if it reads none of them: of its first read of the tensor.
std::optional<MemLevel> keptLevel(const Schedule &schedule, const ExprProgram &equations,
                                  int equation, TensorId tensor);

/// A value inside the pattern that nobody reads, since every reader has kept it or there is none: it is not stored.
bool isHandedOn(const Schedule &schedule, const ExprProgram &equations, TensorId tensor);
/// The same of an operand's tile, which is then not stored when it is staged.
bool isHandedOn(const Schedule &schedule, const ExprProgram &equations, const Operand &operand);

/// What a thread and a block need for values that are kept.
struct KeptStorage {
  struct Value {
    double registersPerThread; // of 32 bits
    bool stored;               // made there, else read
    // Where the thread gets it, and for what it is kept; none: all the time.
    std::vector<const TreeNode *> leaves;
  };
  std::vector<Value> registers;
  double sharedBytes = 0;
};
KeptStorage keptStorage(const Schedule &schedule, const ExprProgram &equations,
                        const std::vector<int64_t> &symbols);

} // namespace tiling
} // namespace fusec
