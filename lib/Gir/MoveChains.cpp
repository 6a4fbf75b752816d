// swap-moves, merge-moves: values that a kernel lays down in device memory on their way.
//
// merge-moves: what is stored to scratch memory as it was read, and read there again, is read where it came from. The
// scratch's loops are solved for its flat index, which gives the place in the first buffer:
//
//   phase (b: 4) { .. %t[b*64 + l] = %x[b*64 + l] }
//   phase (c: 4) { .. %y[c*64 + l] = %t[l*4 + c] }        b = floordiv(l*4 + c, 64), l = floormod(l*4 + c, 64)
// becomes
//   phase (c: 4) { .. %y[c*64 + l] = %x[l*4 + c] }
//
// swap-moves: where that would hold but for a computation on each element, `%t[..] = max(%x[..], 0.0)`, the
// computation goes forward, behind the scratch: `%t[..] = %x[..]`, and `max(%t[l*4 + c], 0.0)` for each read. Only
// forward, and only where merge-moves follows, so that the two come to an end; only where no element is then computed
// more often.
//
// Scratch that is read more often than it is written is what a schedule copies into an order that its readers want
// (Expr's copy-operands): both leave it.
//
// Guarantees: scratch that only such values go through is not written any more, and a phase that only wrote it is gone,
// and the device's barrier with it. Needs: simplify. Stand before the rules that keep values with their threads.
// Not handled: kernels with rounds; scratch that two statements store to, or that is read in the phase that stores to
// it or under a predicate; shared memory, through which values go to change lanes.
#include "Gir/Rewrite.h"
#include "Gir/StatementPaths.h"
#include "Gir/Traffic.h"
#include "Gir/Walk.h"

#include <algorithm>

namespace fusec {
namespace {

/// A scratch buffer, the one statement that stores to it and the statements that read it.
struct Chain {
  BufferId scratch;
  Stmt *store = nullptr;
  NodeId read = kNoNode; // the one read of memory in the stored value
  struct Use {
    Stmt *stmt;
    NodeId node;
  };
  std::vector<Use> uses;
  bool isFactor = false; // of a micro-kernel, which computes nothing else
};

class Chains {
public:
  explicit Chains(GirKernel &kernel) : kernel(kernel), body(kernel.body) {}

  bool merge() {
    if (kernel.rounds) // a store may serve the reads of an earlier phase
      return false;
    for (BufferId b = 0; b < kernel.numParams(); ++b) {
      Chain chain{b, nullptr, kNoNode, {}};
      if (!find(chain) || chain.store->value != chain.read || !isCheapest(chain) || !solve(chain))
        continue;
      for (size_t i = 0; i < chain.uses.size(); ++i)
        substitute(body, *chain.uses[i].stmt, chain.uses[i].node, sources[i]);
      return true;
    }
    return false;
  }

  bool swap() {
    for (BufferId b = 0; b < kernel.numParams(); ++b) {
      Chain chain{b, nullptr, kNoNode, {}};
      if (!find(chain) || chain.store->value == chain.read || !isCheapest(chain) || !solve(chain))
        continue;
      GirBuffer &scratch = kernel.buffers[static_cast<size_t>(b)];
      const NodeId value = chain.store->value;
      scratch.type = body[chain.read].type;
      for (const Chain::Use &use : chain.uses) {
        const NodeId moved = body.read(b, scratch.type, body[use.node].args);
        substitute(body, *use.stmt, use.node, substituted(body, value, chain.read, moved));
      }
      chain.store->value = chain.read;
      return true;
    }
    return false;
  }

private:
  bool find(Chain &chain) {
    if (!kernel.buffers[static_cast<size_t>(chain.scratch)].scratch)
      return false;
    bool good = true;
    for (size_t p = 0; p < kernel.phases.size(); ++p)
      for (const StatementPath &site : statementPathsOf(kernel.phases[p]))
        good = note(chain, p, site) && good;
    return good && chain.store && !chain.uses.empty() && isElementwise(chain);
  }

  /// Notes what a statement does with the scratch; false where that breaks the chain.
  bool note(Chain &chain, size_t phase, const StatementPath &site) {
    Stmt &s = *site.stmt;
    for (NodeId id : body.reachable(exprRoots(s))) {
      const Scalar &node = body[id];
      if ((node.op != ScalarOp::Read && node.op != ScalarOp::ReadIf) || node.index != chain.scratch)
        continue;
      if (node.op == ScalarOp::ReadIf || !chain.store || storePhase == phase ||
          (s.kind != StmtKind::Store && s.kind != StmtKind::Accumulate))
        return false;
      chain.uses.push_back({&s, id});
      chain.isFactor = chain.isFactor || isInMicroKernel(site);
    }
    if (!writesBuffer(s) || (s.buffer != chain.scratch && s.indexBuffer != chain.scratch))
      return true;
    if (s.kind != StmtKind::Store || chain.store)
      return false;
    chain.store = &s;
    storePhase = phase;
    return std::none_of(site.path.begin(), site.path.end(),
                        [](const PathStep &step) { return step.stmt->kind == StmtKind::While; });
  }

  /// One element of one Global buffer that nothing stores to, and constants.
  bool isElementwise(Chain &chain) {
    const NodeId value = chain.store->value;
    for (NodeId id : body.reachable({value})) {
      const Scalar &s = body[id];
      if (s.op == ScalarOp::ReadIf)
        return false;
      if (s.op == ScalarOp::Read && chain.read == kNoNode)
        chain.read = id;
      else if (s.op == ScalarOp::Read)
        return false;
    }
    if (chain.read == kNoNode || !isFixed(kernel, chain.read))
      return false;
    // Beside the read, and not only below it, no loop variable matters.
    const NodeId constant = body.constant(body[chain.read].type, 0);
    for (NodeId id : body.reachable({substituted(body, value, chain.read, constant)}))
      if (body[id].op == ScalarOp::Axis)
        return false;
    const GirBuffer &scratch = kernel.buffers[static_cast<size_t>(chain.scratch)];
    return sizeInBytes(body[chain.read].type) <= sizeInBytes(scratch.type);
  }

  /// Reading and computing at the readers is not more work, they are no micro-kernels, and no product comes to stand
  /// under a sum, which would round both as one.
  bool isCheapest(const Chain &chain) const {
    const ElementTraffic traffic = trafficByBuffer(kernel)[static_cast<size_t>(chain.scratch)];
    return !chain.isFactor && traffic.read <= traffic.written &&
           std::none_of(chain.uses.begin(), chain.uses.end(), [&](const Chain::Use &use) {
             return use.stmt->kind == StmtKind::Accumulate && use.stmt->value == use.node &&
                    body[chain.store->value].op == ScalarOp::Mul;
           });
  }

  NodeId flat(BufferId buffer, const std::vector<NodeId> &indices) {
    NodeId sum = body.index(0);
    const Shape &shape = kernel.buffers[static_cast<size_t>(buffer)].shape;
    for (size_t d = 0; d < shape.size(); ++d)
      sum = body.binary(ScalarOp::Add, body.binary(ScalarOp::Mul, sum, body.dim(shape[d])),
                        indices[d]);
    return sum;
  }

  /// A step and a modulus (0: none) that give the variable back: floordiv(floormod(index, modulus), step).
  std::optional<std::pair<DimExpr, DimExpr>> digitOf(VarId var, NodeId index) {
    auto form = affineForm(body, index, static_cast<int>(kernel.vars.size()));
    if (!form || form->coefficients[static_cast<size_t>(var)].isConst(0))
      return std::nullopt;
    const DimExpr step = form->coefficients[static_cast<size_t>(var)];
    std::vector<DimExpr> moduli = {DimExpr(0)};
    moduli.insert(moduli.end(), form->coefficients.begin(), form->coefficients.end());
    for (size_t i = 0; i < moduli.size(); ++i)
      if ((i == 0 || !moduli[i].isConst(0)) && digit(index, step, moduli[i]) == body.axis(var))
        return std::pair{step, moduli[i]};
    return std::nullopt;
  }

  NodeId digit(NodeId index, const DimExpr &step, const DimExpr &modulus) {
    if (!modulus.isConst(0))
      index = body.binary(ScalarOp::FloorMod, index, body.dim(modulus));
    return body.binary(ScalarOp::FloorDiv, index, body.dim(step));
  }

  /// What each use reads instead: the element that was stored where it looks.
  bool solve(const Chain &chain) {
    const NodeId stored = flat(chain.scratch, chain.store->indices);
    struct Digit {
      VarId var;
      DimExpr step, modulus;
    };
    std::vector<Digit> digits;
    for (NodeId id : body.reachable({chain.read})) {
      if (body[id].op != ScalarOp::Axis)
        continue;
      auto found = digitOf(body[id].index, stored);
      if (!found)
        return false;
      digits.push_back({body[id].index, found->first, found->second});
    }
    sources.clear();
    for (const Chain::Use &use : chain.uses) {
      const NodeId index = flat(chain.scratch, body[use.node].args);
      std::vector<std::pair<NodeId, NodeId>> copy;
      for (NodeId id : body.reachable({chain.read})) {
        Scalar s = body[id];
        for (NodeId &a : s.args)
          a = std::lower_bound(copy.begin(), copy.end(), std::pair{a, kNoNode})->second;
        const VarId var = s.op == ScalarOp::Axis ? s.index : -1;
        auto known = std::find_if(digits.begin(), digits.end(),
                                  [&](const Digit &d) { return d.var == var; });
        copy.emplace_back(id, known == digits.end() ? body.add(std::move(s))
                                                    : digit(index, known->step, known->modulus));
      }
      sources.push_back(copy.back().second);
    }
    return true;
  }

  GirKernel &kernel;
  Body &body;
  size_t storePhase = 0;
  std::vector<NodeId> sources; // of the chain that was solved last, one a use
};

} // namespace

bool swapMoves(GirKernel &kernel, const RewriteLimits & /*nothing is kept*/) {
  bool changed = false;
  while (Chains(kernel).swap())
    changed = true;
  return changed;
}

bool mergeMoves(GirKernel &kernel, const RewriteLimits & /*nothing is kept*/) {
  return Chains(kernel).merge();
}

} // namespace fusec
