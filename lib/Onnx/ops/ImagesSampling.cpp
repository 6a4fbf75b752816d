#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"
#include "Onnx/SizedByData.h"
#include "Onnx/TestedInRun.h"
#include "Support/Diag.h"

// Grids of positions, and regions of images.

namespace fusec {
namespace {

/// The sizes of a grid: input 1, or what the model declares of the output.
Result<Shape> gridSizes(NodeImporter &n, size_t rank) {
  const std::string text = "the size must be a vector of " + std::to_string(rank + 2) + " i64";
  if (n.type(1) != DType::I64)
    return n.mismatch(text);
  FUSEC_CHECK(n.sizes().sameShape(n.shape(1), {DimExpr(static_cast<int64_t>(rank + 2))}, text));
  if (auto size = n.known(1)) {
    FUSEC_CHECK(n.sameDim(n.shape(0)[0], (*size)[0], "batch sizes"));
    for (const DimExpr &d : *size)
      FUSEC_CHECK(n.sizes().atLeast(d, 0, "a size of the grid"));
    return Shape(size->begin() + 2, size->end());
  }
  auto declared = n.declared(0);
  if (!declared || declared->shape.size() != rank + 2)
    return n.needsConstant("the size is a run-time value; it must follow from constants and input "
                           "shapes",
                           {1});
  const Shape sizes(declared->shape.begin() + 1, declared->shape.end() - 1);
  Compose c(n);
  // The batch is theta's, and of the channels the grid has none.
  const ValueId asked =
      c.concat({c.slice(n.id(1), 0, 0, 1), c.slice(n.id(1), 0, 2, static_cast<int64_t>(rank))}, 0);
  Shape all{n.shape(0)[0]};
  all.insert(all.end(), sizes.begin(), sizes.end());
  FUSEC_CHECK(requireDeclared(n, asked, all));
  return sizes;
}

/// Positions along an axis of `size`, of type t: from -1 to 1, at the pixels' centres or (with align_corners) from the
/// first centre to the last.
Result<ValueId> gridPositions(NodeImporter &n, const DimExpr &size, DType t, bool alignCorners) {
  Compose c(n);
  if (alignCorners && size.isConst(1)) // its step would be infinite
    return n.reshape(c.scalar(t, -1), {size});
  const ValueId places = c.iota(size);
  ValueId place = c.cast(places, t);
  FUSEC_TRY(ValueId number, n.emitOne(OpKind::Size, {places}));
  ValueId count = c.cast(number, t);
  if (alignCorners) {
    FUSEC_TRY(count, c.binary(OpKind::Sub, count, c.scalar(t, 1)));
    if (!size.isConst()) { // the only one then is the first one too
      FUSEC_TRY(count, c.binary(OpKind::Max, count, c.scalar(t, 1)));
    }
  } else {
    FUSEC_TRY(place, c.binary(OpKind::Add, place, c.scalar(t, 0.5)));
  }
  FUSEC_TRY(ValueId twice, c.binary(OpKind::Mul, place, c.scalar(t, 2)));
  FUSEC_TRY(ValueId share, c.binary(OpKind::Div, twice, count));
  return c.binary(OpKind::Sub, share, c.scalar(t, 1));
}

/// grid[n, at..., k] = theta[n, k, 0] * x + theta[n, k, 1] * y (+ theta[n, k, 2] * z) + theta[n, k, last]
Status affineGrid(NodeImporter &n) {
  const Shape theta = n.shape(0);
  const char *text = "theta must be floats of the shape [N, 2, 3] or [N, 3, 4]";
  if (!isFloat(n.type(0)) || n.rank(0) != 3)
    return n.mismatch(text);
  const auto isOf = [&](int64_t axes) {
    return theta[1].isConst(axes) || theta[2].isConst(axes + 1) || n.shape(1) == Shape{axes + 2};
  };
  if (!isOf(2) && !isOf(3))
    return n.mismatch(text);
  const size_t rank = isOf(2) ? 2 : 3;
  const DimExpr axes = static_cast<int64_t>(rank);
  FUSEC_CHECK(n.sizes().sameShape({theta[1], theta[2]}, {axes, axes + DimExpr(1)}, text));
  const DType t = n.type(0) == DType::F64 ? DType::F64 : DType::F32;
  const bool alignCorners = n.attrInt("align_corners", 0) != 0;
  const DimExpr batch = theta[0];
  FUSEC_TRY(Shape sizes, gridSizes(n, rank));
  Compose c(n);
  ValueId matrix = c.cast(n.id(0), t);
  auto column = [&](size_t k) {
    Shape shape(rank + 2, DimExpr(1));
    shape.front() = batch;
    shape.back() = DimExpr(static_cast<int64_t>(rank));
    return n.reshape(c.slice(matrix, 2, static_cast<int64_t>(k), 1), std::move(shape));
  };
  ValueId sum = column(rank);
  for (size_t d = 0; d < rank; ++d) { // x belongs to the last axis
    const size_t axis = rank - 1 - d;
    Shape along(rank + 2, DimExpr(1));
    along[1 + axis] = sizes[axis];
    FUSEC_TRY(ValueId at, gridPositions(n, sizes[axis], t, alignCorners));
    FUSEC_TRY(ValueId term, c.binary(OpKind::Mul, column(d), n.reshape(at, std::move(along))));
    FUSEC_TRY(sum, c.binary(OpKind::Add, sum, term));
  }
  n.result(0, c.cast(sum, n.type(0)));
  return success();
}

Status roiAlign(NodeImporter &n) {
  // Opset 10 has no such attribute, and moves nothing.
  std::string transform = n.opset() < 16
                              ? "output_half_pixel"
                              : n.attrString("coordinate_transformation_mode", "half_pixel");
  if (transform != "half_pixel" && transform != "output_half_pixel")
    return n.fail(Diag::BadAttribute, "coordinate_transformation_mode is '" + transform +
                                          "'; half_pixel or output_half_pixel is needed");
  Compose make(n);
  if (n.rank(0) > 0) {
    FUSEC_TRY(const ValueId batch, make.extent(n.id(0), 0));
    FUSEC_TRY(const ValueId last, make.binary(OpKind::Sub, batch, make.integer(1)));
    FUSEC_CHECK(requireBetween(n, n.id(2), make.integer(0), last, DataTest::Places));
  }
  return n.finish(OpKind::RoiAlign, n.ids(), {{"half_pixel", int64_t(transform == "half_pixel")}});
}

constexpr OpRow kRows[] = {
    {"AffineGrid", 20, kNewestOpset, 2, 2, 1, affineGrid, "size known at compile time or declared"},
    {"NonMaxSuppression", 10, kNewestOpset, 2, 5, 1, nonMaxSuppression},
    {"RoiAlign", 10, kNewestOpset, 3, 3, 1, roiAlign},
};

} // namespace

std::span<const OpRow> imagesSamplingOps() { return kRows; }

} // namespace fusec
