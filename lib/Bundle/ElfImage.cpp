#include "Bundle/ElfImage.h"

#include "Support/Diag.h"

#include <elf.h>

#include <cstring>

namespace fusec::bundle {

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMaxSpan = uint64_t{1} << 31;
constexpr uint32_t kMaxSymbols = 1 << 20;

class Parser {
public:
  Parser(const uint8_t *bytes, size_t size, const std::string &where)
      : bytes(bytes), size(size), where(where) {}

  Result<ElfImage> run() {
    FUSEC_CHECK(header());
    FUSEC_CHECK(programHeaders());
    FUSEC_CHECK(dynamic());
    FUSEC_CHECK(symbols());
    return std::move(image);
  }

private:
  const uint8_t *bytes;
  const size_t size;
  const std::string &where;
  ElfImage image;
  Elf64_Ehdr ehdr{};
  Elf64_Phdr dynamicHeader{};
  uint64_t hash = 0, symtab = 0, strtab = 0, strBytes = 0;

  Diagnostic bad(std::string text) const {
    return Diagnostic{Diag::BadBundle, where, "machine code: " + std::move(text)};
  }
  template <typename T> bool readFile(uint64_t offset, T &out) const {
    if (offset > size || size - offset < sizeof(T))
      return false;
    std::memcpy(&out, bytes + offset, sizeof(T));
    return true;
  }
  /// Reads from the loaded address space; only bytes that come from the file.
  template <typename T> bool readMemory(uint64_t address, T &out) const {
    for (const ElfImage::Segment &s : image.segments)
      if (address >= s.address && address - s.address < s.fileBytes &&
          s.fileBytes - (address - s.address) >= sizeof(T))
        return readFile(s.fileOffset + (address - s.address), out);
    return false;
  }

  Status header() {
    if (!readFile(0, ehdr) || std::memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0)
      return bad("not an ELF file");
    if (ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
        ehdr.e_machine != EM_X86_64 || ehdr.e_type != ET_DYN || ehdr.e_version != EV_CURRENT)
      return bad("not an x86-64 shared object");
    if (ehdr.e_phentsize != sizeof(Elf64_Phdr) || ehdr.e_phnum == 0 || ehdr.e_phnum > 64)
      return bad("unusable program headers");
    return success();
  }

  Status programHeaders() {
    uint64_t end = 0; // first free page after the segments so far
    bool haveDynamic = false;
    for (int i = 0; i < ehdr.e_phnum; ++i) {
      Elf64_Phdr p;
      if (!readFile(ehdr.e_phoff + uint64_t{sizeof p} * i, p) || ehdr.e_phoff > size)
        return bad("program headers are outside the file");
      switch (p.p_type) {
      case PT_LOAD: {
        if (p.p_flags & PF_W)
          return bad("has a writable segment");
        if (p.p_filesz > p.p_memsz || p.p_offset > size || p.p_filesz > size - p.p_offset)
          return bad("a segment is outside the file");
        if (p.p_vaddr > kMaxSpan || p.p_memsz > kMaxSpan || p.p_vaddr < end)
          return bad("segments overlap or are too large");
        end = (p.p_vaddr + p.p_memsz + kPage - 1) / kPage * kPage;
        image.segments.push_back(
            {p.p_offset, p.p_filesz, p.p_vaddr, p.p_memsz, (p.p_flags & PF_X) != 0});
        break;
      }
      case PT_DYNAMIC:
        if (haveDynamic)
          return bad("two dynamic sections");
        haveDynamic = true;
        dynamicHeader = p;
        break;
      case PT_INTERP:
      case PT_TLS:
      case PT_GNU_RELRO:
        return bad("has an interpreter, thread-local storage or data to be relocated");
      case PT_GNU_STACK:
        if (p.p_flags & PF_X)
          return bad("asks for an executable stack");
        break;
      default: break; // headers and notes say nothing about loading
      }
    }
    if (image.segments.empty() || !haveDynamic || end == 0)
      return bad("has no segments or no dynamic section");
    image.spanBytes = end;
    return success();
  }

  Status dynamic() {
    for (uint64_t at = dynamicHeader.p_vaddr;; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn d;
      if (at - dynamicHeader.p_vaddr >= dynamicHeader.p_memsz || !readMemory(at, d))
        return bad("the dynamic section is cut off");
      switch (d.d_tag) {
      case DT_NULL: return success();
      case DT_HASH: hash = d.d_un.d_ptr; break;
      case DT_SYMTAB: symtab = d.d_un.d_ptr; break;
      case DT_STRTAB: strtab = d.d_un.d_ptr; break;
      case DT_STRSZ: strBytes = d.d_un.d_val; break;
      case DT_SYMENT:
        if (d.d_un.d_val != sizeof(Elf64_Sym))
          return bad("symbols of an unknown size");
        break;
      case DT_SONAME:
      case DT_GNU_HASH:
      case DT_FLAGS:
      case DT_FLAGS_1:
      case DT_SYMBOLIC: break;
      default:
        // Needed libraries, relocations, initialisers and all else that a loader would have to act on.
        return bad("the dynamic section has the entry " + std::to_string(d.d_tag) +
                   ", which is not allowed");
      }
    }
  }

  Status symbols() {
    uint32_t counts[2]; // buckets, chains = symbols
    if (hash == 0 || symtab == 0 || strtab == 0 || !readMemory(hash, counts) ||
        counts[1] > kMaxSymbols)
      return bad("no usable symbol table");
    for (uint32_t i = 1; i < counts[1]; ++i) {
      Elf64_Sym s;
      if (!readMemory(symtab + uint64_t{sizeof s} * i, s))
        return bad("the symbol table is cut off");
      if (s.st_shndx == SHN_UNDEF)
        return bad("has an undefined symbol");
      if (ELF64_ST_TYPE(s.st_info) != STT_FUNC)
        continue;
      std::string name;
      for (uint64_t at = s.st_name;; ++at) {
        char c;
        if (at >= strBytes || !readMemory(strtab + at, c))
          return bad("a symbol's name is cut off");
        if (c == 0)
          break;
        name.push_back(c);
      }
      bool inside = false;
      for (const ElfImage::Segment &g : image.segments)
        inside |= g.executable && s.st_value >= g.address && s.st_value - g.address < g.fileBytes;
      if (!inside)
        return bad("function '" + name + "' is outside the executable segments");
      if (!image.functions.emplace(name, s.st_value).second)
        return bad("function '" + name + "' stands twice");
    }
    return success();
  }
};

} // namespace

Result<ElfImage> parseElfImage(const uint8_t *bytes, size_t size, const std::string &where) {
  return Parser(bytes, size, where).run();
}

} // namespace fusec::bundle
