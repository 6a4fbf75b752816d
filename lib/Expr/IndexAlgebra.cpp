#include "Expr/IndexAlgebra.h"

#include <algorithm>
#include <numeric>

namespace fusec {
namespace {

int64_t floorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

bool isSumOp(ScalarOp op) {
  return op == ScalarOp::Add || op == ScalarOp::Sub || op == ScalarOp::Mul || op == ScalarOp::Neg;
}

} // namespace

DimExpr IndexAlgebra::sum(const DimExpr &a, const DimExpr &b) {
  int64_t r;
  if (a.isConst() && b.isConst() && __builtin_add_overflow(a.constValue(), b.constValue(), &r)) {
    overflow = true;
    return 0;
  }
  return a + b;
}

DimExpr IndexAlgebra::product(const DimExpr &a, const DimExpr &b) {
  int64_t r;
  if (a.isConst() && b.isConst() && __builtin_mul_overflow(a.constValue(), b.constValue(), &r)) {
    overflow = true;
    return 0;
  }
  return a * b;
}

void IndexAlgebra::addTerm(LinearForm &to, NodeId atom, const DimExpr &coefficient) {
  for (size_t i = 0; i < to.terms.size(); ++i) {
    if (to.terms[i].atom != atom)
      continue;
    to.terms[i].coefficient = sum(to.terms[i].coefficient, coefficient);
    if (to.terms[i].coefficient.isConst(0))
      to.terms.erase(to.terms.begin() + static_cast<ptrdiff_t>(i));
    return;
  }
  if (!coefficient.isConst(0))
    to.terms.push_back({atom, coefficient});
}

void IndexAlgebra::add(LinearForm &to, const LinearForm &f, const DimExpr &factor) {
  for (const auto &t : f.terms)
    addTerm(to, t.atom, product(t.coefficient, factor));
  to.constant = sum(to.constant, product(f.constant, factor));
}

LinearForm IndexAlgebra::linear(NodeId id) {
  const Scalar &s = body[id];
  LinearForm f;
  switch (s.op) {
  case ScalarOp::Const: f.constant = s.imm; return f;
  case ScalarOp::Dim: f.constant = s.dim; return f;
  case ScalarOp::Add:
  case ScalarOp::Sub:
    f = linear(s.args[0]);
    add(f, linear(body[id].args[1]), s.op == ScalarOp::Add ? 1 : -1);
    return f;
  case ScalarOp::Neg: add(f, linear(s.args[0]), -1); return f;
  case ScalarOp::Mul: {
    LinearForm a = linear(s.args[0]), b = linear(body[id].args[1]);
    if (b.isConstant() || a.isConstant()) {
      add(f, b.isConstant() ? a : b, b.isConstant() ? b.constant : a.constant);
      return f;
    }
    break;
  }
  default: break;
  }
  f.terms.push_back({id, 1});
  return f;
}

NodeId IndexAlgebra::constantNode(const DimExpr &d) {
  Scalar s{d.isConst() ? ScalarOp::Const : ScalarOp::Dim, DType::I64, {}, 0, 0, 0, 0};
  if (d.isConst())
    s.imm = d.constValue();
  else
    s.dim = d;
  return body.addExact(std::move(s));
}

NodeId IndexAlgebra::build(LinearForm f) {
  recombine(f);
  if (overflow)
    return kNoNode;
  std::sort(f.terms.begin(), f.terms.end(),
            [&](const auto &a, const auto &b) { return compare(a.atom, b.atom) < 0; });
  NodeId result = kNoNode;
  auto append = [&](NodeId term) {
    result = result == kNoNode
                 ? term
                 : body.addExact({ScalarOp::Add, DType::I64, {result, term}, 0, 0, 0, 0});
  };
  for (const auto &t : f.terms)
    append(
        t.coefficient.isConst(1)
            ? t.atom
            : body.addExact(
                  {ScalarOp::Mul, DType::I64, {t.atom, constantNode(t.coefficient)}, 0, 0, 0, 0}));
  if (result == kNoNode || !f.constant.isConst(0))
    append(constantNode(f.constant));
  return result;
}

int IndexAlgebra::compare(NodeId a, NodeId b) {
  if (a == b)
    return 0;
  const Scalar &x = body[a], &y = body[b];
  if (x.op != y.op)
    return x.op < y.op ? -1 : 1;
  if (x.index != y.index)
    return x.index < y.index ? -1 : 1;
  if (x.imm != y.imm)
    return x.imm < y.imm ? -1 : 1;
  if (x.dim != y.dim)
    return x.dim.structurallyLess(y.dim) ? -1 : 1;
  if (x.args.size() != y.args.size())
    return x.args.size() < y.args.size() ? -1 : 1;
  for (size_t i = 0; i < x.args.size(); ++i)
    if (int c = compare(x.args[i], y.args[i]))
      return c;
  return a < b ? -1 : 1;
}

/// c*(y floormod m) + c*m*(y floordiv m) -> c*y, and
/// c*(y floormod m) + c*m*((y floordiv m + b) floormod k) -> c*((y + b*m) floormod (m*k)).
bool IndexAlgebra::recombineOnce(LinearForm &f) {
  for (size_t i = 0; i < f.terms.size(); ++i) {
    const auto [modAtom, c] = f.terms[i];
    const Scalar mod = body[modAtom];
    DimExpr m;
    if (mod.op != ScalarOp::FloorMod || !positiveConstant(mod.args[1], m))
      continue;
    NodeId quotient = divide(mod.args[0], mod.args[1]);
    if (quotient == kNoNode)
      return false;
    DimExpr scaled = product(c, m);
    for (size_t j = 0; j < f.terms.size(); ++j) {
      if (j == i || f.terms[j].coefficient != scaled)
        continue;
      const NodeId other = f.terms[j].atom;
      const Scalar o = body[other];
      DimExpr k;
      LinearForm ahead, shifted; // b, and y + b*m
      bool whole = other == quotient;
      if (!whole) {
        if (o.op != ScalarOp::FloorMod || !positiveConstant(o.args[1], k))
          continue;
        ahead = linear(o.args[0]);
        add(ahead, linear(quotient), -1);
        if (!ahead.isConstant())
          continue;
        shifted = linear(mod.args[0]);
        shifted.constant = sum(shifted.constant, product(ahead.constant, m));
        if (!ahead.constant.isConst(0) && mayWrap(shifted))
          continue;
      }
      addTerm(f, other, product(scaled, -1));
      addTerm(f, modAtom, product(c, -1));
      if (whole) {
        add(f, linear(mod.args[0]), c);
      } else {
        DimExpr mk = product(m, k);
        const NodeId y = overflow ? kNoNode : build(std::move(shifted));
        NodeId joined = y == kNoNode ? kNoNode : remainder(y, constantNode(mk));
        if (joined == kNoNode)
          overflow = true;
        else
          add(f, linear(joined), c);
      }
      return !overflow;
    }
  }
  return false;
}

void IndexAlgebra::recombine(LinearForm &f) {
  if (f.terms.size() < 2)
    return;
  while (!overflow && recombineOnce(f)) {
  }
}

void IndexAlgebra::split(const LinearForm &f, const DimExpr &divisor, LinearForm &quotient,
                         LinearForm &rest) {
  for (const auto &t : f.terms) {
    if (auto q = exactQuotient(t.coefficient, divisor))
      quotient.terms.push_back({t.atom, *q});
    else
      rest.terms.push_back(t);
  }
  if (f.constant.isConst() && divisor.isConst()) {
    int64_t q = floorDivide(f.constant.constValue(), divisor.constValue());
    quotient.constant = q;
    rest.constant = f.constant.constValue() - q * divisor.constValue();
    return;
  }
  std::vector<DimExpr> parts = f.constant.op() == DimExpr::Op::Add
                                   ? f.constant.operands()
                                   : std::vector<DimExpr>{f.constant};
  for (const DimExpr &part : parts) {
    auto q = exactQuotient(part, divisor);
    (q ? quotient : rest).constant = q ? quotient.constant + *q : rest.constant + part;
  }
}

bool IndexAlgebra::splitNearest(LinearForm &quotient, LinearForm &rest, const DimExpr &divisor) {
  bool isSplit = false;
  for (const LinearForm::Term &t : std::vector(rest.terms)) {
    const DimExpr &c = t.coefficient;
    DimExpr times = 0;
    if (c.isConst() && divisor.isConst()) {
      const int64_t d = divisor.constValue(), low = floorDivide(c.constValue(), d);
      const int64_t over = c.constValue() - low * d;
      times = low + (over > d / 2 ? 1 : 0);
    } else if (c.op() == DimExpr::Op::Add && c.operands().back().isConst()) {
      times = exactQuotient(c - c.operands().back(), divisor).value_or(0);
    }
    if (times.isConst(0))
      continue;
    addTerm(quotient, t.atom, times);
    addTerm(rest, t.atom, product(product(times, divisor), -1));
    isSplit = true;
  }
  return isSplit && !overflow && within(rest, divisor);
}

bool IndexAlgebra::within(const LinearForm &f, const DimExpr &limit) {
  if (!provablyNonNegative(f))
    return false;
  LinearForm room;
  room.constant = limit - 1;
  add(room, f, -1);
  return provablyNonNegative(room);
}

std::vector<DimExpr> IndexAlgebra::commonFactors(const LinearForm &f, const DimExpr &divisor) {
  std::vector<DimExpr> found;
  for (const auto &t : f.terms) {
    DimExpr g = t.coefficient;
    if (t.coefficient.isConst() && divisor.isConst())
      g = std::gcd(t.coefficient.constValue(), divisor.constValue());
    else if (!exactQuotient(divisor, g))
      continue;
    if (!g.isConst(1) && isPositive(g) && std::find(found.begin(), found.end(), g) == found.end())
      found.push_back(g);
  }
  std::sort(found.begin(), found.end(), [](const DimExpr &a, const DimExpr &b) {
    if (a.isConst() && b.isConst())
      return a.constValue() > b.constValue();
    return a.isConst() != b.isConst() ? b.isConst() : a.structurallyLess(b);
  });
  return found;
}

NodeId IndexAlgebra::divide(NodeId dividend, NodeId divisor) {
  DimExpr d;
  LinearForm f = linear(dividend);
  if (overflow || !positiveConstant(divisor, d))
    return kNoNode;
  if (d.isConst(1))
    return dividend;
  auto exact = [&] {
    return body.addExact({ScalarOp::FloorDiv, DType::I64, {dividend, divisor}, 0, 0, 0, 0});
  };
  if (mayWrap(f))
    return exact();
  LinearForm quotient, rest;
  split(f, d, quotient, rest);
  if (within(rest, d))
    return build(std::move(quotient));
  if (LinearForm more = quotient, less = rest; splitNearest(more, less, d))
    return build(std::move(more));
  auto withQuotient = [&](NodeId divided) {
    if (divided == kNoNode)
      return kNoNode;
    add(quotient, linear(divided), 1);
    return build(std::move(quotient));
  };

  // floordiv(floordiv(x, a) + y, d) = floordiv(x + a*y, a*d)
  size_t divisions = 0, divisionTerm = 0;
  DimExpr inner;
  for (size_t i = 0; i < rest.terms.size(); ++i) {
    const Scalar &s = body[rest.terms[i].atom];
    if (s.op == ScalarOp::FloorDiv && rest.terms[i].coefficient.isConst(1) &&
        positiveConstant(s.args[1], inner)) {
      ++divisions;
      divisionTerm = i;
    }
  }
  if (divisions == 1) {
    NodeId numerator = body[rest.terms[divisionTerm].atom].args[0];
    positiveConstant(body[rest.terms[divisionTerm].atom].args[1], inner);
    rest.terms.erase(rest.terms.begin() + static_cast<ptrdiff_t>(divisionTerm));
    LinearForm whole = linear(numerator);
    add(whole, rest, inner);
    DimExpr wholeDivisor = product(inner, d);
    NodeId node = build(std::move(whole));
    return node == kNoNode ? kNoNode : withQuotient(divide(node, constantNode(wholeDivisor)));
  }

  // floordiv(g*a + r, g*e) = floordiv(a, e) where 0 <= r < g
  for (const DimExpr &g : commonFactors(rest, d)) {
    LinearForm multiple, small;
    split(rest, g, multiple, small);
    auto e = exactQuotient(d, g);
    if (multiple.terms.empty() || !e || !within(small, g))
      continue;
    NodeId node = build(std::move(multiple));
    return node == kNoNode ? kNoNode : withQuotient(divide(node, constantNode(*e)));
  }

  // floordiv(x floormod (d*k), d) = floordiv(x, d) floormod k
  if (rest.terms.size() == 1 && rest.constant.isConst(0) && rest.terms[0].coefficient.isConst(1)) {
    const Scalar s = body[rest.terms[0].atom];
    DimExpr m;
    if (s.op == ScalarOp::FloorMod && positiveConstant(s.args[1], m))
      if (auto k = exactQuotient(m, d)) {
        NodeId node = divide(s.args[0], constantNode(d));
        return node == kNoNode ? kNoNode : withQuotient(remainder(node, constantNode(*k)));
      }
  }
  NodeId numerator = build(std::move(rest));
  if (numerator == kNoNode)
    return kNoNode;
  IndexRange r = body.rangeOf(numerator);
  if (d.isConst() && r.min != INT64_MIN && r.max != INT64_MAX &&
      floorDivide(r.min, d.constValue()) == floorDivide(r.max, d.constValue()))
    return withQuotient(constantNode(floorDivide(r.min, d.constValue())));
  return withQuotient(
      body.addExact({ScalarOp::FloorDiv, DType::I64, {numerator, constantNode(d)}, 0, 0, 0, 0}));
}

NodeId IndexAlgebra::remainder(NodeId dividend, NodeId divisor) {
  DimExpr d;
  LinearForm f = linear(dividend);
  if (overflow || !positiveConstant(divisor, d))
    return kNoNode;
  if (d.isConst(1))
    return constantNode(0);
  if (mayWrap(f))
    return body.addExact({ScalarOp::FloorMod, DType::I64, {dividend, divisor}, 0, 0, 0, 0});
  LinearForm quotient, rest;
  split(f, d, quotient, rest);
  // (x floormod m)*c, c*m a multiple of d, is x*c modulo d
  for (size_t i = 0; i < rest.terms.size(); ++i) {
    const Scalar s = body[rest.terms[i].atom];
    const DimExpr c = rest.terms[i].coefficient;
    DimExpr m;
    if (s.op != ScalarOp::FloorMod || !positiveConstant(s.args[1], m) ||
        !exactQuotient(product(c, m), d))
      continue;
    rest.terms.erase(rest.terms.begin() + static_cast<ptrdiff_t>(i));
    add(rest, linear(s.args[0]), c);
    NodeId node = build(std::move(rest));
    return node == kNoNode ? kNoNode : remainder(node, divisor);
  }
  if (within(rest, d))
    return build(std::move(rest));
  if (LinearForm more = quotient, less = rest; splitNearest(more, less, d))
    return build(std::move(less));

  // (g*a + r) floormod (g*e) = g*(a floormod e) + r where 0 <= r < g
  for (const DimExpr &g : commonFactors(rest, d)) {
    LinearForm multiple, small;
    split(rest, g, multiple, small);
    auto e = exactQuotient(d, g);
    if (multiple.terms.empty() || !e || !within(small, g))
      continue;
    NodeId node = build(std::move(multiple));
    NodeId reduced = node == kNoNode ? kNoNode : remainder(node, constantNode(*e));
    if (reduced == kNoNode)
      return kNoNode;
    add(small, linear(reduced), g);
    return build(std::move(small));
  }
  NodeId numerator = build(std::move(rest));
  if (numerator == kNoNode)
    return kNoNode;
  IndexRange r = body.rangeOf(numerator);
  if (d.isConst() && r.min != INT64_MIN && r.max != INT64_MAX &&
      floorDivide(r.min, d.constValue()) == floorDivide(r.max, d.constValue())) {
    LinearForm shifted = linear(numerator);
    shifted.constant = sum(shifted.constant, -d.constValue() * floorDivide(r.min, d.constValue()));
    return build(std::move(shifted));
  }
  return body.addExact({ScalarOp::FloorMod, DType::I64, {numerator, constantNode(d)}, 0, 0, 0, 0});
}

NodeId IndexAlgebra::simplify(const Scalar &s) {
  overflow = false;
  if (s.op == ScalarOp::FloorDiv || s.op == ScalarOp::FloorMod) {
    NodeId r =
        s.op == ScalarOp::FloorDiv ? divide(s.args[0], s.args[1]) : remainder(s.args[0], s.args[1]);
    return overflow ? kNoNode : r;
  }
  assert(isSumOp(s.op));
  LinearForm f;
  if (s.op == ScalarOp::Mul) {
    LinearForm a = linear(s.args[0]), b = linear(s.args[1]);
    if (!a.isConstant() && !b.isConstant())
      return overflow || compare(s.args[0], s.args[1]) <= 0
                 ? kNoNode
                 : body.addExact({s.op, s.type, {s.args[1], s.args[0]}, 0, 0, 0, 0});
    add(f, b.isConstant() ? a : b, b.isConstant() ? b.constant : a.constant);
  } else {
    f = linear(s.args[0]);
    if (s.op == ScalarOp::Neg) {
      LinearForm negated;
      add(negated, f, -1);
      f = std::move(negated);
    } else {
      add(f, linear(s.args[1]), s.op == ScalarOp::Add ? 1 : -1);
    }
  }
  NodeId r = overflow ? kNoNode : build(std::move(f));
  return overflow ? kNoNode : r;
}

NodeId IndexAlgebra::simplifyComparison(const Scalar &s) {
  overflow = false;
  LinearForm room = linear(s.args[1]); // right side minus left side
  add(room, linear(s.args[0]), -1);
  if (overflow || mayWrap(room))
    return kNoNode;
  auto truth = [&](bool v) {
    return body.addExact({ScalarOp::Const, DType::Bool, {}, 0, v, 0, 0});
  };
  LinearForm back;
  add(back, room, -1);
  if (s.op == ScalarOp::Eq || s.op == ScalarOp::Ne) {
    bool same = room.isConstant() && room.constant.isConst(0);
    LinearForm above = room, below = back;
    above.constant = sum(above.constant, -1);
    below.constant = sum(below.constant, -1);
    bool different = !same && (provablyNonNegative(above) || provablyNonNegative(below));
    if (overflow || !(same || different))
      return kNoNode;
    return truth(same == (s.op == ScalarOp::Eq));
  }
  // Lt is "room - 1 >= 0", Le "room >= 0"; the opposite is "-room >= 0", "-room - 1 >= 0".
  if (s.op == ScalarOp::Lt)
    room.constant = sum(room.constant, -1);
  else
    back.constant = sum(back.constant, -1);
  if (overflow)
    return kNoNode;
  if (provablyNonNegative(room))
    return truth(true);
  if (provablyNonNegative(back))
    return truth(false);
  if (overflow)
    return kNoNode;
  int64_t g = 0;
  for (const auto &t : room.terms)
    g = t.coefficient.isConst() ? std::gcd(g, t.coefficient.constValue()) : 1;
  if (g > 1 && room.constant.isConst()) { // 4*i + 7 >= 0 is i + 1 >= 0
    for (auto &t : room.terms)
      t.coefficient = t.coefficient.constValue() / g;
    room.constant = floorDivide(room.constant.constValue(), g);
  }
  // room >= 0 with the negative parts moved to the left: lt(left, right + 1)
  LinearForm left, right;
  for (const auto &t : room.terms) {
    bool negative = t.coefficient.range(body.symbolTable).max <= 0;
    (negative ? left : right)
        .terms.push_back({t.atom, negative ? product(t.coefficient, -1) : t.coefficient});
  }
  DimExpr constant = sum(room.constant, 1);
  bool constantLeft =
      right.terms.empty() ? false : left.terms.empty() || constant.range(body.symbolTable).max <= 0;
  (constantLeft ? left : right).constant = constantLeft ? product(constant, -1) : constant;
  NodeId l = build(std::move(left)), r = build(std::move(right));
  if (overflow || l == kNoNode || r == kNoNode)
    return kNoNode;
  return body.addExact({ScalarOp::Lt, DType::Bool, {l, r}, 0, 0, 0, 0});
}

} // namespace fusec
