#include "Harness.h"

#include "Reference/GirInterpreter.h"
#include "Support/Half.h"
#include "fusec/bundle_format.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

namespace fusec::test {

GirKernel kernelFrom(const std::string &text, const std::vector<Symbol> &symbols) {
  TextReader in(text, "test");
  auto kernel = parseGirKernel(in, symbols);
  if (!kernel.ok())
    FAIL(format(kernel.errors().front()));
  insertSyncs(*kernel);
  allocate(*kernel);
  if (auto status = verify(*kernel); !status.ok())
    FAIL(format(status.errors().front()));
  return std::move(*kernel);
}

Target targetNamed(const std::string &name) {
  auto target = lookupTarget(name);
  if (!target.ok())
    FAIL(format(target.errors().front()));
  return *target;
}

bool canRun(const Target &cpu) {
  if (cpu.cpu == "x86-64-v4")
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

LoadedImage::LoadedImage(const std::vector<uint8_t> &elf) {
  int file = memfd_create("image", 0);
  REQUIRE(file >= 0);
  REQUIRE(write(file, elf.data(), elf.size()) == static_cast<ssize_t>(elf.size()));
  handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  close(file);
  if (!handle)
    FAIL(dlerror());
}
LoadedImage::~LoadedImage() {
  if (handle)
    dlclose(handle);
}
void *LoadedImage::symbol(const std::string &name) const {
  void *s = dlsym(handle, name.c_str());
  REQUIRE(s != nullptr);
  return s;
}

std::vector<Instruction> disassembled(const std::vector<uint8_t> &elf) {
  const std::string objdump = "/usr/lib/llvm-19/bin/llvm-objdump";
  if (!std::filesystem::exists(objdump))
    FAIL("no " << objdump << ": scripts/setup installs it");
  const std::string file =
      std::filesystem::temp_directory_path() / ("image-" + std::to_string(getpid()));
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char *>(elf.data()), static_cast<std::streamsize>(elf.size()));
  std::string text;
  if (FILE *pipe = popen((objdump + " -d --no-show-raw-insn " + file).c_str(), "r")) {
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;)
      text.append(part, n);
    pclose(pipe);
  }
  std::filesystem::remove(file);
  std::vector<Instruction> code;
  std::istringstream lines(text);
  const std::regex instruction(R"(\s*([0-9a-f]+):\s+(.*))");
  std::smatch m;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, m, instruction))
      code.push_back({std::stoull(m[1], nullptr, 16), m[2]});
  return code;
}

static std::vector<uint8_t> imageOf(const GirKernel &kernel, const Target &target) {
  auto images = compileKernels({kernel}, target, {});
  if (!images.ok())
    FAIL(format(images.errors().front()));
  return std::move(images->front().bytes);
}

CompiledKernel::CompiledKernel(const GirKernel &kernel, const Target &target)
    : kernel(kernel), code(kernelCodes({kernel}, target).front()), image(imageOf(kernel, target)) {}

void CompiledKernel::run(const std::vector<void *> &buffers,
                         const std::vector<int64_t> &symbols) const {
  auto entry = reinterpret_cast<fusec_cpu_kernel>(image.symbol(code.symbol));
  std::vector<int64_t> dims;
  for (SymbolId s : kernel.usedSymbols())
    dims.push_back(symbols[s]);
  void *scratch = std::aligned_alloc(64, (code.sharedBytes + 127) / 64 * 64);
  fusec_kernel_args args{const_cast<void **>(buffers.data()), dims.data(), scratch};
  for (size_t p = 0; p < kernel.phases.size(); ++p) {
    auto grid = gridSize(kernel.phases[p]).evaluate(symbols);
    REQUIRE(grid.has_value());
    for (int64_t block = 0; block < *grid; ++block)
      REQUIRE(entry(&args, static_cast<int32_t>(p), block) == FUSEC_KERNEL_OK);
  }
  std::free(scratch);
}

void CompiledKernel::runAtPages(std::vector<Bytes> &arguments, const std::vector<int64_t> &symbols,
                                bool inFront) const {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<void *> buffers;
  std::vector<std::pair<void *, size_t>> mapped;
  for (const Bytes &a : arguments) {
    const size_t inside = (a.size() + page) / page * page;
    void *at = mmap(nullptr, inside + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    mapped.push_back({at, inside + 2 * page});
    uint8_t *first = static_cast<uint8_t *>(at) + page;
    REQUIRE(mprotect(first, inside, PROT_READ | PROT_WRITE) == 0);
    buffers.push_back(inFront ? first : first + inside - a.size());
    std::memcpy(buffers.back(), a.data(), a.size());
  }
  run(buffers, symbols);
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::memcpy(arguments[i].data(), buffers[i], arguments[i].size());
    munmap(mapped[i].first, mapped[i].second);
  }
}

void runCompiled(const GirKernel &kernel, const Target &target, std::vector<Bytes> &arguments,
                 const std::vector<int64_t> &symbols) {
  std::vector<void *> buffers;
  for (Bytes &a : arguments)
    buffers.push_back(a.data());
  CompiledKernel(kernel, target).run(buffers, symbols);
}

void runInterpreted(const GirKernel &kernel, std::vector<Bytes> &arguments,
                    const std::vector<int64_t> &symbols) {
  std::vector<GirArgument> args;
  for (Bytes &a : arguments)
    args.push_back({a.data(), static_cast<int64_t>(a.size())});
  auto status = run(kernel, args, symbols);
  if (!status.ok())
    FAIL(format(status.errors().front()));
}

namespace {

/// NaNs count as equal: their payload is not promised.
bool sameElement(DType t, const uint8_t *a, const uint8_t *b) {
  const int64_t size = sizeInBytes(t);
  if (std::memcmp(a, b, size) == 0)
    return true;
  auto read = [&](const uint8_t *p) {
    uint64_t bits = 0;
    std::memcpy(&bits, p, size);
    switch (t) {
    case DType::F16: return halfToDouble(static_cast<uint16_t>(bits));
    case DType::BF16: return bfloatToDouble(static_cast<uint16_t>(bits));
    case DType::F32: return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    default: return std::bit_cast<double>(bits);
    }
  };
  return isFloat(t) && std::isnan(read(a)) && std::isnan(read(b));
}

} // namespace

std::vector<Bytes> requireSameBits(const GirKernel &kernel, const std::vector<Bytes> &arguments,
                                   const std::vector<int64_t> &symbols) {
  std::vector<Bytes> expected = arguments;
  runInterpreted(kernel, expected, symbols);
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    Target target = targetNamed(name);
    if (!canRun(target))
      continue;
    std::vector<Bytes> actual = arguments;
    runCompiled(kernel, target, actual, symbols);
    for (size_t i = 0; i < actual.size(); ++i) {
      const DType t = kernel.buffers[i].type;
      for (size_t at = 0; at < actual[i].size(); at += sizeInBytes(t))
        if (!sameElement(t, &actual[i][at], &expected[i][at])) {
          INFO("kernel " << kernel.name << " on " << name << ": buffer " << kernel.buffers[i].name
                         << ", element " << at / sizeInBytes(t));
          uint64_t got = 0, want = 0;
          std::memcpy(&got, &actual[i][at], sizeInBytes(t));
          std::memcpy(&want, &expected[i][at], sizeInBytes(t));
          CAPTURE(got, want);
          FAIL("compiled and interpreted bits differ");
        }
    }
  }
  SUCCEED();
  return expected;
}

Bytes randomBytes(DType type, int64_t count, uint64_t seed, bool wild) {
  Bytes bytes(count * sizeInBytes(type));
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  };
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = next();
    double number = static_cast<double>(static_cast<int64_t>(bits)) / 9.3e18 * 4;
    if (!wild || i % 3 != 0) {
      switch (type) {
      case DType::F16: bits = halfFromDouble(number); break;
      case DType::BF16: bits = bfloatFromDouble(number); break;
      case DType::F32: bits = std::bit_cast<uint32_t>(static_cast<float>(number)); break;
      case DType::F64: bits = std::bit_cast<uint64_t>(number); break;
      default: bits = static_cast<uint64_t>(static_cast<int64_t>(number * 20)); break;
      }
    }
    if (type == DType::Bool)
      bits &= 1;
    std::memcpy(&bytes[i * sizeInBytes(type)], &bits, sizeInBytes(type));
  }
  return bytes;
}

} // namespace fusec::test
