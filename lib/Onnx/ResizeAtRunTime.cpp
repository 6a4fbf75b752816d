#include "Onnx/ResizeAtRunTime.h"
#include "Onnx/Compose.h"
#include "Onnx/DimTools.h"

#include <algorithm>

namespace fusec {
namespace {

/// Formulas over f64, in which positions are computed where they are known at compile time too.
class Numbers {
public:
  explicit Numbers(NodeImporter &n) : n(n), c(n) {}

  ValueId number(double v) { return c.scalar(DType::F64, v); }
  ValueId add(ValueId a, ValueId b) { return binary(OpKind::Add, a, b); }
  ValueId sub(ValueId a, ValueId b) { return binary(OpKind::Sub, a, b); }
  ValueId mul(ValueId a, ValueId b) { return binary(OpKind::Mul, a, b); }
  ValueId div(ValueId a, ValueId b) { return binary(OpKind::Div, a, b); }
  // Of other names: a ValueId is a number too.
  ValueId plus(ValueId a, double b) { return add(a, number(b)); }
  ValueId times(ValueId a, double b) { return mul(a, number(b)); }
  ValueId unary(OpKind op, ValueId a) { return c.unary(op, a); }
  ValueId compare(OpKind op, ValueId a, double b) { return binary(op, a, number(b)); }
  /// Where the sizes are equal, or one of them is one number.
  ValueId binary(OpKind op, ValueId a, ValueId b) { return take(c.binary(op, a, b)); }
  ValueId where(ValueId condition, ValueId a, ValueId b) { return take(c.where(condition, a, b)); }
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
  Resizer(NodeImporter &n, const ResizeForm &form, const Shape &out)
      : n(n), c(n), f(n), form(form), out(out), type(n.type(0)),
        t(!isFloat(type) || form.mode == "nearest" ? type
          : type == DType::F64                     ? DType::F64
                                                   : DType::F32),
        result(c.cast(n.id(0), t)) {}

  Status axis(size_t axis, ValueId scale, ValueId begin, ValueId end) {
    const int64_t in = n.shapeOf(result)[axis].constValue(), made = out[axis].constValue();
    const double last = static_cast<double>(in - 1);
    const ValueId x = position(static_cast<double>(in), static_cast<double>(made),
                               c.cast(c.iota(DimExpr(made)), DType::F64), scale, begin, end);
    if (form.mode == "nearest")
      result = gathered(axis, nearest(x), in);
    else
      result = interpolated(axis, x, in);
    if (form.transform != "tf_crop_and_resize")
      return success();
    ValueId here = f.binary(OpKind::And, f.compare(OpKind::GreaterOrEqual, x, 0),
                            f.compare(OpKind::LessOrEqual, x, last));
    Shape column(out.size() - axis, DimExpr(1));
    column[0] = out[axis];
    here = n.reshape(here, std::move(column));
    inside = inside == kNoValue ? here : f.binary(OpKind::And, inside, here);
    return success();
  }

  void finish() {
    if (inside != kNoValue)
      result = f.where(inside, result, c.scalar(t, form.extrapolation));
    n.result(0, c.cast(result, type));
  }

private:
  /// Where the places `i` of the output lie on the input.
  ValueId position(double in, double made, ValueId i, ValueId scale, ValueId begin, ValueId end) {
    const ValueId width = f.times(scale, in), one = f.compare(OpKind::Equal, width, 1);
    const ValueId gaps = f.plus(width, -1);
    if (form.transform == "align_corners")
      return f.where(one, f.number(0), f.div(f.times(i, in - 1), gaps));
    if (form.transform == "asymmetric")
      return f.div(i, scale);
    if (form.transform == "tf_crop_and_resize") {
      const ValueId span = f.times(f.sub(end, begin), in - 1);
      const ValueId inner = f.where(one, f.times(span, 0.5), f.div(f.mul(i, span), gaps));
      return f.add(inner, f.times(begin, in - 1));
    }
    if (form.transform == "pytorch_half_pixel" && made == 1)
      return f.times(i, 0);
    const ValueId centre = f.div(f.plus(i, 0.5), scale), half = f.plus(centre, -0.5);
    if (form.transform == "tf_half_pixel_for_nn")
      return centre;
    if (form.transform == "half_pixel_symmetric")
      return f.add(f.times(f.sub(f.number(1), f.div(f.number(made), width)), in / 2), half);
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

  ValueId gathered(size_t axis, ValueId place, int64_t in) {
    auto number = [&](int64_t v) { return Compose(n).integer(v); };
    const ValueId at =
        n.emitOne(OpKind::Clip, {c.cast(place, DType::I64), number(0), number(in - 1)}, {},
                  DType::I64, {out[axis]});
    Shape shape = n.shapeOf(result);
    shape[axis] = out[axis];
    return n.emitOne(OpKind::Gather, {result, at}, {{"axis", static_cast<int64_t>(axis)}}, t,
                     std::move(shape));
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

  ValueId interpolated(size_t axis, ValueId x, int64_t in) {
    const bool cubic = form.mode == "cubic";
    const ValueId base = f.plus(f.unary(OpKind::Ceil, x), -1), ratio = f.sub(x, base);
    std::vector<ValueId> places, weights;
    ValueId all = kNoValue;
    for (int tap = cubic ? -1 : 0; tap <= (cubic ? 2 : 1); ++tap) {
      ValueId place = f.plus(base, tap), w = weight(f.sub(f.number(tap), ratio));
      if (form.excludeOutside) {
        ValueId within =
            f.binary(OpKind::And, f.compare(OpKind::GreaterOrEqual, place, 0),
                     f.compare(OpKind::LessOrEqual, place, static_cast<double>(in - 1)));
        w = f.where(within, w, f.number(0));
      }
      places.push_back(place);
      weights.push_back(w);
      all = all == kNoValue ? w : f.add(all, w);
    }
    const ValueId whole = f.where(f.compare(OpKind::Equal, all, 0), f.number(1), all);
    Shape column(out.size() - axis, DimExpr(1));
    column[0] = out[axis];
    ValueId sum = kNoValue;
    for (size_t k = 0; k < places.size(); ++k) {
      ValueId share = n.reshape(c.cast(f.div(weights[k], whole), t), column);
      ValueId term = f.mul(gathered(axis, places[k], in), share);
      sum = sum == kNoValue ? term : f.add(sum, term);
    }
    return sum;
  }

  NodeImporter &n;
  Compose c;
  Numbers f;
  const ResizeForm &form;
  const Shape &out;
  DType type, t;
  ValueId result, inside = kNoValue;
};

/// Why an interpolation with antialias is not served: its operands that are not known.
Diagnostic unknownWeights(const NodeImporter &n, const std::vector<ValueId> &operands) {
  Diagnostic refused = n.fail(Diag::UnsupportedShape,
                              "with antialias the scales must be constant: they say how many "
                              "elements count");
  for (size_t i = 1; i < n.numInputs(); ++i)
    if (n.has(i) && !n.in(i).constant &&
        std::find(operands.begin(), operands.end(), n.id(i)) != operands.end())
      refused = n.needsConstant(refused.text, i);
  return refused;
}

} // namespace

Status resizeAtRunTime(NodeImporter &n, const ResizeForm &form, ValueId roi, ValueId scales,
                       ValueId sizes, const Shape &out) {
  const size_t count = form.axes.size();
  const Shape in = n.shape(0);
  Shape kept = out, resized;
  for (int64_t a : form.axes) {
    const auto d = static_cast<size_t>(a);
    if (in[d].isConst(0))
      return n.mismatch("an axis to resize is empty");
    resized.insert(resized.end(), {in[d], out[d]});
    kept[d] = in[d];
  }
  if (!isStatic(resized))
    return n.needsFixed("the axes to resize must have fixed sizes", resized);
  if (kept != in)
    return n.mismatch("the declared output has other sizes off the axes to resize", kept, in);
  for (auto [vector, length] : {std::pair{scales, count}, {sizes, count}, {roi, 2 * count}})
    if (const Shape wanted{DimExpr(static_cast<int64_t>(length))};
        vector != kNoValue && n.shapeOf(vector) != wanted)
      return n.mismatch("scales, sizes and roi must have one number for each axis, roi two",
                        n.shapeOf(vector), wanted);
  if (form.mode != "nearest" && form.antialias)
    return unknownWeights(n, {roi, scales, sizes});
  if (form.mode != "nearest" && !isFloat(n.type(0)))
    return n.unsupported("integers, interpolated with scales that are run-time values");
  Numbers f(n);
  ValueId keep = kNoValue; // the common scale of all axes
  auto ratio = [&](size_t i) {
    return f.div(f.element(sizes, i),
                 f.number(static_cast<double>(in[static_cast<size_t>(form.axes[i])].constValue())));
  };
  if (sizes != kNoValue && form.policy != "stretch")
    for (size_t i = 0; i < count; ++i)
      keep = keep == kNoValue ? ratio(i)
                              : f.binary(form.policy == "not_larger" ? OpKind::Min : OpKind::Max,
                                         keep, ratio(i));
  Resizer resizer(n, form, out);
  for (size_t i = 0; i < count; ++i) {
    const ValueId scale = keep != kNoValue     ? keep
                          : scales != kNoValue ? f.element(scales, i)
                                               : ratio(i);
    const ValueId begin = roi == kNoValue ? kNoValue : f.element(roi, i),
                  end = roi == kNoValue ? kNoValue : f.element(roi, i + count);
    FUSEC_CHECK(resizer.axis(static_cast<size_t>(form.axes[i]), scale, begin, end));
  }
  resizer.finish();
  return success();
}

} // namespace fusec
