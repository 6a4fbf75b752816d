#include "Tiling/schedule/BoundSchedule.h"

#include "Support/OptValues.h"
#include "Tiling/schedule/GridScan.h"

#include <algorithm>

namespace fusec::tiling {

ScheduledProgram::ScheduledProgram(const ExprProgram &pattern, const std::vector<Rewrite> &via)
    : made(via.empty() ? std::nullopt : rewritten(pattern, via)), exists(via.empty() || made),
      program(made ? *made : pattern), scan(scanOf(program)),
      equations(scheduledEquations(program)), facts(factsOf(program)),
      symbols(optValues(program.symbols)) {}

std::vector<int64_t> ProgramView::stridesOf(TensorId t) const {
  std::vector<int64_t> strides;
  for (const DimExpr &stride : fusec::stridesOf(program().tensors[t].shape))
    strides.push_back(valueOf(stride));
  return strides;
}

BoundSchedule::BoundSchedule(const Schedule &schedule, const ExprProgram &pattern)
    : ProgramView(std::make_unique<ScheduledProgram>(pattern, schedule.via)), bound(schedule),
      all(statementsOf(schedule)) {
  note();
}

BoundSchedule::BoundSchedule(const Schedule &schedule, const ScheduledProgram &program)
    : ProgramView(program), bound(schedule), all(statementsOf(schedule)) {
  note();
}

void BoundSchedule::note() {
  for (const Statement &statement : all)
    for (size_t i = 0; i < statement.loops.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (statement.loops[j]->axis == statement.loops[i]->axis)
          outer[statement.loops[i]] = statement.loops[j];
  for (std::span<const TreeNode> phase : phasesOf(bound.tree))
    if (const TreeNode *loop = gridScanOf(phase)) {
      stepLoop = loop;
      for (std::span<const TreeNode> ofStep : phasesOf(loop->children))
        allPhases.push_back(ofStep);
    } else {
      allPhases.push_back(phase);
    }
}

std::vector<const Statement *> BoundSchedule::statements(LeafKind leaf, int target) const {
  std::vector<const Statement *> found;
  for (const Statement &statement : all)
    if (statement.leaf->leaf == leaf && statement.leaf->target == target)
      found.push_back(&statement);
  return found;
}

const Loops *BoundSchedule::loopsOf(int equation) const {
  const auto compute = std::find_if(all.begin(), all.end(), [&](const Statement &statement) {
    return statement.leaf->leaf == LeafKind::Compute && statement.leaf->target == equation;
  });
  return compute == all.end() ? nullptr : &compute->loops;
}

std::vector<const Loops *> BoundSchedule::readersOf(TensorId tensor) const {
  std::vector<const Loops *> readers;
  for (int e = 0; e < static_cast<int>(equations().size()); ++e)
    if (const auto &reads = facts(e).reads;
        std::any_of(reads.begin(), reads.end(),
                    [&](NodeId read) { return equation(e).body[read].index == tensor; }))
      if (const Loops *loops = loopsOf(e))
        readers.push_back(loops);
  return readers;
}

DimExpr BoundSchedule::tile(const TreeNode &loop) const {
  if (const auto around = outer.find(&loop); around != outer.end())
    return DimExpr(around->second->step);
  return loop.axis == kStepAxis ? scan()->steps : bound.axes[static_cast<size_t>(loop.axis)].extent;
}

DimExpr BoundSchedule::tile(AxisId axis, std::span<const TreeNode *const> loops) const {
  for (size_t i = loops.size(); i-- > 0;)
    if (loops[i]->isLoop && loops[i]->axis == axis)
      return DimExpr(loops[i]->step);
  return bound.axes[static_cast<size_t>(axis)].extent;
}

const ReusedRead *BoundSchedule::reuse(const ReadPlace &place) const {
  const auto found = std::find_if(bound.kept.begin(), bound.kept.end(),
                                  [&](const ReusedRead &kept) { return kept.read == place; });
  return found == bound.kept.end() ? nullptr : &*found;
}

std::vector<TensorId> BoundSchedule::valuesReadBy(const TreeNode &leaf) const {
  std::vector<TensorId> values;
  if (leaf.leaf == LeafKind::Stage) {
    const Operand &staged = bound.operands[static_cast<size_t>(leaf.target)];
    values.push_back(tensor({staged.equation, 0, staged.read}));
  } else if (leaf.leaf == LeafKind::Compute || leaf.leaf == LeafKind::Sort) {
    for (NodeId read : facts(leaf.target).reads)
      values.push_back(equation(leaf.target).body[read].index);
  }
  return values;
}

bool BoundSchedule::readsValue(const TreeNode &leaf, TensorId value) const {
  const std::vector<TensorId> values = valuesReadBy(leaf);
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::vector<std::span<const TreeNode>> BoundSchedule::parts(size_t phase) const {
  const std::span<const TreeNode> nodes = allPhases[phase];
  if (!isPack(nodes))
    return {nodes};
  std::vector<std::span<const TreeNode>> parts;
  for (size_t part = 0; part < nodes.size(); ++part)
    parts.push_back(nodes.subspan(part, 1));
  return parts;
}

std::vector<int> BoundSchedule::phaseOfEquations() const {
  std::vector<int> phases(equations().size(), 0);
  int borders = 0;
  for (const Statement &statement : all)
    if (statement.leaf->isBorder())
      ++borders;
    else if (statement.leaf->leaf == LeafKind::Compute || statement.leaf->leaf == LeafKind::Sort)
      phases[static_cast<size_t>(statement.leaf->target)] = borders;
  return phases;
}

} // namespace fusec::tiling
