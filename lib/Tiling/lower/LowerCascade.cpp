// Statements of cascades (CascadeState in Expr/Expr.h). Each lane has, for every state, a register with the points
// that it has seen; for those that others are corrected by, one with the values that the others stand on (`before`);
// and one for another set of points: those of the current tile, or another lane's or unit's (`partner`). Softmax's
// maximum and sum over a tile:
//
//   compute e rank 0   unroll u { lane l { %max.partner max= x[..] } }
//   correct e rank 1   lane l { %max max= %max.partner; %max.partner = -inf; %sum = %sum * exp(%max.before - %max) }
//   compute e rank 1   unroll u { lane l { %sum.partner sum= exp(x[..] - %max) } }
//   correct e rank 2   lane l { %sum sum= %sum.partner; %sum.partner = 0; %max.before = %max }
//
// So the chain of operations that each tile waits for is short, however many vectors it has. Lanes are merged by a
// butterfly, in which own and partner's states meet as the two sets of CascadeState:
//
//   lane l { %max.partner = %max; %sum.partner = %sum }   exchange %max.partner[] xor 8   exchange %sum.partner[] xor
//   8
//   lane l { %max.before = %max; %max max= %max.partner
//            %sum = %sum * exp(%max.before - %max); %sum sum= %sum.partner * exp(%max.partner - %max) }
#include "Expr/Cascade.h"
#include "Tiling/lower/LowerContext.h"

namespace fusec::lowering {

bool Lowering::isCascade(int equation) const { return !equations[equation]->states.empty(); }

void Lowering::makeCascade(int equation,
                           const std::function<BufferId(const std::string &)> &addRegister) {
  Cascade &cascade = cascades[equation];
  cascade.ranks = stateRanks(*equations[equation]);
  const int last = lastRank(*equations[equation]);
  for (size_t s = 0; s < cascade.ranks.size(); ++s) {
    const std::string name = ".state" + std::to_string(s);
    cascade.states.push_back(addRegister(name));
    cascade.before.push_back(cascade.ranks[s] < last ? addRegister(name + ".before") : -1);
    cascade.partner.push_back(addRegister(name + ".partner"));
  }
}

/// The register that holds an output of the equation after its reduction; -1 where there is none.
BufferId Lowering::accumulatorOf(int equation, size_t output) const {
  if (isCascade(equation)) {
    const std::vector<BufferId> &states = cascades.at(equation).states;
    return states[states.size() - equations[equation]->outputs.size() + output];
  }
  const Accumulator &acc = accumulators[equation];
  return output == 0 ? acc.value : output == 1 ? acc.index : -1;
}

Stmt Lowering::lanesStmt(std::vector<Stmt> statements) {
  Stmt lanes;
  lanes.kind = StmtKind::Loop;
  lanes.loop = LoopKind::Lane;
  lanes.trip = body.index(schedule.lanes);
  lanes.var = newVar("lane", LoopKind::Lane, {0, schedule.lanes - 1, std::nullopt});
  lanes.body = std::move(statements);
  return lanes;
}

Stmt Lowering::foldStmt(int equation, BufferId buffer, Monoid monoid, NodeId value) {
  Stmt s;
  s.kind = StmtKind::Accumulate;
  s.buffer = buffer;
  s.indices = unrollIndices(equation);
  s.monoid = monoid;
  s.value = value;
  return s;
}

NodeId Lowering::readRegister(int equation, BufferId buffer, const NamedElements &named) {
  return body.read(buffer, kernel.buffers[buffer].type, unrollIndices(equation, named));
}

Stmt Lowering::copyRegister(int equation, BufferId from, BufferId to) {
  return storeStmt(to, unrollIndices(equation), readRegister(equation, from));
}

/// A node of the equation with its State leaves in the cascade's states and its Part leaves in `parts`.
NodeId Lowering::importWithStates(int equation, NodeId root, const std::vector<BufferId> &parts) {
  partRegisters = &parts;
  NodeId value = importValue(equation, root);
  partRegisters = nullptr;
  return value;
}

void Lowering::resetCascade(int equation, std::vector<Stmt> &result) {
  const Equation &e = *equations[equation];
  const Cascade &cascade = cascades.at(equation);
  for (size_t s = 0; s < e.states.size(); ++s)
    for (BufferId buffer : {cascade.states[s], cascade.before[s], cascade.partner[s]})
      if (buffer >= 0)
        result.push_back(storeStmt(buffer, unrollIndices(equation),
                                   identityOf(body, e.states[s].monoid, e.accumulateType)));
}

void Lowering::computeCascade(int equation, int rank, std::vector<Stmt> &result) {
  const Equation &e = *equations[equation];
  const Cascade &cascade = cascades.at(equation);
  std::vector<Stmt> folds;
  clampSpatial = true;
  for (size_t s = 0; s < e.states.size(); ++s)
    if (cascade.ranks[s] == rank)
      folds.push_back(foldStmt(equation, cascade.partner[s], e.states[s].monoid,
                               importWithStates(equation, e.results[s], {})));
  clampSpatial = false;
  guarded(inBounds(equation, false, true, false), std::move(folds), result);
}

/// Part(s) of state `own` is the state itself, that of a lower one what the state stands on.
std::vector<BufferId> Lowering::ownParts(const Cascade &cascade, size_t own) {
  std::vector<BufferId> parts = cascade.before;
  parts[own] = cascade.states[own];
  return parts;
}

void Lowering::correctCascade(int equation, int rank, std::vector<Stmt> &result) {
  const Equation &e = *equations[equation];
  const Cascade &cascade = cascades.at(equation);
  std::vector<Stmt> lane;
  for (size_t s = 0; s < e.states.size(); ++s)
    if (cascade.ranks[s] == rank - 1) {
      lane.push_back(foldStmt(equation, cascade.states[s], e.states[s].monoid,
                              readRegister(equation, cascade.partner[s])));
      lane.push_back(storeStmt(cascade.partner[s], unrollIndices(equation),
                               identityOf(body, e.states[s].monoid, e.accumulateType)));
    }
  for (size_t s = 0; s < e.states.size(); ++s)
    if (cascade.ranks[s] == rank)
      lane.push_back(
          storeStmt(cascade.states[s], unrollIndices(equation),
                    importWithStates(equation, e.states[s].correction, ownParts(cascade, s))));
  if (rank > lastRank(e))
    for (size_t s = 0; s < e.states.size(); ++s) // all states stand on these from here on
      if (cascade.before[s] >= 0)
        lane.push_back(copyRegister(equation, cascade.states[s], cascade.before[s]));
  result.push_back(lanesStmt(std::move(lane)));
}

/// The states take in those of the partner.
std::vector<Stmt> Lowering::mergePartner(int equation) {
  const Equation &e = *equations[equation];
  const Cascade &cascade = cascades.at(equation);
  std::vector<Stmt> lane;
  for (size_t s = 0; s < e.states.size(); ++s)
    if (cascade.before[s] >= 0)
      lane.push_back(copyRegister(equation, cascade.states[s], cascade.before[s]));
  for (size_t s = 0; s < e.states.size(); ++s) {
    const NodeId correction = e.states[s].correction;
    NodeId other = readRegister(equation, cascade.partner[s]);
    if (correction != kNoNode) {
      lane.push_back(storeStmt(cascade.states[s], unrollIndices(equation),
                               importWithStates(equation, correction, ownParts(cascade, s))));
      other = importWithStates(equation, correction, cascade.partner);
    }
    lane.push_back(foldStmt(equation, cascade.states[s], e.states[s].monoid, other));
  }
  return lane;
}

void Lowering::combineCascade(int equation, std::vector<Stmt> &result) {
  const Accumulator &acc = accumulators[equation];
  const Cascade &cascade = cascades.at(equation);
  if (acc.lanesReduce) {
    for (int distance = schedule.lanes / 2; distance >= 1; distance /= 2) {
      std::vector<Stmt> copies;
      for (size_t s = 0; s < cascade.states.size(); ++s)
        copies.push_back(copyRegister(equation, cascade.states[s], cascade.partner[s]));
      result.push_back(lanesStmt(std::move(copies)));
      for (BufferId partner : cascade.partner) {
        Stmt exchange;
        exchange.kind = StmtKind::Exchange;
        exchange.buffer = partner;
        exchange.indices = unrollIndices(equation);
        exchange.distance = distance;
        result.push_back(std::move(exchange));
      }
      result.push_back(lanesStmt(mergePartner(equation)));
    }
    // A combination need not commute to the last bit: all lanes go on with the first one's.
    for (BufferId state : cascade.states)
      result.push_back(copyRegister(equation, state, state));
  }
  if (!acc.unitsReduce || schedule.units == 1)
    return;
  if (!acc.dims.empty())
    return problem("a reduction over units cannot keep several accumulators a lane");
  Stmt unit;
  unit.kind = StmtKind::Loop;
  unit.loop = LoopKind::Unit;
  unit.trip = body.index(schedule.units);
  unit.var = newVar("unit", LoopKind::Unit, {0, schedule.units - 1, std::nullopt});
  Stmt fold;
  fold.kind = StmtKind::Loop;
  fold.loop = LoopKind::Seq;
  fold.trip = body.index(schedule.units);
  fold.var = newVar("fold", LoopKind::Seq, {0, schedule.units - 1, std::nullopt});
  std::vector<BufferId> partials; // one a state
  for (BufferId state : cascade.states) {
    GirBuffer shared = kernel.buffers[state];
    shared.name += ".units";
    shared.level = MemLevel::Shared;
    shared.shape = partialsShape(acc.lanesKeep);
    shared.perLane = true;
    kernel.buffers.push_back(shared);
    partials.push_back(static_cast<BufferId>(kernel.buffers.size() - 1));
  }
  unit.body = atPartials(acc.lanesKeep, body.axis(unit.var), [&](const std::vector<NodeId> &at) {
    std::vector<Stmt> stores;
    for (size_t s = 0; s < partials.size(); ++s)
      stores.push_back(storeStmt(partials[s], at, readRegister(equation, cascade.states[s])));
    return stores;
  });
  result.push_back(std::move(unit));
  resetCascade(equation, result);
  auto merge = [&](const std::vector<NodeId> &at) {
    std::vector<Stmt> lane;
    for (size_t s = 0; s < partials.size(); ++s)
      lane.push_back(storeStmt(cascade.partner[s], unrollIndices(equation),
                               body.read(partials[s], kernel.buffers[partials[s]].type, at)));
    for (Stmt &s : mergePartner(equation))
      lane.push_back(std::move(s));
    return lane;
  };
  const NodeId folded = body.axis(fold.var);
  if (acc.lanesKeep)
    fold.body = atPartials(true, folded, merge);
  else
    fold.body.push_back(lanesStmt(merge({folded})));
  result.push_back(std::move(fold));
}

} // namespace fusec::lowering
