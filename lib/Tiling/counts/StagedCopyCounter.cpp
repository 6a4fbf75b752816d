#include "Tiling/counts/StagedCopyCounter.h"

#include "Tiling/schedule/PointEvaluator.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fusec::tiling {

namespace {

class StagedCopyCounter {
public:
  StagedCopyCounter(const AccessContext &context, const Operand &operand,
                    const std::vector<GuardedRead> &reads, const LoopRanges &loops)
      : context(context), bound(context.bound), schedule(bound.schedule), operand(operand),
        reads(reads), facts(bound.facts(operand.equation)), equation(facts.equation), loops(loops),
        read(facts.reads[operand.read]), tensor(bound.program.tensor(facts.tensors[operand.read])),
        access(facts.accesses[operand.read]),
        boxed(!operand.digits.empty() && operand.digits[0].index >= 0),
        strides(bound.program.stridesOf(facts.tensors[operand.read])),
        digits(operand.digits.size()), inside(operand.digits.size(), true),
        point(equation.axes.size()) {
    extents =
        stagedExtents(schedule, equation, operand, [&](AxisId axis) { return loops.tile(axis); });
    for (const LayoutDigit &digit : operand.digits)
      ends.push_back(boxed ? 0 : loops.extent(digit.axis));
    total = 1;
    for (int64_t extent : extents)
      total *= extent;
    findPlaces();
    for (size_t p = 0; access && p < access->stride.size(); ++p)
      flat.push_back(bound.valueOf(access->stride[p]));
    if (access)
      constant = bound.valueOf(access->constant);
    order = copyOrder(bound, operand, extents).digits;
    if (boxed)
      findBounds();
    else if (!access || reads.size() != 1 || !reads[0].guards.empty())
      general.emplace(equation.body, rootsOfReads(),
                      longestSide(tensor.shape, bound.program.symbols), bound.program.symbols);
  }

  StagedCopy run() {
    const bool quick = context.effort == Effort::Quick;
    StagedCopy staged;
    const double bytes = double(sizeInBytes(tensor.type));
    const double executions = loops.allIterations();
    staged.sharedBytes = executions * double(total) * bytes;
    if (total <= 0)
      return staged;
    const int64_t tiles = static_cast<int64_t>(std::min(executions, quick ? 4.0 : 256.0));
    const int64_t groups = (total + schedule.lanes - 1) / schedule.lanes;
    const int64_t looked = std::min<int64_t>(groups, quick ? 8 : 4096);
    double read = 0, sectors = 0;
    for (int64_t t = 0; t < tiles; ++t) {
      moveTo(sampledPlace(t, tiles, executions));
      for (int64_t g = 0; g < looked; ++g)
        measure(looked == groups ? g : g * 7919 % groups, read, sectors);
    }
    const double scale = executions / double(tiles) * double(groups) / double(looked);
    staged.read = {read * scale, context.vectorLanes ? 0 : sectors * scale, fromData};
    return staged;
  }

private:
  /// How an equation's axis follows from a schedule's axis that is fused from it and others.
  struct Place {
    AxisId axis;  // of the schedule
    int position; // of the equation
    int64_t divide, modulus;
    int64_t of(int64_t value) const {
      const int64_t whole = divide > 1 ? value / divide : value;
      return modulus > 0 ? whole % modulus : whole;
    }
  };

  void findPlaces() {
    for (size_t a = 0; a < schedule.axes.size(); ++a) {
      const AxisUse *use = schedule.axes[a].in(operand.equation);
      int64_t inner = 1; // elements of the axes within
      for (size_t i = use ? use->positions.size() : 0; i-- > 0;) {
        const int position = use->positions[i];
        const int64_t extent = std::max<int64_t>(1, bound.valueOf(equation.axes[position].extent));
        places.push_back({AxisId(a), position, inner, i > 0 ? extent : 0});
        inner *= extent;
      }
    }
  }

  /// What tells where the reads go and whether they happen.
  std::vector<NodeId> rootsOfReads() {
    std::vector<NodeId> roots;
    for (const GuardedRead &r : reads) {
      tests.push_back(knownTests(equation.body, r.guards));
      fromData = fromData || tests.back().size() != r.guards.size() ||
                 readsData(equation.body, indexOperands(equation.body[r.read]));
      roots.insert(roots.end(), tests.back().begin(), tests.back().end());
      Terms address;
      const std::vector<int64_t> from = bound.program.stridesOf(equation.body[r.read].index);
      for (NodeId index : indexOperands(equation.body[r.read])) {
        address.emplace_back(index, from[address.size()]);
        roots.push_back(index);
      }
      addresses.push_back(std::move(address));
    }
    return roots;
  }

  void findBounds() {
    const Scalar &node = equation.body[read];
    std::optional<std::vector<IndexBounds>> padding;
    if (node.op == ScalarOp::ReadIf)
      padding = paddingBounds(equation, read, bound.program.expr);
    for (size_t d = 0; d < tensor.shape.size(); ++d)
      bounds.push_back(padding ? std::pair{bound.valueOf((*padding)[d].lower),
                                           bound.valueOf((*padding)[d].upper)}
                               : std::pair{int64_t{0}, bound.valueOf(tensor.shape[d]) - 1});
    for (NodeId index : indexOperands(node))
      forms.push_back(affineForm(equation.body, index, static_cast<int>(equation.axes.size())));
  }

  /// The tile of one execution: the first value of each axis, and the least of each index.
  void moveTo(double at) {
    origin.assign(schedule.axes.size(), 0);
    for (const auto &[axis, count] : loops.iterations()) {
      const auto place = static_cast<int64_t>(std::fmod(at, count));
      at = std::floor(at / count);
      if (axis != kStepAxis)
        origin[axis] = place * loops.tile(axis);
    }
    for (const Place &place : places)
      point[place.position] = place.of(origin[place.axis]);
    bases.clear();
    for (size_t d = 0; d < forms.size(); ++d) {
      int64_t lowest = forms[d] ? bound.valueOf(forms[d]->constant) : 0;
      for (size_t p = 0; forms[d] && p < equation.axes.size(); ++p) {
        const AxisId a = bound.axisOf(operand.equation, static_cast<int>(p));
        const int64_t factor = bound.valueOf(forms[d]->coefficients[p]);
        if (factor == 0 || a < 0)
          continue;
        const auto part = positionTile(equation, schedule.axes[a].in(operand.equation)->positions,
                                       static_cast<int>(p), loops.tile(a));
        const auto place = std::ranges::find_if(
            places, [&](const Place &at) { return at.position == static_cast<int>(p); });
        int64_t value = part && part->fromZero ? 0 : place->of(origin[a]);
        if (factor < 0 && part)
          value += part->size - 1;
        lowest += factor * value;
      }
      bases.push_back(lowest);
    }
  }

  /// One turn of a unit's lanes: bytes that they read, and different sectors.
  void measure(int64_t group, double &bytes, double &sectors) {
    const int64_t begin = group * schedule.lanes;
    const int64_t end = std::min(total, begin + schedule.lanes);
    for (size_t r = 0; r < (general ? reads.size() : 1); ++r) {
      const Tensor &from =
          general ? bound.program.tensor(equation.body[reads[r].read].index) : tensor;
      const auto size = static_cast<int64_t>(sizeInBytes(from.type));
      touched.clear();
      startAt(begin);
      for (int64_t element = begin; element < end; ++element, advance()) {
        const std::optional<int64_t> address =
            boxed ? inBox() : inTile(general ? static_cast<int>(r) : -1);
        if (address)
          touched.push_back(*address * size / kSectorBytes);
      }
      bytes += double(touched.size()) * double(size);
      sectors += different(touched);
    }
  }

  /// The digits of the tile's element.
  void startAt(int64_t element) {
    for (size_t d : order) {
      setDigit(d, d == order.back() ? element : element % extents[d]);
      element /= extents[d];
    }
  }

  /// Moves on to the digits of the next element.
  void advance() {
    for (size_t d : order) {
      const bool carries = digits[d] + 1 == extents[d];
      setDigit(d, carries ? 0 : digits[d] + 1);
      if (!carries)
        return;
    }
  }

  void setDigit(size_t d, int64_t digit) {
    digits[d] = digit;
    if (boxed)
      return;
    const AxisId axis = operand.digits[d].axis;
    const int64_t value = origin[axis] + digit;
    inside[d] = value < ends[d];
    for (const Place &place : places)
      if (place.axis == axis)
        point[place.position] = place.of(value);
  }

  std::optional<int64_t> inBox() const {
    int64_t address = 0;
    for (size_t d = 0; d < digits.size(); ++d) {
      const int dimension = operand.digits[d].index;
      const int64_t at = bases[dimension] + digits[d];
      if (at < bounds[dimension].first || at > bounds[dimension].second)
        return std::nullopt;
      address += at * strides[dimension];
    }
    return address;
  }

  /// `ordinal` < 0: the one read, whose address is affine.
  std::optional<int64_t> inTile(int ordinal) {
    if (std::ranges::find(inside, false) != inside.end())
      return std::nullopt;
    if (ordinal < 0)
      return std::inner_product(flat.begin(), flat.end(), point.begin(), constant);
    general->at(point, 0);
    for (NodeId test : tests[ordinal])
      if ((*general)[test] == 0)
        return std::nullopt;
    int64_t address = 0;
    for (const auto &[index, stride] : addresses[ordinal])
      address += (*general)[index] * stride;
    return address;
  }

  const AccessContext &context;
  const BoundSchedule &bound;
  const Schedule &schedule;
  const Operand &operand;
  const std::vector<GuardedRead> &reads;
  const EquationFacts &facts;
  const Equation &equation;
  const LoopRanges &loops;
  const NodeId read;
  const Tensor &tensor;
  const std::optional<FlatAccess> &access;
  const bool boxed;                   // the box of the tensor's own indices that the tile touches
  std::vector<int64_t> extents, ends; // of the tile by its digits, of the digits' axes
  int64_t total = 1;
  std::vector<int64_t> strides; // of the tensor's dimensions
  std::vector<int64_t> flat;    // of the equation's axes
  int64_t constant = 0;         // of the affine address
  std::vector<Place> places;
  std::vector<size_t> order; // digits, the fastest first
  std::vector<std::pair<int64_t, int64_t>> bounds;
  std::vector<std::optional<AffineForm>> forms;
  std::vector<int64_t> origin, bases, touched;
  // The element that is looked at: its place in the tile, whether within the axes' extents, and in the domain.
  std::vector<int64_t> digits;
  std::vector<char> inside;
  std::vector<int64_t> point;
  std::optional<PointEvaluator> general;                 // where no formula gives the addresses
  std::vector<std::vector<NodeId>> tests;                // of each read
  using Terms = std::vector<std::pair<NodeId, int64_t>>; // indices and their strides
  std::vector<Terms> addresses;                          // of each read
  bool fromData = false;
};

} // namespace

StagedCopy countStagedCopy(const AccessContext &context, const Operand &operand,
                           const std::vector<GuardedRead> &reads, const LoopRanges &loops) {
  return StagedCopyCounter(context, operand, reads, loops).run();
}

} // namespace fusec::tiling
