#include "Onnx/KnownValues.h"

#include "Onnx/FollowIndices.h"
#include "Onnx/FollowLines.h"
#include "Onnx/FollowLoop.h"
#include "Onnx/FollowMovement.h"
#include "Onnx/FollowProducts.h"
#include "Support/DimLimits.h"

#include <algorithm>
#include <cmath>

namespace fusec {

using Id = KnownValues::Id;
using Elements = KnownValues::Elements;
using Op = DimProgram::Op;

std::optional<std::vector<DimExpr>> knownElements(const Value &v) {
  if (!v.known.empty())
    return v.known;
  if (!v.constant || isFloat(v.type) || v.constant->numElements() > kMaxFollowedElements)
    return std::nullopt;
  std::vector<DimExpr> e;
  for (int64_t i = 0; i < v.constant->numElements(); ++i)
    e.push_back(v.constant->intAt(i));
  return e;
}

std::optional<std::vector<int64_t>>
allConstants(const std::optional<std::vector<DimExpr>> &elements) {
  if (!elements)
    return std::nullopt;
  std::vector<int64_t> list;
  for (const DimExpr &e : *elements) {
    if (!e.isConst())
      return std::nullopt;
    list.push_back(e.constValue());
  }
  return list;
}

ConstantRef constantFromElements(DType type, const Shape &shape,
                                 const std::vector<DimExpr> &elements) {
  std::vector<uint8_t> data;
  for (const DimExpr &e : elements) {
    if (!e.isConst())
      return nullptr;
    appendElement(data, type, e.constValue());
  }
  return makeConstant(type, staticDims(shape), std::move(data));
}

std::optional<Elements> KnownValues::elements(ValueId id) {
  if (id < 0)
    return std::nullopt;
  if (const auto found = others.find(id); found != others.end())
    return found->second;
  const Value &v = graph.value(id);
  Elements e;
  if (v.constant && isFloat(v.type) && v.constant->numElements() <= kMaxComputedElements) {
    for (int64_t i = 0; i < v.constant->numElements(); ++i)
      e.push_back(numbers.real(v.type, v.constant->floatAt(i)));
    return e;
  }
  const auto known = knownElements(v);
  if (!known)
    return std::nullopt;
  for (const DimExpr &d : *known)
    e.push_back(numbers.integer(v.type, d));
  return e;
}

std::optional<Elements> KnownValues::exchange(ValueId id, std::optional<Elements> elements) {
  std::optional<Elements> known;
  if (const auto found = others.find(id); found != others.end())
    known = std::move(found->second);
  if (elements)
    others[id] = std::move(*elements);
  else
    others.erase(id);
  return known;
}

std::optional<std::vector<DimExpr>> KnownValues::expressions(const Elements &elements) const {
  std::vector<DimExpr> list;
  for (Id x : elements) {
    const auto &d = numbers.expression(x);
    if (!d)
      return std::nullopt;
    list.push_back(*d);
  }
  return list;
}

std::optional<std::vector<DimExpr>> KnownValues::sizes(ValueId id, const std::string &node) {
  if (id < 0)
    return std::nullopt;
  if (auto known = knownElements(graph.value(id)))
    return known;
  const auto found = others.find(id);
  if (found == others.end() || isFloat(graph.value(id).type))
    return std::nullopt;
  std::vector<DimExpr> list;
  for (Id x : found->second) {
    auto size = numbers.size(x, node);
    if (!size)
      return std::nullopt;
    list.push_back(std::move(*size));
  }
  graph.value(id).known = list;
  return list;
}

void KnownValues::settle() {
  for (const auto &[id, elements] : others) {
    Value &v = graph.value(id);
    if (v.constant || isFloat(v.type))
      continue;
    std::vector<DimExpr> list;
    for (Id x : elements)
      if (auto size = numbers.knownSize(x))
        list.push_back(std::move(*size));
    if (list.size() == elements.size() &&
        std::none_of(list.begin(), list.end(),
                     [](const DimExpr &d) { return isTooLarge(d, kLargestSizeOfModel); }))
      v.known = std::move(list);
  }
}

void KnownValues::choose(ValueId result, ValueId condition, ValueId ifTrue, ValueId ifFalse) {
  const auto which = elements(condition), a = elements(ifTrue), b = elements(ifFalse);
  if (!a || !b || a->size() != b->size() || static_cast<int64_t>(a->size()) > kMaxComputedElements)
    return;
  Elements made;
  for (size_t i = 0; i < a->size(); ++i) {
    const Id ofTrue = (*a)[i], ofFalse = (*b)[i];
    const auto v = ofTrue == ofFalse ? std::optional(ofTrue)
                   : which           ? numbers.apply(Op::Select, graph.value(result).type,
                                                     {which->front(), ofTrue, ofFalse})
                                     : std::nullopt;
    if (!v)
      return;
    made.push_back(*v);
  }
  remember(result, std::move(made));
}

std::optional<DimExpr> KnownValues::choose(ValueId condition, const DimExpr &ifTrue,
                                           const DimExpr &ifFalse, const std::string &node) {
  const auto which = elements(condition);
  if (!which || !sizes(condition, node))
    return std::nullopt;
  const auto chosen = numbers.apply(
      Op::Select, DType::I64,
      {which->front(), numbers.integer(DType::I64, ifTrue), numbers.integer(DType::I64, ifFalse)});
  return chosen ? numbers.size(*chosen, node) : std::nullopt;
}

namespace {

/// What one node makes of known elements. Types and ranks of operands fit.
class Follower {
public:
  Follower(KnownValues &values, const Node &node)
      : values(values), numbers(values.numbers), graph(values.graph), node(node),
        out(graph.value(node.outputs[0])) {}

  std::optional<Elements> run() {
    const std::optional<int64_t> elements = followedCount(out);
    if (!elements || (isFloat(out.type) && onlyConstants()))
      return std::nullopt; // constants are the evaluator's
    count = *elements;
    return follow();
  }

private:
  const Value *input(size_t i) const {
    return node.hasInput(i) ? &graph.value(node.inputs[i]) : nullptr;
  }
  std::optional<Elements> elements(size_t i) const {
    return node.hasInput(i) ? values.elements(node.inputs[i]) : std::nullopt;
  }
  bool onlyConstants() const {
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId id) { return id == kNoValue || graph.value(id).constant; });
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

  std::optional<Elements> follow() const {
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

  KnownValues &values;
  HostNumbers &numbers;
  const Graph &graph;
  const Node &node;
  const Value &out;
  int64_t count = 0;
};

} // namespace

std::vector<std::optional<Elements>> KnownValues::follow(const Node &node) {
  std::vector<std::optional<Elements>> made(node.outputs.size());
  if (movesElements(node.op))
    made = followMovement(*this, node);
  else if (takesPlaces(node.op))
    made[0] = followIndices(*this, node);
  else if (goesAlongLines(node.op))
    made = followLines(*this, node);
  else if (addsProducts(node.op))
    made[0] = followProducts(*this, node);
  else if (node.op == OpKind::Loop)
    made = followLoop(*this, node);
  else if (node.outputs.size() == 1)
    made[0] = Follower(*this, node).run();
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i])
      continue;
    const Value &out = graph.value(node.outputs[i]);
    // Narrow types wrap; leave those to the evaluator.
    const bool isWhole =
        isStatic(out.shape) && numElements(out.shape).isConst(std::ssize(*made[i]));
    const bool isNarrow = !isFloat(out.type) && out.type != DType::I64 && out.type != DType::I32 &&
                          out.type != DType::Bool;
    if (!isWhole || isNarrow ||
        (!expressions(*made[i]) && static_cast<int64_t>(made[i]->size()) > kMaxComputedElements))
      made[i] = std::nullopt;
    else if (out.type == DType::I32 && std::any_of(made[i]->begin(), made[i]->end(), [&](Id x) {
               const auto v = numbers.constant(x);
               return v && *v != static_cast<int32_t>(*v);
             }))
      made[i] = std::nullopt;
  }
  return made;
}

} // namespace fusec
