#include "Codegen/Link.h"

#include "Support/Diag.h"
#include "lld/Common/Driver.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>
#include <fstream>
#include <mutex>

LLD_HAS_DRIVER(elf)

namespace fusec {

namespace fs = std::filesystem;

Result<TempDir> TempDir::create(const std::string &parent) {
  std::string pattern = parent + "/fusec-XXXXXX";
  if (!mkdtemp(pattern.data()))
    return Diagnostic{Diag::CannotWrite, parent,
                      "cannot make a temporary folder here; give another with --temp-dir"};
  return TempDir(pattern);
}

TempDir::~TempDir() {
  std::error_code ignored;
  if (!folder.empty())
    fs::remove_all(folder, ignored);
}

Status writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out)
    return Diagnostic{Diag::CannotWrite, path,
                      "cannot write this temporary file; is the disk full?"};
  return success();
}

Result<std::vector<uint8_t>> readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in)
    return Diagnostic{Diag::CannotWrite, path, "cannot read back this temporary file"};
  return bytes;
}

Result<std::vector<uint8_t>> linkImage(const std::vector<std::string> &objects, bool amd,
                                       const std::string &tempDir) {
  FUSEC_TRY(TempDir dir, TempDir::create(tempDir));
  std::vector<std::string> args = {"ld.lld", "-shared", "--threads=1", "--no-undefined",
                                   "-Bsymbolic"};
  if (!amd)
    for (const char *a : {"-z", "rodynamic", "-z", "norelro", "-z", "noexecstack",
                          "--hash-style=sysv", "-s", "--build-id=none"})
      args.push_back(a);
  for (size_t i = 0; i < objects.size(); ++i) {
    std::string path = dir.path() + "/" + std::to_string(i) + ".o";
    FUSEC_CHECK(writeFile(path, objects[i]));
    args.push_back(path);
  }
  const std::string output = dir.path() + "/image";
  args.insert(args.end(), {"-o", output});
  std::vector<const char *> argv;
  for (const std::string &a : args)
    argv.push_back(a.c_str());
  std::string messages;
  {
    static std::mutex linker; // lld keeps its state in globals
    std::lock_guard lock(linker);
    llvm::raw_string_ostream out(messages);
    lld::Result r = lld::lldMain(argv, out, out, {{lld::Gnu, &lld::elf::link}});
    if (r.retCode != 0)
      return Diagnostic{Diag::InternalError, "linking kernels", messages};
  }
  FUSEC_TRY(std::vector<uint8_t> image, readFile(output));
  if (!amd)
    FUSEC_CHECK(checkCpuImage(image));
  return image;
}

Status checkCpuImage(const std::vector<uint8_t> &image) {
  using Elf = llvm::object::ELF64LE;
  auto bad = [](const std::string &what) {
    return Diagnostic{Diag::InternalError, "image of the kernels", what};
  };
  llvm::StringRef bytes(reinterpret_cast<const char *>(image.data()), image.size());
  auto file = llvm::object::ELFFile<Elf>::create(bytes);
  if (!file)
    return bad(llvm::toString(file.takeError()));
  if (file->getHeader().e_type != llvm::ELF::ET_DYN ||
      file->getHeader().e_machine != llvm::ELF::EM_X86_64)
    return bad("not an x86-64 shared object");
  auto segments = file->program_headers();
  if (!segments)
    return bad(llvm::toString(segments.takeError()));
  for (const auto &segment : *segments) {
    if (segment.p_type == llvm::ELF::PT_LOAD && (segment.p_flags & llvm::ELF::PF_W))
      return bad("a writable segment");
    if (segment.p_type == llvm::ELF::PT_TLS || segment.p_type == llvm::ELF::PT_INTERP)
      return bad("thread-local storage or an interpreter");
  }
  auto entries = file->dynamicEntries();
  if (!entries)
    return bad(llvm::toString(entries.takeError()));
  bool hash = false;
  for (const auto &entry : *entries)
    switch (entry.getTag()) {
    case llvm::ELF::DT_HASH: hash = true; break;
    case llvm::ELF::DT_NEEDED: return bad("a needed library");
    case llvm::ELF::DT_REL:
    case llvm::ELF::DT_RELA:
    case llvm::ELF::DT_RELR:
    case llvm::ELF::DT_JMPREL: return bad("dynamic relocations");
    case llvm::ELF::DT_INIT:
    case llvm::ELF::DT_FINI:
    case llvm::ELF::DT_INIT_ARRAY:
    case llvm::ELF::DT_FINI_ARRAY:
    case llvm::ELF::DT_PREINIT_ARRAY: return bad("initialisers");
    default: break;
    }
  if (!hash)
    return bad("no System V hash table");
  return success();
}

} // namespace fusec
