#pragma once
#include "Support/Diagnostic.h"

#include <cassert>
#include <optional>
#include <utility>
#include <variant>

namespace fusec {

/// A value or the diagnostics that say why there is none. Used for everything that a user's input can
/// cause; bugs are asserts.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state(std::move(value)) {}
  Result(Diagnostics errors) : state(std::move(errors)) {}
  Result(Diagnostic error) : state(Diagnostics{std::move(error)}) {}

  bool ok() const { return state.index() == 0; }
  explicit operator bool() const { return ok(); }
  T &value() {
    assert(ok());
    return std::get<0>(state);
  }
  const T &value() const {
    assert(ok());
    return std::get<0>(state);
  }
  T &operator*() { return value(); }
  const T &operator*() const { return value(); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &value(); }
  Diagnostics &errors() {
    assert(!ok());
    return std::get<1>(state);
  }
  const Diagnostics &errors() const {
    assert(!ok());
    return std::get<1>(state);
  }

private:
  std::variant<T, Diagnostics> state;
};

/// Success without a value.
struct Unit {};
using Status = Result<Unit>;
inline Status success() { return Unit{}; }

} // namespace fusec

#define FUSEC_CONCAT_(a, b) a##b
#define FUSEC_CONCAT(a, b) FUSEC_CONCAT_(a, b)
#define FUSEC_TRY_(tmp, decl, ...)                                                                 \
  auto tmp = (__VA_ARGS__);                                                                        \
  if (!tmp.ok())                                                                                   \
    return std::move(tmp.errors());                                                                \
  decl = std::move(tmp.value())
/// FUSEC_TRY(auto x, f(...)): propagates the diagnostics of a failed Result to the caller.
#define FUSEC_TRY(decl, ...) FUSEC_TRY_(FUSEC_CONCAT(tryResult, __LINE__), decl, __VA_ARGS__)
/// FUSEC_CHECK(f(...)): the same for a Status.
#define FUSEC_CHECK(...)                                                                           \
  do {                                                                                             \
    auto tryStatus = (__VA_ARGS__);                                                                \
    if (!tryStatus.ok())                                                                           \
      return std::move(tryStatus.errors());                                                        \
  } while (0)
