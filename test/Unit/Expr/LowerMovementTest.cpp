// Data movement, indirect reads and writes, generators and symbolic sizes.
#include "LowerFixture.h"

#include <algorithm>
#include <numeric>

using namespace fusec;
using namespace fusec::test;

namespace {

Shape asShape(const std::vector<int64_t> &dims) { return Shape(dims.begin(), dims.end()); }

std::vector<int64_t> permutation(Random &r, size_t rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  for (size_t i = rank; i > 1; --i)
    std::swap(perm[i - 1], perm[static_cast<size_t>(r.integer(0, static_cast<int64_t>(i) - 1))]);
  return perm;
}

/// Another shape with as many elements.
std::vector<int64_t> regrouped(Random &r, const std::vector<int64_t> &dims) {
  int64_t count = 1;
  for (int64_t d : dims)
    count *= d;
  std::vector<int64_t> out;
  while (count > 1) {
    int64_t factor = r.integer(2, 6);
    while (count % factor)
      factor = factor % 6 == 5 ? count : factor + 1;
    out.push_back(factor);
    count /= factor;
    if (r.chance(20))
      out.push_back(1);
  }
  if (count == 0)
    out = {0, 3};
  return out;
}

} // namespace

TEST_CASE("lowering: chains of reshapes, transposes and slices") {
  forSeeds(60, [&](Random &r) {
    GraphMaker m;
    DType t = r.pick<DType>({DType::F32, DType::I64, DType::Bool, DType::F16});
    std::vector<int64_t> dims = r.dims(r.integer(1, 5), true);
    ValueId x = m.input(r.tensor(t, dims, 0, t == DType::Bool ? 1 : 9));
    for (int step = 0; step < 4; ++step) {
      auto rank = static_cast<int64_t>(dims.size());
      switch (r.integer(0, 5)) {
      case 0: {
        dims = regrouped(r, dims);
        x = m.node(OpKind::Reshape, {x, m.ints(dims)}, {}, {t}, {asShape(dims)})[0];
        break;
      }
      case 1: {
        auto perm = permutation(r, dims.size());
        x = m.node(OpKind::Transpose, {x}, {{"perm", perm}}, {t})[0];
        break;
      }
      case 2: {
        if (rank == 0)
          break;
        int64_t axis = r.integer(0, rank - 1), stride = r.pick<int64_t>({1, 2, -1, -2});
        int64_t a = r.integer(-6, 6), b = r.integer(-6, 6);
        if (stride < 0 && r.chance(50))
          a = -1, b = INT64_MIN;
        x = m.node(OpKind::Slice, {x},
                   {{"starts", std::vector{a}},
                    {"ends", std::vector{b}},
                    {"axes", std::vector{axis}},
                    {"steps", std::vector{stride}}},
                   {t})[0];
        break;
      }
      case 3: {
        std::vector<int64_t> axes{r.integer(0, rank)};
        x = m.node(OpKind::Unsqueeze, {x}, {{"axes", axes}}, {t})[0];
        break;
      }
      case 4: {
        if (rank == 0)
          break;
        std::vector<int64_t> repeats(dims.size(), 1);
        repeats[static_cast<size_t>(r.integer(0, rank - 1))] = r.integer(1, 3);
        std::vector<int64_t> tiled = dims;
        for (size_t d = 0; d < dims.size(); ++d)
          tiled[d] *= repeats[d];
        x = m.node(OpKind::Tile, {x, m.ints(repeats)}, {}, {t}, {asShape(tiled)})[0];
        break;
      }
      default: {
        if (rank == 0)
          break;
        int64_t axis = r.integer(0, rank - 1);
        x = m.node(OpKind::Concat, {x, x}, {{"axis", axis}}, {t})[0];
      }
      }
      dims = staticDims(m.graph.value(x).shape);
      if (dims.size() > 7)
        break;
    }
    m.check();
  });
}

TEST_CASE("lowering: concatenations and splits") {
  forSeeds(30, [&](Random &r) {
    GraphMaker m;
    std::vector<int64_t> dims = r.dims(r.integer(1, 4));
    auto axis = static_cast<size_t>(r.integer(0, static_cast<int64_t>(dims.size()) - 1));
    std::vector<ValueId> parts;
    std::vector<Shape> shapes;
    for (int64_t i = r.integer(1, 4); i > 0; --i) {
      dims[axis] = r.integer(0, 3);
      TensorValue v = r.tensor(DType::F32, dims, -2, 2);
      parts.push_back(r.chance(30) ? m.constant(v) : m.input(v));
      shapes.push_back(asShape(dims));
    }
    auto attributes = std::map<std::string, Attribute>{{"axis", static_cast<int64_t>(axis)}};
    ValueId all = m.node(OpKind::Concat, parts, attributes, {DType::F32})[0];
    m.node(OpKind::Split, {all}, attributes, std::vector<DType>(parts.size(), DType::F32), shapes);
    m.check();
  });
}

TEST_CASE("lowering: padding in all modes") {
  forSeeds(40, [&](Random &r) {
    for (const char *mode : {"constant", "reflect", "edge", "wrap"}) {
      GraphMaker m;
      std::vector<int64_t> dims = r.dims(r.integer(1, 3)), pads(2 * dims.size());
      for (size_t i = 0; i < pads.size(); ++i) {
        int64_t extent = dims[i % dims.size()];
        int64_t most = std::string(mode) == "reflect"    ? extent - 1
                       : std::string(mode) == "constant" ? 3
                                                         : extent;
        pads[i] = r.integer(0, most);
      }
      if (std::string(mode) == "constant" && dims[0] > 1 && r.chance(50))
        pads[0] = -1;
      std::vector<ValueId> in{m.input(r.tensor(DType::F32, dims, -2, 2)), kNoValue};
      if (r.chance(50))
        in.push_back(m.input(r.tensor(DType::F32, {}, 5, 6)));
      m.node(OpKind::Pad, in, {{"mode", std::string(mode)}, {"pads", pads}}, {DType::F32});
      m.check();
    }
  });
}

TEST_CASE("lowering: images and triangles") {
  forSeeds(10, [&](Random &r) {
    GraphMaker m;
    int64_t block = r.integer(1, 3);
    ValueId deep = m.input(r.tensor(DType::F32, {2, block * block * r.integer(1, 3), 2, 3}, -2, 2));
    for (const char *mode : {"DCR", "CRD"})
      m.node(OpKind::DepthToSpace, {deep}, {{"blocksize", block}, {"mode", std::string(mode)}},
             {DType::F32});
    ValueId wide = m.input(r.tensor(DType::F32, {2, 3, block * 2, block}, -2, 2));
    for (const char *mode : {"DCR", "CRD"})
      m.node(OpKind::SpaceToDepth, {wide}, {{"blocksize", block}, {"mode", std::string(mode)}},
             {DType::F32});
    TensorValue k(DType::I64, {});
    k.ints[0] = r.integer(-3, 3);
    ValueId square = m.input(r.tensor(DType::F32, {2, 3, 4}, -2, 2));
    m.node(OpKind::Trilu, {square, m.constant(k)}, {{"upper", r.integer(0, 1)}}, {DType::F32});
    m.node(OpKind::EyeLike, {m.input(r.tensor(DType::I32, {3, 4}, 0, 1))},
           {{"k", r.integer(-2, 2)}, {"dtype", DType::F32}}, {DType::F32});
    m.node(OpKind::ReverseSequence, {square, m.input(r.tensor(DType::I64, {2}, 1, 3))},
           {{"batch_axis", int64_t(0)}, {"time_axis", int64_t(1)}}, {DType::F32});
    m.node(OpKind::Expand, {m.input(r.tensor(DType::F32, {3, 1}, -1, 1)), m.ints({2, 3, 4})}, {},
           {DType::F32}, {asShape({2, 3, 4})});
    m.check();
  });
}

TEST_CASE("lowering: indirect reads") {
  forSeeds(30, [&](Random &r) {
    GraphMaker m;
    std::vector<int64_t> dims = r.dims(r.integer(1, 4));
    auto rank = static_cast<int64_t>(dims.size());
    int64_t axis = r.integer(0, rank - 1);
    double extent = static_cast<double>(dims[static_cast<size_t>(axis)]);
    DType indexType = r.pick<DType>({DType::I64, DType::I32});
    ValueId x = m.input(r.tensor(DType::F32, dims, -2, 2));
    TensorValue which = r.tensor(indexType, r.dims(r.integer(0, 2)), -extent, extent - 1);
    m.node(OpKind::Gather, {x, r.chance(30) ? m.constant(which) : m.input(which)}, {{"axis", axis}},
           {DType::F32});
    std::vector<int64_t> own = dims;
    own[static_cast<size_t>(axis)] = r.integer(1, 4);
    m.node(OpKind::GatherElements, {x, m.input(r.tensor(indexType, own, -extent, extent - 1))},
           {{"axis", axis}}, {DType::F32});
    // GatherND with all leading dims of the batch in common.
    int64_t batch = r.integer(0, rank - 1), depth = r.integer(1, rank - batch);
    std::vector<int64_t> points(dims.begin(), dims.begin() + batch);
    points.insert(points.end(), {r.integer(1, 3), depth});
    TensorValue at(DType::I64, points);
    for (int64_t i = 0; i < at.numElements(); ++i) {
      int64_t d = dims[static_cast<size_t>(batch + i % depth)];
      at.ints[static_cast<size_t>(i)] = r.integer(-d, d - 1);
    }
    m.node(OpKind::GatherND, {x, m.input(at)}, {{"batch_dims", batch}}, {DType::F32});
    TensorValue five(DType::I64, {});
    five.ints[0] = 5;
    m.node(OpKind::OneHot,
           {m.input(r.tensor(DType::I64, r.dims(2), -7, 7)), m.constant(five),
            m.input(r.tensor(DType::F32, {2}, -2, 2))},
           {{"axis", r.integer(0, 2)}}, {DType::F32});
    m.check();
  });
}

TEST_CASE(
    "lowering: constant places that follow from their own indices are computed, others read") {
  constexpr int64_t kLarge = int64_t{1} << 41;
  const auto readsConstants = [](const Graph &graph) {
    const ExprProgram program =
        eliminateDeadCode(*lowerGraph(graph)); // check() has found it without errors
    return std::any_of(program.tensors.begin(), program.tensors.end(),
                       [](const Tensor &t) { return t.kind == TensorKind::Constant; });
  };
  const auto readsPlaces = [&](DType type, std::vector<int64_t> dims, std::vector<int64_t> places) {
    GraphMaker m;
    TensorValue which(type, std::move(dims)), x(DType::F32, {9, 2});
    which.ints = std::move(places);
    for (int64_t i = 0; i < x.numElements(); ++i)
      x.floats[static_cast<size_t>(i)] = double(i);
    m.node(OpKind::Gather, {m.input(x), m.constant(which)}, {{"axis", int64_t(0)}}, {DType::F32});
    m.node(OpKind::Add, {m.constant(which), m.input(which)}, {}, {type});
    m.check();
    return readsConstants(m.graph);
  };
  CHECK(!readsPlaces(DType::I64, {4}, {0, 1, 2, 3}));
  CHECK(!readsPlaces(DType::I32, {4}, {7, 5, 3, 1}));
  CHECK(!readsPlaces(DType::I64, {2, 3}, {0, 2, 4, 1, 3, 5}));
  CHECK(!readsPlaces(DType::I64, {3}, {-1, -1, -1}));
  CHECK(readsPlaces(DType::I64, {4}, {0, 1, 2, 4}));
  CHECK(readsPlaces(DType::I64, {2, 3}, {0, 2, 4, 1, 3, 6}));

  GraphMaker m; // no multiples of numbers so large that sums might overflow
  TensorValue far(DType::I64, {2});
  far.ints = {-kLarge, kLarge};
  m.node(OpKind::Add, {m.constant(far), m.input(far)}, {}, {DType::I64});
  m.check();
  CHECK(readsConstants(m.graph));

  // The rows of a pair (0, i), as exporters write the places of a mask for GatherND.
  GraphMaker pairs;
  TensorValue at(DType::I64, {5, 2}), mask(DType::F32, {1, 5});
  at.ints = {0, 0, 0, 1, 0, 2, 0, 3, 0, 4};
  pairs.node(OpKind::GatherND, {pairs.input(mask), pairs.constant(at)},
             {{"batch_dims", int64_t(0)}}, {DType::F32});
  pairs.check();
  CHECK(!readsConstants(pairs.graph));
}

TEST_CASE("lowering: indirect writes, duplicates in order") {
  forSeeds(40, [&](Random &r) {
    GraphMaker m;
    DType t = r.pick<DType>({DType::F32, DType::I32, DType::F16});
    std::vector<int64_t> dims = r.dims(r.integer(1, 3));
    auto rank = static_cast<int64_t>(dims.size());
    int64_t axis = r.integer(0, rank - 1);
    double extent = static_cast<double>(dims[static_cast<size_t>(axis)]);
    std::string reduction = r.pick<std::string>({"none", "add", "mul", "min", "max"});
    ValueId x = m.input(r.tensor(t, dims, -2, 2));
    std::vector<int64_t> own = dims;
    own[static_cast<size_t>(axis)] = r.integer(1, 4);
    m.node(OpKind::ScatterElements,
           {x, m.input(r.tensor(DType::I64, own, -extent, extent - 1)),
            m.input(r.tensor(t, own, -2, 2))},
           {{"axis", axis}, {"reduction", reduction}}, {t});
    int64_t depth = r.integer(1, rank), count = r.integer(1, 4);
    TensorValue at(DType::I64, {count, depth});
    for (int64_t i = 0; i < at.numElements(); ++i) {
      int64_t d = dims[static_cast<size_t>(i % depth)];
      at.ints[static_cast<size_t>(i)] = r.integer(-d, d - 1);
    }
    std::vector<int64_t> updates{count};
    updates.insert(updates.end(), dims.begin() + depth, dims.end());
    m.node(OpKind::ScatterND, {x, m.input(at), m.input(r.tensor(t, updates, -2, 2))},
           {{"reduction", reduction}}, {t});
    m.check();
  });
}

TEST_CASE("lowering: TopK") {
  forSeeds(30, [&](Random &r) {
    GraphMaker m;
    DType t = r.pick<DType>({DType::F32, DType::I64, DType::F16, DType::U8});
    std::vector<int64_t> dims = r.dims(r.integer(1, 3));
    auto axis = static_cast<size_t>(r.integer(0, static_cast<int64_t>(dims.size()) - 1));
    dims[axis] = r.integer(1, 9);
    TensorValue x = r.tensor(t, dims, t == DType::U8 ? 0 : -3, 3);
    if (t == DType::F32 && r.chance(50))
      x.floats[0] = NAN;
    m.node(OpKind::TopK, {m.input(x), m.ints({r.integer(0, dims[axis])})},
           {{"axis", static_cast<int64_t>(axis)},
            {"largest", r.integer(0, 1)},
            {"sorted", int64_t(1)}},
           {t, DType::I64});
    m.check();
  });
}

TEST_CASE("lowering: resizing") {
  forSeeds(60, [&](Random &r) {
    GraphMaker m;
    m.tolerance = 1e-4;
    int64_t h = r.integer(1, 5), w = r.integer(1, 5), oh = r.integer(1, 9), ow = r.integer(1, 9);
    std::string mode = r.pick<std::string>({"nearest", "linear", "cubic"});
    DType t = mode == "nearest" ? r.pick<DType>({DType::F32, DType::U8}) : DType::F32;
    m.node(OpKind::Resize,
           {m.input(r.tensor(t, {2, h, w}, 0, 9)), kNoValue, kNoValue, m.ints({oh, ow})},
           {{"antialias", mode == "nearest" ? 0 : r.integer(0, 1)},
            {"axes", std::vector<int64_t>{1, 2}},
            {"coordinate_transformation_mode",
             r.pick<std::string>({"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                  "half_pixel_symmetric"})},
            {"cubic_coeff_a", -0.75},
            {"exclude_outside", mode == "cubic" ? r.integer(0, 1) : 0},
            {"extrapolation_value", 0.0},
            {"keep_aspect_ratio_policy", std::string("stretch")},
            {"mode", mode},
            {"nearest_mode",
             r.pick<std::string>({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})}},
           {t}, {asShape({2, oh, ow})});
    m.check();
  });
}

TEST_CASE("lowering: sampling on a grid") {
  forSeeds(40, [&](Random &r) {
    GraphMaker m;
    m.tolerance = 1e-3;
    int64_t rank = r.integer(1, 2);
    std::vector<int64_t> image{2, 2}, grid{2};
    for (int64_t d = 0; d < rank; ++d) {
      image.push_back(r.integer(2, 5));
      grid.push_back(r.integer(1, 4));
    }
    grid.push_back(rank);
    TensorValue positions = r.tensor(DType::F32, grid, -1.4, 1.4);
    auto padding = r.pick<std::string>({"zeros", "border", "reflection"});
    // Reflected positions so far away are rounded differently in f32 and in double.
    if (padding != "reflection")
      for (double far : {3e38, -3e38, 1e19, double{-INFINITY}, double{NAN}})
        if (r.integer(0, 2) == 0)
          positions.setNumber(r.integer(0, positions.numElements() - 1), far);
    m.node(OpKind::GridSample, {m.input(r.tensor(DType::F32, image, -2, 2)), m.input(positions)},
           {{"align_corners", r.integer(0, 1)},
            {"mode", r.pick<std::string>({"linear", "nearest", "cubic"})},
            {"padding_mode", padding}},
           {DType::F32});
    m.check();
  });
}

TEST_CASE("lowering: one program for all sizes of a symbol") {
  for (int64_t size : {1, 2, 5, 8}) {
    Random r(static_cast<uint32_t>(size));
    GraphMaker m;
    m.tolerance = 1e-4;
    m.graph.symbols = {{"n", 1, 4, 64, 1}};
    DimExpr n = DimExpr::symbol(0);
    auto node = [&](OpKind op, std::vector<ValueId> in, std::map<std::string, Attribute> attributes,
                    Shape shape, DType t = DType::F32) {
      return m.node(op, std::move(in), std::move(attributes), {t}, {std::move(shape)})[0];
    };
    ValueId x = m.input(r.tensor(DType::F32, {2, size, 12}, -2, 2), {2, n, 12});
    ValueId heads = node(OpKind::Reshape, {x}, {}, {2, n, 3, 4});
    ValueId q = node(OpKind::Transpose, {heads}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}},
                     {2, 3, n, 4});
    ValueId k = node(OpKind::Transpose, {heads}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}},
                     {2, 3, 4, n});
    ValueId scores = node(OpKind::MatMul, {q, k}, {}, {2, 3, n, n});
    ValueId p = node(OpKind::Softmax, {scores}, {{"axis", int64_t(3)}}, {2, 3, n, n});
    ValueId mixed = node(OpKind::MatMul, {p, q}, {}, {2, 3, n, 4});
    ValueId back = node(OpKind::Transpose, {mixed}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}},
                        {2, n, 3, 4});
    ValueId flat = node(OpKind::Reshape, {back}, {}, {n * DimExpr(2), 12});
    node(OpKind::Concat, {flat, flat}, {{"axis", int64_t(0)}}, {n * DimExpr(4), 12});
    node(OpKind::Slice, {x},
         {{"starts", std::vector<int64_t>{-1}},
          {"ends", std::vector<int64_t>{INT64_MAX}},
          {"axes", std::vector<int64_t>{1}},
          {"steps", std::vector<int64_t>{1}}},
         {2, 1, 12});
    node(OpKind::ReduceMean, {x}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t(0)}},
         {2, 12});
    node(OpKind::Shape, {x}, {{"start", int64_t(0)}, {"end", int64_t(3)}}, {3}, DType::I64);
    node(OpKind::Size, {x}, {}, {}, DType::I64);
    node(OpKind::CumSum, {x, m.ints({1})}, {{"exclusive", int64_t(0)}, {"reverse", int64_t(1)}},
         {2, n, 12});
    m.check();
  }
}

TEST_CASE("lowering: a mask's places are found in as many halvings as its length asks for") {
  const auto graph =
      parseGraph("graph \"places\"\n"
                 "symbol n = 0..9223372036854775807 opt 8 divisor 1\n"
                 "symbol found = 0..9223372036854775807 opt 8 divisor 1 bound [n]\n"
                 "input %mask: bool[n]\n"
                 "input %count: i64[]\n"
                 "%size: i64[] {found} = DataSize(%count) {symbol = \"found\"} @size\n"
                 "%places: i64[found] = Chosen(%mask) @places\n"
                 "return %places\n",
                 "t", ConstantStore());
  REQUIRE(graph.ok());
  const auto program = lowerGraph(*graph);
  REQUIRE(program.ok());
  const Equation *halving = nullptr;
  for (const Item &item : program->items)
    if (const auto *e = std::get_if<Equation>(&item.value); e && e->kind == EquationKind::Scan)
      halving = e;
  REQUIRE(halving);
  for (const auto &[n, steps] : {std::pair<int64_t, int64_t>{1, 4},
                                 {15, 4},
                                 {16, 8},
                                 {255, 8},
                                 {4096, 16},
                                 {int64_t{1} << 40, 44}})
    CHECK(halving->steps.evaluate({n, n}) == steps);
  for (int64_t n : {0, 1, 15, 16, 17, 255, 256, 600}) {
    TensorValue mask(DType::Bool, {n}), count(DType::I64, {});
    std::vector<int64_t> places;
    for (int64_t i = 0; i < n; ++i) {
      mask.ints[static_cast<size_t>(i)] = i % 3 == 0 || i % 7 == 5;
      if (mask.ints[static_cast<size_t>(i)] != 0)
        places.push_back(i);
    }
    count.ints[0] = static_cast<int64_t>(places.size());
    const auto found = evaluate(*program, {mask, count});
    REQUIRE(found.ok());
    CHECK((*found)[0].ints == places);
  }
}
