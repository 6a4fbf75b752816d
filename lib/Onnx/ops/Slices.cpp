#include "Onnx/Compose.h"
#include "Onnx/MovedAtRunTime.h"
#include "Onnx/OpTable.h"
#include "Onnx/SizedByData.h"
#include "Onnx/TestedInRun.h"
#include "Support/Diag.h"

#include <algorithm>
#include <numeric>

// Slice and Pad. Slice's operands became inputs in opset 10, Pad's in 11.

namespace fusec {
namespace {

struct SliceSpec {
  std::vector<int64_t> axes;
  Shape steps;
  std::vector<std::optional<DimExpr>> starts, ends; // nullopt: a run-time value
};

Status applySlice(NodeImporter &n, const SliceSpec &spec, std::vector<ValueId> dynamicInputs) {
  const std::vector<int64_t> steps = staticDims(spec.steps);
  std::vector<int64_t> starts, ends;
  bool fixed = true;
  for (size_t i = 0; i < spec.axes.size(); ++i) {
    const DimExpr &size = n.shape(0)[static_cast<size_t>(spec.axes[i])];
    FUSEC_TRY(SliceBounds bounds, n.sizes().slice(size, *spec.starts[i], *spec.ends[i], steps[i]));
    const DimExpr &start = bounds.start, &end = bounds.end;
    fixed = fixed && start.isConst() && (end.isConst() || end == size);
    starts.push_back(start.isConst() ? start.constValue() : 0);
    // Before the first element: -1 would be the last one.
    ends.push_back(!end.isConst() ? INT64_MAX : end.isConst(-1) ? INT64_MIN : end.constValue());
  }
  if (fixed)
    return n.finish(OpKind::Slice, {n.id(0)},
                    {{"starts", starts}, {"ends", ends}, {"axes", spec.axes}, {"steps", steps}});
  // Before opset 10 bounds were attributes.
  if (n.opset() < 10) {
    auto values = [&](const std::vector<std::optional<DimExpr>> &list) {
      std::vector<int64_t> numbers;
      for (const auto &v : list)
        numbers.push_back(v->constValue());
      return n.intsValue(numbers);
    };
    dynamicInputs = {n.id(0), values(spec.starts), values(spec.ends), n.intsValue(spec.axes)};
  }
  return n.finish(OpKind::SliceDynamic, std::move(dynamicInputs));
}

/// Whether a bound is a run-time value.
bool isDecidedByData(const SliceSpec &spec) {
  auto isOpen = [](const std::optional<DimExpr> &bound) { return !bound; };
  return std::any_of(spec.starts.begin(), spec.starts.end(), isOpen) ||
         std::any_of(spec.ends.begin(), spec.ends.end(), isOpen);
}

Status slice(NodeImporter &n) {
  SliceSpec spec;
  std::vector<int64_t> axes;
  size_t count;
  auto constants = [](const std::vector<int64_t> &list) {
    return std::vector<std::optional<DimExpr>>(list.begin(), list.end());
  };
  if (n.opset() < 10) {
    spec.starts = constants(n.attrInts("starts"));
    spec.ends = constants(n.attrInts("ends"));
    count = spec.starts.size();
  } else {
    if (!n.has(1) || !n.has(2) || n.rank(1) != 1 || n.rank(2) != 1 || !n.shape(1)[0].isConst())
      return n.mismatch("starts and ends must be vectors of a fixed length");
    if (n.shape(1)[0].constValue() > n.rank(0) || n.shape(2) != n.shape(1))
      return n.mismatch("starts and ends must have one length, of at most one entry an axis");
    if (auto declared = n.declared(0); declared && mayBeSlicedAtRunTime(n, declared->shape))
      return sliceAtRunTime(n, declared->shape);
    count = static_cast<size_t>(n.shape(1)[0].constValue());
    for (auto [i, list] : {std::pair{1, &spec.starts}, std::pair{2, &spec.ends}}) {
      auto elements = n.known(static_cast<size_t>(i));
      if (elements)
        list->assign(elements->begin(), elements->end());
      else
        list->assign(static_cast<size_t>(n.shape(static_cast<size_t>(i))[0].isConst()
                                             ? n.shape(static_cast<size_t>(i))[0].constValue()
                                             : 0),
                     std::nullopt);
    }
  }
  axes.resize(count);
  std::iota(axes.begin(), axes.end(), 0);
  spec.steps.assign(count, DimExpr(1));
  if (n.opset() < 10) {
    axes = n.attrInts("axes", axes);
  } else {
    if (n.has(3)) {
      auto given = n.ints(3);
      if (!given)
        return n.needsConstant("the axes are a run-time value; they must be constant", {3});
      axes = *given;
    }
    if (n.has(4)) {
      auto given = n.known(4);
      if (!given)
        return n.needsConstant("the steps are a run-time value; they must follow from constants "
                               "and input shapes",
                               {4});
      spec.steps = *given;
    }
  }
  if (spec.ends.size() != count || axes.size() != count || spec.steps.size() != count)
    return n.mismatch("starts, ends, axes and steps must have one length");
  for (int64_t a : axes) {
    FUSEC_TRY(int64_t normal, n.axis(a, n.rank(0)));
    if (std::find(spec.axes.begin(), spec.axes.end(), normal) != spec.axes.end())
      return n.fail(Diag::BadOperand, "an axis is given twice");
    spec.axes.push_back(normal);
  }
  if (isDecidedByData(spec) || !isStatic(spec.steps))
    return sliceByData(n, spec.axes, spec.steps);
  return applySlice(n, spec, n.ids());
}

/// What a pad adds to an axis where it cuts: 0 or less.
DimExpr cutBy(const NodeImporter &n, const DimExpr &pad) {
  return pad.range(n.symbols()).min < 0 ? min(pad, DimExpr(0)) : DimExpr(0);
}

/// Pads of which some are sizes that are not fixed. With a constant around it the operand is one part of what is put
/// together along each of their axes; else, and where pads may cut, elements are gathered.
Status padBySizes(NodeImporter &n, const std::string &mode, const Shape &pads, ValueId fill) {
  const size_t rank = n.shape(0).size();
  Shape out = n.shape(0);
  bool cuts = false;
  for (size_t i = 0; i < 2 * rank; ++i) {
    const DimExpr size = n.shape(0)[i % rank];
    out[i % rank] = out[i % rank] + pads[i];
    const bool open = !pads[i % rank].isConst() || !pads[i % rank + rank].isConst();
    cuts = cuts || (open && pads[i].range(n.symbols()).min < 0);
    if (mode == "constant" || pads[i].isConst(0))
      continue;
    const DimExpr rest = size + cutBy(n, pads[i % rank]) + cutBy(n, pads[i % rank + rank]);
    if (mode != "reflect" || rest != size)
      FUSEC_CHECK(n.sizes().noLess(rest, min(max(size, pads[i]), DimExpr(1)),
                                   "pads must leave an element of the axis to repeat"));
    if (mode == "reflect")
      FUSEC_CHECK(n.sizes().noLess(rest, pads[i] + DimExpr(1),
                                   "a reflecting pad must be smaller than the axis"));
  }
  if (mode != "constant" || cuts)
    return padAtRunTime(n, mode, out, padOperands(n));
  FUSEC_TRY(const ValueId result, Compose(n).pad(n.id(0), pads, fill));
  n.result(0, result);
  return success();
}

Status pad(NodeImporter &n) {
  std::vector<int64_t> pads;
  std::string mode = n.attrString("mode", "constant");
  std::vector<ValueId> in{n.id(0)};
  auto rank = static_cast<size_t>(n.rank(0));
  if (n.opset() < 11) {
    pads = n.hasAttribute("paddings") ? n.attrInts("paddings") : n.attrInts("pads");
    double value = n.attrFloat("value", 0.0);
    if (value != 0)
      in = {n.id(0), kNoValue, n.scalarValue(n.type(0), value)};
  } else {
    auto declared = n.declared(0);
    const bool fill = !n.has(2) || (n.type(2) == n.type(0) && numElements(n.shape(2)).isConst(1));
    const DimExpr padded = n.has(3) && n.rank(3) == 1 ? n.shape(3)[0] : DimExpr(n.rank(0));
    if (!n.known(1) && fill && declared && declared->shape.size() == rank &&
        n.type(1) == DType::I64 && padded.isConst() && n.shape(1) == Shape{padded * DimExpr(2)}) {
      const PadOperands pads = padOperands(n);
      FUSEC_CHECK(requirePads(n, mode, declared->shape, pads));
      return padAtRunTime(n, mode, declared->shape, pads);
    }
    const auto known = n.known(1);
    if (!known)
      return n.needsConstant("the pads are a run-time value; they must be constant", {1});
    Shape sizes = *known;
    if (n.has(3)) {
      auto list = n.ints(3);
      if (!list)
        return n.needsConstant("the axes are a run-time value; they must be constant", {3});
      if (sizes.size() != 2 * list->size())
        return n.mismatch("two pads for each axis are needed");
      Shape all(2 * rank, DimExpr(0));
      std::vector<bool> seen(rank, false);
      for (size_t i = 0; i < list->size(); ++i) {
        FUSEC_TRY(int64_t a, n.axis((*list)[i], n.rank(0)));
        if (seen[static_cast<size_t>(a)])
          return n.fail(Diag::BadOperand, "an axis is given twice");
        seen[static_cast<size_t>(a)] = true;
        all[static_cast<size_t>(a)] = sizes[i];
        all[rank + static_cast<size_t>(a)] = sizes[list->size() + i];
      }
      sizes = std::move(all);
    }
    if (sizes.size() != 2 * rank)
      return n.mismatch("two pads for each axis are needed");
    if (n.has(2)) {
      const char *text = "the fill value must be a scalar of the data's type";
      if (n.type(2) != n.type(0))
        return n.mismatch(text);
      FUSEC_CHECK(n.oneElement(2, text));
      in = {n.id(0), kNoValue, n.reshape(n.id(2), {})};
    }
    if (!isStatic(sizes))
      return padBySizes(n, mode, sizes, in.size() > 1 ? in[2] : Compose(n).scalar(n.type(0), 0));
    pads = staticDims(sizes);
  }
  for (int64_t p : pads)
    if (p / 2 > int64_t(1) << 40 || p / 2 < -(int64_t(1) << 40))
      return n.fail(Diag::LimitExceeded, "a pad is larger than 2^40");
  return n.finish(OpKind::Pad, std::move(in), {{"mode", mode}, {"pads", pads}});
}

/// A crop or a pad of each of `axes`, centred as the operator's function says, to sizes that are not fixed: input 1.
Status centreAtRunTime(NodeImporter &n, const std::vector<int64_t> &axes, const Shape &out) {
  Compose c(n);
  FUSEC_TRY(ValueId sizes,
            n.emitOne(OpKind::Shape, {n.id(0)}, {{"start", int64_t(0)}, {"end", n.rank(0)}}));
  FUSEC_TRY(sizes, c.gather(sizes, n.intsValue(axes), 0));
  FUSEC_TRY(const ValueId more, c.binary(OpKind::Sub, c.cast(n.id(1), DType::I64), sizes));
  FUSEC_TRY(const ValueId begins, c.binary(OpKind::Div, more, c.integer(2)));
  FUSEC_TRY(const ValueId ends, c.binary(OpKind::Sub, more, begins));
  return padAtRunTime(n, "constant", out,
                      {begins, ends, n.intsValue(axes), c.scalar(n.type(0), 0)});
}

Status centerCropPad(NodeImporter &n) {
  std::vector<int64_t> all(static_cast<size_t>(n.rank(0)));
  std::iota(all.begin(), all.end(), 0);
  std::vector<int64_t> axes;
  for (int64_t a : n.attrInts("axes", all)) {
    FUSEC_TRY(int64_t normal, n.axis(a, n.rank(0)));
    axes.push_back(normal);
  }
  const Shape in = n.shape(0);
  auto sizes = n.known(1);
  auto declared = n.declared(0);
  if (!sizes && (!declared || declared->shape.size() != in.size()))
    return n.needsConstant("the target sizes are a run-time value; they must follow from constants "
                           "and input shapes",
                           {1});
  FUSEC_CHECK(n.sizes().sameShape(n.shape(1), {DimExpr(static_cast<int64_t>(axes.size()))},
                                  "one target size for each axis is needed"));
  Shape out = in, wanted;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    out[a] = sizes ? (*sizes)[i] : declared->shape[a];
    wanted.push_back(out[a]);
    if (out[a].isConst() && (out[a].constValue() < 0 || out[a].constValue() > int64_t(1) << 40))
      return n.fail(Diag::BadOperand, "a target size is out of range");
  }
  if (!sizes)
    FUSEC_CHECK(requireDeclared(n, n.id(1), wanted));
  if (!isStatic(out) || !isStatic(in))
    return centreAtRunTime(n, axes, out);
  // A crop followed by a pad with fixed amounts.
  std::vector<int64_t> starts, ends, steps(axes.size(), 1), pads(2 * in.size(), 0);
  for (int64_t axis : axes) {
    const auto a = static_cast<size_t>(axis);
    const int64_t have = in[a].constValue(), want = out[a].constValue();
    int64_t start = have > want ? (have - want) / 2 : 0;
    starts.push_back(start);
    ends.push_back(have > want ? start + want : have);
    pads[a] = want > have ? (want - have) / 2 : 0;
    pads[in.size() + a] = want > have ? want - have - pads[a] : 0;
  }
  FUSEC_TRY(ValueId crop,
            n.emitOne(OpKind::Slice, {n.id(0)},
                      {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}}));
  return n.finish(OpKind::Pad, {crop}, {{"mode", std::string("constant")}, {"pads", pads}});
}

constexpr OpRow kRows[] = {
    {"CenterCropPad", 18, kNewestOpset, 2, 2, 1, centerCropPad,
     "sizes that follow from constants and shapes, or are declared"},
    {"Pad", 1, kNewestOpset, 1, 4, 1, pad,
     "pads that follow from shapes, or the output's shape declared"},
    {"Slice", 1, kNewestOpset, 1, 5, 1, slice,
     "axes and steps that follow from constants and shapes, or the output's shape declared"},
};

} // namespace

std::span<const OpRow> slicesOps() { return kRows; }

} // namespace fusec
