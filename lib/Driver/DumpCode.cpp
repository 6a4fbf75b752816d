// Dumps behind gir, which cannot be gone on from, and the writing of all dump files.
#include "Driver/Part.h"
#include "Support/Diag.h"

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

std::string imageFile(const TargetState &target, const CodeImage &image) {
  constexpr std::string_view kSuffix[] = {"elf", "ptx", "cubin", "hsaco", "sim.elf"};
  return "object." + fileName(target.target.name) + "." +
         std::string(kSuffix[static_cast<int>(image.format)]);
}

/// Sizes of the machine code; of a part, what its kernels make alone.
Status printImages(const TargetState &target, const DumpSink &sink, const CodegenOptions &options) {
  std::vector<CodeImage> ofPart;
  std::string behind;
  if (sink.part) {
    const std::vector<GirKernel> kernels = sink.part->kernelsOf(target);
    if (kernels.empty())
      return success();
    FUSEC_TRY(ofPart, compileKernels(kernels, target.target, options));
    for (const GirKernel &kernel : kernels)
      behind += (behind.empty() ? " of kernel " : ", ") + kernel.name;
  }
  for (const CodeImage &image : sink.part ? ofPart : target.images)
    sink.print("=== object " + imageFile(target, image) + ": " +
               std::to_string(image.bytes.size()) + " bytes" + behind + "\n");
  return success();
}

/// What is printed, and what goes to a file.
struct CodeText {
  std::string part, all;
};

Result<CodeText> llvmText(const TargetState &target, const DumpSink &sink) {
  CodeText text;
  auto make = [&](const std::vector<GirKernel> &kernels) {
    return emitLlvmText(kernels, target.target, target.checked);
  };
  if (!sink.part || !sink.folder.empty()) {
    FUSEC_TRY(text.all, make(target.gir.kernels));
  }
  if (sink.part && sink.print) {
    FUSEC_TRY(text.part, make(sink.part->kernelsOf(target)));
  } else {
    text.part = text.all;
  }
  return text;
}

/// In front of each kernel stands whose it is, as a comment of that assembler. It takes as long as machine code, so
/// that no kernel's is made twice.
Result<CodeText> assemblyText(const TargetState &target, const DumpSink &sink,
                              const CodegenOptions &options) {
  const bool x86 = target.target.sim || target.target.kind == TargetKind::Cpu;
  const std::string comment = x86 ? "# " : target.target.kind == TargetKind::Nvidia ? "// " : "; ";
  const std::vector<GirKernel> kernels =
      sink.part && sink.folder.empty() ? sink.part->kernelsOf(target) : target.gir.kernels;
  FUSEC_TRY(std::vector<std::string> texts, assemblyTexts(kernels, target.target, options));
  CodeText text;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const std::string own =
        comment + "kernel " + kernels[k].name + ": " + nodesText(kernels[k]) + "\n" + texts[k];
    text.all += own;
    if (!sink.part || sink.part->has(kernels[k]))
      text.part += own;
  }
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

Status dumpCode(Stage stage, const TargetState &target, const DumpSink &sink,
                const CodegenOptions &options) {
  if (!sink.print && sink.folder.empty())
    return success();
  if (stage == Stage::Object) {
    if (sink.print)
      FUSEC_CHECK(printImages(target, sink, options));
    for (const CodeImage &image : target.images)
      if (!sink.folder.empty())
        FUSEC_CHECK(writeDump(sink.folder, imageFile(target, image), image.bytes.data(),
                              image.bytes.size()));
    return success();
  }
  FUSEC_TRY(const CodeText text,
            stage == Stage::Llvm ? llvmText(target, sink) : assemblyText(target, sink, options));
  if (sink.print)
    sink.print("=== " + std::string(name(stage)) + " " + target.target.name + "\n" + text.part);
  if (sink.folder.empty())
    return success();
  const std::string file = std::string(name(stage)) + "." + fileName(target.target.name) +
                           (stage == Stage::Llvm ? ".ll" : ".s");
  return writeDump(sink.folder, file, text.all.data(), text.all.size());
}

} // namespace fusec
