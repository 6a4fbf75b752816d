#pragma once
#include "Codegen/Codegen.h"
#include "Codegen/Neighbours.h"
#include "Codegen/Prefetch.h"
#include "Codegen/TargetHooks.h"
#include "Expr/TurnsOfGroup.h"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>

namespace fusec {

constexpr int64_t kLineBytes = 64; // of the caches of every x86-64

using Builder = llvm::IRBuilder<llvm::InstSimplifyFolder>;

llvm::Type *elementInMemory(Builder &b, DType t);

/// Value of a node. Where lanes are vector elements it is one of: the same in all lanes (a scalar), linear in the
/// lane number (a scalar i64 of lane 0 and a constant step), or varying (a vector). Where lanes are threads every
/// value is a scalar.
///
/// f16 and bf16 values are held as f32 (each node rounds), bool as i1, unsigned integers as integers.
struct Val {
  llvm::Value *v = nullptr;
  int64_t step = 0;
  bool varying = false;
  bool uniform() const { return !varying && step == 0; }
};

/// A predicate: `lanes` is an i1 or a vector of i1; `any` and `all` say at how many of the lanes it holds (i1). It is
/// the conjunction of `common`, which all lanes share (i1), and of `apart`, a vector; null: nothing of that kind.
struct Predicate {
  Val lanes;
  llvm::Value *any = nullptr, *all = nullptr;
  llvm::Value *common = nullptr, *apart = nullptr;
};

/// Makes one LLVM module for one kernel. One object, one kernel; the members are grouped by file.
class Emitter {
public:
  /// `kernels`: the target's micro-kernels, which outlive it.
  Emitter(const GirKernel &kernel, const KernelCode &code, std::span<const MicroKernel> kernels,
          const TargetHooks &hooks, llvm::Module &module);
  /// Entry points of all phases. A construct that the emitter does not have is reported.
  Status run();

private:
  // Emitter.cpp: functions and parameters.
  void emitCpuKernel();
  void emitGpuPhase(size_t phase);
  void emitGridKernel();
  void endRounds(llvm::Value *round, llvm::BasicBlock *begin, llvm::BasicBlock *done,
                 llvm::Function *gridSync, llvm::ArrayRef<llvm::Value *> barrier);
  /// Parameters behind buffers and dims. ScratchAndBlock: scratch, block number (CPU). Grid: number of blocks, the
  /// barrier's word.
  enum class Extra { None, ScratchAndBlock, Grid };
  llvm::Function *beginFunction(const std::string &name, llvm::GlobalValue::LinkageTypes linkage,
                                llvm::Type *result, Extra extra);
  void numberThreads();
  void emitPhaseBody(const Phase &phase, llvm::Value *block);
  void declareLocals();
  llvm::AllocaInst *entryAlloca(llvm::Type *type, const std::string &name);
  void problem(const std::string &what);

  // Statements.cpp
  void emit(const std::vector<Stmt> &stmts);
  void emit(const Stmt &s);
  void emitLoop(const Stmt &s);
  void emitSeq(const Stmt &s, llvm::Value *trip);
  void emitIf(const Stmt &s);
  void emitMasked(const std::vector<Stmt> &stmts, const Predicate &p, bool versioned);
  void emitWhile(const Stmt &s);
  void emitStore(const Stmt &s);
  void emitAccumulate(const Stmt &s);
  void emitLaneReduce(const Stmt &s);
  void emitExchange(const Stmt &s);
  void emitSync(SyncScope scope);
  void emitCounting(const Stmt &s);
  void emitWhere(llvm::Value *condition, llvm::function_ref<void()> body);
  /// Stores to shared and global memory are made by one thread where the statement stands outside Lane loops.
  void emitByWriter(const GirBuffer &buffer, llvm::function_ref<void()> body);

  // Expressions.cpp
  Val eval(NodeId id);
  Val evalUncached(const Scalar &s);
  Val evalIndexSum(const Scalar &s);
  bool splitIndex(NodeId id, llvm::Value *&common, llvm::Value *&apart, int64_t &mostApart);
  Val divideIndex(const Scalar &s); // IndexDivision.cpp, with the one above
  llvm::Value *divideNatural(const Scalar &s, llvm::Value *x, llvm::Value *by);
  llvm::Value *linearComparison(const Scalar &s, const std::vector<Val> &args);
  llvm::Value *evalScalar(NodeId id); // asserts that it is uniform
  llvm::Value *dimValue(const DimExpr &d);
  llvm::Value *asVector(const Val &v); // a vector of all lanes (a scalar on GPUs)
  llvm::Value *asLike(const Val &v, bool vector) { return vector ? asVector(v) : v.v; }
  Predicate evalPredicate(NodeId id);
  Predicate both(const Predicate &a, const Predicate &b);
  Predicate reduced(const Val &lanes);
  Predicate negated(const Predicate &p);
  bool hasRead(NodeId id) const { return readsMemory[id]; }
  void forget();

  // InFlight.cpp: reads that are on their way at once, where the target says how many.
  struct Repeated {
    VarId var;
    int64_t trip;
  };
  bool countReads(const std::vector<Stmt> &stmts, std::vector<Repeated> &around,
                  std::map<NodeId, int64_t> &reads) const;
  void takeTurnsAtOnce(const Stmt &loop, llvm::BranchInst &back) const;
  bool readsAnyway(const Scalar &s) const;
  bool readsRegisters(NodeId id) const;
  bool emitChosen(const Stmt &s, const Predicate &p);
  bool emitChosenStore(const Stmt &s, const Predicate &p);

  // Products.cpp: products that a micro-kernel makes.
  class ProductOperands;
  void emitProduct(const Stmt &loop);

  // Memory.cpp
  struct Place {
    llvm::Value *base = nullptr; // pointer
    Val index;                   // element number
  };
  Place place(BufferId buffer, const std::vector<Val> &indices);
  std::vector<Val> evalAll(const std::vector<NodeId> &ids, size_t first = 0);
  Val load(BufferId buffer, const std::vector<Val> &indices);
  llvm::Value *loadLanes(BufferId buffer, const Place &p); // as they are in memory
  void store(BufferId buffer, const std::vector<Val> &indices, const Val &value);
  void storeLanes(BufferId buffer, const Place &p, llvm::Value *stored);
  Val evalReadIf(const Scalar &s);
  std::optional<Val> evalPadded(const Scalar &s, const Predicate &p, const Val &otherwise,
                                const std::vector<Val> &indices); // Padding.cpp
  std::optional<Val> evalChosenRead(const Scalar &s);
  Val loadRegister(BufferId buffer, const std::vector<Val> &indices);
  void storeRegister(BufferId buffer, const std::vector<Val> &indices, const Val &value);
  llvm::Value *registerSlot(BufferId buffer, const std::vector<Val> &indices);
  Val loadScalarGuarded(llvm::Value *pointer, DType t, llvm::Value *guard, llvm::Value *elsewhere);
  /// What is loaded where: lanes that are off give those of `nothing`, and where nobody wants a vector (i1, null where
  /// somebody does), others come from `elsewhere`.
  struct Suppressed {
    llvm::Constant *nothing;
    llvm::Value *wanted, *elsewhere;
  };
  llvm::Value *loadStrided(const Place &p, llvm::Align align, llvm::Value *on,
                           const Suppressed &otherwise); // StridedLoads.cpp
  void storeVector(BufferId buffer, llvm::Value *stored, const Place &first);
  llvm::Value *fromMemory(DType t, llvm::Value *v);
  llvm::Value *toMemory(DType t, llvm::Value *v);
  llvm::Type *storageType(DType t);
  llvm::Value *pointers(const Place &p, DType t);
  void notePrefetches();
  void emitPrefetches(const Stmt &loop);
  Val inParts(const Stmt &loop, const Prefetch &access);

  // Turns.cpp: accesses whose lanes lie apart and the turns of an Unroll loop side by side.
  struct ColumnAccess {
    std::vector<VarId> inner;  // of the loops around the statement inside of a turn
    std::vector<NodeId> reads; // of its expressions
    bool stored = false;       // what it stores, too
  };
  /// A read (or the store: kNoNode) of a statement, in iterations of the loops inside of a turn.
  using ColumnKey = std::tuple<const Stmt *, NodeId, std::vector<int64_t>>;
  struct Turns {
    std::map<const Stmt *, ColumnAccess> accesses;
    std::map<ColumnKey, std::vector<llvm::Value *>> vectors; // of each turn, or each lane
    size_t turn = 0;
    std::optional<int64_t> lane; // whose row is in turn: vectors go along the turns meanwhile
    bool stores = false;
  };
  bool isColumn(BufferId buffer, const std::vector<NodeId> &indices, VarId turn, VarId lane) const;
  bool findColumns(const std::vector<Stmt> &stmts, VarId turn, VarId lane,
                   const std::vector<VarId> &inner, Turns &found) const;
  std::optional<Turns> columnsOf(const Stmt &loop) const;
  ColumnKey columnKey(NodeId read) const;
  llvm::Value *columnOf(NodeId read) const;
  void emitUnrolled(const Stmt &loop);
  void alongTurns(const Stmt &loop, int64_t first, int count, llvm::function_ref<void()> body);
  void loadColumns(const std::vector<Stmt> &stmts);
  void turnRows(bool ofReads);
  bool storeColumn(const Stmt &s);
  void emitSuppressed(const Predicate &p, llvm::function_ref<void()> body);

  // WideAccesses.cpp: what a thread's turns read or write side by side, at once.
  struct Together {
    const Neighbours &found;
    size_t depth;     // in `unrolled`, of the first loop inside of a turn
    int64_t turn = 0; // of the group
    struct Loaded {
      llvm::Value *elements;
      llvm::Value *wanted; // i1, of a guarded read
    };
    /// By the read of a statement and the iterations of the loops inside of a turn.
    std::map<ColumnKey, Loaded> loaded;
    std::map<const Stmt *, std::vector<llvm::Value *>>
        waiting; // for the last of the turns that are stored at once
    std::map<const Stmt *, llvm::Value *> places; // of these
  };
  const Neighbours *neighboursIn(const Stmt &loop);
  void emitTogether(const Stmt &loop, const Neighbours &found);
  std::optional<Val> neighbourRead(NodeId read);
  llvm::Value *loadTogether(const Scalar &read, int64_t turns, llvm::Value *wanted);
  bool storeTogether(const Stmt &s);
  llvm::Type *wideType(DType t, int64_t elements);

  // StreamingStores.cpp: stores past the caches.
  struct StreamingStore {
    llvm::AllocaInst *left, *end;   // what the next line begins with; where it is to end
    llvm::AllocaInst *into;         // elements of it
    llvm::AllocaInst *turn, *front; // which element of a vector comes where; lanes below `into`
  };
  void noteStreamed();
  std::map<BufferId, StreamingStore>
  beginStreaming(const Stmt &loop); // gives those of the loop around it
  void endStreaming(std::map<BufferId, StreamingStore> outer);
  void storePart(llvm::Value *line, llvm::Value *pointer, llvm::Value *into, llvm::Value *on);
  llvm::Value *loaded(llvm::AllocaInst *place);
  void storeLeft(const StreamingStore &state);
  struct StreamedVector {
    BufferId buffer;
    llvm::Value *stored, *pointer;
    llvm::Value *begin; // lies so far behind the start of a line as `pointer` does
    llvm::Align align;
  };
  void storeInOrder(const StreamingStore &state, std::span<const StreamedVector> vectors);
  void beginLine(const StreamingStore &state, const StreamedVector &vector);
  void storeNext(const StreamingStore &state, const StreamedVector &vector);
  bool beginTile(const Stmt &loop); // whether its streamed stores wait for `endTile`
  void endTile();
  void storeTile();
  bool wholeLines(llvm::Value *elements) const;
  void storeStreamed(const StreamedVector &vector);
  void storeLines(const std::vector<StreamedVector> &vectors);
  void markStreamed(llvm::Instruction *store);

  // Scalars.cpp, Casts.cpp, Maths.cpp, Monoids.cpp: operations on scalars or vectors alike.
  llvm::Type *valueType(DType t);
  llvm::Value *binary(ScalarOp op, DType type, DType operandType, llvm::Value *a, llvm::Value *c);
  llvm::Value *unary(ScalarOp op, DType type, DType operandType, llvm::Value *a);
  llvm::Value *integerDivision(ScalarOp op, DType type, llvm::Value *a, llvm::Value *c);
  llvm::Value *floatRemainder(DType type, llvm::Value *a, llvm::Value *c);
  llvm::Value *fma(DType type, llvm::Value *a, llvm::Value *c, llvm::Value *d);
  llvm::Value *rounded(DType t, llvm::Value *f32); // f32 -> nearest f16 or bf16, as f32
  llvm::Value *roundedFromDouble(DType t, llvm::Value *f64);
  llvm::Value *narrowBits(DType t, llvm::Value *v); // exact f16 or bf16 value, as f32 -> i16 bits
  llvm::Value *widenBits(DType t, llvm::Value *bits);
  llvm::Value *cast(DType to, DType from, llvm::Value *v);
  llvm::Value *castSat(DType to, DType from, llvm::Value *v);
  llvm::Value *bitcast(DType to, DType from, llvm::Value *v);
  llvm::Value *maths(ScalarOp op, DType type, llvm::Value *a, llvm::Value *c);
  llvm::Value *combine(Monoid m, DType t, llvm::Value *a, llvm::Value *c);
  std::pair<llvm::Value *, llvm::Value *> combineArg(Monoid m, DType t, DType indexType,
                                                     std::pair<llvm::Value *, llvm::Value *> a,
                                                     std::pair<llvm::Value *, llvm::Value *> c);
  llvm::Value *shuffleXor(llvm::Value *v, int distance);
  llvm::Value *overLanes(llvm::Value *v, llvm::Function *perWord, llvm::Value *extra);

  llvm::Constant *constantLike(llvm::Type *type, double v);
  llvm::Constant *integerLike(llvm::Type *type, int64_t v);
  llvm::Type *withShapeOf(llvm::Type *element, llvm::Type *like);
  llvm::Value *intrinsic(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value *> args);
  llvm::Function *machine(const char *name, llvm::Type *result,
                          llvm::ArrayRef<llvm::Type *> params);

  GirKernel kernel; // with ranges set
  const KernelCode &code;
  const std::span<const MicroKernel> kernels;
  const TargetHooks &hooks;
  llvm::Module &module;
  llvm::LLVMContext &context;
  Builder b;
  const bool threads; // lanes are threads
  int width;          // lanes that one vector holds; 1 where lanes are threads
  std::vector<SymbolId> symbols;
  std::vector<bool>
      readsMemory; // node -> a Read of Shared or Global memory is among its operands or itself
  std::multimap<const Stmt *, Prefetch> prefetches; // loop -> what its iterations ask for
  std::vector<bool> streamed; // buffer -> whole lines of it are stored past the caches
  std::map<BufferId, StreamingStore> lines; // of the Seq loop that is being emitted
  bool inTile = false;                      // of Unroll loops that hold stores alone
  std::vector<StreamedVector> tile;         // its stores past the caches, which follow its loads
  std::set<BufferId> storedOnce;            // by one of its statements
  std::optional<Turns> turns;               // of the Unroll loop that is being emitted
  std::map<const Stmt *, std::optional<Neighbours>> neighbours; // of Unroll loops met so far
  std::vector<Together> together;                               // of those around the statement
  std::vector<VarId> unrolled;                                  // all Unroll loops around it
  const Stmt *current = nullptr;                                // whose expressions are evaluated
  std::map<llvm::Constant *, llvm::GlobalVariable *> paddings;
  Diagnostics errors;

  // State of the phase that is being emitted.
  llvm::Function *function = nullptr;
  std::vector<llvm::Value *> buffers; // Global and Shared: address; Register: alloca
  std::vector<llvm::Value *> dims;    // values of `symbols`
  llvm::Value *safePlace = nullptr;   // readable memory that a suppressed access is sent to
  std::vector<Val> vars;
  llvm::Value *gridWords = nullptr; // of the entry for all phases: barrier and counters
  llvm::Value *threadLane = nullptr, *threadUnit = nullptr; // i64, where lanes are threads
  bool inLane = false, inUnit = false, hasStreamed = false;
  llvm::Value *keepUnless = nullptr; // i1, null for true: registers take new values
  llvm::Value *mask = nullptr;       // lanes that are on; null: all
  // i1, null for true: some lane wants what the ReadIfs around an expression guard. Scalars and whole vectors obey it.
  llvm::Value *guard = nullptr;

  struct Cached {
    Val value;
    int64_t epoch = -1;
  };
  std::vector<Cached> cache;
  int64_t epoch = 0;
};

/// Quotient, rounded down, and remainder, by a divisor of at least 1 (IndexDivision.cpp).
std::pair<llvm::Value *, llvm::Value *> floorDivision(Builder &b, llvm::Value *x, llvm::Value *by);

} // namespace fusec
