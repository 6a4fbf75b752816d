// When can a reduction that uses the result of another one run in the same pass? With r the other result, folded by
// (+)1, and the value g(x, r), folded by (+)2: where g takes r apart from the element x in a way that (+)2 lets
// through. The result over the points seen so far then needs a correction alone when r changes. Three ways, tried in
// this order:
//
//   sums in max, min      g = A(x) + B(r)        fold A; the result is that plus B(r), at the end
//   factors               g = G(x) * P(r) * e^(A(x) + B(r))
//                         fold G * e^(A + B(r so far)); when r changes, times e^(B(new) - B(old)); at the end times
//                         P(r)
//   squared deviations    g = c0(x) + c1(x) rho + c2 rho^2, rho = s/n, n points, s the sum of a multiple of c1
//                         fold g at the mean so far; when the mean goes from rho to rho', plus n c2 (rho' - rho)^2
//
// Softmax's sum of e^(x - max) is a factor with B(r) = -r:
//
//   max r:  state(0)        value:       exp(sub(%x[i, k], state(0)))
//                           correction:  mul(part(1), exp(sub(part(0), state(0))))
//
// Nothing may overflow, or vanish, that the two passes keep. So an exponent takes a maximum or minimum off what that is
// taken of: x minus the maximum so far lies between 0 and its last value. With a mean in place of the maximum, e^(x -
// mean so far) is infinite for x = 1000 before the mean has grown; that takes two passes. And a square of scaled
// elements, (x/r)^2, keeps its scale, since x^2 alone might overflow. P, which might be zero, waits for the end, so
// nothing is ever divided by. A maximum over no points, or over a masked row, is -inf, which no difference survives: it
// counts as 0 there, and what has folded nothing but neutral elements is not corrected.
//
// The variance is the third way: rho = sum/n of all points gives way to that of the points so far, around which the
// deviations cancel; what is left of the binomial is the merge of Chan, Golub and LeVeque. Any other point of
// reference would be right too, and useless: squares of numbers that are far from it lose the digits that the result
// is made of.
//
// Not handled: powers and products of exponents with elements (e^(x r)), functions of x + r other than exp, cubes and
// higher moments, products as (+)2. Source: the recipe for cascaded reductions that follows from online softmax
// (Milakov and Gimelshein 2018) and from parallel variance (Chan, Golub, LeVeque 1979).
#include "Expr/transforms/CascadeAlgebra.h"

#include "Expr/transforms/Polynomial.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>
#include <map>

namespace fusec {
namespace {

class Algebra {
public:
  Algebra(Body &body, const CascadedValue &what) : body(body), what(what) {}

  Separation run() {
    Separation out;
    const bool extreme = what.monoid == Monoid::Max || what.monoid == Monoid::Min;
    if (what.monoid != Monoid::Sum && !extreme) {
      out.refusal = "nothing moves out of a reduction by " + std::string(name(what.monoid));
      return out;
    }
    if (extreme)
      if (std::optional<Terms> terms = splitTerms(what.value)) {
        out.value = terms->elements == kNoNode ? body.constant(what.type, 0) : terms->elements;
        out.finish = ScalarOp::Add;
        out.rest = terms->states;
        return out;
      }
    reason.clear();
    if (std::optional<Factors> factors = splitFactors(what.value))
      return byFactors(*factors);
    const std::string why = reason;
    if (what.monoid == Monoid::Sum && squares(out))
      return out;
    out = Separation();
    out.refusal = why;
    return out;
  }

private:
  /// elements + states; kNoNode: 0.
  struct Terms {
    NodeId elements = kNoNode, states = kNoNode;
  };
  /// elements * rest, where e^exponent is a factor of `elements` that depends on states; kNoNode: 1, 1, 0.
  struct Factors {
    NodeId elements = kNoNode, rest = kNoNode, exponent = kNoNode;
  };

  bool has(NodeId root, ScalarOp op) const {
    for (NodeId id : body.reachable({root}))
      if (body[id].op == op)
        return true;
    return false;
  }
  bool hasState(NodeId id) const { return has(id, ScalarOp::State); }
  bool varies(NodeId root) const { // from point to point
    for (NodeId id : body.reachable({root}))
      if (body[id].op == ScalarOp::Axis && body[id].index >= what.numSpatial)
        return true;
    return false;
  }

  std::nullopt_t refuse(const std::string &why) {
    if (reason.empty())
      reason = why;
    return std::nullopt;
  }
  std::nullopt_t mixes(NodeId id) {
    return refuse(std::string(mnemonic(body[id].op)) +
                  " mixes its elements with a result that is still changing");
  }

  NodeId join(ScalarOp op, NodeId a, NodeId b) {
    if (b == kNoNode)
      return a;
    if (a == kNoNode) {
      if (op == ScalarOp::Sub)
        return body.unary(ScalarOp::Neg, b);
      if (op == ScalarOp::Div)
        return body.binary(ScalarOp::Div, body.constant(what.type, 1), b);
      return b;
    }
    return body.binary(op, a, b);
  }

  std::optional<Terms> splitTerms(NodeId id) {
    if (!hasState(id))
      return Terms{id, kNoNode};
    if (!varies(id))
      return Terms{kNoNode, id};
    const Scalar s = body[id];
    auto part = [&](size_t i) { return splitTerms(s.args[i]); };
    switch (s.op) {
    case ScalarOp::Add:
    case ScalarOp::Sub:
      if (auto a = part(0), b = a ? part(1) : std::nullopt; a && b)
        return Terms{join(s.op, a->elements, b->elements), join(s.op, a->states, b->states)};
      return std::nullopt;
    case ScalarOp::Neg:
      if (auto a = part(0))
        return Terms{join(ScalarOp::Sub, kNoNode, a->elements),
                     join(ScalarOp::Sub, kNoNode, a->states)};
      return std::nullopt;
    case ScalarOp::Mul:
    case ScalarOp::Div:
      for (size_t constant : {1, 0}) {
        const NodeId by = s.args[constant];
        if (hasState(by) || varies(by) || (s.op == ScalarOp::Div && constant == 0))
          continue;
        auto a = part(1 - constant);
        if (!a)
          return std::nullopt;
        auto scaled = [&](NodeId n) { return n == kNoNode ? n : body.binary(s.op, n, by); };
        return Terms{scaled(a->elements), scaled(a->states)};
      }
      return mixes(id);
    default: return mixes(id);
    }
  }

  std::optional<Factors> splitFactors(NodeId id) {
    if (!hasState(id))
      return Factors{id, kNoNode, kNoNode};
    if (!varies(id))
      return Factors{kNoNode, id, kNoNode};
    const Scalar s = body[id];
    auto part = [&](size_t i) { return splitFactors(s.args[i]); };
    switch (s.op) {
    case ScalarOp::Mul:
    case ScalarOp::Div:
      if (auto a = part(0), b = a ? part(1) : std::nullopt; a && b) {
        if (a->rest != kNoNode && b->rest != kNoNode && a->elements != kNoNode &&
            a->elements == b->elements)
          return refuse("squares elements that are scaled, which may be too large or small to be "
                        "squared as they are");
        return Factors{
            join(s.op, a->elements, b->elements), join(s.op, a->rest, b->rest),
            join(s.op == ScalarOp::Mul ? ScalarOp::Add : ScalarOp::Sub, a->exponent, b->exponent)};
      }
      return std::nullopt;
    case ScalarOp::Neg:
    case ScalarOp::Abs:
      if (auto a = part(0)) {
        if (s.op == ScalarOp::Abs && a->rest != kNoNode)
          a->rest = body.unary(s.op, a->rest);
        a->elements = body.unary(s.op, a->elements);
        return a;
      }
      return std::nullopt;
    case ScalarOp::Exp:
      if (auto terms = splitTerms(s.args[0])) {
        if (!isBounded(*terms))
          return refuse(
              "exp may overflow before the results in its exponent have their last values");
        return Factors{id, kNoNode, terms->states};
      }
      return std::nullopt;
    default: return mixes(id);
    }
  }

  /// While the states change, elements + states lies between 0 and what it comes to in the end: the states are maxima
  /// or minima, and for a point that is one itself the sum is 0, or would be but for a number that limits the state.
  bool isBounded(const Terms &terms) {
    NodeId own = terms.states; // with the point's own values for the states
    for (NodeId id : body.reachable({terms.states}))
      if (const Scalar state = body[id]; state.op == ScalarOp::State) {
        const auto s = static_cast<size_t>(state.index);
        if (what.monoids[s] != Monoid::Max && what.monoids[s] != Monoid::Min)
          return false;
        own = replace(own, id, what.values[s]);
      }
    const Polynomial sum = plus(polynomial(terms.elements), polynomial(own), 1);
    return sum.empty() || std::any_of(sum.begin(), sum.end(), [&](const auto &term) {
             const auto &[atoms, factor] = term;
             const Scalar &limited = body[atoms.empty() ? own : atoms[0]];
             return atoms.size() == 1 &&
                    (limited.op == ScalarOp::Max || limited.op == ScalarOp::Min ||
                     limited.op == ScalarOp::Select) &&
                    std::any_of(limited.args.begin(), limited.args.end(), [&](NodeId value) {
                      return plus(plus(sum, {{atoms, 1}}, -factor), polynomial(value), factor)
                          .empty();
                    });
           });
  }

  Separation byFactors(const Factors &factors) {
    Separation out;
    if (factors.rest != kNoNode && what.monoid != Monoid::Sum) {
      out.refusal = "a factor whose sign is not known does not move out of a reduction by " +
                    std::string(name(what.monoid));
      return out;
    }
    out.rest = factors.rest;
    out.value = factors.elements == kNoNode ? body.constant(what.type, 1) : factors.elements;
    if (factors.exponent == kNoNode)
      return out;
    const Scalar exponent = body[factors.exponent];
    const bool negative = exponent.op == ScalarOp::Neg;
    const NodeId term = negative ? exponent.args[0] : factors.exponent;
    const NodeId to = withStates(term, negative ? ScalarOp::Part : ScalarOp::State);
    const NodeId from = withStates(term, negative ? ScalarOp::State : ScalarOp::Part);
    out.value = withStates(out.value, ScalarOp::State);
    const NodeId own = body.part(static_cast<int32_t>(what.values.size()), what.type);
    const NodeId moved = body.binary(
        ScalarOp::Mul, own, body.unary(ScalarOp::Exp, body.binary(ScalarOp::Sub, to, from)));
    const NodeId neutral = identityOf(body, what.monoid, what.type);
    out.correction = body.select(body.binary(ScalarOp::Eq, own, neutral), own, moved);
    return out;
  }

  /// The node with its State leaves as `leaf` ones, 0 where a maximum or minimum has seen no number.
  NodeId withStates(NodeId root, ScalarOp leaf) {
    const Body from = body;
    return body.import(from, root, [&](const Scalar &s, NodeId) -> NodeId {
      if (s.op != ScalarOp::State)
        return kNoNode;
      const NodeId state =
          leaf == ScalarOp::State ? body.state(s.index, s.type) : body.part(s.index, s.type);
      const Monoid m = what.monoids[static_cast<size_t>(s.index)];
      if (m != Monoid::Max && m != Monoid::Min)
        return state;
      const NodeId empty = body.binary(ScalarOp::Eq, state, identityOf(body, m, s.type));
      return body.select(empty, body.constant(s.type, 0), state);
    });
  }

  // Squared deviations.

  Polynomial polynomial(NodeId id) const {
    return polynomialOf(body, id, [this](NodeId n) { return varies(n); });
  }

  bool isNumberOfPoints(NodeId id) const {
    const Scalar &s = body[id];
    if (s.op == ScalarOp::Const)
      return what.points.isConst() && s.fimm == static_cast<double>(what.points.constValue());
    return s.op == ScalarOp::Cast && body[s.args[0]].op == ScalarOp::Dim &&
           body[s.args[0]].dim == what.points;
  }

  /// rho = sum / weight, where both are states, or the weight (-1) is the number of points.
  struct Mean {
    int sum = -1, weight = -1;
  };
  std::optional<Mean> meanOf(NodeId rho) const {
    const Scalar &s = body[rho];
    if (s.op != ScalarOp::Div && s.op != ScalarOp::Mul)
      return std::nullopt;
    const Scalar &a = body[s.args[0]], &b = body[s.args[1]];
    auto isSum = [&](const Scalar &state) {
      return state.op == ScalarOp::State &&
             what.monoids[static_cast<size_t>(state.index)] == Monoid::Sum;
    };
    if (!isSum(a))
      return std::nullopt;
    if (s.op == ScalarOp::Mul) // by the inverse, where that is exact
      return b.op == ScalarOp::Const && what.points.isConst() &&
                     b.fimm * static_cast<double>(what.points.constValue()) == 1
                 ? std::optional(Mean{a.index, -1})
                 : std::nullopt;
    if (isSum(b))
      return Mean{a.index, b.index};
    return isNumberOfPoints(s.args[1]) ? std::optional(Mean{a.index, -1}) : std::nullopt;
  }

  /// sum / weight of the points so far, 0 where there are none.
  NodeId meanSoFar(const Mean &mean, ScalarOp leaf) {
    auto state = [&](int s) {
      return leaf == ScalarOp::State ? body.state(s, what.type) : body.part(s, what.type);
    };
    const NodeId weight = state(mean.weight), zero = body.constant(what.type, 0);
    return body.select(body.binary(ScalarOp::Eq, weight, zero), zero,
                       body.binary(ScalarOp::Div, state(mean.sum), weight));
  }

  NodeId replace(NodeId root, NodeId what_, NodeId by) {
    std::map<NodeId, NodeId> copy{{what_, by}};
    for (NodeId id : body.reachable({root})) {
      if (copy.count(id) != 0)
        continue;
      Scalar s = body[id];
      bool changed = false;
      for (NodeId &a : s.args) {
        const NodeId to = copy.count(a) != 0 ? copy.at(a) : a;
        changed = changed || to != a;
        a = to;
      }
      if (changed)
        copy[id] = body.add(std::move(s));
    }
    return copy.count(root) != 0 ? copy.at(root) : root;
  }

  bool squares(Separation &out) {
    Polynomial powers[3]; // coefficients of rho^0, rho^1, rho^2
    NodeId rho = kNoNode;
    for (const auto &[atoms, c] : polynomial(what.value)) {
      std::vector<NodeId> rest;
      size_t power = 0;
      for (NodeId atom : atoms) {
        if (!hasState(atom)) {
          rest.push_back(atom);
          continue;
        }
        if (varies(atom) || (rho != kNoNode && atom != rho))
          return false;
        rho = atom;
        ++power;
      }
      if (power > 2)
        return false;
      powers[power][rest] += c;
    }
    std::optional<Mean> mean = rho == kNoNode ? std::nullopt : meanOf(rho);
    if (!mean)
      return false;
    const Polynomial one{{{}, 1}};
    std::optional<double> slope =
        ratio(powers[1], polynomial(what.values[static_cast<size_t>(mean->sum)]));
    std::optional<double> curve =
        ratio(powers[2],
              mean->weight < 0 ? one : polynomial(what.values[static_cast<size_t>(mean->weight)]));
    // The sum of the first derivatives, slope * s + 2 * curve * n * rho, vanishes at the mean alone.
    if (!slope || !curve || *slope != -2 * *curve)
      return false;
    out.counts = mean->weight < 0;
    const int own = static_cast<int>(what.values.size()) + (out.counts ? 1 : 0);
    if (out.counts)
      mean->weight = static_cast<int>(what.values.size());
    const NodeId to = meanSoFar(*mean, ScalarOp::State), from = meanSoFar(*mean, ScalarOp::Part);
    out.value = replace(what.value, rho, to);
    const NodeId distance = body.binary(ScalarOp::Sub, to, from);
    NodeId moved = body.binary(
        ScalarOp::Mul, body.binary(ScalarOp::Mul, body.part(mean->weight, what.type), distance),
        distance);
    moved = body.binary(ScalarOp::Mul, body.constant(what.type, *curve), moved);
    out.correction = body.binary(ScalarOp::Add, body.part(own, what.type), moved);
    return true;
  }

  Body &body;
  const CascadedValue &what;
  std::string reason;
};

} // namespace

Separation separate(Body &body, const CascadedValue &what) { return Algebra(body, what).run(); }

} // namespace fusec
