// Slice, SliceDynamic and Pad: what is read lies inside the operand.
#include "Graph/rules/OpCheck.h"

#include <algorithm>

namespace fusec::rules {
namespace {

Result<Types> sliced(const OpCheck &c, const std::vector<int64_t> &axes, const Shape &starts,
                     const Shape &ends, const std::vector<int64_t> &steps) {
  FUSEC_CHECK(c.expect(starts.size() == axes.size() && ends.size() == axes.size() &&
                           steps.size() == axes.size(),
                       "starts, ends, axes and steps must have one length"));
  Shape out = c.shape(0);
  std::vector<bool> seen(out.size(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    FUSEC_CHECK(c.expect(axes[i] >= 0 && axes[i] < c.rank(0) && !seen[static_cast<size_t>(axes[i])],
                         "an axis is out of range or given twice"));
    auto a = static_cast<size_t>(axes[i]);
    seen[a] = true;
    FUSEC_TRY(SliceBounds bounds, c.sizes.slice(c.shape(0)[a], starts[i], ends[i], steps[i]));
    out[a] = bounds.length;
  }
  return one(c.type(0), std::move(out));
}

Result<Types> slice(const OpCheck &c) {
  const auto &starts = c.list("starts"), &ends = c.list("ends");
  return sliced(c, c.list("axes"), Shape(starts.begin(), starts.end()),
                Shape(ends.begin(), ends.end()), c.list("steps"));
}

/// The bounds follow from shapes and constants, axes and steps are constants.
Result<Types> sliceDynamic(const OpCheck &c) {
  auto elements = [&](size_t i) -> std::optional<Shape> {
    if (!c.in(i).known.empty())
      return c.in(i).known;
    auto list = c.ints(i);
    return list ? std::optional(Shape(list->begin(), list->end())) : std::nullopt;
  };
  for (size_t i = 1; i < c.node.inputs.size(); ++i) {
    FUSEC_CHECK(c.kind(i, Kind::Integer));
    FUSEC_CHECK(c.exactRank(i, 1));
  }
  auto starts = elements(1), ends = elements(2);
  auto axes = c.has(3) ? c.ints(3) : std::nullopt, steps = c.has(4) ? c.ints(4) : std::nullopt;
  FUSEC_CHECK(c.expect(starts && ends && (axes || !c.has(3)) && (steps || !c.has(4)),
                       "starts and ends must be known, axes and steps constant"));
  // The lowering walks as many axes as there are starts.
  size_t count = starts->size();
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < count; ++i)
      axes->push_back(static_cast<int64_t>(i));
  }
  for (int64_t &a : *axes)
    a = a < 0 ? a + c.rank(0) : a;
  if (!steps)
    steps.emplace(count, 1);
  return sliced(c, *axes, *starts, *ends, *steps);
}

/// What negative pads leave of an axis has the elements that the others repeat.
Status repeatable(const OpCheck &c, const DimExpr &size, int64_t begin, int64_t end) {
  const bool cuts = begin < 0 || end < 0, repeats = begin > 0 || end > 0;
  if (!cuts && !repeats)
    return success();
  const bool reflects = repeats && c.node.stringAttr("mode") == "reflect";
  const DimExpr rest = size + DimExpr(std::min<int64_t>(begin, 0) + std::min<int64_t>(end, 0));
  const int64_t least = reflects ? std::max(begin, end) + 1 : 1;
  const char *text = reflects ? "a reflecting pad must be smaller than the axis"
                     : cuts   ? "pads must leave an element of the axis to repeat"
                              : "an empty axis cannot be repeated";
  return rest.isConst() ? c.expect(rest.constValue() >= least, text)
                        : c.sizes.noLess(rest, least, text);
}

Result<Types> pad(const OpCheck &c) {
  constexpr int64_t kLargest = int64_t(1) << 42;
  bool constant = c.node.stringAttr("mode") == "constant";
  FUSEC_CHECK(c.expect(!c.has(1), "the pads are an attribute"));
  FUSEC_CHECK(c.sameTypes({0, 2}));
  FUSEC_CHECK(c.oneNumber(2));
  const auto &pads = c.list("pads");
  const Shape &in = c.shape(0);
  FUSEC_CHECK(c.expect(pads.size() == 2 * in.size(), "two pads for each axis are needed"));
  Shape out;
  for (size_t d = 0; d < in.size(); ++d) {
    int64_t begin = pads[d], end = pads[in.size() + d];
    FUSEC_CHECK(
        c.expect(begin >= -kLargest && begin <= kLargest && end >= -kLargest && end <= kLargest,
                 "a pad is larger than 2^42"));
    DimExpr size = in[d] + DimExpr(begin + end);
    if (begin + end < 0)
      FUSEC_CHECK(c.sizes.atLeast(in[d], -(begin + end), "an axis with negative pads"));
    if (!constant)
      FUSEC_CHECK(repeatable(c, in[d], begin, end));
    out.push_back(size);
  }
  return one(c.type(0), std::move(out));
}

} // namespace

void addSlices(RuleTable &table) {
  using enum OpKind;
  entry(table, Slice) = slice;
  entry(table, SliceDynamic) = sliceDynamic;
  entry(table, Pad) = pad;
}

} // namespace fusec::rules
