// Dumps behind gir, which cannot be gone on from, and the writing of all dump files.
#include "Driver/State.h"

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
                const std::string &folder) {
  if (!print && folder.empty())
    return success();
  constexpr std::string_view kSuffix[] = {"elf", "ptx", "cubin", "hsaco", "sim.elf"};
  for (const TargetState &target : state.targets) {
    if (stage == Stage::Llvm) {
      FUSEC_TRY(std::string text, emitLlvmText(target.gir.kernels, target.target));
      if (print)
        print("=== llvm " + target.target.name + "\n" + text);
      if (!folder.empty())
        FUSEC_CHECK(writeDump(folder, "llvm." + fileName(target.target.name) + ".ll", text.data(),
                              text.size()));
      continue;
    }
    for (const CodeImage &image : target.images) {
      std::string file = "object." + fileName(target.target.name) + "." +
                         std::string(kSuffix[static_cast<int>(image.format)]);
      if (print)
        print("=== object " + file + ": " + std::to_string(image.bytes.size()) + " bytes\n");
      if (!folder.empty())
        FUSEC_CHECK(writeDump(folder, file, image.bytes.data(), image.bytes.size()));
    }
  }
  return success();
}

} // namespace fusec
