// The metadata of AMD code objects: a MessagePack document in an ELF note (guide of LLVM's AMDGPU back end,
// "Code Object V5 Metadata").
#include "Codegen/AMDGPU/CodeObject.h"

#include "Codegen/Resources.h"
#include "Support/Diag.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/Object/ELF.h"

#include <algorithm>

namespace fusec {
namespace {

using Elf = llvm::object::ELF64LE;
using llvm::msgpack::DocNode;
using llvm::msgpack::Document;

constexpr size_t kHeaderBytes = 12; // sizes of name and description, type
constexpr llvm::StringRef kName("AMDGPU\0", 7);
constexpr size_t kNameBytes = 8;
constexpr llvm::StringLiteral kKernels("amdhsa.kernels");

struct Segment {
  size_t header; // its place among the program headers, in bytes
  size_t begin, bytes;
  std::vector<llvm::StringRef> documents;
};

llvm::StringRef bytesOf(const std::vector<uint8_t> &object) {
  return {reinterpret_cast<const char *>(object.data()), object.size()};
}

/// The segment that holds the metadata. Empty for what is none of our code objects.
Segment metadataOf(const std::vector<uint8_t> &object) {
  auto file = llvm::object::ELFFile<Elf>::create(bytesOf(object));
  if (!file) {
    llvm::consumeError(file.takeError());
    return {};
  }
  auto segments = file->program_headers();
  if (!segments) {
    llvm::consumeError(segments.takeError());
    return {};
  }
  for (const auto &segment : *segments) {
    if (segment.p_type != llvm::ELF::PT_NOTE)
      continue;
    Segment found = {
        static_cast<size_t>(reinterpret_cast<const uint8_t *>(&segment) - object.data()),
        segment.p_offset,
        segment.p_filesz,
        {}};
    llvm::Error error = llvm::Error::success();
    for (const auto &note : file->notes(segment, error))
      if (note.getName() == "AMDGPU" && note.getType() == llvm::ELF::NT_AMDGPU_METADATA)
        found.documents.push_back(note.getDescAsStringRef(4));
    if (error)
      llvm::consumeError(std::move(error));
    if (!found.documents.empty())
      return found;
  }
  return {};
}

/// The list of kernels grows; what else stands in both is the same in both.
int join(DocNode *into, DocNode from, DocNode key) {
  if (into->isArray() && from.isArray())
    return key.isString() && key.getString() == kKernels ? static_cast<int>(into->getArray().size())
                                                         : 0;
  if (into->isMap() && from.isMap())
    return 0;
  return *into == from ? 0 : -1;
}

int64_t numberOf(llvm::msgpack::MapDocNode &map, llvm::StringRef key) {
  auto at = map.find(key);
  if (at == map.end())
    return 0;
  if (at->second.getKind() == llvm::msgpack::Type::UInt)
    return static_cast<int64_t>(at->second.getUInt());
  return at->second.getKind() == llvm::msgpack::Type::Int ? at->second.getInt() : 0;
}

} // namespace

Status mergeMetadata(std::vector<uint8_t> &object) {
  const Segment segment = metadataOf(object);
  if (segment.documents.size() < 2)
    return success();
  const auto wrong = [](const std::string &what) {
    return Diagnostic{Diag::InternalError, "image of the kernels", what};
  };
  Document all;
  for (size_t i = 0; i < segment.documents.size(); ++i)
    if (!all.readFromBlob(segment.documents[i], false, join))
      return wrong("metadata of two kernels cannot be joined");
  std::string description;
  all.writeToBlob(description);
  std::string note;
  for (const uint32_t word :
       {static_cast<uint32_t>(kName.size()), static_cast<uint32_t>(description.size()),
        static_cast<uint32_t>(llvm::ELF::NT_AMDGPU_METADATA)})
    for (int byte = 0; byte < 4; ++byte)
      note += static_cast<char>(word >> (8 * byte) & 0xff);
  note += kName.str();
  note.resize(kHeaderBytes + kNameBytes);
  note += description;
  note.resize((note.size() + 3) / 4 * 4);
  if (note.size() > segment.bytes)
    return wrong("joined metadata is larger than its parts");
  // Nothing moves: the segment and its section end earlier.
  using Header = Elf::Phdr;
  std::fill_n(object.begin() + static_cast<ptrdiff_t>(segment.begin), segment.bytes, uint8_t{0});
  std::copy(note.begin(), note.end(), object.begin() + static_cast<ptrdiff_t>(segment.begin));
  auto *header = reinterpret_cast<Header *>(object.data() + segment.header);
  header->p_filesz = note.size();
  header->p_memsz = note.size();
  auto file = llvm::object::ELFFile<Elf>::create(bytesOf(object));
  if (!file)
    return wrong(llvm::toString(file.takeError()));
  auto sections = file->sections();
  if (!sections)
    return wrong(llvm::toString(sections.takeError()));
  for (const auto &section : *sections)
    if (section.sh_type == llvm::ELF::SHT_NOTE && section.sh_offset == segment.begin)
      const_cast<Elf::Shdr &>(section).sh_size = note.size();
  return success();
}

std::vector<EntryResources> codeObjectResources(const std::vector<uint8_t> &object) {
  std::vector<EntryResources> list;
  for (llvm::StringRef text : metadataOf(object).documents) {
    Document document;
    if (!document.readFromBlob(text, false) || !document.getRoot().isMap())
      continue;
    auto &root = document.getRoot().getMap();
    auto kernels = root.find(kKernels);
    if (kernels == root.end() || !kernels->second.isArray())
      continue;
    for (DocNode &node : kernels->second.getArray()) {
      auto &kernel = node.getMap();
      EntryResources r;
      r.entry = kernel[".name"].getString().str();
      r.registers = static_cast<int>(numberOf(kernel, ".vgpr_count"));
      r.scalarRegisters = static_cast<int>(numberOf(kernel, ".sgpr_count"));
      constexpr int64_t kRegisterBytes = 4;
      r.spillStores = r.spillLoads = kRegisterBytes * (numberOf(kernel, ".vgpr_spill_count") +
                                                       numberOf(kernel, ".sgpr_spill_count"));
      r.stackBytes = numberOf(kernel, ".private_segment_fixed_size");
      r.sharedBytes = numberOf(kernel, ".group_segment_fixed_size");
      list.push_back(std::move(r));
    }
  }
  std::sort(list.begin(), list.end(),
            [](const EntryResources &a, const EntryResources &b) { return a.entry < b.entry; });
  return list;
}

} // namespace fusec
