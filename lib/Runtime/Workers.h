#pragma once
#include "Runtime/Device.h"
#include "Runtime/FpEnvironment.h"
#include "Runtime/ThreadPool.h"

namespace fusec::rt {

/// The threads that the work of one queue is spread over: the caller's pool or our own.
class Workers {
public:
  /// `most` bounds what the options ask for.
  void start(const QueueOptions &options, int32_t most);
  int32_t width() const { return reached; }
  /// In task `index`: a number that tends to be the same for the same thread in all jobs.
  int32_t home(int32_t index) const { return useOwn ? ThreadPool::numberOfThread() : index; }
  /// task(argument, i) for i in 0 .. count-1, with the floating point environment of kernels.
  template <typename Work> void parallel(int32_t count, Work &work) {
    run(
        count,
        [](void *argument, int32_t index) {
          FpEnvironment environment;
          (*static_cast<Work *>(argument))(index);
        },
        &work);
  }

private:
  void run(int32_t count, ThreadPool::Task task, void *argument);
  ThreadPool own;
  fusert_thread_pool given{};
  bool useOwn = true;
  int32_t reached = 1;
};

} // namespace fusec::rt
