// The rules of a kernel, in the order of its text.
#include "Expr/BodyText.h"
#include "Gir/Product.h"
#include "Gir/ResidentGrid.h"
#include "Gir/Scope.h"
#include "Gir/Walk.h"
#include "Support/Diag.h"

#include <bit>
#include <set>

namespace fusec {
namespace {

class Verifier {
public:
  explicit Verifier(const GirKernel &kernel)
      : kernel(kernel), varying(laneVarying(kernel)), inScope(kernel.vars.size()),
        checked(kernel.body.nodes.size(), -1) {}

  Status run() {
    need(kernel.units >= 1 && kernel.lanes >= 1, "units and lanes are at least 1");
    need((kernel.lanes & (kernel.lanes - 1)) == 0, "lanes is a power of two");
    need(kernel.units <= kMaxThreads && kernel.lanes <= kMaxThreads,
         "units and lanes are at most " + std::to_string(kMaxThreads));
    buffers();
    counters();
    nodes();
    rounds();
    if (kernel.resident >= 0)
      bind(kernel.resident, LoopKind::Seq);
    if (errors.empty()) // statements index the tables that were checked so far
      for (size_t p = 0; p < kernel.phases.size(); ++p) {
        const bool again = kernel.rounds && p >= kernel.rounds->first && p < kernel.rounds->last;
        if (again)
          bind(kernel.rounds->var, LoopKind::Seq);
        phase(kernel.phases[p]);
        if (again)
          unbind(kernel.rounds->var);
      }
    need(!kernel.phases.empty(), "a kernel has at least one phase");
    if (errors.empty())
      for (const auto &problems : {counterProblems(kernel), heldProblems(kernel)})
        for (const std::string &rule : problems)
          need(false, rule);
    if (!errors.empty())
      return std::move(errors);
    return success();
  }

private:
  /// What surrounds a statement.
  struct Context {
    bool unit = false, lane = false;
    bool repeats = false;   // under a While
    bool divergent = false; // under an If whose predicate differs between lanes
    int depth = 0;
    int64_t copies = 1; // of the emitter's code, by the Unroll loops around it
  };
  // Far above what any target has or any schedule makes: texts that say more would not end in code.
  static constexpr int64_t kMaxThreads = 1024, kMaxCopies = 1 << 16;
  static constexpr size_t kMaxErrors = 20;

  void need(bool holds, const std::string &rule, const std::string &given = "") {
    if (holds || errors.size() >= kMaxErrors)
      return;
    errors.push_back(
        {Diag::BadIr, "kernel @" + kernel.name, rule + (given.empty() ? "" : "; " + given)});
  }

  bool validDim(const DimExpr &d) const {
    std::vector<SymbolId> used;
    d.collectSymbols(used);
    for (SymbolId s : used)
      if (s < 0 || s >= static_cast<SymbolId>(kernel.symbols.size()))
        return false;
    return true;
  }

  void buffers() {
    std::set<std::string> names;
    bool pastParams = false;
    for (const GirBuffer &b : kernel.buffers) {
      need(names.insert(b.name).second, "buffers have different names", "%" + b.name);
      for (const DimExpr &d : b.shape)
        need(validDim(d), "dimensions use symbols of the table", "%" + b.name);
      need(b.alignBytes == kSharedAlignment || b.level == MemLevel::Shared,
           "only Shared buffers have an alignment", "%" + b.name);
      need(std::has_single_bit(static_cast<uint64_t>(b.alignBytes)) &&
               b.alignBytes >= kSharedAlignment && b.alignBytes <= kMostSharedAlignment,
           "an alignment is a power of two from 128 to 1024",
           "%" + b.name + " has " + std::to_string(b.alignBytes));
      need(!b.scratch || (b.level == MemLevel::Global && b.written),
           "scratch is a Global buffer that is written", "%" + b.name);
      if (b.level == MemLevel::Global) {
        need(!pastParams, "Global buffers come first", "%" + b.name);
        need(b.offsetBytes == -1, "only Shared buffers have an offset", "%" + b.name);
        continue;
      }
      pastParams = true;
      need(!b.written, "only Global buffers are marked as written", "%" + b.name);
      need(isStatic(b.shape), "Register and Shared buffers have constant shapes", "%" + b.name);
      for (const DimExpr &d : b.shape)
        need(!d.isConst() || d.constValue() >= 1, "Register and Shared buffers are not empty",
             "%" + b.name);
      need(b.perLane || b.level == MemLevel::Register, "only Register buffers are uniform",
           "%" + b.name);
      if (b.level == MemLevel::Register)
        need(b.offsetBytes == -1, "only Shared buffers have an offset", "%" + b.name);
      else if (b.offsetBytes >= 0 && isStatic(b.shape))
        need(b.offsetBytes + numElements(b.shape).constValue() * sizeInBytes(b.type) <=
                 kernel.sharedBytes,
             "Shared buffers lie inside the kernel's shared bytes", "%" + b.name);
      need(b.offsetBytes < 0 || b.alignBytes <= kSharedAlignment ||
               b.offsetBytes % b.alignBytes == 0,
           "a buffer with an alignment lies at a multiple of it", "%" + b.name);
    }
  }

  void counters() {
    std::set<std::string> names;
    for (const GirCounters &c : kernel.counters) {
      need(names.insert(c.name).second, "counters have different names", "%" + c.name);
      need(validDim(c.count), "numbers of counters use symbols of the table", "%" + c.name);
    }
  }

  void nodes() {
    const Body &body = kernel.body;
    need(nestingOf(body).operations <= kMostNested,
         "at most " + std::to_string(kMostNested) + " operations stand one inside the other");
    for (NodeId id = 0; id < static_cast<NodeId>(body.nodes.size()); ++id) {
      const Scalar &s = body[id];
      std::string where = "node " + std::to_string(id) + " (" + std::string(mnemonic(s.op)) + ")";
      for (NodeId a : s.args)
        need(a >= 0 && a < id, "a node's operands come before it", where);
      need(arity(s.op) < 0 || arity(s.op) == static_cast<int>(s.args.size()),
           "operations have their arity", where);
      need(s.op != ScalarOp::Step && s.op != ScalarOp::State && s.op != ScalarOp::Part,
           "Step, State and Part belong to Expr alone", where);
      if (s.op == ScalarOp::Axis)
        need(s.index >= 0 && s.index < static_cast<int32_t>(kernel.vars.size()),
             "an axis is a loop variable", where);
      if (s.op == ScalarOp::Dim)
        need(validDim(s.dim), "dimensions use symbols of the table", where);
      if (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf)
        read(s, where);
    }
  }

  void read(const Scalar &s, const std::string &where) {
    if (s.index < 0 || s.index >= static_cast<int32_t>(kernel.buffers.size()))
      return need(false, "a read names a buffer", where);
    const GirBuffer &b = kernel.buffers[s.index];
    size_t extra = s.op == ScalarOp::ReadIf ? 2 : 0;
    need(s.type == b.type, "a read has its buffer's type", where + " of %" + b.name);
    need(s.args.size() == b.shape.size() + extra, "a read has one index a dimension",
         where + " of %" + b.name);
    for (size_t i = extra; i < s.args.size(); ++i)
      need(kernel.body[s.args[i]].type == DType::I64, "indices are i64", where + " of %" + b.name);
  }

  void rounds() {
    if (!kernel.rounds)
      return;
    const Rounds &r = *kernel.rounds;
    need(r.first < r.last && r.last <= kernel.phases.size(), "rounds hold phases of the kernel");
    need(r.var >= 0 && r.var < static_cast<VarId>(kernel.vars.size()),
         "rounds are counted by a variable of the table");
    need(validDim(r.count), "the count of rounds uses symbols of the table");
  }

  void phase(const Phase &p) {
    for (const Phase::Block &b : p.blocks) {
      need(validDim(b.trip), "block counts use symbols of the table");
      bind(b.var, LoopKind::Block);
    }
    statements(p.body, {});
    for (const Phase::Block &b : p.blocks)
      unbind(b.var);
    if (errors.empty())
      exchanges(p);
  }

  /// Values that go from block to block need the border of two phases.
  void exchanges(const Phase &p) {
    for (BufferId b = 0; b < kernel.numParams(); ++b)
      if (std::optional<CrossBlockConflict> met = findCrossBlockConflict(kernel, p, b))
        need(false, "what one block stores no other one reads before the next phase",
             "block " + std::to_string(met->readingBlock) + " reads element " +
                 std::to_string(met->element) + " of %" + kernel.buffers[b].name +
                 ", which block " + std::to_string(met->storingBlock) + " stores");
  }

  bool bind(VarId var, LoopKind kind) {
    bool known = var >= 0 && var < static_cast<VarId>(kernel.vars.size());
    need(known, "a loop has a variable of the table");
    if (!known)
      return false;
    const LoopVar &v = kernel.vars[var];
    need(v.kind == kind, "a loop and its variable are of one kind", v.name);
    need(!inScope[var] && scopeNames.insert(v.name).second,
         "loops inside each other have different names", v.name);
    inScope[var] = true;
    ++scopeVersion;
    return true;
  }
  void unbind(VarId var) {
    if (var < 0 || var >= static_cast<VarId>(kernel.vars.size()))
      return;
    inScope[var] = false;
    scopeNames.erase(kernel.vars[var].name);
    ++scopeVersion;
  }

  /// `id` exists, has the type and uses only variables of loops around it.
  bool expr(NodeId id, DType type, const std::string &what) {
    if (id < 0 || id >= static_cast<NodeId>(kernel.body.nodes.size())) {
      need(false, what + " is given");
      return false;
    }
    need(kernel.body[id].type == type, what + " is of type " + std::string(name(type)),
         "this one is " + std::string(name(kernel.body[id].type)));
    variables(id);
    return true;
  }

  void variables(NodeId id) {
    if (checked[id] == scopeVersion)
      return;
    checked[id] = scopeVersion;
    const Scalar &s = kernel.body[id];
    if (s.op == ScalarOp::Axis)
      need(inScope[s.index], "expressions use variables of the loops around them",
           kernel.vars[s.index].name);
    for (NodeId a : s.args)
      variables(a);
  }

  void statements(const std::vector<Stmt> &stmts, Context c) {
    ++c.depth;
    need(c.depth <= 64, "statements are nested at most 64 deep");
    if (c.depth <= 64)
      for (const Stmt &s : stmts)
        statement(s, c);
  }

  void statement(const Stmt &s, Context c) {
    switch (s.kind) {
    case StmtKind::Loop: return loop(s, c);
    case StmtKind::If:
    case StmtKind::While:
      if (!expr(s.predicate, DType::Bool, "a predicate"))
        return;
      if (s.kind == StmtKind::While) {
        need(!c.lane, "While stands outside Lane loops");
        need(s.elseBody.empty(), "only If has an else");
        c.repeats = true;
      } else if (c.lane && varying[s.predicate]) {
        c.divergent = true;
      }
      statements(s.body, c);
      return statements(s.elseBody, c);
    case StmtKind::Store:
    case StmtKind::Accumulate: return store(s, c);
    case StmtKind::LaneReduce: return laneReduce(s, c);
    case StmtKind::Exchange:
      need(s.distance >= 1 && s.distance < kernel.lanes &&
               std::has_single_bit(unsigned(s.distance)),
           "Exchange has a power of two below the lanes as its distance", "");
      overLanes(s, c, "Exchange");
      return;
    case StmtKind::Sync:
      need(!c.lane, "a Lane loop contains no Sync");
      need(!c.unit || s.scope == SyncScope::Unit, "a Unit loop contains no Sync of Block scope");
      return;
    case StmtKind::Signal:
    case StmtKind::Wait: return counting(s, c);
    }
  }

  void counting(const Stmt &s, const Context &c) {
    const std::string what = s.kind == StmtKind::Wait ? "Wait" : "Signal";
    need(!c.unit && !c.lane && !c.repeats, what + " stands outside Unit, Lane and While loops");
    const bool named = s.counter >= 0 && s.counter < static_cast<CounterId>(kernel.counters.size());
    need(named && s.indices.size() == (s.kind == StmtKind::Wait ? 2 : 1),
         what + " names its counters");
    for (NodeId root : exprRoots(s))
      expr(root, DType::I64, "a number in " + what);
  }

  void loop(const Stmt &s, Context c) {
    if (!expr(s.trip, DType::I64, "a trip count"))
      return;
    const Scalar &trip = kernel.body[s.trip];
    bool constant = trip.op == ScalarOp::Const;
    const std::string given =
        "loop '" +
        (s.var >= 0 && s.var < static_cast<VarId>(kernel.vars.size()) ? kernel.vars[s.var].name
                                                                      : "") +
        "'";
    need(s.elseBody.empty(), "only If has an else", given);
    switch (s.loop) {
    case LoopKind::Block: need(false, "Block loops stand in a phase's head", given); break;
    case LoopKind::Unit:
      need(!c.unit && !c.lane, "a Unit loop stands outside Unit and Lane loops", given);
      need(constant && trip.imm == kernel.units, "a Unit loop runs over the kernel's units", given);
      c.unit = true;
      break;
    case LoopKind::Lane:
      need(!c.lane, "a Lane loop stands outside Lane loops", given);
      need(constant && trip.imm == kernel.lanes, "a Lane loop runs over the kernel's lanes", given);
      c.lane = true;
      break;
    case LoopKind::Unroll:
      need(constant, "an Unroll loop has a constant trip", given);
      if (constant && trip.imm > 0 &&
          (__builtin_mul_overflow(c.copies, trip.imm, &c.copies) || c.copies > kMaxCopies)) {
        need(false, "Unroll loops make at most " + std::to_string(kMaxCopies) + " copies", given);
        c.copies = 1; // said once
      }
      break;
    case LoopKind::Seq:
      need(!c.lane || !varying[s.trip], "inside a Lane loop trips are the same in all lanes",
           given);
      break;
    }
    if (!bind(s.var, s.loop))
      return;
    statements(s.body, c);
    if (!s.kernel.empty() && errors.empty())
      need(productOf(kernel, s).has_value(),
           "the loops of a micro-kernel, Unroll and Lane ones, hold a Sum into registers of a "
           "product of two Reads, rows of the one and columns of the other",
           given + " kernel " + s.kernel);
    unbind(s.var);
  }

  /// The buffer, the index count and the right to write it.
  bool element(const Stmt &s, const Context &c) {
    if (s.buffer < 0 || s.buffer >= static_cast<BufferId>(kernel.buffers.size())) {
      need(false, "a statement names its buffer");
      return false;
    }
    const GirBuffer &b = kernel.buffers[s.buffer];
    const std::string given = "%" + b.name;
    need(s.indices.size() == b.shape.size(), "an element has one index a dimension", given);
    for (NodeId i : s.indices)
      expr(i, DType::I64, "an index of " + given);
    need(b.level != MemLevel::Global || b.written,
         "a Global buffer that is stored to is marked as written", given);
    need(b.perLane || b.level != MemLevel::Register || !c.lane,
         "a uniform register is written outside Lane loops", given);
    return true;
  }

  void indexBuffer(const Stmt &s) {
    bool tuple = s.monoid >= Monoid::ArgMax;
    need(tuple == (s.indexBuffer >= 0),
         "monoids over (value, index), and no others, have an index buffer",
         std::string(name(s.monoid)));
    if (s.indexBuffer < 0)
      return;
    if (s.indexBuffer >= static_cast<BufferId>(kernel.buffers.size()))
      return need(false, "an index buffer is one of the kernel's");
    const GirBuffer &value = kernel.buffers[s.buffer], &index = kernel.buffers[s.indexBuffer];
    need(index.level == value.level && index.shape == value.shape && index.perLane == value.perLane,
         "an index buffer has its value buffer's level and shape", "%" + index.name);
  }

  void store(const Stmt &s, const Context &c) {
    if (!element(s, c))
      return;
    const GirBuffer &b = kernel.buffers[s.buffer];
    expr(s.value, b.type, "a value for %" + b.name);
    if (s.kind == StmtKind::Store)
      return need(s.indexBuffer < 0, "a Store has no index buffer", "%" + b.name);
    indexBuffer(s);
    if (s.indexBuffer >= 0 && s.indexBuffer < static_cast<BufferId>(kernel.buffers.size()))
      expr(s.indexValue, kernel.buffers[s.indexBuffer].type, "an index value for %" + b.name);
  }

  void laneReduce(const Stmt &s, const Context &c) {
    if (overLanes(s, c, "LaneReduce"))
      indexBuffer(s);
  }

  bool overLanes(const Stmt &s, const Context &c, const std::string &what) {
    if (!element(s, c))
      return false;
    const GirBuffer &b = kernel.buffers[s.buffer];
    need(b.level == MemLevel::Register && b.perLane,
         what + " works on registers that each lane has", "%" + b.name);
    need(!c.divergent, what + " is reached by all lanes or none", "%" + b.name);
    for (NodeId i : s.indices)
      need(i < 0 || !varying[i], what + " has the same indices in all lanes", "%" + b.name);
    return true;
  }

  const GirKernel &kernel;
  std::vector<bool> varying;
  std::vector<bool> inScope;
  std::set<std::string> scopeNames;
  std::vector<int64_t> checked; // node -> scopeVersion at which its variables were last looked up
  int64_t scopeVersion = 0;
  Diagnostics errors;
};

} // namespace

Status verify(const GirKernel &kernel) { return Verifier(kernel).run(); }

} // namespace fusec
