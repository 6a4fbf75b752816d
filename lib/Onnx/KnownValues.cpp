#include "Onnx/KnownValues.h"

namespace fusec {

using Elements = std::vector<DimExpr>;

std::optional<Elements> knownElements(const Value &v) {
  if (!v.known.empty())
    return v.known;
  if (!v.constant || isFloat(v.type) || v.constant->numElements() > kMaxFollowedElements)
    return std::nullopt;
  Elements e;
  for (int64_t i = 0; i < v.constant->numElements(); ++i)
    e.push_back(v.constant->intAt(i));
  return e;
}

ConstantRef constantFromElements(DType type, const Shape &shape, const Elements &elements) {
  std::vector<uint8_t> data;
  for (const DimExpr &e : elements) {
    if (!e.isConst())
      return nullptr;
    appendElement(data, type, e.constValue());
  }
  return makeConstant(type, staticDims(shape), std::move(data));
}

namespace {

class Follower {
public:
  Follower(const Graph &graph, const Node &node)
      : graph(graph), node(node), out(graph.value(node.outputs[0])) {}

  std::optional<Elements> run() {
    if (isFloat(out.type) || !isStatic(out.shape))
      return std::nullopt;
    count = 1;
    for (const DimExpr &d : out.shape)
      if (__builtin_mul_overflow(count, d.constValue(), &count))
        return std::nullopt;
    if (count > kMaxFollowedElements)
      return std::nullopt;
    auto e = follow();
    if (e && static_cast<int64_t>(e->size()) != count)
      return std::nullopt;
    // Narrow types wrap; leave those to the evaluator.
    if (e && out.type != DType::I64 && out.type != DType::I32 && out.type != DType::Bool)
      return std::nullopt;
    if (e && out.type == DType::I32)
      for (const DimExpr &d : *e)
        if (d.isConst() && d.constValue() != static_cast<int32_t>(d.constValue()))
          return std::nullopt;
    return e;
  }

private:
  const Value *input(size_t i) const {
    return node.hasInput(i) ? &graph.value(node.inputs[i]) : nullptr;
  }
  std::optional<Elements> elements(size_t i) const {
    const Value *v = input(i);
    return v ? knownElements(*v) : std::nullopt;
  }
  std::optional<Elements> pass() const { return elements(0); }

  /// Flat index into a tensor of `shape` that is broadcast to the output's shape.
  size_t broadcastIndex(const Shape &shape, int64_t flat) const {
    int64_t index = 0, stride = 1;
    for (size_t k = 0; k < out.shape.size(); ++k) {
      size_t axis = out.shape.size() - 1 - k;
      int64_t size = out.shape[axis].constValue(), coordinate = flat % size;
      flat /= size;
      if (k >= shape.size())
        continue;
      int64_t own = shape[shape.size() - 1 - k].constValue();
      index += own == 1 ? 0 : coordinate * stride;
      stride *= own;
    }
    return static_cast<size_t>(index);
  }

  template <typename F> std::optional<Elements> elementwise(F combine) const {
    std::vector<Elements> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      auto e = elements(i);
      if (!e)
        return std::nullopt;
      operands.push_back(std::move(*e));
    }
    Elements result;
    for (int64_t flat = 0; flat < count; ++flat) {
      std::vector<DimExpr> args;
      for (size_t i = 0; i < operands.size(); ++i)
        args.push_back(operands[i][broadcastIndex(input(i)->shape, flat)]);
      std::optional<DimExpr> value = combine(args);
      if (!value)
        return std::nullopt;
      result.push_back(std::move(*value));
    }
    return result;
  }

  DimExpr::Range range(const DimExpr &e) const { return e.range(graph.symbols); }

  /// Truth of a - b <op> 0 from the range of the difference.
  std::optional<DimExpr> compare(const DimExpr &a, const DimExpr &b, OpKind op) const {
    if (a.isConst() && b.isConst()) {
      int64_t x = a.constValue(), y = b.constValue();
      switch (op) {
      case OpKind::Equal: return DimExpr(x == y);
      case OpKind::Less: return DimExpr(x < y);
      case OpKind::LessOrEqual: return DimExpr(x <= y);
      case OpKind::Greater: return DimExpr(x > y);
      default: return DimExpr(x >= y);
      }
    }
    auto r = range(a - b);
    bool saturated = r.min == INT64_MIN && r.max == INT64_MAX;
    if (saturated && a != b)
      return std::nullopt;
    switch (op) {
    case OpKind::Equal:
      if (a == b)
        return DimExpr(1);
      return r.min > 0 || r.max < 0 ? std::optional(DimExpr(0)) : std::nullopt;
    case OpKind::Less: return truth(r.max < 0, r.min >= 0);
    case OpKind::LessOrEqual: return truth(r.max <= 0, r.min > 0);
    case OpKind::Greater: return truth(r.min > 0, r.max <= 0);
    default: return truth(r.min >= 0, r.max < 0);
    }
  }
  static std::optional<DimExpr> truth(bool always, bool never) {
    if (always || never)
      return DimExpr(always);
    return std::nullopt;
  }

  static std::optional<DimExpr> checkedConst(OpKind op, int64_t a, int64_t b) {
    int64_t r;
    bool overflow = op == OpKind::Add   ? __builtin_add_overflow(a, b, &r)
                    : op == OpKind::Sub ? __builtin_sub_overflow(a, b, &r)
                                        : __builtin_mul_overflow(a, b, &r);
    return overflow ? std::nullopt : std::optional(DimExpr(r));
  }

  std::optional<DimExpr> arithmetic(OpKind op, const DimExpr &a, const DimExpr &b) const {
    bool constants = a.isConst() && b.isConst();
    switch (op) {
    case OpKind::Add:
      return constants ? checkedConst(op, a.constValue(), b.constValue()) : std::optional(a + b);
    case OpKind::Sub:
      return constants ? checkedConst(op, a.constValue(), b.constValue()) : std::optional(a - b);
    case OpKind::Mul:
      return constants ? checkedConst(op, a.constValue(), b.constValue()) : std::optional(a * b);
    case OpKind::Div:
    case OpKind::Mod: return divide(op, a, b);
    case OpKind::Min: return min(a, b);
    default: return max(a, b);
    }
  }

  /// ONNX divides towards zero, DimExpr towards minus infinity; they agree where nothing is negative.
  std::optional<DimExpr> divide(OpKind op, const DimExpr &a, const DimExpr &b) const {
    if (a.isConst() && b.isConst()) {
      int64_t x = a.constValue(), y = b.constValue();
      if (y == 0 || y == -1)
        return y == -1 && op == OpKind::Mod ? std::optional(DimExpr(0)) : std::nullopt;
      if (op == OpKind::Div)
        return DimExpr(x / y);
      int64_t r = x % y;
      bool fmod = node.attributes.count("fmod") && node.intAttr("fmod");
      return DimExpr(!fmod && r != 0 && (r < 0) != (y < 0) ? r + y : r);
    }
    if (range(b).min < 1 || range(a).min < 0)
      return std::nullopt;
    return op == OpKind::Div ? floorDiv(a, b) : mod(a, b);
  }

  std::optional<Elements> fold(OpKind op) const {
    return elementwise([&](const std::vector<DimExpr> &args) -> std::optional<DimExpr> {
      std::optional<DimExpr> v = args[0];
      for (size_t i = 1; v && i < args.size(); ++i)
        v = arithmetic(op, *v, args[i]);
      return v;
    });
  }

  std::optional<Elements> compareAll() const {
    return elementwise([&](const std::vector<DimExpr> &a) { return compare(a[0], a[1], node.op); });
  }

  std::optional<Elements> logic() const {
    return elementwise([&](const std::vector<DimExpr> &a) -> std::optional<DimExpr> {
      for (const DimExpr &d : a)
        if (!d.isConst())
          return std::nullopt;
      bool x = a[0].constValue(), y = a.size() > 1 && a[1].constValue();
      switch (node.op) {
      case OpKind::Not: return DimExpr(!x);
      case OpKind::And: return DimExpr(x && y);
      case OpKind::Or: return DimExpr(x || y);
      default: return DimExpr(x != y);
      }
    });
  }

  std::optional<Elements> where() const {
    return elementwise([&](const std::vector<DimExpr> &a) -> std::optional<DimExpr> {
      if (!a[0].isConst())
        return std::nullopt;
      return a[0].constValue() ? a[1] : a[2];
    });
  }

  std::optional<Elements> shape() const {
    const Shape &s = input(0)->shape;
    return Elements(s.begin() + node.intAttr("start"), s.begin() + node.intAttr("end"));
  }

  std::optional<Elements> concat() const {
    Elements all;
    if (out.shape.size() != 1)
      return std::nullopt;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      auto e = elements(i);
      if (!e)
        return std::nullopt;
      all.insert(all.end(), e->begin(), e->end());
    }
    return all;
  }

  std::optional<Elements> gather() const {
    auto data = elements(0), indices = elements(1);
    if (!data || !indices || input(0)->shape.size() != 1)
      return std::nullopt;
    Elements result;
    auto size = static_cast<int64_t>(data->size());
    for (const DimExpr &e : *indices) {
      if (!e.isConst() || e.constValue() < -size || e.constValue() >= size)
        return std::nullopt;
      int64_t i = e.constValue();
      result.push_back((*data)[static_cast<size_t>(i < 0 ? i + size : i)]);
    }
    return result;
  }

  std::optional<Elements> slice() const {
    auto data = elements(0);
    if (!data || input(0)->shape.size() != 1 || node.intsAttr("axes").size() > 1)
      return std::nullopt;
    if (node.intsAttr("axes").empty())
      return data;
    int64_t start = node.intsAttr("starts")[0], step = node.intsAttr("steps")[0];
    Elements result;
    for (int64_t i = 0; i < count; ++i)
      result.push_back((*data)[static_cast<size_t>(start + i * step)]);
    return result;
  }

  std::optional<Elements> rangeOp() const {
    auto start = elements(0), delta = elements(2);
    if (!start || !delta)
      return std::nullopt;
    Elements result;
    for (int64_t i = 0; i < count; ++i)
      result.push_back((*start)[0] + (*delta)[0] * DimExpr(i));
    return result;
  }

  std::optional<Elements> fill() const {
    if (node.op == OpKind::ConstantOfShape) {
      ConstantRef c = std::get<ConstantRef>(node.attributes.at("value"));
      return Elements(static_cast<size_t>(count), DimExpr(c->intAt(0)));
    }
    auto e = elements(0);
    if (!e)
      return std::nullopt;
    Elements result;
    for (int64_t flat = 0; flat < count; ++flat)
      result.push_back((*e)[broadcastIndex(input(0)->shape, flat)]);
    return result;
  }

  std::optional<Elements> reduce() const {
    auto e = elements(0);
    if (!e || e->empty() || count != 1)
      return std::nullopt;
    OpKind op = node.op == OpKind::ReduceProd  ? OpKind::Mul
                : node.op == OpKind::ReduceSum ? OpKind::Add
                : node.op == OpKind::ReduceMax ? OpKind::Max
                                               : OpKind::Min;
    std::optional<DimExpr> v = (*e)[0];
    for (size_t i = 1; v && i < e->size(); ++i)
      v = arithmetic(op, *v, (*e)[i]);
    if (!v)
      return std::nullopt;
    return Elements{*v};
  }

  std::optional<Elements> cast() const {
    auto e = elements(0);
    if (!e)
      return std::nullopt;
    if (out.type != DType::Bool)
      return e;
    for (DimExpr &d : *e) {
      auto r = range(d);
      if (r.min > 0 || r.max < 0)
        d = DimExpr(1);
      else if (d.isConst(0))
        d = DimExpr(0);
      else
        return std::nullopt;
    }
    return e;
  }

  std::optional<Elements> negate() const {
    return elementwise([&](const std::vector<DimExpr> &a) -> std::optional<DimExpr> {
      if (node.op == OpKind::Neg)
        return arithmetic(OpKind::Sub, DimExpr(0), a[0]);
      if (range(a[0]).min >= 0)
        return a[0];
      return a[0].isConst() ? arithmetic(OpKind::Sub, DimExpr(0), a[0]) : std::nullopt;
    });
  }

  std::optional<Elements> follow() const {
    switch (node.op) {
    case OpKind::Shape: return shape();
    case OpKind::Size: return Elements{numElements(input(0)->shape)};
    case OpKind::Identity:
    case OpKind::Reshape:
    case OpKind::Squeeze:
    case OpKind::Unsqueeze:
    case OpKind::Flatten: return pass();
    case OpKind::Cast: return cast();
    case OpKind::Add:
    case OpKind::Sub:
    case OpKind::Mul:
    case OpKind::Div:
    case OpKind::Mod:
    case OpKind::Min:
    case OpKind::Max: return fold(node.op);
    case OpKind::Equal:
    case OpKind::Less:
    case OpKind::LessOrEqual:
    case OpKind::Greater:
    case OpKind::GreaterOrEqual: return compareAll();
    case OpKind::Not:
    case OpKind::And:
    case OpKind::Or:
    case OpKind::Xor: return logic();
    case OpKind::Where: return where();
    case OpKind::Neg:
    case OpKind::Abs: return negate();
    case OpKind::Concat: return concat();
    case OpKind::Gather: return gather();
    case OpKind::Slice: return slice();
    case OpKind::Range: return rangeOp();
    case OpKind::ConstantOfShape:
    case OpKind::Expand: return fill();
    case OpKind::ReduceProd:
    case OpKind::ReduceSum:
    case OpKind::ReduceMax:
    case OpKind::ReduceMin: return reduce();
    default: return std::nullopt;
    }
  }

  const Graph &graph;
  const Node &node;
  const Value &out;
  int64_t count = 0;
};

} // namespace

std::optional<Elements> followValues(const Graph &graph, const Node &node) {
  if (node.outputs.size() != 1)
    return std::nullopt;
  return Follower(graph, node).run();
}

} // namespace fusec
