#pragma once
#include "Runtime/Error.h"

#include <algorithm>
#include <cstring>

/// Structs of the C API in any version of the header: the first member is struct_size.
namespace fusec::rt {

inline fusert_status nullArgument(const char *name) {
  return fail(FUSERT_INVALID_ARGUMENT, std::string("argument '") + name + "' is null");
}

/// The number in an enum of the API: a caller's may be none of the enumerators, which C++ must not read as one.
template <typename Enum> uint32_t bitsOf(const Enum &value) {
  uint32_t bits;
  static_assert(sizeof value == sizeof bits);
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// Copies a caller's option struct of any known size over the defaults.
template <typename T> fusert_status readOptions(const T *given, T &out, const char *name) {
  out = T{};
  if (given) {
    if (given->struct_size < sizeof(size_t) || given->struct_size > sizeof(T) + 1024)
      return fail(FUSERT_INVALID_ARGUMENT,
                  std::string(name) + ".struct_size is not that of a known version");
    const auto *bytes = reinterpret_cast<const unsigned char *>(given);
    for (size_t i = sizeof(T); i < given->struct_size; ++i)
      if (bytes[i] != 0)
        return fail(FUSERT_INVALID_ARGUMENT,
                    std::string(name) + " asks for something that this runtime is too old for");
    std::memcpy(static_cast<void *>(&out), given, std::min(given->struct_size, sizeof(T)));
  }
  out.struct_size = sizeof(T);
  return FUSERT_OK;
}

/// Fills a caller's info struct as far as it reaches.
template <typename T> fusert_status writeInfo(T info, T *out) {
  if (!out)
    return nullArgument("info");
  const size_t size = out->struct_size;
  if (size < sizeof(size_t) || size > sizeof(T) + 1024)
    return fail(FUSERT_INVALID_ARGUMENT, "info.struct_size is not that of a known version");
  info.struct_size = size;
  std::memcpy(static_cast<void *>(out), &info, std::min(size, sizeof(T)));
  return FUSERT_OK;
}

} // namespace fusec::rt
