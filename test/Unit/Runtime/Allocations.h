#pragma once

namespace test {

/// How often this thread has taken memory by operator new (AllocationTest.cpp).
long allocations();

/// How often it does in `work`, once it has done that twice: a context keeps a plan for the shapes set and one for the
/// next ones.
template <typename F> long allocationsOf(F work) {
  work();
  work();
  const long before = allocations();
  work();
  return allocations() - before;
}

} // namespace test
