// CumSum and CumProd as sums over what stands in front of an element: of its part of sixteen, and of the parts in front
// of that, which are summed alike. For y of x[n], with floordiv(i, 16) = b and floormod(i, 16) = r:
//
//   %w[i] = sum over j < 16 of if(j < r, %x[b*16 + j], 0)
//   %c[b] = sum over j < ceil(n/16) of if(j < b, %w[j*16 + 15] + %x[j*16 + 15], 0)
//   %y[i] = (%w[i] + %c[b]) + %x[i]
//
// Every element has as many terms as its neighbours, so that lanes and blocks have elements side by side, where a scan
// takes n steps one after the other. That is 16 additions an element, of which a vector does 16: rows of 1024 took 0.21
// ms so, 1.14 as a scan (512 rows, AMD EPYC, Zen 5). Where lanes have elements of other sums side by side anyway, a
// scan's one addition is less: 0.09 ms, not 0.25, for 512 columns of 1024.
#include "Expr/lower/Lowering.h"

#include <algorithm>
#include <functional>

namespace fusec::lower {
namespace {

constexpr int64_t kPart = 16;
/// So few are summed at once.
constexpr int64_t kWhole = 64;
/// Parts of parts of parts where no constant says how many elements there are: 16 million are 4096 of them.
constexpr int kMostLevels = 3;

class Cumulative {
public:
  Cumulative(NodeLowering &n, ScalarOp op, size_t axis)
      : n(n), op(op), type(computeType(n.type(0))), axis(axis),
        isReversed(n.node.intAttr("reverse")) {}

  /// By sums of what stands in front.
  void runByParts() {
    const Element source = [this](const Place &place) {
      const std::vector<Val> indices = withAxis(place);
      return cast(type, place.predicate ? place.b.readIf(*place.predicate, n.in(0), indices,
                                                         cast(n.type(0), identity(place)))
                                        : place.b.read(n.in(0), indices));
    };
    const Element before = inFront(n.shape(0)[axis], source, 0);
    const bool isExclusive = n.node.intAttr("exclusive");
    n.map(n.out(), [&](EquationBuilder &b) {
      const Place place{b, b.axis(axis), std::nullopt};
      const Val sum = before(place);
      return cast(n.outType(), isExclusive ? sum : binary(op, sum, source(place)));
    });
  }

  void runStepByStep() {
    const Shape &shape = n.shape(0);
    Shape state = shape;
    state.erase(state.begin() + static_cast<std::ptrdiff_t>(axis));
    Shape stackedShape = state;
    stackedShape.insert(stackedShape.begin(), shape[axis]);
    const TensorId init = n.map(n.temp("init", type, state), [&](EquationBuilder &b) {
      return b.constant(type, op == ScalarOp::Add ? 0 : 1);
    });
    Equation scan;
    scan.kind = EquationKind::Scan;
    scan.onnxNodes = {n.node.name};
    scan.steps = shape[axis];
    scan.reversed = n.node.intAttr("reverse");
    const TensorId previous = n.temp("previous", type, state), next = n.temp("next", type, state),
                   stacked = n.temp("steps", type, stackedShape);
    scan.carries = {{init, previous, next, -1}};
    std::vector<Item> body = n.l.nested([&] {
      n.l.scanSteps = &scan.steps;
      n.map(next, [&](EquationBuilder &b) {
        std::vector<Val> at = b.axes;
        at.insert(at.begin() + static_cast<std::ptrdiff_t>(axis), b.step());
        return binary(op, b.read(previous, b.axes), cast(type, b.read(n.in(0), at)));
      });
      if (n.node.intAttr("exclusive"))
        n.copy(n.temp("step", type, state), previous);
      n.l.scanSteps = nullptr;
    });
    for (Item &item : body)
      scan.scanBody.push_back(std::move(std::get<Equation>(item.value)));
    scan.scanOutputs = {{scan.scanBody.back().outputs[0], stacked}};
    scan.outputs = {stacked};
    scan.name = n.l.program.tensors[stacked].name;
    n.l.items->push_back({std::move(scan)});
    n.map(n.out(), [&](EquationBuilder &b) {
      std::vector<Val> at = b.axes;
      std::rotate(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(axis),
                  at.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
      return cast(n.outType(), b.read(stacked, at));
    });
  }

private:
  /// A place along the axis, beside the other axes of an equation that asks for what is there: the identity where a
  /// predicate fails.
  struct Place {
    EquationBuilder &b;
    Val at;
    std::optional<Val> predicate;
  };
  using Element = std::function<Val(const Place &)>;

  Val identity(const Place &place) const {
    return place.b.constant(type, op == ScalarOp::Add ? 0 : 1);
  }

  std::vector<Val> withAxis(const Place &place) const {
    std::vector<Val> indices = place.b.axes;
    indices[axis] = place.at;
    return indices;
  }

  Val isInFront(Val one, Val other) const { return isReversed ? lt(other, one) : lt(one, other); }

  /// Adds an equation for a sum at each place of the axis, which has `count` of them, of so many terms.
  Element sums(const DimExpr &count, const DimExpr &terms, int level,
               const std::function<Val(const Place &, Val)> &term) {
    Shape shape = n.shape(0);
    shape[axis] = count;
    const TensorId made = n.reduceTemp(
        "sums" + std::to_string(level), op == ScalarOp::Add ? Monoid::Sum : Monoid::Prod, type,
        shape, [&](EquationBuilder &b) {
          return term({b, b.axis(axis), std::nullopt}, b.reduction(terms));
        });
    return [this, made](const Place &place) {
      const std::vector<Val> indices = withAxis(place);
      return place.predicate ? place.b.readIf(*place.predicate, made, indices, identity(place))
                             : place.b.read(made, indices);
    };
  }

  /// The sum of all elements in front of each place of `count`.
  Element inFront(const DimExpr &count, const Element &element, int level) {
    const bool isShort = count.isConst() ? count.constValue() <= kWhole : level == kMostLevels;
    if (isShort)
      return sums(count, count, level, [&](const Place &place, Val j) {
        return element({place.b, j, isInFront(j, place.at)});
      });
    const DimExpr part(kPart);
    const Element inPart = sums(count, part, level, [&](const Place &place, Val j) {
      const Val at = floorDiv(place.at, part) * kPart + j;
      const Val isBefore = isInFront(j, floorMod(place.at, part));
      return element({place.b, at, isReversed ? both(isBefore, lt(at, count)) : isBefore});
    });
    // A part with its last element, which nothing of it stands behind.
    const Element whole = [this, inPart, element](const Place &place) {
      const Place last{place.b, place.at * kPart + (isReversed ? 0 : kPart - 1), place.predicate};
      return binary(op, inPart(last), element(last));
    };
    const Element ofParts = inFront(ceilDiv(count, part), whole, level + 1);
    return [this, part, inPart, ofParts](const Place &place) {
      return binary(op, inPart(place),
                    ofParts({place.b, floorDiv(place.at, part), place.predicate}));
    };
  }

  NodeLowering &n;
  const ScalarOp op;
  const DType type;
  const size_t axis;
  const bool isReversed;
};

template <ScalarOp op> Status cumulative(NodeLowering &n) {
  const ConstantRef axisValue = n.inValue(1).constant;
  if (!axisValue)
    return n.fail("the axis must be a constant");
  const int64_t given = axisValue->intAt(0);
  const auto axis = static_cast<size_t>(given < 0 ? given + n.rank(0) : given);
  const DimExpr inside = product(n.shape(0), axis + 1, n.shape(0).size());
  // Few steps are soon taken: 32 rows of 77 took 0.8 us so, 1.9 by parts.
  constexpr int64_t kFewSteps = 256;
  const DimExpr &steps = n.shape(0)[axis];
  const bool isShort = steps.isConst() && steps.constValue() <= kFewSteps;
  if (inside.isConst() && inside.constValue() < kPart && !isShort)
    Cumulative(n, op, axis).runByParts();
  else
    Cumulative(n, op, axis).runStepByStep();
  return success();
}

} // namespace

void addReductionsCumulative(HandlerTable &table) {
  table[OpKind::CumSum] = cumulative<ScalarOp::Add>;
  table[OpKind::CumProd] = cumulative<ScalarOp::Mul>;
}

} // namespace fusec::lower
