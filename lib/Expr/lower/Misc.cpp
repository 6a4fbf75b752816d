// Losses, determinants and images from columns.
#include "Expr/lower/Lowering.h"

#include <functional>

namespace fusec::lower {
namespace {

/// scores [N,C,d...] are log-probabilities, target [N,d...] classes: -weight[target]*score[target], 0 for ignored
/// classes; the mean divides by the sum of the weights. A class outside [0,C) is clamped, as for Gather.
void negativeLogLikelihood(NodeLowering &n, TensorId scores, DType t) {
  const Shape &targets = n.shape(1);
  const std::string &reduction = n.node.stringAttr("reduction");
  auto valid = [&](EquationBuilder &, Val c) {
    return n.node.hasAttr("ignore_index") ? ne(c, c.likeInt(n.node.intAttr("ignore_index")))
                                          : Val{};
  };
  auto weight = [&](EquationBuilder &b, Val c) {
    return n.has(2) ? cast(t, b.readClamped(n.in(2), {wrapIndex(c, n.shape(0)[1])}))
                    : b.constant(t, 1);
  };
  auto loss = [&](EquationBuilder &b, const std::vector<Val> &at) {
    Val c = cast(DType::I64, b.read(n.in(1), at));
    std::vector<Val> from = at;
    from.insert(from.begin() + 1, wrapIndex(c, n.shape(0)[1]));
    Val v = -(weight(b, c) * cast(t, b.readClamped(scores, from)));
    return select(valid(b, c), v, v.like(0));
  };
  if (reduction == "none") {
    n.map(n.out(), [&](EquationBuilder &b) { return cast(n.outType(), loss(b, b.axes)); });
    return;
  }
  TensorId sum = n.reduceTemp("sum", Monoid::Sum, t, {},
                              [&](EquationBuilder &b) { return loss(b, b.reductions(targets)); });
  if (reduction == "sum")
    return n.copy(n.out(), sum);
  TensorId weights = n.reduceTemp("weights", Monoid::Sum, t, {}, [&](EquationBuilder &b) {
    Val c = cast(DType::I64, b.read(n.in(1), b.reductions(targets)));
    Val w = weight(b, c);
    return select(valid(b, c), w, w.like(0));
  });
  n.map(n.out(), [&](EquationBuilder &b) {
    return cast(n.outType(), b.read(sum, {}) / b.read(weights, {}));
  });
}

Status nllLoss(NodeLowering &n) {
  negativeLogLikelihood(n, n.in(0), computeType(n.type(0)));
  return success();
}

/// Output 1 is the log-softmax of the scores over axis 1.
Status crossEntropyLoss(NodeLowering &n) {
  DType t = computeType(n.type(0));
  const Shape &shape = n.shape(0);
  Shape rows = shape;
  rows.erase(rows.begin() + 1);
  auto element = [&](EquationBuilder &b) {
    std::vector<Val> at = b.axes;
    at.insert(at.begin() + 1, b.reduction(shape[1]));
    return cast(t, b.read(n.in(0), at));
  };
  TensorId m = n.reduceTemp("max", Monoid::Max, t, rows, element);
  TensorId s = n.reduceTemp("expsum", Monoid::Sum, t, rows, [&](EquationBuilder &b) {
    return exp(element(b) - b.read(m, b.axes));
  });
  TensorId logs = n.map(n.temp("logs", t, shape), [&](EquationBuilder &b) {
    std::vector<Val> row = b.axes;
    row.erase(row.begin() + 1);
    return cast(t, b.read(n.in(0), b.axes)) - b.read(m, row) - log(b.read(s, row));
  });
  if (n.wants(1))
    n.copy(n.out(1), logs);
  if (n.wants(0))
    negativeLogLikelihood(n, logs, t);
  return success();
}

constexpr int64_t kMaxDeterminant = 5; // Laplace's expansion has n! products

Status determinant(NodeLowering &n) {
  const DimExpr &size = n.shape(0).back();
  if (!size.isConst() || size.constValue() > kMaxDeterminant)
    return n.fail("matrices up to " + std::to_string(kMaxDeterminant) + " by " +
                  std::to_string(kMaxDeterminant) + " only");
  int64_t length = size.constValue();
  DType t = n.outType() == DType::F64 ? DType::F64 : DType::F32;
  n.map(n.out(), [&](EquationBuilder &b) {
    auto element = [&](int64_t i, int64_t j) {
      return cast(t, b.read(n.in(0), concat(b.axes, {b.index(i), b.index(j)})));
    };
    // The minor of rows from `row` on and the given columns.
    std::function<Val(int64_t, const std::vector<int64_t> &)> minor =
        [&](int64_t row, const std::vector<int64_t> &columns) {
          Val sum = b.constant(t, columns.empty() ? 1 : 0);
          for (size_t k = 0; k < columns.size(); ++k) {
            std::vector<int64_t> rest = columns;
            rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(k));
            Val term = element(row, columns[k]) * minor(row + 1, rest);
            sum = k == 0 ? term : k % 2 ? sum - term : sum + term;
          }
          return sum;
        };
    std::vector<int64_t> all;
    for (int64_t c = 0; c < length; ++c)
      all.push_back(c);
    return cast(n.outType(), minor(0, all));
  });
  return success();
}

/// Columns [N, C*prod(block), L] summed into an image: at each position the sum over the block's taps of the
/// column that covers it, if one does.
Status col2Im(NodeLowering &n) {
  ConstantRef block = n.inValue(2).constant;
  if (!block)
    return n.fail("the block's shape must be constant");
  const auto &dilations = n.node.intsAttr("dilations"), &pads = n.node.intsAttr("pads"),
             &strides = n.node.intsAttr("strides");
  const Shape &out = n.outShape();
  size_t rank = out.size() - 2;
  DType t = computeType(n.outType());
  n.reduceTo(n.out(), "acc", Monoid::Sum, t, [&](EquationBuilder &b) {
    Val row = b.axis(1), column = b.index(0), inside;
    for (size_t d = 0; d < rank; ++d) {
      int64_t kernel = block->intAt(static_cast<int64_t>(d));
      DimExpr span =
          out[2 + d] + DimExpr(pads[d] + pads[d + rank] - dilations[d] * (kernel - 1) - 1);
      DimExpr positions = floorDiv(span, DimExpr(strides[d])) + DimExpr(1);
      Val k = b.reduction(kernel);
      Val shifted = b.axis(2 + d) - k * double(dilations[d]) + double(pads[d]);
      Val at = floorDiv(shifted, strides[d]);
      if (strides[d] > 1)
        inside = both(inside, eq(floorMod(shifted, strides[d]), 0));
      inside = both(inside, inRange(at, positions));
      row = row * double(kernel) + k;
      column = column * positions + at;
    }
    return cast(t, b.readIf(inside, n.in(0), {b.axis(0), row, column}, b.constant(n.type(0), 0)));
  });
  return success();
}

} // namespace

void addMisc(HandlerTable &table) {
  using enum OpKind;
  table[NegativeLogLikelihoodLoss] = nllLoss;
  table[SoftmaxCrossEntropyLoss] = crossEntropyLoss;
  table[Det] = determinant;
  table[Col2Im] = col2Im;
}

} // namespace fusec::lower
