// The inner loops of register tiles are what one would write by hand: all products as fma, no spills, no other work.
#include "Harness.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <regex>

using namespace fusec;
using namespace fusec::test;

namespace {

/// c[rows, columns * lanes] = a^T b with packed operands, the tile in registers; `named`: "kernel" and the micro-kernel
/// that makes it, or nothing.
struct Types {
  const char *a, *b, *c, *zero, *product;
};
constexpr Types kFloats = {"f32", "f32", "f32", "0.0", "mul(%a[k, i], %b[k, j*LANES + l])"};
constexpr Types kBytes = {"u8", "i8", "i32", "0",
                          "mul(cast(i32, %a[k, i]), cast(i32, %b[k, j*LANES + l]))"};

std::string tile(const Types &types, int rows, int columns, int lanes,
                 const std::string &named = "") {
  std::string text = R"(kernel @tile units 1 lanes LANES {
  symbol n = 1..4096 opt 100 divisor 1
  param %a TYPEA[n,ROWS]
  param %b TYPEB[n,WIDTH]
  param out %c TYPEC[ROWS,WIDTH]
  register %acc TYPEC[ROWS,COLS]
  phase () {
    unroll i in ROWS {
      unroll j in COLS {
        lane l in LANES {
          %acc[i, j] = ZERO
        }
      }
    }
    seq k in dim(n) {
      unroll i in ROWS NAMED {
        unroll j in COLS {
          lane l in LANES {
            %acc[i, j] sum= PRODUCT
          }
        }
      }
    }
    unroll i in ROWS {
      unroll j in COLS {
        lane l in LANES {
          %c[i, j*LANES + l] = %acc[i, j]
        }
      }
    }
  }
}
)";
  for (auto [word, told] : {std::pair{"TYPEA", types.a},
                            {"TYPEB", types.b},
                            {"TYPEC", types.c},
                            {"ZERO", types.zero},
                            {"PRODUCT", types.product},
                            {"NAMED", named.c_str()}})
    text = std::regex_replace(text, std::regex(word), told);
  for (auto [word, number] :
       {std::pair{"ROWS", rows}, {"COLS", columns}, {"LANES", lanes}, {"WIDTH", columns * lanes}})
    text = std::regex_replace(text, std::regex(word), std::to_string(number));
  return text;
}

/// Instructions of the innermost loop that has the most of these.
std::vector<std::string> hotLoop(const std::vector<Instruction> &code, const char *counted) {
  const std::regex jump(R"(j\w+\s+0x([0-9a-f]+).*)");
  std::smatch m;
  std::vector<std::string> best;
  long most = 0;
  for (size_t end = 0; end < code.size(); ++end)
    if (std::regex_match(code[end].text, m, jump)) {
      uint64_t to = std::stoull(m[1], nullptr, 16);
      std::vector<std::string> loop;
      for (size_t i = 0; i <= end; ++i)
        if (to <= code[i].address)
          loop.push_back(code[i].text);
      long count =
          std::count_if(loop.begin(), loop.end(), [&](auto &s) { return s.starts_with(counted); });
      if (to < code[end].address && count > most && loop.size() < 110)
        most = count, best = loop;
    }
  return best;
}

} // namespace

TEST_CASE("register tiles compile to loops of fma without spills", "[codegen]") {
  struct Case {
    const char *target, *kernel;
    int rows, columns, lanes;
  };
  for (Case c :
       {Case{"x86-64-v3", "avx2.f32", 6, 2, 8}, Case{"x86-64-v3", "avx2.f32", 4, 3, 8},
        Case{"x86-64-v4", "avx512.f32", 8, 3, 16}, Case{"x86-64-v4", "avx512.f32", 14, 2, 16}})
    for (const std::string &named : {std::string(), std::string("kernel ") + c.kernel}) {
      INFO(c.target << " " << c.rows << " x " << c.columns << " " << named);
      GirKernel kernel =
          kernelFrom(tile(kFloats, c.rows, c.columns, c.lanes, named), {{"n", 1, 100, 4096, 1}});
      auto images = compileKernels({kernel}, targetNamed(c.target), {});
      REQUIRE(images.ok());
      const std::vector<std::string> loop = hotLoop(disassembled(images->front().bytes), "vfmadd");
      auto count = [&](const char *part) {
        return std::count_if(loop.begin(), loop.end(),
                             [&](auto &s) { return s.find(part) != std::string::npos; });
      };
      CHECK(count("vfmadd") == c.rows * c.columns);
      CHECK(count("vbroadcastss") <= c.rows);
      CHECK(count("rsp") == 0);
      CHECK(static_cast<int>(loop.size()) <= c.rows * c.columns + c.rows + c.columns + 5);
    }
}

TEST_CASE("what a micro-kernel makes has the bits of its loops", "[codegen]") {
  constexpr int kRows = 6, kColumns = 2, kTerms = 37;
  for (const auto &[name, lanes] : {std::pair{"x86-64-v3", 8}, {"x86-64-v4", 16}}) {
    Target target = targetNamed(name);
    if (!canRun(target))
      continue;
    target.kernels.push_back(target.kernels.front());
    target.kernels.back().name = "toy"; // a row that the tables have not
    for (const std::string &row : {target.kernels.front().name, target.kernels.back().name}) {
      INFO(row);
      const GirKernel kernel = kernelFrom(tile(kFloats, kRows, kColumns, lanes, "kernel " + row),
                                          {{"n", 1, 100, 4096, 1}});
      const int64_t width = kColumns * lanes;
      std::vector<Bytes> compiled = {randomBytes(DType::F32, kTerms * kRows, 1),
                                     randomBytes(DType::F32, kTerms * width, 2),
                                     randomBytes(DType::F32, kRows * width, 3)};
      std::vector<Bytes> interpreted = compiled;
      runCompiled(kernel, target, compiled, {kTerms});
      runInterpreted(kernel, interpreted, {kTerms});
      CHECK(compiled == interpreted);
    }
  }
}

TEST_CASE("a micro-kernel that the target has not is reported", "[codegen]") {
  const GirKernel kernel =
      kernelFrom(tile(kFloats, 6, 2, 8, "kernel avx512.f32"), {{"n", 1, 100, 4096, 1}});
  const auto images = compileKernels({kernel}, targetNamed("x86-64-v3"), {});
  REQUIRE(!images.ok());
  CHECK(images.errors().front().text == "the micro-kernel 'avx512.f32', which this target has not");
}

TEST_CASE("register tiles of bytes compile to loops of one product and one sum a vector",
          "[codegen]") {
  struct Case {
    const char *target;
    int rows, columns, lanes;
  };
  for (Case c : {Case{"x86-64-v3", 4, 2, 8}, Case{"x86-64-v4", 6, 4, 16}}) {
    INFO(c.target << " " << c.rows << " x " << c.columns);
    GirKernel kernel =
        kernelFrom(tile(kBytes, c.rows, c.columns, c.lanes), {{"n", 1, 100, 4096, 1}});
    auto images = compileKernels({kernel}, targetNamed(c.target), {});
    REQUIRE(images.ok());
    const std::vector<std::string> loop = hotLoop(disassembled(images->front().bytes), "vpmaddwd");
    auto count = [&](const char *part) {
      return std::count_if(loop.begin(), loop.end(),
                           [&](auto &s) { return s.find(part) != std::string::npos; });
    };
    // Widened bytes fit 16 bits: products of such pairs, one of which is zero, take half of what vpmulld does.
    CHECK(count("vpmaddwd") == c.rows * c.columns);
    CHECK(count("vpaddd") == c.rows * c.columns);
    CHECK(count("vpmulld") == 0);
    CHECK(count("vpmovsxbd") == c.columns);
    CHECK(count("rsp") == 0);
  }
}

TEST_CASE("images of CPU kernels import nothing", "[codegen]") {
  // A copy, a fill, roundings and remainders: where a compiler would call memcpy, memset, roundevenf and fmod.
  GirKernel kernel = kernelFrom(R"(kernel @calls units 1 lanes 8 {
    param %x f32[4096]
    param out %y f32[4096]
    param out %z f64[4096]
    phase () {
      seq i in 512 {
        lane l in 8 {
          %y[i*8 + l] = 0.0
          %z[i*8 + l] = 0.0
        }
      }
      seq i in 512 {
        lane l in 8 {
          %y[i*8 + l] = %x[i*8 + l]
        }
      }
      seq i in 512 {
        lane l in 8 {
          %z[i*8 + l] = cast(f64, rem(roundeven(%x[i*8 + l]), cast(f32, cast(f16, fma(%x[i*8 + l], 3.0, 1.0)))))
        }
      }
    }
  })");
  // compileKernels checks each image and fails where there is an import or a relocation.
  requireSameBits(kernel, {randomBytes(DType::F32, 4096, 1), Bytes(4096 * 4), Bytes(4096 * 8)});
}
