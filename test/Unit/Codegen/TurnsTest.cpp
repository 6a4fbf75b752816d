// Lanes that lie apart, stored as columns of what several turns of a loop compute: every element where it belongs.
#include "Harness.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

std::string number(int64_t n) { return std::to_string(n); }

/// y[c, x] = f(x[x, c]) of `turns` columns x and `vectors` times `lanes` rows c, which lie `distance` apart.
std::string turns(const std::string &type, int64_t lanes, int64_t trip, int64_t vectors,
                  const std::string &distance, int64_t most) {
  const int64_t rows = vectors * lanes;
  const std::string lane = "v*" + number(lanes) + " + l";
  return "kernel @turns units 1 lanes " + number(lanes) +
         " {\n  symbol n = 1..4096 opt 8 divisor 1\n  param %x " + type + "[" +
         number(3 * trip * rows) + "]\n  param out %y " + type + "[" + number(3 * most * rows) +
         "]\n  phase (b: 3) {\n    unroll i in " + number(trip) + " {\n      unroll v in " +
         number(vectors) + " {\n        lane l in " + number(lanes) + " {\n          %y[b*" +
         number(most * rows) + " + (" + lane + ")*" + distance + " + i] = %x[b*" +
         number(trip * rows) + " + i*" + number(rows) + " + " + lane +
         "]\n        }\n      }\n    }\n  }\n}\n";
}

} // namespace

TEST_CASE("turns of any type and number are stored where they belong", "[codegen]") {
  struct Form {
    int64_t vectors, gap;
    bool symbolic;
  };
  for (const DType type : {DType::F32, DType::F16, DType::U8, DType::Bool, DType::I64})
    for (const int64_t trip : {2, 3, 7, 8, 16, 19})
      for (const Form &form : {Form{1, 0, false}, Form{3, 5, true}})
        for (const char *named : {"x86-64-v3", "x86-64-v4"}) {
          INFO(name(type) << ' ' << trip << " turns of " << form.vectors << " for " << named);
          const Target target = targetNamed(named);
          const int64_t distance = trip + form.gap, rows = form.vectors * target.lanes;
          const GirKernel kernel =
              kernelFrom(turns(std::string(name(type)), target.lanes, trip, form.vectors,
                               form.symbolic ? "dim(n)" : number(distance), distance),
                         {Symbol{"n", 1, 8, 4096, 1}});
          auto text = emitLlvmText({kernel}, target, false);
          REQUIRE(text.ok());
          CHECK(text->find("scatter") == std::string::npos);
          CHECK(text->find("gather") == std::string::npos);
          if (!canRun(target))
            continue;
          std::vector<Bytes> expected = {randomBytes(type, 3 * trip * rows, 1),
                                         randomBytes(type, 3 * distance * rows, 2)},
                             actual = expected;
          runInterpreted(kernel, expected, {distance});
          runCompiled(kernel, target, actual, {distance});
          const bool same = actual == expected;
          CHECK(same);
        }
}

namespace {

/// Of a matrix x and one that lies as y does, element by element: y[m, n] = f(x[n, m], z[m, n]) with lanes along m, so
/// that it is stored as columns and z read so, or y[n, m] = f(x[m, n], z[n, m]), where x is read as columns. By one
/// test for what is inside, or one for turns and one for lanes.
std::string cutTurns(const std::string &type, int64_t lanes, int64_t trip, bool stored, bool withZ,
                     bool apart) {
  const std::string l = number(lanes), t = number(trip), turn = "q*" + t + " + i",
                    lane = "p*" + l + " + l", byLane = "[" + lane + ", " + turn + "]",
                    byTurn = "[" + turn + ", " + lane + "]", f = type == "bool" ? "or" : "max",
                    x = "%x" + (stored ? byTurn : byLane), y = stored ? byLane : byTurn;
  const std::string store = "%y" + y + " = " + (withZ ? f + "(" + x + ", %z" + y + ")" : x) + "\n",
                    turnIn = "lt(" + turn + ", dim(n))", laneIn = "lt(" + lane + ", dim(m))";
  const std::string body = apart ? "if " + turnIn + " {\nlane l in " + l + " {\nif " + laneIn +
                                       " {\n" + store + "}\n}\n}\n"
                                 : "lane l in " + l + " {\nif and(" + turnIn + ", " + laneIn +
                                       ") {\n" + store + "}\n}\n";
  const std::string wide = stored ? "[n,m]" : "[m,n]", high = stored ? "[m,n]" : "[n,m]";
  return "kernel @cut units 1 lanes " + l + " {\nsymbol n = 1..99 opt 8 divisor 1\n" +
         "symbol m = 1..99 opt 8 divisor 1\nparam %x " + type + wide + "\nparam %z " + type + high +
         "\nparam out %y " + type + high + "\nphase (p: floordiv(m + " + number(lanes - 1) + ", " +
         l + "), q: floordiv(n + " + number(trip - 1) + ", " + t + ")) {\nunroll i in " + t +
         " {\n" + body + "}\n}\n}\n";
}

} // namespace

TEST_CASE("turns at the edges touch what is inside and nothing else", "[codegen]") {
  const std::vector<Symbol> symbols = {Symbol{"n", 1, 8, 99, 1}, Symbol{"m", 1, 8, 99, 1}};
  for (const char *named : {"x86-64-v3", "x86-64-v4"})
    for (const DType type : {DType::F32, DType::F16, DType::U8, DType::Bool, DType::I64})
      for (const bool stored : {false, true})
        for (const int form : {0, 1, 2, 3}) {
          const Target target = targetNamed(named);
          const bool few = form % 2 == 1, withZ = form >= 2;
          const GirKernel kernel =
              kernelFrom(cutTurns(std::string(name(type)), target.lanes, few ? 3 : target.lanes,
                                  stored, withZ || !stored, few == withZ),
                         symbols);
          auto text = emitLlvmText({kernel}, target, false);
          REQUIRE(text.ok());
          CHECK(text->find("scatter") == std::string::npos);
          CHECK(text->find("gather") == std::string::npos);
          if (!canRun(target))
            continue;
          const CompiledKernel compiled(kernel, target);
          for (const auto &[n, m] : {std::pair<int64_t, int64_t>{1, 1},
                                     {2, 17},
                                     {16, 16},
                                     {19, 5},
                                     {33, 70},
                                     {target.lanes - 1, target.lanes + 1}}) {
            INFO(name(type) << " for " << named << ", stored " << stored << ", form " << form
                            << ": " << n << " by " << m);
            const std::vector<Bytes> arguments = {randomBytes(type, n * m, 1),
                                                  randomBytes(type, n * m, 2),
                                                  randomBytes(type, n * m, 3)};
            std::vector<Bytes> expected = arguments;
            runInterpreted(kernel, expected, {n, m});
            for (const bool inFront : {false, true}) {
              std::vector<Bytes> actual = arguments;
              compiled.runAtPages(actual, {n, m}, inFront);
              const bool same = actual == expected;
              CHECK(same);
            }
          }
        }
}

TEST_CASE("reads as columns are in their order beside what else a loop does", "[codegen]") {
  // Reads of what the loop stores or what only a condition allows; sums in registers and in memory.
  for (const char *body :
       {"%y[l*40 + i + 1] = max(%y[l*40 + i], %x[l*40 + i])",
        "%y[i*8 + l] = if(lt(l*40 + i, 30), %x[l*40 + i], 0.5)",
        "%y[i*8 + l] = if(lt(l + i, 9), %x[i], %x[l*40 + i])",
        "if lt(%x[i], 0.0) {\n%y[i*8 + l] = %x[l*40 + i]\n}",
        "if lt(i, 3) {\n%y[i*8 + l] = %x[l*40 + i]\n} else {\n%y[i*8 + l] = %x[l*50 + i]\n}",
        "if lt(i, 3) {\n%y[l*40 + i] = %x[i*8 + l]\n} else {\n%y[l*40 + i] = %x[l*50 + i]\n}",
        "%acc[i] = 0.25\n%acc[i] sum= mul(%x[l*40 + i], %x[l])\n%y[i*8 + l] = %acc[i]",
        "%y[i*8 + l] = max(%x[l*40 + i], %x[l*80 + i])\n%y[i*8 + l] sum= %x[l*90 + i]"}) {
    const std::string text = "kernel @order units 1 lanes 8 {\nparam %x f32[800]\n"
                             "param out %y f32[800]\nregister %acc f32[8]\nphase () {\n"
                             "unroll i in 8 {\nlane l in 8 {\n" +
                             std::string(body) + "\n}\n}\n}\n}\n";
    INFO(text);
    requireSameBits(kernelFrom(text),
                    {randomBytes(DType::F32, 800, 1), randomBytes(DType::F32, 800, 2)});
  }
}

TEST_CASE("a square of vectors takes a load, a store and log2(n) shuffles each", "[codegen]") {
  for (const char *named : {"x86-64-v3", "x86-64-v4"}) {
    INFO(named);
    const Target target = targetNamed(named);
    const int64_t lanes = target.lanes;
    const GirKernel kernel = kernelFrom(turns("f32", lanes, lanes, 1, number(lanes), lanes),
                                        {Symbol{"n", 1, 8, 4096, 1}});
    auto compiled = compileKernels({kernel}, target, {});
    REQUIRE(compiled.ok());
    const int64_t shuffles = lanes * (lanes == 8 ? 3 : 4);
    int64_t vectors = 0, all = 0;
    for (const Instruction &instruction : disassembled(compiled->front().bytes)) {
      ++all;
      vectors += instruction.text.find(lanes == 8 ? "ymm" : "zmm") != std::string::npos;
    }
    CHECK(vectors <= 2 * lanes + shuffles);
    CHECK(all <= 2 * lanes + shuffles + 60); // entry points, addresses
  }
}
