#include "Support/DataTests.h"

#include <array>

namespace fusec {
namespace {

struct Row {
  std::string_view name, ending;
  const char *held;
  std::string_view before, behind; // of how many elements it is, where it does not hold
};

constexpr std::array<Row, kNumDataTests> kRows = {{
    {"indices", ".outside", "indices of the data lie within their axis", "an index in the data is ",
     " outside the axis that it goes along; give indices from -size to size - 1"},
    {"declared", ".declared", "the data asks for what the model declares",
     "the data asks for a size that is ",
     " off the one that the model declares for the output; correct the declaration, or give data "
     "that asks for it"},
    {"lengths", ".lengths", "lengths of the data lie within their axis", "a length in the data is ",
     " below 0 or beyond the axis; give lengths from 0 to its size"},
    {"places", ".places", "indices of the data lie within what they go along",
     "an index in the data is ",
     " below 0 or beyond the end of what it goes along; give indices from 0 to its size - 1"},
    {"writes", ".writes", "rows are written within the cache, as the data says where",
     "rows are written where they are ",
     " outside the cache; give indices from 0 to its size less the number of rows"},
    {"pads", ".pads", "pads of the data repeat elements that there are",
     "a pad in the data asks for ",
     " more than are left of its axis; leave an element of it, with mode reflect one more than the "
     "pads add"},
    {"counts", ".counts", "counts of the data lie within their axis", "a count in the data is ",
     " outside what its axis has; give counts from 0 to its size"},
    {"turns", ".turns", "rows of the data go round a cache from one of its places",
     "a place in the data is ", " below 0; give places from 0 on"},
}};

const Row &rowOf(DataTest test) { return kRows[static_cast<size_t>(test)]; }

} // namespace

std::string_view ending(DataTest test) { return rowOf(test).ending; }

std::optional<DataTest> testByEnding(std::string_view size) {
  for (size_t i = 0; i < kRows.size(); ++i)
    if (size.ends_with(kRows[i].ending))
      return static_cast<DataTest>(i);
  return std::nullopt;
}

std::string_view name(DataTest test) { return rowOf(test).name; }

std::optional<DataTest> parseDataTest(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].name == name)
      return static_cast<DataTest>(i);
  return std::nullopt;
}

const char *heldText(DataTest test) { return rowOf(test).held; }

std::string brokenText(DataTest test, int64_t off) {
  return std::string(rowOf(test).before) + std::to_string(off) +
         (off == 1 ? " element" : " elements") + std::string(rowOf(test).behind);
}

} // namespace fusec
