// Removes an equation that computes what an earlier one has computed: equal bodies over equal tensors, visible
// where the later one stands. Runs after compose, which brings equal values into equal forms, and before
// channels-last, which would have to give both twins one layout.
#include "Expr/Passes.h"
#include "Expr/transforms/Walk.h"

#include <bit>
#include <map>

namespace fusec {
namespace {

/// Everything that decides the values of an equation's outputs, as text. Tensors are named by id.
std::string keyOf(const Equation &e, const ExprProgram &program) {
  std::string key;
  auto put = [&](auto v) { key += std::to_string(v) + ","; };
  put(static_cast<int>(e.kind));
  put(e.numSpatial);
  for (const Axis &a : e.axes)
    key += a.extent.str(program.symbols) + ",";
  put(static_cast<int>(e.monoid));
  put(static_cast<int>(e.accumulateType));
  for (const CascadeState &s : e.states) {
    put(static_cast<int>(s.monoid));
    put(s.correction);
  }
  put(e.base);
  put(static_cast<int>(e.combiner));
  key += e.opaque + ",";
  for (const auto &[name, value] : e.opaqueAttributes)
    key += name + "=" + std::to_string(value) + ",";
  for (TensorId t : e.opaqueInputs)
    put(t);
  for (TensorId t : e.outputs) {
    put(static_cast<int>(program.tensors[t].type));
    for (const DimExpr &d : program.tensors[t].shape)
      key += d.str(program.symbols) + "x";
  }
  for (const Scalar &s : e.body.nodes) {
    key += std::string(mnemonic(s.op)) + " " + std::string(name(s.type)) + " ";
    for (NodeId a : s.args)
      put(a);
    put(s.index);
    put(s.imm);
    put(std::bit_cast<uint64_t>(s.fimm));
    if (s.op == ScalarOp::Dim)
      key += s.dim.str(program.symbols);
  }
  for (NodeId r : bodyRoots(e))
    put(r);
  return key;
}

class Sharing {
public:
  explicit Sharing(ExprProgram &program) : program(program), whole(program.tensors.size()) {
    for (TensorId id : program.outputs)
      whole[id] = true;
    for (size_t i = 0; i < program.tensors.size(); ++i)
      replacement.push_back(static_cast<TensorId>(i));
  }

  void list(std::vector<Item> &items) {
    std::vector<std::string> mine; // keys that this scope added
    std::vector<Item> kept;
    for (Item &item : items) {
      if (auto *e = std::get_if<Equation>(&item.value)) {
        if (equation(*e, mine))
          kept.push_back(std::move(item));
        continue;
      }
      auto &c = std::get<Control>(item.value);
      forEachWholeUse(c, [&](TensorId &id) { id = replacement[id]; });
      list(c.thenItems);
      list(c.elseItems);
      // Yields and values carried on may have been replaced inside.
      forEachWholeUse(c, [&](TensorId &id) { id = replacement[id]; });
      kept.push_back(std::move(item));
    }
    items = std::move(kept);
    for (const std::string &key : mine)
      known.erase(key);
  }

private:
  /// False when the equation is to go.
  bool equation(Equation &e, std::vector<std::string> &mine) {
    forEachWholeUse(e, [&](TensorId &id) { id = replacement[id]; });
    for (Scalar &s : e.body.nodes)
      if (isRead(s))
        s.index = replacement[s.index];
    if (e.kind == EquationKind::Scan) {
      std::vector<std::string> inner;
      for (Equation &b : e.scanBody)
        equation(b, inner); // replaces reads; the body's own equations stay
      for (const std::string &key : inner)
        known.erase(key);
      return true;
    }
    compact(e);
    auto [it, isNew] = known.emplace(keyOf(e, program), e.outputs);
    if (isNew) {
      mine.push_back(it->first);
      return true;
    }
    for (TensorId id : e.outputs)
      if (whole[id] || program.tensors[id].kind == TensorKind::Output)
        return true; // must be written itself
    for (size_t i = 0; i < e.outputs.size(); ++i)
      replacement[e.outputs[i]] = it->second[i];
    return false;
  }

  ExprProgram &program;
  std::vector<bool> whole;
  std::vector<TensorId> replacement;
  std::map<std::string, std::vector<TensorId>> known;
};

} // namespace

ExprProgram eliminateCommonEquations(ExprProgram program) {
  Sharing(program).list(program.items);
  return eliminateDeadCode(std::move(program));
}

} // namespace fusec
