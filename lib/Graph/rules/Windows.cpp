// Convolutions and pools over x [N, C, spatial...].
#include "Graph/rules/OpCheck.h"

#include <algorithm>

namespace fusec::rules {
namespace {

constexpr int64_t kLargest = int64_t(1) << 31;

/// kernel_shape, strides and dilations have one entry a spatial axis of operand 0, pads two.
Status windowAttributes(const OpCheck &c) {
  FUSEC_CHECK(c.minRank(0, 3));
  size_t rank = c.shape(0).size() - 2;
  for (const char *key : {"kernel_shape", "strides", "dilations"}) {
    const auto &list = c.node.intsAttr(key);
    FUSEC_CHECK(c.expect(list.size() == rank &&
                             std::all_of(list.begin(), list.end(),
                                         [](int64_t v) { return v >= 1 && v <= kLargest; }),
                         "attribute '" + std::string(key) +
                             "' needs one entry from 1 to 2^31 for each spatial axis"));
  }
  const auto &pads = c.node.intsAttr("pads");
  return c.expect(
      pads.size() == 2 * rank &&
          std::all_of(pads.begin(), pads.end(), [](int64_t v) { return v >= 0 && v <= kLargest; }),
      "attribute 'pads' needs two entries from 0 to 2^31 for each spatial axis");
}

int64_t extentOf(const OpCheck &c, size_t d) {
  return (c.node.intsAttr("kernel_shape")[d] - 1) * c.node.intsAttr("dilations")[d] + 1;
}

/// Number of window positions along spatial axis `d`.
Result<DimExpr> positions(const OpCheck &c, size_t d, bool ceilMode) {
  const DimExpr &in = c.shape(0)[d + 2];
  const auto &pads = c.node.intsAttr("pads");
  DimExpr stride = c.node.intsAttr("strides")[d], begin = pads[d];
  DimExpr padded = in + begin + DimExpr(pads[pads.size() / 2 + d]);
  DimExpr room = padded - DimExpr(extentOf(c, d));
  FUSEC_CHECK(c.expect(!room.isConst() || room.constValue() >= 0,
                       "the window is larger than the padded data"));
  if (!ceilMode)
    return floorDiv(room, stride) + DimExpr(1);
  // A window that would start in the padding at the end does not count.
  return min(ceilDiv(room, stride) + DimExpr(1), ceilDiv(in + begin, stride));
}

/// Weights [filters, channels/group, kernel...] at operand `w`.
Status convolution(const OpCheck &c, size_t w, size_t bias, DType outType) {
  FUSEC_CHECK(windowAttributes(c));
  FUSEC_CHECK(c.exactRank(w, c.rank(0)));
  int64_t group = c.node.intAttr("group");
  const Shape &weights = c.shape(w);
  FUSEC_CHECK(c.expect(group >= 1 && weights[0].divisibleBy(group, c.graph.symbols),
                       "group must divide the number of filters"));
  FUSEC_CHECK(c.sameDim(c.shape(0)[1], weights[1] * DimExpr(group), "numbers of channels"));
  FUSEC_CHECK(c.expect(!weights[1].isConst(0), "the weights have no channels"));
  Shape out{c.shape(0)[0], weights[0]};
  for (size_t d = 0; d + 2 < c.shape(0).size(); ++d) {
    FUSEC_CHECK(c.sameDim(weights[d + 2], c.node.intsAttr("kernel_shape")[d],
                          "kernel_shape and the weights"));
    FUSEC_TRY(DimExpr size, positions(c, d, false));
    out.push_back(size);
  }
  FUSEC_CHECK(c.vectorOf(bias, weights[0]));
  return c.output(outType, out);
}

/// One number, or one a filter.
Status filterParameter(const OpCheck &c, size_t i, size_t w) {
  if (!c.has(i) || numElements(c.shape(i)).isConst(1))
    return success();
  return c.vectorOf(i, c.shape(w)[0]);
}

Status conv(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_CHECK(c.sameTypes({0, 1, 2}));
  return convolution(c, 1, 2, c.type(0));
}

Status convInteger(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Integer));
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  FUSEC_CHECK(c.sameTypes({0, 2}));
  FUSEC_CHECK(c.sameTypes({1, 3}));
  FUSEC_CHECK(convolution(c, 1, 4, DType::I32));
  FUSEC_CHECK(c.oneNumber(2));
  return filterParameter(c, 3, 1);
}

/// Inputs: x, scale, zero; w, scale, zero; the output's scale, zero; bias (i32).
Status qLinearConv(const OpCheck &c) {
  for (size_t i : {0, 3, 7})
    FUSEC_CHECK(c.kind(i, Kind::Integer));
  FUSEC_CHECK(c.sameTypes({0, 2}));
  FUSEC_CHECK(c.sameTypes({3, 5}));
  for (size_t scale : {1, 4, 6})
    FUSEC_CHECK(c.kind(scale, Kind::Float));
  FUSEC_CHECK(c.expect(!c.has(8) || c.type(8) == DType::I32, "the bias must be i32"));
  FUSEC_CHECK(convolution(c, 3, 8, c.type(7)));
  for (size_t i : {1, 2, 6, 7})
    FUSEC_CHECK(c.oneNumber(i));
  FUSEC_CHECK(filterParameter(c, 4, 3));
  return filterParameter(c, 5, 3);
}

/// Weights [channels, filters/group, kernel...].
Status convTranspose(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_CHECK(c.sameTypes({0, 1, 2}));
  FUSEC_CHECK(windowAttributes(c));
  FUSEC_CHECK(c.exactRank(1, c.rank(0)));
  const Shape &x = c.shape(0), &w = c.shape(1);
  const auto &more = c.node.intsAttr("output_padding"), &pads = c.node.intsAttr("pads");
  int64_t group = c.node.intAttr("group");
  FUSEC_CHECK(c.expect(more.size() == x.size() - 2 &&
                           std::all_of(more.begin(), more.end(),
                                       [](int64_t v) { return v >= 0 && v <= 2 * kLargest; }),
                       "output_padding needs one entry from 0 to 2^32 for each spatial axis"));
  FUSEC_CHECK(c.expect(group >= 1 && w[0].divisibleBy(group, c.graph.symbols),
                       "group must divide the number of channels"));
  FUSEC_CHECK(c.sameDim(x[1], w[0], "numbers of channels"));
  Shape out{x[0], w[1] * DimExpr(group)};
  for (size_t d = 0; d + 2 < x.size(); ++d) {
    FUSEC_CHECK(
        c.sameDim(w[d + 2], c.node.intsAttr("kernel_shape")[d], "kernel_shape and the weights"));
    int64_t extra = more[d] + extentOf(c, d) - pads[d] - pads[pads.size() / 2 + d];
    out.push_back((x[d + 2] - DimExpr(1)) * DimExpr(c.node.intsAttr("strides")[d]) +
                  DimExpr(extra));
  }
  FUSEC_CHECK(c.vectorOf(2, out[1]));
  return c.output(c.type(0), out);
}

Status pool(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(windowAttributes(c));
  const auto &pads = c.node.intsAttr("pads");
  Shape out{c.shape(0)[0], c.shape(0)[1]};
  for (size_t d = 0; d + 2 < c.shape(0).size(); ++d) {
    int64_t extent = extentOf(c, d);
    FUSEC_CHECK(c.expect(pads[d] < extent && pads[pads.size() / 2 + d] < extent,
                         "pads must be smaller than the window"));
    FUSEC_TRY(DimExpr size, positions(c, d, c.node.intAttr("ceil_mode")));
    out.push_back(size);
  }
  FUSEC_CHECK(c.output(0, c.type(0), out));
  return c.output(1, DType::I64, out);
}

Status averagePool(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  return pool(c);
}

Status lpPool(const OpCheck &c) {
  FUSEC_CHECK(c.atLeast("p", 1));
  return averagePool(c);
}

Status globalPool(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_CHECK(c.minRank(0, 2));
  Shape out = c.shape(0);
  std::fill(out.begin() + 2, out.end(), DimExpr(1));
  return c.output(c.type(0), out);
}

Status globalLpPool(const OpCheck &c) {
  FUSEC_CHECK(c.atLeast("p", 1));
  return globalPool(c);
}

} // namespace

void addWindows(RuleTable &table) {
  using enum OpKind;
  table[Conv] = conv;
  table[ConvInteger] = convInteger;
  table[QLinearConv] = qLinearConv;
  table[ConvTranspose] = convTranspose;
  table[MaxPool] = pool;
  table[AveragePool] = averagePool;
  table[LpPool] = lpPool;
  table[GlobalAveragePool] = globalPool;
  table[GlobalMaxPool] = globalPool;
  table[GlobalLpPool] = globalLpPool;
}

} // namespace fusec::rules
