// Dumps behind gir, which cannot be gone on from, and the writing of all dump files.
#include "Driver/Part.h"

#include <filesystem>
#include <fstream>

namespace fusec {

namespace {

std::string fileName(std::string text) {
  for (char &c : text)
    if (c == ':')
      c = '-';
  return text;
}

Status dumpImages(const TargetState &target,
                  const std::function<void(const std::string &text)> &print,
                  const std::string &folder) {
  constexpr std::string_view kSuffix[] = {"elf", "ptx", "cubin", "hsaco", "sim.elf"};
  for (const CodeImage &image : target.images) {
    std::string file = "object." + fileName(target.target.name) + "." +
                       std::string(kSuffix[static_cast<int>(image.format)]);
    if (print)
      print("=== object " + file + ": " + std::to_string(image.bytes.size()) + " bytes\n");
    if (!folder.empty())
      FUSEC_CHECK(writeDump(folder, file, image.bytes.data(), image.bytes.size()));
  }
  return success();
}

/// Assembly says in front of each kernel whose it is, as a comment of that assembler.
Result<std::string> codeText(Stage stage, const std::vector<GirKernel> &kernels,
                             const TargetState &state, int threads) {
  const Target &target = state.target;
  CodegenOptions options;
  options.threads = threads;
  options.checked = state.checked;
  if (stage == Stage::Llvm)
    return emitLlvmText(kernels, target, options.checked);
  FUSEC_TRY(std::vector<std::string> texts, assemblyTexts(kernels, target, options));
  const bool x86 = target.sim || target.kind == TargetKind::Cpu;
  const std::string comment = x86 ? "# " : target.kind == TargetKind::Nvidia ? "// " : "; ";
  std::string all;
  for (size_t k = 0; k < kernels.size(); ++k)
    all += comment + "kernel " + kernels[k].name + ": " + nodesText(kernels[k]) + "\n" + texts[k];
  return all;
}

} // namespace

Status writeDump(const std::string &folder, const std::string &file, const void *data,
                 size_t sizeBytes) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string path = folder + "/" + file;
  std::ofstream out(path, std::ios::binary);
  out.write(static_cast<const char *>(data), static_cast<std::streamsize>(sizeBytes));
  out.close();
  if (!out)
    return Diagnostic{Diag::CannotWrite, path,
                      "the dump cannot be written; is the folder writable?"};
  return success();
}

Status dumpCode(Stage stage, const CompileState &state,
                const std::function<void(const std::string &text)> &print,
                const std::string &folder, const Part *part, int threads) {
  if (!print && folder.empty())
    return success();
  for (const TargetState &target : state.targets) {
    if (stage == Stage::Object) {
      FUSEC_CHECK(dumpImages(target, print, folder));
      continue;
    }
    const std::vector<GirKernel> &all = target.gir.kernels;
    if (print) {
      FUSEC_TRY(std::string text,
                codeText(stage, part ? part->kernelsOf(target) : all, target, threads));
      print("=== " + std::string(name(stage)) + " " + target.target.name + "\n" + text);
    }
    if (folder.empty())
      continue;
    FUSEC_TRY(std::string text, codeText(stage, all, target, threads));
    const std::string file = std::string(name(stage)) + "." + fileName(target.target.name) +
                             (stage == Stage::Llvm ? ".ll" : ".s");
    FUSEC_CHECK(writeDump(folder, file, text.data(), text.size()));
  }
  return success();
}

} // namespace fusec
