// The scope rule, and the search for values that would need the whole device as their scope.
//
// Blocks of one phase run in any order, so what one stores another one cannot read before the next phase. The search
// runs the index expressions of a phase, nothing else: statement by statement for a few blocks, with which block stored
// each element written down. Not looked at are indices and conditions from data; the interpreter and the simulator
// see those.
#include "Gir/Scope.h"

#include "Gir/Walk.h"

#include "Expr/ScalarEval.h"
#include "Support/OptValues.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <unordered_set>

namespace fusec {
namespace {

bool stores(const Stmt &s, BufferId buffer) {
  return writesBuffer(s) && (s.buffer == buffer || s.indexBuffer == buffer);
}

class MeetingFinder {
public:
  MeetingFinder(const GirKernel &kernel, const Phase &phase, BufferId buffer)
      : kernel(kernel), phase(phase), buffer(buffer), opt(optValues(kernel.symbols)),
        values(kernel.vars.size()), integers(kernel, opt) {
    for (const Scalar &s : kernel.body.nodes) {
      bool below = (s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) && s.index == buffer;
      for (NodeId a : s.args)
        below = below || reaches[static_cast<size_t>(a)];
      reaches.push_back(below);
    }
    visited.assign(reaches.size(), 0);
    findAccessing(phase.body);
  }

  std::optional<CrossBlockConflict> run() {
    for (const DimExpr &d : kernel.buffers[static_cast<size_t>(buffer)].shape)
      extents.push_back(d.evaluate(opt).value_or(0));
    if (!kernel.rounds)
      return oneRound();
    const int64_t last = kernel.rounds->count.evaluate(opt).value_or(1) - 1;
    std::optional<CrossBlockConflict> met;
    for (int64_t round : {int64_t{0}, std::min<int64_t>(1, last), last / 2, last}) {
      values[static_cast<size_t>(kernel.rounds->var)] = round;
      if (!met)
        met = oneRound();
    }
    return met;
  }

private:
  // The statements and accesses of a round that are looked at, shared among its blocks, those of a block at least, and
  // the values of a variable: enough to see neighbours meet.
  static constexpr int64_t kMostLooked = 1 << 14, kLeastOfBlock = 1 << 8, kEnds = 4;

  std::optional<CrossBlockConflict> oneRound() {
    stored.clear();
    reads.clear();
    int64_t numBlocks = 1;
    for (const Phase::Block &b : phase.blocks)
      numBlocks *= std::clamp<int64_t>(b.trip.evaluate(opt).value_or(0), 1, 2 * kEnds);
    most = std::max(kMostLooked / numBlocks, kLeastOfBlock);
    blocks(0, 0);
    for (auto [element, reader] : reads)
      if (auto [at, end] = stored.equal_range(element); at != end)
        for (; at != end; ++at)
          if (at->second != reader)
            return CrossBlockConflict{element, at->second, reader};
    return std::nullopt;
  }

  template <typename F> void each(int64_t trip, VarId var, F &&body) {
    for (int64_t i = 0; i < trip && looked < most; ++i) {
      if (i == kEnds && trip > 2 * kEnds)
        i = trip - kEnds;
      values[static_cast<size_t>(var)] = i;
      body(i);
    }
  }

  void blocks(size_t depth, int64_t number) {
    if (depth == phase.blocks.size()) {
      block = number;
      looked = 0;
      return list(phase.body);
    }
    const Phase::Block &b = phase.blocks[depth];
    const int64_t trip = b.trip.evaluate(opt).value_or(0);
    each(trip, b.var, [&](int64_t i) {
      blocks(depth + 1, number * trip + i);
      looked = 0; // of each block
    });
  }

  /// Fills `accessing` with those of the list, and of what they hold; false where there are none.
  bool findAccessing(const std::vector<Stmt> &stmts) {
    bool any = false;
    for (const Stmt &s : stmts) {
      bool here = stores(s, buffer);
      for (NodeId root : exprRoots(s))
        here = here || reaches[static_cast<size_t>(root)];
      here = findAccessing(s.body) || here;
      here = findAccessing(s.elseBody) || here;
      if (here)
        accessing.insert(&s);
      any = any || here;
    }
    return any;
  }

  void list(const std::vector<Stmt> &stmts) {
    for (const Stmt &s : stmts) {
      if (!accessing.contains(&s))
        continue;
      ++statement;
      ++looked;
      for (NodeId root : exprRoots(s))
        visit(root);
      if (stores(s, buffer))
        if (std::optional<int64_t> element = flat(s.indices, 0)) {
          stored.emplace(*element, block);
          if (s.kind == StmtKind::Accumulate)
            reads.emplace_back(*element, block);
        }
      if (s.kind == StmtKind::Loop) {
        if (std::optional<int64_t> trip = valueOf(s.trip))
          each(*trip, s.var, [&](int64_t) { list(s.body); });
      } else if (s.kind == StmtKind::If) {
        if (std::optional<int64_t> holds = valueOf(s.predicate))
          list(*holds ? s.body : s.elseBody);
      }
    }
  }

  /// Notes what is read where this expression is evaluated: a guarded read only where it happens for certain.
  void visit(NodeId id) {
    if (!reaches[static_cast<size_t>(id)] || visited[static_cast<size_t>(id)] == statement)
      return;
    visited[static_cast<size_t>(id)] = statement;
    const Scalar &s = kernel.body[id];
    size_t first = 0;
    if (s.op == ScalarOp::ReadIf) {
      visit(s.args[0]);
      visit(s.args[1]);
      if (!valueOf(s.args[0]).value_or(0))
        return;
      first = 2;
    }
    for (size_t i = first; i < s.args.size(); ++i)
      visit(s.args[i]);
    if ((s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) && s.index == buffer)
      if (std::optional<int64_t> element = flat(s.args, first))
        reads.emplace_back(*element, block);
  }

  /// None where data decides, and where an index lies outside of its dimension: then these sizes break a rule that the
  /// model tests, and the sum is the number of another element.
  std::optional<int64_t> flat(const std::vector<NodeId> &indices, size_t first) {
    int64_t sum = 0;
    ++looked;
    for (size_t d = 0; d < extents.size(); ++d) {
      std::optional<int64_t> index = valueOf(indices[first + d]);
      if (!index || *index < 0 || *index >= extents[d])
        return std::nullopt;
      sum = wrapToType(DType::I64, sum * extents[d] + *index);
    }
    return sum;
  }

  std::optional<int64_t> valueOf(NodeId id) const { return integers.at(id, values); }

  const GirKernel &kernel;
  const Phase &phase;
  const BufferId buffer;
  const std::vector<int64_t> opt;
  std::vector<int64_t> extents, values; // values: of the loop variables
  const IntegerValues integers;
  std::multimap<int64_t, int64_t> stored;         // element -> block
  std::vector<std::pair<int64_t, int64_t>> reads; // element, block
  /// Statements that store or read the buffer, or hold such: the loops of a product's terms hold none of a result.
  std::unordered_set<const Stmt *> accessing;
  std::vector<bool> reaches;    // node -> a read of the buffer is at or below it
  std::vector<int64_t> visited; // node -> run of a statement in which it was looked at last
  int64_t block = 0, looked = 0, most = 0, statement = 0;
};

void note(const GirKernel &kernel, const Stmt &s, BufferId buffer, bool &stored, bool &read) {
  for (NodeId id : kernel.body.reachable(exprRoots(s)))
    if (const Scalar &node = kernel.body[id];
        (node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf) && node.index == buffer)
      read = true;
  if (stores(s, buffer)) {
    stored = true;
    read = read || s.kind == StmtKind::Accumulate;
  }
}

} // namespace

Scope scopeOf(const Exchange &exchange) {
  if (!exchange.sameBlock)
    return Scope::Device;
  if (!exchange.sameUnit)
    return Scope::Block;
  return exchange.samePattern ? Scope::Lane : Scope::Unit;
}

IntegerValues::IntegerValues(const GirKernel &kernel, const std::vector<int64_t> &symbols)
    : kernel(kernel) {
  for (const Scalar &s : kernel.body.nodes)
    sizes.push_back(s.op == ScalarOp::Dim ? s.dim.evaluate(symbols) : std::nullopt);
}

std::optional<int64_t> IntegerValues::at(NodeId id, const std::vector<int64_t> &vars) const {
  const Scalar &s = kernel.body[id];
  if (isFloat(s.type))
    return std::nullopt;
  switch (s.op) {
  case ScalarOp::Const: return s.imm;
  case ScalarOp::Axis: return vars[static_cast<size_t>(s.index)];
  case ScalarOp::Dim: return sizes[static_cast<size_t>(id)];
  case ScalarOp::Read:
  case ScalarOp::ReadIf: return std::nullopt;
  default: break;
  }
  std::array<ScalarValue, 3> args{};
  assert(s.args.size() <= args.size());
  for (size_t i = 0; i < s.args.size(); ++i) {
    const std::optional<int64_t> value = at(s.args[i], vars);
    if (!value)
      return std::nullopt;
    args[i] = {*value, 0};
  }
  const std::optional<ScalarValue> result =
      evaluateScalar(s.op, s.type, kernel.body[s.args.back()].type, args.data());
  return result ? std::optional(result->i) : std::nullopt;
}

std::optional<CrossBlockConflict> findCrossBlockConflict(const GirKernel &kernel,
                                                         const Phase &phase, BufferId buffer) {
  bool stored = false, read = false;
  forEachStmt(phase.body, [&](const Stmt &s) { note(kernel, s, buffer, stored, read); });
  if (!stored || !read || gridSize(phase).isConst(1))
    return std::nullopt;
  return MeetingFinder(kernel, phase, buffer).run();
}

} // namespace fusec
