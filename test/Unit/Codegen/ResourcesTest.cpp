// What assemblers say of entries, and what follows from it.
#include "Codegen/Images.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>

using namespace fusec;

TEST_CASE("what ptxas -v prints, by the names of entries") {
  const std::vector<EntryResources> list = parsePtxasLog(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to ill formed pipeline stage in the function 'k_2_p0'\n"
      "ptxas info    : Compiling entry function 'k_2_p0' for 'sm_90'\n"
      "ptxas info    : Function properties for k_2_p0\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 0 barriers\n"
      "ptxas info    : Compile time = 22.731 ms\n"
      "ptxas info    : Compiling entry function 'k_1_grid' for 'sm_90'\n"
      "ptxas info    : Function properties for k_1_grid\n"
      "    192 bytes stack frame, 188 bytes spill stores, 344 bytes spill loads\n"
      "ptxas info    : Used 128 registers, used 1 barriers, 192 bytes cumulative stack size, 8384 "
      "bytes smem");
  REQUIRE(list.size() == 2);
  EntryResources grid;
  grid.entry = "k_1_grid";
  grid.registers = 128;
  grid.barriers = 1;
  grid.sharedBytes = 8384;
  grid.stackBytes = 192;
  grid.spillStores = 188;
  grid.spillLoads = 344;
  CHECK(list[0] == grid);
  EntryResources other;
  other.entry = "k_2_p0";
  other.registers = 32;
  other.remarks = {"C7510: Potential Performance Loss: wgmma.mma_async instructions are serialized "
                   "due to ill formed pipeline stage in the function 'k_2_p0'"};
  CHECK(list[1] == other);
}

TEST_CASE("registers are capped for residency only where they suffice") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "fusec-caps";
  std::filesystem::create_directories(folder);
  const std::string tool = folder / "ptxas";
  // Entries with a cap spill, but for k_2.
  std::ofstream(tool) << R"(#!/bin/sh
PATH=/usr/bin:/bin
case "$*" in --version) echo "release 12.4, V12.4.1"; exit 0 ;; esac
while [ $# -gt 0 ]; do
  case "$1" in -o) out=$2 ;; *.ptx) in=$1 ;; esac
  shift
done
cp "$in" "$out"
tr '\n' ' ' < "$in" | tr '}' '\n' | while read -r entry; do
  name=$(echo "$entry" | sed 's/.*entry \([a-z0-9_]*\)(.*/\1/')
  bytes=0
  case "$entry" in *k_2_grid*) ;; *minnctapersm*) bytes=8 ;; esac
  echo "ptxas info    : Compiling entry function '$name' for 'sm_90'"
  echo "    8 bytes stack frame, $bytes bytes spill stores, $bytes bytes spill loads"
done
)";
  std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  const auto entry = [](const std::string &name, bool capped) {
    return ".visible .entry " + name + "(\n)\n.maxntid 256, 1, 1\n" +
           (capped ? ".minnctapersm 3\n" : "") + "{\nret;\n}\n";
  };
  const std::string head = ".version 8.0\n.target sm_90\n.address_size 64\n";
  CodegenOptions options;
  options.ptxasPath = tool;
  auto images =
      ptxImages({head + entry("k_1_p0", false) + entry("k_1_grid", true) + entry("k_2_grid", true)},
                *lookupTarget("sm_90"), options);
  REQUIRE(images);
  const std::string wanted =
      head + entry("k_1_p0", false) + entry("k_1_grid", false) + entry("k_2_grid", true);
  for (const CodeImage &image : *images)
    CHECK(std::string(image.bytes.begin(), image.bytes.end()) == wanted);
  for (const EntryResources &r : images->front().resources)
    CHECK(r.spillStores == 0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("what is no log, and no code object, has no entries") {
  CHECK(parsePtxasLog("").empty());
  CHECK(parsePtxasLog("Used 3 registers\n(C7510) without a name\nbytes stack frame").empty());
  CHECK(codeObjectResources({}).empty());
  CHECK(codeObjectResources({0x7f, 'E', 'L', 'F', 2, 1, 1}).empty());
}
