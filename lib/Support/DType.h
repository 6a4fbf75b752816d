#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace fusec {

/// Element types. The numeric values are stored in bundles (bundle_format.h) and must not change.
enum class DType : uint8_t {
  Bool = 0, // one byte, 0 or 1
  I8 = 1,
  I16 = 2,
  I32 = 3,
  I64 = 4,
  U8 = 5,
  U16 = 6,
  U32 = 7,
  U64 = 8,
  F16 = 9,
  BF16 = 10,
  F32 = 11,
  F64 = 12,
};
constexpr int kNumDTypes = 13;

/// Storage size of one element in bytes.
constexpr int64_t sizeInBytes(DType t) {
  constexpr int64_t table[kNumDTypes] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
  return table[static_cast<int>(t)];
}
constexpr bool isFloat(DType t) { return t >= DType::F16; }
constexpr bool isSigned(DType t) { return isFloat(t) || (t >= DType::I8 && t <= DType::I64); }
constexpr bool isInteger(DType t) { return t >= DType::I8 && t <= DType::U64; }

/// Textual name used in every IR: "f32", "i64", "bool", ...
constexpr std::string_view name(DType t) {
  constexpr std::string_view table[kNumDTypes] = {"bool", "i8",  "i16", "i32",  "i64", "u8", "u16",
                                                  "u32",  "u64", "f16", "bf16", "f32", "f64"};
  return table[static_cast<int>(t)];
}
std::optional<DType> parseDType(std::string_view text);

} // namespace fusec
