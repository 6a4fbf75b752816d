// Schedules of contractions: register tiles of rows x vectors over packed or contiguous operands.
//
// Roles. The last spatial group L runs over lanes. Reads that depend on it are the vector operands ("B"); the
// others are broadcast ("A"). A row group M is one that some vector operand does not depend on, so that a vector
// loaded once serves all rows of the register tile (a depthwise convolution's weights, for instance).
// Example, C[m, n] = sum_k A[m, k] * B[k, n] on AVX2 with rows 6, vectors 2:
//
//   block n:16 { block m:96 { seq n:16 { seq m:6 {
//     unroll m:1 { unroll n:8 { lane n:1 { init } } }
//     seq k:1 { unroll m:1 { unroll n:8 { lane n:1 { compute } } } }      # 2 vector loads, 6 broadcasts, 12 fma
//     unroll m:1 { unroll n:8 { lane n:1 { store } } } } } } }
#include "Tiling/candidates/Candidates.h"
#include "Tiling/candidates/RegisterTiles.h"

#include <algorithm>
#include <numeric>
#include <ranges>

namespace fusec::tiling {

namespace {

class CpuContraction {
public:
  /// `packs`: blocks copy the panel of the vector operand that their columns read.
  CpuContraction(const View &view, RegisterTile tile, const Roles &roles, bool packs = false)
      : view(view), tile(tile), roles(roles), packs(packs), b(view, "mm", 1, view.target->lanes) {}

  /// nullopt: it should pack, and no panel of bounded size fits.
  std::optional<Schedule> build() {
    b.registerEdges();
    for (int g : roles.blocks)
      blockAxes.push_back(b.addSpatial("i" + std::to_string(g), {view.spatial[g]}));
    if (roles.row >= 0)
      m = b.addSpatial("m", {view.spatial[roles.row]});
    n = b.addSpatial("n", {view.spatial[roles.lane]});
    orderReduction();
    chooseBlocks();
    std::vector<LoopNode> around, inner;
    for (size_t i = 0; i < blockAxes.size(); ++i) {
      bool last = i + 1 == blockAxes.size();
      around.push_back(
          ScheduleBuilder::loop(LoopKind::Block, blockAxes[i], last ? lastBlockStep : 1));
      if (last && lastBlockStep > 1)
        inner.push_back(ScheduleBuilder::loop(LoopKind::Seq, blockAxes[i], 1));
    }
    if (m >= 0)
      around.push_back(ScheduleBuilder::loop(LoopKind::Block, m, rowsPerBlock));
    around.push_back(ScheduleBuilder::loop(LoopKind::Block, n, columnsPerBlock));
    std::vector<TreeNode> body = stages();
    int64_t columns = tile.vectors * b.schedule.lanes;
    if (columnsPerBlock > columns)
      inner.push_back(ScheduleBuilder::loop(LoopKind::Seq, n, columns));
    if (m >= 0 && rowsPerBlock > tile.rows)
      inner.push_back(ScheduleBuilder::loop(LoopKind::Seq, m, tile.rows));
    std::vector<LoopNode> reduce;
    for (AxisId r : reduced)
      reduce.push_back(ScheduleBuilder::loop(LoopKind::Seq, r, 1));
    std::vector<TreeNode> steps = {
        b.overTile(m, n, ScheduleBuilder::leaf(LeafKind::Init, view.first)),
        ScheduleBuilder::nest(
            reduce, {b.overTile(m, n, ScheduleBuilder::leaf(LeafKind::Compute, view.first))}),
        b.overTile(m, n, b.finishLeaf())};
    if (inner.empty())
      body.insert(body.end(), steps.begin(), steps.end());
    else
      body.push_back(ScheduleBuilder::nest(inner, steps));
    b.schedule.tree = {ScheduleBuilder::nest(around, body)};
    if (packs && !packed)
      return std::nullopt;
    return b.schedule;
  }

private:
  /// Reduction loops in an order that walks the broadcast operand contiguously inside.
  void orderReduction() {
    std::vector<std::pair<int64_t, size_t>> order;
    for (size_t g = 0; g < view.reduction.size(); ++g) {
      int64_t stride = INT64_MAX;
      for (const ReadInfo &read : view.reads)
        if (!read.dependsOn(view.spatial[roles.lane]))
          stride = std::min(stride, read.stride(view.reduction[g]).value_or(INT64_MAX - 1));
      order.push_back({stride, g});
    }
    std::ranges::stable_sort(order, [](auto &a, auto &b) { return a.first > b.first; });
    for (const auto &[stride, g] : order)
      reduced.push_back(b.addReduction("k" + std::to_string(g), {view.reduction[g]}));
  }

  int64_t reductionSize() const {
    int64_t size = 1;
    for (const auto &group : view.reduction)
      size *= view.opt(group);
    return size;
  }

  void chooseBlocks() {
    int64_t columns = tile.vectors * b.schedule.lanes;
    int64_t rowBytes = 0;
    for (const ReadInfo &read : view.reads)
      rowBytes = std::max(rowBytes, reductionSize() * read.elementBytes);
    constexpr int64_t kOperandBytes = 256 << 10;
    columnsPerBlock = columns;
    while (!packs && columnsPerBlock * 2 * rowBytes <= kOperandBytes / 2 &&
           columnsPerBlock * 2 <= roundUp(view.opt(view.spatial[roles.lane]), columns))
      columnsPerBlock *= 2;
    if (m < 0)
      return;
    while (columnsPerBlock >= 2 * std::max(columns, kPanel) && columnsShareNothing())
      columnsPerBlock /= 2;
    int64_t rows = view.opt(view.spatial[roles.row]);
    int64_t fit =
        std::max<int64_t>(1, kOperandBytes * 2 / std::max<int64_t>(1, rowBytes) / tile.rows) *
        tile.rows;
    int64_t parts = (rows + fit - 1) / fit; // of equal size
    rowsPerBlock = roundUp((rows + parts - 1) / parts, tile.rows);
    // Enough blocks that several cores have work, as long as a block keeps a few register tiles.
    int64_t others = 1;
    for (int g : roles.blocks)
      others *= view.opt(view.spatial[g]);
    auto blocks = [&] {
      return others * ((rows + rowsPerBlock - 1) / rowsPerBlock) *
             ((view.opt(view.spatial[roles.lane]) + columnsPerBlock - 1) / columnsPerBlock);
    };
    while (blocks() < 16 && columnsPerBlock > columns)
      columnsPerBlock = std::max(columns, roundUp(columnsPerBlock / 2, columns));
    while (blocks() < 8 && rowsPerBlock > 2 * tile.rows)
      rowsPerBlock = roundUp(rowsPerBlock / 2, tile.rows);
    enlargeBlocks(blocks());
    shareHalos(blocks());
  }

  /// Handing out a block costs as much as some thousand fmas: small blocks take several steps of the innermost outer
  /// axis, as long as all cores keep work.
  void enlargeBlocks(int64_t blocks) {
    constexpr int64_t kFmasPerBlock = 1 << 16;
    if (roles.blocks.empty())
      return;
    int64_t extent = view.opt(view.spatial[roles.blocks.back()]);
    int64_t work = rowsPerBlock * columnsPerBlock * reductionSize();
    while (lastBlockStep * 2 <= extent && work * lastBlockStep < kFmasPerBlock &&
           blocks / lastBlockStep > 32)
      lastBlockStep *= 2;
  }

  /// Columns that share nothing of a box have boxes of their own, which a cache nearby holds.
  bool columnsShareNothing() const {
    const int64_t all = boxes(columnsPerBlock, 1).elements;
    return all > 0 && 2 * boxes(columnsPerBlock / 2, 1).elements <= all;
  }

  /// Windows of neighbouring blocks overlap, and each block copies what lies under its own: while copies are many
  /// beside products, and fewer in larger blocks, these take several steps of the innermost outer axis. Depthwise 7x7
  /// of 96 channels took 1.6 times as long with seven rows copied for each row of results.
  void shareHalos(int64_t blocks) {
    constexpr int64_t kProductsOfCopy = 32;
    if (roles.blocks.empty())
      return;
    const int64_t extent = view.opt(view.spatial[roles.blocks.back()]);
    const int64_t products = rowsPerBlock * columnsPerBlock * reductionSize();
    int64_t step = lastBlockStep;
    while (step * 2 <= extent && blocks / step > 32) {
      const Boxes now = boxes(columnsPerBlock, step), larger = boxes(columnsPerBlock, step * 2);
      if (now.elements * kProductsOfCopy < products * step ||
          larger.elements * 5 > now.elements * 9 ||
          larger.bytes > view.target->sharedBytesPerBlock / 2)
        break;
      step *= 2;
    }
    if (step > lastBlockStep) {
      const int64_t parts = (extent + step - 1) / step; // of equal size
      lastBlockStep = (extent + parts - 1) / parts;
    }
  }

  /// Operands that are brought closer: constants repacked at build time, transposed or padded ones per block.
  std::vector<TreeNode> stages() {
    std::vector<TreeNode> out;
    const std::vector<int> &lane = view.spatial[roles.lane];
    for (const ReadInfo &read : view.reads) {
      std::optional<int64_t> laneStride = read.stride(lane);
      if (padded(read)) {
        stageIndices(read, out);
      } else if (read.dependsOn(lane)) {
        if (read.constant && read.access && !read.guarded && dependsOnReduction(read))
          packConstant(read);
        else if ((!laneStride || (*laneStride != 0 && *laneStride != 1)) &&
                 dependsOnReduction(read))
          stageOver(read, out);
        else if (packs && dependsOnReduction(read))
          packed |= stageOver(read, out);
      }
    }
    return out;
  }

  /// Whether a block copies what it reads, with the padding written out.
  bool padded(const ReadInfo &read) const {
    return !read.constant && read.guarded &&
           paddingBounds(view.equation(), read.node, view.program->expr);
  }

  bool dependsOnReduction(const ReadInfo &read) const {
    return std::ranges::any_of(view.reduction,
                               [&](const auto &group) { return read.dependsOn(group); });
  }

  void packConstant(const ReadInfo &read) {
    Operand operand;
    operand.name = "w" + std::to_string(b.schedule.operands.size());
    operand.equation = view.first;
    operand.read = read.ordinal;
    operand.level = MemLevel::Global;
    for (size_t i = 0; i < blockAxes.size(); ++i)
      if (read.dependsOn(view.spatial[roles.blocks[i]]))
        operand.digits.push_back({blockAxes[i]});
    operand.digits.push_back({n, -1, kPanel, 0});
    for (AxisId r : reduced)
      if (read.dependsOn(b.positionsOf(r)))
        operand.digits.push_back({r});
    operand.digits.push_back({n, -1, 1, kPanel});
    b.schedule.operands.push_back(std::move(operand));
  }

  bool fits(const ReadInfo &read, const std::vector<int64_t> &extents) {
    int64_t bytes = read.elementBytes;
    for (int64_t x : extents)
      bytes *= x;
    stagedBytes += bytes;
    if (stagedBytes <= view.target->sharedBytesPerBlock)
      return true;
    stagedBytes -= bytes;
    return false;
  }

  /// A vector operand that is not contiguous along the lanes: [i, m, k..., n] tiles of a block, as far as the operand
  /// depends on them and the block holds more than one value of them. False where they have no bound or no room.
  bool stageOver(const ReadInfo &read, std::vector<TreeNode> &out) {
    std::vector<LayoutDigit> digits;
    std::vector<int64_t> extents;
    if (lastBlockStep > 1 && read.dependsOn(view.spatial[roles.blocks.back()])) {
      digits.push_back({blockAxes.back()});
      extents.push_back(lastBlockStep);
    }
    if (m >= 0 && read.dependsOn(view.spatial[roles.row])) {
      digits.push_back({m});
      extents.push_back(rowsPerBlock);
    }
    for (AxisId r : reduced) {
      if (!read.dependsOn(b.positionsOf(r)))
        continue;
      const std::optional<int64_t> most = view.program->mostOf(b.schedule.axes[r].extent);
      if (!most)
        return false;
      digits.push_back({r});
      extents.push_back(*most);
    }
    digits.push_back({n});
    extents.push_back(columnsPerBlock);
    if (!fits(read, extents))
      return false;
    out.push_back(LeafNode{.kind = LeafKind::Stage, .operand = b.stage(read, digits, 0)});
    return true;
  }

  /// A padded operand: the box of the tensor that a block touches, with the padding written out.
  void stageIndices(const ReadInfo &read, std::vector<TreeNode> &out) {
    const std::optional<std::vector<int64_t>> extents = boxOf(read, columnsPerBlock, lastBlockStep);
    if (!extents || !fits(read, *extents))
      return;
    std::vector<LayoutDigit> digits;
    for (size_t d = 0; d < extents->size(); ++d)
      digits.push_back({{}, static_cast<int>(d)});
    out.push_back(LeafNode{.kind = LeafKind::Stage, .operand = b.stage(read, digits, 0)});
  }

  /// Extents of that box, for a block of so many columns and steps; nullopt where they are not known.
  std::optional<std::vector<int64_t>> boxOf(const ReadInfo &read, int64_t columns,
                                            int64_t step) const {
    const Equation &e = view.equation();
    std::vector<int64_t> extents;
    for (NodeId index : indexOperands(e.body[read.node])) {
      std::optional<AffineForm> form = affineForm(e.body, index, static_cast<int>(e.axes.size()));
      if (!form)
        return std::nullopt;
      int64_t span = 1;
      for (size_t p = 0; p < e.axes.size(); ++p) {
        if (form->coefficients[p].isConst(0) || e.axes[p].extent.isConst(1))
          continue;
        std::optional<int64_t> below = elementsBelow(static_cast<int>(p), columns, step);
        if (!form->coefficients[p].isConst() || !below)
          return std::nullopt;
        span += std::abs(form->coefficients[p].constValue()) * (*below - 1);
      }
      extents.push_back(span);
    }
    return extents;
  }

  struct Boxes {
    int64_t elements = 0, bytes = 0;
  };
  /// The boxes of all padded operands for which they are known.
  Boxes boxes(int64_t columns, int64_t step) const {
    Boxes all;
    for (const ReadInfo &read : view.reads)
      if (const auto extents = padded(read) ? boxOf(read, columns, step) : std::nullopt) {
        const int64_t elements = std::accumulate(extents->begin(), extents->end(), int64_t{1},
                                                 std::multiplies<int64_t>());
        all.elements += elements;
        all.bytes += elements * read.elementBytes;
      }
    return all;
  }

  /// Elements of an axis position that a block of so many columns and steps covers, at most; nullopt when they have no
  /// bound or are part of a merged group.
  std::optional<int64_t> elementsBelow(int position, int64_t columns, int64_t step) const {
    for (int g : roles.blocks)
      if (view.spatial[g] == std::vector<int>{position})
        return g == roles.blocks.back() ? step : 1;
    if (roles.row >= 0 && view.spatial[roles.row] == std::vector<int>{position})
      return rowsPerBlock;
    if (view.spatial[roles.lane] == std::vector<int>{position})
      return columns;
    for (const auto &group : view.reduction)
      if (group == std::vector<int>{position})
        return view.program->mostOf(view.extent(group));
    return std::nullopt;
  }

  const View &view;
  RegisterTile tile;
  Roles roles;
  const bool packs;
  bool packed = false;
  ScheduleBuilder b;
  std::vector<AxisId> blockAxes, reduced;
  AxisId m, n;
  int64_t rowsPerBlock = 1, columnsPerBlock = 1, lastBlockStep = 1, stagedBytes = 0;
};

} // namespace

/// A matrix that no layout can be chosen for and whose elements are used once each, in a row along the summed axis:
/// lanes along that axis read it as it lies, lanes along the output would gather. Not for batches of matrices: the keys
/// of GPT-2's attention took twice as long so.
static bool sumsAlongMemory(const View &view) {
  return view.spatial.size() == 1 && std::ranges::any_of(view.reads, [&](const ReadInfo &r) {
           return !r.constant && r.stride(view.reduction.back()) == 1 &&
                  view.opt(view.spatial[0]) > 1 && r.dependsOn(view.spatial[0]);
         });
}

/// Whether register tiles walk down a matrix one after the other that no layout can be chosen for: neighbouring
/// elements of the sum lie in a line of their own. 1024 x 1024 times 1024 x 1024 took 2.4 times as long (AVX2 and
/// AVX-512) as with copied panels, whose rows crowd into few sets of the caches; 768 x 768 times 768 x 768 as long.
static bool walksColumns(const View &view, const Roles &roles, RegisterTile tile) {
  return roles.row >= 0 && view.opt(view.spatial[roles.row]) > 2 * tile.rows &&
         std::ranges::any_of(view.reads, [&](const ReadInfo &r) {
           return !r.constant && !r.guarded && r.stride(view.spatial[roles.lane]) == 1 &&
                  r.dependsOn(view.reduction.back());
         });
}

Candidates cpuContractionCandidates(const View &view) {
  Candidates out;
  if (view.spatial.empty())
    return reductionCandidates(view);
  Roles roles = rolesOf(view);
  int64_t rows = roles.row >= 0 ? view.opt(view.spatial[roles.row]) : 1;
  int64_t columns = view.opt(view.spatial[roles.lane]);
  if ((rows == 1 || columns == 1) && sumsAlongMemory(view))
    return reductionCandidates(view);
  // Without rows only taps use again what a block copies to write its padding out: depthwise convolutions with strides
  // of 2 that read the image itself take 0.4 to 0.7 of the time.
  if (roles.row < 0)
    if (Candidates windows = windowCandidates(view); !windows.empty())
      return windows;
  constexpr size_t kTiles = 3;
  for (RegisterTile tile : registerTiles(view, roles) | std::views::take(kTiles)) {
    out.push_back(*CpuContraction(view, tile, roles).build());
    if (walksColumns(view, roles, tile))
      if (std::optional<Schedule> packed = CpuContraction(view, tile, roles, true).build())
        out.push_back(std::move(*packed));
  }
  if (out.size() < 2)
    for (Schedule &schedule : reductionCandidates(view))
      out.push_back(std::move(schedule));
  return out;
}

} // namespace fusec::tiling
