#include "Reference/ExprFold.h"

#include "Expr/Padding.h"
#include "Expr/Passes.h"
#include "Expr/transforms/Profile.h"
#include "Expr/transforms/Walk.h"
#include "Reference/ExprEquations.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec {
namespace {

class Folder {
public:
  explicit Folder(ExprProgram &program) : program(program), known(program.tensors.size()) {
    for (const Item &item : program.items)
      if (const auto *e = std::get_if<Equation>(&item.value))
        for (const ScanCarry &carry : e->carries)
          scansBeginWith.insert(carry.init);
    for (size_t i = 0; i < program.tensors.size(); ++i)
      known[i] = program.tensors[i].constant != nullptr;
  }

  void run() {
    std::vector<const Equation *> computable;
    for (const Item &item : program.items)
      if (const auto *e = std::get_if<Equation>(&item.value); e && isComputable(*e)) {
        computable.push_back(e);
        for (TensorId id : e->outputs)
          known[id] = true;
      }
    if (computable.empty())
      return;
    keepWanted(computable);
    // `state` refers to the program as it was, so that results are stored at the end.
    std::vector<std::pair<TensorId, ConstantRef>> results;
    machine::State state(program, false);
    state.written = [](TensorId) {};
    std::vector<bool> valid = std::vector<bool>(program.tensors.size());
    for (size_t i = 0; i < valid.size(); ++i)
      valid[i] = program.tensors[i].constant != nullptr;
    for (size_t i = 0; i < computable.size(); ++i) {
      const Equation *e = computable[i];
      // A read outside its tensor is the program's fault and no reason to stop here: it stays to be found later.
      if (!readsAre(*e, valid) || !run(state, *e).ok())
        continue;
      for (TensorId id : e->outputs) {
        valid[id] = true;
        machine::Array &array = state.arrays[id];
        if (isWorthFolding(*e)) {
          results.emplace_back(
              id, makeConstant(program.tensors[id].type, array.dims, std::move(array.owned)));
          array.bytes = results.back().second->bytes;
        }
      }
      for (TensorId id : lastReadBy[i])
        state.arrays[id].owned = {};
    }
    store(results);
  }

private:
  static Status run(machine::State &state, const Equation &e) {
    return e.kind == EquationKind::Opaque ? machine::runOpaque(state, e)
                                          : machine::runDense(state, e, 0);
  }

  static std::vector<TensorId> tensorsReadBy(const Equation &e) {
    std::vector<TensorId> read = e.opaqueInputs;
    if (e.base >= 0)
      read.push_back(e.base);
    for (NodeId id : e.body.reachable(bodyRoots(e)))
      if (isRead(e.body[id]))
        read.push_back(static_cast<TensorId>(e.body[id].index));
    return read;
  }

  bool readsAre(const Equation &e, const std::vector<bool> &available) const {
    const std::vector<TensorId> read = tensorsReadBy(e);
    return std::all_of(read.begin(), read.end(), [&](TensorId id) { return available[id]; });
  }

  /// Leaves those equations whose results become constants, or are read on the way to one, and notes who is the last to
  /// read a tensor.
  void keepWanted(std::vector<const Equation *> &computable) {
    std::vector<bool> wanted(program.tensors.size());
    std::vector<const Equation *> kept;
    std::vector<std::vector<TensorId>> last;
    for (size_t i = computable.size(); i-- > 0;) {
      const Equation *e = computable[i];
      if (!isWorthFolding(*e) && std::none_of(e->outputs.begin(), e->outputs.end(),
                                              [&](TensorId id) { return wanted[id]; }))
        continue;
      kept.push_back(e);
      last.emplace_back();
      for (TensorId id : tensorsReadBy(*e)) {
        if (!wanted[id] && !program.tensors[id].constant)
          last.back().push_back(id);
        wanted[id] = true;
      }
    }
    computable.assign(kept.rbegin(), kept.rend());
    lastReadBy.assign(last.rbegin(), last.rend());
  }

  bool isComputable(const Equation &e) const {
    if (e.kind == EquationKind::Scan || !readsAre(e, known))
      return false;
    std::vector<NodeId> nodes = e.body.reachable(bodyRoots(e));
    auto reads = [&](NodeId id) { return isRead(e.body[id]); };
    if (std::none_of(nodes.begin(), nodes.end(), reads) && e.base < 0 && e.opaqueInputs.empty() &&
        !isInit(e))
      return false; // made from the place alone: cheaper to compute again than to load
    auto work = static_cast<int64_t>(nodes.size() + 1);
    for (const Axis &a : e.axes)
      if (!a.extent.isConst() || __builtin_mul_overflow(work, a.extent.constValue(), &work))
        return false;
    for (NodeId id : nodes)
      if (e.body[id].op == ScalarOp::Dim)
        return false;
    if (work > kMaxFoldedWork)
      return false;
    return std::all_of(e.outputs.begin(), e.outputs.end(), [&](TensorId id) {
      int64_t bytes = sizeInBytes(program.tensors[id].type);
      for (const DimExpr &d : program.tensors[id].shape)
        if (!d.isConst() || __builtin_mul_overflow(bytes, d.constValue(), &bytes))
          return false;
      return bytes <= kMaxFoldedBytes;
    });
  }

  bool isWorthFolding(const Equation &e) const {
    bool allTemps = std::all_of(e.outputs.begin(), e.outputs.end(), [&](TensorId id) {
      return program.tensors[id].kind == TensorKind::Temp;
    });
    return allTemps && (e.kind != EquationKind::Map || !profileOf(e).movement || isInit(e) ||
                        takesIndicesApart(e));
  }

  /// What such a read composes to is in no order that a schedule could pack. Not where elements are repeated, which
  /// would store them so often.
  bool takesIndicesApart(const Equation &e) const {
    const std::vector<NodeId> nodes = e.body.reachable(bodyRoots(e));
    const int64_t made = elementsOf(e.outputs[0]);
    return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
      if (isRead(e.body[id]) && elementsOf(TensorId(e.body[id].index)) < made)
        return false;
      const std::vector<NodeId> indices =
          isRead(e.body[id]) ? indexOperands(e.body[id]) : std::vector<NodeId>{};
      return std::any_of(indices.begin(), indices.end(), [&](NodeId index) {
        return !affineForm(e.body, index, static_cast<int>(e.axes.size()));
      });
    });
  }

  int64_t elementsOf(TensorId id) const {
    const DimExpr elements = numElements(program.tensors[id].shape);
    return elements.isConst() ? elements.constValue() : INT64_MAX;
  }

  /// A scan begins with the whole tensor: nothing can be written into its place.
  bool isInit(const Equation &e) const {
    return std::any_of(e.outputs.begin(), e.outputs.end(),
                       [&](TensorId t) { return scansBeginWith.count(t) != 0; });
  }

  void store(const std::vector<std::pair<TensorId, ConstantRef>> &results) {
    std::vector<bool> folded(program.tensors.size());
    for (const auto &[id, constant] : results) {
      program.tensors[id].kind = TensorKind::Constant;
      program.tensors[id].constant = constant;
      folded[id] = true;
    }
    std::erase_if(program.items, [&](const Item &item) {
      const auto *e = std::get_if<Equation>(&item.value);
      return e && !e->outputs.empty() && folded[e->outputs[0]];
    });
    // Layers that begin with the same numbers share them.
    std::map<std::string, TensorId> first;
    for (Item &item : program.items)
      if (auto *e = std::get_if<Equation>(&item.value))
        for (ScanCarry &carry : e->carries)
          if (folded[carry.init])
            carry.init =
                first.emplace(program.tensors[carry.init].constant->digest.hex(), carry.init)
                    .first->second;
  }

  ExprProgram &program;
  std::vector<std::vector<TensorId>> lastReadBy; // by equation that is computed
  std::vector<bool> known;
  std::set<TensorId> scansBeginWith;
};

} // namespace

ExprProgram foldConstants(ExprProgram program) {
  Folder(program).run();
  return eliminateDeadCode(std::move(program));
}

} // namespace fusec
