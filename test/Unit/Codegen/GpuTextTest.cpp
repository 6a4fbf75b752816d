// What the GPU back ends make of a kernel: entry points, instructions, images that their tools take.
#include "Harness.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <filesystem>
#include <map>

using namespace fusec;
using namespace fusec::test;

namespace {

std::string kernelText(int lanes) {
  const std::string l = std::to_string(lanes);
  return "kernel @norm units 4 lanes " + l + R"( {
  param %x f32[32,256]
  param out %y f32[32,256]
  register %acc f32[]
  shared %part f32[4]
  phase (b: 32) {
    %acc[] = 0.0
    unit u in 4 {
      seq c in )" +
         std::to_string(64 / lanes) + R"( {
        lane l in )" +
         l + R"( {
          %acc[] sum= mul(%x[b, u*64 + c*)" +
         l + R"( + l], %x[b, u*64 + c*)" + l + R"( + l])
        }
      }
      lanereduce sum %acc[]
      %part[u] = %acc[]
    }
    unit u in 4 {
      seq c in )" +
         std::to_string(64 / lanes) + R"( {
        lane l in )" +
         l + R"( {
          %y[b, u*64 + c*)" +
         l + R"( + l] = mul(%x[b, u*64 + c*)" + l +
         R"( + l], tanh(add(add(%part[0], %part[1]), add(%part[2], %part[3]))))
        }
      }
    }
  }
}
)";
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

std::vector<CodeImage> compiled(const std::string &target, const CodegenOptions &options = {}) {
  Target t = targetNamed(target);
  auto images = compileKernels({kernelFrom(kernelText(t.lanes))}, t, options);
  if (!images.ok())
    FAIL(format(images.errors().front()));
  return std::move(*images);
}

/// Skips the test where there is none.
CodegenOptions withPtxas() {
  CodegenOptions options;
  for (const char *path : {"/usr/local/cuda/bin/ptxas", "/usr/local/bin/ptxas", "/usr/bin/ptxas"})
    if (options.ptxasPath.empty() && std::filesystem::exists(path))
      options.ptxasPath = path;
  if (options.ptxasPath.empty())
    SKIP("no ptxas on this machine");
  return options;
}

/// Turns `rows` rows of 256 around by way of shared memory, then doubles them in a phase of its own.
std::string turnText(int rows) {
  const std::string n = std::to_string(rows);
  return "kernel @turn units 8 lanes 32 {\n  param %x f32[" + n + ",256]\n  param scratch %t f32[" +
         n + ",256]\n  param out %y f32[" + n + ",256]\n  shared %s f32[" + n +
         ",256] align 1024\n  phase () {\n    seq r in " + n +
         " { unit u in 8 { lane l in 32 { %s[r, u*32 + l] = %x[r, u*32 + l] } } }\n    seq r in " +
         n +
         " { unit u in 8 { lane l in 32 { %t[r, u*32 + l] = %s[r, u*-32 + l*-1 + 255] } } }\n  "
         "}\n" +
         "  phase (r: " + n +
         ") {\n    unit u in 8 { lane l in 32 { %y[r, u*32 + l] = mul(%t[r, u*32 + l], 2.0) } }\n" +
         "  }\n}\n";
}

} // namespace

TEST_CASE("shared memory beyond what code may hold is given by launches", "[codegen]") {
  struct Case {
    const char *target;
    int rows; // of a KiB
    bool dynamic;
  };
  for (const Case &c : {Case{"sm_80", 48, false}, Case{"sm_80", 49, true}, Case{"sm_90", 227, true},
                        Case{"sim:sm_80", 49, true}, Case{"gfx90a", 64, false}}) {
    INFO(c.target << " " << c.rows);
    const Target target = targetNamed(c.target);
    const GirKernel kernel = kernelFrom(turnText(c.rows));
    const KernelCode code = kernelCodes({kernel}, target).front();
    CHECK(code.sharedBytes == c.rows << 10);
    CHECK(code.sharedAlign == 1024);
    CHECK(code.dynamicShared ==
          (c.dynamic ? std::vector<int64_t>{c.rows << 10, 0} : std::vector<int64_t>{}));
    auto text = emitLlvmText({kernel}, target, false);
    REQUIRE(text.ok());
    const std::string external = "@k_turn_p0_shared = external addrspace(3) global [0 x i8], align "
                                 "1024",
                      internal = "@k_turn_p0_shared = internal addrspace(3) global [" +
                                 std::to_string(c.rows << 10) + " x i8] undef, align 1024";
    CHECK(contains(*text, external) == (c.dynamic && !target.sim));
    CHECK(contains(*text, internal) == !c.dynamic);
  }
  auto images = compileKernels({kernelFrom(turnText(49))}, targetNamed("sm_80"), {});
  REQUIRE(images.ok());
  const std::string ptx((*images)[0].bytes.begin(), (*images)[0].bytes.end());
  INFO(ptx);
  CHECK(contains(ptx, ".extern .shared .align 1024 .b8 k_turn_p0_shared[]"));
  CHECK_FALSE(contains(ptx, "k_turn_p1_shared")); // it touches none
  auto refused = compileKernels({kernelFrom("kernel @k units 1 lanes 8 {\n  param out %y f32[8]\n"
                                            "  shared %s f32[8] align 256\n  phase () {\n"
                                            "    lane l in 8 { %s[l] = 1.0 }\n"
                                            "    lane l in 8 { %y[l] = %s[l*-1 + 7] }\n  }\n}\n")},
                                targetNamed("x86-64-v3"), {});
  REQUIRE_FALSE(refused.ok());
  CHECK(contains(format(refused.errors().front()),
                 "shared memory is aligned to 256 bytes on GPUs alone"));
}

TEST_CASE("ptxas takes shared memory that launches give, and resources count it",
          "[codegen][nvptx]") {
  const CodegenOptions options = withPtxas();
  for (const auto &[target, rows] : {std::pair("sm_80", 163), std::pair("sm_90", 227)}) {
    INFO(target);
    auto images = compileKernels({kernelFrom(turnText(rows))}, targetNamed(target), options);
    REQUIRE(images.ok());
    REQUIRE(images->size() == 2);
    std::map<std::string, int64_t> bytes;
    for (const EntryResources &e : (*images)[0].resources)
      bytes[e.entry] = e.sharedBytes;
    CHECK(bytes == std::map<std::string, int64_t>{
                       {"k_turn_grid", rows << 10}, {"k_turn_p0", rows << 10}, {"k_turn_p1", 0}});
  }
}

TEST_CASE("PTX has one entry a phase, barriers, shuffles and strict arithmetic",
          "[codegen][nvptx]") {
  const std::string target = GENERATE("sm_80", "sm_90");
  auto images = compiled(target);
  REQUIRE(images.size() == 1);
  REQUIRE(images[0].format == CodeImage::Format::Ptx);
  CHECK(images[0].ptxIsa >= 70);
  CHECK(images[0].minDriverCuda >= 11000);
  std::string ptx(images[0].bytes.begin(), images[0].bytes.end());
  INFO(ptx);
  CHECK(contains(ptx, ".target " + target));
  CHECK(contains(ptx, ".visible .entry k_norm_p0("));
  CHECK(contains(ptx, ".maxntid 128"));
  CHECK(contains(ptx, "bar.sync"));
  CHECK(contains(ptx, "shfl.sync.bfly.b32"));
  CHECK(contains(ptx, "fma.rn.f32"));
  CHECK(contains(ptx, "div.rn.f32"));
  CHECK_FALSE(contains(ptx, "approx"));
  CHECK_FALSE(contains(ptx, ".ftz"));
  CHECK_FALSE(contains(ptx, ".local")); // registers were promoted
  CHECK_FALSE(contains(ptx, "call"));
}

TEST_CASE("ptxas takes the PTX", "[codegen][nvptx]") {
  const CodegenOptions options = withPtxas();
  for (const char *target : {"sm_80", "sm_90"}) {
    auto images = compiled(target, options);
    REQUIRE(images.size() == 2);
    CHECK(images[0].format == CodeImage::Format::Cubin);
    CHECK(images[0].minDriverCuda >= 11000);
    CHECK(images[0].bytes.size() > 64);
  }
}

TEST_CASE("a missing ptxas is reported", "[codegen][nvptx]") {
  CodegenOptions options;
  options.ptxasPath = "/nonexistent/ptxas";
  auto images = compileKernels({kernelFrom(kernelText(32))}, targetNamed("sm_90"), options);
  REQUIRE_FALSE(images.ok());
  CHECK(format(images.errors().front()) ==
        "error[E6002] /nonexistent/ptxas: expected NVIDIA's ptxas; this does not run as one");
}

TEST_CASE("AMD code objects", "[codegen][amdgpu]") {
  const std::string target = GENERATE("gfx90a", "gfx942", "gfx1100");
  auto images = compiled(target);
  REQUIRE(images.size() == 1);
  CHECK(images[0].format == CodeImage::Format::Hsaco);
  std::string bytes(images[0].bytes.begin(), images[0].bytes.end());
  CHECK(bytes.substr(1, 3) == "ELF");
  CHECK(contains(bytes, "k_norm_p0.kd"));
  CHECK(contains(bytes, "amdgcn-amd-amdhsa--" + target));
}

TEST_CASE("images do not depend on the number of threads", "[codegen]") {
  const std::string target = GENERATE("x86-64-v3", "sm_90", "gfx90a", "sim:sm_90");
  Target t = targetNamed(target);
  std::vector<GirKernel> kernels;
  for (int i = 0; i < 5; ++i) {
    kernels.push_back(kernelFrom(kernelText(t.kind == TargetKind::Amd ? 64 : 32)));
    kernels.back().name += std::to_string(i);
  }
  CodegenOptions one, four;
  four.threads = 4;
  auto a = compileKernels(kernels, t, one), b = compileKernels(kernels, t, four);
  if (!a.ok() || !b.ok())
    FAIL(format((a.ok() ? b : a).errors().front()));
  REQUIRE(a->size() == b->size());
  for (size_t i = 0; i < a->size(); ++i)
    CHECK((*a)[i].bytes == (*b)[i].bytes);
}

TEST_CASE("a program without kernels has an image", "[codegen]") {
  const std::string target = GENERATE("x86-64-v3", "sm_90", "gfx90a", "sim:sm_90");
  auto images = compileKernels({}, targetNamed(target), {});
  if (!images.ok())
    FAIL(format(images.errors().front()));
  REQUIRE(images->size() == 1);
  CHECK_FALSE(images->front().bytes.empty());
}
