#include "Onnx/FollowElementwise.h"

#include "Onnx/FollowMovement.h"

namespace fusec {

using Id = KnownValues::Id;
using Elements = KnownValues::Elements;
using Op = DimProgram::Op;

namespace {

/// Types and ranks of operands fit.
class ElementFollower {
public:
  ElementFollower(KnownValues &values, const Node &node)
      : values(values), numbers(values.numbers), graph(values.graph), node(node),
        out(graph.value(node.outputs[0])), count(numElements(out.shape).constValue()) {}

  std::optional<Elements> run() const {
    using enum OpKind;
    switch (node.op) {
    case Shape: return shape();
    case Size: return Elements{numbers.integer(DType::I64, numElements(input(0)->shape))};
    case Cast: return cast();
    case Add:
    case Sum: return fold(Op::Add);
    case Sub: return fold(Op::Sub);
    case Mul: return fold(Op::Mul);
    case Div: return fold(Op::Div);
    case Mod: return remainder();
    case And:
    case Min: return fold(Op::Min);
    case Or:
    case Max: return fold(Op::Max);
    case Pow: return power();
    case Clip: return clip();
    case Equal: return compare(Op::Equal, false);
    case Less: return compare(Op::Less, false);
    case LessOrEqual: return compare(Op::LessOrEqual, false);
    case Greater: return compare(Op::Less, true);
    case GreaterOrEqual: return compare(Op::LessOrEqual, true);
    case Not: return elementwise([&](const Elements &a) { return inverted(a[0]); });
    case Xor: return exclusiveOr();
    case Where:
      return elementwise(
          [&](const Elements &a) { return apply(Op::Select, out.type, a[0], a[1], a[2]); });
    case Neg: return elementwise([&](const Elements &a) { return negated(a[0]); });
    case Abs: return elementwise([&](const Elements &a) { return absolute(a[0]); });
    case Reciprocal:
      return elementwise(
          [&](const Elements &a) { return apply(Op::Div, out.type, number(out.type, 1), a[0]); });
    case Sign: return elementwise([&](const Elements &a) { return sign(a[0]); });
    case Floor: return unary(Op::Floor);
    case Ceil: return unary(Op::Ceil);
    case Round: return unary(Op::Round);
    case Sqrt: return unary(Op::Sqrt);
    case Exp: return unary(Op::Exp);
    case Log: return unary(Op::Log);
    case Range: return range();
    case ConstantOfShape: return filled();
    default: return std::nullopt;
    }
  }

private:
  const Value *input(size_t i) const {
    return node.hasInput(i) ? &graph.value(node.inputs[i]) : nullptr;
  }
  std::optional<Elements> elements(size_t i) const {
    return node.hasInput(i) ? values.elements(node.inputs[i]) : std::nullopt;
  }

  template <typename F> std::optional<Elements> elementwise(F combine) const {
    std::vector<Elements> operands;
    std::vector<std::vector<int64_t>> shapes;
    const std::vector<int64_t> dims = staticDims(out.shape);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      auto e = elements(i);
      if (!e)
        return std::nullopt;
      operands.push_back(std::move(*e));
      shapes.push_back(staticDims(input(i)->shape));
    }
    Elements result, args(operands.size());
    for (int64_t flat = 0; flat < count; ++flat) {
      for (size_t i = 0; i < operands.size(); ++i)
        args[i] = operands[i][broadcastIndex(shapes[i], dims, flat)];
      const std::optional<Id> value = combine(args);
      if (!value || (count > kMaxComputedElements && !numbers.expression(*value)))
        return std::nullopt;
      result.push_back(*value);
    }
    return result;
  }

  template <typename F> static std::optional<Elements> each(const Elements &list, F make) {
    Elements result;
    for (Id e : list) {
      const std::optional<Id> v = make(e);
      if (!v)
        return std::nullopt;
      result.push_back(*v);
    }
    return result;
  }

  std::optional<Id> apply(Op op, DType type, Id a, Id b = -1, Id c = -1) const {
    return numbers.apply(op, type, {a, b, c});
  }
  /// All operands, from the first on.
  std::optional<Elements> fold(Op op) const {
    return elementwise([&](const Elements &args) -> std::optional<Id> {
      std::optional<Id> v = args[0];
      for (size_t i = 1; v && i < args.size(); ++i)
        v = apply(op, out.type, *v, args[i]);
      return v;
    });
  }
  std::optional<Elements> unary(Op op) const {
    return elementwise([&](const Elements &a) { return apply(op, out.type, a[0]); });
  }
  /// With the operands in the other order where `swapped`.
  std::optional<Elements> compare(Op op, bool swapped) const {
    return elementwise(
        [&](const Elements &a) { return apply(op, DType::Bool, a[swapped], a[!swapped]); });
  }
  Id number(DType type, int64_t v) const {
    return isFloat(type) ? numbers.real(type, static_cast<double>(v)) : numbers.integer(type, v);
  }
  std::optional<Id> negated(Id a) const {
    return apply(Op::Mul, out.type, a, number(out.type, -1));
  }
  std::optional<Id> absolute(Id a) const {
    const auto minus = negated(a);
    return minus ? apply(Op::Max, out.type, a, *minus) : std::nullopt;
  }
  std::optional<Id> sign(Id a) const {
    const Id zero = number(out.type, 0);
    if (!isFloat(out.type)) {
      const auto above = apply(Op::Max, out.type, a, number(out.type, -1));
      return above ? apply(Op::Min, out.type, *above, number(out.type, 1)) : std::nullopt;
    }
    const auto isAbove = apply(Op::Less, DType::Bool, zero, a),
               isBelow = apply(Op::Less, DType::Bool, a, zero);
    if (!isAbove || !isBelow)
      return std::nullopt;
    const auto one = apply(Op::Select, out.type, *isAbove, number(out.type, 1), zero);
    return one ? apply(Op::Select, out.type, *isBelow, number(out.type, -1), *one) : std::nullopt;
  }
  std::optional<Id> inverted(Id a) const { // of a bool
    return apply(Op::Equal, DType::Bool, a, number(DType::Bool, 0));
  }

  std::optional<Elements> remainder() const {
    const bool ofDividend = isFloat(out.type) || node.intAttr("fmod");
    return fold(ofDividend ? Op::Rem : Op::Mod);
  }
  /// Integers of two types meet as i64, other numbers as f64.
  std::optional<Elements> power() const {
    if (input(1)->type == out.type)
      return fold(Op::Pow);
    const bool areIntegers = isInteger(out.type) && isInteger(input(1)->type);
    const DType type = areIntegers ? DType::I64 : DType::F64;
    return elementwise([&](const Elements &a) -> std::optional<Id> {
      const auto x = numbers.cast(type, a[0]), e = numbers.cast(type, a[1]);
      const auto made = x && e ? apply(Op::Pow, type, *x, *e) : std::nullopt;
      return made ? numbers.cast(out.type, *made) : std::nullopt;
    });
  }
  std::optional<Elements> clip() const {
    const auto x = elements(0), low = elements(1), high = elements(2);
    if (!x || (node.hasInput(1) && !low) || (node.hasInput(2) && !high))
      return std::nullopt;
    Elements result;
    for (Id e : *x) {
      std::optional<Id> v = e;
      if (low)
        v = apply(Op::Max, out.type, *v, low->front());
      if (v && high)
        v = apply(Op::Min, out.type, *v, high->front());
      if (!v)
        return std::nullopt;
      result.push_back(*v);
    }
    return result;
  }

  std::optional<Elements> shape() const {
    const Shape &s = input(0)->shape;
    Elements result;
    for (int64_t d = node.intAttr("start"); d < node.intAttr("end"); ++d)
      result.push_back(numbers.integer(DType::I64, s[static_cast<size_t>(d)]));
    return result;
  }
  std::optional<Elements> range() const {
    const auto start = elements(0), delta = elements(2);
    if (!start || !delta)
      return std::nullopt;
    Elements result;
    for (int64_t i = 0; i < count; ++i) {
      const auto step = apply(Op::Mul, out.type, delta->front(), number(out.type, i));
      const auto v = step ? apply(Op::Add, out.type, start->front(), *step) : std::nullopt;
      if (!v)
        return std::nullopt;
      result.push_back(*v);
    }
    return result;
  }
  std::optional<Elements> filled() const {
    const ConstantRef &c = std::get<ConstantRef>(node.attributes.at("value"));
    const Id v = isFloat(out.type) ? numbers.real(out.type, c->floatAt(0))
                                   : numbers.integer(out.type, c->intAt(0));
    return Elements(static_cast<size_t>(count), v);
  }

  std::optional<Elements> cast() const {
    return elementwise([&](const Elements &a) { return numbers.cast(out.type, a[0]); });
  }
  std::optional<Elements> exclusiveOr() const {
    const auto same = compare(Op::Equal, false);
    return same ? each(*same, [&](Id e) { return inverted(e); }) : std::nullopt;
  }

  KnownValues &values;
  HostNumbers &numbers;
  const Graph &graph;
  const Node &node;
  const Value &out;
  const int64_t count; // of elements
};

} // namespace

std::optional<Elements> followElementwise(KnownValues &values, const Node &node) {
  return ElementFollower(values, node).run();
}

} // namespace fusec
