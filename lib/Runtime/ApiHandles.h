#pragma once
// What the functions of the C API begin with: the objects behind handles, and no exception that leaves.
#include "Runtime/Context.h"
#include "Runtime/Error.h"
#include "Runtime/Handles.h"

#include <new>

namespace fusec::rt {

Handles<Model, 0x4d> &models();
Handles<Context, 0x43> &contexts();

template <typename F> fusert_status guarded(F f) {
  try {
    return f();
  } catch (const std::bad_alloc &) {
    return fail(FUSERT_NO_MEMORY, "out of memory");
  } catch (const std::exception &e) {
    return fail(FUSERT_INTERNAL, e.what());
  } catch (...) {
    return fail(FUSERT_INTERNAL, "unknown exception");
  }
}

template <typename F> fusert_status withModel(fusert_model handle, F f) {
  return guarded([&]() -> fusert_status {
    std::shared_ptr<Model> m = models().get(handle);
    if (!m)
      return fail(FUSERT_INVALID_HANDLE, "not a loaded model");
    return f(m);
  });
}

template <typename F> fusert_status withContext(fusert_context handle, F f) {
  return guarded([&]() -> fusert_status {
    std::shared_ptr<Context> c = contexts().get(handle);
    if (!c)
      return fail(FUSERT_INVALID_HANDLE, "not a context");
    if (c->busy.exchange(true, std::memory_order_acquire))
      return fail(FUSERT_BUSY, "the context is in use by another call");
    struct Release {
      std::atomic<bool> &busy;
      ~Release() { busy.store(false, std::memory_order_release); }
    } release{c->busy};
    return f(*c);
  });
}

inline fusert_status noSuch(const char *what, size_t index) {
  return fail(FUSERT_INVALID_ARGUMENT,
              std::string("there is no ") + what + " number " + std::to_string(index));
}

inline fusert_status checkSymbolCount(const Model &model, size_t count) {
  if (const size_t wanted = bundle::numGiven(model.content); count != wanted)
    return fail(FUSERT_INVALID_ARGUMENT, "the model has " + std::to_string(wanted) +
                                             " symbols, given are " + std::to_string(count));
  return FUSERT_OK;
}

} // namespace fusec::rt
