#pragma once
#include "Runtime/ExecPlan.h"

namespace fusec::rt {

/// Walks the nodes of a plan's outline. Branches, loops and sizes of the data are decided on the host.
class Executor {
public:
  /// `sized` for plans with sizes that runs compute.
  Executor(ExecPlan &plan, Queue &queue, bool hostMemory, SizedMemory *sized = nullptr)
      : plan(plan), queue(queue), hostMemory(hostMemory), sized(sized) {}
  fusert_status run() { return run(plan.outline.nodes); }

private:
  fusert_status run(const std::vector<PlanOutline::Node> &nodes);
  fusert_status runLoop(const PlanOutline::Node &node);
  /// As if all at once: a source that an earlier copy overwrites is put aside first.
  fusert_status copies(const std::vector<PlanOutline::Copy> &list);
  fusert_status readBool(int32_t tensor, bool &value);
  template <typename T> fusert_status read(int32_t tensor, T &value);

  ExecPlan &plan;
  Queue &queue;
  const bool hostMemory;
  SizedMemory *const sized;
};

} // namespace fusec::rt
