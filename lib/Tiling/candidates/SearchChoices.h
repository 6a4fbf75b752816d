#pragma once
#include <string_view>

namespace fusec::tiling {

/// Something that the search may choose for a kernel's schedule, beside alternatives (Expr) and rules (Gir).
/// `fusec-opt --list-passes` prints the list, and `scripts/plan-table --fires` counts which of it is chosen where.
struct SearchChoice {
  std::string_view kind, name, summary;
};

constexpr SearchChoice kSearchChoices[] = {
    {"generator", "block-row", "a block for each sum, its units and lanes along the reduced axis"},
    {"generator", "column", "a lane for each sum, along the last axis that is kept"},
    {"generator", "columns", "lanes along sums whose terms lie side by side, units share a sum"},
    {"generator", "map", "vectors along the last axis of a map, or along all of them as one"},
    {"generator", "mm", "register tiles of a contraction"},
    {"generator", "mm-boxes", "as mm, with all that a tile's windows cover in shared memory once"},
    {"generator", "one-block", "equations without common rows in one block"},
    {"generator", "pack", "parts that need nothing of each other side by side in one grid"},
    {"generator", "phases", "parts one behind the other with a border between them"},
    {"generator", "rounds", "a scan whose steps all blocks take together"},
    {"generator", "row", "a unit for each sum, its lanes along the reduced axis"},
    {"generator", "scan", "all steps of a scan in one block"},
    {"generator", "scatter", "lanes along an axis whose points never meet"},
    {"generator", "scatter-rows", "a block for what never meets, no lanes"},
    {"generator", "select", "topk that finds one place after another, a unit for each row"},
    {"generator", "select-block", "as select, with a block for each row"},
    {"generator", "select-tiles", "topk by the first element of each tile of a row, on a CPU"},
    {"generator", "short-rows", "a lane for each sum, over rows copied to shared memory"},
    {"generator", "sort", "topk that puts each row in order in shared memory"},
    {"generator", "stitch", "equations over common rows, a block for each row"},
    {"generator", "stitch-lanes", "equations over common rows, a lane for each row"},
    {"generator", "stitch-units", "equations over common rows, a unit for each row"},
    {"generator", "thin",
     "few rows times a matrix whose rows lanes read side by side; units share a sum"},
    {"generator", "thin-rows", "few rows times a matrix that lies side by side along the sum"},
    {"generator", "transpose", "tiles of a map that reads along another axis than it writes"},
    {"generator", "tree",
     "nests over common rows, contractions among them, what they hand on in the block's memory"},
    {"generator", "tree-streamed", "as tree, with what a contraction sums made in its own loop"},
    {"generator", "tree-thin",
     "as tree, with few rows and a last contraction of which units share a sum"},
    {"generator", "turned", "a lane for each sum, along what lies side by side where it is read"},
    {"level", "register", "a value between two equations in a thread's registers"},
    {"level", "shared", "a value between two equations in the block's memory"},
    {"level", "global", "a value between two equations in device memory"},
    {"level", "raised", "values nearer than the generator has put them"},
    {"keep", "register of a read", "what a thread has read is not read again"},
    {"keep", "register of a store", "what a thread has stored is not read again"},
    {"keep", "shared of a read", "what a thread has read is kept in shared memory of its own"},
    {"keep", "shared of a store", "what a thread has stored is kept in shared memory of its own"},
    {"keep", "from phase to phase", "what a phase has read stays in registers for a later one"},
    {"keep", "from step to step", "what a step of rounds has read stays in registers for the next"},
    {"border", "barrier", "all blocks wait for all others"},
    {"border", "counters", "a block waits for those that make what it reads"},
};

/// The name of a generator of the list: no other one compiles. Schedules are named after it; behind a hyphen follows
/// what the search has made of them.
class GeneratorName {
public:
  consteval GeneratorName(const char *given) {
    const SearchChoice *choice = kSearchChoices;
    while (choice->kind != "generator" || choice->name != given)
      ++choice; // past the end it is no constant expression
    name = choice->name;
  }
  operator std::string_view() const { return name; }

private:
  std::string_view name;
};

} // namespace fusec::tiling
