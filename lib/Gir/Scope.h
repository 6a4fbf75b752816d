#pragma once
#include "Gir/Gir.h"

#include <optional>

namespace fusec {

/// How far a value goes from the thread that stores it to those that read it, and so what has to stand between: Lane
/// nothing, Unit and Block a Sync of that scope, Device the border of two phases or a Signal and a Wait.
enum class Scope : uint8_t { Lane, Unit, Block, Device };

/// What is known of two accesses to one element, in one run of what surrounds both.
struct Exchange {
  bool sameBlock = false, sameUnit = false;
  bool samePattern = false; // each lane of a unit reads what it stored itself
};

/// The scope rule (PowerFusion, figure 5): one unit and one pattern: Lane; one unit: Unit; one block: Block; else
/// Device.
Scope scopeOf(const Exchange &exchange);

/// An element of a buffer that one block stores and another block reads in the same phase.
struct CrossBlockConflict {
  int64_t element; // flat index
  int64_t storingBlock, readingBlock;
};
/// Searches a phase for such a conflict, with symbols at their `opt` and some values of each loop variable (the first
/// and last ones of long loops). Conditions and indices that depend on data are skipped, and indices beyond their
/// dimension: sizes at which a rule of the model fails. A result is certain; nullopt is no proof that there is no
/// conflict.
std::optional<CrossBlockConflict> findCrossBlockConflict(const GirKernel &kernel,
                                                         const Phase &phase, BufferId buffer);

/// Statements around signals and waits, of all blocks of a phase, for which the rules of counters are proved; kernels
/// with more are refused.
constexpr int64_t kMostCountingSteps = 1 << 21;
/// The rules of counters that the kernel breaks (VerifyCounters.cpp). Its statements have been verified.
std::vector<std::string> counterProblems(const GirKernel &kernel);

/// Integer expressions of a kernel at values of the symbols. Sizes are computed once: checks go through millions of
/// iterations.
class IntegerValues {
public:
  IntegerValues(const GirKernel &kernel, const std::vector<int64_t> &symbols);
  /// At these values of loop variables; nullopt where data decides.
  std::optional<int64_t> at(NodeId id, const std::vector<int64_t> &vars) const;

private:
  const GirKernel &kernel;
  std::vector<std::optional<int64_t>> sizes; // of nodes that are Dim
};

} // namespace fusec
