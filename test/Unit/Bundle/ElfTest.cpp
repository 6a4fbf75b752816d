#include "Bundle/ElfImage.h"
#include "TestModels.h"

#include <cstring>
#include <elf.h>

using namespace test;

namespace {

std::string refusal(const std::vector<uint8_t> &elf) {
  Result<ElfImage> r = parseElfImage(elf.data(), elf.size(), "b");
  return r.ok() ? "" : r.errors().front().text;
}

template <typename T> T *at(std::vector<uint8_t> &elf, uint64_t offset) {
  return reinterpret_cast<T *>(elf.data() + offset);
}

/// Calls f with each program header.
template <typename F> void eachSegment(std::vector<uint8_t> &elf, F f) {
  auto *h = at<Elf64_Ehdr>(elf, 0);
  for (int i = 0; i < h->e_phnum; ++i)
    f(*at<Elf64_Phdr>(elf, h->e_phoff + sizeof(Elf64_Phdr) * static_cast<size_t>(i)));
}

/// The dynamic section's file offset.
uint64_t dynamicOffset(std::vector<uint8_t> &elf) {
  uint64_t offset = 0;
  eachSegment(elf, [&](Elf64_Phdr &p) { offset = p.p_type == PT_DYNAMIC ? p.p_offset : offset; });
  return offset;
}

void refused(const std::string &text, const std::function<void(std::vector<uint8_t> &)> &edit) {
  std::vector<uint8_t> elf = kernelImage("x86-64-v1");
  edit(elf);
  const std::string said = refusal(elf);
  INFO("expected: " << text << "\ngot: " << said);
  CHECK(said.find(text) != std::string::npos);
}

} // namespace

TEST_CASE("an image that obeys the rules") {
  std::vector<uint8_t> elf = kernelImage("x86-64-v1");
  Result<ElfImage> r = parseElfImage(elf.data(), elf.size(), "b");
  INFO(refusal(elf));
  REQUIRE(r.ok());
  CHECK(r->functions.size() == 7);
  CHECK(r->functions.count("add") == 1);
}

TEST_CASE("images that a loader would have to trust are refused") {
  refused("not an ELF file", [](auto &e) { e = {1, 2, 3}; });
  refused("not an x86-64 shared object",
          [](auto &e) { at<Elf64_Ehdr>(e, 0)->e_machine = EM_AARCH64; });
  refused("not an x86-64 shared object", [](auto &e) { at<Elf64_Ehdr>(e, 0)->e_type = ET_EXEC; });
  refused("not an x86-64 shared object", [](auto &e) { e[EI_CLASS] = ELFCLASS32; });
  refused("unusable program headers", [](auto &e) { at<Elf64_Ehdr>(e, 0)->e_phnum = 0; });
  refused("outside the file", [](auto &e) { at<Elf64_Ehdr>(e, 0)->e_phoff = UINT64_MAX - 8; });
  refused("writable segment", [](auto &e) {
    eachSegment(e, [](Elf64_Phdr &p) {
      p.p_flags |= p.p_type == PT_LOAD && (p.p_flags & PF_X) ? PF_W : 0;
    });
  });
  refused("executable stack", [](auto &e) {
    eachSegment(e, [](Elf64_Phdr &p) { p.p_flags |= p.p_type == PT_GNU_STACK ? PF_X : 0; });
  });
  refused("interpreter", [](auto &e) {
    eachSegment(e,
                [](Elf64_Phdr &p) { p.p_type = p.p_type == PT_GNU_STACK ? PT_INTERP : p.p_type; });
  });
  refused("thread-local", [](auto &e) {
    eachSegment(e, [](Elf64_Phdr &p) { p.p_type = p.p_type == PT_GNU_STACK ? PT_TLS : p.p_type; });
  });
  refused("outside the file", [](auto &e) {
    eachSegment(
        e, [](Elf64_Phdr &p) { p.p_filesz = p.p_type == PT_LOAD ? UINT64_MAX / 2 : p.p_filesz; });
  });
  refused("overlap or are too large", [](auto &e) {
    eachSegment(
        e, [](Elf64_Phdr &p) { p.p_memsz = p.p_type == PT_LOAD ? UINT64_MAX / 2 : p.p_memsz; });
  });
  refused("overlap or are too large", [](auto &e) {
    eachSegment(e, [](Elf64_Phdr &p) { p.p_vaddr = p.p_type == PT_LOAD ? 0 : p.p_vaddr; });
  });
  for (int64_t tag : {DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_INIT, DT_INIT_ARRAY, DT_FINI, DT_RELA,
                      DT_JMPREL, DT_TEXTREL})
    refused("the dynamic section has the entry " + std::to_string(tag),
            [tag](auto &e) { at<Elf64_Dyn>(e, dynamicOffset(e))->d_tag = tag; });
}

TEST_CASE("symbols") {
  auto symbolTable = [](std::vector<uint8_t> &e) {
    for (auto *d = at<Elf64_Dyn>(e, dynamicOffset(e)); d->d_tag != DT_NULL; ++d)
      if (d->d_tag == DT_SYMTAB)
        return at<Elf64_Sym>(
            e, d->d_un.d_ptr); // the first segment is loaded where it lies in the file
    return static_cast<Elf64_Sym *>(nullptr);
  };
  refused("has an undefined symbol", [&](auto &e) { symbolTable(e)[1].st_shndx = SHN_UNDEF; });
  refused("outside the executable segments", [&](auto &e) { symbolTable(e)[1].st_value = 0; });
  refused("outside the executable segments",
          [&](auto &e) { symbolTable(e)[1].st_value = UINT64_MAX; });
  refused("name is cut off", [&](auto &e) { symbolTable(e)[1].st_name = UINT32_MAX; });
  refused("stands twice", [&](auto &e) { symbolTable(e)[1].st_name = symbolTable(e)[2].st_name; });
}

TEST_CASE("no change of one byte and no truncation makes the parser misbehave") {
  std::vector<uint8_t> elf = kernelImage("x86-64-v1");
  for (size_t i = 0; i < elf.size(); ++i)
    for (uint8_t mask : {0x01, 0x80, 0xff}) {
      elf[i] ^= mask;
      refusal(elf);
      elf[i] ^= mask;
    }
  for (size_t n = 0; n < elf.size(); ++n)
    refusal(std::vector<uint8_t>(elf.begin(), elf.begin() + static_cast<std::ptrdiff_t>(n)));
  CHECK(refusal(elf) == "");
}
