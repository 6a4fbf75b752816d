#pragma once
// State of one lowering from Schedule to Gir, shared by Lower.cpp (the tree), LowerAccess.cpp (addresses),
// LowerReads.cpp, LowerBlocks.cpp, LowerBuffers.cpp, LowerLeaf.cpp (statements), LowerCascade.cpp and LowerStage.cpp.
// Internal to Tiling.
#include "Tiling/lower/Lower.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/PhaseSignals.h"

#include <map>
#include <set>

namespace fusec::lowering {

/// A loop on the way from the root to the current statement.
struct PathLoop {
  const TreeNode *node; // identity of the loop in the tree
  AxisId axis;
  int64_t step;
  LoopKind kind;
  VarId var;
  NodeId value = kNoNode; // a part's block number, which has no variable of its own
};
using Path = std::vector<PathLoop>;

/// Chain of tree nodes from the root to a leaf, leaf included.
using TreePath = std::vector<const TreeNode *>;

inline Stmt storeStmt(BufferId buffer, std::vector<NodeId> indices, NodeId value) {
  Stmt s;
  s.kind = StmtKind::Store;
  s.buffer = buffer;
  s.indices = std::move(indices);
  s.value = value;
  return s;
}

/// How far an axis may run past its extent inside the current statement.
enum class Check : uint8_t { None, Needed };

class Lowering {
public:
  Lowering(const ExprProgram &pattern, const Schedule &schedule,
           const std::vector<Symbol> &symbols);
  Result<LoweredKernel> run();

private:
  // Lower.cpp: the tree
  Status prepare();
  void lowerChildren(std::span<const TreeNode> nodes, std::vector<Stmt> &out);
  void lowerLoop(const TreeNode &node, std::vector<Stmt> &out);
  bool tilesOf(const TreeNode &node) const;
  void lowerPhases();
  void lowerGridScan(const TreeNode &loop);
  void lowerBlock(std::span<const TreeNode> nodes, std::vector<Stmt> &out);

  // LowerPersistent.cpp: values that rounds and phases hold (schedule/PersistentReads.h)
  /// The persistent read that has the value of a read: the read itself or another one of the same element.
  const tiling::PersistentRead *persistentAt(const ReadPlace &place) const;
  NodeId persistentElement(const tiling::PersistentRead &held, const ReadPlace &place);
  void hold();
  void fillPersistent(int equation, std::vector<Stmt> &out);
  bool touchesPersistent(std::span<const TreeNode> nodes) const;
  Phase copyPhase(TensorId from, TensorId to);
  NodeId tripOf(const TreeNode &node);
  std::optional<TreePath> findLeaf(LeafKind kind, int target) const;
  std::vector<TreePath> findConsumers(TensorId tensor) const;
  int64_t tileIn(const TreePath &chain, size_t length, AxisId axis) const;
  void materialiseEdges();
  VarId newVar(const std::string &name, LoopKind kind, IndexRange range);

  // LowerBlocks.cpp: blocks of a phase, and counters of phases side by side
  /// `number`: of the schedule's phases; a step's phases have none.
  Phase lowerTree(std::span<const TreeNode> level, std::optional<size_t> number = std::nullopt);
  Phase lowerParts(std::span<const TreeNode> parts, std::optional<size_t> number);
  void declareCounters();
  void waitForTiles(size_t phase, size_t part, std::vector<Stmt> &out);
  void signalTile(size_t phase, size_t part, std::vector<Stmt> &out);
  tiling::PhaseSignals counters;

  // LowerAccess.cpp: axes, addresses; LowerReads.cpp: reads
  DimExpr extent(AxisId axis) const;
  NodeId axisValue(AxisId axis);
  NodeId axisOffset(AxisId axis, size_t fromDepth);
  NodeId loopValue(const PathLoop &loop);
  int64_t
  tileAt(AxisId axis,
         size_t depth) const; // elements of `axis` below the first `depth` loops; 0: symbolic
  bool onLanes(AxisId axis) const;
  NodeId equationAxis(int equation, int position);
  AxisId scheduleAxis(int equation, int position) const;
  NodeId flatIndex(int equation, NodeId read);
  NodeId addressOf(int equation, const FlatAccess &access);
  NodeId tensorIndex(const Shape &shape, const std::vector<NodeId> &indices);
  NodeId outputIndex(int equation, size_t output);
  NodeId importValue(int equation, NodeId root);
  NodeId stackedStep();
  /// Where a state begins in its two halves: the one that the step reads, or the one that it writes.
  NodeId halfOf(TensorId state, bool written);
  const ScanCarry *carryOf(TensorId tensor, bool next) const;
  bool outlivesStep(TensorId tensor) const;
  bool isStoredTwice(int equation) const;
  NodeId numbered(int equation, int read, NodeId node);
  NodeId readTensor(int equation, NodeId original, const Scalar &copied);
  NodeId readMemory(int equation, NodeId original, const Scalar &copied);
  NodeId readOperand(size_t operand);
  NodeId lanePredicate(int equation, uint64_t axes);
  NodeId inBounds(int equation, bool spatial, bool reduction, bool lanesOnly);
  BufferId globalBuffer(TensorId tensor);
  MemLevel levelOf(TensorId tensor) const;
  int producerOf(TensorId tensor) const;
  /// `named`: elements along axes whose loops are not around the statement (namedElement).
  using NamedElements = std::map<AxisId, NodeId>;
  std::vector<NodeId> unrollIndices(int equation, const NamedElements &named = {});
  std::vector<NodeId> partIndices(int equation, NodeId part, const NamedElements &named = {});
  NamedElements namedElements(int producer, int reader, NodeId read);
  NodeId edgeIndex(int equation, TensorId tensor, const std::vector<NodeId> &indices);

  // LowerLeaf.cpp: statements
  void lowerLeaf(const TreeNode &node, std::vector<Stmt> &out);
  void lowerInit(int equation, std::vector<Stmt> &out);
  void resetAccumulator(int equation, std::vector<Stmt> &out);
  void lowerCompute(int equation, std::vector<Stmt> &out);
  void lowerCombine(int equation, std::vector<Stmt> &out);
  Shape partialsShape(bool ofLanes) const;
  std::vector<Stmt>
  atPartials(bool ofLanes, NodeId unit,
             const std::function<std::vector<Stmt>(const std::vector<NodeId> &)> &emit);
  void lowerStore(int equation, std::vector<Stmt> &out);
  void lowerStage(size_t operand, std::vector<Stmt> &out);
  void lowerCarry(int when, std::vector<Stmt> &out);
  void storeResult(int equation, size_t output, NodeId value, std::vector<Stmt> &out);
  void storeStacked(const ScanOutput &to, NodeId element, NodeId value, std::vector<Stmt> &out);
  void guarded(NodeId predicate, std::vector<Stmt> body, std::vector<Stmt> &out);
  /// Spreads [0, total) over units and lanes (or, on a CPU, over vectors); `emit` gets the flat position.
  void cooperative(NodeId total, const std::function<std::vector<Stmt>(NodeId)> &emit,
                   std::vector<Stmt> &out);
  NodeId lowestIndex(int equation, NodeId index);
  void checkStageCovers(const Operand &operand, uint64_t axes);
  void stageOnCpu(const std::vector<size_t> &order, const std::vector<int64_t> &extents,
                  const std::function<std::vector<Stmt>(const std::vector<NodeId> &)> &emit,
                  std::vector<Stmt> &out);
  Status makeBuffers();
  Status makeAccumulators(int equation);

  const ExprProgram &pattern;
  const Schedule &schedule;
  const std::vector<Symbol> &symbols;
  std::vector<TreeNode> tree; // the schedule's, with the stores that edge levels ask for
  std::vector<const Equation *> equations;
  const Equation *scan = nullptr;
  const bool inGridScan; // all blocks take the scan's steps together (schedule/GridScan.h)
  VarId roundVar = -1;
  LoweredKernel out;
  GirKernel &kernel;
  Body &body;

  // LowerCascade.cpp: reductions that carry several states
  struct Cascade {
    std::vector<int> ranks;                        // one a state, as all of these
    std::vector<BufferId> states, before, partner; // before: -1 for the highest rank
  };
  bool isCascade(int equation) const;
  void makeCascade(int equation, const std::function<BufferId(const std::string &)> &addRegister);
  BufferId accumulatorOf(int equation, size_t output) const;
  Stmt lanesStmt(std::vector<Stmt> statements);
  Stmt foldStmt(int equation, BufferId buffer, Monoid monoid, NodeId value);
  Stmt copyRegister(int equation, BufferId from, BufferId to);
  NodeId readRegister(int equation, BufferId buffer, const NamedElements &named = {});
  NodeId importWithStates(int equation, NodeId root, const std::vector<BufferId> &parts);
  static std::vector<BufferId> ownParts(const Cascade &cascade, size_t own);
  void resetCascade(int equation, std::vector<Stmt> &out);
  void computeCascade(int equation, int rank, std::vector<Stmt> &out);
  void correctCascade(int equation, int rank, std::vector<Stmt> &out);
  std::vector<Stmt> mergePartner(int equation);
  void combineCascade(int equation, std::vector<Stmt> &out);
  std::map<int, Cascade> cascades;                      // by equation
  const std::vector<BufferId> *partRegisters = nullptr; // while a node of a cascade is imported

  // LowerTopK.cpp: the opaque equation topk
  bool isTopK(int equation) const;
  Monoid monoidOf(int equation) const; // of the values that lanes and units combine
  NodeId topKAddress(int equation, NodeId j);
  void makeTopK(int equation);
  void resetTopK(int equation, std::vector<Stmt> &out);
  void initTopK(int equation, std::vector<Stmt> &out);
  void computeTopK(int equation, std::vector<Stmt> &out);
  std::vector<Stmt> putTopK(int equation, NodeId index);
  void storeTopK(int equation, std::vector<Stmt> &out);
  void sortTopK(int equation, std::vector<Stmt> &out);
  void sortRound(int equation, int64_t pairs, int64_t distance, bool mirrored,
                 std::vector<Stmt> &out);

  void problem(std::string text); // remembered; run() turns it into BadIr diagnostics
  std::vector<std::string> problems;

  Path path;
  bool clampSpatial =
      false;            // reads of a reduction past a spatial extent are moved to the last element
  int computeRank = -1; // of the Compute statement that is being lowered
  /// Inside of rounds, where their values are fetched, and in phases that hold some: what becomes of such reads.
  enum class Holding : uint8_t { No, Fill, Use } holding = Holding::No;
  std::vector<tiling::PersistentRead> held;
  std::map<std::tuple<int, MemLevel, int, DType>, BufferId> heldBuffers; // phase, level, number
  std::set<VarId> stepsOverRegisters; // loops that are unrolled for that
  std::map<AxisId, Check> checks;
  std::set<AxisId> checkedByLanes;       // of those, in one version with what full tiles do
  std::map<AxisId, NodeId> axisOverride; // while a stage's element is evaluated
  std::map<TensorId, BufferId> globals;
  /// Memory of a block's own that holds an internal tensor: all of it, or the tile below the loops that its producer
  /// and its readers have in common.
  struct Local {
    BufferId buffer = -1;
    bool whole = true;
    size_t depth = 0;                              // loops of `path` around the tile
    std::vector<std::pair<AxisId, int64_t>> tiles; // the producer's axes and their elements in it
  };
  std::map<TensorId, Local> locals; // Shared edges
  struct Accumulator {
    BufferId value = -1, index = -1;
    std::vector<std::pair<AxisId, int>> dims; // (axis, which of its Unroll loops)
    // Partial results of a reduction that Combine folds, one for each iteration of the Unroll loop over a reduced axis:
    // a chain of dependent operations each, so that one's latency hides behind the others.
    AxisId partsAxis = -1;
    int64_t parts = 1;
    bool lanesReduce = false, unitsReduce = false;
    bool lanesKeep = false; // each lane a value of its own, along a spatial axis
  };
  std::vector<Accumulator> accumulators; // one an equation (unused for maps that go to memory)
  struct TopK {
    DType keyType = DType::I32, indexType = DType::I32;
    bool largest = true;
    bool sorts = false;                      // else it selects
    BufferId otherKey = -1, otherIndex = -1; // registers
    BufferId keys = -1, indices = -1;        // Shared, of a sort
  };
  std::map<int, TopK> topKs; // by equation
  struct Staged {
    BufferId buffer = -1;
    std::vector<int64_t> extents;
    std::vector<NodeId> bases; // index digits: the index's least value over the tile
    size_t depth = 0;          // loops of `path` around the Stage leaf
  };
  std::vector<Staged> staged; // one an operand
};

} // namespace fusec::lowering
