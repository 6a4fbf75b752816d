#include "Expr/Alternatives.h"

#include "Expr/Cascade.h"
#include "Expr/Concatenate.h"
#include "Expr/PatternPart.h"
#include "Expr/SizeLimits.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>

namespace fusec {

/// A GPU's blocks bring tiles closer whole sectors at a time, and shared memory serves lanes that lie apart at once.
static std::vector<int64_t> onCpus(const ExprProgram &, const Target &target) {
  return target.kind == TargetKind::Cpu ? std::vector<int64_t>{0} : std::vector<int64_t>{};
}

static std::vector<int64_t> onNone(const ExprProgram &, const Target &) { return {}; }

const std::vector<Alternative> &alternatives() {
  static const std::vector<Alternative> list = {
      {"defer-division", "multiply and divide by what a sum does not run over once, behind it",
       nullptr, deferDivision},
      {"two-phase",
       "reduce the parts of long axes first, as many as the number says, then their results",
       twoPhaseChoices, twoPhase, twoPhaseStarts},
      {"repair-cascades",
       "reductions of which one uses the other's result, in one pass",
       nullptr,
       [](const ExprProgram &pattern, int64_t) { return repairCascades(pattern); },
       nullptr,
       {"two-phase", "recompute"}},
      {"concatenate", "equations that differ in their operands as one, side by side along an axis",
       concatenateChoices, concatenate},
      {"recompute",
       "compute the map at this position again wherever it is read",
       recomputeChoices,
       recompute,
       nullptr,
       {"two-phase"}},
      {"copy-operands", "copy what lanes would gather into an order in which it lies side by side",
       onCpus, copyOperands, copyOperandsStarts},
      {"separate-windows", "windows along several axes as windows along one after the other",
       nullptr, separateWindows},
      {"wavefront", "scans and what lies between them as one scan, one behind the other", nullptr,
       wavefront},
      {kSizeOne, "the symbol of this number, from 1, as the constant 1; for guarded variants alone",
       onNone, sizeOne},
      {kSizeMost, "no symbol larger than this number; for guarded variants alone", onNone,
       sizeMost},
  };
  return list;
}

std::string print(const Rewrite &rewrite) {
  std::string text = rewrite.alternative;
  if (rewrite.choice != 0)
    text += " " + std::to_string(rewrite.choice);
  if (rewrite.count > 0)
    text += " of e" + std::to_string(rewrite.first) + " to e" +
            std::to_string(rewrite.first + rewrite.count - 1);
  return text;
}

static bool isMapOrReduction(const Item &item) {
  const auto *e = std::get_if<Equation>(&item.value);
  return e && (e->kind == EquationKind::Map || e->kind == EquationKind::Reduction);
}

static std::optional<ExprProgram> runOne(const ExprProgram &pattern, const Rewrite &rewrite) {
  auto alternative =
      std::find_if(alternatives().begin(), alternatives().end(),
                   [&](const Alternative &a) { return a.name == rewrite.alternative; });
  if (alternative == alternatives().end())
    return std::nullopt;
  if (rewrite.count == 0)
    return alternative->apply(pattern, rewrite.choice);
  const auto size = static_cast<int64_t>(pattern.items.size());
  const int64_t first = rewrite.first, last = first + rewrite.count;
  if (first < 0 || last <= first || last > size ||
      !std::all_of(pattern.items.begin(), pattern.items.end(), isMapOrReduction))
    return std::nullopt;
  std::optional<ExprProgram> part = alternative->apply(
      partOfPattern(pattern, static_cast<int>(first), static_cast<int>(last)), rewrite.choice);
  if (!part)
    return std::nullopt;
  return withPart(pattern, static_cast<int>(first), static_cast<int>(last), *part);
}

std::optional<ExprProgram> rewritten(const ExprProgram &pattern,
                                     const std::vector<Rewrite> &rewrites) {
  std::optional<ExprProgram> program = pattern;
  for (size_t r = 0; program && r < rewrites.size(); ++r)
    program = runOne(*program, rewrites[r]);
  return program;
}

/// The verifier's opinion; a pattern's constants are arguments without data.
[[maybe_unused]] static bool isSound(ExprProgram pattern) {
  for (Tensor &t : pattern.tensors)
    if (t.kind == TensorKind::Constant && !t.constant)
      t.kind = TensorKind::Input;
  return verify(pattern).ok();
}

static void appendApplicable(const Alternative &a, const ExprProgram &pattern, const Target &target,
                             std::vector<RewrittenPattern> &found) {
  for (int64_t choice : a.choices ? a.choices(pattern, target) : std::vector<int64_t>{0})
    if (std::optional<ExprProgram> program = a.apply(pattern, choice)) {
      if (program->items.empty())
        continue; // nothing that the pattern makes is needed where sizes leave what reads it empty
      assert(isSound(*program) && "an alternative leaves a program that verifies");
      found.push_back({{std::string(a.name), choice}, std::move(*program), {}});
      if (a.phaseStarts)
        found.back().phaseStarts = a.phaseStarts(pattern, found.back().program);
    }
}

std::vector<RewrittenPattern> applicableAlternatives(const ExprProgram &pattern,
                                                     const Target &target) {
  std::vector<RewrittenPattern> found;
  for (const Alternative &a : alternatives())
    appendApplicable(a, pattern, target, found);
  return found;
}

std::vector<RewrittenPattern> alternativesBehind(const RewrittenPattern &first,
                                                 const Target &target) {
  std::vector<RewrittenPattern> found;
  for (const Alternative &a : alternatives())
    if (a.name == first.rewrite.alternative)
      for (const Alternative &b : alternatives())
        if (std::count(a.behind.begin(), a.behind.end(), b.name) != 0)
          appendApplicable(b, first.program, target, found);
  return found;
}

void dropUnneeded(ExprProgram &pattern) {
  std::vector<bool> needed(pattern.tensors.size(), false), written(pattern.tensors.size(), false);
  for (TensorId t : pattern.outputs)
    needed[t] = true;
  std::vector<Item> kept;
  for (auto item = pattern.items.rbegin(); item != pattern.items.rend(); ++item) {
    Equation &e = std::get<Equation>(item->value);
    if (std::none_of(e.outputs.begin(), e.outputs.end(), [&](TensorId t) { return needed[t]; }))
      continue;
    dropStates(e, needed);
    auto need = [&](TensorId &t) { needed[t] = true; };
    auto needReads = [&](const Equation &inner) {
      for (NodeId id : inner.body.reachable(bodyRoots(inner)))
        if (isRead(inner.body[id]))
          needed[inner.body[id].index] = true;
    };
    needReads(e);
    forEachWholeUse(e, need);
    for (TensorId t : e.outputs)
      written[t] = true;
    for (const ScanCarry &carry : e.carries)
      written[carry.previous] = true;
    for (Equation &inner : e.scanBody) {
      needReads(inner);
      forEachWholeUse(inner, need);
      for (TensorId t : inner.outputs)
        written[t] = true;
    }
    kept.push_back(std::move(*item));
  }
  std::reverse(kept.begin(), kept.end());
  pattern.items = std::move(kept);

  std::vector<TensorId> number(pattern.tensors.size(), -1);
  std::vector<Tensor> tensors;
  for (size_t t = 0; t < number.size(); ++t)
    if (pattern.tensors[t].kind != TensorKind::Temp || written[t]) {
      number[t] = static_cast<TensorId>(tensors.size());
      tensors.push_back(std::move(pattern.tensors[t]));
    }
  pattern.tensors = std::move(tensors);
  auto renumber = [&](TensorId &t) {
    if (t >= 0)
      t = number[t];
  };
  forEachEquation(pattern.items, [&](Equation &e, const DimExpr *) {
    forEachTensor(e, renumber);
    compact(e);
    for (TensorId &t : e.outputs)
      renumber(t);
  });
  for (auto *list : {&pattern.inputs, &pattern.outputs})
    for (TensorId &t : *list)
      renumber(t);
}

} // namespace fusec
