#include "GirCounts.h"

#include "Expr/OpWeight.h"
#include "Expr/Padding.h"
#include "Expr/ScalarEval.h"
#include "Gir/Walk.h"
#include "Support/OptValues.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace fusec::test {
namespace {

bool isRead(const Scalar &node) { return node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf; }

constexpr int64_t kSectorBytes = 32;
constexpr int64_t kDataBelow = 4096; // what data gives as an index: anywhere

class KernelCounter {
public:
  KernelCounter(const GirKernel &kernel, const Target &target, int points)
      : kernel(kernel), body(kernel.body), threaded(target.kind != TargetKind::Cpu), points(points),
        symbols(optValues(kernel.symbols)), varying(laneVarying(kernel)),
        fromData(body.nodes.size()), depends(body.nodes.size() * kernel.vars.size()),
        stamps(body.nodes.size()), values(body.nodes.size()), vars(kernel.vars.size()) {
    for (size_t id = 0; id < fromData.size(); ++id) {
      const Scalar &node = body.nodes[id];
      fromData[id] = isRead(node) || std::ranges::any_of(node.args, [&](NodeId arg) {
                       return bool(fromData[static_cast<size_t>(arg)]);
                     });
      if (node.op == ScalarOp::Axis)
        depends[id * kernel.vars.size() + static_cast<size_t>(node.index)] = true;
      for (NodeId arg : node.args)
        for (size_t var = 0; var < kernel.vars.size(); ++var)
          if (dependsOn(arg, static_cast<VarId>(var)))
            depends[id * kernel.vars.size() + var] = true;
    }
    if (kernel.resident >= 0)
      vars[kernel.resident] = 1;
  }

  GirCounts run() {
    for (size_t p = 0; p < kernel.phases.size(); ++p) {
      const Phase &phase = kernel.phases[p];
      path.clear();
      if (kernel.rounds && p >= kernel.rounds->first && p < kernel.rounds->last)
        path.push_back({nullptr, kernel.rounds->var, valueOf(kernel.rounds->count)});
      blocks = 1;
      for (const Phase::Block &block : phase.blocks) {
        path.push_back({nullptr, block.var, valueOf(block.trip)});
        blocks *= static_cast<double>(path.back().trip);
      }
      list(phase.body);
    }
    return counts;
  }

private:
  /// A loop or a condition around a statement.
  struct Around {
    const Stmt *stmt; // null: blocks and rounds
    VarId var = -1;
    int64_t trip = 0; // of those
    bool otherwise = false;
    bool isLoop() const { return !stmt || stmt->kind == StmtKind::Loop; }
    bool isLoop(LoopKind kind) const { return stmt && isLoop() && stmt->loop == kind; }
  };
  struct Access {
    const GirBuffer *buffer;
    std::vector<NodeId> indices;
    std::vector<std::vector<NodeId>> guards; // one of these lists holds where the access happens
    bool isWrite;
    std::vector<int64_t> strides;
  };

  int64_t valueOf(const DimExpr &e) const {
    return std::max<int64_t>(0, e.evaluate(symbols).value_or(1));
  }

  void list(const std::vector<Stmt> &stmts) {
    for (const Stmt &s : stmts) {
      statement(s);
      counts.fromData = counts.fromData || s.kind == StmtKind::While;
      if (s.body.empty() && s.elseBody.empty())
        continue;
      path.push_back({&s, s.kind == StmtKind::Loop ? s.var : -1});
      list(s.body);
      path.back().otherwise = true;
      list(s.elseBody);
      path.pop_back();
    }
  }

  int64_t value(NodeId id) {
    const auto at = static_cast<size_t>(id);
    const int64_t stamp = varying[at] ? laneStamp : pointStamp;
    if (stamps[at] == stamp)
      return values[at].i;
    const Scalar &node = body[id];
    ScalarValue result;
    switch (node.op) {
    case ScalarOp::Const: result = {node.imm, node.fimm}; break;
    case ScalarOp::Dim: result.i = node.dim.evaluate(symbols).value_or(1); break;
    case ScalarOp::Axis: result.i = vars[node.index]; break;
    case ScalarOp::Read:
    case ScalarOp::ReadIf: {
      uint64_t mixed = 0x9e3779b97f4a7c15u + static_cast<uint64_t>(node.index);
      for (NodeId arg : indexOperands(node)) {
        mixed = (mixed ^ static_cast<uint64_t>(value(arg))) * 0xff51afd7ed558ccdu;
        mixed ^= mixed >> 32;
      }
      result.i = static_cast<int64_t>(mixed % kDataBelow);
      result.f = static_cast<double>(result.i);
      break;
    }
    default: {
      ScalarValue args[3];
      for (size_t a = 0; a < node.args.size() && a < std::size(args); ++a) {
        value(node.args[a]);
        args[a] = values[static_cast<size_t>(node.args[a])];
      }
      result = evaluateScalar(node.op, node.type, body[node.args.back()].type, args)
                   .value_or(ScalarValue{});
    }
    }
    values[at] = result;
    stamps[at] = stamp;
    return result.i;
  }

  /// What data decides is taken to hold.
  bool holds(NodeId id) {
    if (!fromData[static_cast<size_t>(id)])
      return value(id) != 0;
    counts.fromData = true;
    return body[id].op != ScalarOp::And || (holds(body[id].args[0]) && holds(body[id].args[1]));
  }

  /// The reads below a node, each with what must hold for it; and the nodes that compute values, not places.
  struct Found {
    std::map<NodeId, std::vector<std::vector<NodeId>>> reads;
    std::set<std::pair<NodeId, bool>> seen;
    std::set<NodeId> computed;
  };
  void findReads(NodeId id, std::vector<NodeId> &guards, bool computes, Found &found) {
    if (computes)
      found.computed.insert(id);
    const Scalar &node = body[id];
    if (guards.empty() && !found.seen.insert({id, computes}).second)
      return;
    if (!isRead(node)) {
      for (NodeId arg : node.args)
        findReads(arg, guards, computes, found);
      return;
    }
    const bool tests = node.op == ScalarOp::ReadIf;
    if (tests) {
      findReads(node.args[0], guards, false, found);
      findReads(node.args[1], guards, computes, found);
      guards.push_back(node.args[0]);
    }
    found.reads[id].push_back(guards);
    for (NodeId arg : indexOperands(node))
      findReads(arg, guards, false, found);
    if (tests)
      guards.pop_back();
  }

  void addAccess(std::vector<Access> &out, BufferId buffer, std::vector<NodeId> indices,
                 std::vector<std::vector<NodeId>> guards, bool isWrite) {
    const GirBuffer &b = kernel.buffers[buffer];
    if (b.level == MemLevel::Register)
      return;
    std::vector<int64_t> strides(b.shape.size(), 1);
    for (size_t d = strides.size(); d-- > 1;)
      strides[d - 1] = strides[d] * valueOf(b.shape[d]);
    out.push_back({&b, std::move(indices), std::move(guards), isWrite, std::move(strides)});
  }

  void statement(const Stmt &s) {
    Found found;
    std::vector<NodeId> guards;
    for (NodeId root : exprRoots(s))
      findReads(root, guards, root == s.value || root == s.indexValue, found);
    std::vector<Access> accesses;
    for (auto &[id, when] : found.reads)
      addAccess(accesses, body[id].index, indexOperands(body[id]), when, false);
    if (writesBuffer(s))
      for (BufferId b : {s.buffer, s.indexBuffer})
        if (b >= 0) {
          addAccess(accesses, b, s.indices, {{}}, true);
          if (s.kind != StmtKind::Store)
            addAccess(accesses, b, s.indices, {{}}, false);
        }
    const double ops = opsOf(s, found.computed);
    const bool isBarrier = s.kind == StmtKind::Sync && s.scope == SyncScope::Block;
    if (points == 0)
      accesses.clear();
    if (ops > 0 || isBarrier || !accesses.empty())
      measure(accesses, ops, isBarrier);
  }

  /// Instructions of one execution; what does not depend on an Unroll loop's variable is computed once for all of it.
  double opsOf(const Stmt &s, const std::set<NodeId> &computed) {
    double ops = 0;
    for (NodeId id : computed) {
      const double weight = weightOf(body[id].op);
      if (weight == 0)
        continue;
      double share = 1;
      for (const Around &around : path)
        if (around.isLoop(LoopKind::Unroll) && !dependsOn(id, around.var))
          share /= std::max<double>(1, double(body[around.stmt->trip].imm));
      ops += weight * share;
    }
    if (s.kind == StmtKind::LaneReduce)
      ops += 2 * std::log2(double(kernel.lanes));
    else if (s.kind == StmtKind::Exchange)
      ops += 1;
    else if (s.kind == StmtKind::Accumulate &&
             !(s.monoid == Monoid::Sum && body[s.value].op == ScalarOp::Mul &&
               isFloat(body[s.value].type)))
      ops += 1;
    return ops;
  }

  bool dependsOn(NodeId id, VarId var) const {
    return depends[static_cast<size_t>(id) * kernel.vars.size() + static_cast<size_t>(var)];
  }

  struct Asked {
    double lanes = 0;
    std::vector<int64_t> sectors;
  };
  void measure(const std::vector<Access> &accesses, double ops, bool isBarrier) {
    ++pointStamp;
    lane = nullptr;
    bool inUnits = false, isFixed = true;
    double all = 1;
    for (const Around &around : path) {
      if (!around.isLoop())
        continue;
      if (around.isLoop(LoopKind::Lane)) {
        lane = &around;
        continue;
      }
      inUnits = inUnits || around.isLoop(LoopKind::Unit);
      const ScalarOp op = around.stmt ? body[around.stmt->trip].op : ScalarOp::Const;
      isFixed = isFixed && (op == ScalarOp::Const || op == ScalarOp::Dim);
      all *= static_cast<double>(tripOf(around));
    }
    if (isFixed && all == 0)
      return;
    const int wanted = std::max(points, 64);
    const bool complete = isFixed && all <= wanted;
    const int number = complete ? static_cast<int>(all) : wanted;
    double times = 0;
    for (int n = 0; n < number; ++n) {
      const double weight = enter(n, complete) / (complete ? 1 : number);
      if (weight > 0)
        times += atPoint(accesses, weight, inUnits);
    }
    const double ofUnit = inUnits ? times / kernel.units : times;
    counts.ops += ops * ofUnit;
    if (isBarrier)
      counts.barriers += ofUnit / blocks;
  }

  int64_t tripOf(const Around &loop) { return loop.stmt ? value(loop.stmt->trip) : loop.trip; }

  /// Sets the variables of the loops around; what the point stands for.
  double enter(int n, bool complete) {
    ++pointStamp;
    laneStamp = --lastLaneStamp;
    double weight = 1;
    int64_t rest = n;
    int dimension = 0;
    for (const Around &around : path) {
      if (!around.isLoop() || &around == lane)
        continue;
      const int64_t trip = tripOf(around);
      if (trip <= 0)
        return 0;
      if (complete) {
        vars[around.var] = rest % trip;
        rest /= trip;
        continue;
      }
      // Points spread evenly over each loop, and over pairs of them: multiples of irrational numbers.
      static constexpr int kPrimes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
      const double step = std::sqrt(double(kPrimes[dimension++ % std::size(kPrimes)]));
      const double place = (n + 0.5) * step;
      vars[around.var] =
          std::min<int64_t>(trip - 1, int64_t((place - std::floor(place)) * double(trip)));
      weight *= static_cast<double>(trip);
    }
    return weight;
  }

  bool reached() {
    for (const Around &around : path)
      if (around.stmt && around.stmt->kind == StmtKind::If) {
        const NodeId predicate = around.stmt->predicate;
        if (fromData[static_cast<size_t>(predicate)]) {
          counts.fromData = true;
          if (around.otherwise || !holds(predicate))
            return false;
        } else if ((value(predicate) != 0) == around.otherwise) {
          return false;
        }
      }
    return true;
  }

  /// Adds what is asked of memory; the point's weight where the statement is reached.
  double atPoint(const std::vector<Access> &accesses, double weight, bool inUnits) {
    std::vector<Asked> asked(accesses.size());
    bool any = false;
    const int lanes = lane && !accesses.empty() ? kernel.lanes : 1;
    for (int l = 0; l < lanes; ++l) {
      if (lane)
        vars[lane->var] = l;
      laneStamp = --lastLaneStamp;
      if (!reached())
        continue;
      any = true;
      for (size_t a = 0; a < accesses.size(); ++a) {
        const Access &access = accesses[a];
        const bool happens = std::ranges::any_of(access.guards, [&](const auto &guards) {
          return std::ranges::all_of(guards, [&](NodeId guard) { return holds(guard); });
        });
        if (!happens)
          continue;
        int64_t element = 0;
        bool differs = false;
        for (size_t d = 0; d < access.indices.size(); ++d) {
          const auto id = static_cast<size_t>(access.indices[d]);
          element += value(access.indices[d]) * access.strides[d];
          differs = differs || varying[id];
          counts.fromData = counts.fromData || fromData[id];
        }
        if (!threaded && !differs && asked[a].lanes > 0)
          continue; // a vector loads what its lanes differ in
        ++asked[a].lanes;
        const int64_t size = sizeInBytes(access.buffer->type);
        for (int64_t sector = element * size / kSectorBytes;
             sector <= (element * size + size - 1) / kSectorBytes; ++sector)
          if (std::ranges::find(asked[a].sectors, sector) == asked[a].sectors.end())
            asked[a].sectors.push_back(sector);
      }
    }
    for (size_t a = 0; a < accesses.size(); ++a) {
      const Access &access = accesses[a];
      // Without a loop over lanes, or units, all of them read, and the first one writes.
      const double units = threaded && !inUnits && !access.isWrite ? kernel.units : 1;
      const double threads = threaded && !lane && !access.isWrite ? kernel.lanes : 1;
      const double bytes = weight * asked[a].lanes * units * threads *
                           static_cast<double>(sizeInBytes(access.buffer->type));
      const double sectors =
          threaded ? weight * units * static_cast<double>(asked[a].sectors.size()) : 0;
      if (access.buffer->level == MemLevel::Shared) {
        counts.sharedBytes += bytes;
        continue;
      }
      (access.isWrite ? counts.writtenBytes : counts.readBytes) += bytes;
      (access.isWrite ? counts.writtenSectors : counts.readSectors) += sectors;
    }
    return any ? weight : 0;
  }

  const GirKernel &kernel;
  const Body &body;
  const bool threaded; // lanes are threads, else elements of a vector
  const int points;
  const std::vector<int64_t> symbols;
  const std::vector<bool> varying;
  std::vector<bool> fromData;
  std::vector<bool> depends;   // a row a node, a column a loop variable
  std::vector<int64_t> stamps; // when each node's value was computed: points count up, lanes down
  std::vector<ScalarValue> values;
  std::vector<int64_t> vars;
  int64_t pointStamp = 0, laneStamp = 0, lastLaneStamp = 0;
  std::vector<Around> path;
  const Around *lane = nullptr;
  double blocks = 1; // of the phase
  GirCounts counts;
};

} // namespace

GirCounts countKernel(const GirKernel &kernel, const Target &target, int points) {
  return KernelCounter(kernel, target, points).run();
}

} // namespace fusec::test
