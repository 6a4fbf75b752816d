#include "Onnx/ResizeAtRunTime.h"
#include "Graph/ResizeRule.h"
#include "Onnx/Compose.h"
#include "Onnx/GraphBuilder.h"
#include "Support/Diag.h"

#include <algorithm>
#include <cmath>

namespace fusec {
namespace {

/// Formulas over f64 and, around scales, f32, in which positions are computed where they are known at compile time too.
/// The nearest element hangs on the rounding, which is ONNX Runtime's.
class Numbers {
public:
  explicit Numbers(NodeImporter &n) : n(n), c(n) {}

  ValueId number(double v) { return c.scalar(DType::F64, v); }
  /// How long axis `axis` of a value is, an i64.
  ValueId length(ValueId x, size_t axis) {
    const DimExpr &d = n.shapeOf(x)[axis];
    if (d.isConst())
      return c.integer(d.constValue());
    const auto a = static_cast<int64_t>(axis);
    return n.reshape(take(n.emitOne(OpKind::Shape, {x}, {{"start", a}, {"end", a + 1}})), {});
  }
  ValueId size(ValueId x, size_t axis) { return c.cast(length(x, axis), DType::F64); }
  ValueId add(ValueId a, ValueId b) { return binary(OpKind::Add, a, b); }
  ValueId sub(ValueId a, ValueId b) { return binary(OpKind::Sub, a, b); }
  ValueId mul(ValueId a, ValueId b) { return binary(OpKind::Mul, a, b); }
  ValueId div(ValueId a, ValueId b) { return binary(OpKind::Div, a, b); }
  /// In f32.
  ValueId narrow(OpKind op, ValueId a, ValueId b) {
    return c.cast(binary(op, c.cast(a, DType::F32), c.cast(b, DType::F32)), DType::F64);
  }
  // plus() and times() are no overloads of add() and mul(), since a ValueId converts to double.
  ValueId plus(ValueId a, double b) { return add(a, number(b)); }
  ValueId times(ValueId a, double b) { return mul(a, number(b)); }
  ValueId unary(OpKind op, ValueId a) { return c.unary(op, a); }
  ValueId compare(OpKind op, ValueId a, double b) { return binary(op, a, number(b)); }
  /// Where the sizes are equal, or one of them is one number.
  ValueId binary(OpKind op, ValueId a, ValueId b) { return take(c.binary(op, a, b)); }
  ValueId where(ValueId condition, ValueId a, ValueId b) { return take(c.where(condition, a, b)); }
  /// Over one axis, which stays.
  ValueId sum(ValueId x, size_t axis) {
    return take(c.reduce(OpKind::ReduceSum, x, {static_cast<int64_t>(axis)}, true));
  }
  ValueId fromBool(ValueId condition) { return where(condition, number(1), number(0)); }
  /// Element `i` of a vector.
  ValueId element(ValueId vector, size_t i) {
    return c.cast(n.reshape(c.slice(vector, 0, static_cast<int64_t>(i), 1), {}), DType::F64);
  }

private:
  static ValueId take(Result<ValueId> v) {
    assert(v.ok());
    return *v;
  }
  NodeImporter &n;
  Compose c;
};

class Resizer {
public:
  /// Numbers are those of the data; integers are interpolated in f64 and truncated at the end.
  Resizer(NodeImporter &n, ValueId x, const ResizeForm &form, const Shape &out)
      : n(n), c(n), f(n), form(form), out(out), type(n.typeOf(x)),
        t(form.mode == "nearest"                 ? type
          : type == DType::F64 || !isFloat(type) ? DType::F64
                                                 : DType::F32),
        result(c.cast(x, t)) {}

  /// `scale`: nothing where it is the ratio of the sizes. `reach`: how many elements on either side of a position
  /// count, or more, where antialiasing makes the filter as wide as the output's elements are apart.
  void axis(size_t axis, ValueId scale, ValueId begin, ValueId end,
            const std::optional<DimExpr> &reach) {
    const ValueId places = c.iota(out[axis]);
    in = f.size(result, axis);
    made = f.size(places, 0);
    last = f.plus(in, -1);
    lastIndex = n.shapeOf(result)[axis].isConst()
                    ? c.integer(n.shapeOf(result)[axis].constValue() - 1)
                    : f.binary(OpKind::Sub, f.length(result, axis), c.integer(1));
    width = scale == kNoValue ? made : f.narrow(OpKind::Mul, scale, in);
    if (scale == kNoValue)
      scale = f.narrow(OpKind::Div, made, in);
    const ValueId x = position(c.cast(places, DType::F64), scale, begin, end);
    if (form.mode == "nearest")
      result = gathered(axis, nearest(x));
    else if (reach)
      result = antialiased(axis, x, scale, *reach);
    else
      result = interpolated(axis, x);
    if (!form.isCrop())
      return;
    ValueId here = f.binary(OpKind::And, f.compare(OpKind::GreaterOrEqual, x, 0),
                            f.binary(OpKind::LessOrEqual, x, last));
    Shape column(out.size() - axis, DimExpr(1));
    column[0] = out[axis];
    here = n.reshape(here, std::move(column));
    inside = inside == kNoValue ? here : f.binary(OpKind::And, inside, here);
  }

  void finish() {
    if (inside != kNoValue)
      result = f.where(inside, result, c.scalar(t, form.extrapolation));
    n.result(0, c.cast(result, type));
  }

private:
  /// Where the places `i` of the output lie on the input.
  ValueId position(ValueId i, ValueId scale, ValueId begin, ValueId end) {
    const ValueId one = f.compare(OpKind::Equal, width, 1);
    const ValueId gaps = f.plus(width, -1);
    if (form.transform == "align_corners")
      return f.where(one, f.number(0), f.div(f.mul(i, last), gaps));
    if (form.transform == "asymmetric")
      return f.narrow(OpKind::Div, i, scale);
    if (form.isCrop()) {
      const ValueId span = f.mul(f.sub(end, begin), last);
      const ValueId inner = f.where(one, f.times(span, 0.5), f.div(f.mul(i, span), gaps));
      return f.add(inner, f.mul(begin, last));
    }
    const ValueId centre = f.narrow(OpKind::Div, f.plus(i, 0.5), scale),
                  half = f.narrow(OpKind::Sub, centre, f.number(0.5));
    if (form.transform == "tf_half_pixel_for_nn")
      return centre;
    if (form.transform == "half_pixel_symmetric")
      return f.add(f.mul(f.sub(f.number(1), f.div(made, width)), f.times(in, 0.5)), half);
    if (form.transform == "pytorch_half_pixel")
      return f.where(f.compare(OpKind::Equal, made, 1), f.times(i, 0), half);
    return half;
  }

  ValueId nearest(ValueId x) {
    const ValueId low = f.unary(OpKind::Floor, x), ratio = f.sub(x, low);
    if (form.nearest == "floor")
      return low;
    const OpKind op =
        form.nearest == "round_prefer_ceil" ? OpKind::GreaterOrEqual : OpKind::Greater;
    return f.add(low, f.fromBool(f.compare(op, ratio, form.nearest == "ceil" ? 0 : 0.5)));
  }

  ValueId gathered(size_t axis, ValueId place) {
    const ValueId at = c.like(OpKind::Clip, {c.cast(place, DType::I64), c.integer(0), lastIndex});
    return c.like(OpKind::Gather, {result, at}, {{"axis", static_cast<int64_t>(axis)}});
  }

  /// The weight of a tap at a distance from the position.
  ValueId weight(ValueId distance) {
    const ValueId d = f.unary(OpKind::Abs, distance);
    if (form.mode == "linear")
      return f.binary(OpKind::Max, f.sub(f.number(1), d), f.number(0));
    const double a = form.cubic;
    const ValueId near = f.plus(f.mul(f.mul(f.plus(f.times(d, a + 2), -(a + 3)), d), d), 1);
    const ValueId far =
        f.plus(f.mul(f.plus(f.mul(f.plus(f.times(d, a), -5 * a), d), 8 * a), d), -4 * a);
    return f.where(f.compare(OpKind::LessOrEqual, d, 1), near,
                   f.where(f.compare(OpKind::Less, d, 2), far, f.number(0)));
  }

  /// The weight of taps at `places`, each at a distance from its position.
  ValueId weightOf(ValueId place, ValueId distance) {
    const ValueId w = weight(distance);
    if (!form.excludeOutside)
      return w;
    const ValueId within = f.binary(OpKind::And, f.compare(OpKind::GreaterOrEqual, place, 0),
                                    f.binary(OpKind::LessOrEqual, place, last));
    return f.where(within, w, f.number(0));
  }

  /// What `part` is of the sum of all weights.
  ValueId shareOf(ValueId part, ValueId all) {
    return f.div(part, f.where(f.compare(OpKind::Equal, all, 0), f.number(1), all));
  }

  ValueId interpolated(size_t axis, ValueId x) {
    const int first = form.mode == "cubic" ? -1 : 0;
    const ValueId base = f.plus(f.unary(OpKind::Ceil, x), -1), ratio = f.sub(x, base);
    std::vector<ValueId> places, weights;
    ValueId all = kNoValue;
    for (int tap = first; tap <= 1 - first; ++tap) {
      places.push_back(f.plus(base, tap));
      weights.push_back(weightOf(places.back(), f.sub(f.number(tap), ratio)));
      all = all == kNoValue ? weights.back() : f.add(all, weights.back());
    }
    Shape column(out.size() - axis, DimExpr(1));
    column[0] = out[axis];
    ValueId sum = kNoValue;
    for (size_t k = 0; k < places.size(); ++k) {
      ValueId share = n.reshape(c.cast(shareOf(weights[k], all), t), column);
      ValueId term = f.mul(gathered(axis, places[k]), share);
      sum = sum == kNoValue ? term : f.add(sum, term);
    }
    return sum;
  }

  /// As above, with an axis of taps, since their number may hang on sizes. Its weights are 0 beyond the filter.
  ValueId antialiased(size_t axis, ValueId x, ValueId scale, const DimExpr &reach) {
    const DimExpr count = reach * DimExpr(2);
    const ValueId stretch = f.binary(OpKind::Min, scale, f.number(1));
    const ValueId position = n.reshape(x, {out[axis], DimExpr(1)});
    const ValueId base = f.plus(f.unary(OpKind::Ceil, position), -1);
    const ValueId half = f.times(f.size(c.iota(count), 0), 0.5);
    const ValueId tap = f.sub(f.plus(c.cast(c.iota(count), DType::F64), 1), half);
    const ValueId place = f.add(base, tap);
    const ValueId w = weightOf(place, f.mul(f.sub(place, position), stretch));
    const ValueId share = c.cast(shareOf(w, f.sum(w, 1)), t);
    Shape column(out.size() - axis + 1, DimExpr(1));
    column[0] = out[axis];
    column[1] = count;
    const ValueId terms = f.mul(gathered(axis, place), n.reshape(share, std::move(column)));
    return n.reshape(f.sum(terms, axis + 1), resized(axis));
  }

  /// The shape of the result so far where `axis` is resized.
  Shape resized(size_t axis) {
    Shape shape = n.shapeOf(result);
    shape[axis] = out[axis];
    return shape;
  }

  NodeImporter &n;
  Compose c;
  Numbers f;
  const ResizeForm &form;
  const Shape &out;
  DType type, t;
  ValueId result, inside = kNoValue;
  // The sizes of the axis at hand, what the scale makes of the first, and where its last element is.
  ValueId in = kNoValue, made = kNoValue, width = kNoValue, last = kNoValue, lastIndex = kNoValue;
};

/// "the scales are a run-time value; they", of some of the operands.
std::string runTimeValues(const ResizeOperands &operands, const std::vector<size_t> &open) {
  std::string names;
  for (size_t i : open)
    names += std::string(names.empty() ? "" : " and ") + "the " +
             (operands.roi == i      ? "roi"
              : operands.scales == i ? "scales"
                                     : "sizes");
  if (open.size() > 1)
    return names + " are run-time values; they";
  return names +
         (operands.roi == open[0] ? " is a run-time value; it" : " are a run-time value; they");
}

/// The output's shape where it is known although values of `open` are not: what sizes say, or the model declares.
std::optional<Shape> outputShape(NodeImporter &n, const ResizeForm &form,
                                 const ResizeOperands &operands) {
  const Shape &in = n.shape(0);
  std::optional<Shape> declared;
  if (auto d = n.declared(0); d && d->shape.size() == in.size())
    declared = d->shape;
  if (operands.sizes && !form.isKeepingAspect()) {
    const auto sizes = n.known(*operands.sizes);
    if (!sizes || sizes->size() != form.axes.size())
      return declared;
    Shape out = in;
    for (size_t i = 0; i < sizes->size(); ++i)
      out[static_cast<size_t>(form.axes[i])] = (*sizes)[i];
    return out;
  }
  auto valueOf = [&](std::optional<size_t> i) -> ConstantRef {
    return !i ? nullptr : n.in(*i).constant ? n.in(*i).constant : n.in(*i).defaultValue;
  };
  auto isOpen = [&](std::optional<size_t> i) { return i && !n.in(*i).constant; };
  const ConstantRef by = valueOf(operands.sizes ? operands.sizes : operands.scales);
  ConstantRef roi = valueOf(operands.roi);
  if (!by || (operands.roi && !roi && operands.scales))
    return declared;
  if (form.isCrop() && !roi) // which sizes do not hang on
    roi = makeConstant(DType::F32, {static_cast<int64_t>(2 * form.axes.size())},
                       std::vector<uint8_t>(8 * form.axes.size()));
  std::optional<std::vector<int64_t>> sizes;
  if (operands.sizes) {
    sizes.emplace();
    for (int64_t i = 0; i < by->numElements(); ++i)
      sizes->push_back(by->intAt(i));
  }
  const auto made = n.sizes().resized(in, {form.axes, form.policy, form.isCrop(), roi, by, sizes});
  if (operands.sizes && !isOpen(operands.sizes))
    return made.ok() ? std::optional(*made) : declared;
  // What is declared has to hold for the default values at least.
  return made.ok() && declared == *made ? declared : std::nullopt;
}

/// An axis without elements stays one.
Status mayBecome(const NodeImporter &n, const DimExpr &in, const DimExpr &out) {
  return n.sizes().noLess(in, min(out, DimExpr(1)), "an empty axis cannot grow");
}

/// How many elements on either side of a position count where antialiasing makes the filter as wide as a scale says;
/// nothing without it.
std::optional<DimExpr> reachOf(const ResizeForm &form, double scale) {
  if (!form.isWidening())
    return std::nullopt;
  return DimExpr(static_cast<int64_t>(std::ceil(form.reach() / std::min(scale, 1.0))));
}

/// No less than that for the scale that makes `out` elements of `in`. It is their ratio at least, and with a policy
/// that of half an element less.
std::optional<DimExpr> reachOf(const ResizeForm &form, const DimExpr &in, const DimExpr &out) {
  if (!form.isWidening())
    return std::nullopt;
  const int64_t parts = form.isKeepingAspect() ? 2 : 1;
  const DimExpr made = out * DimExpr(parts) - DimExpr(parts - 1);
  return max(ceilDiv(in * DimExpr(parts * form.reach()), max(made, DimExpr(1))),
             DimExpr(form.reach()));
}

Status resizeByValues(NodeImporter &n, const ResizeForm &form, const ResizeOperands &operands,
                      const std::vector<size_t> &open) {
  const size_t count = form.axes.size();
  const Shape in = n.shape(0);
  if (form.isWidening() && form.isCrop() && operands.scales)
    return n.needsConstant(runTimeValues(operands, open) +
                               " must be constant with antialias and a region, where the number of "
                               "elements that count hangs on them",
                           open);
  std::optional<Shape> shape = computedShape(n, form, operands);
  const bool isDeclared = !shape;
  if (isDeclared)
    shape = outputShape(n, form, operands);
  if (!shape && open.empty())
    return n.needsFixed("the axes to resize must have fixed sizes", in);
  if (!shape) {
    std::vector<size_t> missing = open;
    if (operands.sizes && !form.isKeepingAspect() && !n.peek(*operands.sizes))
      missing.push_back(*operands.sizes);
    return n.needsConstant(runTimeValues(operands, missing) +
                               " must be constant, or the output's shape declared",
                           missing);
  }
  const Shape &out = *shape;
  Shape kept = out;
  for (int64_t a : form.axes) {
    const auto d = static_cast<size_t>(a);
    if (in[d].isConst(0))
      return n.mismatch("an axis to resize is empty");
    if (out[d].isConst())
      FUSEC_CHECK(checkResized(n.sizes(), static_cast<double>(out[d].constValue())));
    FUSEC_CHECK(mayBecome(n, in[d], out[d]));
    kept[d] = in[d];
  }
  if (kept != in)
    return n.mismatch("the declared output has other sizes off the axes to resize", kept, in);
  auto idOf = [&](std::optional<size_t> i) { return i ? n.id(*i) : kNoValue; };
  const ValueId roi = idOf(operands.roi), scales = idOf(operands.scales),
                sizes = idOf(operands.sizes);
  for (auto [vector, length] : {std::pair{scales, count}, {sizes, count}, {roi, 2 * count}})
    if (const Shape wanted{DimExpr(static_cast<int64_t>(length))};
        vector != kNoValue && n.shapeOf(vector) != wanted)
      return n.mismatch("scales, sizes and roi must have one number for each axis, roi two",
                        n.shapeOf(vector), wanted);
  if (isDeclared)
    FUSEC_CHECK(requireResized(n, form, operands, out));
  Numbers f(n);
  std::vector<ValueId> ratios;
  for (size_t i = 0; sizes != kNoValue && form.isKeepingAspect() && i < count; ++i)
    ratios.push_back(f.narrow(OpKind::Div, f.element(sizes, i),
                              f.size(n.id(0), static_cast<size_t>(form.axes[i]))));
  auto nearer = [&](DimProgram::Op op, ValueId a, ValueId b) {
    return f.binary(op == DimProgram::Op::Min ? OpKind::Min : OpKind::Max, a, b);
  };
  const ValueId keep = ratios.empty() ? kNoValue : keptScale(ratios, form.policy, nearer);
  Resizer resizer(n, n.id(0), form, out);
  for (size_t i = 0; i < count; ++i) {
    const ValueId scale = keep != kNoValue     ? keep
                          : scales != kNoValue ? f.element(scales, i)
                                               : kNoValue;
    const ValueId begin = roi == kNoValue ? kNoValue : f.element(roi, i),
                  end = roi == kNoValue ? kNoValue : f.element(roi, i + count);
    const auto d = static_cast<size_t>(form.axes[i]);
    resizer.axis(d, scale, begin, end, reachOf(form, in[d], out[d]));
  }
  resizer.finish();
  return success();
}

} // namespace

Status resizeOpenSizes(NodeImporter &n, ValueId x, const ResizeForm &form, const ConstantRef &roi,
                       const ConstantRef &scales, const std::optional<Shape> &sizes) {
  const Shape in = n.shapeOf(x);
  Shape out = in;
  const size_t count = form.axes.size();
  auto valueOf = [](const ConstantRef &c, size_t i) { return c->floatAt(static_cast<int64_t>(i)); };
  HostNumbers &numbers = n.graphBuilder().knownValues.numbers;
  auto real = [&](double v) { return numbers.real(DType::F32, v); };
  FUSEC_CHECK(checkResize(n.sizes(), count, sizes ? std::optional(sizes->size()) : std::nullopt,
                          scales, form.isCrop(), roi));
  for (size_t i = 0; i < count; ++i) {
    const auto d = static_cast<size_t>(form.axes[i]);
    if (sizes) {
      out[d] = (*sizes)[i];
      if (out[d].isConst())
        FUSEC_CHECK(checkResized(n.sizes(), static_cast<double>(out[d].constValue())));
      FUSEC_CHECK(mayBecome(n, in[d], out[d]));
      continue;
    }
    const double scale = valueOf(scales, i);
    FUSEC_CHECK(checkScale(n.sizes(), scale));
    const auto part =
        form.isCrop() ? numbers.apply(DimProgram::Op::Sub, DType::F32,
                                      {real(valueOf(roi, i + count)), real(valueOf(roi, i)), -1})
                      : std::nullopt;
    const auto size = scaledSize(n, in[d], real(scale), part);
    if (!size)
      return n.needsFixed("with a scale of " + std::to_string(scale) +
                              " the axes to resize must have fixed sizes",
                          {in[d]});
    out[d] = *size;
  }
  Numbers f(n);
  Resizer resizer(n, x, form, out);
  for (size_t i = 0; i < count; ++i) {
    const auto d = static_cast<size_t>(form.axes[i]);
    const bool isWhole = !form.isCrop() || (valueOf(roi, i) == 0 && valueOf(roi, i + count) == 1);
    if (isWhole && (sizes ? out[d] == in[d] : valueOf(scales, i) == 1))
      continue;
    resizer.axis(d, scales ? f.number(valueOf(scales, i)) : kNoValue,
                 form.isCrop() ? f.number(valueOf(roi, i)) : kNoValue,
                 form.isCrop() ? f.number(valueOf(roi, i + count)) : kNoValue,
                 scales ? reachOf(form, valueOf(scales, i)) : reachOf(form, in[d], out[d]));
  }
  resizer.finish();
  return success();
}

std::vector<size_t> openOperands(const NodeImporter &n, const ResizeForm &form,
                                 const ResizeOperands &operands) {
  std::vector<size_t> open;
  for (std::optional<size_t> i :
       {operands.roi, operands.scales, form.isKeepingAspect() ? operands.sizes : std::nullopt})
    if (i && !n.in(*i).constant)
      open.push_back(*i);
  return open;
}

Status resizeAtRunTime(NodeImporter &n, const ResizeForm &form, const ResizeOperands &operands,
                       const std::vector<size_t> &open) {
  Status status = resizeByValues(n, form, operands, open);
  if (!status.ok())
    for (size_t i : open)
      n.ask(n.id(i)); // there are other ways for constants
  return status;
}

} // namespace fusec
