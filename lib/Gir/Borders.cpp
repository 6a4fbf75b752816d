// Windows over an image's border, of which some terms lie outside:
//
//   seq r in 3 {
//     seq q in 3 {
//       lane l in 16 { %max[] max= if(lt(0, i + r) and lt(0, j*16 + q + l), %x[(i + r)*56 + j*16 + q + l - 57], -inf) }
//     }
//   }
//
// A term that leaves the result as it is needs no computing: what no lane and no loop inside decides is asked in front
// of them. What lanes decide is asked once for all of them and all turns, in a version for the middle of the image:
//
//   if lt(0, j*16) {
//     seq r in 3 { if lt(0, i + r) { seq q in 3 { lane l in 16 { %max[] max= %x[..] } } } }
//   } else {
//     seq r in 3 { if lt(0, i + r) { seq q in 3 { lane l in 16 { %max[] max= if(lt(0, j*16 + q + l), ..) } } } }
//   }
//
// Places that a border reflects or holds, for each of which lanes would gather, lie side by side in the middle:
//
//   lane l in 16 { %y[j*16 + l] = %x[max(0, j*16 + l - 3)] }
//
// becomes
//
//   if le(0, j*16 - 3) { lane l in 16 { %y[j*16 + l] = %x[j*16 + l - 3] } } else { lane l in 16 { .. } }
//
// For CPUs, whose masks take registers, of which AVX-512 has seven. In front of delayed stores and turned copies: what
// these look for has no such branches. Not handled: conditions on data and on registers, trips that no constant tells,
// products that have a micro-kernel, and factors under a condition, which a sum rounds once only without it.
#include "Gir/Passes.h"
#include "Gir/Walk.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec {
namespace {

using Conjuncts = std::set<NodeId>;

class BorderSplitter {
public:
  explicit BorderSplitter(GirKernel &kernel) : kernel(kernel), body(kernel.body) {}

  bool run() {
    setRanges(kernel);
    for (Phase &phase : kernel.phases) {
      skipTerms(phase.body);
      splitMiddle(phase.body, {});
      splitPlaces(phase.body);
    }
    return changed;
  }

private:
  static bool isSeq(const Stmt &s) { return s.kind == StmtKind::Loop && s.loop == LoopKind::Seq; }

  void conjunctsOf(NodeId predicate, Conjuncts &out) const {
    if (body[predicate].op == ScalarOp::And)
      for (NodeId a : body[predicate].args)
        conjunctsOf(a, out);
    else
      out.insert(predicate);
  }

  static bool isChoice(const Scalar &node) {
    return node.op == ScalarOp::ReadIf || node.op == ScalarOp::Select;
  }

  /// A loop that does nothing but add to registers, in loops and branches without an else.
  bool onlyAccumulates(const Stmt &loop) const {
    bool only = loop.kernel.empty();
    forEachStmt(loop.body, [&](const Stmt &s) {
      const bool adds = s.kind == StmtKind::Accumulate && s.indexBuffer < 0 &&
                        kernel.buffers[s.buffer].level == MemLevel::Register;
      const bool surrounds = (s.kind == StmtKind::Loop && s.kernel.empty()) ||
                             (s.kind == StmtKind::If && s.elseBody.empty());
      only = only && (adds || surrounds);
    });
    return only;
  }

  /// Variables of a loop and of those inside it, with their trips where constants tell them.
  std::map<VarId, std::optional<int64_t>> varsOf(const Stmt &loop) const {
    std::map<VarId, std::optional<int64_t>> vars;
    const auto add = [&](const Stmt &s) {
      if (s.kind == StmtKind::Loop)
        vars[s.var] =
            body[s.trip].op == ScalarOp::Const ? std::optional(body[s.trip].imm) : std::nullopt;
    };
    add(loop);
    forEachStmt(loop.body, add);
    return vars;
  }

  template <typename Vars> bool isFixed(NodeId node, const Vars &vars) const {
    return std::ranges::none_of(body.reachable({node}), [&](NodeId id) {
      const Scalar &s = body[id];
      return (s.op == ScalarOp::Axis && vars.contains(s.index)) || s.op == ScalarOp::Read ||
             s.op == ScalarOp::ReadIf;
    });
  }

  /// The conditions without which no statement of the loop changes its register.
  Conjuncts neededByAll(const Stmt &loop) {
    std::optional<Conjuncts> needed;
    forEachStmt(loop.body, [&](const Stmt &s) {
      if (s.kind != StmtKind::Accumulate)
        return;
      Conjuncts own;
      const Scalar value = body[s.value];
      const NodeId otherwise = !isChoice(value)               ? kNoNode
                               : value.op == ScalarOp::ReadIf ? value.args[1]
                                                              : value.args[2];
      if (otherwise != kNoNode && otherwise == identityOf(body, s.monoid, value.type))
        conjunctsOf(value.args[0], own);
      if (needed)
        std::erase_if(*needed, [&](NodeId c) { return !own.contains(c); });
      else
        needed = std::move(own);
    });
    return needed.value_or(Conjuncts());
  }

  NodeId allOf(const Conjuncts &conditions) {
    NodeId all = kNoNode;
    for (NodeId c : conditions)
      all = body.logicalAnd(all, c);
    return all;
  }

  /// The value where these conditions are known to hold.
  NodeId given(const Conjuncts &known, NodeId value) {
    std::map<NodeId, NodeId> made;
    for (NodeId id : body.reachable({value})) {
      Scalar s = body[id];
      Conjuncts asked;
      if (isChoice(s))
        conjunctsOf(s.args[0], asked);
      for (NodeId &a : s.args)
        a = made.at(a);
      if (isChoice(s)) {
        NodeId predicate = kNoNode;
        for (NodeId c : asked)
          if (!known.contains(c))
            predicate = body.logicalAnd(predicate, made.at(c));
        if (predicate != kNoNode) {
          s.args[0] = predicate;
        } else if (s.op == ScalarOp::Select) {
          made[id] = s.args[1];
          continue;
        } else {
          s.op = ScalarOp::Read;
          s.args.erase(s.args.begin(), s.args.begin() + 2);
        }
      }
      made[id] = body.add(std::move(s));
    }
    return made.at(value);
  }

  void assume(const Conjuncts &known, Stmt &loop) {
    forEachStmt(loop.body, [&](Stmt &s) {
      if (s.kind != StmtKind::Accumulate)
        return;
      const NodeId value = given(known, s.value);
      const bool becomesProduct = s.monoid == Monoid::Sum && body[value].op == ScalarOp::Mul &&
                                  body[s.value].op != ScalarOp::Mul;
      if (!becomesProduct) // whose product and sum are rounded at once
        s.value = value;
    });
  }

  /// Asks in front of a loop what decides about all of it.
  void skipTerms(std::vector<Stmt> &stmts) {
    for (Stmt &s : stmts) {
      if (isSeq(s) && onlyAccumulates(s)) {
        Conjuncts decisive = neededByAll(s);
        const auto vars = varsOf(s);
        std::erase_if(decisive, [&](NodeId c) { return !isFixed(c, vars); });
        if (const NodeId predicate = allOf(decisive); predicate != kNoNode) {
          assume(decisive, s);
          skipTerms(s.body);
          Stmt choice;
          choice.kind = StmtKind::If;
          choice.predicate = predicate;
          choice.body.push_back(std::move(s));
          s = std::move(choice);
          changed = true;
          continue;
        }
      }
      skipTerms(s.body);
      skipTerms(s.elseBody);
    }
  }

  /// The condition in the turn of all these loops in which it holds least; kNoNode where that is not known, or where
  /// all turns decide alike. `from`: the body as it is.
  NodeId worstCase(const Body &from, NodeId condition,
                   const std::map<VarId, std::optional<int64_t>> &vars) {
    const Scalar node = body[condition];
    if ((node.op != ScalarOp::Lt && node.op != ScalarOp::Le) ||
        body[node.args[0]].type != DType::I64 || readsAny(body, {condition}))
      return kNoNode;
    const NodeId room = body.binary(ScalarOp::Sub, node.args[1], node.args[0]);
    const std::optional<AffineForm> form =
        affineForm(body, room, static_cast<int>(kernel.vars.size()));
    if (!form)
      return kNoNode;
    std::map<VarId, int64_t> turn;
    for (const auto &[var, trip] : vars) {
      const DimExpr &step = form->coefficients[var];
      if (step.isConst(0))
        continue;
      if (!step.isConst() || !trip)
        return kNoNode;
      turn[var] = step.constValue() > 0 ? 0 : *trip - 1;
    }
    if (turn.empty())
      return kNoNode;
    return body.import(from, condition, [&](const Scalar &copied, NodeId) {
      const auto at = copied.op == ScalarOp::Axis ? turn.find(copied.index) : turn.end();
      return at == turn.end() ? kNoNode : body.index(at->second);
    });
  }

  /// A version of a loop for where no turn of it meets a border. `met`: conditions that do not hold here, as in what is
  /// done where a tile is cut.
  void splitMiddle(std::vector<Stmt> &stmts, const Conjuncts &met) {
    for (Stmt &s : stmts) {
      if (!isSeq(s) || !onlyAccumulates(s)) {
        splitMiddle(s.body, met);
        Conjuncts others = met;
        if (s.kind == StmtKind::If)
          others.insert(s.predicate);
        splitMiddle(s.elseBody, others);
        continue;
      }
      bool isMet = false;
      Conjuncts all, middle;
      NodeId predicate = kNoNode;
      forEachStmt(s.body, [&](const Stmt &inner) {
        if (inner.kind == StmtKind::Accumulate)
          for (NodeId id : body.reachable({inner.value}))
            if (isChoice(body[id]))
              conjunctsOf(body[id].args[0], all);
      });
      if (all.empty())
        continue;
      const auto vars = varsOf(s);
      const Body from = body;
      for (NodeId c : all)
        if (const NodeId worst = worstCase(from, c, vars); worst != kNoNode) {
          isMet = isMet || met.contains(worst);
          middle.insert(c);
          predicate = body.logicalAnd(predicate, worst);
        }
      if (middle.empty() || isMet || isNever(predicate))
        continue;
      Stmt inside = s;
      assume(middle, inside);
      changed = true;
      replace(s, predicate, std::move(inside));
    }
  }

  static bool onlyStores(const Stmt &lanes) {
    return std::ranges::all_of(lanes.body, [](const Stmt &s) {
      return s.kind == StmtKind::Store ||
             (s.kind == StmtKind::If && s.elseBody.empty() && onlyStores(s));
    });
  }

  /// The operand of a minimum or maximum of places that rises with the lanes, where the other one does not.
  NodeId risingOperand(NodeId a, NodeId c, VarId lane) const {
    const auto rises = [&](NodeId operand) -> std::optional<bool> {
      const auto form = affineForm(body, operand, static_cast<int>(kernel.vars.size()));
      if (!form || !form->coefficients[lane].isConst())
        return std::nullopt;
      return form->coefficients[lane].constValue() > 0;
    };
    const std::optional<bool> first = rises(a), second = rises(c);
    return !first || !second || *first == *second ? kNoNode : *first ? a : c;
  }

  /// What lanes store where each of their places is the one that rises with them, and when that is so; kNoNode: always.
  /// Nullopt where they have no such places, or nowhere.
  std::optional<std::pair<Stmt, NodeId>> inMiddle(const Stmt &lanes) {
    std::optional<NodeId> predicate;
    std::map<NodeId, NodeId> made;
    const std::map<VarId, std::optional<int64_t>> vars = varsOf(lanes);
    const auto remade = [&](NodeId root) {
      for (NodeId id : body.reachable({root})) {
        if (made.contains(id))
          continue;
        Scalar s = body[id];
        for (NodeId &a : s.args)
          a = made.at(a);
        const bool isMost = s.op == ScalarOp::Max;
        if (s.type == DType::I64 && (isMost || s.op == ScalarOp::Min))
          if (const NodeId own = risingOperand(s.args[0], s.args[1], lanes.var); own != kNoNode) {
            const NodeId other = own == s.args[0] ? s.args[1] : s.args[0];
            const NodeId holds = isMost ? body.binary(ScalarOp::Le, other, own)
                                        : body.binary(ScalarOp::Le, own, other);
            const NodeId worst = worstCase(Body(body), holds, vars);
            if (worst != kNoNode) {
              predicate = body.logicalAnd(predicate.value_or(kNoNode), worst);
              made[id] = own;
              continue;
            }
          }
        made[id] = body.add(std::move(s));
      }
      return made.at(root);
    };
    Stmt plain = lanes;
    forEachStmt(plain.body, [&](Stmt &s) {
      for (NodeId *ref : exprRefs(s))
        *ref = remade(*ref);
    });
    if (!predicate || isNever(*predicate))
      return std::nullopt;
    return std::pair{std::move(plain), *predicate};
  }

  bool isNever(NodeId predicate) const {
    return predicate != kNoNode && body[predicate].op == ScalarOp::Const && !body[predicate].imm;
  }

  /// A version of lanes for where no place of theirs meets a border.
  void splitPlaces(std::vector<Stmt> &stmts) {
    for (Stmt &s : stmts) {
      const bool isCopy = s.kind == StmtKind::Loop && s.loop == LoopKind::Lane && onlyStores(s);
      auto middle = isCopy ? inMiddle(s) : std::nullopt;
      if (middle) {
        changed = true;
        replace(s, middle->second, std::move(middle->first));
      } else {
        splitPlaces(s.body);
        splitPlaces(s.elseBody);
      }
    }
  }

  /// `inside` where the predicate holds, or in any case, in place of a statement.
  static void replace(Stmt &s, NodeId predicate, Stmt inside) {
    if (predicate == kNoNode) {
      s = std::move(inside);
      return;
    }
    Stmt choice;
    choice.kind = StmtKind::If;
    choice.predicate = predicate;
    choice.body.push_back(std::move(inside));
    choice.elseBody.push_back(std::move(s));
    s = std::move(choice);
  }

  GirKernel &kernel;
  Body &body;
  bool changed = false;
};

} // namespace

void splitBorders(GirKernel &kernel) {
  if (BorderSplitter(kernel).run())
    simplify(kernel);
}

} // namespace fusec
