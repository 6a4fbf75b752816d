#include "RawBundle.h"

#include "Support/DimProgram.h"

#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace test;

namespace {

const float kWeight[4] = {1, 2, 3, 4};

uint32_t neededRuntime(const std::vector<uint8_t> &file) {
  fusec_bundle_header header;
  std::memcpy(&header, file.data(), sizeof header);
  return header.min_runtime;
}

/// A model with every kind of step, a guard, a second image and a constant.
Model richModel() {
  Model m = addModel();
  auto half = std::make_shared<DimProgram>();
  half->code = {{DimProgram::Op::Symbol, DType::I64, {-1, -1, -1}, 0},
                {DimProgram::Op::Cast, DType::F32, {0, -1, -1}, 0},
                {DimProgram::Op::Cast, DType::I64, {1, -1, -1}, 0}};
  half->node = "node";
  m.symbols.push_back({"half", -5, 0, 1 << 20, 1, half});
  m.tunedSizes = {{1, 16, 100}};
  Program &p = m.programs[0];
  p.decisions = "plan {\n}\n";
  p.checked = true;
  p.tensors.push_back(tensor("c", TensorKind::Constant, {4}));
  p.tensors.back().weight = 0;
  m.weights.push_back({DType::F32, reinterpret_cast<const uint8_t *>(kWeight), sizeof kWeight});
  p.tensors.push_back(tensor("flag", TensorKind::Temp, {}, DType::Bool));
  p.tensors.push_back(tensor("i", TensorKind::Temp, {}, DType::I64));
  p.tensors.push_back(tensor("u", TensorKind::Temp, {DimCode::symbol(0)}));
  p.kernels.push_back(kernel("greater", {1}, {in, in, {DType::Bool, true}}));
  const int32_t flag = 7, iteration = 8, u = 9;
  p.steps.push_back(launch("compare", 2, {5, 5, flag}));
  Step branch;
  branch.kind = StepKind::If;
  branch.name = "branch";
  branch.condition = flag;
  branch.thenSteps = {launch("then", 0, {0, 1, u})};
  branch.elseCopies = {{0, u}};
  p.steps.push_back(branch);
  Step loop;
  loop.kind = StepKind::Loop;
  loop.name = "loop";
  loop.condition = flag;
  loop.iteration = iteration;
  loop.nextCondition = flag;
  loop.thenSteps = {launch("again", 2, {5, 5, flag})};
  loop.after = {{u, 3}};
  p.steps.push_back(loop);
  Step where;
  where.kind = StepKind::Where;
  where.name = "n = 1";
  where.guards = {{DimCode(DimExpr(1) - DimExpr::symbol(0))}};
  where.thenSteps = {launch("one", 0, {0, 1, u})};
  where.elseSteps = {launch("more", 0, {0, 1, u})};
  p.steps.push_back(where);
  p.steps[0].variants.insert(p.steps[0].variants.begin(),
                             Variant{0, {{DimCode::symbol(0), 8}}, {0, 1, 2}});
  return m;
}

} // namespace

TEST_CASE("what is written is read back") {
  std::vector<uint8_t> file = *writeBundle(richModel());
  Result<Model> read = readBundle(file.data(), file.size(), Verify::Full, "b");
  INFO(refusal(file));
  REQUIRE(read.ok());
  CHECK(read->name == "test");
  CHECK(read->symbols[0].max == 1 << 20);
  CHECK(!read->symbols[0].definition);
  CHECK(read->symbols[1].min == -5);
  CHECK(read->tunedSizes == std::vector<std::vector<int64_t>>{{1, 16, 100}, {}});
  REQUIRE(read->symbols[1].definition);
  CHECK(*read->symbols[1].definition == *richModel().symbols[1].definition);
  const Program &p = read->programs[0];
  CHECK(p.images[0].code == kernelImage("x86-64-v1"));
  CHECK(p.decisions == "plan {\n}\n");
  CHECK(p.checked);
  REQUIRE(p.steps.size() == 7);
  CHECK(p.steps[0].variants.size() == 2);
  CHECK(p.steps[0].variants[0].guards[0].modulus == 8);
  CHECK(p.steps[4].thenSteps[0].name == "then");
  CHECK(p.steps[5].after[0].to == 3);
  CHECK(p.steps[6].kind == StepKind::Where);
  REQUIRE(p.steps[6].guards.size() == 1);
  CHECK(p.steps[6].guards[0].value.str(read->symbols) == "n*-1 + 1");
  CHECK(p.steps[6].elseSteps[0].name == "more");
  CHECK(p.kernels[1].scratchBytes == 256);
  CHECK(p.kernels[1].grids[0].str(read->symbols) == "floordiv(n + 63, 64)");
  REQUIRE(read->weights.size() == 1);
  CHECK(std::memcmp(read->weights[0].bytes, kWeight, sizeof kWeight) == 0);
  CHECK((read->weights[0].bytes - file.data()) % 4096 == 0);
}

TEST_CASE("shared memory that launches give is read back, and takes no byte where there is none") {
  Model m = addModel();
  Program &p = m.programs[0];
  setTarget(p, "sm_90");
  p.images = {{ImageKind::Cubin, {1, 2, 3}, 0}};
  const Kernel plain = p.kernels[1];
  const std::vector<uint8_t> before = *writeBundle(m);
  p.maxDynamicShared = 227 << 10;
  p.kernels[1].scratchBytes = 200064;
  p.kernels[1].dynamicShared = {200064, 0};
  p.kernels[1].sharedAlign = 1024;
  std::vector<uint8_t> file = *writeBundle(m);
  Result<Model> read = readBundle(file.data(), file.size(), Verify::Full, "b");
  INFO(refusal(file));
  REQUIRE(read.ok());
  const Program &q = read->programs[0];
  CHECK(q.maxDynamicShared == 227 << 10);
  CHECK(q.kernels[0].dynamicShared.empty());
  CHECK(q.kernels[0].sharedAlign == 128);
  CHECK(q.kernels[1].dynamicShared == std::vector<int64_t>{200064, 0});
  CHECK(q.kernels[1].sharedAlign == 1024);
  p.maxDynamicShared = 0;
  p.kernels[1] = plain;
  CHECK(*writeBundle(m) == before);
}

TEST_CASE("a bundle from before what is tested was a field says it by the symbol's name") {
  Model m = richModel();
  const TestOfData absent{static_cast<DataTest>(kTestByName), "node"};
  m.symbols.push_back({"node.lengths", 0, 0, 0, 1});
  m.symbols.push_back({"other", 0, 0, 0, 1});
  m.dataSizes = {{2, 0, absent}, {3, 0, absent}};
  const std::vector<uint8_t> manifest = encodeManifest(m, {}, std::vector<uint32_t>(64));
  const auto read = decodeManifest(manifest.data(), manifest.size(), "m");
  REQUIRE(read.ok());
  REQUIRE(read->model.dataSizes.size() == 2);
  CHECK(read->model.dataSizes[0].test == TestOfData{DataTest::Lengths, "node"});
  CHECK(read->model.dataSizes[1].test == TestOfData{DataTest::Indices, "node"});
}

TEST_CASE("tests of indices are read back, and need a runtime that knows them in each plan") {
  Model m = richModel();
  m.symbols.push_back({"outside", 0, 0, 0, 1});
  m.dataSizes = {{2, 0, TestOfData{DataTest::Pads, "gather"}}};
  Step size;
  size.kind = StepKind::Size;
  size.name = "gather.indices";
  size.tripCount = 8;
  size.symbol = 2;
  std::vector<Step> &steps = m.programs[0].steps;
  const Step where = steps.back();
  steps.insert(steps.end() - 1, size);
  const std::vector<uint8_t> file = *writeBundle(m);
  CHECK(neededRuntime(file) == 4);
  Result<Model> read = readBundle(file.data(), file.size(), Verify::Full, "b");
  INFO(refusal(file));
  REQUIRE(read.ok());
  REQUIRE(read->dataSizes.size() == 1);
  CHECK(read->dataSizes[0].bound == DimCode(0));
  CHECK(read->dataSizes[0].test == TestOfData{DataTest::Pads, "gather"});
  steps.erase(steps.end() - 2);
  Step both = where;
  both.thenSteps.insert(both.thenSteps.begin(), size);
  both.elseSteps.insert(both.elseSteps.begin(), size);
  steps.back() = both;
  CHECK(neededRuntime(*writeBundle(m)) == 5);
  steps.back() = where;
  steps.back().elseSteps = {both};
  CHECK(neededRuntime(*writeBundle(m)) == 5);
}

TEST_CASE("rules of sizes are read back, and need a runtime that knows them") {
  Model m = addModel();
  CHECK(neededRuntime(*writeBundle(m)) == 1);
  CHECK(neededRuntime(*writeBundle(richModel())) == 4);
  m.inferred = {{"k", DimCode(DimExpr::symbol(0) * DimExpr(2)), {{1, 0}}}};
  m.rules = {{fusec::SizeRule::Kind::Multiple, DimCode::symbol(1), DimCode(4), "half", "Split",
              "it must", true}};
  std::vector<uint8_t> file = *writeBundle(m);
  CHECK(neededRuntime(file) == 3);
  Result<Model> read = readBundle(file.data(), file.size(), Verify::Full, "b");
  REQUIRE(read.ok());
  REQUIRE(read->inferred.size() == 1);
  CHECK(read->inferred[0].name == "k");
  CHECK(read->inferred[0].value.str(read->symbols) == "n*2");
  REQUIRE(read->inferred[0].places.size() == 1);
  CHECK(read->inferred[0].places[0].input == 1);
  REQUIRE(read->rules.size() == 1);
  const DimRule &r = read->rules[0];
  CHECK(r.kind == fusec::SizeRule::Kind::Multiple);
  CHECK(r.left == DimCode::symbol(1));
  CHECK(r.right == DimCode(4));
  CHECK(r.node + r.op + r.text == "halfSplitit must");
  CHECK(r.tested);
}

TEST_CASE("caches are read back, with rooms in the shapes of tensors alone") {
  Model m = addModel();
  auto zero = std::make_shared<DimProgram>();
  zero->code = {{DimProgram::Op::Integer, DType::I64, {-1, -1, -1}, 0}};
  for (const char *name : {"x.room", "y.room", "y.kept"})
    m.symbols.push_back({name, 0, 0, INT64_MAX, 1, zero});
  std::vector<Tensor> &tensors = m.programs[0].tensors;
  tensors[0].shape = {DimCode(DimExpr::symbol(0) + DimExpr::symbol(1))};
  tensors[3].shape = {DimCode(DimExpr::symbol(0) + DimExpr::symbol(2))};
  RawBundle without(m);
  CHECK(refusal(without.bytes()).find("type or shape differ from the model's inputs") !=
        std::string::npos);
  m.caches = {{0, 0, 0, 1, 2, 3}};
  std::vector<uint8_t> file = *writeBundle(m);
  Result<Model> read = readBundle(file.data(), file.size(), Verify::Full, "b");
  INFO(refusal(file));
  REQUIRE(read.ok());
  REQUIRE(read->caches.size() == 1);
  const Cache &c = read->caches[0];
  CHECK((c.input == 0 && c.output == 0 && c.axis == 0));
  CHECK((c.inputRoom == 1 && c.outputRoom == 2 && c.kept == 3));
  CHECK(c.grows());
}

TEST_CASE("the same model gives the same bytes; equal weights are stored once") {
  CHECK(*writeBundle(richModel()) == *writeBundle(richModel()));
  Model m = constantModel(kWeight);
  static const float copy[4] = {1, 2, 3, 4}, other[4] = {1, 2, 3, 5};
  m.programs.push_back(m.programs[0]);
  m.programs[1].target = "x86-64-v2";
  m.programs[1].tensors[1].weight = 1;
  m.weights.push_back({DType::F32, reinterpret_cast<const uint8_t *>(copy), sizeof copy});
  m.weights.push_back(
      {DType::F32, reinterpret_cast<const uint8_t *>(other), sizeof other}); // used by nobody
  std::vector<uint8_t> file = *writeBundle(m);
  Result<Model> read = readBundle(file.data(), file.size(), Verify::Full, "b");
  REQUIRE(read.ok());
  CHECK(read->weights.size() == 1);
}

TEST_CASE("lifetimes: a loop keeps what crosses its body") {
  Program p = richModel().programs[0];
  std::vector<Interval> live = computeLiveness(p);
  // first 0, second 1, total 2, compare 3, if 4, then 5, copies 6, else copies 7, loop 8, again 9, copies 10, after 11,
  // one 12, more 13
  CHECK((live[2].first == 0 && live[2].last == 1));
  CHECK((live[7].first == 3 && live[7].last == 11)); // flag: set before, set again inside
  CHECK((live[9].first == 5 && live[9].last == 13)); // both lists of a where
  CHECK((live[3].last == 11));
}

TEST_CASE("files appear whole or not at all") {
  namespace fs = std::filesystem;
  const fs::path dir =
      fs::temp_directory_path() / ("fusec-bundle-test-" + std::to_string(getpid()));
  fs::create_directories(dir);
  const std::string path = dir / "m.bundle";
  std::ofstream(path) << "old";
  std::ofstream(path + ".tmp.999999999.0") << "left behind by a process that is gone";
  const mode_t old = umask(027);
  Status written = writeBundle(richModel(), path);
  umask(old);
  REQUIRE(written.ok());
  struct stat st;
  REQUIRE(stat(path.c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0640);
  size_t entries = 0;
  for ([[maybe_unused]] const auto &e : fs::directory_iterator(dir))
    ++entries;
  CHECK(entries == 1);
  std::ifstream in(path, std::ios::binary);
  CHECK(std::vector<uint8_t>(std::istreambuf_iterator<char>(in), {}) == *writeBundle(richModel()));
  CHECK(!writeBundle(richModel(), dir / "no" / "such" / "folder").ok());
  CHECK(!writeBundle(richModel(), dir.string()).ok());
  CHECK(!writeBundle(richModel(), "/dev/full").ok());
  fs::remove_all(dir);
}

TEST_CASE("weights that are made when they are written give the same file") {
  std::vector<float> data(300000);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<float>(i % 1000);
  const auto *bytes = reinterpret_cast<const uint8_t *>(data.data());
  // Three weights that are used, the third like the first, and one that nobody uses.
  Model m = addModel();
  Program &p = m.programs[0];
  const std::pair<int64_t, int64_t> ranges[] = {{0, 150000}, {7, 200000}, {0, 10}, {1000, 150000}};
  for (auto [from, count] : ranges)
    m.weights.push_back({DType::F32, bytes + from * 4, count * 4});
  for (int32_t w : {0, 1, 3}) {
    p.tensors.push_back(
        tensor("w" + std::to_string(w), TensorKind::Constant, {m.weights[w].sizeBytes / 4}));
    p.tensors.back().weight = w;
  }
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("made" + std::to_string(getpid()));
  const std::vector<uint8_t> expected = *writeBundle(m);
  for (size_t piece : {size_t(999), size_t(1) << 20}) {
    Model made = m;
    for (size_t w : {0, 1, 3})
      made.weights[w].bytes = nullptr;
    std::vector<int> asked(4);
    const GiveWeight give = [&](size_t w, const fusec::TakeBytes &take) -> fusec::Status {
      ++asked[w];
      const auto size = static_cast<size_t>(m.weights[w].sizeBytes);
      for (size_t at = 0; at < size; at += piece)
        FUSEC_CHECK(take(m.weights[w].bytes + at, std::min(piece, size - at)));
      return fusec::success();
    };
    REQUIRE(writeBundle(made, path, nullptr, give).ok());
    std::ifstream in(path, std::ios::binary);
    CHECK(std::vector<uint8_t>(std::istreambuf_iterator<char>(in), {}) == expected);
    CHECK(asked == std::vector<int>{2, 2, 0, 1});
  }
  std::filesystem::remove(path);
  for (const auto &[size, first] : // of the first time or of the second: to hash, and to write
       {std::pair<int64_t, bool>(0, true),
        {599996, true},
        {600004, true},
        {0, false},
        {599996, false},
        {600004, false}}) {
    INFO(size << " bytes the " << (first ? "first" : "second") << " time");
    Model made = m;
    made.weights[0].bytes = nullptr;
    int asked = 0;
    const Status written = writeBundle(made, path, nullptr, [&](size_t, const auto &take) {
      return take(bytes, static_cast<size_t>((++asked == 1) == first ? size : 600000));
    });
    REQUIRE_FALSE(written.ok());
    CHECK(asked == (first ? 1 : 2));
    CHECK(written.errors()[0].text ==
          "weight 0 has 600000 bytes; " + std::to_string(size) + " came");
    CHECK_FALSE(std::filesystem::exists(path));
  }
}
