// All ways to find the first elements are right on every target and type, the choice follows k, and neither is
// quadratic in the length of the row.
#include "Candidates.h"

#include "Gir/Walk.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/PointEvaluator.h"
#include "Tiling/search/SizeVariants.h"

#include <limits>

using namespace fusec;
using namespace fusec::test;

namespace {

std::string topKText(DType type, const std::string &rows, int64_t k, const std::string &length,
                     bool largest, const std::string &symbols = "") {
  std::string t(name(type)), r = rows.empty() ? "" : rows + ",", ks = std::to_string(k);
  return "expr topk\n" + symbols + "tensor %x: " + t + "[" + r + length +
         "] input\ntensor %v: " + t + "[" + r + ks + "] output\ntensor %i: i64[" + r + ks +
         "] output\ninputs (%x)\noutputs (%v, %i)\nopaque top [" +
         (rows.empty() ? "" : "r:" + rows + ", ") + "p:" + ks + "; j:" + length +
         "] topk {largest = " + (largest ? "1" : "0") + "} (%x) -> (%v, %i)\n";
}

const Schedule &named(const std::vector<Schedule> &candidates, const std::string &suffix) {
  for (const Schedule &s : candidates)
    if (s.name == suffix)
      return s;
  FAIL("no candidate is called " + suffix);
  return candidates[0];
}

/// What sizes alone make of a node; nullopt where loops or data have a part in it.
std::optional<int64_t> bySizes(const GirKernel &kernel, NodeId id,
                               const std::vector<int64_t> &sizes) {
  for (NodeId part : kernel.body.reachable({id}))
    if (kernel.body[part].op == ScalarOp::Axis)
      return std::nullopt;
  if (tiling::readsData(kernel.body, {id}))
    return std::nullopt;
  tiling::PointEvaluator values(kernel.body, {id}, 1, sizes);
  REQUIRE(values.at({}, 0));
  return values[id];
}

/// Scalar operations and memory accesses of a kernel for one block of one row, an If counted as taken where sizes do
/// not decide it: what each lane does, times the lanes.
double work(const GirKernel &kernel, const std::vector<Stmt> &stmts, double times,
            const std::vector<int64_t> &sizes = {}) {
  double sum = 0;
  for (const Stmt &s : stmts) {
    double inner = times;
    if (s.kind == StmtKind::Loop)
      inner *= static_cast<double>(bySizes(kernel, s.trip, sizes).value());
    if (s.kind == StmtKind::If && bySizes(kernel, s.predicate, sizes) == 0)
      continue;
    for (NodeId id : kernel.body.reachable(exprRoots(s)))
      if (kernel.body[id].op != ScalarOp::Const && kernel.body[id].op != ScalarOp::Axis)
        sum += times;
    sum += work(kernel, s.body, inner, sizes) + work(kernel, s.elseBody, inner, sizes);
  }
  return sum;
}

} // namespace

TEST_CASE("topk: every schedule, type and order") {
  std::mt19937 random(1);
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::U8,
                     DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64})
    for (bool largest : {true, false}) {
      ExprProgram pattern = patternFrom(topKText(type, "3", 5, "37", largest));
      TensorValue x = randomTensor(random, type, {3, 37});
      if (isFloat(type)) {
        x.floats[0] = x.floats[1] = x.floats[7] = x.floats[40] = NAN;
        x.floats[2] = INFINITY;
        x.floats[3] = -INFINITY;
        for (size_t i = 2 * 37; i < 3 * 37; ++i) // both zeros are equal
          x.floats[i] = i % 3 == 0 ? 0.0 : -0.0;
      } else { // the ends of the type's range
        int bits = static_cast<int>(sizeInBytes(type) * 8);
        x.ints[1] = x.ints[9] = wrapToDType(type, isSigned(type) ? int64_t{1} << (bits - 1) : 0);
        x.ints[2] = x.ints[8] =
            wrapToDType(type, isSigned(type) ? ~(int64_t{1} << (bits - 1)) : -1);
      }
      INFO(name(type) << (largest ? ", largest" : ", smallest"));
      checkCandidates(pattern, {x}, {}, 0);
    }
}

TEST_CASE("topk: rows and lengths that divide nothing, one row, all elements, one element, none") {
  std::mt19937 random(2);
  struct Case {
    std::string rows;
    int64_t k, length;
  };
  for (const Case &c : {Case{"9", 3, 64}, Case{"2", 100, 100}, Case{"", 17, 33}, Case{"", 1, 1},
                        Case{"3,5", 2, 7}, Case{"1", 300, 513}, Case{"4", 0, 6}})
    for (bool largest : {true, false}) {
      std::string rows = c.rows;
      std::vector<int64_t> dims;
      std::string text = topKText(DType::F32, rows, c.k, std::to_string(c.length), largest);
      if (rows == "3,5") {
        text.replace(text.find("r:3,5"), 5, "r:3, q:5");
        dims = {3, 5};
      } else if (!rows.empty()) {
        dims = {std::stoll(rows)};
      }
      dims.push_back(c.length);
      INFO(text);
      checkCandidates(patternFrom(text), {randomTensor(random, DType::F32, dims)}, {}, 0);
    }
}

TEST_CASE("topk: symbolic rows and lengths") {
  std::mt19937 random(3);
  std::string symbols = "symbol b = 1..64 opt 8 divisor 1\nsymbol n = 4..100 opt 50 divisor 1\n";
  ExprProgram pattern = patternFrom(topKText(DType::F32, "b", 4, "n", true, symbols));
  for (auto [rows, length] : {std::pair<int64_t, int64_t>{1, 4}, {5, 31}, {9, 100}})
    checkCandidates(pattern, {randomTensor(random, DType::F32, {rows, length})}, {rows, length}, 0);

  // Without a bound on the length no memory for a sort can be set aside.
  symbols.replace(symbols.find("4..100"), 6, "4..9223372036854775807");
  pattern = patternFrom(topKText(DType::F32, "b", 4, "n", true, symbols));
  for (const Schedule &s : valueOf(candidateSchedules(pattern, targetNamed("x86-64-v3"))))
    CHECK((s.name != "sort" && s.name != "select-tiles"));
  checkCandidates(pattern, {randomTensor(random, DType::F32, {3, 41})}, {3, 41}, 0, 1);
}

TEST_CASE("topk: rows of any length up to one that a block holds") {
  std::mt19937 random(5);
  const std::string symbols = "symbol n = 4..600 opt 200 divisor 1\n";
  const ExprProgram pattern = patternFrom(topKText(DType::F32, "2", 4, "n", false, symbols));
  for (int64_t length : {4, 5, 32, 33, 64, 300, 512, 513, 600})
    checkCandidates(pattern, {randomTensor(random, DType::F32, {2, length})}, {length}, 0);
}

TEST_CASE("topk: the first elements of longer rows") {
  std::mt19937 random(6);
  std::string text = topKText(DType::F32, "3", 5, "25", true);
  text.replace(text.find("f32[3,25] input"), 9, "f32[3,40]");
  checkCandidates(patternFrom(text), {randomTensor(random, DType::F32, {3, 40})}, {}, 0);

  const std::string symbols = "symbol n = 4..9223372036854775807 opt 50 divisor 1\n";
  text = topKText(DType::F32, "3", 4, "min(n, 64)", true, symbols);
  text.replace(text.find("f32[3,min(n, 64)] input"), 17, "f32[3,n]");
  const ExprProgram pattern = patternFrom(text);
  bool sorts = false;
  for (const Schedule &s : valueOf(candidateSchedules(pattern, targetNamed("x86-64-v3"))))
    sorts = sorts || s.name == "sort";
  CHECK(sorts);
  for (int64_t length : {4, 63, 64, 100})
    checkCandidates(pattern, {randomTensor(random, DType::F32, {3, length})}, {length}, 0);
}

TEST_CASE("topk: a sort does the work of the row's own length, and is counted so") {
  const std::string symbols = "symbol n = 4..4096 opt 1000 divisor 1\n";
  const ExprProgram pattern = patternFrom(topKText(DType::F32, "", 4, "n", true, symbols));
  for (const char *name : {"x86-64-v3", "x86-64-v4", "sm_90", "gfx90a"}) {
    const Target target = targetNamed(name);
    const Schedule sort = named(valueOf(candidateSchedules(pattern, target)), "sort");
    const GirKernel kernel = kernelOf(pattern, sort).kernel;
    auto workAt = [&](int64_t n) { return work(kernel, kernel.phases[0].body, 1, {n}); };
    auto countedAt = [&](int64_t n) {
      return countWork({sort, tunedFor(pattern, {n})}, target).front().vectorOps;
    };
    INFO(name);
    // n log^2 n: 4096 * 12 * 13 beside 128 * 7 * 8, or as many as all threads have at once.
    CHECK(workAt(128) < workAt(4096) / (sort.units > 1 ? 8 : 60));
    for (int64_t n : {4, 100, 128, 129, 1000, 2048, 3000}) {
      INFO(n);
      const double share = workAt(n) / workAt(4096), counted = countedAt(n) / countedAt(4096);
      CHECK(counted < 1.1 * share + 0.01);
      CHECK(counted > 0.9 * share - 0.01);
    }
  }
}

TEST_CASE("topk: an output that nobody reads takes no memory") {
  std::mt19937 random(4);
  std::string text = topKText(DType::F32, "3", 5, "40", true);
  text.replace(text.find("[3,5] output"), 12, "[3,5] temp");
  text.replace(text.find("outputs (%v, %i)"), 16, "outputs (%i)");
  ExprProgram pattern = patternFrom(text);
  for (const Schedule &s : valueOf(candidateSchedules(pattern, targetNamed("sim:sm_90"))))
    CHECK(kernelOf(pattern, s).params.size() == 2);
  checkCandidates(pattern, {randomTensor(random, DType::F32, {3, 40})}, {}, 0);
}

TEST_CASE("topk: few elements are selected, many are sorted") {
  for (const char *target : {"x86-64-v3", "sm_90", "gfx90a"}) {
    auto chosen = [&](int64_t k) {
      ExprProgram pattern = patternFrom(topKText(DType::F32, "64", k, "1024", true));
      return valueOf(bestSchedules(pattern, targetNamed(target))).back().schedule.name;
    };
    INFO(target);
    CHECK(chosen(1).substr(0, 6) == "select");
    CHECK(chosen(1000) == "sort");
  }
}

TEST_CASE("topk: work grows with n k or n log^2 n, not with n^2") {
  auto workOf = [](const std::string &schedule, int64_t k, int64_t length) {
    ExprProgram pattern = patternFrom(topKText(DType::F32, "", k, std::to_string(length), true));
    Target target = targetNamed("x86-64-v3");
    GirKernel kernel =
        kernelOf(pattern, named(valueOf(candidateSchedules(pattern, target)), schedule)).kernel;
    return work(kernel, kernel.phases[0].body, 1);
  };
  // Counting ranks takes at least one comparison for each pair of elements.
  double pairs = 1024.0 * 1024;
  CHECK(workOf("select", 5, 1024) < pairs / 4);
  CHECK(workOf("select", 5, 2048) < 2.1 * workOf("select", 5, 1024));
  CHECK(workOf("select", 10, 1024) < 2.1 * workOf("select", 5, 1024));
  // Each place takes the first of all tiles and the elements of one of them.
  CHECK(workOf("select-tiles", 100, 1024) < workOf("select", 100, 1024) / 4);
  CHECK(workOf("select-tiles", 100, 4096) < 2.5 * workOf("select-tiles", 100, 1024));
  // log^2 grows from 10*11 to 12*13 while n grows fourfold.
  double sort = workOf("sort", 5, 1024);
  CHECK(workOf("sort", 5, 4096) < 4 * 1.5 * sort);
  CHECK(workOf("sort", 500, 1024) < 1.2 * sort);
}

TEST_CASE("topk: a schedule that breaks a rule is refused") {
  ExprProgram pattern = patternFrom(topKText(DType::F32, "3", 5, "40", true));
  std::vector<Schedule> candidates = valueOf(candidateSchedules(pattern, targetNamed("x86-64-v3")));
  auto refusal = [&](const std::string &schedule, const std::string &from, const std::string &to) {
    std::string text = print(named(candidates, schedule), pattern);
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    TextReader in(text, "edited");
    Status status = verify(valueOf(parseSchedule(in, pattern)), pattern);
    return status.ok() ? std::string() : format(status.errors().front());
  };
  auto breaks = [](const std::string &text, const std::string &rule) {
    INFO(text);
    CHECK(text.find("broken rule: e0 " + rule) != std::string::npos);
  };
  breaks(refusal("select", "combine e0", ""),
         "is found by init, compute, combine and store, or by sort or select and store, given "
         "init e0, compute e0, store e0");
  breaks(refusal("sort", "store e0", ""),
         "is found by init, compute, combine and store, or by sort or select and store, given "
         "sort e0");
  breaks(refusal("select-tiles", "units 1", "units 2"), "is selected by one unit, given 2");
  breaks(refusal("select-tiles", "seq row:1", "seq place:1"),
         "is selected inside loops over rows alone, given seq place:1");
  breaks(refusal("select", "seq place:1", "unroll place:1"),
         "finds its places one after another, in seq loops, given unroll place:1");
  breaks(refusal("select", "seq place:1", "seq place:2"),
         "finds every place, the innermost loop with step 1, given seq place:2");
  breaks(refusal("sort", "units 1", "units 3"), "is sorted by a power of two of threads, given 24");
  breaks(refusal("sort", "seq row:1", "seq row:2"),
         "is found in every row of axis row, the innermost loop with step 1, given seq row:2");
  breaks(refusal("sort", "seq row:1", "unroll row:1"),
         "has its rows in block and seq loops and, where it is computed, unit loops, given unroll "
         "row:1");
  breaks(refusal("sort", "seq row:1", "seq place:1"),
         "is sorted inside loops over rows alone, given seq place:1");
  breaks(refusal("select", "lane j:1", "lane place:1"),
         "searches one row in a pass, given lane place:1");
  CHECK(
      refusal("sort", "  axis place spatial (1) of e0 # extent 5\n", "")
          .find(
              "broken rule: axis 1 of e0, extent 5, stands in one axis of the schedule, given 0") !=
      std::string::npos);
}
