#include "Runtime/Executor.h"

#include "Runtime/Error.h"
#include "Runtime/Memory.h"

#include <cstring>

namespace fusec::rt {

template <typename T> fusert_status Executor::read(int32_t tensor, T &value) {
  if (hostMemory) {
    std::memcpy(&value, plan.addresses[tensor], sizeof value);
    return FUSERT_OK;
  }
  FUSERT_TRY(queue.copy(&value, plan.addresses[tensor], sizeof value, Direction::ToHost));
  return queue.finish();
}

fusert_status Executor::readBool(int32_t tensor, bool &value) {
  uint8_t byte = 0;
  FUSERT_TRY(read(tensor, byte));
  value = byte != 0;
  return FUSERT_OK;
}

fusert_status Executor::copies(const std::vector<PlanOutline::Copy> &list) {
  char *place = static_cast<char *>(plan.workspace);
  for (const PlanOutline::Copy &c : list) {
    const size_t bytes = plan.tensorBytes[c.from];
    if (bytes != plan.tensorBytes[c.to])
      return fail(FUSERT_INTERNAL, "a copy is between tensors of different sizes");
    if (!c.staged || bytes == 0)
      continue;
    FUSERT_TRY(queue.copy(place, plan.addresses[c.from], bytes, Direction::OnDevice));
    place += aligned(bytes);
  }
  place = static_cast<char *>(plan.workspace);
  for (const PlanOutline::Copy &c : list) {
    const size_t bytes = plan.tensorBytes[c.from];
    if (bytes == 0)
      continue;
    FUSERT_TRY(queue.copy(plan.addresses[c.to], c.staged ? place : plan.addresses[c.from], bytes,
                          Direction::OnDevice));
    if (c.staged)
      place += aligned(bytes);
  }
  return FUSERT_OK;
}

fusert_status Executor::runLoop(const PlanOutline::Node &node) {
  FUSERT_TRY(copies(node.before));
  int64_t trips = INT64_MAX;
  bool go = true;
  if (node.tripCount >= 0)
    FUSERT_TRY(read(node.tripCount, trips));
  if (node.condition >= 0)
    FUSERT_TRY(readBool(node.condition, go));
  for (int64_t i = 0; go && i < trips; ++i) {
    if (node.iteration >= 0) {
      if (hostMemory) {
        std::memcpy(plan.addresses[node.iteration], &i, sizeof i);
      } else {
        FUSERT_TRY(queue.copy(plan.addresses[node.iteration], &i, sizeof i, Direction::ToDevice));
        FUSERT_TRY(queue.finish()); // `i` changes
      }
    }
    FUSERT_TRY(run(node.thenNodes));
    if (node.nextCondition >= 0)
      FUSERT_TRY(readBool(node.nextCondition, go));
    FUSERT_TRY(copies(node.thenCopies));
  }
  return copies(node.after);
}

fusert_status Executor::run(const std::vector<PlanOutline::Node> &nodes) {
  for (const PlanOutline::Node &n : nodes) {
    if (n.kind == bundle::StepKind::Launch) {
      FUSERT_TRY(queue.launch(plan.launches[n.launch]));
    } else if (n.kind == bundle::StepKind::Loop) {
      FUSERT_TRY(runLoop(n));
    } else if (n.kind == bundle::StepKind::Size) {
      int64_t value = 0;
      FUSERT_TRY(read(n.tripCount, value));
      FUSERT_TRY(plan.setSize(static_cast<size_t>(n.segment), value, *sized));
    } else if (n.kind == bundle::StepKind::Where) {
      FUSERT_TRY(run(plan.isThen(n.where) ? n.thenNodes : n.elseNodes));
    } else {
      bool taken = false;
      FUSERT_TRY(readBool(n.condition, taken));
      FUSERT_TRY(run(taken ? n.thenNodes : n.elseNodes));
      FUSERT_TRY(copies(taken ? n.thenCopies : n.elseCopies));
    }
  }
  return FUSERT_OK;
}

} // namespace fusec::rt
