#include "Onnx/Compose.h"
#include "Onnx/DimTools.h"
#include "Onnx/OpTable.h"
#include "Onnx/ResizeAtRunTime.h"
#include "Support/Diag.h"

#include <algorithm>
#include <cmath>
#include <numeric>

// Operators that move between spatial sizes: Resize (and Upsample, its ancestor), GridSample, Col2Im,
// DepthToSpace and SpaceToDepth.

namespace fusec {
namespace {

bool oneOf(const std::string &s, std::initializer_list<const char *> list) {
  return std::any_of(list.begin(), list.end(), [&](const char *x) { return s == x; });
}

/// True where the nearest neighbours are each element `factor` times over, whatever the length.
bool repeats(const ResizeForm &f, int64_t factor) {
  if (factor < 2 || f.mode != "nearest" || f.policy != "stretch")
    return false;
  if (f.transform == "asymmetric")
    return f.nearest == "floor" || (f.nearest == "round_prefer_floor" && factor == 2);
  return oneOf(f.transform, {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"}) &&
         oneOf(f.nearest, {"round_prefer_floor", "round_prefer_ceil"});
}

/// Axes without a fixed size, of which `factors` gives those to repeat: they leave the form, and its scales.
ValueId repeatOpenAxes(NodeImporter &n, ResizeForm &f, ConstantRef &scales,
                       const std::vector<int64_t> &factors) {
  ValueId x = n.id(0);
  ResizeForm rest = f;
  rest.axes.clear();
  std::vector<uint8_t> data;
  for (size_t i = 0; i < f.axes.size(); ++i) {
    auto a = static_cast<size_t>(f.axes[i]);
    if (n.shape(0)[a].isConst() || !repeats(f, factors[i])) {
      rest.axes.push_back(f.axes[i]);
      appendElement(data, DType::F32, scales->floatAt(static_cast<int64_t>(i)));
      continue;
    }
    Shape whole = n.shapeOf(x), split = whole;
    split.insert(split.begin() + f.axes[i] + 1, DimExpr(1));
    x = n.reshape(x, split);
    split[a + 1] = DimExpr(factors[i]);
    x = Compose(n).expand(x, split);
    whole[a] = whole[a] * DimExpr(factors[i]);
    x = n.reshape(x, whole);
  }
  scales = makeConstant(DType::F32, {static_cast<int64_t>(rest.axes.size())}, std::move(data));
  f = std::move(rest);
  return x;
}

/// Emits the node, and for open sizes that are multiplied what repeats their elements.
Status finishResize(NodeImporter &n, ResizeForm f, ConstantRef roi, ConstantRef scales,
                    std::optional<std::vector<int64_t>> sizes) {
  ValueId x = n.id(0);
  if (scales && !f.isCrop() && static_cast<size_t>(scales->numElements()) == f.axes.size()) {
    std::vector<int64_t> factors;
    for (int64_t i = 0; i < scales->numElements(); ++i) {
      double s = scales->floatAt(i);
      factors.push_back(s >= 1 && s < 1 << 30 && s == std::floor(s) ? static_cast<int64_t>(s) : 0);
    }
    x = repeatOpenAxes(n, f, scales, factors);
    for (size_t i = 0; i < f.axes.size(); ++i)
      if (!n.shapeOf(x)[static_cast<size_t>(f.axes[i])].isConst() &&
          scales->floatAt(static_cast<int64_t>(i)) != 1)
        return resizeOpenSizes(n, x, f, roi, scales, std::nullopt);
  } else if (sizes) {
    for (int64_t a : f.axes)
      if (!n.shapeOf(x)[static_cast<size_t>(a)].isConst())
        return resizeOpenSizes(n, x, f, roi, nullptr, Shape(sizes->begin(), sizes->end()));
  }
  std::vector<ValueId> in{x, roi ? n.constantValue(roi) : kNoValue};
  if (sizes) {
    in.push_back(kNoValue);
    in.push_back(n.intsValue(*sizes));
  } else {
    in.push_back(n.constantValue(scales));
  }
  return n.finish(OpKind::Resize, std::move(in),
                  {{"antialias", f.antialias},
                   {"axes", f.axes},
                   {"coordinate_transformation_mode", f.transform},
                   {"cubic_coeff_a", f.cubic},
                   {"exclude_outside", f.excludeOutside},
                   {"extrapolation_value", f.extrapolation},
                   {"keep_aspect_ratio_policy", f.policy},
                   {"mode", f.mode},
                   {"nearest_mode", f.nearest}});
}

/// Input 3 says the sizes, which follow from shapes or are declared.
Status resizeBySizes(NodeImporter &n, const ResizeForm &f, const ConstantRef &roi,
                     const ResizeOperands &operands) {
  auto sizes = n.ints(3);
  const bool isOpen = std::any_of(f.axes.begin(), f.axes.end(), [&](int64_t a) {
    return !n.shape(0)[static_cast<size_t>(a)].isConst();
  });
  if (f.isKeepingAspect() && n.known(3) && (!sizes || isOpen))
    return resizeAtRunTime(n, f, operands, {});
  // Sizes that are each a multiple of the operand's are scales.
  if (auto known = n.known(3); !sizes && known && known->size() == f.axes.size()) {
    std::vector<uint8_t> factors;
    for (size_t i = 0; i < known->size(); ++i)
      if (auto factor = exactQuotient({(*known)[i]}, {n.shape(0)[static_cast<size_t>(f.axes[i])]},
                                      n.symbols());
          factor && factor->isConst())
        appendElement(factors, DType::F32, static_cast<double>(factor->constValue()));
    if (factors.size() == 4 * known->size() && !f.isKeepingAspect())
      return finishResize(
          n, f, roi,
          makeConstant(DType::F32, {static_cast<int64_t>(known->size())}, std::move(factors)),
          std::nullopt);
  }
  if (auto known = n.known(3); !sizes && known && known->size() == f.axes.size())
    return resizeOpenSizes(n, n.id(0), f, roi, nullptr, *known);
  auto declared = n.declared(0);
  if (!sizes && declared && declared->shape.size() == n.shape(0).size() &&
      isStatic(declared->shape) && !f.isKeepingAspect()) {
    sizes.emplace();
    for (int64_t a : f.axes)
      sizes->push_back(declared->shape[static_cast<size_t>(a)].constValue());
    if (Shape{DimExpr(static_cast<int64_t>(sizes->size()))} != n.shape(3))
      return n.mismatch("one size for each axis is needed");
    FUSEC_CHECK(requireResized(n, f, operands, declared->shape));
  }
  if (!sizes)
    return n.needsConstant("the sizes are a run-time value; they must be constant", {3});
  return finishResize(n, f, roi, nullptr, sizes);
}

Status resize(NodeImporter &n) {
  ResizeForm f;
  bool first = n.opset() < 11; // opset 10: inputs x, scales; asymmetric, floor
  f.axes.resize(static_cast<size_t>(n.rank(0)));
  std::iota(f.axes.begin(), f.axes.end(), 0);
  if (!first) {
    f.transform = n.attrString("coordinate_transformation_mode", f.transform);
    f.nearest = n.attrString("nearest_mode", f.nearest);
    f.cubic = n.attrFloat("cubic_coeff_a", -0.75);
    f.excludeOutside = n.attrInt("exclude_outside", 0);
    f.extrapolation = n.attrFloat("extrapolation_value", 0.0);
    f.antialias = n.attrInt("antialias", 0);
    f.policy = n.attrString("keep_aspect_ratio_policy", f.policy);
    if (n.hasAttribute("axes")) {
      std::vector<int64_t> axes;
      for (int64_t a : n.attrInts("axes")) {
        FUSEC_TRY(int64_t normal, n.axis(a, n.rank(0)));
        axes.push_back(normal);
      }
      f.axes = axes;
    }
  } else {
    f.transform = "asymmetric";
    f.nearest = "floor";
  }
  f.mode = n.attrString("mode", f.mode);
  if (!oneOf(f.mode, {"nearest", "linear", "cubic"}) ||
      !oneOf(f.transform,
             {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
              "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"}) ||
      !oneOf(f.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) ||
      !oneOf(f.policy, {"stretch", "not_larger", "not_smaller"}))
    return n.fail(Diag::BadAttribute, "mode, coordinate_transformation_mode, nearest_mode or "
                                      "keep_aspect_ratio_policy has an unknown value");
  size_t scaleInput = first ? 1 : 2;
  auto empty = [&](size_t i) { return !n.has(i) || numElements(n.shape(i)).isConst(0); };
  const bool crops = f.isCrop() && !empty(1), bySizes = !empty(3); // others ignore the region
  if (!bySizes && empty(scaleInput))
    return n.mismatch("the scales are missing, and so are sizes");
  ResizeOperands operands;
  if (crops)
    operands.roi = 1;
  (bySizes ? operands.sizes : operands.scales) = bySizes ? 3 : scaleInput;
  if (auto open = openOperands(n, f, operands); !open.empty())
    return resizeAtRunTime(n, f, operands, open);
  const ConstantRef roi = crops ? n.in(1).constant : nullptr;
  if (bySizes)
    return resizeBySizes(n, f, roi, operands);
  return finishResize(n, f, roi, n.in(scaleInput).constant, std::nullopt);
}

Status upsample(NodeImporter &n) {
  ResizeForm f;
  f.transform = "asymmetric";
  f.nearest = "floor";
  f.mode = n.attrString("mode", "nearest");
  if (!oneOf(f.mode, {"nearest", "linear"}))
    return n.fail(Diag::BadAttribute, "mode must be nearest or linear");
  f.axes.resize(static_cast<size_t>(n.rank(0)));
  std::iota(f.axes.begin(), f.axes.end(), 0);
  ConstantRef scales;
  if (n.opset() < 9) {
    std::vector<double> list = n.attrFloats("scales");
    std::vector<uint8_t> data;
    for (double s : list)
      appendElement(data, DType::F32, s);
    scales = makeConstant(DType::F32, {static_cast<int64_t>(list.size())}, std::move(data));
  } else {
    if (!n.has(1))
      return n.mismatch("the scales are missing");
    const ResizeOperands operands{std::nullopt, 1, std::nullopt};
    if (auto open = openOperands(n, f, operands); !open.empty())
      return resizeAtRunTime(n, f, operands, open);
    scales = n.in(1).constant;
  }
  return finishResize(n, f, nullptr, scales, std::nullopt);
}

Status gridSample(NodeImporter &n) {
  std::string mode = n.attrString("mode", n.opset() < 20 ? "bilinear" : "linear");
  if (mode == "bilinear")
    mode = "linear";
  if (mode == "bicubic")
    mode = "cubic";
  return n.finish(OpKind::GridSample, n.ids(), {{"mode", mode}});
}

/// The block's sizes, and how it moves over the image.
struct ColumnsForm {
  std::vector<int64_t> block, dilations, strides, pads;

  int64_t extent(size_t d) const { return dilations[d] * (block[d] - 1) + 1; }
};

/// What tap `tap` of axis `d` of the block adds to the image, of x [N, C, the block's axes from d + 1 on, ...], whose
/// axis `axis` holds the positions of the block along image axis `d`.
Result<ValueId> tapOfColumns(NodeImporter &n, const ColumnsForm &form, size_t d, int64_t tap,
                             const std::pair<ValueId, int64_t> &x, const DimExpr &size) {
  Compose c(n);
  const auto [data, axis] = x;
  FUSEC_TRY(ValueId at,
            c.binary(OpKind::Add, c.iota(size), c.integer(form.pads[d] - tap * form.dilations[d])));
  FUSEC_TRY(ValueId inside, c.binary(OpKind::GreaterOrEqual, at, c.integer(0)));
  if (form.strides[d] != 1) {
    const ValueId stride = c.integer(form.strides[d]);
    FUSEC_TRY(const ValueId rest, n.emitOne(OpKind::Mod, {at, stride}, {{"fmod", int64_t(0)}}));
    FUSEC_TRY(const ValueId isWhole, c.binary(OpKind::Equal, rest, c.integer(0)));
    FUSEC_TRY(inside, c.binary(OpKind::And, inside, isWhole));
    FUSEC_TRY(at, c.binary(OpKind::Div, at, stride));
  }
  FUSEC_TRY(const ValueId count, c.extent(data, axis));
  FUSEC_TRY(const ValueId last, c.binary(OpKind::Sub, count, c.integer(1)));
  FUSEC_TRY(const ValueId isThere, c.binary(OpKind::LessOrEqual, at, last));
  FUSEC_TRY(inside, c.binary(OpKind::And, inside, isThere));
  at = c.like(OpKind::Clip, {at, c.integer(0), last});
  FUSEC_TRY(const ValueId found, c.gather(data, at, axis));
  Shape column(n.shapeOf(found).size() - static_cast<size_t>(axis), DimExpr(1));
  column[0] = size;
  return c.where(n.reshape(inside, std::move(column)), found, c.scalar(n.typeOf(data), 0));
}

/// An image whose sizes are not fixed: what the block's taps along one axis add to it after those along another.
Status col2ImOfSizes(NodeImporter &n, const ColumnsForm &form, const Shape &image) {
  constexpr int64_t kLargest = 1 << 20;
  Compose c(n);
  const size_t rank = image.size();
  auto fits = [&](const std::vector<int64_t> &list, size_t count, int64_t least) {
    return list.size() == count && std::all_of(list.begin(), list.end(), [&](int64_t v) {
             return v >= least && v <= kLargest;
           });
  };
  if (n.rank(0) != 3 || !fits(form.block, rank, 1) || !fits(form.strides, rank, 1) ||
      !fits(form.dilations, rank, 1) || !fits(form.pads, 2 * rank, 0))
    return n.mismatch("data of rank 3 and one entry for each image axis are needed, from 1 to 2^20 "
                      "each, and pads from 0");
  int64_t area = 1;
  Shape positions;
  for (size_t d = 0; d < rank; ++d) {
    const DimExpr room = image[d] + DimExpr(form.pads[d] + form.pads[d + rank] - form.extent(d));
    FUSEC_CHECK(n.sizes().noLess(room, DimExpr(0), "the block must fit the image"));
    positions.push_back(floorDiv(room, DimExpr(form.strides[d])) + DimExpr(1));
    if (__builtin_mul_overflow(area, form.block[d], &area))
      return n.fail(Diag::LimitExceeded, "the block is too large");
  }
  FUSEC_CHECK(n.sizes().multiple(n.shape(0)[1], area, "the number of channels"));
  FUSEC_CHECK(n.sameDim(n.shape(0)[2], numElements(positions), "the data and the block's places"));
  Shape shape{n.shape(0)[0], floorDiv(n.shape(0)[1], DimExpr(area))};
  shape.insert(shape.end(), form.block.begin(), form.block.end());
  shape.insert(shape.end(), positions.begin(), positions.end());
  ValueId x = n.reshape(n.id(0), std::move(shape));
  // Axis 2 is the block's axis d, and behind the block's others and the image's so far come the places along d.
  const auto places = static_cast<int64_t>(rank) + 1;
  for (size_t d = 0; d < rank; ++d) {
    ValueId sum = kNoValue;
    for (int64_t tap = 0; tap < form.block[d]; ++tap) {
      Shape rest = n.shapeOf(x);
      rest.erase(rest.begin() + 2);
      const ValueId own = n.reshape(c.slice(x, 2, tap, 1), std::move(rest));
      FUSEC_TRY(const ValueId part, tapOfColumns(n, form, d, tap, {own, places}, image[d]));
      if (sum == kNoValue) {
        sum = part;
        continue;
      }
      FUSEC_TRY(sum, c.binary(OpKind::Add, sum, part));
    }
    x = sum;
  }
  n.result(0, x);
  return success();
}

Status col2Im(NodeImporter &n) {
  auto block = n.ints(2);
  auto image = n.known(1);
  auto declared = n.declared(0);
  if (!block || (!image && !declared))
    return n.needsConstant("image and block shape are run-time values; the block's must be "
                           "constant, and the image's follow from constants and input shapes",
                           {1, 2});
  const size_t rank = block->size();
  if (!image) {
    image.emplace();
    for (size_t i = 2; i < declared->shape.size(); ++i)
      image->push_back(declared->shape[i].isConst() ? declared->shape[i] : DimExpr(-1));
  }
  const ColumnsForm form{*block, n.attrInts("dilations", std::vector<int64_t>(rank, 1)),
                         n.attrInts("strides", std::vector<int64_t>(rank, 1)),
                         n.attrInts("pads", std::vector<int64_t>(2 * rank, 0))};
  if (!isStatic(*image))
    return col2ImOfSizes(n, form, *image);
  return n.finish(OpKind::Col2Im, {n.id(0), n.intsValue(staticDims(*image)), n.intsValue(*block)},
                  {{"dilations", form.dilations}, {"pads", form.pads}, {"strides", form.strides}});
}

/// Has one mode before opset 28.
Status spaceToDepth(NodeImporter &n) {
  const std::string mode = n.opset() >= 28 ? n.attrString("mode", "DCR") : "DCR";
  return n.finish(OpKind::SpaceToDepth, {n.id(0)}, {{"mode", mode}});
}

constexpr OpRow kRows[] = {
    {"Col2Im", 18, kNewestOpset, 3, 3, 1, col2Im, "constant block shape"},
    {"DepthToSpace", 1, kNewestOpset, 1, 1, 1, sameOperator},
    {"GridSample", 16, kNewestOpset, 2, 2, 1, gridSample},
    {"Resize", 10, kNewestOpset, 1, 4, 1, resize,
     "scales or sizes that follow from constants and shapes, or a declared output"},
    {"SpaceToDepth", 1, kNewestOpset, 1, 1, 1, spaceToDepth},
    {"Upsample", 7, 9, 1, 2, 1, upsample,
     "scales that follow from constants and shapes, or a declared output"},
};

} // namespace

std::span<const OpRow> imagesOps() { return kRows; }

} // namespace fusec
