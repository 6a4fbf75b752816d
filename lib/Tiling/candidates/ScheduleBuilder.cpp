#include "Tiling/candidates/ScheduleBuilder.h"

#include <algorithm>

namespace fusec::tiling {

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

DimExpr View::extent(const std::vector<int> &group) const {
  DimExpr product(1);
  for (int position : group)
    product = product * equation().axes[position].extent;
  return product;
}

int64_t View::opt(const std::vector<int> &group) const {
  constexpr int64_t kMost =
      int64_t{1} << 24; // beyond it sizes no longer change a choice, and products stay small
  return std::clamp<int64_t>(extent(group).evaluate(program->symbols).value_or(kMost), 1, kMost);
}

namespace {

/// Axes that the equation uses other than in the addresses of its reads.
uint64_t directAxes(const Equation &e) {
  std::vector<NodeId> pending = bodyRoots(e);
  std::vector<bool> seen(e.body.nodes.size(), false);
  uint64_t mask = 0;
  while (!pending.empty()) {
    NodeId id = pending.back();
    pending.pop_back();
    if (seen[id])
      continue;
    seen[id] = true;
    const Scalar &node = e.body[id];
    if (node.op == ScalarOp::Axis)
      mask |= uint64_t{1} << node.index;
    size_t count = node.op == ScalarOp::Read     ? 0
                   : node.op == ScalarOp::ReadIf ? 2
                                                 : node.args.size();
    pending.insert(pending.end(), node.args.begin(), node.args.begin() + count);
  }
  return mask;
}

std::vector<std::vector<int>> mergeGroups(const std::vector<const EquationFacts *> &equations,
                                          int begin, int end, const std::vector<int> &without) {
  std::vector<std::vector<int>> groups;
  for (int p = begin; p < end; ++p) {
    if (equations[0]->equation.axes[p].extent.isConst(1) || std::ranges::count(without, p) != 0)
      continue;
    bool joins = !groups.empty() && groups.back().back() == p - 1;
    for (const EquationFacts *facts : equations)
      joins = joins && mergeable(*facts, p - 1);
    if (joins)
      groups.back().push_back(p);
    else
      groups.push_back({p});
  }
  return groups;
}

} // namespace

bool mergeable(const EquationFacts &facts, int p) {
  const DimExpr &extent = facts.equation.axes[p + 1].extent;
  const uint64_t pair = uint64_t{3} << p;
  if (directAxes(facts.equation) & pair)
    return false;
  for (size_t r = 0; r < facts.reads.size(); ++r)
    if (const std::optional<FlatAccess> &access = facts.accesses[r];
        (facts.axes[facts.reads[r]] & pair) != 0 &&
        (!access || access->stride[p] != access->stride[p + 1] * extent))
      return false;
  return true;
}

static std::vector<ReadInfo> readInfos(const View &view) {
  const EquationFacts &facts = view.program->facts[view.first];
  std::vector<ReadInfo> infos;
  for (size_t r = 0; r < facts.reads.size(); ++r) {
    const NodeId id = facts.reads[r];
    const Scalar &node = facts.equation.body[id];
    const Tensor &tensor = view.tensor(node.index);
    infos.push_back({static_cast<int>(r), id, node.index, sizeInBytes(tensor.type),
                     node.op == ScalarOp::ReadIf, tensor.kind == TensorKind::Constant,
                     facts.axes[id], facts.accesses[r]});
  }
  return infos;
}

View makeView(const ScheduledProgram &program, const Target &target, int first, int finish,
              const std::vector<int> &without) {
  View view{&program, &target, first, finish, {}, {}, {}};
  const EquationFacts &own = program.facts[first];
  std::vector<const EquationFacts *> both = {&own};
  if (finish >= 0)
    both.push_back(&program.facts[finish]);
  const Equation &e = view.equation();
  view.spatial = mergeGroups(both, 0, e.numSpatial, without);
  view.reduction = mergeGroups({&own}, e.numSpatial, static_cast<int>(e.axes.size()), {});
  view.reads = readInfos(view);
  return view;
}

bool ReadInfo::dependsOn(const std::vector<int> &group) const {
  return std::ranges::any_of(group, [&](int p) { return axes >> p & 1; });
}

std::optional<int64_t> ReadInfo::stride(const std::vector<int> &group) const {
  if (!access || !access->stride[group.back()].isConst())
    return std::nullopt;
  return access->stride[group.back()].constValue();
}

ScheduleBuilder::ScheduleBuilder(const View &view, int units, int lanes) : view(view) {
  schedule.units = units;
  schedule.lanes = lanes;
}

ScheduleBuilder::ScheduleBuilder(const View &view, GeneratorName name, int units, int lanes)
    : ScheduleBuilder(view, units, lanes) {
  schedule.name = name;
}

static ScheduleAxis makeAxis(const View &view, const std::string &name, bool reduction,
                             const std::vector<std::vector<int>> &groups) {
  ScheduleAxis axis;
  axis.name = name;
  axis.extent = DimExpr(1);
  AxisUse use{reduction, {}, {view.first}};
  if (!reduction && view.finish >= 0)
    use.equations.push_back(view.finish);
  for (const std::vector<int> &group : groups) {
    use.positions.insert(use.positions.end(), group.begin(), group.end());
    axis.extent = axis.extent * view.extent(group);
  }
  axis.uses = {std::move(use)};
  return axis;
}

AxisId ScheduleBuilder::addSpatial(const std::string &name, std::vector<std::vector<int>> groups) {
  schedule.axes.push_back(makeAxis(view, name, false, groups));
  return AxisId(schedule.axes.size() - 1);
}

AxisId ScheduleBuilder::addReduction(const std::string &name,
                                     std::vector<std::vector<int>> groups) {
  schedule.axes.push_back(makeAxis(view, name, true, groups));
  return AxisId(schedule.axes.size() - 1);
}

TreeNode ScheduleBuilder::nest(std::vector<LoopNode> loops, std::vector<TreeNode> children) {
  for (size_t i = loops.size(); i-- > 0;) {
    loops[i].children = std::move(children);
    children.clear();
    children.push_back(std::move(loops[i]));
  }
  return std::move(children[0]);
}

std::vector<LoopNode> ScheduleBuilder::lanesAlong(AxisId axis, int64_t neighbours) const {
  std::vector<LoopNode> loops = {loop(LoopKind::Lane, axis, neighbours)};
  if (neighbours > 1)
    loops.push_back(loop(LoopKind::Unroll, axis, 1));
  return loops;
}

LeafNode ScheduleBuilder::finishLeaf() const {
  return view.finish >= 0 ? leaf(LeafKind::Compute, view.finish)
                          : leaf(LeafKind::Store, view.first);
}

void ScheduleBuilder::registerEdges() {
  if (view.finish >= 0 && view.tensor(view.equation().outputs[0]).kind == TensorKind::Temp)
    schedule.edges.push_back({view.equation().outputs[0], MemLevel::Register});
}

OperandIndex ScheduleBuilder::stage(const ReadInfo &read, std::vector<LayoutDigit> digits,
                                    int64_t pad) {
  Operand operand;
  operand.name = "s" + std::to_string(schedule.operands.size());
  operand.equation = view.first;
  operand.read = read.ordinal;
  operand.level = MemLevel::Shared;
  operand.digits = std::move(digits);
  operand.padElements = pad;
  schedule.operands.push_back(std::move(operand));
  return OperandIndex(schedule.operands.size() - 1);
}

} // namespace fusec::tiling
