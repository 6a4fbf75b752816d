// Compiled CPU kernels give the interpreter's bits.
#include "Harness.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <cstring>
#include <limits>

using namespace fusec;
using namespace fusec::test;

namespace {

const std::vector<Symbol> kN = {{"n", 1, 100, 4096, 1}};
const char *const kHeadN = "symbol n = 1..4096 opt 100 divisor 1\n";

/// y[i] = f(x[i], z[i]) with ragged edges.
std::string elementwise(const std::string &type, const std::string &result,
                        const std::string &expression) {
  return std::string("kernel @e units 1 lanes 8 {\n") + kHeadN + "param %x " + type +
         "[n]\nparam %z " + type + "[n]\nparam out %y " + result +
         "[n]\nphase (b: floordiv(n + 7, 8)) {\nlane l in 8 {\nif lt(b*8 + l, dim(n)) {\n" +
         "%y[b*8 + l] = " + expression + "\n}\n}\n}\n}\n";
}

DType typeNamed(const std::string &name) { return *parseDType(name); }

void checkElementwise(const std::string &type, const std::string &result,
                      const std::string &expression) {
  INFO(type << " -> " << result << ": " << expression);
  GirKernel kernel = kernelFrom(elementwise(type, result, expression), kN);
  for (int64_t n : {1, 8, 61}) {
    std::vector<Bytes> arguments = {randomBytes(typeNamed(type), n, 1, true),
                                    randomBytes(typeNamed(type), n, 2, true),
                                    Bytes(n * sizeInBytes(typeNamed(result)))};
    requireSameBits(kernel, arguments, {n});
  }
}

const char *const kX = "%x[b*8 + l]", *const kZ = "%z[b*8 + l]";
std::string apply(const std::string &op, int operands) {
  return op + "(" + kX + (operands == 2 ? std::string(", ") + kZ : "") + ")";
}

} // namespace

TEST_CASE("strided lanes of open sizes read what those that are on want, and nothing behind",
          "[codegen]") {
  struct Case {
    const char *place; // of lane l of block b
    int64_t perElement;
  };
  // Every other element; each one twice; two rows in turn, whose distance is n.
  const Case cases[] = {{"b*16 + l*2", 2},
                        {"b*4 + floordiv(l, 2)", 1},
                        {"floormod(l, 2)*dim(n) + b*4 + floordiv(l, 2)", 2}};
  for (const char *type : {"f32", "u8", "f64"})
    for (const Case &c : cases) {
      INFO(type << " at " << c.place);
      const std::string factor = std::to_string(c.perElement);
      const GirKernel kernel = kernelFrom(
          std::string("kernel @s units 1 lanes 8 {\n") + kHeadN + "param %x " + type + "[n*" +
              factor + "]\nparam out %y " + type +
              "[n]\nphase (b: floordiv(n + 7, 8)) {\nlane l in 8 {\n" +
              "if lt(b*8 + l, dim(n)) {\n%y[b*8 + l] = %x[" + c.place + "]\n}\n}\n}\n}\n",
          kN);
      for (const int64_t n : {1, 7, 8, 9, 15, 16, 17}) {
        const int64_t bytes = sizeInBytes(typeNamed(type));
        std::vector<Bytes> arguments = {randomBytes(typeNamed(type), n * c.perElement, 1),
                                        Bytes(static_cast<size_t>(n * bytes))};
        const std::vector<Bytes> expected = requireSameBits(kernel, arguments, {n});
        for (const char *name : {"x86-64-v3", "x86-64-v4"})
          if (const Target target = targetNamed(name); canRun(target))
            for (const bool inFront : {false, true}) {
              std::vector<Bytes> atPages = arguments;
              CompiledKernel(kernel, target).runAtPages(atPages, {n}, inFront);
              CHECK(atPages[1] == expected[1]);
            }
      }
    }
}

TEST_CASE("arithmetic of every type", "[codegen]") {
  const std::string type =
      GENERATE("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64");
  const bool isF = isFloat(typeNamed(type));
  for (const char *op : {"add", "sub", "mul", "div", "min", "max", "rem"})
    checkElementwise(type, type, apply(op, 2));
  for (const char *op : {"neg", "abs"})
    checkElementwise(type, type, apply(op, 1));
  for (const char *op : {"eq", "ne", "lt", "le"})
    checkElementwise(type, "bool", apply(op, 2));
  if (isF) {
    for (const char *op : {"sqrt", "floor", "ceil", "trunc", "roundeven"})
      checkElementwise(type, type, apply(op, 1));
    for (const char *op : {"isnan", "isinf"})
      checkElementwise(type, "bool", apply(op, 1));
    checkElementwise(type, type, std::string("fma(") + kX + ", " + kZ + ", " + kX + ")");
  } else {
    for (const char *op : {"floordiv", "floormod", "and", "or", "xor", "shl", "shr"})
      checkElementwise(type, type, apply(op, 2));
    checkElementwise(type, type, apply("not", 1));
  }
}

TEST_CASE("conversions between all types", "[codegen]") {
  const char *const types[] = {"bool", "i8",  "i16", "i32",  "i64", "u8", "u16",
                               "u32",  "u64", "f16", "bf16", "f32", "f64"};
  const std::string from = GENERATE("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
                                    "f16", "bf16", "f32", "f64");
  for (const char *to : types) {
    if (to == from)
      continue;
    checkElementwise(from, to, std::string("cast(") + to + ", " + kX + ")");
    if (isFloat(typeNamed(from)) && !isFloat(typeNamed(to)) && std::string(to) != "bool")
      checkElementwise(from, to, std::string("castsat(") + to + ", " + kX + ")");
  }
}

TEST_CASE("maths functions", "[codegen]") {
  const std::string type = GENERATE("f32", "f64", "f16");
  for (const char *op : {"exp", "log", "log1p", "expm1", "tanh", "erf", "sigmoid", "sin", "cos",
                         "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"})
    checkElementwise(type, type, apply(op, 1));
  checkElementwise(type, type, apply("pow", 2));
}

// Vectors of a line take instructions that shorter ones do not have: scaling by a power of two, larger and smaller.
TEST_CASE("e^x and extremes of full registers where results are denormal, vanish or overflow",
          "[codegen]") {
  const int64_t n = 4096;
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x(n), z(n);
  for (int64_t i = 0; i < n; ++i) {
    x[i] = -107 + 198 * static_cast<float>(i) / n;
    z[i] = x[(i * 7 + 5) % n];
  }
  const float special[] = {inf, -inf, std::nanf(""), 0.0f, -0.0f, -104.0f, -1e30f, 1e30f, 89.0f};
  std::copy(std::begin(special), std::end(special), x.begin() + 32);
  std::reverse_copy(std::begin(special), std::end(special), z.begin() + 32);
  const std::string expression =
      GENERATE("exp(X)", "sigmoid(X)", "max(X, Z)", "min(X, Z)", "max(X, 0.0)", "max(0.0, X)",
               "max(-0.0, X)", "min(X, -0.0)", "min(X, 6.0)", "min(6.0, X)", "max(X, nan)");
  std::string text = elementwise("f32", "f32", expression);
  auto put = [&text](const std::string &from, const std::string &to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  put("X", kX);
  put("Z", kZ);
  put("b*8", "b*16");
  put("floordiv(n + 7, 8)", "floordiv(n + 15, 16)");
  put("in 8", "in 16");
  put("lanes 8", "lanes 16");
  auto bytesOf = [](const std::vector<float> &v) {
    Bytes bytes(v.size() * sizeof(float));
    std::memcpy(bytes.data(), v.data(), bytes.size());
    return bytes;
  };
  requireSameBits(kernelFrom(text, kN), {bytesOf(x), bytesOf(z), Bytes(n * sizeof(float))}, {n});
}

TEST_CASE("gathers, strides and conditional reads", "[codegen]") {
  GirKernel kernel = kernelFrom(R"(kernel @g units 1 lanes 8 {
    param %x f32[40]
    param %i i64[16]
    param out %y f32[16]
    param out %r f32[16]
    param out %p f32[16]
    param out %s f32[48]
    phase (b: 2) {
      lane l in 8 {
        %y[b*8 + l] = %x[%i[b*8 + l]]
        %r[b*8 + l] = add(%x[l*3 + b], %x[l*-1 + 20])
        %p[b*8 + l] = if(lt(b*8 + l, 11), %x[b*8 + l + 29], 7.0)
        %s[(b*8 + l)*3 + 1] = mul(%x[b], %x[l])
      }
    }
  })");
  Bytes index;
  for (int64_t i = 0; i < 16; ++i) {
    int64_t v = (i * 7) % 40;
    index.insert(index.end(), reinterpret_cast<uint8_t *>(&v), reinterpret_cast<uint8_t *>(&v) + 8);
  }
  requireSameBits(
      kernel, {randomBytes(DType::F32, 40, 3), index, Bytes(64), Bytes(64), Bytes(64), Bytes(192)});
}

TEST_CASE("indices taken apart by sizes of a run", "[codegen]") {
  const GirKernel kernel = kernelFrom(R"(kernel @apart units 1 lanes 8 {
    symbol n = 1..9000000000000 opt 7 divisor 1
    param out %q i64[64]
    param out %r i64[64]
    param out %s i64[64]
    param out %t i64[64]
    phase (b: 8) {
      lane l in 8 {
        %q[b*8 + l] = floordiv(b*1000003 + l*5 + dim(n*-3 + 1), dim(n))
        %r[b*8 + l] = floormod(b*1000003 + l*5 - 4000009, dim(n))
        %s[b*8 + l] = floordiv(b*4000000000000 + floormod(l*3, 8) + l, dim(n))
        let t1 = b*4000000000000 + floormod(l*3, 8) + l;
        %t[b*8 + l] = floormod(t1, dim(n)) + floormod(floordiv(t1, dim(n)), dim(n))
      }
    }
  })");
  for (const int64_t n : {1LL, 2LL, 3LL, 7LL, 8LL, 35LL, 1000003LL, 4294967295LL, 4294967296LL,
                          4294967297LL, 4000000000003LL, 9000000000000LL}) {
    INFO(n);
    requireSameBits(kernel, {Bytes(512), Bytes(512), Bytes(512), Bytes(512)}, {n});
  }
}

TEST_CASE("lanes at constant distances, all of them or some, in any type", "[codegen]") {
  for (const auto &[type, name] : {std::pair{DType::F32, "f32"},
                                   {DType::F16, "f16"},
                                   {DType::F64, "f64"},
                                   {DType::I64, "i64"},
                                   {DType::Bool, "bool"}}) {
    INFO(name);
    std::string text = R"(kernel @d units 1 lanes 8 {
      param %x TYPE[3,29]
      param %z TYPE[3,29]
      param out %y TYPE[3,58]
      param out %s TYPE[3,9]
      param out %r TYPE[3,7]
      param out %o TYPE[3,8]
      phase (b: 3) {
        unroll c in 8 {
          lane l in 8 {
            if lt(c*8 + l, 58) {
              let t0 = floordiv(c*8 + l, 2);
              let t1 = floormod(c*8 + l, 2);
              %y[b, c*8 + l] = if(eq(t1, 0), %x[b, t0], if(eq(t1, 1), %z[b, t0], NONE))
            }
          }
        }
        unroll c in 2 {
          lane l in 8 {
            if lt(c*8 + l, 9) {
              %s[b, c*8 + l] = %x[b, c*24 + l*3 + 2]
            }
          }
        }
        lane l in 8 {
          if lt(l, 7) {
            %r[b, l] = if(lt(b, 2), %z[b + 1, l*-2 + 28], NONE)
          }
        }
        lane l in 8 {
          %o[b, l] = if(eq(l, 5), %x[b, floordiv(l*7, 2)], NONE)
        }
      }
    })";
    for (size_t at; (at = text.find("TYPE")) != std::string::npos;)
      text.replace(at, 4, name);
    const char *none = type == DType::Bool ? "false" : isFloat(type) ? "7.0" : "7";
    for (size_t at; (at = text.find("NONE")) != std::string::npos;)
      text.replace(at, 4, none);
    const size_t size = sizeInBytes(type) * 3;
    requireSameBits(kernelFrom(text),
                    {randomBytes(type, 87, 1), randomBytes(type, 87, 2), Bytes(58 * size),
                     Bytes(9 * size), Bytes(7 * size), Bytes(8 * size)});
  }
}

TEST_CASE("pieces of which one is chosen for all lanes, in part or whole", "[codegen]") {
  GirKernel kernel = kernelFrom(R"(kernel @p units 1 lanes 8 {
    param %x f16[2,11]
    param %z f16[3,11]
    param %n f32[1,11]
    param out %y f16[7,11]
    param out %w f32[7,11]
    param out %v f16[7,16]
    phase (b: 7) {
      unroll c in 2 {
        lane l in 8 {
          if lt(c*8 + l, 11) {
            %y[b, c*8 + l] = if(lt(b, 2), %x[b, c*8 + l], if(and(lt(1, b), lt(b, 5)), %z[b - 2, c*8 + l], 7.0))
            %w[b, c*8 + l] = if(lt(5, b), %n[b - 6, c*8 + l], if(lt(b, 1), %n[b, c*8 + l], cast(f32, %y[b, c*8 + l])))
          }
          let t0 = if(eq(l, 3), %x[1, l], 2.0);
          %v[b, c*8 + l] = if(lt(b, 2), %x[b, l + c*3], if(and(lt(1, b), lt(b, 5)), %z[b - 2, l + c*3], t0))
        }
      }
    }
  })");
  requireSameBits(kernel, {randomBytes(DType::F16, 22, 1), randomBytes(DType::F16, 33, 2),
                           randomBytes(DType::F32, 11, 3), Bytes(154), Bytes(308), Bytes(224)});
}

TEST_CASE("what no lane reads may lie anywhere", "[codegen]") {
  GirKernel kernel = kernelFrom(R"(kernel @f units 1 lanes 8 {
    param %x f32[24]
    param out %v f32[24]
    param out %d f32[24]
    param out %c f32[24]
    phase (b: 3) {
      lane l in 8 {
        %v[b*8 + l] = if(lt(b, 2), %x[floordiv(b, 2)*1000000000000 + l], 7.0)
        %d[b*8 + l] = if(lt(b, 2), %x[floordiv(b, 2)*1000000000000 + l*3], 7.0)
        %c[b*8 + l] = if(lt(b, 1), %x[l + 1], if(lt(b, 2), %x[floordiv(b, 2)*1000000000000 + l + 3], 7.0))
      }
    }
  })");
  requireSameBits(kernel, {randomBytes(DType::F32, 24, 1), Bytes(96), Bytes(96), Bytes(96)});
}

TEST_CASE("row sums reduce over lanes in the documented order", "[codegen]") {
  GirKernel kernel = kernelFrom(R"(kernel @rowsum units 1 lanes 8 {
    param %x f32[6,100]
    param out %y f32[6]
    param out %m f32[6]
    param out %a i64[6]
    register %acc f32[]
    register %best f32[]
    register %at i64[]
    phase (b: 6) {
      %acc[] = 0.0
      %best[] = -1000.0
      %at[] = 0
      seq c in 13 {
        lane l in 8 {
          if lt(c*8 + l, 100) {
            %acc[] sum= mul(%x[b, c*8 + l], %x[b, c*8 + l])
            %best[], %at argmax= %x[b, c*8 + l], c*8 + l
          }
        }
      }
      lanereduce sum %acc[]
      lanereduce argmax %best[], %at
      %y[b] = %acc[]
      %m[b] = %best[]
      %a[b] = %at[]
    }
  })");
  requireSameBits(kernel, {randomBytes(DType::F32, 600, 4), Bytes(24), Bytes(24), Bytes(48)});
}

TEST_CASE("lanes exchange what they hold, of any width", "[codegen]") {
  GirKernel kernel = kernelFrom(R"(kernel @swap units 1 lanes 8 {
    param %x f32[6,8]
    param out %y f32[6,8]
    param out %i i64[6,8]
    register %v f32[2]
    register %at i64[]
    phase (b: 6) {
      lane l in 8 {
        %v[0] = %x[b, l]
        %v[1] = mul(%x[b, l], %x[b, l])
        %at[] = l*3
      }
      exchange %v[1] xor 4
      exchange %v[1] xor 1
      exchange %at[] xor 2
      lane l in 8 {
        %y[b, l] = add(%v[0], %v[1])
        %i[b, l] = %at[]
      }
    }
  })");
  requireSameBits(kernel, {randomBytes(DType::F32, 48, 4), Bytes(192), Bytes(384)});
}

TEST_CASE("a staged product through shared memory", "[codegen]") {
  GirKernel kernel = kernelFrom(R"(kernel @mm units 1 lanes 8 {
    param %a f32[12,20]
    param %b f32[20,16]
    param out %c f32[12,16]
    register %acc f32[6,2]
    shared %bs f32[20,16]
    phase (bm: 2) {
      unroll i in 6 {
        unroll j in 2 {
          lane l in 8 {
            %acc[i, j] = 0.0
          }
        }
      }
      seq k in 20 {
        unroll j in 2 {
          lane l in 8 {
            %bs[k, j*8 + l] = %b[k, j*8 + l]
          }
        }
      }
      seq k in 20 {
        unroll i in 6 {
          unroll j in 2 {
            lane l in 8 {
              %acc[i, j] sum= mul(%a[bm*6 + i, k], %bs[k, j*8 + l])
            }
          }
        }
      }
      unroll i in 6 {
        unroll j in 2 {
          lane l in 8 {
            %c[bm*6 + i, j*8 + l] = %acc[i, j]
          }
        }
      }
    }
  })");
  requireSameBits(kernel,
                  {randomBytes(DType::F32, 240, 5), randomBytes(DType::F32, 320, 6), Bytes(768)});
}

TEST_CASE("lines of large tensors are stored past the caches wherever the tensor begins",
          "[codegen]") {
  // Each of the 16 places in a line; the tensor is large enough, what is stored of it is not.
  GirKernel kernel = kernelFrom(R"(kernel @k units 1 lanes 16 {
    param %x f32[64]
    param out %y f32[4194304]
    phase (b: 4) {
      seq r in 16 {
        lane l in 16 {
          %y[r*4097 + b*16 + l] = add(%x[b*16 + l], 1.0)
        }
      }
    }
  })");
  std::vector<Bytes> result =
      requireSameBits(kernel, {randomBytes(DType::F32, 64, 5), Bytes(4194304 * 4)});
  CHECK(std::count(result[1].begin(), result[1].end(), 0) < 4194304 * 4);
}
