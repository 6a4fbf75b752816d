// A part of the loop tree whose data fits the cache brings it in once. Of one that does not, each iteration brings in
// what its children need, but for what the next iteration uses again and the cache can keep. C[m,n] += A[m,k] B[k,n]:
//
//   m:64 {            B does not fit: all of it again for every 64 rows
//     n:16 {          A's 64 rows fit beside a panel of B: they stay for all panels
//       k:1 { .. } } }
//
// What lies at distances that lead to few sets of a cache may not fit although the cache has room: it is brought in by
// each iteration of the loops around, the rest as before.
#include "Tiling/counts/CacheMisses.h"

#include "Cost/Cost.h"
#include "Expr/transforms/Profile.h"
#include "Support/OptValues.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/schedule/StagedTile.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <numeric>
#include <ranges>
#include <set>
#include <span>

namespace fusec::tiling {

namespace {

/// Something that statements touch: a tensor, or the buffer of a staged operand (numbered from -2 downwards).
using Place = int;

/// The stride of an equation's axis, as part of one of the schedule's, which may fuse several.
struct Stride {
  int64_t elements; // between neighbours
  AxisId axis;
  int64_t inner; // points of the axes fused behind it
  int64_t
      extent; // its own points, or a digit's; of the first one, where it is whole, all of the fused axis's
  auto operator<=>(const Stride &) const = default;
};

struct Touch {
  Place place;
  double elementBytes;
  uint64_t axes;          // of the schedule that its address depends on
  AxisId contiguous{};    // without strides: axis along which it lies without gaps
  bool isWritten = false; // by the statement
  /// The strides of its address, ascending; empty if that is no sum, or the layout names axes of its own.
  std::vector<Stride> strides = {};
};

/// A tensor's own, or that of the one whose place it takes.
Place placeOf(TensorId t, const OnChipStorage &storage) {
  const auto buffer = storage.buffers.find(t);
  return buffer == storage.buffers.end() ? t : buffer->second;
}

/// Adds a digit of an axis to the strides of an equation's address.
void addTerm(Touch &touch, const BoundSchedule &bound, int equation, const DigitTerm &term) {
  const AxisId axis = bound.axisOf(equation, term.axis);
  const int64_t elements = std::abs(bound.valueOf(term.stride));
  if (axis < 0 || elements == 0)
    return;
  const std::vector<int> &positions = bound.use(axis, equation)->positions;
  auto pointsOf = [&](int position) {
    return std::max<int64_t>(1, bound.valueOf(bound.equation(equation).axes[position].extent));
  };
  int64_t inner = term.divisor;
  for (size_t p = positions.size(); positions[--p] != term.axis;)
    inner *= pointsOf(positions[p]);
  const int64_t points = (pointsOf(term.axis) + term.divisor - 1) / term.divisor;
  touch.strides.push_back(
      {elements, axis, inner, term.modulus > 0 ? std::min(term.modulus, points) : points});
}

class Cache {
public:
  Cache(const BoundSchedule &bound, const OnChipStorage &storage, const Target &target)
      : bound(bound), schedule(bound.schedule), storage(storage), target(target),
        lineBytes(double(target.core.lineBytes)), scan(bound.scan()) {
    assert(schedule.axes.size() <= kMostAxes);
    for (const ScheduleAxis &axis : schedule.axes)
      tiles.push_back(bound.valueOf(axis.extent));
  }

  double footprint() const { return sum(touched(schedule.tree)); }
  /// Bytes that miss in a cache of that capacity, whose sets hold so many lines; 0: any number.
  MissedBytes missed(int64_t bytes, int ofSet) {
    capacity = double(bytes);
    ways = ofSet;
    const Fetched fetched = ofChildren(schedule.tree);
    MissedBytes missed{sum(fetched)};
    if (!awaitedPlaces)
      awaitedPlaces = placesAwaited();
    for (const auto &[place, own] : fetched)
      missed.awaited += awaitedPlaces->contains(place) ? own : 0;
    return missed;
  }

private:
  struct Amount {
    double bytes = 0;
    uint64_t axes = 0;
    uint64_t sameLine = ~uint64_t{0}; // axes along which neighbours lie in a line
    bool isWritten = false;
    bool isCrowded = false; // into few sets, which do not hold its lines
  };
  using Bytes = std::map<Place, Amount>;
  using Fetched = std::map<Place, double>;

  static double sum(const Bytes &bytes) {
    double all = 0;
    for (const auto &[place, amount] : bytes)
      all += amount.bytes;
    return all;
  }

  static double sum(const Fetched &fetched) {
    double all = 0;
    for (const auto &[place, bytes] : fetched)
      all += bytes;
    return all;
  }

  /// What contractions read faster than it comes, and what is copied for them.
  std::set<Place> placesAwaited() const {
    std::set<Place> places;
    for (int e = 0; e < bound.numEquations(); ++e)
      if (isContraction(bound.equation(e)))
        for (int r = 0; r < static_cast<int>(bound.facts(e).reads.size()); ++r) {
          if (comesInTime(e, r))
            continue;
          places.insert(placeOf(bound.facts(e).tensors[r], storage));
          if (bound.operand(e, r))
            places.insert(
                ofOperand(OperandIndex(bound.operand(e, r) - schedule.operands.data())).place);
        }
    return places;
  }

  /// Whether a register tile asks for a factor more slowly than a core gets it from beyond its own caches: what 48
  /// columns share, as a rule, but not what 8 rows do. All of what it asks for faster counts, as it was measured.
  bool comesInTime(int equation, int read) const {
    const Loops *loops = bound.loopsOf(equation);
    if (!loops)
      return false;
    const EquationFacts &facts = bound.facts(equation);
    const uint64_t axes = axesOf(equation, facts.axes[facts.reads[static_cast<size_t>(read)]]);
    double uses = 1; // of an element by one tile
    for (const LoopNode *loop : *loops | std::views::reverse) {
      if (loop->kind != LoopKind::Unroll && loop->kind != LoopKind::Lane)
        break;
      if (!(axes >> loop->axis.value() & 1))
        uses *= bound.optTrip(*loop);
    }
    // Vectors of wider elements hold fewer of them: bytes a second are those of f32.
    const double perSec = sizeof(float) * target.flopsPerSec / 2 / uses;
    return perSec <= target.core.rereadBytesPerSec;
  }

  uint64_t axesOf(int equation, uint64_t positions) const {
    uint64_t axes = 0;
    for (size_t a = 0; a < schedule.axes.size(); ++a)
      if (const AxisUse *use = schedule.axes[a].in(equation); use && use->meets(positions))
        axes |= uint64_t{1} << a;
    return axes;
  }

  const std::vector<Touch> &touches(const LeafNode &leaf) const {
    auto [known, isNew] = ofLeaf.try_emplace(&leaf);
    if (!isNew)
      return known->second;
    std::vector<Touch> &out = known->second;
    if (leaf.kind == LeafKind::Stage) {
      const Operand &operand = schedule.operands[leaf.operand];
      out.push_back(ofRead(operand.equation, operand.read));
      out.push_back(ofOperand(leaf.operand));
      out.back().isWritten = true;
      return out;
    }
    if (leaf.kind == LeafKind::Carry) {
      for (const ScanCarry &carry : scan->carries)
        out.push_back({carry.previous, double(bound.program.bytesOf(carry.previous)), 0});
      return out;
    }
    if (leaf.kind != LeafKind::Compute && leaf.kind != LeafKind::Store)
      return out;
    const Equation &e = bound.equation(leaf.equation);
    if (leaf.kind == LeafKind::Compute) {
      const std::vector<TensorId> &tensors = bound.facts(leaf.equation).tensors;
      for (size_t r = 0; r < tensors.size(); ++r) {
        if (const Operand *operand = bound.operand(leaf.equation, static_cast<int>(r)))
          out.push_back(ofOperand(OperandIndex(operand - schedule.operands.data())));
        else if (bound.level(tensors[r]) != MemLevel::Register)
          out.push_back(ofRead(leaf.equation, static_cast<int>(r)));
      }
      for (TensorId t : e.opaqueInputs)
        out.push_back({t, double(bound.program.bytesOf(t)), axesOf(leaf.equation, ~uint64_t{0})});
    }
    if (leaf.kind == LeafKind::Store || !bound.facts(leaf.equation).reduces())
      for (TensorId t : e.outputs)
        if (bound.level(t) != MemLevel::Register ||
            bound.program.tensor(t).kind == TensorKind::Output)
          out.push_back(ofResult(leaf.equation, t));
    return out;
  }

  /// `stride`: of the equation's axes, from the first on.
  void addStrides(Touch &touch, int equation, const std::vector<DimExpr> &stride) const {
    for (size_t a = 0; a < schedule.axes.size(); ++a)
      if (touch.axes >> a & 1)
        addStrides(touch, AxisId(a), equation, stride);
    std::ranges::sort(touch.strides);
  }

  void addStrides(Touch &touch, AxisId axis, int equation,
                  const std::vector<DimExpr> &stride) const {
    const std::vector<int> &positions = schedule.axes[axis].in(equation)->positions;
    int64_t inner = 1;
    for (size_t p = positions.size(); p-- > 0;) {
      const int64_t own = bound.valueOf(bound.equation(equation).axes[positions[p]].extent);
      const int64_t extent = p == 0 ? std::numeric_limits<int64_t>::max() : own;
      if (const int64_t elements = std::abs(bound.valueOf(stride[positions[p]]))) {
        Stride *behind = touch.strides.empty() ? nullptr : &touch.strides.back();
        // Axes that lie in memory as they are fused are one.
        if (behind && behind->axis == axis && elements == behind->elements * behind->extent &&
            inner == behind->inner * behind->extent)
          behind->extent = p == 0 ? extent : own * behind->extent;
        else
          touch.strides.push_back({elements, axis, inner, extent});
      }
      inner *= std::max<int64_t>(1, own);
    }
  }

  Touch ofResult(int equation, TensorId t) const {
    const Equation &e = bound.equation(equation);
    Touch touch{placeOf(t, storage), double(bound.program.bytesOf(t)),
                axesOf(equation, (uint64_t{1} << e.numSpatial) - 1),
                bound.axisOf(equation, e.numSpatial - 1), true};
    if (bound.facts(equation).isPlain() || bound.facts(equation).reduces())
      addStrides(touch, equation, stridesOf(bound.program.tensor(t).shape));
    return touch;
  }

  /// `read`: among those of the equation.
  Touch ofRead(int equation, int read) const {
    const EquationFacts &reader = bound.facts(equation);
    const NodeId node = reader.reads[read];
    const TensorId t = reader.tensors[read];
    Touch touch{placeOf(t, storage), double(bound.program.bytesOf(t)),
                axesOf(equation, reader.axes[node])};
    if (const std::optional<FlatAccess> &access = reader.accesses[read]) {
      uint64_t positions = 0;
      for (size_t p = 0; p < access->stride.size(); ++p)
        if (!access->stride[p].isConst(0))
          positions |= uint64_t{1} << p;
      touch.axes = axesOf(equation, positions);
      addStrides(touch, equation, access->stride);
    } else if (const auto terms = digitTerms(reader.equation, node, bound.program.expr)) {
      for (const DigitTerm &term : *terms)
        addTerm(touch, bound, equation, term);
      std::ranges::sort(touch.strides);
    } else {
      touch.contiguous = alongRow(equation, node);
    }
    return touch;
  }

  /// The schedule's axis along which a read goes in order in rows that divisions or data find: an axis of the equation
  /// that is not fused with others, and moves the last index alone.
  AxisId alongRow(int equation, NodeId read) const {
    const EquationFacts &reader = bound.facts(equation);
    const Body &body = reader.equation.body;
    const std::vector<NodeId> indices = indexOperands(body[read]);
    const auto numAxes = static_cast<int>(reader.equation.axes.size());
    const std::optional<AffineForm> form =
        indices.empty() ? std::nullopt : affineForm(body, indices.back(), numAxes);
    for (int position = 0; form && position < numAxes; ++position) {
      const AxisId axis = bound.axisOf(equation, position);
      const bool movesOthers = std::any_of(indices.begin(), indices.end() - 1, [&](NodeId index) {
        return reader.axes[index] >> position & 1;
      });
      if (axis >= 0 && form->coefficients[static_cast<size_t>(position)].isConst(1) &&
          !movesOthers && bound.use(axis, equation)->positions.size() == 1)
        return axis;
    }
    return {};
  }

  Touch ofOperand(OperandIndex number) const {
    const Operand &operand = schedule.operands[number];
    Touch touch = ofRead(operand.equation, operand.read);
    if (operand.level == MemLevel::Shared)
      touch.place = -2 - number.value();
    if (operand.digits.back().index < 0) {
      touch.contiguous = operand.digits.back().axis;
      touch.strides.clear();
    }
    return touch;
  }

  /// Taps of a window share what they read: an axis whose stride is within what the others before it cover makes that
  /// longer.
  double alongStrides(const Touch &touch) const {
    runs.clear();
    for (const Stride &along : touch.strides) {
      const int64_t stride = along.elements;
      const int64_t tile =
          std::min(along.extent, (tiles[along.axis] + along.inner - 1) / along.inner);
      auto covers = [&](const auto &run) {
        return stride % run.first == 0 && stride / run.first <= run.second;
      };
      if (tile == 1)
        continue;
      if (auto run = std::find_if(runs.rbegin(), runs.rend(), covers); run != runs.rend())
        run->second += stride / run->first * (tile - 1);
      else
        runs.push_back({stride, tile});
    }
    double bytes = touch.elementBytes;
    bool inOne = true; // what lies no further apart than that and than lines
    for (const auto &[stride, count] : runs) {
      const double apart = double(stride) * touch.elementBytes;
      inOne = inOne && (apart < lineBytes || apart <= bytes);
      if (inOne)
        bytes += double(count - 1) * apart;
      else
        bytes = std::max(bytes, lineBytes) * double(count); // brings its line along
    }
    return std::max(bytes, lineBytes);
  }

  /// The axes whose next point is less than a line away.
  uint64_t alongLines(const Touch &touch) const {
    uint64_t axes = 0;
    if (touch.contiguous >= 0)
      axes |= uint64_t{1} << touch.contiguous.value();
    for (const Stride &stride : touch.strides)
      if (stride.inner == 1 && double(stride.elements) * touch.elementBytes < lineBytes)
        axes |= uint64_t{1} << stride.axis.value();
    return axes;
  }

  /// Whether the sets that their distance leads to have no room for the lines that are touched. After bytesOf(touch).
  bool isCrowded(const Touch &touch) const {
    // A block's own buffers hold a tile, whose lines lie side by side.
    if (ways == 0 || touch.strides.empty() || touch.place < 0 ||
        storage.edges.contains(touch.place))
      return false;
    const auto wayBytes = static_cast<int64_t>(capacity) / ways;
    return std::ranges::any_of(runs, [&](const auto &run) {
      const auto apart = static_cast<int64_t>(double(run.first) * touch.elementBytes);
      const int64_t setBytes = std::max(std::gcd(apart, wayBytes), static_cast<int64_t>(lineBytes));
      return apart >= setBytes && run.second > ways * (wayBytes / setBytes);
    });
  }

  double alongAxes(const Touch &touch) const {
    double elements = 1, run = 1;
    for (size_t a = 0; a < schedule.axes.size(); ++a) {
      if (!(touch.axes >> a & 1))
        continue;
      if (AxisId(a) == touch.contiguous)
        run = double(tiles[a]);
      else
        elements *= double(tiles[a]);
    }
    return elements * std::max(run * touch.elementBytes, lineBytes);
  }

  /// Up to the whole of the tensor.
  double bytesOf(const Touch &touch) const {
    const double bytes = touch.strides.empty() ? alongAxes(touch) : alongStrides(touch);
    // A block's own buffers are used again and again.
    if (auto staged = storage.operands.find(OperandIndex(-2 - touch.place)); touch.place < 0)
      return staged == storage.operands.end() ? 0 : std::min(bytes, staged->second);
    if (auto edge = storage.edges.find(touch.place); edge != storage.edges.end())
      return std::min(bytes, edge->second);
    return std::min(bytes,
                    double(bound.valueOf(numElements(bound.program.tensor(touch.place).shape))) *
                        touch.elementBytes);
  }

  void collect(std::span<const TreeNode> nodes, Bytes &bytes) const {
    for (const TreeNode &node : nodes) {
      const LeafNode *leaf = node.leaf();
      if (!leaf) {
        collect(node.children(), bytes);
        continue;
      }
      for (const Touch &touch : touches(*leaf)) {
        Amount &amount = bytes[touch.place];
        amount.bytes = std::max(amount.bytes, bytesOf(touch));
        amount.axes |= touch.axes;
        amount.sameLine &= alongLines(touch);
        amount.isCrowded = amount.isCrowded || isCrowded(touch);
        amount.isWritten = amount.isWritten || touch.isWritten;
      }
    }
  }

  /// Bytes that one execution of these statements touches; the loops outside have set the tiles.
  Bytes touched(std::span<const TreeNode> nodes) const {
    Bytes bytes;
    collect(nodes, bytes);
    return bytes;
  }

  Fetched ofChildren(std::span<const TreeNode> nodes) {
    const Bytes all = touched(nodes);
    const bool fits = sum(all) <= capacity;
    const bool hasLoops =
        std::ranges::any_of(nodes, [](const TreeNode &node) { return node.loop(); });
    Fetched fetched;
    bool apart = false;
    for (const auto &[place, amount] : all) {
      const bool once = !hasLoops || (fits && !amount.isCrowded);
      fetched[place] = once ? amount.bytes : 0;
      apart = apart || !once;
    }
    for (size_t n = 0; apart && n < nodes.size(); ++n) {
      if (const LoopNode *loop = nodes[n].loop()) {
        for (const auto &[place, bytes] : ofLoop(*loop))
          if (!fits || all.at(place).isCrowded)
            fetched[place] += bytes;
      } else {
        for (const auto &[place, amount] : touched(nodes.subspan(n, 1)))
          if (!fits || all.at(place).isCrowded)
            fetched[place] += amount.bytes;
      }
    }
    return fetched;
  }

  /// What an iteration stages, or writes of an inner value where it fills the buffer, takes the place of what the one
  /// before has written. Inside a buffer's scope iterations write parts of it side by side.
  bool takesPlace(Place place, const Amount &amount) const {
    auto edge = storage.edges.find(place);
    return amount.isWritten &&
           (place < 0 || (edge != storage.edges.end() && amount.bytes >= edge->second));
  }

  Fetched ofLoop(const LoopNode &loop) {
    const bool steps = loop.axis == kStepAxis;
    const int64_t before = steps ? bound.valueOf(scan->steps) : tiles[loop.axis];
    const double trip = double((before + loop.step - 1) / loop.step);
    // Blocks may run on different cores.
    const bool inTurn = !steps && loop.kind != LoopKind::Block;
    const Bytes inAll = inTurn ? touched(loop.children) : Bytes();
    if (!steps)
      tiles[loop.axis] = std::min(before, loop.step);
    const Bytes each = touched(loop.children);
    const bool fits = sum(each) <= capacity;
    Fetched fetched;
    bool apart = false;
    for (const auto &[place, amount] : each) {
      if (!fits || amount.isCrowded) {
        apart = true;
        continue;
      }
      const bool stays =
          steps || !(amount.axes >> loop.axis.value() & 1) || takesPlace(place, amount);
      double all = trip * amount.bytes;
      // A turn finds the rest of the lines that the one before has read.
      if (inTurn && amount.sameLine >> loop.axis.value() & 1)
        all = std::min(all, inAll.at(place).bytes);
      fetched[place] = stays ? amount.bytes : all;
    }
    if (apart)
      for (const auto &[place, bytes] : ofChildren(loop.children))
        if (!fits || each.at(place).isCrowded)
          fetched[place] = trip * bytes;
    if (!steps)
      tiles[loop.axis] = before;
    return fetched;
  }

  const BoundSchedule &bound;
  const Schedule &schedule;
  const OnChipStorage &storage;
  const Target &target;
  double capacity = 0;
  int ways = 0;
  const double lineBytes;
  const Equation *scan;
  std::optional<std::set<Place>> awaitedPlaces;
  std::vector<int64_t> tiles; // elements of each axis below the loops around
  mutable std::map<const LeafNode *, std::vector<Touch>> ofLeaf;
  /// Distance and number of the addresses in one call of alongStrides; a member so that its memory is reused.
  mutable std::vector<std::pair<int64_t, int64_t>> runs;
};

} // namespace

std::vector<MissedBytes> missedBytes(const BoundSchedule &bound, const OnChipStorage &storage,
                                     const Target &target, double blocks) {
  Cache model(bound, storage, target);
  const double footprint = model.footprint();
  std::vector<MissedBytes> missed;
  for (const MemoryLevel &cache : std::span(target.memory).first(target.memory.size() - 1)) {
    const double sharers = cache.ofDevice ? 1 : std::clamp(blocks, 1.0, double(target.cores));
    const double held = cost::cacheShare(footprint / sharers, double(cache.capacityBytes));
    const MissedBytes cold =
        held < 1 ? model.missed(cache.capacityBytes, cache.ways) : MissedBytes();
    missed.push_back({(1 - held) * cold.all, (1 - held) * cold.awaited});
  }
  return missed;
}

double stagedBytes(const BoundSchedule &bound, const Traffic &traffic) {
  std::map<TensorId, bool> only;
  for (int e = 0; e < bound.numEquations(); ++e)
    for (int r = 0; r < static_cast<int>(bound.facts(e).reads.size()); ++r) {
      const TensorId t = bound.program.tensorOf({e, 0, r});
      const Operand *operand = bound.operand(e, r);
      const bool isArgument = bound.program.tensor(t).kind == TensorKind::Input;
      bool &staged = only.try_emplace(t, isArgument).first->second;
      staged = staged && operand && operand->level == MemLevel::Shared;
    }
  double bytes = 0;
  for (auto [t, staged] : only)
    if (staged)
      bytes += traffic.readOf[t];
  return bytes;
}

} // namespace fusec::tiling
