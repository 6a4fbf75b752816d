#pragma once
#include "Tiling/lower/LoopState.h"
#include "Tiling/schedule/PersistentReads.h"

namespace fusec::lowering {

class ReadLowering;

/// Values that threads keep from phase to phase, and from step to step of a grid scan (schedule/PersistentReads.h).
/// Where all blocks are resident, a phase in front of a grid scan fetches them by the loops of the statements that need
/// them:
///
///   phase waiting (b: 32) { if eq(resident, 1) { .. unroll k in 8 { lane l in 32 { %held[k] = %w[..] } } } }
///   rounds (step: 109) {
///     phase (b: 32) {
///       if eq(resident, 1) { .. unroll k in 8 { lane l in 32 { %sum[] sum= mul(%held[k], %h[..]) } } }
///       else { .. seq k in 8 { lane l in 32 { %sum[] sum= mul(%w[..], %h[..]) } } }
///
/// Without a grid scan the statement that reads them first does so:
///
///   phase (c: 32) { if eq(resident, 1) { .. { %held[k] = %x[..]  %sum[] sum= %held[k] } } else { .. } }
class PersistentValues {
public:
  PersistentValues(const BoundSchedule &bound, KernelWriter &writer, LoopState &loops)
      : bound(bound), writer(writer), loops(loops) {}

  /// What becomes of persistent reads: they read memory, are fetched into where they are kept, or come from there.
  enum class Mode : uint8_t { Off, Fill, Use } mode = Mode::Off;
  std::vector<tiling::PersistentRead> reads;

  /// Finds the persistent reads; if there are any, the kernel asks whether all blocks are resident.
  void begin();
  /// True if a statement below these nodes has a persistent read, or another read has its values from it.
  bool areReadIn(std::span<const TreeNode> nodes) const;
  /// The persistent read of that place, or that has its values from there; null if there is none.
  const tiling::PersistentRead *find(const ReadPlace &place) const;
  /// The thread's own element for the current iterations of the loops that the read depends on.
  NodeId element(const tiling::PersistentRead &read, const ReadPlace &place);
  /// Fetches what the equation reads first, at the current point.
  void fill(ReadLowering &lowering, int equation, Stmts &result);
  /// Makes a loop an Unroll loop if its variable numbers registers.
  void unrollOverRegisters(Stmt &loop, const std::string &axis);

private:
  BufferId bufferOf(const tiling::PersistentRead &read, DType type, int64_t size);

  const BoundSchedule &bound;
  KernelWriter &writer;
  LoopState &loops;
  Body &body = writer.body;
  std::map<std::tuple<int, MemLevel, int, DType>, BufferId> buffers; // phase, level, number
  std::set<VarId> numbersRegisters;                                  // variables of such loops
};

} // namespace fusec::lowering
