#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

/// What the machine code of one entry point takes on a GPU, as those who made it say.
struct EntryResources {
  std::string entry;       // "k_1_p0", "k_1_grid"
  int registers = 0;       // of a thread, of 32 bits each; AMD: vector registers
  int scalarRegisters = 0; // AMD: of a wave
  /// Bytes of a thread that instructions store to memory, and load again, since registers do not suffice. AMD tells how
  /// many registers these are, once for both.
  int64_t spillStores = 0, spillLoads = 0;
  int64_t stackBytes = 0;  // memory that a thread has for itself, spills included
  int64_t sharedBytes = 0; // of a block
  int barriers = 0;        // NVIDIA: hardware barriers of a block
  /// What the assembler thinks slow: "C7510: Potential Performance Loss: ...".
  std::vector<std::string> remarks;
  friend bool operator==(const EntryResources &, const EntryResources &) = default;
};

/// What `ptxas -v` prints, in the order of entries' names: with several threads its own order differs from run to run.
std::vector<EntryResources> parsePtxasLog(std::string_view log);

/// From the metadata of an AMD code object, in the same order. An object without any has no entries.
std::vector<EntryResources> codeObjectResources(const std::vector<uint8_t> &object);

} // namespace fusec
