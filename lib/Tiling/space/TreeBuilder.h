#pragma once
// Makes a schedule of one tree: nests of equations inside blocks of the rows that they share.
#include "Target/Target.h"
#include "Tiling/candidates/RegisterTiles.h"
#include "Tiling/candidates/ThinTiles.h"
#include "Tiling/space/TreeSpace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace fusec::tiling {

/// What is chosen of a tree.
struct TreeShape {
  int64_t rows = 1;           // of a block, along the innermost of rowAxes
  RegisterTile tile = {1, 1}; // at most so many vectors; on a GPU, of a thread
  /// By nest, where they have register tiles of their own, as on a CPU; empty: all have `tile`.
  std::vector<RegisterTile> tiles = {};
  int64_t depth = 1;                // of what is staged along a sum, on a GPU
  std::vector<int64_t> steps = {1}; // of the loops inside, the last one by one
  int64_t neighbours = 1;           // columns that a lane on a GPU has side by side, at most
  bool wideRows = false; // rows of tiles on a GPU begin at multiples of what a thread reads at once
  bool boxes = false;    // where a window slides, all that the tile's windows cover is staged, once
  int64_t outside = 1;   // points of a block along the last of the axes around the rows
  /// On a CPU, blocks copy what lanes read of the last nest's operands, where they use it again, as panels.
  bool panels = false;
  /// Columns of the last nest that a block makes, of all that the nests in front have made: MCFuser's h bound to
  /// blocks, each of which makes what it sums for itself. 0: all columns.
  int64_t columns = 0;
  /// On a GPU, units share the sums of the last nest, of whose rows a block has all: MCFuser's k split over units.
  std::optional<ThinTile> thin = std::nullopt;
  bool thinAlongSum = false; // lanes have neighbours along the sum, not along the columns
  /// Tiled nests that make what they sum in their own loop, tile by tile: MCFuser's n(k,.). The others find all of it
  /// in the block's memory. Positions among the nests.
  std::set<size_t> streamed = {};
  /// What a streamed nest reads of a turn is staged `depth` by `depth`: less of a block's memory, more barriers.
  bool partsOfTurn = false;
  /// Bytes of a block's memory for everything in it, live at the same time or not.
  int64_t room = std::numeric_limits<int64_t>::max();

  const RegisterTile &tileOf(size_t nest) const { return tiles.empty() ? tile : tiles[nest]; }
};

/// Makes one schedule; what it is given outlives it.
class TreeBuilder {
public:
  static constexpr int kThreads = 256; // of a block on a GPU

  TreeBuilder(const TreeSpace &tree, const Target &target, TreeShape shape);

  /// nullopt where what the nests hand on, or what is staged, is too much for a block's memory or a thread's registers.
  std::optional<Schedule> build();

private:
  AxisId axis(int loop) const { return axes[static_cast<size_t>(loop)]; }
  bool isStreamed(size_t nest) const { return shape.streamed.contains(nest); }

  /// Whether blocks share the columns of the nest.
  bool isOverBlocks(size_t nest) const { return shape.columns > 0 && nest + 1 == nests.size(); }
  /// The nest's columns that a block has, of which steps are made.
  int64_t columnsOfBlock(size_t nest) const;

  std::string nameOf(const std::vector<int> &loops) const;
  void addAxis(const std::vector<int> &loops);
  void addAxes();
  void groupNests();
  bool placeValues();
  MemLevel levelFor(TensorId tensor, int maker);
  std::vector<size_t> nestsReading(TensorId tensor) const;

  void addTiled(size_t nest, std::vector<TreeNode> &out);
  void addThin(const SpaceNest &nest, std::vector<TreeNode> &out);
  void addThinAlongSum(const SpaceNest &nest, std::vector<TreeNode> &out);
  GeneratorName nameOfTree() const;
  void addPlain(const SpaceNest &nest, std::vector<TreeNode> &out);
  std::vector<TreeNode> finishes(const SpaceNest &nest) const;

  /// The register tile of a nest: rows and columns beside those that loops around it step over.
  TreeNode overTile(const SpaceNest &nest, LeafNode leaf) const;
  /// On a GPU, the rows of a unit, or its columns where there are none.
  TreeNode inUnits(TreeNode child) const;
  /// On a GPU: `depth` steps of the sum at once.
  void stageTiles(const SpaceNest &nest, int reduced, int64_t depth, std::vector<TreeNode> &out);
  /// On a CPU: for `columns` of the nest.
  void stagePanels(const SpaceNest &nest, int64_t columns, std::vector<TreeNode> &out);
  bool stagePanel(const SpaceNest &nest, size_t read, int64_t columns, std::vector<TreeNode> &out);
  void stageBox(const SpaceNest &nest, size_t read, int64_t columns, std::vector<TreeNode> &out);
  Operand operandOf(int equation, size_t read, std::vector<LayoutDigit> digits, int64_t pad) const;
  void stage(Operand operand, std::vector<TreeNode> &out);
  /// Whether the block's memory has room for so many more, which are then its.
  bool takeShared(int64_t elements, int64_t elementBytes);
  void packConstants(const SpaceNest &nest);
  bool isPacked(const SpaceNest &nest, size_t read) const;
  /// Columns of a register tile, and of what a block does at once: all of a streamed nest's.
  int64_t columnsOf(size_t nest) const;
  int64_t widthOf(size_t nest) const;
  /// Columns that a lane has side by side: no more than a block, or what streams a nest's columns, has for all lanes.
  int64_t neighboursOf(size_t nest) const;

  const TreeSpace &tree;
  const LoopSpace &space;
  const std::vector<SpaceNest> &nests;
  const AxisGroups &rowAxes;
  const ScheduledProgram &program;
  const Target &target;
  TreeShape shape;
  Schedule schedule;
  AxisId m;                    // of the rows that a block has several of, if any
  AxisId around;               // of which a block has shape.outside points, if any
  std::vector<AxisId> axes;    // by loop of the space
  std::vector<size_t> nestOf;  // by equation
  std::vector<size_t> groupOf; // by nest: plain ones behind each other share the loop over rows
  std::map<TensorId, MemLevel> levels;
  int64_t sharedLeft = 0;
  bool fits = true;
  bool hasPanels = false;
  bool hasParts = false;       // of a turn
  bool unitsShareRows = false; // whether there are not as many rows for each unit
};

} // namespace fusec::tiling
