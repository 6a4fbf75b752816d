#pragma once
#include "Expr/Body.h"
#include "Expr/Monoid.h"
#include "Gir/Levels.h"
#include "Support/Dim.h"

#include <optional>
#include <string>
#include <vector>

namespace fusec {

enum class SyncScope : uint8_t { Unit, Block };
std::string_view name(SyncScope scope);

using VarId = int32_t;
using BufferId = int32_t;
using CounterId = int32_t;

/// Where Shared memory, and each buffer in it, begins: two cache lines of a CPU, one of a GPU.
constexpr int64_t kSharedAlignment = 128;
/// What a buffer of a GPU may ask for instead.
constexpr int64_t kMostSharedAlignment = 1024;

/// A memory slice: `shape` elements of `type`, row-major.
struct GirBuffer {
  std::string name;
  MemLevel level = MemLevel::Global;
  DType type = DType::F32;
  Shape shape; // Register and Shared: constants
  /// Register: one copy a lane; false: one value for the whole block, the same in all lanes.
  bool perLane = true;
  bool written = false;     // Global: the kernel writes it (it may read it too)
  bool scratch = false;     // Global: written, and of no use to anybody else
  int64_t offsetBytes = -1; // Shared: set by the allocator
  /// Shared: that of its address, a power of two from kSharedAlignment to kMostSharedAlignment.
  int64_t alignBytes = kSharedAlignment;
};

struct LoopVar {
  std::string name;
  LoopKind kind = LoopKind::Seq;
};

enum class StmtKind : uint8_t {
  Loop,
  If,
  While,
  Store,
  Accumulate,
  LaneReduce,
  Exchange,
  Sync,
  Signal,
  Wait
};

/// One gOperator or one piece of control. Expressions are nodes of GirKernel::body; in them an Axis leaf is the
/// loop variable of that id and Read/ReadIf name a buffer. A loop variable counts 0, 1, ... trip-1.
///
/// Loop: Unit loops have trip == GirKernel::units, Lane loops trip == GirKernel::lanes; they contain no other
///   loop of their kind, a Unit loop contains no Sync of Block scope and a Lane loop no Sync. Unroll loops have a
///   constant trip. One with a `kernel` is the product that a micro-kernel of the target makes (Target/MicroKernel.h),
///   with operands and tile of registers as Product.h finds them; it means what its loops do.
/// If: `predicate` may differ between lanes (inside a Lane loop).
/// While: runs body as long as `predicate` holds; only outside Lane loops, the predicate is uniform.
/// Store: buffer[indices] = value. Outside a Lane loop a store to Shared or Global is done once a block (once a
///   unit inside a Unit loop), by the first lane.
/// Accumulate: buffer[indices] = monoid(value, buffer[indices]); Sum of a float product (a Mul node) is one fma.
///   For ArgMax and the like `buffer` holds the value and `indexBuffer` (same indices) the index `indexValue`.
/// A perLane buffer that is read outside a Lane loop gives lane 0's element; a Store or Accumulate to it there
///   goes to all lanes (the value is uniform).
/// LaneReduce: buffer[indices] (Register, perLane) is combined over all lanes of the unit; every lane ends with the
///   same value. Order: for d = lanes/2, ..., 2, 1: v[l] = monoid(v[l], v[l xor d]).
/// Exchange: buffer[indices] (Register, perLane) of every lane l becomes that of lane l xor `distance`, a power of two
///   below the number of lanes. What LaneReduce does not know is folded over the lanes by this.
/// Sync: all units of the block (Block) or all lanes of the unit (Unit) see each other's Shared and Global stores.
/// Signal: counter[indices] rises by 1, done once a block by its first thread. All that this thread has stored, or seen
///   through a Sync of Block scope, is visible to the blocks that wait for it.
/// Wait: each of counter[first], ..., counter[last] (indices; none where first > last) is `value`. Each is waited for
///   by some thread of the block: a Sync of Block scope makes it known to the others.
/// Both have the device as their scope and stand outside Unit, Lane and While loops.
struct Stmt {
  StmtKind kind = StmtKind::Store;
  LoopKind loop = LoopKind::Seq;
  VarId var = -1;
  NodeId trip = kNoNode;      // i64
  std::vector<Stmt> body;     // Loop, While, If: then
  std::vector<Stmt> elseBody; // If
  NodeId predicate = kNoNode; // If, While
  BufferId buffer = -1;
  std::vector<NodeId> indices;
  NodeId value = kNoNode;
  Monoid monoid = Monoid::Sum;
  BufferId indexBuffer = -1;
  NodeId indexValue = kNoNode;
  int distance = 0;
  SyncScope scope = SyncScope::Block;
  CounterId counter = -1; // Signal, Wait
  std::string kernel;     // Loop
};

/// Counters of blocks that have ended, in device memory: 0 when the kernel starts. All Signals of one set stand in one
/// phase, its Waits in later ones, for the number of Signals that a counter gets.
struct GirCounters {
  std::string name;
  DimExpr count; // depends on symbols only
};

/// One part of a kernel. Its grid is the product of `blocks`, the last one running fastest with the block number. Trips
/// depend on symbols only. In front of it stands a device-wide barrier or, where it is `waiting`, nothing: it begins
/// while blocks of the phase before still run, and its Waits say which of them it needs.
struct Phase {
  struct Block {
    VarId var;
    DimExpr trip;
  };
  std::vector<Block> blocks;
  std::vector<Stmt> body;
  bool waiting = false;
};

/// Phases that run again and again: those from `first` to `last` (exclusive), `count` times over, a device-wide barrier
/// between any two. `var` (Seq) counts the rounds; it stands for no value outside of these phases.
struct Rounds {
  size_t first = 0, last = 0;
  VarId var = -1;
  DimExpr count; // depends on symbols only
};

/// A kernel. Global buffers come first in `buffers` and are its parameters, in this order.
struct GirKernel {
  std::string name;
  std::vector<std::string> onnxNodes;
  std::vector<Symbol> symbols; // the model's table
  int units = 1;               // parallel units a block
  int lanes = 1;               // lanes a unit
  std::vector<LoopVar> vars;
  std::vector<GirBuffer> buffers;
  std::vector<GirCounters> counters;
  Body body;
  std::vector<Phase> phases;
  std::optional<Rounds> rounds;
  /// Variable (Seq) that is 1 where every block of the widest phase has a place on the device from the kernel's begin
  /// to its end, so that registers and Shared memory outlive phases (ResidentGrid.h); else 0. -1: the kernel does not
  /// ask.
  VarId resident = -1;
  int64_t sharedBytes = -1; // set by the allocator

  int numParams() const;
  /// Symbols that any expression of the kernel uses, sorted: the kernel's i64 parameters, in this order.
  std::vector<SymbolId> usedSymbols() const;
};

/// Number of blocks of a phase.
DimExpr gridSize(const Phase &phase);

std::string print(const GirKernel &kernel);
/// `symbols`: the model's table; with an empty one the kernel's own symbol lines make it.
Result<GirKernel> parseGirKernel(TextReader &in, const std::vector<Symbol> &symbols);
Status verify(const GirKernel &kernel);

} // namespace fusec
