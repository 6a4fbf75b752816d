#pragma once
#include "Gir/Gir.h"

#include <optional>
#include <set>

namespace fusec {

/// A read that is left out because its thread still has the value.
struct KeptRead {
  int64_t read = 0; // its number
  int64_t from = 0; // number of the read that loaded the value; 0: the thread has stored it
  /// Where the value is kept; Shared: in elements of this thread alone.
  MemLevel level = MemLevel::Register;
  auto operator<=>(const KeptRead &) const = default;
};

/// The reads that rules may leave out, and those that they have left out, in a kernel whose reads have numbers:
/// Scalar::imm, from 1 on, and the same number for copies of one read in several branches. Reads without a number stay
/// as they are.
struct NumberedReads {
  std::optional<std::set<KeptRead>> wanted; // what may be kept; absent: everything
  std::set<KeptRead> kept;                  // reads that are left out in at least one branch
  std::set<int64_t> left;                   // reads that remain in at least one branch
  bool lackedRoom = false; // a read remains because no register or shared memory is free
};

/// What rewriting may use of a block's and a thread's own memory.
struct RewriteLimits {
  /// Registers of 32 bits a thread, for all values that are live at any point (Liveness.h). 0: keep nothing.
  int registers = 0;
  int64_t sharedBytes = 0;           // bytes a block for all Shared buffers
  NumberedReads *numbered = nullptr; // absent: every read may be kept
};

/// Applies one rule wherever it holds. Returns true if something changed. Each change removes a memory access or a
/// computation for good, so that rules can be repeated until none holds.
bool swapMoves(GirKernel &kernel, const RewriteLimits &limits);
bool mergeMoves(GirKernel &kernel, const RewriteLimits &limits);
bool mergeWriteRead(GirKernel &kernel, const RewriteLimits &limits);
bool mergeReads(GirKernel &kernel, const RewriteLimits &limits);
bool reuseValues(GirKernel &kernel, const RewriteLimits &limits);

/// A rule by name.
struct RewriteRule {
  std::string_view name;
  std::string_view summary;
  bool (*run)(GirKernel &kernel, const RewriteLimits &limits);
};
/// All rules, in the order in which they are tried.
const std::vector<RewriteRule> &rewriteRules();

/// Applies all rules to a fixpoint, between simplify and insertSyncs. The kernel's traffic never rises (Traffic.h).
/// Reads have no numbers afterwards. Returns the names of the rules that held somewhere, in their order.
std::vector<std::string_view> rewrite(GirKernel &kernel, const RewriteLimits &limits);

} // namespace fusec
