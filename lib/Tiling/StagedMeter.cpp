#include "Tiling/StagedMeter.h"

#include "Tiling/PointValues.h"

#include <algorithm>
#include <cmath>

namespace fusec::tiling {

namespace {

class StagedMeter {
public:
  StagedMeter(const Schedule &schedule, const ExprProgram &pattern, const EquationFacts &facts,
              const Operand &operand, const std::vector<GuardedRead> &reads,
              const StatementLoops &loops, const std::vector<int64_t> &symbols)
      : schedule(schedule), pattern(pattern), operand(operand), reads(reads),
        equation(facts.equation), loops(loops), symbols(symbols), read(facts.reads[operand.read]),
        tensor(pattern.tensors[equation.body[read].index]), access(facts.accesses[operand.read]),
        boxed(!operand.digits.empty() && operand.digits[0].index >= 0) {
    extents =
        stagedExtents(schedule, equation, operand, [&](AxisId axis) { return loops.tile(axis); });
    total = 1;
    for (int64_t extent : extents)
      total *= extent;
    for (const DimExpr &stride : stridesOf(tensor.shape))
      strides.push_back(valueOf(stride));
    for (const Axis &axis : equation.axes)
      axisExtents.push_back(valueOf(axis.extent));
    for (size_t p = 0; access && p < access->stride.size(); ++p)
      flat.push_back(valueOf(access->stride[p]));
    findOrder();
    if (boxed)
      findBounds();
    else if (!access || reads.size() != 1 || !reads[0].guards.empty())
      general.emplace(equation.body, rootsOfReads(), longestSide(tensor.shape, symbols), symbols);
  }

  Staged run(bool threaded, Effort effort) {
    Staged staged;
    const double bytes = double(sizeInBytes(tensor.type));
    double executions = 1;
    for (const auto &[axis, count] : loops.iterations()) {
      axes.push_back(axis);
      executions *= count;
    }
    staged.sharedBytes = executions * double(total) * bytes;
    if (total <= 0)
      return staged;
    const int64_t tiles =
        static_cast<int64_t>(std::min(executions, effort == Effort::Quick ? 4.0 : 256.0));
    const int64_t groups = (total + schedule.lanes - 1) / schedule.lanes;
    const int64_t looked = std::min<int64_t>(groups, effort == Effort::Quick ? 8 : 4096);
    double read = 0, sectors = 0;
    for (int64_t t = 0; t < tiles; ++t) {
      const double share = double(t) * 0.6180339887498949;
      moveTo(double(tiles) == executions ? double(t)
                                         : std::floor((share - std::floor(share)) * executions));
      for (int64_t g = 0; g < looked; ++g)
        measure(looked == groups ? g : g * 7919 % groups, read, sectors);
    }
    const double scale = executions / double(tiles) * double(groups) / double(looked);
    staged.read = {read * scale, threaded ? sectors * scale : 0, fromData};
    return staged;
  }

private:
  int64_t valueOf(const DimExpr &e) const { return e.evaluate(symbols).value_or(1); }

  /// What tells where the reads go and whether they happen.
  std::vector<NodeId> rootsOfReads() {
    std::vector<NodeId> roots;
    for (const GuardedRead &r : reads) {
      tests.push_back(knownTests(equation.body, r.guards));
      fromData = fromData || tests.back().size() != r.guards.size() ||
                 readsData(equation.body, indexOperands(equation.body[r.read]));
      roots.insert(roots.end(), tests.back().begin(), tests.back().end());
      for (NodeId index : indexOperands(equation.body[r.read]))
        roots.push_back(index);
    }
    return roots;
  }

  /// Lanes run along the digit that is contiguous in memory, the others follow from the inside out.
  void findOrder() {
    size_t fastest = operand.digits.size() - 1;
    for (size_t d = 0; d < operand.digits.size(); ++d) {
      const LayoutDigit &digit = operand.digits[d];
      bool contiguous = digit.index >= 0 && digit.index + 1 == int(tensor.shape.size());
      if (digit.index < 0 && access) {
        const AxisUse *use = schedule.axes[digit.axis].in(operand.equation);
        contiguous = use && flat[use->positions.back()] == 1;
      }
      if (contiguous && extents[d] > 1)
        fastest = d;
    }
    order.push_back(fastest);
    for (size_t d = operand.digits.size(); d-- > 0;)
      if (d != fastest)
        order.push_back(d);
  }

  void findBounds() {
    const Scalar &node = equation.body[read];
    std::optional<std::vector<IndexBounds>> padding;
    if (node.op == ScalarOp::ReadIf)
      padding = paddingBounds(equation, read, pattern);
    for (size_t d = 0; d < tensor.shape.size(); ++d)
      bounds.push_back(padding
                           ? std::pair{valueOf((*padding)[d].lower), valueOf((*padding)[d].upper)}
                           : std::pair{int64_t{0}, valueOf(tensor.shape[d]) - 1});
    for (NodeId index : indexOperands(node))
      forms.push_back(affineForm(equation.body, index, static_cast<int>(equation.axes.size())));
  }

  /// The tile of one execution: the first value of each axis, and the least of each index.
  void moveTo(double at) {
    origin.assign(schedule.axes.size(), 0);
    for (AxisId axis : axes) {
      const double count = loops.iterations().at(axis);
      const auto place = static_cast<int64_t>(std::fmod(at, count));
      at = std::floor(at / count);
      if (axis != kStepAxis)
        origin[axis] = place * loops.tile(axis);
    }
    bases.clear();
    for (size_t d = 0; d < forms.size(); ++d) {
      int64_t lowest = forms[d] ? valueOf(forms[d]->constant) : 0;
      for (size_t p = 0; forms[d] && p < equation.axes.size(); ++p) {
        const AxisId a = axisOf(schedule, equation, operand.equation, static_cast<int>(p));
        const int64_t factor = valueOf(forms[d]->coefficients[p]);
        if (factor == 0 || a < 0)
          continue;
        const auto part = positionTile(equation, schedule.axes[a].in(operand.equation)->positions,
                                       static_cast<int>(p), loops.tile(a));
        int64_t value = part && part->fromZero ? 0 : digitOf(a, static_cast<int>(p), origin[a]);
        if (factor < 0 && part)
          value += part->size - 1;
        lowest += factor * value;
      }
      bases.push_back(lowest);
    }
  }

  /// Value of an equation's axis where the schedule's axis, fused from it and others, has this one.
  int64_t digitOf(AxisId axis, int position, int64_t value) const {
    const std::vector<int> &positions = schedule.axes[axis].in(operand.equation)->positions;
    for (size_t i = positions.size(); i-- > 0;) {
      const int64_t extent = std::max<int64_t>(1, axisExtents[positions[i]]);
      if (positions[i] == position)
        return i > 0 ? value % extent : value;
      value /= extent;
    }
    return 0;
  }

  /// One turn of a unit's lanes: bytes that they read, and different sectors.
  void measure(int64_t group, double &bytes, double &sectors) {
    digits.resize(order.size());
    const int64_t end = std::min(total, (group + 1) * schedule.lanes);
    for (size_t r = 0; r < (general ? reads.size() : 1); ++r) {
      const Tensor &from = general ? pattern.tensors[equation.body[reads[r].read].index] : tensor;
      const auto size = static_cast<int64_t>(sizeInBytes(from.type));
      touched.clear();
      for (int64_t flat = group * schedule.lanes; flat < end; ++flat) {
        int64_t left = flat;
        for (size_t i = 0; i < order.size(); ++i) {
          const bool last = i + 1 == order.size();
          digits[order[i]] = last ? left : left % extents[order[i]];
          left /= extents[order[i]];
        }
        const std::optional<int64_t> address =
            boxed ? inBox() : inTile(general ? static_cast<int>(r) : -1);
        if (address)
          touched.push_back(*address * size / kSectorBytes);
      }
      bytes += double(touched.size()) * double(size);
      std::sort(touched.begin(), touched.end());
      sectors += double(std::unique(touched.begin(), touched.end()) - touched.begin());
    }
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
    values = origin;
    for (size_t d = 0; d < digits.size(); ++d) {
      const AxisId a = operand.digits[d].axis;
      values[a] += digits[d];
      if (values[a] >= loops.extent(a))
        return std::nullopt;
    }
    int64_t address = ordinal < 0 ? valueOf(access->constant) : 0;
    point.assign(equation.axes.size(), 0);
    for (size_t a = 0; a < schedule.axes.size(); ++a)
      if (const AxisUse *use = schedule.axes[a].in(operand.equation))
        for (int position : use->positions) {
          point[position] = digitOf(static_cast<AxisId>(a), position, values[a]);
          if (ordinal < 0)
            address += flat[position] * point[position];
        }
    if (ordinal < 0)
      return address;
    general->at(point, 0);
    for (NodeId test : tests[ordinal])
      if ((*general)[test] == 0)
        return std::nullopt;
    const Scalar &node = equation.body[reads[ordinal].read];
    const std::vector<DimExpr> from = stridesOf(pattern.tensors[node.index].shape);
    const std::vector<NodeId> indices = indexOperands(node);
    for (size_t d = 0; d < indices.size(); ++d)
      address += (*general)[indices[d]] * valueOf(from[d]);
    return address;
  }

  const Schedule &schedule;
  const ExprProgram &pattern;
  const Operand &operand;
  const std::vector<GuardedRead> &reads;
  const Equation &equation;
  const StatementLoops &loops;
  const std::vector<int64_t> &symbols;
  const NodeId read;
  const Tensor &tensor;
  const std::optional<FlatAccess> &access;
  const bool boxed; // the box of the tensor's own indices that the tile touches
  std::vector<int64_t> extents;
  int64_t total = 1;
  std::vector<int64_t> strides, flat; // of the tensor's dimensions, of the equation's axes
  std::vector<int64_t> axisExtents;
  std::vector<size_t> order; // digits, the fastest first
  std::vector<std::pair<int64_t, int64_t>> bounds;
  std::vector<std::optional<AffineForm>> forms;
  std::vector<AxisId> axes;
  std::vector<int64_t> origin, bases, touched;
  std::vector<int64_t> digits, values, point; // of the element that is looked at
  std::optional<PointValues> general;         // where no formula gives the addresses
  std::vector<std::vector<NodeId>> tests;     // of each read
  bool fromData = false;
};

} // namespace

Staged measureStage(const Schedule &schedule, const ExprProgram &pattern,
                    const EquationFacts &facts, const Operand &operand,
                    const std::vector<GuardedRead> &reads, const StatementLoops &loops,
                    const std::vector<int64_t> &symbols, bool lanesAreThreads, Effort effort) {
  return StagedMeter(schedule, pattern, facts, operand, reads, loops, symbols)
      .run(lanesAreThreads, effort);
}

} // namespace fusec::tiling
