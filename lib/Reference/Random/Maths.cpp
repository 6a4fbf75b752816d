#include "Reference/Random/Builder.h"

namespace fusec::random {

namespace {

using Attributes = std::map<std::string, Attribute>;

/// A function of one float: where it may be applied, its range, its largest slope there, and its own error in
/// roundings of the result. Functions with jumps need exact operands.
struct Unary {
  OpKind op;
  bool (*legal)(const Facts &);
  double (*at)(double);
  double slope; // 0: monotone pieces, slope taken from the operand's error as it is
  double roundings;
  bool jumps = false;
  Attributes attributes = {};
};

bool always(const Facts &) { return true; }
bool smallExponent(const Facts &f) { return f.high <= 4 && f.low >= -20; }
bool positive(const Facts &f) { return f.low >= 0.25; }
bool awayFromZero(const Facts &f) { return f.low >= 0.25 || f.high <= -0.25; }
bool insideUnit(const Facts &f) { return f.low >= -0.9 && f.high <= 0.9; }

const std::vector<Unary> &unaries() {
  using enum OpKind;
  static const std::vector<Unary> list = {
      {Abs, always, [](double x) { return std::fabs(x); }, 1, 0},
      {Neg, always, [](double x) { return -x; }, 1, 0},
      {Relu, always, [](double x) { return std::fmax(x, 0); }, 1, 0},
      {LeakyRelu,
       always,
       [](double x) { return x < 0 ? 0.125 * x : x; },
       1,
       1,
       false,
       {{"alpha", 0.125}}},
      {Identity, always, [](double x) { return x; }, 1, 0},
      {Sigmoid, always, [](double x) { return 1 / (1 + std::exp(-x)); }, 0.25, 8},
      {Tanh, always, [](double x) { return std::tanh(x); }, 1, 8},
      {Erf, always, [](double x) { return std::erf(x); }, 1.2, 8},
      {Sin, always, [](double) { return 1.0; }, 1, 8},
      {Cos, always, [](double) { return 1.0; }, 1, 8},
      {Atan, always, [](double x) { return std::atan(x); }, 1, 8},
      {Softplus, always,
       [](double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }, 1, 8},
      {HardSigmoid,
       always,
       [](double x) { return std::fmin(std::fmax(0.25 * x + 0.5, 0), 1); },
       0.25,
       4,
       false,
       {{"alpha", 0.25}, {"beta", 0.5}}},
      {Elu,
       always,
       [](double x) { return x < 0 ? std::expm1(x) : x; },
       1,
       8,
       false,
       {{"alpha", 1.0}}},
      {Softsign, always, [](double x) { return x / (1 + std::fabs(x)); }, 1, 4},
      {Gelu,
       always,
       [](double x) { return x > 0 ? x : 0; },
       1.2,
       16,
       false,
       {{"approximate", std::string("none")}}},
      {HardSwish, always, [](double x) { return x > 0 ? x : 0; }, 1.6, 8},
      {Mish, always, [](double x) { return x > 0 ? x : 0; }, 1.2, 16},
      {Exp, smallExponent, [](double x) { return std::exp(x); }, 55, 8},
      {Sqrt, positive, [](double x) { return std::sqrt(x); }, 1, 2},
      {Log, positive, [](double x) { return std::log(x); }, 4, 8},
      {Reciprocal, awayFromZero, [](double x) { return 1 / x; }, 16, 2},
      {Atanh, insideUnit, [](double x) { return std::atanh(x); }, 6, 16},
      {Floor, always, [](double x) { return std::floor(x); }, 0, 0, true},
      {Ceil, always, [](double x) { return std::ceil(x); }, 0, 0, true},
      {Round, always, [](double x) { return std::nearbyint(x); }, 0, 0, true},
      {Sign, always, [](double x) { return double((x > 0) - (x < 0)); }, 0, 0, true},
  };
  return list;
}

bool addUnary(Builder &b) {
  const Unary &u = b.rng.pick(unaries());
  ValueId x = b.pick([&](ValueId v) {
    return isFloat(b.type(v)) && u.legal(b.facts[size_t(v)]) &&
           (!u.jumps || b.facts[size_t(v)].exact());
  });
  if (x == kNoValue)
    return false;
  const Facts &f = b.facts[size_t(x)];
  double p = u.at(f.low), q = u.at(f.high);
  Facts out{std::min(p, q), std::max(p, q), u.slope * f.error};
  if (u.op == OpKind::Abs)
    out = {0, f.largest(), f.error};
  if (u.op == OpKind::Sin || u.op == OpKind::Cos)
    out = {-1, 1, f.error};
  if (u.op == OpKind::Gelu || u.op == OpKind::HardSwish || u.op == OpKind::Mish)
    out.low = -0.4; // where each of them dips, at most
  if (u.roundings > 0) {
    // Functions of large arguments with small results are accurate relative to what they add up.
    Facts scaled = out;
    scaled.low = std::min(scaled.low, -1.0);
    scaled.high = std::max(scaled.high, 1.0);
    auto r = b.rounded(b.type(x), scaled, u.roundings);
    if (!r)
      return false;
    out.low -= r->error;
    out.high += r->error;
    if (u.op == OpKind::Exp || u.op == OpKind::Sqrt || u.op == OpKind::Softplus)
      out.low = std::max(out.low, 0.0);
    out.error = r->error;
  }
  b.addNode(u.op, {x}, u.attributes, out);
  return true;
}

bool addIntUnary(Builder &b) {
  using enum OpKind;
  OpKind op = b.rng.pick(std::vector<OpKind>{Abs, Neg, Sign, BitwiseNot, Not});
  ValueId x = b.pick([&](ValueId v) {
    DType t = b.type(v);
    return op == Not ? t == DType::Bool : isInteger(t) && (op != Neg || isSigned(t));
  });
  if (x == kNoValue)
    return false;
  b.addNode(op, {x}, {}, {});
  return true;
}

/// A second operand that broadcasts with x, of the same type: from the pool or a new constant.
ValueId partner(Builder &b, ValueId x, const std::function<bool(ValueId)> &wanted) {
  ValueId y = b.pick([&](ValueId v) {
    if (b.type(v) != b.type(x) || !wanted(v))
      return false;
    auto s = b.broadcast(b.shape(x), b.shape(v));
    return s && b.fits(*s);
  });
  if (y != kNoValue && b.rng.chance(75))
    return y;
  // A suffix of x's dims, some of them 1.
  std::vector<int64_t> dims;
  auto from = static_cast<size_t>(b.rng.between(0, b.rank(x)));
  for (size_t d = from; d < b.shape(x).size(); ++d) {
    const DimExpr &e = b.shape(x)[d];
    dims.push_back(e.isConst() && b.rng.chance(70) ? e.constValue() : 1);
  }
  ValueId c = b.addConstant(b.type(x), dims);
  return wanted(c) ? c : y;
}

bool addFloatBinary(Builder &b) {
  using enum OpKind;
  OpKind op = b.rng.pick(std::vector<OpKind>{Add, Add, Sub, Mul, Mul, Div, Max, Min, Sum, Mean});
  ValueId x = b.pickFloat();
  if (x == kNoValue)
    return false;
  ValueId y =
      partner(b, x, [&](ValueId v) { return op != Div || awayFromZero(b.facts[size_t(v)]); });
  if (y == kNoValue)
    return false;
  const Facts &f = b.facts[size_t(x)], &g = b.facts[size_t(y)];
  Facts out;
  auto corners = [&](auto combine) {
    double c[] = {combine(f.low, g.low), combine(f.low, g.high), combine(f.high, g.low),
                  combine(f.high, g.high)};
    out.low = *std::min_element(c, c + 4);
    out.high = *std::max_element(c, c + 4);
  };
  double roundings = 1;
  switch (op) {
  case Mul:
    corners([](double p, double q) { return p * q; });
    out.error = f.largest() * g.error + g.largest() * f.error;
    break;
  case Div: {
    corners([](double p, double q) { return p / q; });
    double nearest = std::min(std::fabs(g.low), std::fabs(g.high));
    out.error = f.error / nearest + f.largest() * g.error / (nearest * nearest);
    break;
  }
  case Max:
  case Min:
    out = {std::min(f.low, g.low), std::max(f.high, g.high), std::max(f.error, g.error)};
    roundings = 0;
    break;
  case Sub: out = {f.low - g.high, f.high - g.low, f.error + g.error}; break;
  default: out = {f.low + g.low, f.high + g.high, f.error + g.error}; break;
  }
  if (op == Mean)
    out = {out.low / 2, out.high / 2, out.error};
  if (roundings > 0) {
    auto r = b.rounded(b.type(x), out, op == Mean ? 4 : roundings);
    if (!r)
      return false;
    out = *r;
  }
  b.addNode(op, {x, y}, {}, out);
  return true;
}

bool addIntBinary(Builder &b) {
  using enum OpKind;
  OpKind op = b.rng.pick(std::vector<OpKind>{Add, Sub, Mul, Div, Mod, Max, Min, BitwiseAnd,
                                             BitwiseOr, BitwiseXor, BitShift, And, Or, Xor});
  bool logical = op == And || op == Or || op == Xor;
  ValueId x = b.pick([&](ValueId v) {
    DType t = b.type(v);
    return logical ? t == DType::Bool : isInteger(t);
  });
  if (x == kNoValue)
    return false;
  ValueId y = partner(b, x, [](ValueId) { return true; });
  if (y == kNoValue)
    return false;
  Attributes attributes;
  if (op == Mod)
    attributes["fmod"] = b.rng.below(2);
  if (op == BitShift)
    attributes["direction"] = std::string(b.rng.chance(50) ? "LEFT" : "RIGHT");
  b.addNode(op, {x, y}, attributes, {});
  return true;
}

/// Comparisons jump: their operands must be exact.
bool addComparison(Builder &b) {
  using enum OpKind;
  OpKind op = b.rng.pick(std::vector<OpKind>{Equal, Less, LessOrEqual, Greater, GreaterOrEqual});
  auto usable = [&](ValueId v) {
    DType t = b.type(v);
    return (isFloat(t) ? b.facts[size_t(v)].exact() : isInteger(t) || op == Equal);
  };
  ValueId x = b.pick(usable);
  ValueId y = x == kNoValue ? x : partner(b, x, usable);
  if (y == kNoValue)
    return false;
  b.addNode(op, {x, y}, {}, {});
  return true;
}

bool addWhere(Builder &b) {
  ValueId c = b.pick([&](ValueId v) { return b.type(v) == DType::Bool; });
  ValueId x = c == kNoValue ? c : b.pick([&](ValueId v) {
    auto s = b.broadcast(b.shape(c), b.shape(v));
    return s && b.fits(*s);
  });
  ValueId y = x == kNoValue ? x : partner(b, x, [](ValueId) { return true; });
  if (y == kNoValue)
    return false;
  auto s = b.broadcast(b.shape(c), *b.broadcast(b.shape(x), b.shape(y)));
  if (!s || !b.fits(*s))
    return false;
  const Facts &f = b.facts[size_t(x)], &g = b.facts[size_t(y)];
  b.addNode(OpKind::Where, {c, x, y}, {},
            {std::min(f.low, g.low), std::max(f.high, g.high), std::max(f.error, g.error)});
  return true;
}

bool addCast(Builder &b) {
  DType to = static_cast<DType>(b.rng.below(kNumDTypes));
  ValueId x = b.pick([&](ValueId v) {
    DType from = b.type(v);
    if (isFloat(from))
      return isFloat(to) || b.facts[size_t(v)].exact();
    if (!isFloat(to))
      return true;
    return sizeInBytes(from) == 1; // larger integers leave the range of the floats here
  });
  if (x == kNoValue || b.type(x) == to)
    return false;
  Facts f = b.facts[size_t(x)];
  if (!isFloat(b.type(x)))
    f = {-128, 255, 0};
  if (isFloat(to) && !(isFloat(b.type(x)) && unitRoundoff(to) < unitRoundoff(b.type(x)))) {
    auto r = b.rounded(to, f);
    if (!r)
      return false;
    f = *r;
    if (!isFloat(b.type(x)))
      f.error = 0; // 8 bits fit every float type
  }
  b.addNode(OpKind::Cast, {x}, {{"to", to}, {"saturate", int64_t(1)}}, f);
  return true;
}

bool addClip(Builder &b) {
  ValueId x = b.pickFloat();
  if (x == kNoValue)
    return false;
  double low = -1.5, high = 2;
  Facts f = b.facts[size_t(x)];
  b.addNode(OpKind::Clip, {x, b.addScalar(b.type(x), low), b.addScalar(b.type(x), high)}, {},
            {std::clamp(f.low, low, high), std::clamp(f.high, low, high), f.error});
  return true;
}

} // namespace

const std::vector<Attempt> &mathsAttempts() {
  static const std::vector<Attempt> list = {
      addUnary,     addUnary,      addFloatBinary, addFloatBinary, addIntUnary,
      addIntBinary, addComparison, addWhere,       addCast,        addClip};
  return list;
}

} // namespace fusec::random
