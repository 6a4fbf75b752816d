#pragma once
#include <string_view>

namespace fusec {

/// The end of the name of a size of the data that tests, in place of indices, by how much the data asks for other sizes
/// than the model declares.
inline constexpr std::string_view kTestsDeclared = ".declared";

} // namespace fusec
