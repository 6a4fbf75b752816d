#include "Tiling/space/TreeBuilder.h"

#include "Tiling/candidates/LoopTemplates.h"
#include "Tiling/schedule/SharedBuffers.h"

namespace fusec::tiling {

namespace {

constexpr int64_t kMostSums = 64;    // that a GPU's thread holds in registers through a loop
constexpr int64_t kVectorsOfRow = 4; // of a step along a row

LoopNode loop(LoopKind kind, AxisId axis, int64_t step) {
  return ScheduleBuilder::loop(kind, axis, step);
}
LeafNode leaf(LeafKind kind, int equation) { return ScheduleBuilder::leaf(kind, equation); }

/// The loops around these nodes; the nodes themselves where there are none.
std::vector<TreeNode> inside(std::vector<LoopNode> loops, std::vector<TreeNode> nodes) {
  if (loops.empty())
    return nodes;
  std::vector<TreeNode> out;
  out.push_back(ScheduleBuilder::nest(std::move(loops), std::move(nodes)));
  return out;
}

void append(std::vector<TreeNode> &out, std::vector<TreeNode> more) {
  std::ranges::move(more, std::back_inserter(out));
}

/// Whether a map's result will lie where the block has what it is the last to read, as far as that is known without
/// the loops: takePlaces decides.
bool mightTakePlace(const TreeSpace &tree, const std::vector<size_t> &nestOf,
                    const std::map<TensorId, MemLevel> &levels, TensorId result, int map) {
  const std::vector<InsideRead> &reads = tree.space.reads;
  const auto comesBehind = [&](int equation) {
    const auto placeOf = [&](int e) { return std::pair(nestOf[static_cast<size_t>(e)], e); };
    return placeOf(equation) > placeOf(map);
  };
  return tree.equation(map).kind == EquationKind::Map && tree.equation(map).outputs.size() == 1 &&
         std::ranges::any_of(reads, [&](const InsideRead &read) {
           const auto level = levels.find(read.tensor);
           return read.reader == map && level != levels.end() &&
                  level->second == MemLevel::Shared &&
                  std::ranges::all_of(read.own, [](bool own) { return own; }) &&
                  areAlike(tree.program, read.tensor, result) &&
                  std::ranges::none_of(reads, [&](const InsideRead &other) {
                    return other.tensor == read.tensor && comesBehind(other.reader);
                  });
         });
}

} // namespace

TreeBuilder::TreeBuilder(const TreeSpace &tree, const Target &target, TreeShape shape)
    : tree(tree), space(tree.space), nests(tree.nests), rowAxes(tree.rowAxes),
      program(tree.program), target(target), shape(std::move(shape)), axes(space.loops.size()),
      nestOf(space.equations.size()), sharedLeft(this->shape.room) {
  for (size_t n = 0; n < nests.size(); ++n)
    for (int e : nests[n].equations)
      nestOf[static_cast<size_t>(e)] = n;
}

GeneratorName TreeBuilder::nameOfTree() const {
  if (nests.size() > 1)
    return shape.thin               ? GeneratorName("tree-thin")
           : shape.streamed.empty() ? GeneratorName("tree")
                                    : GeneratorName("tree-streamed");
  if (shape.thin)
    return shape.thinAlongSum ? GeneratorName("thin-rows") : GeneratorName("thin");
  return shape.boxes ? GeneratorName("mm-boxes") : GeneratorName("mm");
}

std::optional<Schedule> TreeBuilder::build() {
  schedule.name = nameOfTree();
  schedule.units = shape.thin ? shape.thin->units : target.unitsOf(kThreads);
  unitsShareRows = shape.thin && shape.rows % schedule.units != 0;
  schedule.lanes = target.lanes;
  addAxes();
  groupNests();
  if (!placeValues())
    return std::nullopt;
  std::vector<LoopNode> blocks;
  for (const std::vector<int> &row : rowAxes) {
    const AxisId a = axis(row[0]);
    blocks.push_back(loop(LoopKind::Block, a,
                          a == m        ? shape.rows
                          : a == around ? shape.outside
                                        : 1));
  }
  if (shape.columns > 0)
    blocks.push_back(loop(LoopKind::Block, axis(nests.back().spatial.back()), shape.columns));
  std::vector<TreeNode> body, rows; // rows: of plain nests behind each other
  auto endRows = [&] {
    if (rows.empty())
      return;
    std::vector<LoopNode> loops;
    if (target.blocksHaveUnits() && !unitsShareRows)
      loops.push_back(
          loop(LoopKind::Unit, m, shape.thin ? shape.rows / schedule.units : shape.tile.rows));
    if (m >= 0)
      loops.push_back(loop(LoopKind::Seq, m, 1));
    append(body, inside(std::move(loops), std::move(rows)));
    rows.clear();
  };
  for (size_t n = 0; n < nests.size(); ++n) {
    if (isStreamed(n + 1))
      continue; // its reader's loop holds it
    if (nests[n].tiled) {
      endRows();
      if (shape.thin && shape.thinAlongSum)
        addThinAlongSum(nests[n], body);
      else if (shape.thin)
        addThin(nests[n], body);
      else
        addTiled(n, body);
    } else {
      addPlain(nests[n], rows);
    }
  }
  endRows();
  schedule.tree = inside(std::move(blocks), std::move(body));
  if (!target.blocksHaveUnits())
    takePlaces(schedule, program);
  if (!fits || hasPanels != shape.panels || hasParts != shape.partsOfTurn)
    return std::nullopt;
  return std::move(schedule);
}

void TreeBuilder::addAxis(const std::vector<int> &loops) {
  ScheduleAxis made{nameOf(loops), {}, DimExpr(1)};
  for (int l : loops) {
    made.extent = made.extent * tree.loop(l).extent;
    axes[static_cast<size_t>(l)] = AxisId(schedule.axes.size());
  }
  for (size_t e = 0; e < space.equations.size(); ++e) {
    AxisUse use;
    for (int l : loops)
      if (const int p = tree.positionOf(l, static_cast<int>(e)); p >= 0)
        use.positions.push_back(p);
    if (use.positions.empty())
      continue;
    use.reduction = space.reduces(loops[0], static_cast<int>(e));
    auto same = std::ranges::find_if(made.uses, [&](const AxisUse &known) {
      return known.reduction == use.reduction && known.positions == use.positions;
    });
    if (same == made.uses.end())
      same = made.uses.insert(same, std::move(use));
    same->equations.push_back(static_cast<int>(e));
  }
  schedule.axes.push_back(std::move(made));
}

/// One contraction has the names that papers give: rows m, columns n, sums k.
std::string TreeBuilder::nameOf(const std::vector<int> &loops) const {
  const size_t number = schedule.axes.size();
  if (nests.size() > 1)
    return tree.loop(loops[0]).name + std::to_string(number);
  if (number < rowAxes.size())
    return tree.hasRows && number + 1 == rowAxes.size() ? "m" : "i" + std::to_string(number);
  const std::vector<int> &sums = nests[0].reduced;
  const auto sum = std::ranges::find(sums, loops.back());
  return sum == sums.end() ? "n" : "k" + std::to_string(sum - sums.begin());
}

void TreeBuilder::addAxes() {
  for (const std::vector<int> &row : rowAxes)
    addAxis(row);
  const size_t outside = rowAxes.size() - size_t{tree.hasRows};
  m = outside < rowAxes.size() ? AxisId(outside) : AxisId();
  around = outside > 0 ? AxisId(outside - 1) : AxisId();
  for (size_t l = 0; l < space.loops.size(); ++l)
    if (axes[l] < 0)
      addAxis(tree.axisOf(static_cast<int>(l)));
}

void TreeBuilder::groupNests() {
  for (size_t n = 0; n < nests.size(); ++n)
    groupOf.push_back(n > 0 && !nests[n].tiled && !nests[n - 1].tiled ? groupOf.back() : n);
}

std::vector<size_t> TreeBuilder::nestsReading(TensorId tensor) const {
  std::vector<size_t> readers;
  for (const InsideRead &read : space.reads)
    if (read.tensor == tensor)
      readers.push_back(nestOf[static_cast<size_t>(read.reader)]);
  return readers;
}

/// Registers for what a nest alone reads, or the row of a group; then the block's memory while there is room; else
/// device memory, where only its own block reads it.
MemLevel TreeBuilder::levelFor(TensorId tensor, int maker) {
  if (program.tensor(tensor).kind != TensorKind::Temp)
    return MemLevel::Global;
  const size_t nest = nestOf[static_cast<size_t>(maker)];
  const SpaceNest &own = nests[nest];
  const std::vector<size_t> readers = nestsReading(tensor);
  const bool oneOfRow = own.spatial.empty();
  if (std::ranges::all_of(readers, [&](size_t reader) {
        return reader == nest ||
               (oneOfRow && !own.tiled && !nests[reader].tiled && groupOf[reader] == groupOf[nest]);
      }))
    return MemLevel::Register;
  if (!target.blocksHaveUnits() && mightTakePlace(tree, nestOf, levels, tensor, maker))
    return MemLevel::Shared;
  int64_t elements = shape.rows;
  for (int l : own.spatial) {
    const bool streamed = isStreamed(nest + 1) && l == nests[nest + 1].reduced[0];
    const std::optional<int64_t> most = streamed ? std::optional(columnsOf(nest)) : tree.mostOf(l);
    if (!most || *most > sharedLeft)
      return MemLevel::Global;
    elements *= *most;
    if (elements > sharedLeft)
      return MemLevel::Global;
  }
  const int64_t bytes = roundUp(elements * program.bytesOf(tensor), 128);
  if (bytes > sharedLeft)
    return MemLevel::Global;
  sharedLeft -= bytes;
  return MemLevel::Shared;
}

bool TreeBuilder::placeValues() {
  for (size_t e = 0; e < space.equations.size(); ++e)
    for (TensorId t : space.equations[e]->outputs) {
      const MemLevel level = levels[t] = levelFor(t, static_cast<int>(e));
      if (level != MemLevel::Global)
        schedule.edges.push_back({t, level});
      else if (isStreamed(nestOf[e] + 1) && program.tensor(t).kind == TensorKind::Temp)
        return false;
      else if (shape.columns > 0 && !isOverBlocks(nestOf[e]))
        return false; // several blocks would write it
    }
  return true;
}

int64_t TreeBuilder::columnsOfBlock(size_t nest) const {
  return isOverBlocks(nest) ? shape.columns
                            : roundUp(tree.opt(nests[nest].spatial.back()), target.lanes);
}

int64_t TreeBuilder::columnsOf(size_t nest) const {
  if (target.blocksHaveUnits() && m < 0) // units have columns
    return columnsOfBlock(nest);
  return std::min(shape.tileOf(nest).vectors * target.lanes * neighboursOf(nest),
                  columnsOfBlock(nest));
}

int64_t TreeBuilder::neighboursOf(size_t nest) const {
  if (shape.thin)
    return shape.thin->neighbours;
  const int64_t columns = columnsOfBlock(nest);
  int64_t neighbours = shape.neighbours;
  const bool isCut = !isStreamed(nest) && !isOverBlocks(nest); // by the last turn of a loop
  while (neighbours > 1 && (target.lanes * neighbours > columns ||
                            (!isCut && columns % (target.lanes * neighbours) != 0)))
    neighbours /= 2;
  return neighbours;
}

int64_t TreeBuilder::widthOf(size_t nest) const {
  return isStreamed(nest) ? columnsOfBlock(nest) : columnsOf(nest);
}

TreeNode TreeBuilder::overTile(const SpaceNest &nest, LeafNode statement) const {
  const AxisId columns = axis(nest.spatial.back());
  const size_t position = nestOf[static_cast<size_t>(nest.equations[0])];
  const int64_t neighbours = neighboursOf(position);
  std::vector<LoopNode> loops;
  if (shape.tileOf(position).rows > 1)
    loops.push_back(loop(LoopKind::Unroll, m, 1));
  if (!shape.thin)
    loops.push_back(loop(LoopKind::Unroll, columns, target.lanes * neighbours));
  loops.push_back(loop(LoopKind::Lane, columns, neighbours));
  if (neighbours > 1)
    loops.push_back(loop(LoopKind::Unroll, columns, 1));
  return ScheduleBuilder::nest(std::move(loops), {TreeNode(std::move(statement))});
}

TreeNode TreeBuilder::inUnits(TreeNode child) const {
  if (!target.blocksHaveUnits())
    return child;
  LoopNode units = m < 0 ? loop(LoopKind::Unit, axis(nests.back().spatial.back()),
                                target.lanes * shape.neighbours)
                         : loop(LoopKind::Unit, m, shape.tile.rows);
  return ScheduleBuilder::nest({std::move(units)}, {std::move(child)});
}

/// What ends a tile: its values go where others read them, and maps take them on.
std::vector<TreeNode> TreeBuilder::finishes(const SpaceNest &nest) const {
  std::vector<TreeNode> out;
  const int main = nest.equations[0];
  if (levels.at(tree.equation(main).outputs[0]) != MemLevel::Register)
    out.push_back(inUnits(overTile(nest, leaf(LeafKind::Store, main))));
  for (size_t i = 1; i < nest.equations.size(); ++i)
    out.push_back(inUnits(overTile(nest, leaf(LeafKind::Compute, nest.equations[i]))));
  return out;
}

/// Whether the nest that makes what a streamed one sums has loops over the latter's columns.
static bool sharesColumns(const std::vector<SpaceNest> &nests, size_t streamed) {
  const int columns = nests[streamed].spatial.back();
  const SpaceNest &source = nests[streamed - 1];
  return std::ranges::count(source.reduced, columns) || std::ranges::count(source.spatial, columns);
}

void TreeBuilder::addTiled(size_t n, std::vector<TreeNode> &out) {
  const SpaceNest &nest = nests[n];
  const int main = nest.equations[0];
  const AxisId columns = axis(nest.spatial.back());
  const bool units = target.blocksHaveUnits();
  std::vector<LoopNode> outer; // one by one
  for (size_t i = 0; i + 1 < nest.spatial.size(); ++i)
    outer.push_back(loop(LoopKind::Seq, axis(nest.spatial[i]), 1));
  std::vector<TreeNode> tile;
  tile.push_back(inUnits(overTile(nest, leaf(LeafKind::Init, main))));
  std::vector<LoopNode> sums;
  for (size_t i = 0; i + 1 < nest.reduced.size(); ++i)
    sums.push_back(loop(LoopKind::Seq, axis(nest.reduced[i]), 1));
  const TreeNode compute = overTile(nest, leaf(LeafKind::Compute, main));
  if (isStreamed(n)) {
    // The sums of all columns wait in registers while what they sum is made.
    if (shape.tile.rows * widthOf(n) / target.lanes > kMostSums)
      fits = false;
    const int64_t step = columnsOf(n - 1);
    std::vector<TreeNode> turn;
    addTiled(n - 1, turn);
    std::vector<TreeNode> part;
    const int64_t depth = shape.partsOfTurn ? std::min(shape.depth, step) : step;
    hasParts |= depth < step;
    stageTiles(nest, nest.reduced[0], depth, part);
    part.push_back(
        inUnits(ScheduleBuilder::nest({loop(LoopKind::Seq, axis(nest.reduced[0]), 1)}, {compute})));
    append(turn, depth < step
                     ? inside({loop(LoopKind::Seq, axis(nest.reduced[0]), depth)}, std::move(part))
                     : std::move(part));
    tile.push_back(
        ScheduleBuilder::nest({loop(LoopKind::Seq, axis(nest.reduced[0]), step)}, std::move(turn)));
  } else if (nest.reduced.empty()) { // sums of one term
    tile.push_back(inUnits(compute));
  } else if (units) {
    const int k = nest.reduced.back();
    std::vector<TreeNode> step;
    stageTiles(nest, k, shape.depth, step);
    std::vector<LoopNode> walk;
    for (int64_t one : shape.steps)
      walk.push_back(loop(LoopKind::Seq, axis(k), one));
    step.push_back(inUnits(ScheduleBuilder::nest(std::move(walk), {compute})));
    sums.push_back(loop(LoopKind::Seq, axis(k), shape.depth));
    append(tile, inside(std::move(sums), std::move(step)));
  } else {
    sums.push_back(loop(LoopKind::Seq, axis(nest.reduced.back()), 1));
    append(tile, inside(std::move(sums), {compute}));
  }
  append(tile, finishes(nest));
  std::vector<TreeNode> strip; // the rows of some columns
  std::vector<LoopNode> rows;
  if (!units) {
    packConstants(nest);
    // Columns of blocks are copied at once, before the loops.
    if (nests.size() == 1 && isOverBlocks(n))
      stagePanels(nest, shape.columns, out);
    else
      stagePanels(nest, columnsOf(n), strip);
    const int64_t rowsOfTile = shape.tileOf(n).rows;
    if (m >= 0 && (shape.rows > rowsOfTile || rowsOfTile == 1))
      rows.push_back(loop(LoopKind::Seq, m, rowsOfTile));
  }
  append(strip, inside(std::move(rows), std::move(tile)));
  // What is streamed has its columns from the reader's loop. The reader has all of its own at once: a loop of one turn
  // cuts the last ones, but for columns that its source has loops over, too, as between two residual additions.
  if (isStreamed(n) && sharesColumns(nests, n)) {
    const DimExpr extent = tree.extent(nest.spatial.back());
    fits = fits && extent.isConst() && extent.constValue() % target.lanes == 0;
  } else if (!isStreamed(n + 1) && !(isOverBlocks(n) && widthOf(n) == shape.columns)) {
    outer.push_back(loop(LoopKind::Seq, columns, widthOf(n)));
  }
  if (!units && shape.outside > 1) // inside: a cache holds what its points read of some columns
    outer.push_back(loop(LoopKind::Seq, around, 1));
  append(out, inside(std::move(outer), std::move(strip)));
}

/// Point by point along the loops, vectors along the last one.
void TreeBuilder::addPlain(const SpaceNest &nest, std::vector<TreeNode> &out) {
  std::vector<int> walked = nest.spatial;
  walked.insert(walked.end(), nest.reduced.begin(), nest.reduced.end());
  std::vector<TreeNode> computes, ends;
  for (int e : nest.equations) {
    computes.push_back(leaf(LeafKind::Compute, e));
    if (tree.equation(e).kind != EquationKind::Reduction)
      continue;
    out.push_back(leaf(LeafKind::Init, e));
    ends.push_back(leaf(LeafKind::Combine, e));
    if (levels.at(tree.equation(e).outputs[0]) != MemLevel::Register)
      ends.push_back(leaf(LeafKind::Store, e));
  }
  std::vector<LoopNode> loops;
  for (size_t i = 0; i + 1 < walked.size(); ++i)
    loops.push_back(loop(LoopKind::Seq, axis(walked[i]), 1));
  if (!walked.empty()) {
    const AxisId x = axis(walked.back());
    const int64_t units = unitsShareRows ? schedule.units : 1,
                  share = (tree.opt(walked.back()) + units - 1) / units,
                  step = std::min(kVectorsOfRow * target.lanes, roundUp(share, target.lanes));
    loops.push_back(loop(LoopKind::Seq, x, units * step));
    if (units > 1)
      loops.push_back(loop(LoopKind::Unit, x, step));
    if (step > target.lanes)
      loops.push_back(loop(LoopKind::Unroll, x, target.lanes));
    loops.push_back(loop(LoopKind::Lane, x, 1));
  }
  append(out, inside(std::move(loops), std::move(computes)));
  append(out, std::move(ends));
}

} // namespace fusec::tiling
