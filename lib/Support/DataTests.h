#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fusec {

/// What a size of the data is about that has to be 0: by how many elements something lies outside of what it may be.
enum class DataTest : uint8_t {
  Indices,  // along an axis, from its end where they are negative
  Declared, // sizes, off those that the model declares
  Lengths,  // of parts of an axis, from 0 to its size
  Places,   // indices from 0 on
  Writes,   // where rows are written into a cache, which has to hold all of them
  Pads,     // how many elements of an axis they repeat, which has to have these
  Counts,   // how many elements of an axis to take, from 0 to its size
  Turns,    // where rows are written into a cache that they go round, from 0 on
};
constexpr size_t kNumDataTests = 8;

/// A test for an ONNX node.
struct TestOfData {
  DataTest kind = DataTest::Indices;
  std::string node;
  bool operator==(const TestOfData &) const = default;
};

/// What the name of such a size ends with: ".outside".
std::string_view ending(DataTest test);
std::optional<DataTest> testByEnding(std::string_view size);
/// How texts and tools name it: "indices".
std::string_view name(DataTest test);
std::optional<DataTest> parseDataTest(std::string_view name);
/// What holds in a run that goes on: "indices of the data lie within their axis".
const char *heldText(DataTest test);
/// Why another run ends, whose test gives `off`.
std::string brokenText(DataTest test, int64_t off);

} // namespace fusec
