#pragma once
#include "Bundle/Model.h"
#include "Runtime/MemoryPlan.h"

namespace fusec::rt {

/// What all plans of a program have in common, whatever the shapes are. Made once, and not changed behind that; numbers
/// stand for places in lists, of the outline or of the program.
struct PlanOutline {
  struct Copy {
    int32_t from, to;
    bool staged =
        false; // an earlier copy of the same list overwrites `from`, which waits in the workspace
  };
  struct Node {
    bundle::StepKind kind;
    int32_t launch = -1;  // of `launches`
    int32_t where = -1;   // of `wheres`
    int32_t segment = -1; // of `segments`: the one whose size is told
    int32_t condition = -1, tripCount = -1, iteration = -1, nextCondition = -1;
    std::vector<Node> thenNodes, elseNodes;
    std::vector<Copy> before, thenCopies, elseCopies, after;
  };
  struct Launched {
    const bundle::Step *step;
    int32_t choice; // of `choices`
    int32_t side;   // that it stands in
  };
  /// A step of which one list runs, decided when shapes are set. What stands in no such step is of side 0; the where of
  /// number w has the sides 2w + 1, of thenSteps, and 2w + 2, of elseSteps.
  struct Where {
    const bundle::Step *step;
    int32_t side; // that the step itself stands in
  };
  /// What can be worked out at the same time: when shapes are set, or when a run has told a size that data decides and
  /// knows those in front of it. A tensor, kernel or launch is in the last one of whose size it depends on.
  struct Segment {
    const bundle::Step *step = nullptr;         // that tells the size; null: shapes are set
    const bundle::DataSize *size = nullptr;     // that it tells
    std::vector<const bundle::DimRule *> rules; // to be tested when the size is known
    std::vector<int32_t> types, tensors, kernels, choices, launches;
    std::vector<int32_t> temps, outputs; // of the tensors
    Lifetimes lifetimes;                 // of temps
  };

  const bundle::Model *model = nullptr;
  const bundle::Program *program = nullptr;
  std::vector<Node> nodes;
  std::vector<Launched> launches;
  std::vector<Where> wheres;     // outer ones first
  std::vector<Segment> segments; // that of the shapes first, the others in the order of their steps
  std::vector<int32_t> segmentOf; // by tensor
  std::vector<int32_t> types;     // a tensor of each type and shape
  std::vector<int32_t> typeOf;    // by tensor: of `types`
  std::vector<const bundle::Step *>
      choices;                      // a launch of each list of guards, by which variants are chosen
  std::vector<int32_t> constants;   // tensors
  std::vector<bundle::Copy> copies; // all of them
  std::vector<std::vector<int32_t>>
      staged;                 // tensors of each list of copies that wait at the same time
  std::vector<bool> isNeeded; // by tensor: used whatever variants the launches of its segment have
  /// By tensor of an input or output: launches that some variant of takes it, and that wait for no size.
  std::vector<std::vector<int32_t>> takers;
};

/// Both outlive the outline.
PlanOutline outlineOf(const bundle::Model &model, const bundle::Program &program);

} // namespace fusec::rt
