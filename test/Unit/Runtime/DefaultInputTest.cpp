// Inputs that a run may leave out: the bundle holds what they are then.
#include "Bundle/Reader.h"
#include "FakeDriver.h"

#include <cstring>

using namespace test;

TEST_CASE("an input with a default value may be given, left out and filled in place") {
  // y = x + w, where x is w unless it is given.
  const float w[4] = {10, 20, 30, 40};
  Model m = constantModel(w);
  m.inputs[0].weight = 0;
  auto bytes = writeBundle(std::move(m));
  REQUIRE(bytes.ok());
  fusert_model model = 0;
  fusert_context context = 0;
  REQUIRE(fusert_load_memory(bytes->data(), bytes->size(), nullptr, &model) == FUSERT_OK);
  fusert_value_info info{};
  info.struct_size = sizeof info;
  REQUIRE(fusert_get_input_info(model, 0, &info) == FUSERT_OK);
  CHECK(info.has_default == 1);
  REQUIRE(fusert_get_output_info(model, 0, &info) == FUSERT_OK);
  CHECK(info.has_default == 0);
  REQUIRE(fusert_context_create(model, nullptr, &context) == FUSERT_OK);
  int64_t n = 4;
  fusert_shape shape{1, &n};
  REQUIRE(fusert_set_shapes(context, &shape, 1) == FUSERT_OK);
  std::vector<float> x = {1, 2, 3, 4}, y(4);
  fusert_buffer out = {y.data(), 16};
  auto run = [&](void *data, size_t size) {
    fusert_buffer in = {data, size};
    REQUIRE(fusert_run(context, &in, 1, &out, 1) == FUSERT_OK);
    return y;
  };
  CHECK(run(nullptr, 0) == std::vector<float>{20, 40, 60, 80});
  CHECK(run(x.data(), 16) == std::vector<float>{11, 22, 33, 44});
  CHECK(run(nullptr, 0) == std::vector<float>{20, 40, 60, 80});
  REQUIRE(fusert_run(context, nullptr, 0, &out, 1) == FUSERT_OK);
  CHECK(y == std::vector<float>{20, 40, 60, 80});
  void *own = nullptr;
  size_t size = 0;
  REQUIRE(fusert_input_buffer(context, 0, &own, &size) == FUSERT_OK);
  REQUIRE(size == 16);
  CHECK(std::memcmp(own, w, 16) == 0);
  CHECK(run(nullptr, 0) == std::vector<float>{20, 40, 60, 80});
  static_cast<float *>(own)[0] = 5;
  CHECK(run(nullptr, 0) == std::vector<float>{15, 40, 60, 80});
  REQUIRE(fusert_context_destroy(context) == FUSERT_OK);
  // The default value is the model's: another context has what the bundle says.
  REQUIRE(fusert_context_create(model, nullptr, &context) == FUSERT_OK);
  REQUIRE(fusert_set_shapes(context, &shape, 1) == FUSERT_OK);
  CHECK(run(nullptr, 0) == std::vector<float>{20, 40, 60, 80});
  fusert_context_destroy(context);
  fusert_unload(model);
}

TEST_CASE("what the caller has put in place of a default value outlasts other sizes") {
  // y = x + w, where x is w unless it is given; z: f32 [m], which nothing reads.
  const float w[4] = {10, 20, 30, 40};
  Model m = constantModel(w);
  m.inputs[0].weight = 0;
  m.symbols.push_back({"m", 0, 100, 1 << 20, 1});
  m.programs[0].tensors.push_back(tensor("z", TensorKind::Input, {DimCode::symbol(1)}));
  addValue(m, true, 3);
  auto bytes = writeBundle(std::move(m));
  REQUIRE(bytes.ok());
  fusert_model model = 0;
  fusert_context context = 0;
  REQUIRE(fusert_load_memory(bytes->data(), bytes->size(), nullptr, &model) == FUSERT_OK);
  REQUIRE(fusert_context_create(model, nullptr, &context) == FUSERT_OK);
  auto resize = [&](int64_t size) {
    const int64_t n = 4;
    const fusert_shape shapes[] = {{1, &n}, {1, &size}};
    REQUIRE(fusert_set_shapes(context, shapes, 2) == FUSERT_OK);
  };
  auto own = [&](size_t index, size_t size) {
    void *data = nullptr;
    size_t given = 0;
    REQUIRE(fusert_input_buffer(context, index, &data, &given) == FUSERT_OK);
    REQUIRE(given == size);
    return static_cast<float *>(data);
  };
  std::vector<float> y(4);
  const fusert_buffer out = {y.data(), 16};
  auto run = [&] {
    REQUIRE(fusert_run(context, nullptr, 0, &out, 1) == FUSERT_OK);
    return y;
  };
  resize(5);
  own(1, 20)[4] = 1;
  CHECK(run() == std::vector<float>{20, 40, 60, 80});
  resize(6);
  CHECK(run() == std::vector<float>{20, 40, 60, 80});
  float *x = own(0, 16);
  x[0] = 5;
  CHECK(run() == std::vector<float>{15, 40, 60, 80});
  for (const int64_t size : {1000, 0, 3}) {
    resize(size);
    own(1, static_cast<size_t>(size) * 4);
    CHECK(run() == std::vector<float>{15, 40, 60, 80});
    CHECK(own(0, 16) == x);
  }
  fusert_context_destroy(context);
  fusert_unload(model);
}

TEST_CASE("only bundles with default values need a runtime that knows them") {
  const float w[4] = {};
  for (const int32_t weight : {-1, 0}) {
    Model m = constantModel(w);
    m.inputs[0].weight = weight;
    auto bytes = writeBundle(std::move(m));
    REQUIRE(bytes.ok());
    fusec_bundle_header header;
    std::memcpy(&header, bytes->data(), sizeof header);
    CHECK(header.min_runtime == (weight < 0 ? 1 : 2));
  }
}

TEST_CASE("gpu: default values are in device memory, of which they leave only for a given one") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    {
      static const std::vector<float> five(100, 5.f);
      Model m = gpuModel({v.target}, {kGoodImage}); // y = x + 10 + x
      m.inputs[0].weight = static_cast<int32_t>(m.weights.size());
      m.weights.push_back({DType::F32, reinterpret_cast<const uint8_t *>(five.data()), 400});
      Loaded loaded(*writeBundle(std::move(m)), v.target);
      std::vector<float> x(100, 1.f), y(100);
      auto uploads = [&] {
        const std::string log = fake.state().log;
        size_t count = 0;
        for (size_t at = 0; (at = log.find("uploadAsync", at)) != std::string::npos; ++at)
          ++count;
        return count;
      };
      auto run = [&](float *data) {
        const fusert_buffer in{data, data ? size_t{400} : 0}, out{y.data(), 400};
        REQUIRE(fusert_run(loaded.context, &in, 1, &out, 1) == FUSERT_OK);
        return y;
      };
      CHECK(run(nullptr) == std::vector<float>(100, 20.f));
      CHECK(uploads() == 0);
      CHECK(run(x.data()) == std::vector<float>(100, 12.f));
      CHECK(uploads() == 1);
      CHECK(run(nullptr) == std::vector<float>(100, 20.f));
      void *own = nullptr;
      size_t size = 0;
      REQUIRE(fusert_input_buffer(loaded.context, 0, &own, &size) == FUSERT_OK);
      CHECK(std::memcmp(own, five.data(), 400) == 0);
      std::memcpy(own, x.data(), 400);
      CHECK(run(nullptr) == std::vector<float>(100, 12.f));
    }
    fake.requireClean();
  }
}
