#pragma once
#include <string_view>

namespace fusec {

// Sizes of the data that must be 0 in a run: by how much something that the data says lies outside of what it may be.
// What that is, their names end with.

/// Indices, outside the axis that they go along.
inline constexpr std::string_view kTestsIndices = ".outside";
/// Sizes, off those that the model declares.
inline constexpr std::string_view kTestsDeclared = ".declared";

} // namespace fusec
