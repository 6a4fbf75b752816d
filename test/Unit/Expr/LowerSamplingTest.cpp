// Regions of images: the lowered equations compute what the graph means.
#include "LowerFixture.h"

using namespace fusec;
using namespace fusec::test;

TEST_CASE("lowering: aligned regions") {
  forSeeds(60, [&](Random &r) {
    GraphMaker m;
    m.tolerance = 1e-4;
    const DType t = r.pick<DType>({DType::F32, DType::F64});
    const int64_t images = r.integer(1, 3), regions = r.integer(1, 4);
    TensorValue corners(t, {regions, 4}), which(DType::I64, {regions});
    for (double &v : corners.floats) // quarters: how many points a bin has is exact
      v = static_cast<double>(r.integer(-12, 44)) / 4;
    for (int64_t &v : which.ints)
      v = r.integer(0, images - 1);
    m.node(OpKind::RoiAlign,
           {m.input(r.tensor(t, {images, 2, r.integer(1, 7), r.integer(1, 7)}, -2, 2)),
            m.input(corners), m.input(which)},
           {{"output_height", r.pick<int64_t>({1, 2, 4})},
            {"output_width", r.pick<int64_t>({1, 2})},
            {"sampling_ratio", r.integer(0, 3)},
            {"spatial_scale", r.pick<double>({1, 0.5})},
            {"mode", r.pick<std::string>({"avg", "max"})},
            {"half_pixel", r.integer(0, 1)}},
           {t});
    m.check();
  });
}

TEST_CASE("lowering: bits of another type") {
  const std::vector<std::vector<DType>> widths = {{DType::I8, DType::U8},
                                                  {DType::I16, DType::U16, DType::F16, DType::BF16},
                                                  {DType::I32, DType::U32, DType::F32},
                                                  {DType::I64, DType::U64, DType::F64}};
  forSeeds(3, [&](Random &r) {
    for (const auto &types : widths)
      for (DType from : types)
        for (DType to : types) {
          GraphMaker m;
          m.node(OpKind::BitCast,
                 {m.input(r.tensor(from, r.dims(2), isSigned(from) ? -90 : 0, 90))}, {{"to", to}},
                 {to});
          m.check();
        }
  });
}
