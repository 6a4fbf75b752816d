// Products, convolutions, pools and normalisations: the lowered equations compute what the graph means.
#include "LowerFixture.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;

TEST_CASE("lowering: matrix products") {
  forSeeds(40, [&](Random &r) {
    DType t = r.pick<DType>({DType::F32, DType::F64, DType::F16, DType::I32});
    GraphMaker m;
    m.tolerance = 1e-4;
    std::vector<int64_t> batch = r.dims(r.integer(0, 2)), a = batch, b = batch;
    for (int64_t &d : b)
      d = r.chance(30) ? 1 : d;
    b.erase(b.begin(), b.begin() + r.integer(0, static_cast<int64_t>(b.size())));
    int64_t depth = r.chance(5) ? 0 : r.integer(1, 9);
    a.insert(a.end(), {r.integer(1, 5), depth});
    b.insert(b.end(), {depth, r.integer(1, 5)});
    if (r.chance(15))
      a = {depth};
    if (r.chance(15))
      b = {depth};
    m.node(OpKind::MatMul, {m.input(r.tensor(t, a, -2, 2)), m.input(r.tensor(t, b, -2, 2))}, {},
           {t});
    m.check();
  });
}

TEST_CASE("lowering: Gemm") {
  forSeeds(40, [&](Random &r) {
    DType t = r.pick<DType>({DType::F32, DType::F16, DType::F64, DType::I32});
    GraphMaker m;
    m.tolerance = 1e-4;
    int64_t rows = r.integer(1, 5), columns = r.integer(1, 5), depth = r.integer(1, 6);
    int64_t transA = r.integer(0, 1), transB = r.integer(0, 1);
    bool whole = t == DType::I32;
    std::vector<ValueId> in{
        m.input(r.tensor(t, transA ? std::vector{depth, rows} : std::vector{rows, depth}, -2, 2)),
        m.input(r.tensor(t, transB ? std::vector{columns, depth} : std::vector{depth, columns}, -2,
                         2))};
    if (r.chance(70))
      in.push_back(
          m.input(r.tensor(t,
                           r.pick<std::vector<int64_t>>(
                               {{columns}, {1}, {}, {rows, 1}, {rows, columns}, {1, columns}}),
                           -2, 2)));
    m.node(OpKind::Gemm, in,
           {{"alpha", whole ? 1.0 : r.pick<double>({1, 0.5})},
            {"beta", whole ? 1.0 : r.pick<double>({1, 0.25})},
            {"transA", transA},
            {"transB", transB}},
           {t});
    m.check();
  });
}

TEST_CASE("lowering: Einsum") {
  const std::vector<std::pair<std::string, size_t>> equations = {
      {"ij,jk->ik", 2},      {"bij,bjk->bik", 2},   {"ij->ji", 1},  {"ij->", 1},
      {"ii->i", 1},          {"ij,ij->i", 2},       {"i,j->ij", 2}, {"ijk->ik", 1},
      {"abc,cd,de->abe", 3}, {"bhqd,bhkd->bhqk", 2}};
  forSeeds(6, [&](Random &r) {
    for (const auto &[equation, count] : equations) {
      GraphMaker m;
      m.tolerance = 1e-4;
      std::map<char, int64_t> sizes;
      std::vector<ValueId> in;
      std::vector<int64_t> dims;
      for (char c : equation.substr(0, equation.find("->")) + ",") {
        if (c == ',') {
          in.push_back(m.input(r.tensor(DType::F32, dims, -2, 2)));
          dims.clear();
        } else {
          dims.push_back(sizes.try_emplace(c, r.integer(1, 4)).first->second);
        }
      }
      REQUIRE(in.size() == count);
      m.node(OpKind::Einsum, in, {{"equation", equation}}, {DType::F32});
      m.check();
    }
  });
}

namespace {

struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads, in, out;
};

/// A random window and an input that it fits into.
Window randomWindow(Random &r, size_t rank, bool ceilMode) {
  Window w;
  w.pads.resize(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    w.kernel.push_back(r.integer(1, 3));
    w.strides.push_back(r.integer(1, 3));
    w.dilations.push_back(r.integer(1, 2));
    w.pads[d] = r.integer(0, w.kernel[d] - 1);
    w.pads[rank + d] = r.integer(0, w.kernel[d] - 1);
    int64_t span = w.dilations[d] * (w.kernel[d] - 1) + 1;
    w.in.push_back(span + r.integer(0, 4));
    int64_t room = w.in[d] + w.pads[d] + w.pads[rank + d] - span;
    int64_t steps = ceilMode ? (room + w.strides[d] - 1) / w.strides[d] : room / w.strides[d];
    // The last window must begin in the input or its front padding.
    if (ceilMode && steps * w.strides[d] >= w.in[d] + w.pads[d])
      --steps;
    w.out.push_back(steps + 1);
  }
  return w;
}

Shape outShape(std::vector<int64_t> lead, const std::vector<int64_t> &spatial) {
  lead.insert(lead.end(), spatial.begin(), spatial.end());
  return Shape(lead.begin(), lead.end());
}
std::vector<int64_t> join(std::vector<int64_t> lead, const std::vector<int64_t> &rest) {
  lead.insert(lead.end(), rest.begin(), rest.end());
  return lead;
}

} // namespace

TEST_CASE("lowering: convolutions, grouped and depthwise too") {
  forSeeds(60, [&](Random &r) {
    GraphMaker m;
    m.tolerance = 1e-4;
    DType t = r.pick<DType>({DType::F32, DType::F32, DType::F16});
    Window w = randomWindow(r, static_cast<size_t>(r.integer(1, 3)), false);
    int64_t batch = r.integer(1, 2), group = r.integer(1, 3), perGroup = r.integer(1, 3),
            filters = r.integer(1, 3);
    std::vector<ValueId> in{
        m.input(r.tensor(t, join({batch, group * perGroup}, w.in), -1, 1)),
        m.constant(r.tensor(t, join({group * filters, perGroup}, w.kernel), -1, 1))};
    if (r.chance(50))
      in.push_back(m.input(r.tensor(t, {group * filters}, -1, 1)));
    m.node(OpKind::Conv, in,
           {{"pads", w.pads},
            {"strides", w.strides},
            {"dilations", w.dilations},
            {"group", group},
            {"kernel_shape", w.kernel}},
           {t}, {outShape({batch, group * filters}, w.out)});
    m.check();
  });
}

TEST_CASE("lowering: transposed convolutions") {
  forSeeds(40, [&](Random &r) {
    GraphMaker m;
    m.tolerance = 1e-4;
    auto rank = static_cast<size_t>(r.integer(1, 2));
    Window w = randomWindow(r, rank, false);
    std::vector<int64_t> out, extra;
    for (size_t d = 0; d < rank; ++d) {
      extra.push_back(r.integer(0, std::max(w.strides[d], w.dilations[d]) - 1));
      out.push_back(w.strides[d] * (w.in[d] - 1) + extra[d] + (w.kernel[d] - 1) * w.dilations[d] +
                    1 - w.pads[d] - w.pads[rank + d]);
    }
    int64_t group = r.integer(1, 2), perGroup = r.integer(1, 2), filters = r.integer(1, 3);
    std::vector<ValueId> in{
        m.input(r.tensor(DType::F32, join({2, group * perGroup}, w.in), -1, 1)),
        m.input(r.tensor(DType::F32, join({group * perGroup, filters}, w.kernel), -1, 1))};
    if (r.chance(50))
      in.push_back(m.input(r.tensor(DType::F32, {group * filters}, -1, 1)));
    m.node(OpKind::ConvTranspose, in,
           {{"pads", w.pads},
            {"strides", w.strides},
            {"dilations", w.dilations},
            {"group", group},
            {"kernel_shape", w.kernel},
            {"output_padding", extra}},
           {DType::F32}, {outShape({2, group * filters}, out)});
    m.check();
  });
}

TEST_CASE("lowering: a transposed convolution multiplies no data by taps that are not there") {
  // Output 3 takes one tap of the last element alone.
  GraphMaker m;
  TensorValue x(DType::F32, {1, 1, 2}), w(DType::F32, {1, 1, 3});
  x.floats = {INFINITY, 1};
  w.floats = {1, 1, 1};
  m.node(OpKind::ConvTranspose, {m.input(x), m.input(w)},
         {{"pads", std::vector<int64_t>{0, 0}},
          {"strides", std::vector<int64_t>{2}},
          {"dilations", std::vector<int64_t>{1}},
          {"group", int64_t{1}},
          {"kernel_shape", std::vector<int64_t>{3}},
          {"output_padding", std::vector<int64_t>{0}}},
         {DType::F32}, {outShape({1, 1}, {5})});
  m.check();
}

TEST_CASE("lowering: pools") {
  forSeeds(60, [&](Random &r) {
    for (OpKind op : {OpKind::MaxPool, OpKind::AveragePool, OpKind::LpPool}) {
      GraphMaker m;
      m.tolerance = 1e-4;
      int64_t ceilMode = r.integer(0, 1);
      Window w = randomWindow(r, static_cast<size_t>(r.integer(1, 3)), ceilMode);
      // Dilated windows may read nothing but padding, which has no maximum and no average.
      std::fill(w.dilations.begin(), w.dilations.end(), 1);
      for (size_t d = 0; d < w.in.size(); ++d) {
        int64_t room = w.in[d] + w.pads[d] + w.pads[w.in.size() + d] - w.kernel[d];
        int64_t steps = ceilMode ? (room + w.strides[d] - 1) / w.strides[d] : room / w.strides[d];
        if (ceilMode && steps * w.strides[d] >= w.in[d] + w.pads[d])
          --steps;
        w.out[d] = steps + 1;
      }
      std::map<std::string, Attribute> attributes{{"kernel_shape", w.kernel},
                                                  {"strides", w.strides},
                                                  {"pads", w.pads},
                                                  {"dilations", w.dilations},
                                                  {"ceil_mode", ceilMode}};
      Shape shape = outShape({2, 2}, w.out);
      ValueId x = m.input(r.tensor(DType::F32, join({2, 2}, w.in), -4, 4));
      if (op == OpKind::MaxPool) {
        attributes["storage_order"] = r.integer(0, 1);
        m.node(op, {x}, attributes, {DType::F32, DType::I64}, {shape, shape});
        attributes["storage_order"] = int64_t(0);
        m.node(op, {x}, attributes, {DType::F32}, {shape});
      } else {
        attributes[op == OpKind::LpPool ? "p" : "count_include_pad"] =
            op == OpKind::LpPool ? r.integer(1, 3) : r.integer(0, 1);
        m.node(op, {x}, attributes, {DType::F32}, {shape});
      }
      m.check();
    }
    GraphMaker m;
    ValueId x = m.input(r.tensor(DType::F32, r.dims(r.integer(3, 5)), -4, 4));
    m.node(OpKind::GlobalAveragePool, {x}, {}, {DType::F32});
    m.node(OpKind::GlobalMaxPool, {x}, {}, {DType::F32});
    m.node(OpKind::GlobalLpPool, {x}, {{"p", r.integer(1, 3)}}, {DType::F32});
    m.check();
  });
}

TEST_CASE("lowering: normalisations") {
  forSeeds(20, [&](Random &r) {
    DType t = r.pick<DType>({DType::F32, DType::F32, DType::F16, DType::F64});
    GraphMaker m;
    m.tolerance = 1e-3;
    std::vector<int64_t> dims = r.dims(r.integer(2, 4));
    int64_t rank = static_cast<int64_t>(dims.size()), axis = r.integer(0, rank - 1);
    std::vector<int64_t> inner(dims.begin() + axis, dims.end()), channel{dims[1]};
    ValueId x = m.input(r.tensor(t, dims, -3, 3));
    auto parameter = [&](const std::vector<int64_t> &shape) {
      return m.input(r.tensor(t, shape, 0.5, 2));
    };
    m.node(OpKind::LayerNormalization, {x, parameter(inner), parameter(inner)},
           {{"axis", axis}, {"epsilon", 1e-2}}, {t, DType::F32, DType::F32});
    m.node(OpKind::LayerNormalization, {x, parameter(inner)}, {{"axis", axis}, {"epsilon", 1e-2}},
           {t});
    m.node(OpKind::RMSNormalization, {x, parameter(inner)}, {{"axis", axis}, {"epsilon", 1e-2}},
           {t});
    m.node(OpKind::LpNormalization, {x}, {{"axis", axis}, {"p", r.integer(1, 2)}}, {t});
    for (bool constant : {false, true}) {
      auto p = [&] {
        return constant ? m.constant(r.tensor(t, channel, 0.5, 2)) : parameter(channel);
      };
      m.node(OpKind::BatchNormalization, {x, p(), p(), p(), p()}, {{"epsilon", 1e-3}}, {t});
    }
    m.node(OpKind::MeanVarianceNormalization, {x}, {{"axes", std::vector<int64_t>{axis}}}, {t});
    m.check();

    GraphMaker g;
    g.tolerance = 1e-3;
    int64_t groups = r.integer(1, 3), channels = groups * r.integer(1, 3);
    std::vector<int64_t> image = join({2, channels}, r.dims(r.integer(1, 3)));
    ValueId y = g.input(r.tensor(DType::F32, image, -3, 3));
    auto own = [&] { return g.input(r.tensor(DType::F32, {channels}, 0.5, 2)); };
    g.node(OpKind::GroupNormalization, {y, own(), own()},
           {{"epsilon", 1e-2}, {"num_groups", groups}}, {DType::F32});
    g.node(OpKind::InstanceNormalization, {y, own(), own()}, {{"epsilon", 1e-2}}, {DType::F32});
    g.node(OpKind::LRN, {y},
           {{"alpha", 0.1}, {"beta", 0.75}, {"bias", 1.5}, {"size", r.integer(1, 4)}},
           {DType::F32});
    g.check();
  });
}
