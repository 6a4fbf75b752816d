// Slice, SliceDynamic and Pad: what is read lies inside the operand.
#include "Graph/rules/OpCheck.h"

#include <algorithm>

namespace fusec::rules {
namespace {

/// Number of elements that the slice selects from `size`; nullopt when the span overflows. By the operator's
/// text a step backwards clamps the start to [0, size-1] and the end to [-1, size-1].
std::optional<int64_t> selected(int64_t size, int64_t start, int64_t end, int64_t step) {
  if (size == 0)
    return 0;
  auto place = [&](int64_t v, int64_t low) {
    return std::clamp(v < 0 ? std::max(v, -size - 1) + size : v, low, step > 0 ? size : size - 1);
  };
  int64_t from = place(start, 0), to = place(end, step > 0 ? 0 : -1);
  int64_t span = step > 0 ? to - from : from - to;
  if (span <= 0)
    return 0;
  uint64_t width = step > 0 ? static_cast<uint64_t>(step) : static_cast<uint64_t>(-(step + 1)) + 1;
  return static_cast<int64_t>(static_cast<uint64_t>(span - 1) / width) + 1;
}

using Element = std::vector<DimExpr>;

Result<Types> sliced(const OpCheck &c, const std::vector<int64_t> &axes, const Element &starts,
                     const Element &ends, const std::vector<int64_t> &steps) {
  const Shape &in = c.shape(0), &out = c.outShape();
  FUSEC_CHECK(c.expect(starts.size() == axes.size() && ends.size() == axes.size() &&
                           steps.size() == axes.size(),
                       "starts, ends, axes and steps must have one length"));
  FUSEC_CHECK(c.expect(out.size() == in.size(), "the output must have the operand's rank"));
  std::vector<bool> seen(in.size(), false);
  Shape expected = in;
  for (size_t i = 0; i < axes.size(); ++i) {
    FUSEC_CHECK(c.expect(axes[i] >= 0 && axes[i] < static_cast<int64_t>(in.size()) &&
                             !seen[static_cast<size_t>(axes[i])],
                         "an axis is out of range or given twice"));
    auto a = static_cast<size_t>(axes[i]);
    seen[a] = true;
    if (steps[i] == 0)
      return c.badValue("a step is 0");
    bool right = c.forSamples([&](const std::vector<int64_t> &symbols) -> std::optional<bool> {
      auto size = in[a].evaluate(symbols), count = out[a].evaluate(symbols);
      auto start = starts[i].evaluate(symbols), end = ends[i].evaluate(symbols);
      if (!size || !count || !start || !end)
        return std::nullopt;
      return selected(*size, *start, *end, steps[i]) == *count;
    });
    FUSEC_CHECK(c.expect(right, "the output's size " + out[a].str(c.graph.symbols) + " on axis " +
                                    std::to_string(a) + " is not what the slice selects"));
    expected[a] = out[a];
  }
  return one(c.type(0), std::move(expected));
}

Result<Types> slice(const OpCheck &c) {
  const auto &starts = c.list("starts"), &ends = c.list("ends");
  return sliced(c, c.list("axes"), Element(starts.begin(), starts.end()),
                Element(ends.begin(), ends.end()), c.list("steps"));
}

/// The bounds follow from shapes and constants, axes and steps are constants.
Result<Types> sliceDynamic(const OpCheck &c) {
  auto elements = [&](size_t i) -> std::optional<Element> {
    if (!c.in(i).known.empty())
      return c.in(i).known;
    auto list = c.ints(i);
    return list ? std::optional(Element(list->begin(), list->end())) : std::nullopt;
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
    if (size.range(c.graph.symbols).min < 0)
      return c.sizes.tooSmall(in[d], -(begin + end), "an axis with negative pads");
    bool repeats = !constant && (begin > 0 || end > 0);
    FUSEC_CHECK(c.expect(!repeats || !in[d].isConst(0), "an empty axis cannot be repeated"));
    bool tooFar = c.node.stringAttr("mode") == "reflect" && repeats && in[d].isConst() &&
                  std::max(begin, end) >= in[d].constValue();
    FUSEC_CHECK(c.expect(!tooFar, "a reflecting pad must be smaller than the axis"));
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
