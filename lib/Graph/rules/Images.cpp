// Operators between spatial sizes: Resize, GridSample, RoiAlign, KeptBoxes, Col2Im, DepthToSpace, SpaceToDepth.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

Result<Types> resize(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.axes("axes", c.rank(0)));
  for (size_t i : {1, 2, 3}) {
    FUSEC_CHECK(c.kind(i, i == 3 ? Kind::Integer : Kind::Float));
    FUSEC_CHECK(c.expect(!c.has(i) || c.constant(i),
                         "operand " + std::to_string(i) + " must be a constant"));
  }
  const bool crops = c.node.stringAttr("coordinate_transformation_mode") == "tf_crop_and_resize";
  FUSEC_TRY(
      Shape out,
      c.sizes.resized(c.shape(0), {c.list("axes"), c.node.stringAttr("keep_aspect_ratio_policy"),
                                   crops, c.constant(1), c.constant(2), c.ints(3)}));
  for (size_t d = 0; d < out.size(); ++d)
    FUSEC_CHECK(
        c.expect(!c.shape(0)[d].isConst(0) || out[d].isConst(0), "an empty axis cannot grow"));
  return one(c.type(0), std::move(out));
}

Result<Types> gridSample(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.kind(1, Kind::Float));
  const char *text = "the grid must have the data's rank and one coordinate for each spatial axis";
  FUSEC_CHECK(c.expect(c.rank(0) >= 3 && c.rank(1) == c.rank(0), text));
  FUSEC_CHECK(c.expect(c.rank(0) <= 5, "the data must have rank 3 to 5"));
  FUSEC_CHECK(c.sizes.sameShape({c.shape(1).back()}, {DimExpr(c.rank(0) - 2)}, text));
  FUSEC_CHECK(c.sameDim(c.shape(0)[0], c.shape(1)[0], "batch sizes"));
  for (size_t d = 2; d < c.shape(0).size(); ++d)
    FUSEC_CHECK(c.hasElements(0, d, "an image is empty"));
  Shape out{c.shape(0)[0], c.shape(0)[1]};
  out.insert(out.end(), c.shape(1).begin() + 1, c.shape(1).end() - 1);
  return one(c.type(0), std::move(out));
}

Result<Types> roiAlign(const OpCheck &c) {
  constexpr int64_t kLargest = 1 << 20, kMostSamples = 1 << 10;
  const int64_t height = c.number("output_height"), width = c.number("output_width"),
                ratio = c.number("sampling_ratio");
  FUSEC_CHECK(c.expectAttribute(height >= 1 && height <= kLargest && width >= 1 &&
                                    width <= kLargest && ratio >= 0 && ratio <= kMostSamples,
                                "output_height and output_width must be between 1 and 2^20, and "
                                "sampling_ratio between 0 and 2^10"));
  FUSEC_CHECK(c.kind(0, Kind::Float));
  const char *text = "an image [N, C, H, W], regions [R, 4] of its type and R indices are needed";
  FUSEC_CHECK(c.expect(c.rank(0) == 4 && c.rank(1) == 2 && c.rank(2) == 1 &&
                           c.type(1) == c.type(0) && c.type(2) == DType::I64,
                       text));
  FUSEC_CHECK(c.sizes.sameShape({c.shape(1)[1]}, {DimExpr(4)}, text));
  FUSEC_CHECK(c.sameDim(c.shape(1)[0], c.shape(2)[0], "regions and their indices"));
  // Where there are regions.
  const DimExpr least = min(c.shape(1)[0], DimExpr(1));
  for (size_t d : {2, 3})
    FUSEC_CHECK(c.sizes.noLess(c.shape(0)[d], least, "an image is empty"));
  FUSEC_CHECK(c.sizes.noLess(c.shape(0)[0], least, "there is no image"));
  return one(c.type(0), {c.shape(1)[0], c.shape(0)[1], height, width});
}

Result<Types> keptBoxes(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_CHECK(
      c.expect(c.rank(0) == 3 && c.shape(0)[2].isConst(4) && c.rank(1) == 3 &&
                   c.type(1) == DType::I64 && c.type(2) == DType::Bool,
               "boxes [B, N, 4], an order [B, C, N] and what may be kept of it are needed"));
  FUSEC_CHECK(c.sameDim(c.shape(0)[0], c.shape(1)[0], "the batches of boxes and their order"));
  FUSEC_CHECK(c.sameDim(c.shape(0)[1], c.shape(1)[2], "the numbers of boxes and of their order"));
  FUSEC_CHECK(c.shapeIs(2, c.shape(1), "what may be kept must have the shape of the order"));
  FUSEC_CHECK(c.expect(c.type(3) == c.type(0) && c.rank(3) == 0 && c.type(4) == DType::I64 &&
                           c.rank(4) == 0,
                       "the threshold must be one number of the boxes' type, the limit one i64"));
  return one(DType::Bool, c.shape(1));
}

Result<Types> col2Im(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  auto image = c.ints(1), block = c.ints(2);
  const auto &dilations = c.list("dilations"), &pads = c.list("pads"), &strides = c.list("strides");
  FUSEC_CHECK(c.expect(c.rank(0) == 3 && image && block && image->size() == block->size() &&
                           dilations.size() == block->size() && strides.size() == block->size() &&
                           pads.size() == 2 * block->size(),
                       "data of rank 3 and one entry for each image axis are needed"));
  constexpr int64_t kLargest = int64_t(1) << 30;
  auto outside = [](int64_t v, int64_t least) { return v < least || v > kLargest; };
  int64_t area = 1, positions = 1;
  Shape out{c.shape(0)[0], 0};
  for (size_t d = 0; d < block->size(); ++d) {
    int64_t b = (*block)[d], size = (*image)[d], end = pads[block->size() + d];
    if (outside(b, 1) || outside(size, 1) || outside(strides[d], 1) || outside(dilations[d], 1) ||
        outside(pads[d], 0) || outside(end, 0))
      return c.badValue("image, block, strides, dilations and pads must be positive");
    int64_t room = size + pads[d] + end - (dilations[d] * (b - 1) + 1);
    FUSEC_CHECK(c.expect(room >= 0 && !__builtin_mul_overflow(area, b, &area) &&
                             !__builtin_mul_overflow(positions, room / strides[d] + 1, &positions),
                         "the block does not fit the image"));
    out.push_back(size);
  }
  const char *fit = "the data does not fit image and block";
  FUSEC_CHECK(c.sizes.multiple(c.shape(0)[1], area, "the number of channels"));
  FUSEC_CHECK(c.sizes.sameShape({c.shape(0)[2]}, {DimExpr(positions)}, fit));
  out[1] = floorDiv(c.shape(0)[1], DimExpr(area));
  return one(c.type(0), std::move(out));
}

Result<int64_t> blockSize(const OpCheck &c) {
  int64_t block = c.number("blocksize");
  FUSEC_CHECK(c.expectAttribute(block >= 1 && block <= 1 << 20 && c.rank(0) == 4,
                                "blocksize must be between 1 and 2^20 and the data have rank 4"));
  return block;
}

Result<Types> depthToSpace(const OpCheck &c) {
  FUSEC_TRY(int64_t block, blockSize(c));
  const Shape &in = c.shape(0);
  FUSEC_CHECK(c.sizes.multiple(in[1], block * block, "the number of channels"));
  return one(c.type(0), {in[0], floorDiv(in[1], DimExpr(block * block)), in[2] * DimExpr(block),
                         in[3] * DimExpr(block)});
}

Result<Types> spaceToDepth(const OpCheck &c) {
  FUSEC_TRY(int64_t block, blockSize(c));
  const Shape &in = c.shape(0);
  FUSEC_CHECK(c.sizes.multiple(in[2], block, "the height"));
  FUSEC_CHECK(c.sizes.multiple(in[3], block, "the width"));
  return one(c.type(0), {in[0], in[1] * DimExpr(block * block), floorDiv(in[2], DimExpr(block)),
                         floorDiv(in[3], DimExpr(block))});
}

} // namespace

void addImages(RuleTable &table) {
  using enum OpKind;
  entry(table, Resize) = resize;
  entry(table, GridSample) = gridSample;
  entry(table, RoiAlign) = roiAlign;
  entry(table, KeptBoxes) = keptBoxes;
  entry(table, Col2Im) = col2Im;
  entry(table, DepthToSpace) = depthToSpace;
  entry(table, SpaceToDepth) = spaceToDepth;
}

} // namespace fusec::rules
