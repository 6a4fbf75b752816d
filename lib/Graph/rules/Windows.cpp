// Convolutions and pools over x [N, C, spatial...].
#include "Graph/rules/OpCheck.h"

#include <algorithm>

namespace fusec::rules {
namespace {

constexpr int64_t kLargest = int64_t(1) << 31;

/// kernel_shape, strides and dilations have one entry a spatial axis of operand 0, pads two.
Status windowAttributes(const OpCheck &c) {
  FUSEC_CHECK(c.minRank(0, 3, "the data must have rank 3 or more"));
  size_t rank = c.shape(0).size() - 2;
  for (const char *key : {"kernel_shape", "strides", "dilations"}) {
    const auto &list = c.list(key);
    FUSEC_CHECK(c.expectAttribute(
        list.size() == rank && std::all_of(list.begin(), list.end(),
                                           [](int64_t v) { return v >= 1 && v <= kLargest; }),
        "attribute '" + std::string(key) +
            "' needs one entry from 1 to 2^31 for each spatial axis"));
  }
  const auto &pads = c.list("pads");
  return c.expectAttribute(
      pads.size() == 2 * rank &&
          std::all_of(pads.begin(), pads.end(), [](int64_t v) { return v >= 0 && v <= kLargest; }),
      "attribute 'pads' needs two entries from 0 to 2^31 for each spatial axis");
}

int64_t extentOf(const OpCheck &c, size_t d) {
  return (c.list("kernel_shape")[d] - 1) * c.list("dilations")[d] + 1;
}

/// Number of window positions along spatial axis `d`.
Result<DimExpr> positions(const OpCheck &c, size_t d, bool ceilMode) {
  const auto &pads = c.list("pads");
  return c.sizes.windowCount(c.shape(0)[d + 2], extentOf(c, d), c.list("strides")[d], pads[d],
                             pads[pads.size() / 2 + d], ceilMode);
}

/// Data at operand 0, weights at operand `w`: of one rank, with the kernel that kernel_shape says.
Status dataAndWeights(const OpCheck &c, size_t w) {
  FUSEC_CHECK(c.expect(c.rank(0) >= 3 && c.rank(w) == c.rank(0),
                       "data and weights must have one rank of at least 3"));
  FUSEC_CHECK(windowAttributes(c));
  const auto &kernel = c.list("kernel_shape");
  const Shape spatial(c.shape(w).begin() + 2, c.shape(w).end());
  return c.sizes.sameShape(spatial, Shape(kernel.begin(), kernel.end()),
                           "kernel_shape does not agree with the weights");
}

Status biasOf(const OpCheck &c, size_t i, const DimExpr &filters) {
  return c.shapeIs(i, {filters}, "the bias must have one element a filter");
}

/// Weights [filters, channels/group, kernel...] at operand `w`.
Result<Types> convolution(const OpCheck &c, size_t w, size_t bias, DType outType) {
  FUSEC_CHECK(dataAndWeights(c, w));
  int64_t group = c.number("group");
  const Shape &x = c.shape(0), &weights = c.shape(w);
  FUSEC_CHECK(c.expectAttribute(group >= 1 && weights[0].divisibleBy(group, c.graph.symbols),
                                "group is " + std::to_string(group) +
                                    "; it must divide the number of filters"));
  int64_t all;
  FUSEC_CHECK(c.expectAttribute(!weights[1].isConst() ||
                                    !__builtin_mul_overflow(weights[1].constValue(), group, &all),
                                "group is " + std::to_string(group) + ", which is too large"));
  const DimExpr channels = weights[1] * DimExpr(group);
  const std::string text =
      "the data must have " + channels.str(c.graph.symbols) + " channels for these weights";
  FUSEC_CHECK(c.expect(!weights[1].isConst(0), text));
  FUSEC_CHECK(c.sizes.sameShape({x[1]}, {channels}, text));
  Shape out{x[0], weights[0]};
  for (size_t d = 0; d + 2 < x.size(); ++d) {
    FUSEC_TRY(DimExpr size, positions(c, d, false));
    out.push_back(size);
  }
  FUSEC_CHECK(biasOf(c, bias, weights[0]));
  return one(outType, std::move(out));
}

Result<Types> conv(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.type(0) == c.type(1) && isFloat(c.type(0)),
                       "data and weights must have one float type"));
  FUSEC_CHECK(c.sameTypes({0, 2}));
  return convolution(c, 1, 2, c.type(0));
}

Result<Types> convInteger(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Integer));
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  for (size_t i : {2, 3})
    FUSEC_CHECK(c.expect(!c.has(i) || c.type(i) == c.type(i - 2),
                         "a zero point must have its operand's type"));
  FUSEC_TRY(Types types, convolution(c, 1, 4, DType::I32));
  FUSEC_CHECK(c.quantParameter(2, DimExpr(1)));
  FUSEC_CHECK(c.quantParameter(3, c.shape(1)[0]));
  return types;
}

/// Inputs: x, scale, zero; w, scale, zero; the output's scale, zero; bias (i32).
Result<Types> qLinearConv(const OpCheck &c) {
  for (size_t i : {0, 3, 7})
    FUSEC_CHECK(c.kind(i, Kind::Integer));
  FUSEC_CHECK(c.expect(
      c.type(2) == c.type(0) && c.type(5) == c.type(3) && isFloat(c.type(1)) &&
          isFloat(c.type(4)) && isFloat(c.type(6)) && (!c.has(8) || c.type(8) == DType::I32),
      "the scales must be floats, zero points of their operand's type, the bias i32"));
  FUSEC_TRY(Types types, convolution(c, 3, 8, c.type(7)));
  for (size_t i : {1, 2, 6, 7})
    FUSEC_CHECK(c.quantParameter(i, DimExpr(1)));
  for (size_t i : {4, 5})
    FUSEC_CHECK(c.quantParameter(i, c.shape(3)[0]));
  return types;
}

/// Weights [channels, filters/group, kernel...].
Result<Types> convTranspose(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.type(0) == c.type(1) && isFloat(c.type(0)),
                       "data and weights must have one float type"));
  FUSEC_CHECK(c.sameTypes({0, 2}));
  FUSEC_CHECK(dataAndWeights(c, 1));
  const Shape &x = c.shape(0), &w = c.shape(1);
  const auto &more = c.list("output_padding"), &pads = c.list("pads");
  int64_t group = c.number("group"), all;
  FUSEC_CHECK(
      c.expectAttribute(more.size() == x.size() - 2 &&
                            std::all_of(more.begin(), more.end(),
                                        [](int64_t v) { return v >= 0 && v <= 2 * kLargest; }),
                        "output_padding needs one entry from 0 to 2^32 for each spatial axis"));
  FUSEC_CHECK(c.expectAttribute(group >= 1 && w[0].divisibleBy(group, c.graph.symbols),
                                "group must divide the number of channels"));
  FUSEC_CHECK(
      c.sizes.sameShape({x[1]}, {w[0]}, "data and weights must have the same number of channels"));
  FUSEC_CHECK(c.expect(!w[1].isConst() || !__builtin_mul_overflow(w[1].constValue(), group, &all),
                       "the number of filters overflows"));
  Shape out{x[0], w[1] * DimExpr(group)};
  for (size_t d = 0; d + 2 < x.size(); ++d) {
    int64_t extra = more[d] + extentOf(c, d) - pads[d] - pads[pads.size() / 2 + d];
    DimExpr size = (x[d + 2] - DimExpr(1)) * DimExpr(c.list("strides")[d]) + DimExpr(extra);
    FUSEC_CHECK(
        c.expect(!size.isConst() || size.constValue() >= 1, "the pads remove the whole output"));
    out.push_back(size);
  }
  FUSEC_CHECK(biasOf(c, 2, out[1]));
  return one(c.type(0), std::move(out));
}

Result<Types> pool(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(windowAttributes(c));
  const auto &pads = c.list("pads");
  Shape out{c.shape(0)[0], c.shape(0)[1]};
  for (size_t d = 0; d + 2 < c.shape(0).size(); ++d) {
    int64_t extent = extentOf(c, d);
    FUSEC_CHECK(c.expectAttribute(
        pads[d] < extent && pads[pads.size() / 2 + d] < extent,
        "pads must be smaller than the window, or windows would hold padding only"));
    FUSEC_TRY(DimExpr size, positions(c, d, c.number("ceil_mode")));
    out.push_back(size);
  }
  return one(c.type(0), std::move(out));
}

/// Output 1: indices.
Result<Types> maxPool(const OpCheck &c) {
  FUSEC_TRY(Types types, pool(c));
  types.push_back({DType::I64, types[0].shape});
  return types;
}

Result<Types> averagePool(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  return pool(c);
}

Result<Types> lpPool(const OpCheck &c) {
  FUSEC_CHECK(c.atLeast("p", 1));
  return averagePool(c);
}

Result<Types> globalPool(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_CHECK(c.minRank(0, 3, "the data must have rank 3 or more"));
  Shape out = c.shape(0);
  for (size_t d = 2; d < out.size(); ++d)
    FUSEC_CHECK(c.hasElements(0, d, "an image is empty"));
  std::fill(out.begin() + 2, out.end(), DimExpr(1));
  return one(c.type(0), std::move(out));
}

Result<Types> globalLpPool(const OpCheck &c) {
  FUSEC_CHECK(c.atLeast("p", 1));
  return globalPool(c);
}

} // namespace

void addWindows(RuleTable &table) {
  using enum OpKind;
  entry(table, Conv) = conv;
  entry(table, ConvInteger) = convInteger;
  entry(table, QLinearConv) = qLinearConv;
  entry(table, ConvTranspose) = convTranspose;
  entry(table, MaxPool) = maxPool;
  entry(table, AveragePool) = averagePool;
  entry(table, LpPool) = lpPool;
  entry(table, GlobalAveragePool) = globalPool;
  entry(table, GlobalMaxPool) = globalPool;
  entry(table, GlobalLpPool) = globalLpPool;
}

} // namespace fusec::rules
