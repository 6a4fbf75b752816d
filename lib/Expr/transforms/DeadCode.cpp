// Removes equations whose outputs nobody needs, unused outputs of maps and scans, and tensors without a use, and
// renumbers bodies and tensors as the text form does: a parsed dump is then the same program to the last id. It
// runs last, after every pass that leaves things behind.
#include "Expr/Cascade.h"
#include "Expr/Passes.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>

namespace fusec {
namespace {

class DeadCode {
public:
  explicit DeadCode(ExprProgram &program)
      : program(program), needed(program.tensors.size()), neededSizes(program.symbols.size()) {}

  void run() {
    dropItems();
    dropTensors();
  }

  void dropItems() {
    for (TensorId id : program.outputs)
      needed[id] = true;
    sweep(program.items);
  }

private:
  void need(TensorId id) {
    if (id >= 0)
      needed[id] = true;
  }

  void needReads(const Equation &e) {
    for (NodeId id : e.body.reachable(bodyRoots(e)))
      if (isRead(e.body[id]))
        need(e.body[id].index);
  }

  bool anyNeeded(const std::vector<TensorId> &ids) const {
    return std::any_of(ids.begin(), ids.end(), [&](TensorId id) { return needed[id]; });
  }

  void needSizes(const Equation &e) {
    std::vector<SymbolId> used;
    collectSymbols(e, used);
    for (SymbolId s : used)
      neededSizes[s] = true;
  }

  bool isNeeded(const Control &c) const {
    return c.kind == Control::Kind::Size
               ? c.isTested || testsData(c, program.symbols) || neededSizes[c.symbol]
               : anyNeeded(c.results);
  }

  /// Backwards over the list, so that readers come before producers.
  void sweep(std::vector<Item> &items) {
    std::vector<Item> kept;
    for (auto it = items.rbegin(); it != items.rend(); ++it) {
      if (auto *e = std::get_if<Equation>(&it->value)) {
        if (equation(*e)) {
          needSizes(*e);
          kept.push_back(std::move(*it));
        }
      } else if (auto &c = std::get<Control>(it->value); isNeeded(c)) {
        forEachWholeUse(c, [&](TensorId &id) { need(id); });
        sweep(c.thenItems);
        sweep(c.elseItems);
        kept.push_back(std::move(*it));
      }
    }
    std::reverse(kept.begin(), kept.end());
    items = std::move(kept);
  }

  bool equation(Equation &e) {
    if (!anyNeeded(e.outputs))
      return false;
    if (e.kind == EquationKind::Map && e.outputs.size() > 1) {
      size_t kept = 0;
      for (size_t i = 0; i < e.outputs.size(); ++i)
        if (needed[e.outputs[i]]) {
          e.outputs[kept] = e.outputs[i];
          e.results[kept++] = e.results[i];
        }
      e.outputs.resize(kept);
      e.results.resize(kept);
    }
    dropStates(e, needed);
    if (e.kind == EquationKind::Scan)
      scan(e);
    forEachWholeUse(e, [&](TensorId &id) { need(id); });
    needReads(e);
    return true;
  }

  void scan(Equation &e) {
    e.outputs.clear();
    for (ScanCarry &c : e.carries) {
      if (c.final >= 0 && !needed[c.final])
        c.final = -1;
      if (c.final >= 0)
        e.outputs.push_back(c.final);
    }
    std::erase_if(e.scanOutputs, [&](const ScanOutput &o) { return !needed[o.stacked]; });
    for (const ScanOutput &o : e.scanOutputs) {
      e.outputs.push_back(o.stacked);
      need(o.perStep);
    }
    // A carry is needed if a needed value depends on it, possibly through another carry: to a fixpoint.
    std::vector<bool> keep(e.carries.size()), live(e.scanBody.size());
    for (size_t i = 0; i < e.carries.size(); ++i)
      keep[i] = e.carries[i].final >= 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < e.carries.size(); ++i) {
        if (!keep[i] && needed[e.carries[i].previous])
          keep[i] = changed = true;
        if (keep[i])
          need(e.carries[i].next);
      }
      for (size_t i = e.scanBody.size(); i-- > 0;)
        if (!live[i] && anyNeeded(e.scanBody[i].outputs)) {
          live[i] = changed = true;
          forEachWholeUse(e.scanBody[i], [&](TensorId &id) { need(id); });
          needReads(e.scanBody[i]);
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < e.carries.size(); ++i)
      if (keep[i])
        e.carries[kept++] = e.carries[i];
    e.carries.resize(kept);
    std::vector<Equation> body;
    for (size_t i = 0; i < e.scanBody.size(); ++i)
      if (live[i])
        body.push_back(std::move(e.scanBody[i]));
    e.scanBody = std::move(body);
  }

  void dropTensors() {
    forEachEquation(program.items, [](Equation &e, const DimExpr *) { compact(e); });
    std::vector<bool> used(program.tensors.size());
    auto mark = [&](TensorId &id) {
      if (id >= 0)
        used[id] = true;
    };
    everyReference(mark);
    std::vector<TensorId> renamed(program.tensors.size(), -1);
    std::vector<Tensor> kept;
    for (size_t i = 0; i < program.tensors.size(); ++i)
      if (used[i]) {
        renamed[i] = static_cast<TensorId>(kept.size());
        kept.push_back(std::move(program.tensors[i]));
      }
    program.tensors = std::move(kept);
    auto rename = [&](TensorId &id) {
      if (id >= 0)
        id = renamed[id];
    };
    everyReference(rename);
  }

  void everyReference(const std::function<void(TensorId &)> &visit) {
    forEachEquation(program.items, [&](Equation &e, const DimExpr *) {
      forEachTensor(e, visit);
      for (TensorId &id : e.outputs)
        visit(id);
    });
    for (auto *list : {&program.inputs, &program.outputs})
      for (TensorId &id : *list)
        visit(id);
    forEachControl(program.items, [&](Control &c) {
      for (TensorId *id : {&c.condition, &c.tripCount, &c.iteration, &c.nextCondition})
        visit(*id);
      for (auto *list :
           {&c.thenYields, &c.elseYields, &c.results, &c.carriedInit, &c.carriedIn, &c.carriedOut})
        for (TensorId &id : *list)
          visit(id);
    });
  }

  ExprProgram &program;
  std::vector<bool> needed, neededSizes; // tensors, symbols
};

} // namespace

ExprProgram eliminateDeadCode(ExprProgram program) {
  DeadCode(program).run();
  return program;
}

/// How many it has erased, in branches and bodies too.
static size_t eraseDataTests(std::vector<Item> &items, const std::vector<Symbol> &symbols) {
  size_t erased = std::erase_if(items, [&](const Item &item) {
    const auto *control = std::get_if<Control>(&item.value);
    return control && testsData(*control, symbols);
  });
  for (Item &item : items)
    if (auto *control = std::get_if<Control>(&item.value))
      erased +=
          eraseDataTests(control->thenItems, symbols) + eraseDataTests(control->elseItems, symbols);
  return erased;
}

std::optional<ExprProgram> withoutDataTests(const ExprProgram &program) {
  ExprProgram own = program;
  if (eraseDataTests(own.items, own.symbols) == 0)
    return std::nullopt;
  DeadCode(own).dropItems();
  return own;
}

} // namespace fusec
