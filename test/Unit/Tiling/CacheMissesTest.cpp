// What a CPU's caches are said to fetch, against footprints counted by hand: bytes that a block's tile of a tensor
// spans, in lines of 64.
#include "Tiling/counts/CacheMisses.h"
#include "EditedSchedule.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/verify/Verify.h"

using namespace fusec;
using namespace fusec::test;

namespace {

constexpr double kLine = 64;

/// What blocks fetch into a first cache of so many bytes, which has room for one of them.
tiling::MissedBytes missed(const ExprProgram &pattern, const std::string &text, double capacity) {
  Target target = targetNamed("x86-64-v3");
  target.memory[0].capacityBytes = static_cast<int64_t>(capacity);
  const Schedule schedule = scheduleFrom(text, pattern);
  require(verify(schedule, pattern, target));
  const tiling::BoundSchedule bound(schedule, pattern);
  return tiling::missedBytes(bound, tiling::storageOf(bound), target, 1)[0];
}

double fetched(const ExprProgram &pattern, const std::string &text, double capacity) {
  return missed(pattern, text, capacity).all;
}

/// Of y [i:1024], in blocks of `tile`: sums over k:3 of `read` of x [4096] times w [k].
double windows(const std::string &read, int tile, double ofBlock) {
  INFO(read << ", " << tile << " a block");
  const ExprProgram pattern =
      patternFrom(ProgramText("windows", {})
                      .input("x", "4096")
                      .input("w", "3")
                      .reduction("y", "i:1024; k:3", "sum", "mul(%x[" + read + "], %w[k])"));
  const double result = std::max(kLine, tile * 4.0), weights = 3 * 4;
  const double all = fetched(pattern,
                             R"(schedule s units 1 lanes 8 {
  axis i spatial (0) of e0
  axis k reduction (1) of e0
  tree { block i:)" + std::to_string(tile) +
                                 R"( {
    seq i:8 { lane i:1 { init e0 } seq k:1 { lane i:1 { compute e0 } } lane i:1 { store e0 } } } }
}
)",
                             ofBlock + result + weights);
  return (all - weights) / (1024.0 / tile) - result;
}

/// Of y [i, j] made of r [i, j]: a block makes its part of r, then of y.
std::string pairInBlocksOf(const std::string &part) {
  return R"(schedule s units 1 lanes 8 {
  axis i spatial (0) of e0, e1
  axis j spatial (1) of e0, e1
  edge r shared
  tree { block )" +
         part + R"( {
    seq i:1 { seq j:8 { lane j:1 { compute e0 } } }
    seq i:1 { seq j:8 { lane j:1 { compute e1 } } } } }
}
)";
}

void checkWindows(const std::string &read, int tile, double bytes) {
  CHECK(windows(read, tile, bytes) == bytes);
}

} // namespace

TEST_CASE("a dilated window brings what lies between its taps, where lines or other windows do") {
  checkWindows("i + k", 64, (64 + 2) * 4);
  checkWindows("i + k*4", 64, (64 + 8) * 4);
  checkWindows("i + k*12", 8, (8 + 24) * 4); // 16 bytes between two taps: of one line
  checkWindows("i + k*128", 8, 3 * kLine);   // three rows
  checkWindows("i + k*128", 64, 3 * 64 * 4);
  checkWindows("i*2 + k*3", 8, (7 * 2 + 2 * 3 + 1) * 4);
}

TEST_CASE("a strided read brings its gaps up to a line, beyond that a line for each element") {
  checkWindows("i*2", 64, (63 * 2 + 1) * 4);
  checkWindows("i*2 + k", 64, (63 * 2 + 3) * 4);
  checkWindows("i*3 + k", 64, (63 * 3 + 3) * 4);
}

TEST_CASE("a tensor that is read backwards is fetched as one that is read forwards") {
  checkWindows("i*-1 + 4095", 64, 64 * 4);
  checkWindows("i*-1 + k*-4 + 4095", 64, (64 + 8) * 4);
  checkWindows("i*-2 + k + 4000", 64, (63 * 2 + 3) * 4);
}

TEST_CASE("axes that a schedule fuses are fetched as far as its tile goes along each") {
  const ExprProgram scaled = patternFrom(ProgramText("scaled", {})
                                             .input("x", "64,16")
                                             .input("c", "16")
                                             .map("y", "i:64, j:16", "mul(%x[i, j], %c[j])"));
  const std::string text = R"(schedule s units 1 lanes 8 {
  axis m spatial (0, 1) of e0
  tree { block m:24 { seq m:8 { lane m:1 { compute e0 } } } }
}
)";
  // A row and a half of %x and of %y, all of %c; of 1024 elements.
  const double all = 24 * 4 + 24 * 4 + 16 * 4;
  CHECK(fetched(scaled, text, all) == 43 * all);

  const ExprProgram sums =
      patternFrom(ProgramText("sums", {})
                      .input("w", "16,256")
                      .input("c", "4")
                      .reduction("y", "b:16, h:4; k:256", "sum", "mul(%w[b, k], %c[h])"));
  const std::string rows = R"(schedule s units 1 lanes 8 {
  axis m spatial (0, 1) of e0
  axis k reduction (2) of e0
  tree { block m:8 { seq m:1 {
    lane k:32 { init e0 } seq k:8 { lane k:1 { compute e0 } } combine e0 store e0 } } }
}
)";
  // Of eight (b, h): two rows of %w, 16 bytes of %c, a line of %y.
  const double block = 2 * 256 * 4 + 4 * 4 + kLine;
  CHECK(fetched(sums, rows, block) == 8 * block);
}

TEST_CASE(
    "turns along rows read each line once, where the lines of a turn have room in their sets") {
  for (const int rows : {4, 16}) {
    const std::string m = std::to_string(rows);
    const ExprProgram product = patternFrom(
        ProgramText("product", {})
            .input("a", m + ",256")
            .input("b", "256,8")
            .reduction("c", "i:" + m + ", j:8; k:256", "sum", "mul(%a[i, k], %b[k, j])"));
    const std::string text = R"(schedule s units 1 lanes 8 {
  axis i spatial (0) of e0
  axis j spatial (1) of e0
  axis k reduction (2) of e0
  tree { block i:ROWS {
    unroll i:1 { lane j:1 { init e0 } }
    seq k:1 { unroll i:1 { lane j:1 { compute e0 } } }
    unroll i:1 { lane j:1 { store e0 } } } }
}
)";
    std::string all = text;
    all.replace(all.find("ROWS"), 4, m);
    // Rows of 1024 bytes lead to one set of such a cache, of 8 lines.
    const double a = rows == 4 ? rows * 1024 : rows * 256 * kLine, b = 256 * 8 * 4,
                 c = rows * 8 * 4;
    INFO(m << " rows");
    CHECK(fetched(product, all, 2048) == a + b + c);
  }
}

TEST_CASE("what crowds into few sets of a cache is fetched again, as if the cache were too small") {
  for (const int terms : {64, 128}) {
    const std::string k = std::to_string(terms);
    const ExprProgram product =
        patternFrom(ProgramText("product", {})
                        .input("a", "64," + k)
                        .input("b", k + ",1024")
                        .reduction("c", "i:64, j:1024; k:" + k, "sum", "mul(%a[i, k], %b[k, j])"));
    const double fetches = fetched(product,
                                   R"(schedule s units 1 lanes 8 {
  axis i spatial (0) of e0
  axis j spatial (1) of e0
  axis k reduction (2) of e0
  tree { block j:16 { seq i:4 {
    unroll i:1 { unroll j:8 { lane j:1 { init e0 } } }
    seq k:1 { unroll i:1 { unroll j:8 { lane j:1 { compute e0 } } } }
    unroll i:1 { unroll j:8 { lane j:1 { store e0 } } } } } }
}
)",
                                   256 << 10);
    // A way of 32 KiB has room for eight rows 4096 bytes apart, all eight for 64: a panel's lines stay from rows to
    // rows of results or leave before they are read again. Everything together would fit.
    const double a = 64.0 * terms * 4, panel = terms * kLine, c = 64 * kLine;
    CHECK(fetches == a + 64 * ((terms == 64 ? 1 : 16) * panel + c));
  }
}

TEST_CASE("a block's own buffer does not crowd, whatever the rows of its tensor do") {
  const ExprProgram pattern = patternFrom(ProgramText("pair", {})
                                              .input("x", "128,1024")
                                              .map("r", "i:128, j:1024", "max(%x[i, j], 0.0)")
                                              .map("y", "i:128, j:1024", "neg(%r[i, j])"));
  const double fetches = fetched(pattern, pairInBlocksOf("j:16"), 256 << 10);
  const double tile = 128 * kLine; // of each tensor; that of %r takes the place of the one before
  CHECK(fetches == 64 * 2 * tile + tile);
}

TEST_CASE("a block's own buffer counts as long as its rows are, not as long as they may be") {
  const std::string rows = "i:128, j:n";
  const ExprProgram pattern =
      patternFrom(ProgramText("pair", "symbol n = 1..512 opt 384 divisor 1\n")
                      .input("x", "128,n")
                      .map("r", rows, "max(%x[i, j], 0.0)")
                      .map("y", rows, "neg(%r[i, j])"));
  const std::string text = pairInBlocksOf("i:16");
  const double tile = 16 * 384 * 4; // of each tensor; that of %r takes the place of the one before
  CHECK(fetched(pattern, text, 3 * tile) == 8 * 2 * tile + tile);
  const Schedule schedule = scheduleFrom(text, pattern);
  CHECK(tiling::storageOf({schedule, pattern}).sharedBytes == 16 * 512 * 4); // room for the longest
}

TEST_CASE("rows of a result that are shorter than a line lie side by side") {
  for (const int columns : {4, 1}) {
    const std::string n = std::to_string(columns);
    const ExprProgram pattern = patternFrom(
        ProgramText("narrow", {}).input("x", "1024").map("y", "i:1024, j:" + n, "neg(%x[i])"));
    const std::string loop = columns == 1 ? "" : "seq j:1 {", end = columns == 1 ? "" : "}";
    const std::string text = "schedule s units 1 lanes 8 {\n  axis i spatial (0) of e0\n" +
                             std::string(columns == 1 ? "" : "  axis j spatial (1) of e0\n") +
                             "  tree { block i:64 { seq i:8 { " + loop +
                             " lane i:1 { compute e0 } " + end + " } } }\n}\n";
    INFO(text);
    const double block = 64 * 4 + 64 * 4 * columns;
    CHECK(fetched(pattern, text, block) == 16 * block);
  }
}

namespace {

/// y [i:32, c:columns], sums over k:3 of a padded x [32,64], of which a block copies ten rows, times `factor`.
std::string padded(int columns, const std::string &column, const std::string &factor) {
  return ProgramText("padded", {})
      .input("x", "32,64")
      .input("w", "3,64")
      .reduction("y", "i:32, c:" + std::to_string(columns) + "; k:3", "sum",
                 "mul(if(and(le(0, i + k - 1), le(i + k - 1, 31)), %x[i + k - 1, " + column +
                     "], 0.0), " + factor + ")");
}
const std::string kBoxes = R"(schedule s units 1 lanes 8 {
  axis i spatial (0) of e0
  axis c spatial (1) of e0
  axis k reduction (2) of e0
  operand xs e0.r0 shared ([0], [1])
  tree { block i:8 {
    stage xs
    seq c:16 { seq i:1 { unroll c:8 {
      lane c:1 { init e0 } } seq k:1 { unroll c:8 { lane c:1 { compute e0 } } } unroll c:8 {
      lane c:1 { store e0 } } } } } }
}
)";

} // namespace

TEST_CASE("a block's box is fetched once, and of a slice of it the rows' parts") {
  const ExprProgram pattern = patternFrom(padded(64, "c", "%w[k, c]"));
  const double box = 10 * 64 * 4, weights = 3 * 64 * 4, result = 8 * 64 * 4;
  // Blocks write one box over and over; the weights stay.
  CHECK(fetched(pattern, kBoxes, box + box + weights + result) ==
        4 * (box + result) + weights + box);
  // Of 16 columns a line of each row, behind what the statement that stages all 64 has left in the cache.
  const double slice = 10 * kLine + 3 * kLine + 8 * kLine;
  CHECK(fetched(pattern, kBoxes, slice) == 4 * (box + box + 4 * slice));
}

TEST_CASE("staged is what copies alone read") {
  auto staged = [](const std::string &program, const std::string &text) {
    const ExprProgram pattern = patternFrom(program);
    const Schedule schedule = scheduleFrom(text, pattern);
    require(verify(schedule, pattern, targetNamed("x86-64-v3")));
    const double bytes = tiling::stagedBytes({schedule, pattern}, compulsoryTraffic(pattern));
    CHECK(countWork({schedule, pattern}, targetNamed("x86-64-v3")).front().stagedBytes == bytes);
    return bytes;
  };
  const double rows = 32 * 64 * 4;
  CHECK(staged(padded(64, "c", "%w[k, c]"), kBoxes) == rows);
  CHECK(staged(padded(16, "c + 32", "%w[k, c]"), kBoxes) == rows / 4);
  // The sums read it themselves too.
  const std::string twice = padded(64, "c", "%x[i, c]");
  CHECK(staged(twice, kBoxes) == 0);
  std::string both = kBoxes;
  both.replace(both.find("  tree"), 6, "  operand xt e0.r1 shared ([0], [1])\n  tree");
  both.replace(both.find("stage xs"), 8, "stage xs stage xt");
  CHECK(staged(twice, both) == rows);
}

TEST_CASE("what products read is told from what they make") {
  const ExprProgram pattern =
      patternFrom(ProgramText("product", {})
                      .input("a", "256,4")
                      .input("b", "4,256")
                      .reduction("c", "i:256, j:256; k:4", "sum", "mul(%a[i, k], %b[k, j])"));
  const tiling::MissedBytes bytes = missed(pattern,
                                           R"(schedule s units 1 lanes 8 {
  axis i spatial (0) of e0
  axis j spatial (1) of e0
  axis k reduction (2) of e0
  tree { block i:8 { seq j:8 { seq i:1 {
    lane j:1 { init e0 } seq k:1 { lane j:1 { compute e0 } } lane j:1 { store e0 } } } } }
}
)",
                                           16 << 10);
  CHECK(bytes.all - bytes.awaited == 256 * 256 * 4);
  CHECK(bytes.awaited >= 2 * 256 * 4 * 4);
}
