#pragma once
#include "Runtime/Model.h"

namespace fusec::rt {

/// The steps of a program with all that depends on shapes worked out: variants chosen, grids and sizes computed,
/// temporaries packed, argument lists laid out. Belongs to one context.
class ExecPlan {
public:
  struct Copy {
    int32_t from, to;
    size_t bytes;
    /// Offset in the workspace where `from` waits, when an earlier copy overwrites it.
    int64_t staging = -1;
  };
  struct Node {
    bundle::StepKind kind;
    int32_t launch = -1; // index into `launches`
    int32_t condition = -1, tripCount = -1, iteration = -1, nextCondition = -1;
    std::vector<Node> thenNodes, elseNodes;
    std::vector<Copy> before, thenCopies, elseCopies, after;
  };

  /// Replaces what was there; on failure the object is unusable. Where all outputs are empty nothing `runs`.
  fusert_status build(const bundle::Program &program, const std::vector<int64_t> &symbols,
                      bool runs);
  /// Sets the addresses of temporaries (null base: forget them) and constants.
  void bindWorkspace(const Model &model, void *base);
  void setAddress(int32_t tensor, void *p) {
    if (addresses[tensor] == p)
      return;
    addresses[tensor] = p;
    for (const Use &u : uses[tensor])
      launches[u.launch].buffers[u.index] = p;
  }

  std::vector<Node> nodes;
  std::vector<Launch> launches;
  std::vector<size_t> tensorBytes;
  std::vector<void *> addresses; // of each tensor
  size_t workspaceBytes = 0;
  void *workspace = nullptr;

private:
  struct Use {
    int32_t launch, index;
  };
  /// Clears the mark of each tensor that the nodes use.
  void markUsed(const std::vector<Node> &list, std::vector<bool> &isIdle) const;
  fusert_status buildNodes(const bundle::Program &program, const std::vector<bundle::Step> &steps,
                           std::vector<Node> &out);
  fusert_status buildLaunch(const bundle::Program &program, const bundle::Step &step, Node &node);
  fusert_status buildCopies(const bundle::Program &program, const std::vector<bundle::Copy> &list,
                            std::vector<Copy> &out);
  std::vector<int64_t> symbolValues;
  std::vector<std::vector<Use>> uses; // of each tensor
  std::vector<int64_t> tempOffsets;   // of each tensor, -1: not in the workspace
  size_t stagingBytes = 0;
};

} // namespace fusec::rt
