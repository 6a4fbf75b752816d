#include "Expr/Cascade.h"
#include "Tiling/lower/EquationLowering.h"

namespace fusec::lowering {

namespace {

/// A reduction that carries several states (CascadeState in Expr/Expr.h). Each lane has, for every state, a register
/// with the points that it has seen; for those that others are corrected by, one with the values that the others stand
/// on (`before`); and one for another set of points: those of the current tile, or another lane's or unit's
/// (`partner`). Softmax's maximum and sum over a tile:
///
///   compute e rank 0   unroll u { lane l { %max.partner max= x[..] } }
///   correct e rank 1   lane l { %max max= %max.partner; %max.partner = -inf; %sum = %sum * exp(%max.before - %max) }
///   compute e rank 1   unroll u { lane l { %sum.partner sum= exp(x[..] - %max) } }
///   correct e rank 2   lane l { %sum sum= %sum.partner; %sum.partner = 0; %max.before = %max }
///
/// So the chain of operations that each tile waits for is short, however many vectors it has. Lanes are merged by a
/// butterfly, in which own and partner's states meet as the two sets of CascadeState:
///
///   lane l { %max.partner = %max; %sum.partner = %sum }
///   exchange %max.partner[] xor 8   exchange %sum.partner[] xor 8
///   lane l { %max.before = %max; %max max= %max.partner
///            %sum = %sum * exp(%max.before - %max); %sum sum= %sum.partner * exp(%max.partner - %max) }
class CascadeLowering final : public EquationLowering {
public:
  CascadeLowering(LoweringParts &parts, int number)
      : EquationLowering(parts, number), ranks(stateRanks(e)) {
    if (!buffers.shapeAccumulator(number))
      return;
    auto add = [&](const std::string &suffix) {
      return buffers.addRegister(acc, suffix, e.accumulateType);
    };
    const int last = lastRank(e);
    for (size_t s = 0; s < ranks.size(); ++s) {
      const std::string name = ".state" + std::to_string(s);
      acc.states.push_back(add(name));
      before.push_back(ranks[s] < last ? add(name + ".before") : -1);
      partner.push_back(add(name + ".partner"));
    }
    acc.outputs.assign(acc.states.end() - static_cast<ptrdiff_t>(e.outputs.size()),
                       acc.states.end());
  }

  void init(Stmts &result) override {
    for (size_t s = 0; s < e.states.size(); ++s)
      for (BufferId buffer : {acc.states[s], before[s], partner[s]})
        if (buffer >= 0)
          result.push_back(set(buffer, identity(s)));
  }

  void compute(int rank, Stmts &result) override {
    Stmts folds;
    loops.clampSpatial = true;
    for (size_t s = 0; s < e.states.size(); ++s)
      if (ranks[s] == rank)
        folds.push_back(fold(partner[s], s, value(e.results[s])));
    loops.clampSpatial = false;
    guarded(Bounds::Reduced, std::move(folds), result);
  }

  void correct(int rank, Stmts &result) override {
    Stmts lane;
    for (size_t s = 0; s < e.states.size(); ++s)
      if (ranks[s] == rank - 1) {
        lane.push_back(fold(acc.states[s], s, read(partner[s])));
        lane.push_back(set(partner[s], identity(s)));
      }
    for (size_t s = 0; s < e.states.size(); ++s)
      if (ranks[s] == rank)
        lane.push_back(set(acc.states[s], correction(s, ownParts(s))));
    if (rank > lastRank(e))
      for (size_t s = 0; s < e.states.size(); ++s) // all states stand on these from here on
        if (before[s] >= 0)
          lane.push_back(copy(acc.states[s], before[s]));
    result.push_back(writer.laneLoop(std::move(lane)));
  }

  void combine(Stmts &result) override {
    if (acc.lanesReduce)
      combineLanes(result);
    if (mergesUnits(acc, writer))
      combineUnits(result);
  }

private:
  NodeId read(BufferId buffer) { return reads.readRegister(acc, buffer); }
  Stmt copy(BufferId from, BufferId to) { return set(to, read(from)); }

  Stmt set(BufferId buffer, NodeId value) {
    return storeStmt(buffer, loops.registerIndex(acc), value);
  }

  Stmt fold(BufferId buffer, size_t state, NodeId value) {
    return accumulateStmt(buffer, loops.registerIndex(acc), e.states[state].monoid, value);
  }

  NodeId identity(size_t state) {
    return identityOf(body, e.states[state].monoid, e.accumulateType);
  }

  /// The state's correction, which takes it from the values that it stands on to those of `parts`.
  NodeId correction(size_t state, const std::vector<BufferId> &parts) {
    return reads.value(number, e.states[state].correction, &parts);
  }

  /// Part(s) of a state is the state itself, that of a lower one what the state stands on.
  std::vector<BufferId> ownParts(size_t state) const {
    std::vector<BufferId> parts = before;
    parts[state] = acc.states[state];
    return parts;
  }

  /// The states take in those of the partner.
  Stmts mergePartner() {
    Stmts lane;
    for (size_t s = 0; s < e.states.size(); ++s)
      if (before[s] >= 0)
        lane.push_back(copy(acc.states[s], before[s]));
    for (size_t s = 0; s < e.states.size(); ++s) {
      NodeId other = read(partner[s]);
      if (e.states[s].correction != kNoNode) {
        lane.push_back(set(acc.states[s], correction(s, ownParts(s))));
        other = correction(s, partner);
      }
      lane.push_back(fold(acc.states[s], s, other));
    }
    return lane;
  }

  void combineLanes(Stmts &result) {
    for (int distance = writer.lanes / 2; distance >= 1; distance /= 2) {
      Stmts copies;
      for (size_t s = 0; s < acc.states.size(); ++s)
        copies.push_back(copy(acc.states[s], partner[s]));
      result.push_back(writer.laneLoop(std::move(copies)));
      for (BufferId buffer : partner) {
        Stmt exchange = set(buffer, kNoNode);
        exchange.kind = StmtKind::Exchange;
        exchange.distance = distance;
        result.push_back(std::move(exchange));
      }
      result.push_back(writer.laneLoop(mergePartner()));
    }
    // A combination need not commute to the last bit: all lanes go on with the first one's.
    for (BufferId state : acc.states)
      result.push_back(copy(state, state));
  }

  void combineUnits(Stmts &result) {
    Stmt unit = writer.loop(LoopKind::Unit, body.index(writer.units), "unit");
    Stmt fold = writer.loop(LoopKind::Seq, body.index(writer.units), "fold");
    std::vector<BufferId> partials; // one a state
    for (BufferId state : acc.states)
      partials.push_back(
          addPartials(acc, writer.kernel.buffers[state].name, e.accumulateType, writer));
    unit.body = atPartials(acc, body.axis(unit.var), writer, [&](const std::vector<NodeId> &at) {
      Stmts stores;
      for (size_t s = 0; s < partials.size(); ++s)
        stores.push_back(storeStmt(partials[s], at, read(acc.states[s])));
      return stores;
    });
    result.push_back(std::move(unit));
    init(result);
    auto merge = [&](const std::vector<NodeId> &at) {
      Stmts lane;
      for (size_t s = 0; s < partials.size(); ++s)
        lane.push_back(set(partner[s], writer.read(partials[s], at)));
      for (Stmt &s : mergePartner())
        lane.push_back(std::move(s));
      return lane;
    };
    const NodeId folded = body.axis(fold.var);
    if (acc.lanesKeep)
      fold.body = atPartials(acc, folded, writer, merge);
    else
      fold.body.push_back(writer.laneLoop(merge({folded})));
    result.push_back(std::move(fold));
  }

  const std::vector<int> ranks;          // one a state, as these
  std::vector<BufferId> before, partner; // before: -1 for the highest rank
};

} // namespace

std::unique_ptr<EquationLowering> lowerCascade(LoweringParts &parts, int number) {
  return std::make_unique<CascadeLowering>(parts, number);
}

} // namespace fusec::lowering
