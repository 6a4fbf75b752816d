// Statements of a kernel, run one after the other. A statement inside a Lane loop is done for all lanes before the
// next one, under a mask where an If separates them.
#include "Reference/GirInterpreter.h"

#include "Gir/Passes.h"
#include "Gir/Walk.h"
#include "Reference/GirMemory.h"
#include "Support/Diag.h"

#include <algorithm>

namespace fusec {
namespace girvm {
namespace {

/// A statement with what can be known of it beforehand.
struct Op {
  const Stmt *stmt;
  std::vector<NodeId> impure; // to evaluate first, in order
  bool readsRegisters = false;
  bool fused = false; // Accumulate: Sum of a float product
  std::vector<Op> body, elseBody;
};

class Interpreter {
public:
  Interpreter(const GirKernel &kernel, const std::vector<int64_t> &symbols,
              const GirInterpreterOptions &options)
      : kernel(kernel), symbols(symbols), checks(options.checks), resident(options.resident),
        cells(kernel, symbols), memory(kernel, symbols, options.checks) {}

  Status run(const std::vector<GirArgument> &arguments) {
    FUSEC_CHECK(memory.bind(arguments));
    const size_t phases = kernel.phases.size();
    const Rounds rounds = kernel.rounds.value_or(Rounds{0, 0, -1, DimExpr(1)});
    const int64_t count = rounds.count.evaluate(symbols).value_or(0);
    if (kernel.resident >= 0)
      cells.setVar(kernel.resident, resident);
    runPhases(0, rounds.first);
    for (int64_t round = 0; round < count; ++round) {
      if (rounds.var >= 0)
        cells.setVar(rounds.var, round);
      runPhases(rounds.first, rounds.last);
    }
    runPhases(rounds.last, phases);
    if (ok())
      return success();
    return Diagnostic{Diag::BadIr, "kernel @" + kernel.name,
                      (current ? "'" + headText(kernel, *current) + "' " : "") + memory.fault()};
  }

private:
  void runPhases(size_t first, size_t last) {
    for (size_t number = first; number < last && ok(); ++number) {
      const Phase &p = kernel.phases[number];
      memory.beginPhase(p.waiting);
      std::vector<Op> ops = prepare(p.body);
      std::vector<int64_t> trips, at(p.blocks.size(), 0);
      int64_t blocks = 1;
      for (const Phase::Block &b : p.blocks) {
        trips.push_back(std::max<int64_t>(b.trip.evaluate(symbols).value_or(0), 0));
        blocks *= trips.back();
      }
      for (int64_t block = 0; block < blocks && ok(); ++block) {
        int64_t rest = block;
        for (size_t i = trips.size(); i-- > 0; rest /= trips[i])
          at[i] = rest % trips[i];
        for (size_t i = 0; i < trips.size(); ++i)
          cells.setVar(p.blocks[i].var, at[i]);
        memory.beginBlock(block);
        list(ops);
      }
    }
  }

  bool ok() const { return memory.fault().empty(); }

  std::vector<Op> prepare(const std::vector<Stmt> &stmts) {
    std::vector<Op> ops;
    for (const Stmt &s : stmts) {
      Op op{&s, cells.impure(exprRoots(s)), false, false, prepare(s.body), prepare(s.elseBody)};
      for (NodeId id : op.impure) {
        const Scalar &node = kernel.body[id];
        bool read = node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf;
        op.readsRegisters =
            op.readsRegisters || (read && kernel.buffers[node.index].level == MemLevel::Register);
      }
      if (s.kind == StmtKind::Accumulate) {
        DType type = kernel.buffers[s.buffer].type;
        op.fused = s.indexBuffer < 0 && s.monoid == Monoid::Sum && isFloat(type) &&
                   kernel.body[s.value].op == ScalarOp::Mul;
      }
      ops.push_back(std::move(op));
    }
    return ops;
  }

  // Values

  int width() const { return inLane ? kernel.lanes : 1; }
  bool active(int lane) const { return !mask || (*mask)[static_cast<size_t>(lane)]; }

  void evaluate(const Op &op) {
    writesMemory =
        writesBuffer(*op.stmt) && kernel.buffers[op.stmt->buffer].level != MemLevel::Register;
    for (NodeId id : op.impure) {
      const Scalar &s = kernel.body[id];
      if (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf)
        read(id, s);
      else
        cells.evaluate(id, width());
    }
  }

  /// Row-major number of the element, or -1 (a fault) outside the buffer.
  int64_t element(BufferId b, const NodeId *indices, size_t rank, int lane) {
    int64_t at = 0;
    for (size_t d = 0; d < rank; ++d) {
      int64_t i = cells.column(indices[d])[lane * cells.step(indices[d])].i,
              size = memory.dimOf(b, d);
      if (i < 0 || i >= size) {
        memory.setFault("index " + std::to_string(i) + " of dimension " + std::to_string(d) +
                        " is outside %" + kernel.buffers[b].name + ", whose extent is " +
                        std::to_string(size));
        return -1;
      }
      at = at * size + i;
    }
    return at;
  }

  void read(NodeId id, const Scalar &s) {
    bool conditional = s.op == ScalarOp::ReadIf;
    size_t first = conditional ? 2 : 0;
    bool varying = cells.step(id) != 0;
    int count = varying ? width() : 1;
    Cell *out = cells.column(id);
    for (int l = 0; l < count; ++l) {
      if (count > 1 && !active(l))
        continue;
      if (conditional && !cells.column(s.args[0])[l * cells.step(s.args[0])].i) {
        out[l] = cells.column(s.args[1])[l * cells.step(s.args[1])];
        continue;
      }
      int64_t at = element(s.index, s.args.data() + first, s.args.size() - first, l);
      if (at < 0)
        return;
      // What only the writing thread uses is read by it alone.
      bool alone = kernel.buffers[s.index].level == MemLevel::Register || writesMemory;
      bool oneUnit = alone || inUnit || kernel.units == 1;
      bool oneLane = kernel.lanes == 1 || (inLane ? varying : alone);
      out[l] = memory.load(s.index, at, {oneUnit ? unit : kAll, oneLane ? l : kAll});
    }
  }

  // Statements

  void list(const std::vector<Op> &ops) {
    for (const Op &op : ops) {
      if (!ok())
        return;
      current = op.stmt;
      statement(op);
    }
  }

  /// Outside Unit loops every unit does the statement.
  template <typename F> void forUnits(F &&once) {
    if (inUnit || inAllUnits || kernel.units == 1)
      return once();
    inAllUnits = true;
    for (unit = 0; unit < kernel.units && ok(); ++unit)
      once();
    unit = 0;
    inAllUnits = false;
  }

  void statement(const Op &op) {
    const Stmt &s = *op.stmt;
    switch (s.kind) {
    case StmtKind::Loop: return loop(op);
    case StmtKind::If: return branch(op);
    case StmtKind::While:
      while (ok() && uniform(op, s.predicate)) {
        list(op.body);
        current = &s;
      }
      return;
    case StmtKind::Store:
    case StmtKind::Accumulate:
      // Memory is written by the first unit.
      if (kernel.buffers[s.buffer].level != MemLevel::Register && !inUnit && unit != 0)
        return;
      if (kernel.buffers[s.buffer].level != MemLevel::Register)
        return update(op);
      return forUnits([&] { update(op); });
    case StmtKind::LaneReduce: return forUnits([&] { laneReduce(op); });
    case StmtKind::Exchange: return forUnits([&] { exchange(op); });
    case StmtKind::Sync:
      if (s.scope == SyncScope::Block)
        return memory.syncBlock();
      return forUnits([&] { memory.syncUnit(unit); });
    case StmtKind::Signal: evaluate(op); return memory.signal(s.counter, value(s.indices[0], 0).i);
    case StmtKind::Wait:
      evaluate(op);
      return memory.wait(s.counter, value(s.indices[0], 0).i, value(s.indices[1], 0).i,
                         value(s.value, 0).i);
    }
  }

  /// Value of a predicate or trip count, which must be the same in all units.
  int64_t uniform(const Op &op, NodeId value) {
    evaluate(op);
    int64_t result = cells.column(value)->i;
    if (!checks || inUnit || inAllUnits || !op.readsRegisters)
      return result;
    for (unit = 1; unit < kernel.units && ok(); ++unit) {
      evaluate(op);
      if (cells.column(value)->i != result)
        memory.setFault("differs between units 0 and " + std::to_string(unit));
    }
    unit = 0;
    return result;
  }

  void loop(const Op &op) {
    const Stmt &s = *op.stmt;
    switch (s.loop) {
    case LoopKind::Unit:
      inUnit = true;
      for (unit = 0; unit < kernel.units && ok(); ++unit) {
        cells.setVar(s.var, unit);
        list(op.body);
      }
      unit = 0;
      inUnit = false;
      return;
    case LoopKind::Lane:
      inLane = true;
      cells.setLaneVar(s.var);
      forUnits([&] { list(op.body); });
      inLane = false;
      return;
    default: break;
    }
    int64_t trip = uniform(op, s.trip);
    for (int64_t i = 0; i < trip && ok(); ++i) {
      cells.setVar(s.var, i);
      list(op.body);
    }
  }

  void branch(const Op &op) {
    const Stmt &s = *op.stmt;
    if (!inLane || cells.step(s.predicate) == 0) {
      bool holds = uniform(op, s.predicate) != 0;
      return list(holds ? op.body : op.elseBody);
    }
    evaluate(op);
    const std::vector<char> *outer = mask;
    std::vector<char> then(static_cast<size_t>(kernel.lanes)), otherwise(then);
    const Cell *predicate = cells.column(s.predicate);
    for (int l = 0; l < kernel.lanes; ++l) {
      then[static_cast<size_t>(l)] = active(l) && predicate[l].i;
      otherwise[static_cast<size_t>(l)] = active(l) && !predicate[l].i;
    }
    for (auto [lanes, body] : {std::pair(&then, &op.body), std::pair(&otherwise, &op.elseBody)}) {
      if (std::find(lanes->begin(), lanes->end(), 1) == lanes->end())
        continue;
      mask = lanes;
      list(*body);
    }
    mask = outer;
  }

  /// Calls `once(lane of the values, thread)` for every thread of this unit that does a write to `b`.
  template <typename F> void forWriters(BufferId b, F &&once) {
    const GirBuffer &buffer = kernel.buffers[b];
    bool everyLane = inLane || (buffer.level == MemLevel::Register && buffer.perLane);
    for (int l = 0; l < (everyLane ? kernel.lanes : 1) && ok(); ++l)
      if (!inLane || active(l))
        once(inLane ? l : 0, Thread{unit, l});
  }

  Cell value(NodeId id, int lane) { return cells.column(id)[lane * cells.step(id)]; }

  void update(const Op &op) {
    return op.stmt->kind == StmtKind::Store ? store(op) : accumulate(op);
  }

  void store(const Op &op) {
    const Stmt &s = *op.stmt;
    evaluate(op);
    forWriters(s.buffer, [&](int lane, Thread by) {
      int64_t at = element(s.buffer, s.indices.data(), s.indices.size(), lane);
      if (at >= 0)
        memory.store(s.buffer, at, by, value(s.value, lane));
    });
  }

  void accumulate(const Op &op) {
    const Stmt &s = *op.stmt;
    DType type = kernel.buffers[s.buffer].type;
    evaluate(op);
    forWriters(s.buffer, [&](int lane, Thread by) {
      int64_t at = element(s.buffer, s.indices.data(), s.indices.size(), lane);
      if (at < 0)
        return;
      Cell before = memory.load(s.buffer, at, by);
      if (s.indexBuffer >= 0) {
        Cell index = memory.load(s.indexBuffer, at, by);
        if (winsArg(s.monoid, type, before, index.i, value(s.value, lane),
                    value(s.indexValue, lane).i)) {
          memory.store(s.buffer, at, by, value(s.value, lane));
          memory.store(s.indexBuffer, at, by, value(s.indexValue, lane));
        }
        return;
      }
      if (op.fused) {
        const Scalar &product = kernel.body[s.value];
        return memory.store(s.buffer, at, by,
                            fusedMultiplyAdd(type, value(product.args[0], lane),
                                             value(product.args[1], lane), before));
      }
      memory.store(s.buffer, at, by, combine(s.monoid, type, value(s.value, lane), before));
    });
  }

  void exchange(const Op &op) {
    const Stmt &s = *op.stmt;
    evaluate(op);
    int64_t at = element(s.buffer, s.indices.data(), s.indices.size(), 0);
    if (at < 0)
      return;
    std::vector<Cell> values;
    for (int l = 0; l < kernel.lanes; ++l)
      values.push_back(memory.load(s.buffer, at, {unit, l}));
    for (int l = 0; l < kernel.lanes; ++l)
      memory.store(s.buffer, at, {unit, l}, values[static_cast<size_t>(l ^ s.distance)]);
  }

  void laneReduce(const Op &op) {
    const Stmt &s = *op.stmt;
    DType type = kernel.buffers[s.buffer].type;
    evaluate(op);
    int64_t at = element(s.buffer, s.indices.data(), s.indices.size(), 0);
    if (at < 0)
      return;
    size_t lanes = static_cast<size_t>(kernel.lanes);
    std::vector<Cell> values(lanes), indices(lanes), nextValues(lanes), nextIndices(lanes);
    for (size_t l = 0; l < lanes; ++l) {
      values[l] = memory.load(s.buffer, at, {unit, static_cast<int>(l)});
      if (s.indexBuffer >= 0)
        indices[l] = memory.load(s.indexBuffer, at, {unit, static_cast<int>(l)});
    }
    for (size_t d = lanes / 2; d >= 1; d /= 2) {
      for (size_t l = 0; l < lanes; ++l) {
        size_t other = l ^ d;
        if (s.indexBuffer < 0) {
          nextValues[l] = combine(s.monoid, type, values[l], values[other]);
          continue;
        }
        bool wins =
            winsArg(s.monoid, type, values[l], indices[l].i, values[other], indices[other].i);
        nextValues[l] = values[wins ? other : l];
        nextIndices[l] = indices[wins ? other : l];
      }
      values.swap(nextValues);
      indices.swap(nextIndices);
    }
    for (size_t l = 0; l < lanes; ++l) {
      memory.store(s.buffer, at, {unit, static_cast<int>(l)}, values[l]);
      if (s.indexBuffer >= 0)
        memory.store(s.indexBuffer, at, {unit, static_cast<int>(l)}, indices[l]);
    }
  }

  const GirKernel &kernel;
  const std::vector<int64_t> &symbols;
  const bool checks, resident;
  Cells cells;
  Memory memory;
  const Stmt *current = nullptr;
  int unit = 0;
  bool inUnit = false, inLane = false;
  bool inAllUnits = false;   // outside Unit loops: doing for `unit` what every unit does
  bool writesMemory = false; // the current statement stores to Shared or Global memory
  const std::vector<char> *mask = nullptr; // lanes that take part; nullptr: all
};

} // namespace
} // namespace girvm

Status run(const GirKernel &kernel, const std::vector<GirArgument> &arguments,
           const std::vector<int64_t> &symbols, const GirInterpreterOptions &options) {
  GirKernel canonical = kernel; // every loop needs a variable of its own
  canonicalise(canonical);
  return girvm::Interpreter(canonical, symbols, options).run(arguments);
}

} // namespace fusec
