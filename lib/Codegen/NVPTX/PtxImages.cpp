#include "Codegen/Images.h"
#include "Support/Diag.h"

#include <spawn.h>
#include <sys/wait.h>

#include <charconv>
#include <fcntl.h>

namespace fusec {
namespace {

/// Runs a program with stdout and stderr going to a file; its exit status, or -1.
int runTool(const std::vector<std::string> &args, const std::string &messages) {
  std::vector<char *> argv;
  for (const std::string &a : args)
    argv.push_back(const_cast<char *>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid;
  char *noEnvironment[] = {nullptr}; // so that the result does not depend on the caller's
  int failed = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), noEnvironment);
  posix_spawn_file_actions_destroy(&actions);
  int status;
  if (failed || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
    return -1;
  return WEXITSTATUS(status);
}

/// ".version 8.5" -> 85.
int isaVersion(const std::string &ptx) {
  size_t at = ptx.find(".version ");
  if (at == std::string::npos)
    return 0;
  int major = 0, minor = 0;
  const char *end = ptx.data() + ptx.size();
  auto [next, ok] = std::from_chars(ptx.data() + at + 9, end, major);
  if (ok == std::errc() && next != end)
    std::from_chars(next + 1, end, minor);
  return major * 10 + minor;
}

/// Lowest CUDA version whose driver takes the PTX ISA (PTX ISA manual, release notes): 7.0 came with 11.0, 8.0 with
/// 12.0, each minor with one of CUDA.
int cudaOfIsa(int isa) {
  int major = isa / 10, minor = isa % 10;
  return (major == 7 ? 11000 : major == 8 ? 12000 : 13000) + 10 * minor;
}

/// 12040 as "12.4".
std::string cudaText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Texts of modules differ in names alone: the header is kept once.
std::string joined(const std::vector<std::string> &texts) {
  std::string all;
  for (const std::string &t : texts) {
    size_t body = t.find(".address_size 64");
    body = body == std::string::npos ? 0 : t.find('\n', body) + 1;
    all += all.empty() ? t : t.substr(body);
  }
  return all;
}

/// "release 13.0, V13.0.88" of `ptxas --version`.
int cudaOfPtxas(const std::string &path, const std::string &messages) {
  if (runTool({path, "--version"}, messages) != 0)
    return 0;
  auto bytes = readFile(messages);
  if (!bytes)
    return 0;
  std::string text(bytes->begin(), bytes->end());
  size_t at = text.find("release ");
  int major = 0, minor = 0;
  if (at == std::string::npos ||
      std::sscanf(text.c_str() + at, "release %d.%d", &major, &minor) != 2)
    return 0;
  return major * 1000 + minor * 10;
}

struct Assembled {
  int cuda = 0; // version of the assembler
  std::vector<uint8_t> cubin;
  std::vector<EntryResources> resources;
};

Result<Assembled> assemble(const std::string &ptx, const Target &target,
                           const CodegenOptions &options) {
  FUSEC_TRY(TempDir dir, TempDir::create(options.tempDir));
  const std::string in = dir.path() + "/kernels.ptx", out = dir.path() + "/kernels.cubin",
                    log = dir.path() + "/log";
  FUSEC_CHECK(writeFile(in, ptx));
  Assembled made;
  made.cuda = cudaOfPtxas(options.ptxasPath, log);
  if (made.cuda == 0)
    return Diagnostic{Diag::ToolMissing, options.ptxasPath,
                      "expected NVIDIA's ptxas; this does not run as one"};
  std::vector<std::string> command = {
      options.ptxasPath, "-O3", "-v", "-arch=" + target.cpu, in, "-o", out};
  // A kernel of 29 phases takes ptxas 2 s alone, all of EfficientNet-B0 6.8 s; on two cores 3.0 s with this. The
  // bytes depend on the number, which is therefore nobody's choice.
  constexpr int kFirstThatSplits = 13000; // CUDA 13.0, the oldest that was tried
  if (made.cuda >= kFirstThatSplits)
    command.emplace_back("--split-compile=4");
  if (runTool(command, log) != 0) {
    auto messages = readFile(log);
    return Diagnostic{
        Diag::ToolMissing, options.ptxasPath,
        "refuses the PTX for " + target.cpu + ": " +
            (messages ? std::string(messages->begin(), messages->end()) : std::string())};
  }
  FUSEC_TRY(made.cubin, readFile(out));
  FUSEC_TRY(auto said, readFile(log));
  made.resources = parsePtxasLog({reinterpret_cast<const char *>(said.data()), said.size()});
  return made;
}

/// Takes the cap off the registers of entries that spill under it (TargetHooks::leaveRoomFor): what they would hold
/// from round to round would lie in memory, and a device with fewer cores than the target has no room for all their
/// blocks anyway. True where there was one.
bool dropVainCaps(std::string &ptx, const std::vector<EntryResources> &resources) {
  bool dropped = false;
  for (const EntryResources &entry : resources) {
    if (entry.spillStores + entry.spillLoads == 0)
      continue;
    const size_t head = ptx.find(".entry " + entry.entry + "(");
    const size_t body = head == std::string::npos ? head : ptx.find("\n{", head);
    const size_t cap = head == std::string::npos ? head : ptx.find("\n.minnctapersm", head);
    if (cap == std::string::npos || body == std::string::npos || cap > body)
      continue;
    ptx.erase(cap, ptx.find('\n', cap + 1) - cap);
    dropped = true;
  }
  return dropped;
}

} // namespace

Result<std::vector<CodeImage>> ptxImages(const std::vector<std::string> &texts,
                                         const Target &target, const CodegenOptions &options) {
  std::vector<CodeImage> images;
  std::string ptx = joined(texts);
  if (!options.ptxasPath.empty()) {
    FUSEC_TRY(Assembled made, assemble(ptx, target, options));
    if (dropVainCaps(ptx, made.resources)) {
      FUSEC_TRY(made, assemble(ptx, target, options));
    }
    CodeImage cubin;
    cubin.format = CodeImage::Format::Cubin;
    cubin.arch = target.cpu;
    cubin.minDriverCuda =
        made.cuda / 1000 * 1000; // minor versions of one major run each other's cubins
    cubin.bytes = std::move(made.cubin);
    cubin.resources = std::move(made.resources);
    images.push_back(std::move(cubin));
  }
  const int isa = isaVersion(ptx);
  CodeImage text;
  text.format = CodeImage::Format::Ptx;
  text.arch = target.cpu;
  text.ptxIsa = isa;
  text.minDriverCuda = cudaOfIsa(isa);
  text.bytes.assign(ptx.begin(), ptx.end());
  images.push_back(std::move(text));
  const int lowest = images.back().minDriverCuda;
  if (options.minDriverCuda != 0)
    std::erase_if(images,
                  [&](const CodeImage &i) { return i.minDriverCuda > options.minDriverCuda; });
  if (images.empty())
    return Diagnostic{Diag::UnsupportedTarget, "target '" + target.name + "'",
                      "needs a driver of CUDA " + cudaText(lowest) +
                          " or newer; --min-driver asks for " + cudaText(options.minDriverCuda)};
  return images;
}

} // namespace fusec
