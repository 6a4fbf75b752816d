// Sectors of an affine access. Lanes at distance d bytes that begin at address a touch
//
//   floor((a + (n-1) d + size - 1) / 32) - floor(a / 32) + 1    sectors for d <= 32, n of them for a larger d,
//
// which depends on a mod 32 alone. Each axis that is not the lanes' adds its multiple of a stride to a: the shares of
// the 32 residues after all of them are found axis by axis.
#include "Tiling/counts/SectorCounter.h"

#include "Tiling/schedule/PointEvaluator.h"

#include <algorithm>
#include <cmath>

namespace fusec::tiling {

namespace {

int64_t modulo(int64_t a, int64_t b) { return (a % b + b) % b; }

double sectorsOf(int64_t residue, int64_t distance, int64_t lanes, int64_t bytes) {
  distance = std::abs(distance);
  if (distance == 0 || lanes == 1)
    return 1;
  if (distance > kSectorBytes)
    return double(lanes);
  return double((residue + (lanes - 1) * distance + bytes - 1) / kSectorBytes + 1);
}

/// Shares of the elements that `at` gives for each number of the range.
template <typename At> Residues residuesOver(StepRange steps, Effort effort, const At &at) {
  const int64_t taken = std::min<int64_t>(steps.count, effort == Effort::Quick ? 64 : 4096);
  Residues shares{};
  for (int64_t i = 0; i < taken; ++i) { // a prime distance meets all residues
    const int64_t step = steps.first + (taken == steps.count ? i : i * 7919 % steps.count);
    shares[modulo(at(step), kSectorBytes)] += 1.0 / double(taken);
  }
  return shares;
}

} // namespace

double different(std::vector<int64_t> &sectors) {
  if (!std::ranges::is_sorted(sectors))
    std::ranges::sort(sectors);
  return double(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
}

double sampledPlace(int64_t sample, int64_t samples, double places) {
  const double share = double(sample) * 0.6180339887498949;
  return double(samples) == places ? double(sample)
                                   : std::floor((share - std::floor(share)) * places);
}

SectorCounter::SectorCounter(const AccessContext &context, int number, const LoopRanges &loops,
                             Bounds bounds)
    : context(context), bound(context.bound), schedule(bound.schedule), facts(bound.facts(number)),
      equation(facts.equation), ordinal(number), loops(loops), bounds(bounds) {
  for (const Axis &axis : equation.axes)
    extents.push_back(bound.valueOf(axis.extent));
}

/// The statement does not run beyond the axis' extent.
bool SectorCounter::stops(AxisId axis) const {
  const AxisUse *use = bound.use(axis, ordinal);
  return use && (bounds == Bounds::All || use->reduction ||
                 (bounds == Bounds::ReductionAndLanes && axis == loops.laneAxis()));
}

/// Times that it runs for an axis.
double SectorCounter::points(AxisId axis) const {
  const double all = loops.iterations(axis);
  return stops(axis) ? std::min(all, double(loops.extent(axis))) : all;
}

/// Times that the statement runs for each value of the lanes' axis.
double SectorCounter::others(bool writers) const {
  double product = loops.hasUnits() || writers ? 1 : schedule.units;
  for (const auto &[axis, count] : loops.iterations())
    if (!loops.hasLanes() || axis != loops.laneAxis())
      product *= points(axis);
  return product;
}

double SectorCounter::threads(bool writers) const {
  if (loops.hasLanes())
    return others(writers) * points(loops.laneAxis());
  return others(writers) * (writers || context.vectorLanes ? 1 : schedule.lanes);
}

/// Calls `each` with the equation's axes that the schedule's axis goes along, innermost first, and their values.
template <typename F> void SectorCounter::digitsOf(AxisId axis, int64_t value, F each) const {
  const AxisUse *use = bound.use(axis, ordinal);
  for (size_t i = use ? use->positions.size() : 0; i-- > 0;) {
    const int position = use->positions[i];
    // An axis may have no elements; nothing is read then.
    const int64_t extent = std::max<int64_t>(1, extents[position]);
    each(position, i > 0 ? value % extent : value);
    value /= extent;
  }
}

/// Elements between the axis' value 0 and `value`.
int64_t SectorCounter::offset(const std::vector<int64_t> &strides, AxisId axis,
                              int64_t value) const {
  int64_t sum = 0;
  digitsOf(axis, value, [&](int position, int64_t digit) { sum += strides[position] * digit; });
  return sum;
}

void SectorCounter::moveTo(Point &point, AxisId axis, int64_t value) const {
  if (axis == kStepAxis)
    point.step = loops.stepRange().first + value;
  else
    digitsOf(axis, value, [&](int position, int64_t digit) { point.axes[position] = digit; });
}

bool SectorCounter::isLinear(const std::vector<int64_t> &strides, AxisId axis) const {
  const AxisUse *use = bound.use(axis, ordinal);
  for (size_t i = 0; use && i + 1 < use->positions.size(); ++i) {
    const int outer = use->positions[i], inner = use->positions[i + 1];
    if (strides[outer] != strides[inner] * extents[inner])
      return false;
  }
  return true;
}

Address SectorCounter::addressOf(const FlatAccess &access, TensorId tensor,
                                 const ScanPlace &place) const {
  const int64_t row = bound.valueOf(numElements(bound.program.tensor(tensor).shape));
  Address address;
  address.constant = bound.valueOf(access.constant);
  std::vector<std::pair<NodeId, int64_t>> ofStep;
  std::vector<NodeId> roots;
  for (const FlatAccess::Rest &rest : access.rests)
    if (const int64_t stride = bound.valueOf(rest.stride); readsData(equation.body, {rest.value})) {
      address.beside.push_back(residuesOver({0, kSectorBytes}, context.effort,
                                            [&](int64_t any) { return any * stride; }));
    } else {
      ofStep.emplace_back(rest.value, stride);
      roots.push_back(rest.value);
    }
  if (!ofStep.empty() || place.rows > 1) {
    PointEvaluator values(equation.body, roots, 1, bound.program.symbols);
    const std::vector<int64_t> origin(equation.axes.size(), 0);
    address.beside.push_back(residuesOver(loops.stepRange(), context.effort, [&](int64_t step) {
      values.at(origin, step);
      int64_t sum = place.row(step) * row;
      for (const auto &[value, stride] : ofStep)
        sum += values[value] * stride;
      return sum;
    }));
  }
  std::vector<int64_t> strides;
  for (const DimExpr &stride : access.stride)
    strides.push_back(bound.valueOf(stride));
  address.isLinear = [this, strides](AxisId axis) { return isLinear(strides, axis); };
  address.offset = [this, strides = std::move(strides)](AxisId axis, int64_t value) {
    return offset(strides, axis, value);
  };
  return address;
}

Residues SectorCounter::residues(const Address &address, int64_t bytes,
                                 const TurnsTogether &together) const {
  Residues shares{};
  shares[modulo(address.constant * bytes, kSectorBytes)] = 1;
  auto add = [&](const Residues &more) {
    Residues sum{};
    for (int64_t a = 0; a < kSectorBytes; a += bytes)
      for (int64_t b = 0; b < kSectorBytes && shares[a] > 0; b += bytes)
        sum[(a + b) % kSectorBytes] += shares[a] * more[b];
    shares = sum;
  };
  for (const Residues &elements : address.beside) {
    Residues inBytes{};
    for (int64_t i = 0; i < kSectorBytes; ++i)
      inBytes[i * bytes % kSectorBytes] += elements[i];
    add(inBytes);
  }
  const int64_t most = context.effort == Effort::Quick ? 64 : 4096;
  for (const auto &[axis, iterations] : loops.iterations()) {
    if (axis == kStepAxis || (loops.hasLanes() && axis == loops.laneAxis()) ||
        !bound.use(axis, ordinal))
      continue;
    const int64_t last = loops.extent(axis) - 1, count = static_cast<int64_t>(points(axis));
    const int64_t taken = std::min(count, most);
    Residues own{};
    // A prime distance meets all residues.
    for (int64_t i = 0; i < taken; ++i) {
      const int64_t value = std::min(taken == count ? i : i * 7919 % count, last);
      const int64_t offset = address.offset(axis, together.first(axis, value));
      own[modulo(offset * bytes, kSectorBytes)] += 1.0 / double(taken);
    }
    add(own);
  }
  return shares;
}

AccessCount SectorCounter::affine(const Address &address, int64_t bytes, bool writers,
                                  const TurnsTogether &together) const {
  AccessCount asked{threads(writers) * double(bytes), 0};
  if (context.vectorLanes && loops.hasLanes()) { // a vector, or one element for all lanes
    const AxisId axis = loops.laneAxis();
    if (axis >= 0 && address.offset(axis, loops.laneStep()) == 0)
      asked.bytes /= schedule.lanes;
    return asked;
  }
  if (!loops.hasLanes()) {
    asked.sectors = threads(writers) / (writers ? 1 : schedule.lanes);
    return asked;
  }
  const AxisId axis = loops.laneAxis();
  const double times = others(writers) / double(together.turns);
  const int64_t size = bytes * together.turns;
  if (!stops(axis)) { // the same element for all lanes
    asked.sectors = times * std::ceil(points(axis) / schedule.lanes);
    return asked;
  }
  const Residues shares = residues(address, bytes, together);
  const bool linear = address.isLinear(axis);
  const int64_t distance = linear ? address.offset(axis, loops.laneStep()) * bytes : 0;
  std::vector<int64_t> lanes, sectors; // of each lane: bytes from the address, and where they lie
  for (const LaneGroup &group : loops.laneGroups(context.effort == Effort::Quick ? 8 : 1024)) {
    lanes.clear();
    for (int64_t lane = 0; lane < (linear ? 1 : group.active); ++lane)
      lanes.push_back(
          address.offset(axis, together.first(axis, group.first + lane * loops.laneStep())) *
          bytes);
    const int64_t lowest = lanes[0] + std::min<int64_t>(distance, 0) * (group.active - 1);
    for (int64_t residue = 0; residue < kSectorBytes; residue += bytes) {
      if (shares[residue] == 0)
        continue;
      double touched = 0;
      if (linear) {
        touched = sectorsOf(modulo(residue + lowest, kSectorBytes), distance, group.active, size);
      } else {
        sectors.clear();
        for (int64_t offset : lanes)
          sectors.push_back((residue + offset) / kSectorBytes);
        touched = different(sectors);
      }
      asked.sectors += times * group.weight * shares[residue] * touched;
    }
  }
  return asked;
}

/// Axes of the loops but the lanes' that the equation has, a scan's step among them, and the statement's values there.
std::vector<std::pair<AxisId, double>> SectorCounter::axesAroundLanes() const {
  std::vector<std::pair<AxisId, double>> axes;
  for (const auto &[axis, count] : loops.iterations())
    if ((!loops.hasLanes() || axis != loops.laneAxis()) &&
        (axis == kStepAxis || bound.use(axis, ordinal)))
      axes.push_back({axis, points(axis)});
  return axes;
}

std::vector<LaneGroup> SectorCounter::sampledLanes() const {
  if (loops.hasLanes() && bounds == Bounds::Reduction)
    return {{0, schedule.lanes, 1}}; // all lanes read, and it does not depend on them
  std::vector<LaneGroup> groups = loops.laneGroups(context.effort == Effort::Quick ? 4 : 256);
  if (groups.empty())
    groups.push_back({0, 1, 1});
  return groups;
}

/// Axes of the equation that lanes go along, as bits.
uint64_t SectorCounter::positionsOfLanes() const {
  const AxisId lane = loops.hasLanes() ? loops.laneAxis() : AxisId();
  const AxisUse *use = bound.use(lane, ordinal);
  uint64_t bits = 0;
  for (size_t i = 0; use && i < use->positions.size(); ++i)
    bits |= uint64_t{1} << use->positions[i];
  return bits;
}

AccessCount SectorCounter::sampled(const std::vector<NodeId> &indices, TensorId tensor,
                                   const std::vector<NodeId> &guards, bool writers,
                                   const ScanPlace &stepPlace,
                                   const TurnsTogether &together) const {
  const Tensor &info = bound.program.tensor(tensor);
  const int64_t bytes = bound.program.bytesOf(tensor);
  const std::vector<int64_t> strides = bound.program.stridesOf(tensor);
  const int64_t row = bound.valueOf(numElements(info.shape));
  const std::vector<NodeId> tests = knownTests(equation.body, guards);
  std::vector<NodeId> roots = indices;
  roots.insert(roots.end(), tests.begin(), tests.end());
  PointEvaluator values(equation.body, roots, longestSide(info.shape, bound.program.symbols),
                        bound.program.symbols);

  const std::vector<std::pair<AxisId, double>> around = axesAroundLanes();
  double combinations = 1;
  for (const auto &[axis, count] : around)
    combinations *= count;
  const std::vector<LaneGroup> groups = sampledLanes();
  const double budget = context.effort == Effort::Quick ? 8 : 2048;
  const auto samples = static_cast<int64_t>(
      std::min(combinations, std::max(1.0, std::ceil(budget / double(groups.size())))));

  Point point{std::vector<int64_t>(equation.axes.size(), 0)};
  std::vector<int64_t> sectors;
  double ran = 0, accessed = 0, touched = 0;
  for (int64_t s = 0; s < samples; ++s) {
    double at = sampledPlace(s, samples, combinations);
    for (const auto &[axis, all] : around) {
      const auto count = double(static_cast<int64_t>(all));
      const auto value = static_cast<int64_t>(std::fmod(at, count));
      moveTo(point, axis, together.first(axis, std::min(value, loops.extent(axis) - 1)));
      at = std::floor(at / count);
    }
    for (const LaneGroup &group : groups) {
      sectors.clear();
      for (int64_t lane = 0; lane < group.active; ++lane) {
        if (loops.hasLanes() && loops.laneAxis() >= 0)
          moveTo(point, loops.laneAxis(),
                 together.first(loops.laneAxis(), group.first + lane * loops.laneStep()));
        values.at(point.axes, point.step);
        if (std::ranges::any_of(tests, [&](NodeId t) { return values[t] == 0; }))
          continue;
        int64_t address = stepPlace.row(point.step) * row;
        for (size_t d = 0; d < indices.size(); ++d)
          address += values[indices[d]] * strides[d];
        sectors.push_back(address * bytes / kSectorBytes);
      }
      ran += group.weight * double(group.active);
      accessed += group.weight * double(sectors.size());
      if (!sectors.empty())
        touched += group.weight * different(sectors);
    }
  }
  if (ran == 0)
    return {};
  const double all = threads(writers);
  const double atOnce = double(together.turns) * (loops.hasLanes() || writers ? 1 : schedule.lanes);
  return {all * accessed / ran * double(bytes),
          context.vectorLanes ? 0 : all * touched / ran / atOnce,
          tests.size() != guards.size() || readsData(equation.body, indices, positionsOfLanes())};
}

AccessCount straightCopy(const AccessContext &context, TensorId tensor, double times,
                         const ScanPlace &place) {
  const BoundSchedule &bound = context.bound;
  const int64_t elements = bound.valueOf(numElements(bound.program.tensor(tensor).shape));
  const int64_t bytes = bound.program.bytesOf(tensor), lanes = bound.schedule.lanes;
  AccessCount asked{times * double(elements * bytes)};
  if (context.vectorLanes)
    return asked;
  const Residues rows = residuesOver(place.within, context.effort,
                                     [&](int64_t step) { return place.row(step) * elements; });
  const int64_t left = elements % lanes; // a unit's lanes fill whole sectors
  for (int64_t i = 0; i < kSectorBytes; ++i) {
    const int64_t residue = i * bytes % kSectorBytes;
    asked.sectors += times * rows[i] *
                     (double(elements / lanes) * sectorsOf(residue, bytes, lanes, bytes) +
                      (left > 0 ? sectorsOf(residue, bytes, left, bytes) : 0));
  }
  return asked;
}

Address packedAddress(const BoundSchedule &bound, const Operand &operand) {
  std::vector<int64_t> strides(operand.digits.size(), 1);
  for (size_t d = operand.digits.size(); d-- > 1;) {
    const LayoutDigit &digit = operand.digits[d];
    const int64_t whole = bound.valueOf(bound.schedule.axes[digit.axis].extent);
    strides[d - 1] = strides[d] * (digit.modulus != 0 ? digit.modulus
                                                      : (whole + digit.divide - 1) / digit.divide);
  }
  Address address;
  address.offset = [&operand, strides](AxisId axis, int64_t value) {
    int64_t sum = 0;
    for (size_t d = 0; d < operand.digits.size(); ++d) {
      const LayoutDigit &digit = operand.digits[d];
      const int64_t at = value / digit.divide;
      if (digit.axis == axis)
        sum += strides[d] * (digit.modulus != 0 ? at % digit.modulus : at);
    }
    return sum;
  };
  address.isLinear = [](AxisId) { return false; };
  return address;
}

AccessCount SectorCounter::read(NodeId read, const std::vector<NodeId> &guards,
                                const TurnsTogether &together) const {
  const Scalar &node = equation.body[read];
  const ScanPlace place = readPlace(bound, node.index);
  if (const std::optional<FlatAccess> &access = facts.accesses[facts.ordinalOf(read)];
      guards.empty() && access)
    return affine(addressOf(*access, node.index, place), bound.program.bytesOf(node.index), false,
                  together);
  return sampled(indexOperands(node), node.index, guards, false, place, together);
}

AccessCount SectorCounter::write(const std::vector<NodeId> &indices, TensorId tensor,
                                 NodeId predicate) const {
  std::vector<NodeId> guards;
  if (predicate != kNoNode)
    guards.push_back(predicate);
  return sampled(indices, tensor, guards, true, {}, {});
}

std::vector<ScanPlace> writtenPlaces(const BoundSchedule &bound, TensorId t) {
  const Equation *scan = bound.scan();
  const int64_t steps = scan ? bound.valueOf(scan->steps) : 1;
  std::vector<ScanPlace> places;
  for (size_t o = 0; scan && o < scan->scanOutputs.size(); ++o) {
    const ScanOutput &output = scan->scanOutputs[o];
    if (output.perStep != t)
      continue;
    const int64_t first = std::max<int64_t>(0, output.first);
    const int64_t rows = bound.valueOf(bound.program.tensor(output.stacked).shape[0]);
    places.push_back({{first, std::clamp<int64_t>(rows, 0, std::max<int64_t>(0, steps - first))},
                      -first,
                      std::max<int64_t>(1, rows)});
  }
  if (scan && bound.gridScan() && isNextState(*scan, t))
    places.push_back({{0, steps}, 1, 2});
  else if (places.empty() && bound.level(t) == MemLevel::Global)
    places.push_back({{0, steps}});
  return places;
}

ScanPlace readPlace(const BoundSchedule &bound, TensorId t) {
  const Equation *scan = bound.scan();
  if (!scan || bound.level(t) != MemLevel::Global)
    return {};
  const StepRange steps{0, bound.valueOf(scan->steps)};
  const bool written = isNextState(*scan, t);
  if (bound.gridScan() && (written || isPreviousState(*scan, t)))
    return {steps, written ? 1 : 0, 2};
  return {steps, 0, isStacked(*scan, t) ? std::max<int64_t>(1, steps.count) : 1};
}

} // namespace fusec::tiling
