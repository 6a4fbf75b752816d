// Kernels and programs survive print and parse unchanged, numbering included, and broken ones are refused.
#include "Kernels.h"

#include "Gir/Program.h"
#include "Gir/Walk.h"

using namespace fusec;
using namespace fusec::test;

namespace {

bool sameStatements(const std::vector<Stmt> &a, const std::vector<Stmt> &b) {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Stmt &s = a[i], &t = b[i];
    if (s.kind != t.kind || s.loop != t.loop || s.var != t.var || s.buffer != t.buffer ||
        s.monoid != t.monoid || s.indexBuffer != t.indexBuffer || s.scope != t.scope ||
        exprRoots(s) != exprRoots(t) || !sameStatements(s.body, t.body) ||
        !sameStatements(s.elseBody, t.elseBody))
      return false;
  }
  return true;
}

bool sameKernel(const GirKernel &a, const GirKernel &b) {
  if (a.phases.size() != b.phases.size() || a.body.nodes != b.body.nodes ||
      a.vars.size() != b.vars.size())
    return false;
  for (size_t i = 0; i < a.vars.size(); ++i)
    if (a.vars[i].name != b.vars[i].name || a.vars[i].kind != b.vars[i].kind ||
        a.body.axisRanges[i].max != b.body.axisRanges[i].max ||
        a.body.axisRanges[i].extent != b.body.axisRanges[i].extent)
      return false;
  for (size_t i = 0; i < a.phases.size(); ++i)
    if (!sameStatements(a.phases[i].body, b.phases[i].body))
      return false;
  return true;
}

std::string firstError(const std::string &text) {
  TextReader in(text, "test");
  auto kernel = parseGirKernel(in, oneSymbol());
  return kernel.ok() ? "" : kernel.errors().front().text;
}

/// A kernel in which two loops share a variable, nodes are in no particular order and names need repair.
GirKernel untidyKernel() {
  GirKernel k;
  k.name = "untidy \"kernel\"";
  k.onnxNodes = {"a/b"};
  k.symbols = oneSymbol();
  k.lanes = 4;
  k.vars = {{"l", LoopKind::Lane}, {"step", LoopKind::Seq}, {"l", LoopKind::Block}};
  DimExpr n = DimExpr::symbol(0);
  k.buffers = {{"x", MemLevel::Global, DType::F32, {n, 4}, true, false, false, -1},
               {"x", MemLevel::Global, DType::F32, {n, 4}, true, true, false, -1},
               {"v", MemLevel::Register, DType::F32, {}, true, false, false, -1},
               {"at", MemLevel::Register, DType::I64, {}, true, false, false, -1}};
  Body &b = k.body;
  b.constant(DType::F32, 77); // unused
  NodeId four = b.index(4), lane = b.axis(0), seq = b.axis(1), block = b.axis(2);
  NodeId x = b.read(0, DType::F32, {block, lane});
  NodeId square = b.binary(ScalarOp::Mul, x, x);
  NodeId value =
      b.binary(ScalarOp::Add, square, b.binary(ScalarOp::Mul, square, b.constant(DType::F32, 0.1)));
  auto loop = [&](LoopKind kind, VarId var, NodeId trip, std::vector<Stmt> body) {
    Stmt s;
    s.kind = StmtKind::Loop;
    s.loop = kind;
    s.var = var;
    s.trip = trip;
    s.body = std::move(body);
    return s;
  };
  Stmt best;
  best.kind = StmtKind::Accumulate;
  best.monoid = Monoid::ArgMax;
  best.buffer = 2;
  best.indexBuffer = 3;
  best.value = value;
  best.indexValue = seq;
  Stmt store;
  store.kind = StmtKind::Store;
  store.buffer = 1;
  store.indices = {block, lane};
  store.value = value;
  Stmt reduce = best;
  reduce.kind = StmtKind::LaneReduce;
  reduce.value = reduce.indexValue = kNoNode;
  std::vector<Stmt> body;
  body.push_back(loop(LoopKind::Seq, 1, four, {loop(LoopKind::Lane, 0, four, {best})}));
  body.push_back(reduce);
  body.push_back(loop(LoopKind::Lane, 0, four, {store}));
  k.phases.push_back({{{2, n}}, std::move(body)});
  return k;
}

} // namespace

TEST_CASE("text of a kernel is reproduced by print") {
  for (const char *text : {kElementwise, kRowSum, kStagedMatmul})
    CHECK(print(kernelFrom(text)) == text);
}

TEST_CASE("a canonical kernel equals its printed and parsed twin") {
  GirKernel kernel = untidyKernel();
  canonicalise(kernel);
  auto status = verify(kernel);
  if (!status.ok())
    FAIL(format(status.errors().front()));
  std::string text = print(kernel);
  INFO(text);
  GirKernel twin = kernelFrom(text);
  CHECK(print(twin) == text);
  CHECK(sameKernel(kernel, twin));
  canonicalise(twin);
  CHECK(sameKernel(kernel, twin));
  CHECK(text.find("let t1 = mul(t0, t0);") != std::string::npos);
}

TEST_CASE("a kernel keeps what its variant knows of symbols") {
  std::string text = kElementwise;
  text.replace(text.find("1..4096"), 7, "8..64");
  GirKernel kernel = kernelFrom(text);
  CHECK(kernel.symbols[0].max == 64);
  CHECK(print(kernel) == text);
}

TEST_CASE("the verifier names the rule that is broken") {
  auto with = [](std::string text, const std::string &from, const std::string &to) {
    REQUIRE(text.find(from) != std::string::npos);
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK(firstError(with(kElementwise, "lanes 8", "lanes 4")) ==
        "a Lane loop runs over the kernel's lanes; loop 'l'");
  CHECK(firstError(with(kElementwise, "lanes 8", "lanes 2048")) ==
        "units and lanes are at most 1024");
  CHECK(firstError(with(kStagedMatmul, "unroll i in 8", "unroll i in 1099511627776")) ==
        "Unroll loops make at most 65536 copies; loop 'i'");
  CHECK(firstError(with(kElementwise, "param out", "param")) ==
        "a Global buffer that is stored to is marked as written; %y");
  CHECK(firstError(with(kElementwise, "%x[b*8 + l]", "%x[b, l]")) ==
        "a read has one index a dimension; node 7 (read) of %x");
  CHECK(firstError(with(kRowSum, "lanereduce sum %acc[]", "sync block")) ==
        "a Unit loop contains no Sync of Block scope");
  CHECK(firstError(with(kRowSum, "lanereduce sum %acc[]", "exchange %acc[] xor 4")).empty());
  CHECK(firstError(with(kRowSum, "lanereduce sum %acc[]", "exchange %acc[] xor 3")) ==
        "Exchange has a power of two below the lanes as its distance");
  CHECK(firstError(with(kRowSum, "lanereduce sum %acc[]", "exchange %acc[] xor 32")) ==
        "Exchange has a power of two below the lanes as its distance");
  CHECK(firstError(with(kRowSum, "register %acc", "register uniform %acc")) ==
        "a uniform register is written outside Lane loops; %acc");
  CHECK(firstError(with(kRowSum, "sum= %x", "argmax= %x")) ==
        "monoids over (value, index), and no others, have an index buffer; argmax");
  CHECK(firstError(with(kRowSum, "seq c in 4", "unroll c in %acc[]")) ==
        "expected a value of type i64, this one is f32");
  CHECK(firstError(with(kRowSum, "lane l in 32", "lane b in 32")) ==
        "a loop around this one is named 'b' too");
  for (const char *align : {"64", "192", "2048", "0"})
    CHECK(firstError(with(kStagedMatmul, "%as f32[32,16]",
                          std::string("%as f32[32,16] align ") + align)) ==
          std::string("an alignment is a power of two from 128 to 1024; %as has ") + align);
  CHECK(firstError(with(kRowSum, "%acc f32[]", "%acc f32[] align 256")) ==
        "only Shared buffers have an alignment; %acc");
  CHECK(firstError(with(with(kStagedMatmul, "lanes 32", "lanes 32 shared 4096"), "%as f32[32,16]",
                        "%as f32[32,16] align 1024 at 512")) ==
        "a buffer with an alignment lies at a multiple of it; %as");
}

TEST_CASE("text of a program is reproduced by print") {
  std::string kernel = kElementwise;
  std::string text = "program demo target \"x86-64-v3\"\n"
                     "symbol n = 1..4096 opt 100 divisor 1\n"
                     "input %x f32[n]\n"
                     "constant %w f32[2] {1.0, 0.5}\n"
                     "input %c bool[]\n"
                     "temp %t f32[n]\n"
                     "output %y f32[n]\n"
                     "inputs (%x, %c)\n"
                     "outputs (%y)\n" +
                     kernel +
                     "step first launch {\n"
                     "  when (n - 16 >= 0) (n % 8 == 0) @relu(%x, %t)\n"
                     "  else @relu(%x, %t)\n"
                     "}\n"
                     "step \"if 1\" if %c {\n"
                     "  step then launch {\n"
                     "    else @relu(%t, %y)\n"
                     "  }\n"
                     "} else {\n"
                     "} copies (%t -> %y)\n"
                     "step \"n = 1\" where (n*-1 + 1 >= 0) {\n"
                     "  step one launch {\n"
                     "    else @relu(%x, %t)\n"
                     "  }\n"
                     "} else {\n"
                     "}\n"
                     "step again loop condition %c before (%x -> %t) {\n"
                     "} after (%t -> %y)\n";
  ConstantStore store;
  TextReader in(text, "test");
  auto program = parseGirProgram(in, store);
  if (!program.ok())
    FAIL(format(program.errors().front()));
  CHECK(print(*program, &store) == text);

  std::string wrong = text;
  wrong.replace(wrong.find("@relu(%x, %t)"), 13, "@relu(%t, %x)");
  TextReader again(wrong, "test");
  auto refused = parseGirProgram(again, store);
  REQUIRE(!refused.ok());
  CHECK(refused.errors().front().text == "kernels write temps and outputs; first: @relu %y = %x");
}
