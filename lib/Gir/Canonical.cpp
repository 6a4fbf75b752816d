// canonicalise: numbering and names that depend on the text of a kernel alone.
//
// Nodes, loop variables and their names get the numbers that the parser would give them, so that a kernel and
// its printed and parsed twin are equal and everything after this point makes the same bytes from both. Two
// loops that shared a variable get one each.
#include "Gir/Passes.h"
#include "Gir/Walk.h"

#include <cctype>
#include <set>

namespace fusec {
namespace {

/// Words that an expression's text uses for itself.
bool isReserved(const std::string &word) {
  static const std::set<std::string> words = {"true", "false", "step", "let", "inf", "nan"};
  return words.count(word) || parseDType(word);
}

std::string identifierFrom(std::string_view text, std::string_view fallback) {
  std::string out;
  for (char c : text)
    out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])))
    out = std::string(fallback) + out;
  return out;
}

std::string unusedName(std::string base, const std::set<std::string> &taken) {
  if (!taken.count(base) && !isReserved(base))
    return base;
  for (int i = 2;; ++i)
    if (std::string candidate = base + "_" + std::to_string(i);
        !taken.count(candidate) && !isReserved(candidate))
      return candidate;
}

class Canonicaliser {
public:
  explicit Canonicaliser(GirKernel &kernel) : kernel(kernel), newVar(kernel.vars.size(), -1) {}

  void run() {
    nameBuffers();
    if (kernel.resident >= 0)
      kernel.resident = bind(kernel.resident);
    for (size_t number = 0; number < kernel.phases.size(); ++number) {
      Phase &p = kernel.phases[number];
      std::vector<std::pair<VarId, VarId>> saved;
      if (kernel.rounds && number == kernel.rounds->first) {
        roundsBefore = {kernel.rounds->var, newVar[kernel.rounds->var]};
        kernel.rounds->var = bind(kernel.rounds->var);
      }
      for (Phase::Block &b : p.blocks) {
        VarId old = b.var;
        saved.emplace_back(old, newVar[old]);
        b.var = bind(old);
      }
      statements(p.body);
      for (auto it = saved.rbegin(); it != saved.rend(); ++it)
        unbind(it->first, it->second);
      if (kernel.rounds && number + 1 == kernel.rounds->last)
        unbind(roundsBefore.first, roundsBefore.second);
    }
    kernel.vars = std::move(vars);
    kernel.body = std::move(out);
    setRanges(kernel);
  }

private:
  void nameBuffers() {
    std::set<std::string> taken;
    for (GirBuffer &b : kernel.buffers) {
      b.name = unusedName(b.name.empty() ? "b" : b.name, taken);
      taken.insert(b.name);
    }
  }

  VarId bind(VarId old) {
    LoopVar v = kernel.vars[old];
    v.name = unusedName(identifierFrom(v.name, "v"), scope);
    scope.insert(v.name);
    vars.push_back(std::move(v));
    return newVar[old] = static_cast<VarId>(vars.size()) - 1;
  }

  void unbind(VarId old, VarId before) {
    scope.erase(vars[newVar[old]].name);
    newVar[old] = before;
  }

  void statements(std::vector<Stmt> &stmts) {
    for (Stmt &s : stmts) {
      expressions(exprRefs(s));
      VarId old = s.var;
      VarId before = s.kind == StmtKind::Loop ? newVar[old] : -1;
      if (s.kind == StmtKind::Loop)
        s.var = bind(old);
      statements(s.body);
      statements(s.elseBody);
      if (s.kind == StmtKind::Loop)
        unbind(old, before);
    }
  }

  /// Moves the roots of one statement to the new body: first alone, numbered as its own text would be.
  void expressions(const std::vector<NodeId *> &roots) {
    std::vector<NodeId> ids;
    for (NodeId *r : roots)
      ids.push_back(*r);
    Body alone;
    std::vector<NodeId> copy(kernel.body.nodes.size(), kNoNode);
    for (NodeId id : kernel.body.reachable(ids)) {
      Scalar s = kernel.body[id];
      for (NodeId &a : s.args)
        a = copy[a];
      if (s.op == ScalarOp::Axis)
        s.index = newVar[s.index];
      copy[id] = alone.addExact(std::move(s));
    }
    for (NodeId *r : roots)
      *r = copy[*r];
    alone.compact(roots);
    std::vector<NodeId> moved;
    for (const Scalar &s : alone.nodes) {
      Scalar t = s;
      for (NodeId &a : t.args)
        a = moved[a];
      moved.push_back(out.addExact(std::move(t)));
    }
    for (NodeId *r : roots)
      *r = moved[*r];
  }

  GirKernel &kernel;
  std::pair<VarId, VarId> roundsBefore;
  Body out;
  std::vector<LoopVar> vars;
  std::vector<VarId> newVar; // of the old variables in scope
  std::set<std::string> scope;
};

} // namespace

void canonicalise(GirKernel &kernel) { Canonicaliser(kernel).run(); }

} // namespace fusec
