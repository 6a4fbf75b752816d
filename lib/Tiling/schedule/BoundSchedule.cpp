#include "Tiling/schedule/BoundSchedule.h"

#include "Expr/Cascade.h"
#include "Support/OptValues.h"
#include "Target/OnChip.h"

#include <algorithm>
#include <cmath>

namespace fusec::tiling {

size_t commonLoops(const Loops &a, const Loops &b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

template <typename T>
static const LoopNode *innermostWith(std::span<const LoopNode *const> loops, T LoopNode::*field,
                                     T value) {
  for (size_t i = loops.size(); i-- > 0;)
    if (loops[i]->*field == value)
      return loops[i];
  return nullptr;
}

const LoopNode *innermost(std::span<const LoopNode *const> loops, LoopKind kind) {
  return innermostWith(loops, &LoopNode::kind, kind);
}

const LoopNode *innermost(std::span<const LoopNode *const> loops, AxisId axis) {
  return innermostWith(loops, &LoopNode::axis, axis);
}

bool Statement::isInside(const LoopNode *loop) const {
  return std::ranges::find(loops, loop) != loops.end();
}

static void collect(const std::vector<TreeNode> &nodes, Loops &loops,
                    std::vector<Statement> &places) {
  for (const TreeNode &node : nodes) {
    if (const LoopNode *loop = node.loop()) {
      loops.push_back(loop);
      collect(loop->children, loops, places);
      loops.pop_back();
    } else {
      places.push_back({node.leaf(), loops, places.size()});
    }
  }
}

std::span<const LoopNode *const> kernelLoops(const LeafNode &leaf,
                                             std::span<const LoopNode *const> loops) {
  size_t first = loops.size();
  while (!leaf.kernel.empty() && first > 0 && loops[first - 1]->children.size() == 1 &&
         (loops[first - 1]->kind == LoopKind::Unroll || loops[first - 1]->kind == LoopKind::Lane))
    --first;
  return loops.subspan(first);
}

int equationOf(const LeafNode &leaf, const Schedule &schedule) {
  return leaf.kind == LeafKind::Stage ? schedule.operands[leaf.operand].equation : leaf.equation;
}

std::set<int> equationsIn(std::span<const TreeNode> nodes, const Schedule &schedule) {
  std::set<int> found;
  for (const TreeNode &node : nodes)
    if (const LeafNode *leaf = node.leaf(); !leaf)
      found.merge(equationsIn(node.children(), schedule));
    else if (const int equation = equationOf(*leaf, schedule); equation >= 0)
      found.insert(equation);
  return found;
}

static EquationForm formOf(const Equation &equation) {
  switch (equation.kind) {
  case EquationKind::Map: return EquationForm::Map;
  case EquationKind::Reduction:
    return equation.states.empty() ? EquationForm::Reduction : EquationForm::Cascade;
  case EquationKind::Opaque: return EquationForm::TopK;
  case EquationKind::Scatter: return EquationForm::Scatter;
  case EquationKind::Scan: break;
  }
  return EquationForm::Scan;
}

EquationFacts::EquationFacts(const Equation &equation, const ExprProgram &program)
    : equation(equation), form(formOf(equation)), reads(readsOf(equation)) {
  for (NodeId read : reads) {
    tensors.push_back(equation.body[read].index);
    accesses.push_back(flatAccess(equation, read, program));
  }
  const Body &body = equation.body;
  axes = axisDependences(body, static_cast<NodeId>(body.nodes.size()) - 1);
  for (int rank = 0; rank <= std::max(0, lastRank(equation)); ++rank)
    neededOfRank.push_back(neededBeside({}, rank));
}

std::vector<bool> EquationFacts::neededBeside(const std::vector<NodeId> &atHand, int rank) const {
  return equation.body.neededBeside(atHand, resultsOfRank(equation, rank));
}

bool EquationFacts::takesWhole(TensorId tensor) const {
  return equation.base == tensor || std::ranges::count(equation.opaqueInputs, tensor) != 0;
}

int EquationFacts::ordinalOf(NodeId read) const {
  return static_cast<int>(std::ranges::find(reads, read) - reads.begin());
}

uint64_t EquationFacts::decidingAxes(NodeId read) const {
  const Body &body = equation.body;
  uint64_t found = axes[read];
  for (size_t r = 0; r < reads.size(); ++r) {
    if (reads[r] == read || (accesses[r] && accesses[r]->rests.empty()))
      continue;
    const std::vector<NodeId> inside = body.reachable(indexOperands(body[reads[r]]));
    if (std::ranges::find(inside, read) != inside.end())
      found |= axes[reads[r]];
  }
  return found;
}

static std::vector<EquationFacts> factsOf(const ExprProgram &program) {
  const std::vector<const Equation *> equations = scheduledEquations(program);
  std::vector<EquationFacts> facts;
  facts.reserve(equations.size());
  for (const Equation *equation : equations)
    facts.emplace_back(*equation, program);
  return facts;
}

ScheduledProgram::ScheduledProgram(const ExprProgram &pattern, const std::vector<Rewrite> &via)
    : made(via.empty() ? std::nullopt : rewritten(pattern, via)), exists(via.empty() || made),
      expr(made ? *made : pattern), scan(scanOf(expr)), equations(scheduledEquations(expr)),
      facts(factsOf(expr)), symbols(optValues(expr.symbols)) {}

std::optional<int64_t> ScheduledProgram::mostOf(const DimExpr &size) const {
  const int64_t most = size.range(expr.symbols).max;
  return most <= kMostOnChip ? std::optional(std::max<int64_t>(most, 0)) : std::nullopt;
}

std::vector<int64_t> ScheduledProgram::stridesOf(TensorId t) const {
  std::vector<int64_t> strides;
  for (const DimExpr &stride : fusec::stridesOf(tensor(t).shape))
    strides.push_back(valueOf(stride));
  return strides;
}

int ScheduledProgram::producer(TensorId tensor) const {
  for (size_t e = 0; e < equations.size(); ++e)
    if (std::ranges::count(equations[e]->outputs, tensor) != 0)
      return static_cast<int>(e);
  return -1;
}

BoundSchedule::BoundSchedule(const Schedule &schedule, const ExprProgram &pattern)
    : own(std::make_unique<ScheduledProgram>(pattern, schedule.via)), schedule(schedule),
      program(*own) {
  note();
}

BoundSchedule::BoundSchedule(const Schedule &schedule, const ScheduledProgram &program)
    : schedule(schedule), program(program) {
  note();
}

void BoundSchedule::note() {
  Loops loops;
  collect(schedule.tree, loops, all);
  for (const Statement &statement : all)
    for (size_t i = 0; i < statement.loops.size(); ++i) {
      Around &known = around[statement.loops[i]];
      for (size_t j = 0; j < i; ++j)
        if (statement.loops[j]->axis == statement.loops[i]->axis)
          known.loop = statement.loops[j];
    }
  for (auto &[loop, known] : around) {
    if (loop->axis == kStepAxis && !scan())
      continue; // refused by verify
    int64_t elements = valueOf(tile(*loop));
    if (loop->axis >= 0 && (loop->kind == LoopKind::Seq || loop->kind == LoopKind::Block))
      elements = std::min(elements, valueOf(schedule.axes[loop->axis].extent));
    known.trip = std::ceil(double(elements) / double(loop->step));
  }
  for (std::span<const TreeNode> phase : phasesOf(schedule.tree))
    if (const LoopNode *loop = gridScanOf(phase)) {
      stepLoop = loop;
      for (std::span<const TreeNode> ofStep : phasesOf(loop->children))
        allPhases.push_back(ofStep);
    } else {
      allPhases.push_back(phase);
    }
}

std::vector<const Statement *> BoundSchedule::statements(LeafKind kind, int equation) const {
  std::vector<const Statement *> found;
  for (const Statement &statement : all)
    if (statement.leaf->kind == kind && statement.leaf->equation == equation)
      found.push_back(&statement);
  return found;
}

std::vector<const Statement *> BoundSchedule::stages(OperandIndex operand) const {
  std::vector<const Statement *> found;
  for (const Statement &statement : all)
    if (statement.leaf->operand == operand)
      found.push_back(&statement);
  return found;
}

const Loops *BoundSchedule::loopsOf(int equation) const {
  const auto compute = std::ranges::find_if(all, [&](const Statement &statement) {
    return statement.leaf->kind == LeafKind::Compute && statement.leaf->equation == equation;
  });
  return compute == all.end() ? nullptr : &compute->loops;
}

std::vector<const Loops *> readersOf(const BoundSchedule &bound, TensorId tensor) {
  std::vector<const Loops *> readers;
  for (int e = 0; e < bound.numEquations(); ++e)
    if (std::ranges::count(bound.facts(e).tensors, tensor) != 0)
      if (const Loops *loops = bound.loopsOf(e))
        readers.push_back(loops);
  return readers;
}

DimExpr BoundSchedule::tile(const LoopNode &loop) const {
  if (const auto known = around.find(&loop); known != around.end() && known->second.loop)
    return DimExpr(known->second.loop->step);
  return loop.axis == kStepAxis ? scan()->steps : schedule.axes[loop.axis].extent;
}

DimExpr BoundSchedule::tile(AxisId axis, std::span<const LoopNode *const> loops) const {
  const LoopNode *loop = innermost(loops, axis);
  return loop ? DimExpr(loop->step) : schedule.axes[axis].extent;
}

const Operand *BoundSchedule::operand(int equation, int read) const {
  const auto found = std::ranges::find_if(
      schedule.operands, [&](const auto &o) { return o.equation == equation && o.read == read; });
  return found == schedule.operands.end() ? nullptr : &*found;
}

const ReusedRead *BoundSchedule::reuse(const ReadPlace &place) const {
  const auto found = std::ranges::find_if(
      schedule.kept, [&](const ReusedRead &kept) { return kept.read == place; });
  return found == schedule.kept.end() ? nullptr : &*found;
}

std::vector<TensorId> valuesReadBy(const BoundSchedule &bound, const LeafNode &leaf) {
  if (leaf.kind == LeafKind::Stage)
    return {bound.program.tensorOf(bound.schedule.operands[leaf.operand])};
  if (leaf.kind == LeafKind::Compute || leaf.findsPlaces())
    return bound.facts(leaf.equation).tensors;
  return {};
}

std::vector<int> phaseOfEquations(const BoundSchedule &bound) {
  std::vector<int> phases(bound.program.equations.size(), 0);
  int borders = 0;
  for (const Statement &statement : bound.statements())
    if (statement.leaf->isBorder())
      ++borders;
    else if (statement.leaf->kind == LeafKind::Compute || statement.leaf->findsPlaces())
      phases[static_cast<size_t>(statement.leaf->equation)] = borders;
  return phases;
}

bool outlivesStep(const BoundSchedule &bound, TensorId t) {
  const Equation *scan = bound.scan();
  return scan && (isStacked(*scan, t) || (bound.gridScan() && isNextState(*scan, t)));
}

bool readsValue(const BoundSchedule &bound, const LeafNode &leaf, TensorId value) {
  const std::vector<TensorId> values = valuesReadBy(bound, leaf);
  return std::ranges::find(values, value) != values.end();
}

static bool runsOver(const BoundSchedule &bound, int equation, LoopKind kind, bool reduced) {
  const Loops *loops = bound.loopsOf(equation);
  return loops && std::any_of(loops->begin(), loops->end(), [&](const LoopNode *loop) {
           const AxisUse *use = bound.use(loop->axis, equation);
           return loop->kind == kind && use && use->reduction == reduced;
         });
}

bool sharesReduction(const BoundSchedule &bound, int equation, LoopKind kind) {
  return runsOver(bound, equation, kind, true);
}

bool isInsideLanes(std::span<const LoopNode *const> loops, size_t loop) {
  return std::ranges::any_of(loops.first(loop), [&](const LoopNode *outer) {
    return outer->kind == LoopKind::Lane && outer->axis == loops[loop]->axis;
  });
}

bool lanesKeep(const BoundSchedule &bound, int equation) {
  return runsOver(bound, equation, LoopKind::Lane, false);
}

std::optional<int64_t> namedElement(const BoundSchedule &bound, int maker, AxisId axis, int reader,
                                    NodeId read) {
  const AxisUse *use = bound.use(axis, maker);
  const Loops *loops = bound.loopsOf(maker);
  if (!use || use->reduction || use->positions.size() != 1 || !loops)
    return std::nullopt;
  auto isOver = [&](const LoopNode *loop) { return loop->axis == axis; };
  const auto loop = std::find_if(loops->begin(), loops->end(), isOver);
  if (std::count_if(loops->begin(), loops->end(), isOver) != 1 ||
      (*loop)->kind != LoopKind::Unroll || (*loop)->step != 1)
    return std::nullopt;
  const Body &body = bound.equation(reader).body;
  const std::vector<NodeId> indices = indexOperands(body[read]);
  const auto position = static_cast<size_t>(use->positions[0]);
  if (position >= indices.size() || body[indices[position]].op != ScalarOp::Const)
    return std::nullopt;
  return body[indices[position]].imm;
}

} // namespace fusec::tiling
