// Constants in other layouts, whole and in pieces.
#include "Gir/PackedConstant.h"
#include "Support/Diag.h"

#include <catch2/catch_all.hpp>
#include <cstring>
#include <numeric>

using namespace fusec;

namespace {

/// A source of elements 1, 2, 3, ... so that padding shows.
template <typename T> ConstantRef counted(DType type, std::vector<int64_t> dims) {
  int64_t count = 1;
  for (int64_t d : dims)
    count *= d;
  std::vector<T> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), T(1));
  std::vector<uint8_t> data(values.size() * sizeof(T));
  std::memcpy(data.data(), values.data(), data.size());
  return makeConstant(type, std::move(dims), std::move(data));
}

/// Element by element, from the definition.
template <typename T> std::vector<T> oneByOne(const PackedConstant &packed) {
  std::vector<T> out;
  for (int64_t e = 0; e < packed.numElements(); ++e) {
    std::vector<int64_t> value(packed.axisExtents.size());
    int64_t place = packed.base, rest = e;
    for (size_t d = packed.digits.size(); d-- > 0; rest /= packed.digits[d].extent) {
      const int64_t at = rest % packed.digits[d].extent;
      value[static_cast<size_t>(packed.digits[d].axis)] += at * packed.digits[d].step;
      place += at * packed.digits[d].stride;
    }
    bool inside = true;
    for (size_t a = 0; a < value.size(); ++a)
      inside = inside && value[a] < packed.axisExtents[a];
    out.push_back(inside ? packed.source->as<T>()[place] : T(0));
  }
  return out;
}

template <typename T> std::vector<T> pieces(const PackedConstant &packed, int64_t length) {
  std::vector<T> out(static_cast<size_t>(packed.numElements()));
  const auto count = packed.numElements();
  for (int64_t from = 0; from < count; from += length)
    packed.write(from, std::min(length, count - from),
                 reinterpret_cast<uint8_t *>(out.data() + from));
  return out;
}

/// [k, n] as panels of 16 columns, columns and rows padded: [n/16, k/4, 16, 4].
PackedConstant panels(ConstantRef source, bool isTransposed) {
  const int64_t k = source->dims[isTransposed ? 1 : 0], n = source->dims[isTransposed ? 0 : 1];
  const int64_t ofK = isTransposed ? 1 : n, ofN = isTransposed ? k : 1;
  PackedConstant packed;
  packed.digits = {{0, (n + 15) / 16, 16, 16 * ofN},
                   {1, (k + 3) / 4, 4, 4 * ofK},
                   {0, 16, 1, ofN},
                   {1, 4, 1, ofK}};
  packed.axisExtents = {n, k};
  packed.source = std::move(source);
  return packed;
}

template <typename T> void checkPanels(DType type) {
  for (bool isTransposed : {false, true}) {
    const PackedConstant packed = panels(counted<T>(type, {19, 37}), isTransposed);
    const std::vector<T> expected = oneByOne<T>(packed);
    for (int64_t length : {1, 3, 64, 100, 100000})
      CHECK(pieces<T>(packed, length) == expected);
    const ConstantRef whole = makeWhole(packed, {packed.numElements()});
    CHECK(std::memcmp(whole->bytes, expected.data(), expected.size() * sizeof(T)) == 0);
  }
}

} // namespace

TEST_CASE("packed constant: pieces are those of the definition, for elements of every size") {
  checkPanels<uint8_t>(DType::U8);
  checkPanels<uint16_t>(DType::U16);
  checkPanels<float>(DType::F32);
  checkPanels<int64_t>(DType::I64);
}

TEST_CASE("packed constant: a walk backwards, and one with an offset") {
  PackedConstant packed;
  packed.source = counted<float>(DType::F32, {6, 10});
  packed.base = 59;
  packed.digits = {{0, 3, 2, -20}, {1, 10, 1, -1}, {0, 2, 1, -10}};
  packed.axisExtents = {5, 10};
  CHECK(pieces<float>(packed, 7) == oneByOne<float>(packed));
}

TEST_CASE("packed constant: no more than some megabytes are alive, and any number of threads gives "
          "the same") {
  const PackedConstant packed = panels(counted<float>(DType::F32, {1000, 2101}), true);
  const std::vector<float> expected = oneByOne<float>(packed);
  for (int threads : {1, 2, 5}) {
    std::vector<uint8_t> all;
    size_t most = 0;
    REQUIRE(giveInPieces(packed, threads, [&](const uint8_t *bytes, size_t n) {
              all.insert(all.end(), bytes, bytes + n);
              most = std::max(most, n);
              return success();
            }).ok());
    CHECK(most <= static_cast<size_t>(threads) << 21);
    REQUIRE(all.size() == expected.size() * sizeof(float));
    CHECK(std::memcmp(all.data(), expected.data(), all.size()) == 0);
  }
}

TEST_CASE("packed constant: what the reader of the pieces says ends it") {
  const PackedConstant packed = panels(counted<float>(DType::F32, {1000, 2101}), false);
  int asked = 0;
  const Status status = giveInPieces(packed, 1, [&](const uint8_t *, size_t) -> Status {
    ++asked;
    return Diagnostic{Diag::CannotWrite, "x", "full"};
  });
  CHECK(!status.ok());
  CHECK(asked == 1);
}
