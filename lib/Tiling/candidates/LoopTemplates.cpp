#include "Tiling/candidates/LoopTemplates.h"

#include <algorithm>

namespace fusec::tiling {

std::vector<TreeNode> spliceLoops(Schedule &into, Schedule piece, const std::string &suffix,
                                  const std::map<AxisId, AxisId> &same) {
  std::vector<AxisId> numbers;
  const size_t operandsBefore = into.operands.size();
  for (size_t a = 0; a < piece.axes.size(); ++a) {
    ScheduleAxis &axis = piece.axes[a];
    if (auto it = same.find(AxisId(a)); it != same.end()) {
      numbers.push_back(it->second);
      std::vector<AxisUse> &uses = into.axes[it->second].uses;
      uses.insert(uses.end(), axis.uses.begin(), axis.uses.end());
      continue;
    }
    numbers.push_back(AxisId(into.axes.size()));
    axis.name += suffix;
    into.axes.push_back(std::move(axis));
  }
  for (Operand &operand : piece.operands) {
    operand.name += suffix;
    for (LayoutDigit &digit : operand.digits)
      digit.axis = digit.axis >= 0 ? numbers[digit.axis] : digit.axis;
    into.operands.push_back(std::move(operand));
  }
  std::function<void(std::vector<TreeNode> &)> renumber = [&](std::vector<TreeNode> &nodes) {
    for (TreeNode &node : nodes) {
      if (LoopNode *loop = node.loop()) {
        loop->axis = numbers[loop->axis];
        renumber(loop->children);
      } else if (LeafNode *leaf = node.leaf(); leaf->operand >= 0) {
        leaf->operand = OperandIndex(operandsBefore + size_t{leaf->operand});
      }
    }
  };
  renumber(piece.tree);
  return std::move(piece.tree);
}

Schedule mapLoops(const View &view, int units, int unroll) {
  int lanes = view.target->lanes;
  ScheduleBuilder b(view, units, lanes);
  TreeNode compute = ScheduleBuilder::leaf(LeafKind::Compute, view.first);
  if (view.spatial.empty()) {
    b.schedule.tree = {compute};
    return b.schedule;
  }
  // One unit takes the last axis alone, so that no address needs a division; several share all axes.
  std::vector<std::vector<int>> fused = view.spatial;
  std::vector<LoopNode> loops;
  const bool wideEnough = view.opt(fused.back()) * 2 > lanes;
  for (size_t g = 0; units == 1 && wideEnough && g + 1 < view.spatial.size(); ++g) {
    AxisId axis = b.addSpatial("i" + std::to_string(g), {view.spatial[g]});
    loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, axis, 1));
    fused = {view.spatial.back()};
  }
  int64_t extent = 1;
  for (const auto &group : fused)
    extent *= view.opt(group);
  AxisId x = b.addSpatial("x", fused);
  int64_t vector = std::min(int64_t{lanes} * unroll, roundUp(extent, lanes));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, x, units * vector));
  if (units > 1)
    loops.push_back(ScheduleBuilder::loop(LoopKind::Unit, x, vector));
  if (unroll > 1)
    loops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, x, lanes));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Lane, x, 1));
  b.schedule.tree = {ScheduleBuilder::nest(loops, {compute})};
  return b.schedule;
}

Schedule columnLoops(const View &view, int64_t maxVectors) {
  int lanes = view.target->lanes;
  ScheduleBuilder b(view, 1, lanes);
  std::vector<LoopNode> around, reduce;
  std::vector<std::pair<AxisId, const std::vector<int> *>> outer;
  for (size_t g = 0; g + 1 < view.spatial.size(); ++g) {
    AxisId axis = b.addSpatial("i" + std::to_string(g), {view.spatial[g]});
    outer.push_back({axis, &view.spatial[g]});
    around.push_back(ScheduleBuilder::loop(LoopKind::Seq, axis, 1));
  }
  std::vector<AxisId> reduced;
  for (const auto &group : view.reduction) {
    reduced.push_back(b.addReduction("k" + std::to_string(reduced.size()), {group}));
    reduce.push_back(ScheduleBuilder::loop(LoopKind::Seq, reduced.back(), 1));
  }
  auto nestAll = [](std::vector<LoopNode> loops, std::vector<TreeNode> children) {
    return loops.empty() ? children : std::vector<TreeNode>{ScheduleBuilder::nest(loops, children)};
  };
  std::vector<TreeNode> init = {ScheduleBuilder::leaf(LeafKind::Init, view.first)};
  std::vector<TreeNode> compute = {ScheduleBuilder::leaf(LeafKind::Compute, view.first)};
  std::vector<TreeNode> store = {ScheduleBuilder::leaf(LeafKind::Store, view.first)};
  if (!view.spatial.empty()) {
    const std::vector<int> &last = view.spatial.back();
    AxisId n = b.addSpatial("n", {last});
    int64_t vectors = std::clamp<int64_t>(roundUp(view.opt(last), lanes) / lanes, 1, maxVectors);
    around.push_back(ScheduleBuilder::loop(LoopKind::Seq, n, vectors * lanes));
    for (auto *leaf : {&init, &compute, &store})
      *leaf = {ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Unroll, n, lanes),
                                      ScheduleBuilder::loop(LoopKind::Lane, n, 1)},
                                     *leaf)};
    // Repacking happens at build time: every digit has a length and a stride then. A constant that changes with the
    // caller's loops is not packed, since its digits are this piece's axes.
    uint64_t own = 0;
    for (const auto *groups : {&view.spatial, &view.reduction})
      for (const std::vector<int> &group : *groups)
        for (int position : group)
          own |= uint64_t(1) << position;
    auto known = [&](const ReadInfo &read, const std::vector<int> &group) {
      return view.extent(group).isConst() && read.stride(group).has_value();
    };
    for (const ReadInfo &read : view.reads) {
      if (!read.constant || !read.access || read.guarded || !read.dependsOn(last) ||
          (read.axes & ~own) != 0 || view.reduction.empty() || !known(read, last))
        continue;
      bool packs = true;
      for (const auto &group : view.reduction)
        packs = packs && known(read, group);
      for (const auto &[axis, group] : outer)
        packs = packs && (!read.dependsOn(*group) || known(read, *group));
      if (!packs)
        continue;
      Operand operand;
      operand.name = "w" + std::to_string(b.schedule.operands.size());
      operand.equation = view.first;
      operand.read = read.ordinal;
      operand.level = MemLevel::Global;
      for (const auto &[axis, group] : outer)
        if (read.dependsOn(*group))
          operand.digits.push_back({axis});
      operand.digits.push_back({n, -1, kPanel, 0});
      for (AxisId r : reduced)
        operand.digits.push_back({r});
      operand.digits.push_back({n, -1, 1, kPanel});
      b.schedule.operands.push_back(std::move(operand));
    }
  }
  std::vector<TreeNode> body = init;
  std::vector<TreeNode> middle = nestAll(reduce, compute);
  body.insert(body.end(), middle.begin(), middle.end());
  body.insert(body.end(), store.begin(), store.end());
  b.schedule.tree = nestAll(around, body);
  return b.schedule;
}

Schedule rowLoops(const View &view, int units) {
  if (view.reduction.empty())
    return view.spatial.empty() ? columnLoops(view, 1) : laneLoops(view, units);
  int lanes = view.target->lanes;
  ScheduleBuilder b(view, units, lanes);
  std::vector<LoopNode> reduce;
  for (size_t g = 0; g < view.reduction.size(); ++g) {
    AxisId k = b.addReduction("k" + std::to_string(g), {view.reduction[g]});
    bool last = g + 1 == view.reduction.size();
    reduce.push_back(ScheduleBuilder::loop(LoopKind::Seq, k, last ? lanes : 1));
    if (last)
      reduce.push_back(ScheduleBuilder::loop(LoopKind::Lane, k, 1));
  }
  std::vector<TreeNode> row = {
      ScheduleBuilder::leaf(LeafKind::Init, view.first),
      ScheduleBuilder::nest(reduce, {ScheduleBuilder::leaf(LeafKind::Compute, view.first)}),
      ScheduleBuilder::leaf(LeafKind::Combine, view.first),
      ScheduleBuilder::leaf(LeafKind::Store, view.first)};
  if (view.spatial.empty()) {
    b.schedule.tree = row;
    return b.schedule;
  }
  AxisId m = b.addSpatial("m", view.spatial);
  std::vector<LoopNode> around = {ScheduleBuilder::loop(LoopKind::Seq, m, units)};
  if (units > 1)
    around.push_back(ScheduleBuilder::loop(LoopKind::Unit, m, 1));
  b.schedule.tree = {ScheduleBuilder::nest(around, row)};
  return b.schedule;
}

Schedule laneLoops(const View &view, int units) {
  int lanes = view.target->lanes;
  ScheduleBuilder b(view, units, lanes);
  std::vector<LoopNode> walk;
  for (size_t g = 0; g < view.reduction.size(); ++g)
    walk.push_back(ScheduleBuilder::loop(
        LoopKind::Seq, b.addReduction("k" + std::to_string(g), {view.reduction[g]}), 1));
  AxisId x = b.addSpatial("x", view.spatial);
  auto overLanes = [&](LeafKind kind) {
    return ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Lane, x, 1)},
                                 {ScheduleBuilder::leaf(kind, view.first)});
  };
  TreeNode compute = overLanes(LeafKind::Compute);
  std::vector<LoopNode> around = {ScheduleBuilder::loop(LoopKind::Seq, x, int64_t{units} * lanes)};
  if (units > 1)
    around.push_back(ScheduleBuilder::loop(LoopKind::Unit, x, lanes));
  b.schedule.tree = {ScheduleBuilder::nest(
      around,
      {overLanes(LeafKind::Init), walk.empty() ? compute : ScheduleBuilder::nest(walk, {compute}),
       overLanes(LeafKind::Store)})};
  return b.schedule;
}

std::vector<LoopNode> sharedByUnits(AxisId k, int64_t terms, int units, int unroll) {
  // No more for a unit than its share.
  const int64_t share = (terms + units - 1) / units;
  const int64_t step = std::min<int64_t>(unroll, share);
  std::vector<LoopNode> loops = {ScheduleBuilder::loop(LoopKind::Seq, k, units * step)};
  if (units > 1)
    loops.push_back(ScheduleBuilder::loop(LoopKind::Unit, k, step));
  if (step > 1)
    loops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, k, 1));
  return loops;
}

Schedule tileLoops(const View &view, int units, int unroll) {
  const int lanes = view.target->lanes;
  ScheduleBuilder b(view, units, lanes);
  std::vector<LoopNode> walk;
  for (size_t g = 0; g + 1 < view.reduction.size(); ++g)
    walk.push_back(ScheduleBuilder::loop(
        LoopKind::Seq, b.addReduction("k" + std::to_string(g), {view.reduction[g]}), 1));
  for (const LoopNode &loop : sharedByUnits(b.addReduction("k", {view.reduction.back()}),
                                            view.opt(view.reduction.back()), units, unroll))
    walk.push_back(loop);
  const AxisId x = b.addSpatial("x", view.spatial);
  auto overLanes = [&](LeafKind kind) {
    return ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Lane, x, 1)},
                                 {ScheduleBuilder::leaf(kind, view.first)});
  };
  b.schedule.tree = {ScheduleBuilder::nest(
      {ScheduleBuilder::loop(LoopKind::Seq, x, lanes)},
      {overLanes(LeafKind::Init), ScheduleBuilder::nest(walk, {overLanes(LeafKind::Compute)}),
       ScheduleBuilder::leaf(LeafKind::Combine, view.first), overLanes(LeafKind::Store)})};
  return b.schedule;
}

Schedule rowLaneLoops(const View &view, int units, int unroll) {
  ScheduleBuilder b(view, units, view.target->lanes);
  const AxisId rows{0};
  b.schedule.axes.push_back({"rows", {}, DimExpr(1)});
  std::vector<LoopNode> walk, around;
  for (size_t g = 0; g < view.reduction.size(); ++g)
    walk.push_back(ScheduleBuilder::loop(
        LoopKind::Seq, b.addReduction("k" + std::to_string(g), {view.reduction[g]}), 1));
  std::vector<LoopNode> vectors = {ScheduleBuilder::loop(LoopKind::Lane, rows, 1)};
  if (!view.spatial.empty()) {
    const AxisId x = b.addSpatial("x", view.spatial);
    int64_t outputs = 1;
    for (const std::vector<int> &group : view.spatial)
      outputs = std::min(outputs * view.opt(group), int64_t{1} << 24);
    const int64_t step = std::min<int64_t>(unroll, (outputs + units - 1) / units);
    around.push_back(ScheduleBuilder::loop(LoopKind::Seq, x, units * step));
    if (units > 1)
      around.push_back(ScheduleBuilder::loop(LoopKind::Unit, x, step));
    if (step > 1)
      vectors.insert(vectors.begin(), ScheduleBuilder::loop(LoopKind::Unroll, x, 1));
  }
  auto overLanes = [&](LeafKind kind) {
    return ScheduleBuilder::nest(vectors, {ScheduleBuilder::leaf(kind, view.first)});
  };
  TreeNode compute = overLanes(LeafKind::Compute);
  std::vector<TreeNode> sum = {overLanes(LeafKind::Init),
                               walk.empty() ? compute : ScheduleBuilder::nest(walk, {compute})};
  if (!around.empty()) {
    sum.push_back(overLanes(LeafKind::Store));
    sum = {ScheduleBuilder::nest(around, std::move(sum))};
  }
  b.schedule.tree = std::move(sum);
  return b.schedule;
}

Schedule valueLoops(const View &view, int units, int unroll) {
  int lanes = view.target->lanes;
  ScheduleBuilder b(view, units, lanes);
  std::vector<LoopNode> loops;
  for (size_t g = 0; g + 1 < view.reduction.size(); ++g)
    loops.push_back(ScheduleBuilder::loop(
        LoopKind::Seq, b.addReduction("r" + std::to_string(g), {view.reduction[g]}), 1));
  TreeNode compute = ScheduleBuilder::leaf(LeafKind::Compute, view.first);
  b.schedule.tree = {ScheduleBuilder::leaf(LeafKind::Init, view.first)};
  if (view.reduction.empty()) {
    b.schedule.tree.push_back(compute);
    return b.schedule;
  }
  AxisId k = b.addReduction("k", {view.reduction.back()});
  int64_t vector =
      std::min(int64_t{lanes} * unroll, roundUp(view.opt(view.reduction.back()), lanes));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, k, units * vector));
  if (units > 1)
    loops.push_back(ScheduleBuilder::loop(LoopKind::Unit, k, vector));
  if (unroll > 1)
    loops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, k, lanes));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Lane, k, 1));
  b.schedule.tree.push_back(ScheduleBuilder::nest(loops, {compute}));
  b.schedule.tree.push_back(ScheduleBuilder::leaf(LeafKind::Combine, view.first));
  return b.schedule;
}

TreeNode rankByRank(std::vector<LoopNode> loops, const std::vector<std::vector<LeafNode>> &computes,
                    const std::vector<const Equation *> &equations) {
  auto nestOf = [](std::vector<LoopNode> around, const std::vector<LeafNode> &leaves) {
    return ScheduleBuilder::nest(std::move(around), {leaves.begin(), leaves.end()});
  };
  if (std::ranges::all_of(computes[0], [&](const LeafNode &compute) {
        return equations[compute.equation]->states.empty();
      }))
    return nestOf(std::move(loops), computes[0]);
  auto tile = std::ranges::find_if(loops, [](const LoopNode &loop) {
    return loop.kind == LoopKind::Unroll || loop.kind == LoopKind::Lane;
  });
  const std::vector<LoopNode> vectors(tile, loops.end());
  loops.erase(tile, loops.end());
  std::vector<TreeNode> inside;
  for (size_t rank = 0; rank < computes.size(); ++rank) {
    std::vector<TreeNode> corrections;
    for (const LeafNode &compute : computes[rank])
      if (!equations[compute.equation]->states.empty())
        corrections.push_back(
            ScheduleBuilder::leaf(LeafKind::Correct, compute.equation, static_cast<int>(rank) + 1));
    inside.push_back(nestOf(vectors, computes[rank]));
    inside.insert(inside.end(), corrections.begin(), corrections.end());
  }
  return ScheduleBuilder::nest(std::move(loops), std::move(inside));
}

} // namespace fusec::tiling
