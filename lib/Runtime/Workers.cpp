#include "Runtime/Workers.h"

#include <algorithm>

namespace fusec::rt {

void Workers::start(const QueueOptions &options, int32_t most) {
  useOwn = options.ownPool;
  given = options.pool;
  const int32_t wanted = !useOwn               ? given.width
                         : options.threads > 0 ? options.threads
                                               : availableProcessors();
  reached = std::clamp(wanted, 1, most);
  if (useOwn)
    reached = own.start(reached);
}

void Workers::run(int32_t count, ThreadPool::Task task, void *argument) {
  if (useOwn)
    own.parallel(count, task, argument);
  else
    given.parallel(given.user, count, task, argument);
}

} // namespace fusec::rt
