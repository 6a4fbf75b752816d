// Factors that a sum does not run over leave it: a sum is linear, so that one multiplication or division behind it
// stands for one a term. Attention's weighted sum over t, whose weights are divided by a row's sum,
//
//   map p [s:128, t:128]
//     %p = div(%e[s, t], %l[s])
//   reduction o [s:128, d:64; t:128] sum f32
//     %o = mul(%p[s, t], %v[t, d])
//
// becomes
//
//   reduction o.sum [s:128, d:64; t:128] sum f32
//     %o.sum = mul(%e[s, t], %v[t, d])
//   map o [s:128, d:64]
//     %o = div(%o.sum[s, d], %l[s])
//
// A map in front is looked into where it is a product or quotient of reads, since writing it into the sum then repeats
// no work; it goes where nobody else reads it. Only factors in the type that the sum accumulates in move.
//
// The values change by rounding, and where a divisor is zero or a sum comes near the largest number of its type, also
// in whether they are finite: an alternative and no pass. A square of scaled elements, as in a norm of x/max(abs(x)),
// keeps its scale: those elements may be far too large or small to be squared as they are. Not handled: sums inside
// scans, factors behind additions (sum of (a + b)/d) or behind padding.
#include "Expr/Alternatives.h"
#include "Expr/transforms/Inline.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>
#include <span>

namespace fusec {
namespace {

/// A result as a product and quotient of factors.
class Factors {
public:
  Factors(const Equation &e) : e(e), axes(axisDependences(e.body)) {
    for (int a = e.numSpatial; a < static_cast<int>(e.axes.size()); ++a)
      reduced |= uint64_t(1) << std::min(a, 63);
    collect(e.results[0], false);
  }
  struct Factor {
    NodeId node;
    bool divides;
  };
  std::vector<Factor> leaves;
  bool squaresScaled =
      false; // a product of elements and of what is read for all of them, by itself

  bool isFixed(NodeId id) const { return (axes[id] & reduced) == 0; }

private:
  void collect(NodeId id, bool divides) {
    const Scalar &s = e.body[id];
    if (s.type == e.accumulateType && (s.op == ScalarOp::Mul || s.op == ScalarOp::Div)) {
      const size_t first = leaves.size();
      collect(s.args[0], divides);
      if (s.op == ScalarOp::Mul && s.args[0] == s.args[1])
        squaresScaled = squaresScaled || isScaled(std::span(leaves).subspan(first));
      collect(s.args[1], divides != (s.op == ScalarOp::Div));
    } else {
      leaves.push_back({id, divides});
    }
  }

  bool isScaled(std::span<const Factor> factors) const {
    bool elements = false, scale = false;
    for (const Factor &f : factors) {
      const std::vector<NodeId> below = e.body.reachable({f.node});
      elements = elements || !isFixed(f.node);
      scale = scale || (isFixed(f.node) && std::any_of(below.begin(), below.end(), [&](NodeId id) {
                          return isRead(e.body[id]);
                        }));
    }
    return elements && scale;
  }

  const Equation &e;
  std::vector<uint64_t> axes;
  uint64_t reduced = 0;
};

bool isLinear(const Equation &e) {
  return e.kind == EquationKind::Reduction && e.monoid == Monoid::Sum &&
         (e.accumulateType == DType::F32 || e.accumulateType == DType::F64) &&
         e.body[e.results[0]].type == e.accumulateType;
}

/// A map whose one value is a product or quotient of reads and constants.
bool isProduct(const Equation &e, DType type) {
  if (e.kind != EquationKind::Map || e.outputs.size() != 1)
    return false;
  const Scalar &root = e.body[e.results[0]];
  if (root.type != type || (root.op != ScalarOp::Mul && root.op != ScalarOp::Div))
    return false;
  std::vector<NodeId> open = {e.results[0]};
  while (!open.empty()) {
    const Scalar &s = e.body[open.back()];
    open.pop_back();
    if (s.type == type && (s.op == ScalarOp::Mul || s.op == ScalarOp::Div))
      open.insert(open.end(), s.args.begin(), s.args.end());
    else if (s.op != ScalarOp::Read && s.op != ScalarOp::Const)
      return false;
  }
  return true;
}

class Deferral {
public:
  explicit Deferral(const ExprProgram &pattern) : program(pattern) {}

  std::optional<ExprProgram> run() {
    bool changed = false;
    for (size_t i = 0; i < program.items.size(); ++i) {
      const Equation &e = std::get<Equation>(program.items[i].value);
      if (!isLinear(e))
        continue;
      Equation sum = e;
      writeMapsInto(sum);
      if (!hasFixed(sum))
        continue;
      split(i, std::move(sum));
      changed = true;
      ++i; // the map behind it
    }
    if (!changed)
      return std::nullopt;
    dropUnneeded(program);
    return std::move(program);
  }

private:
  /// A factor that may leave, and one that stays.
  static bool hasFixed(const Equation &e) {
    const Factors factors(e);
    size_t fixed = 0;
    for (const Factors::Factor &f : factors.leaves)
      fixed += factors.isFixed(f.node);
    return fixed > 0 && fixed < factors.leaves.size() && !factors.squaresScaled;
  }

  const Equation *producerOf(TensorId t) const {
    if (program.tensors[t].kind == TensorKind::Temp)
      for (const Item &item : program.items) {
        const Equation &e = std::get<Equation>(item.value);
        if (std::count(e.outputs.begin(), e.outputs.end(), t) != 0)
          return &e;
      }
    return nullptr;
  }

  /// Maps that are products take the place of the sum's reads of them, where that frees a factor.
  void writeMapsInto(Equation &sum) const {
    const Factors factors(sum);
    std::vector<NodeId> reads;
    for (const Factors::Factor &f : factors.leaves) {
      const Scalar &s = sum.body[f.node];
      const Equation *map =
          s.op == ScalarOp::Read && !factors.isFixed(f.node) ? producerOf(s.index) : nullptr;
      if (map && isProduct(*map, sum.accumulateType))
        reads.push_back(f.node);
    }
    if (reads.empty())
      return;
    Equation written = sum;
    rebuild(written, program.symbols, nullptr,
            [&](Body &body, const Scalar &s, NodeId original) -> NodeId {
              if (std::count(reads.begin(), reads.end(), original) == 0)
                return kNoNode;
              return inlineMap(body, *producerOf(s.index), s);
            });
    if (hasFixed(written))
      sum = std::move(written);
  }

  /// `sum` without its fixed factors at position i, and the map that applies them behind it.
  void split(size_t i, Equation sum) {
    const Factors factors(sum);
    Equation finish;
    finish.name = sum.name;
    finish.onnxNodes = sum.onnxNodes;
    finish.numSpatial = sum.numSpatial;
    finish.axes.assign(sum.axes.begin(), sum.axes.begin() + sum.numSpatial);
    finish.outputs = sum.outputs;
    setRanges(finish, program.symbols);

    Tensor partial = program.tensors[sum.outputs[0]];
    partial.name += ".sum";
    partial.kind = TensorKind::Temp;
    partial.type = sum.accumulateType;
    std::vector<NodeId> place;
    for (int d = 0; d < finish.numSpatial; ++d)
      place.push_back(finish.body.axis(d));
    const TensorId partialId = program.addTensor(std::move(partial));
    NodeId value = finish.body.read(partialId, sum.accumulateType, place);
    for (const Factors::Factor &f : factors.leaves)
      if (factors.isFixed(f.node)) {
        NodeId factor = finish.body.import(sum.body, f.node, nullptr);
        value = finish.body.binary(f.divides ? ScalarOp::Div : ScalarOp::Mul, value, factor);
      }
    finish.results = {orIdentity(finish.body, sum, value, program.symbols)};
    compact(finish);

    sum.name += ".sum";
    sum.outputs = {partialId};
    sum.results = {without(sum.body, factors, sum.results[0], sum.accumulateType)};
    compact(sum);
    program.items[i].value = std::move(sum);
    program.items.insert(program.items.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                         Item{std::move(finish)});
  }

  /// The product without its fixed factors, in the order in which it stands; kNoNode where none is left.
  NodeId without(Body &body, const Factors &factors, NodeId id, DType type) const {
    const Scalar s = body[id];
    if (s.type != type || (s.op != ScalarOp::Mul && s.op != ScalarOp::Div))
      return factors.isFixed(id) ? kNoNode : id;
    NodeId a = without(body, factors, s.args[0], type), b = without(body, factors, s.args[1], type);
    if (b == kNoNode)
      return a;
    if (a == kNoNode && s.op == ScalarOp::Mul)
      return b;
    return body.binary(s.op, a == kNoNode ? body.constant(type, 1) : a, b);
  }

  ExprProgram program;
};

} // namespace

std::optional<ExprProgram> deferDivision(const ExprProgram &pattern, int64_t) {
  return Deferral(pattern).run();
}

} // namespace fusec
