#include "RawBundle.h"

#include "Support/DimProgram.h"

using namespace test;

namespace {

const float kWeight[4] = {1, 2, 3, 4};

using Edit = std::function<void(RawBundle &)>;

void refused(const std::string &text, const Edit &edit) {
  RawBundle raw(constantModel(kWeight));
  edit(raw);
  const std::string said = refusal(raw.bytes());
  INFO("expected: " << text << "\ngot: " << said);
  CHECK(said.find(text) != std::string::npos);
}

void refusedAdd(const std::string &text, const std::function<void(Model &, Program &)> &edit) {
  RawBundle raw(addModel());
  edit(raw.model, raw.model.programs[0]);
  const std::string said = refusal(raw.bytes());
  INFO("expected: " << text << "\ngot: " << said);
  CHECK(said.find(text) != std::string::npos);
}

} // namespace

TEST_CASE("the raw bundles of these tests are good where nothing is edited") {
  CHECK(refusal(RawBundle(constantModel(kWeight)).bytes()) == "");
  CHECK(refusal(RawBundle(addModel()).bytes()) == "");
  CHECK(RawBundle(constantModel(kWeight)).bytes() == *writeBundle(constantModel(kWeight)));
}

TEST_CASE("every changed byte is refused") {
  std::vector<uint8_t> file = *writeBundle(constantModel(kWeight));
  size_t accepted = 0;
  for (size_t i = 0; i < file.size(); ++i)
    for (uint8_t mask : {0x01, 0x80, 0xff}) {
      file[i] ^= mask;
      accepted += refusal(file).empty();
      file[i] ^= mask;
    }
  CHECK(accepted == 0);
}

TEST_CASE("every shorter and every longer file is refused") {
  std::vector<uint8_t> file = *writeBundle(constantModel(kWeight));
  size_t accepted = 0;
  for (size_t n = 0; n < file.size(); ++n) {
    const std::vector<uint8_t> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n));
    accepted += refusal(cut).empty();
  }
  CHECK(accepted == 0);
  file.push_back(0);
  CHECK(refusal(file).find("something appended") != std::string::npos);
}

TEST_CASE("weights are looked at only when asked for") {
  std::vector<uint8_t> file = *writeBundle(constantModel(kWeight));
  Result<Model> good = readBundle(file.data(), file.size(), Verify::Full, "b");
  REQUIRE(good.ok());
  file[static_cast<size_t>(good->weights[0].bytes - file.data())] ^= 1;
  CHECK(refusal(file, Verify::Code) == "");
  CHECK(refusal(file) == "b: the weights were changed (digest of chunk 0 differs)");
}

TEST_CASE("header and section table") {
  auto table = [](auto edit) {
    return [edit](RawBundle &r) {
      r.editTable = [edit](fusec_bundle_header &h, std::vector<fusec_bundle_section> &s) {
        edit(h, s);
      };
    };
  };
  refused("this runtime knows format 2", table([](auto &h, auto &) { h.version = 3; }));
  refused("version 0", table([](auto &h, auto &) { h.version = 0; }));
  refused("runtime version 7 needed", table([](auto &h, auto &) { h.min_runtime = 7; }));
  refused("byte order", table([](auto &h, auto &) { h.endian_tag = 0x04030201; }));
  refused("pointer size", table([](auto &h, auto &) { h.pointer_bytes = 4; }));
  refused("unusable section table", table([](auto &h, auto &) { h.section_count = 0; }));
  refused("unusable section table", table([](auto &h, auto &) { h.section_count = UINT32_MAX; }));
  refused("reserved bytes", table([](auto &h, auto &) { h.reserved[51] = 1; }));
  refused("not aligned or outside", table([](auto &, auto &s) { s[0].offset += 8; }));
  refused("outside the file", table([](auto &, auto &s) { s.back().size = UINT64_MAX; }));
  refused("outside the file", table([](auto &, auto &s) { s.back().offset = uint64_t{1} << 63; }));
  refused("overlaps its neighbour", table([](auto &, auto &s) { s[1].offset = 0; }));
  refused("leaves a hole", table([](auto &, auto &s) { s[0].offset += 4096; }));
  refused("wrong place", table([](auto &, auto &s) { s[1].kind = FUSEC_SECTION_MANIFEST; }));
  refused("wrong place", table([](auto &, auto &s) { s[0].kind = FUSEC_SECTION_CODE; }));
  refused("wrong place", table([](auto &, auto &s) { s[1].kind = 99; }));
  refused("reserved bytes", table([](auto &, auto &s) { s[1].reserved0 = 1; }));
  refused("bytes follow the last one", table([](auto &, auto &s) { s.back().size -= 1; }));
  refused("padding", [](RawBundle &r) { r.editFile = [](auto &f) { f[4000] = 1; }; });
  refused("not a fusec bundle", [](RawBundle &r) { r.editFile = [](auto &f) { f[0] = 'P'; }; });
}

TEST_CASE("weights of the manifest") {
  refused("a weight is outside its section", [](RawBundle &r) { r.ranges[0].offset = 64; });
  refused("a weight is outside its section", [](RawBundle &r) { r.ranges[0].size = UINT64_MAX; });
  refused("do not fill their section", [](RawBundle &r) { r.ranges[0].size = 12; });
  refused("type and shape do not agree", [](RawBundle &r) { r.ranges[0].type = DType::F64; });
  refused("unknown element type", [](RawBundle &r) { r.ranges[0].type = static_cast<DType>(200); });
  refused("weight's index is out of range",
          [](RawBundle &r) { r.model.programs[0].tensors[1].weight = 1; });
  refused("weight's index is out of range", [](RawBundle &r) { r.model.inputs[0].weight = 1; });
  refused("only an input has a default value", [](RawBundle &r) { r.model.outputs[0].weight = 0; });
  refused("overlaps another", [](RawBundle &r) { r.ranges.push_back(r.ranges[0]); });
  refused("names a section that is not its own", [](RawBundle &r) { r.imageSections[0] = 2; });
  refused("names a section that is not its own", [](RawBundle &r) { r.imageSections[0] = 77; });
}

TEST_CASE("the manifest is no FlatBuffer") {
  refused("not a well-formed FlatBuffer",
          [](RawBundle &r) { r.editManifest = [](auto &m) { m.resize(7); }; });
  refused("not a well-formed FlatBuffer",
          [](RawBundle &r) { r.editManifest = [](auto &m) { m[4] = 'X'; }; });
  // Any damage with right digests: refused or harmless, never a crash.
  std::vector<uint8_t> manifest;
  RawBundle look(addModel());
  look.editManifest = [&](auto &m) { manifest = m; };
  look.bytes();
  for (size_t i = 0; i < manifest.size(); i += 3) {
    RawBundle raw(addModel());
    raw.editManifest = [i](auto &m) { m[i] ^= 0x81; };
    refusal(raw.bytes());
  }
}

TEST_CASE("names, types and shapes") {
  refusedAdd("the decisions are no text",
             [](Model &, Program &p) { p.decisions = std::string("plan\0", 5); });
  refusedAdd("stands twice", [](Model &m, Program &) { m.inputs[1].name = "x"; });
  refusedAdd("the name is empty", [](Model &m, Program &) { m.outputs[0].name = ""; });
  refusedAdd("holds a zero byte",
             [](Model &m, Program &) { m.inputs[0].name = std::string("a\0b", 3); });
  refusedAdd("needs 0 <= min <= opt <= max", [](Model &m, Program &) { m.symbols[0].min = 200; });
  refusedAdd("divisor >= 1", [](Model &m, Program &) { m.symbols[0].divisor = 0; });
  for (const std::vector<int64_t> &tuned :
       std::vector<std::vector<int64_t>>{{2, 1}, {1, 1}, {-1, 4}, {4, INT64_MAX}})
    refusedAdd("must ascend, from min to max",
               [&](Model &m, Program &) { m.tunedSizes = {tuned}; });
  const InferredDim good{"k", DimCode::symbol(0), {{0, 0}}};
  auto inferred = [&](const std::string &text, const std::function<void(InferredDim &)> &edit) {
    refusedAdd(text, [&](Model &m, Program &) {
      m.inferred = {good};
      edit(m.inferred[0]);
    });
  };
  inferred("stands twice", [](InferredDim &s) { s.name = "n"; });
  inferred("its value is malformed", [](InferredDim &s) { s.value = DimCode::symbol(1); });
  inferred("where no input has a dimension", [](InferredDim &s) { s.places[0].input = 9; });
  inferred("where no input has a dimension", [](InferredDim &s) { s.places[0].axis = 1; });
  inferred("where no input has a dimension", [](InferredDim &s) { s.places[0].axis = -1; });
  auto rule = [&](const std::string &text, const std::function<void(DimRule &)> &edit) {
    refusedAdd(text, [&](Model &m, Program &) {
      m.rules = {{fusec::SizeRule::Kind::Equal, DimCode::symbol(0), DimCode(1), "", "", "", true}};
      edit(m.rules[0]);
    });
  };
  rule("malformed", [](DimRule &r) { r.left = DimCode::symbol(1); });
  rule("malformed", [](DimRule &r) { r.right.code.clear(); });
  rule("malformed", [](DimRule &r) { r.kind = static_cast<fusec::SizeRule::Kind>(9); });
  rule("zero byte", [](DimRule &r) { r.text = std::string("a\0b", 3); });
  refusedAdd("unknown element type",
             [](Model &, Program &p) { p.tensors[2].type = static_cast<DType>(255); });
  refusedAdd("rank 65", [](Model &, Program &p) { p.tensors[2].shape.assign(65, 1); });
  refusedAdd("product overflows", [](Model &, Program &p) {
    p.tensors[2].shape = {int64_t{1} << 32, int64_t{1} << 32};
  });
  refusedAdd("negative", [](Model &, Program &p) { p.tensors[2].shape = {-1}; });
  refusedAdd("differ from the model's inputs",
             [](Model &m, Program &) { m.inputs[0].shape = {3}; });
  refusedAdd("number of outputs differs", [](Model &m, Program &) { m.outputs.pop_back(); });
  refusedAdd("target stands twice", [](Model &m, Program &) {
    m.programs.push_back(m.programs[0]);
    m.programs[1].images.clear();
  });
}

TEST_CASE("dimension expressions") {
  auto bad = [](DimCode d) {
    refusedAdd("a dimension is malformed", [d](Model &, Program &p) { p.tensors[2].shape = {d}; });
  };
  using Op = DimCode::Op;
  DimCode d;
  d.code = {};
  bad(d);
  d.code = {{Op::Symbol, 1}};
  bad(d);
  d.code = {{Op::Const, 1}, {Op::Add, 0}};
  bad(d);
  d.code = {{Op::Const, 1}, {Op::Const, 1}};
  bad(d);
  d.code = {{static_cast<Op>(9), 0}};
  bad(d);
  d.code.assign(10000, {Op::Const, 1});
  bad(d);
  d.code = {{Op::Const, 1}, {Op::Const, 0}, {Op::FloorDiv, 0}};
  CHECK(!d.evaluate({}));
  d.code = {{Op::Const, INT64_MAX}, {Op::Const, 2}, {Op::Mul, 0}};
  CHECK(!d.evaluate({}));
  d.code = {{Op::Const, -7}, {Op::Const, 2}, {Op::FloorDiv, 0}};
  CHECK(d.evaluate({}) == -4);
  d.code[2].op = Op::CeilDiv;
  CHECK(d.evaluate({}) == -3);
  d.code[2].op = Op::Mod;
  CHECK(d.evaluate({}) == 1);
}

TEST_CASE("definitions of symbols") {
  using Op = DimProgram::Op;
  auto defined = [](Model &m, std::vector<DimProgram::Instr> code) {
    auto program = std::make_shared<DimProgram>();
    program->code = std::move(code);
    m.symbols.push_back({"half", -4, 0, 1 << 20, 1, program});
  };
  const DimProgram::Instr n{Op::Symbol, DType::I64, {-1, -1, -1}, 0},
      itself{Op::Symbol, DType::I64, {-1, -1, -1}, 1};
  const char *malformed = "behind a computed symbol each needs a well-formed definition";
  auto bad = [&](std::vector<DimProgram::Instr> code) {
    refusedAdd(malformed, [&](Model &m, Program &) { defined(m, code); });
  };
  bad({});
  bad({itself});
  bad({n, {Op::Add, DType::I64, {0, 1, -1}, 0}});
  bad({n, {Op::Add, DType::I64, {0, -1, -1}, 0}});
  bad({n, {static_cast<Op>(200), DType::I64, {-1, -1, -1}, 0}});
  bad({{Op::Integer, static_cast<DType>(99), {-1, -1, -1}, 0}});
  bad({n, {Op::Cast, DType::F32, {0, -1, -1}, 0}});
  refusedAdd(malformed, [&](Model &m, Program &) {
    defined(m, {n});
    m.symbols.push_back({"m", 0, 100, 1 << 20, 1});
  });
  refusedAdd("a dimension is malformed", [&](Model &m, Program &p) {
    defined(m, {n});
    m.inputs[0].shape = p.tensors[0].shape = {DimCode::symbol(1)};
  });
  refusedAdd("needs 0 <= min <= opt <= max", [](Model &m, Program &) { m.symbols[0].min = -1; });
}

TEST_CASE("kernels") {
  refusedAdd("threads", [](Model &, Program &p) { p.kernels[0].units = 0; });
  refusedAdd("threads", [](Model &, Program &p) { p.kernels[0].lanes = 1 << 30; });
  refusedAdd("scratch memory",
             [](Model &, Program &p) { p.kernels[0].scratchBytes = int64_t{1} << 40; });
  refusedAdd("a grid of -1 blocks", [](Model &, Program &p) { p.kernels[0].grids = {-1}; });
  refusedAdd("phases", [](Model &, Program &p) { p.kernels[0].grids.clear(); });
  refusedAdd("rounds are of phases", [](Model &, Program &p) { p.kernels[0].roundsLast = 2; });
  refusedAdd("rounds are of phases", [](Model &, Program &p) { p.kernels[0].roundsFirst = 1; });
  refusedAdd("number of rounds is malformed", [](Model &, Program &p) {
    p.kernels[0].roundsLast = 1;
    p.kernels[0].rounds = DimCode::symbol(9);
  });
  refusedAdd("resident in an entry for all phases", [](Model &, Program &p) {
    p.kernels[0].gridBarrier = false;
    p.kernels[0].resident = true;
  });
  refusedAdd("ascending symbols", [](Model &, Program &p) { p.kernels[0].dims = {5}; });
  refusedAdd("the symbol is empty or stands twice",
             [](Model &, Program &p) { p.kernels[1].symbol = "add"; });
  refusedAdd("machine code exactly when there are kernels",
             [](Model &, Program &p) { p.images.clear(); });
  refusedAdd("has no function 'system'",
             [](Model &, Program &p) { p.kernels[0].symbol = "system"; });
}

TEST_CASE("limits of a GPU") {
  const auto sim = [](const std::string &text, const std::function<void(Program &)> &edit) {
    refusedAdd(text, [&](Model &, Program &p) {
      setTarget(p, "sim:sm_90");
      edit(p);
    });
  };
  const std::string limits = "the limits of a block are missing or out of range";
  sim(limits, [](Program &p) { p.maxBlockThreads = 0; });
  sim(limits, [](Program &p) { p.maxBlockThreads = 1 << 20; });
  sim(limits, [](Program &p) { p.maxSharedBytes = -1; });
  sim(limits, [](Program &p) { p.maxSharedBytes = int64_t{1} << 40; });
  sim(limits, [](Program &p) { p.maxDynamicShared = -1; });
  sim(limits, [](Program &p) { p.maxDynamicShared = 1 << 20; });
  refusedAdd(limits, [](Model &, Program &p) { p.maxDynamicShared = 1; });
  for (const int32_t align : {0, -128, 64, 192, 2048, INT32_MIN})
    sim("an alignment of shared memory", [&](Program &p) { p.kernels[0].sharedAlign = align; });
  refusedAdd("an alignment of shared memory",
             [](Model &, Program &p) { p.kernels[0].sharedAlign = 256; });
  const std::string each = "gives each phase of a GPU its shared memory, or none";
  sim(each, [](Program &p) { p.kernels[1].dynamicShared = {0}; });
  refusedAdd(each, [](Model &, Program &p) { p.kernels[1].dynamicShared = {0, 0}; });
  sim("may give 0 to 256", [](Program &p) { p.kernels[1].dynamicShared = {257, 0}; });
  sim("may give 0 to 256", [](Program &p) { p.kernels[1].dynamicShared = {0, -1}; });
  sim("scratch memory", [](Program &p) { p.kernels[0].scratchBytes = 1 << 30; });
  sim("a grid of 2147483648 blocks",
      [](Program &p) { p.kernels[0].grids = {int64_t{INT32_MAX} + 1}; });
  refusedAdd(limits, [](Model &, Program &p) { p.maxBlockThreads = 1024; }); // a CPU has none
  refusedAdd("take more than 4096 bytes", [](Model &, Program &p) {
    setTarget(p, "sm_90");
    p.kernels[0].params.assign(600, in);
  });
}

TEST_CASE("steps") {
  auto arguments = [](Program &p) -> std::vector<int32_t> & {
    return p.steps[0].variants[0].arguments;
  };
  refusedAdd("kernel's index is out of range",
             [](Model &, Program &p) { p.steps[0].variants[0].kernel = 9; });
  refusedAdd("takes 3 arguments", [&](Model &, Program &p) { arguments(p).pop_back(); });
  refusedAdd("another element type",
             [](Model &, Program &p) { p.kernels[0].params[1].type = DType::I32; });
  refusedAdd("which is an input or a constant", [&](Model &, Program &p) { arguments(p)[2] = 0; });
  refusedAdd("which no earlier step writes",
             [](Model &, Program &p) { std::swap(p.steps[0], p.steps[1]); });
  refusedAdd("no step writes this output", [](Model &, Program &p) { p.steps.pop_back(); });
  refusedAdd("unguarded", [](Model &, Program &p) { p.steps[0].variants[0].guards = {{1, 0}}; });
  refusedAdd("neither a trip count nor a condition", [](Model &, Program &p) {
    Step loop;
    loop.kind = StepKind::Loop;
    p.steps.push_back(loop);
  });
  refusedAdd("must hold one element of type bool", [](Model &, Program &p) {
    Step branch;
    branch.kind = StepKind::If;
    branch.condition = 0;
    p.steps.push_back(branch);
  });
  refusedAdd("nested deeper than 64", [](Model &m, Program &p) {
    m.inputs.push_back({"flag", DType::Bool, {}});
    p.tensors.push_back(tensor("flag", TensorKind::Input, {}, DType::Bool));
    p.inputs.push_back(6);
    for (int i = 0; i < 66; ++i) {
      Step branch;
      branch.kind = StepKind::If;
      branch.condition = 6;
      branch.thenSteps = std::move(p.steps);
      p.steps = {branch};
    }
  });
  RawBundle overlapping(addModel()); // two temporaries would share memory while both are needed
  overlapping.fillLiveness = false;
  CHECK(refusal(overlapping.bytes()).find("the stored lifetime is not that of its uses") !=
        std::string::npos);
}

TEST_CASE("caches") {
  auto cache = [&](const std::string &text, const std::function<void(Cache &)> &edit) {
    refusedAdd(text, [&](Model &m, Program &) {
      auto zero = std::make_shared<DimProgram>();
      zero->code = {{DimProgram::Op::Integer, DType::I64, {-1, -1, -1}, 0}};
      m.symbols.push_back({"kept", 0, 0, 100, 1, zero});
      m.caches = {{0, 0, 0, -1, -1, 1}};
      edit(m.caches[0]);
    });
  };
  cache("input or output does not exist", [](Cache &c) { c.input = 2; });
  cache("input or output does not exist", [](Cache &c) { c.output = -1; });
  cache("are not alike", [](Cache &c) { c.axis = 1; });
  cache("are not alike", [](Cache &c) { c.axis = -1; });
  cache("no sizes that are computed", [](Cache &c) { c.kept = 0; });
  cache("no sizes that are computed", [](Cache &c) { c.kept = 2; });
  cache("no sizes that are computed", [](Cache &c) { c.inputRoom = 0; });
  cache("no sizes that are computed", [](Cache &c) { c.inputRoom = 1; });
}

TEST_CASE("steps that name tensors which do not exist") {
  for (int32_t t : {-1, 6, INT32_MAX}) {
    RawBundle raw(addModel());
    raw.bytes(); // lifetimes
    raw.fillLiveness = false;
    raw.model.programs[0].steps[0].variants[0].arguments[1] = t;
    CHECK(refusal(raw.bytes()).find("a tensor index is out of range") != std::string::npos);
    CHECK(!writeBundle(raw.model).ok());
  }
}
