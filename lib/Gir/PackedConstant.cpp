#include "Gir/PackedConstant.h"
#include "Support/AtOnce.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace fusec {

namespace {

constexpr int64_t kPieceBytes = int64_t(2) << 20; // of one thread

template <typename T> void gather(const uint8_t *from, int64_t stride, int64_t count, uint8_t *to) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * sizeof(T), from + i * stride * static_cast<int64_t>(sizeof(T)), sizeof(T));
}

void gather(int64_t elementBytes, const uint8_t *from, int64_t stride, int64_t count, uint8_t *to) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count * elementBytes));
    return;
  }
  switch (elementBytes) {
  case 1: return gather<uint8_t>(from, stride, count, to);
  case 2: return gather<uint16_t>(from, stride, count, to);
  case 4: return gather<uint32_t>(from, stride, count, to);
  default: assert(elementBytes == 8); return gather<uint64_t>(from, stride, count, to);
  }
}

} // namespace

int64_t PackedConstant::numElements() const {
  int64_t count = 1;
  for (const Digit &digit : digits)
    count *= digit.extent;
  return count;
}

void PackedConstant::write(int64_t first, int64_t count, uint8_t *to) const {
  if (count == 0)
    return;
  const Digit &inner = digits.back();
  const int64_t size = sizeInBytes(source->type);
  std::vector<int64_t> at(digits.size());
  for (size_t d = digits.size(); d-- > 0; first /= digits[d].extent)
    at[d] = first % digits[d].extent;
  std::vector<int64_t> value(axisExtents.size());
  while (count > 0) {
    std::fill(value.begin(), value.end(), 0);
    int64_t place = base;
    for (size_t d = 0; d < digits.size(); ++d) {
      value[static_cast<size_t>(digits[d].axis)] += at[d] * digits[d].step;
      place += at[d] * digits[d].stride;
    }
    const int64_t run = std::min(count, inner.extent - at.back());
    int64_t inside = run;
    for (size_t a = 0; a < value.size(); ++a)
      if (value[a] >= axisExtents[a])
        inside = 0;
    const int64_t left =
        axisExtents[static_cast<size_t>(inner.axis)] - value[static_cast<size_t>(inner.axis)];
    if (inside > 0 && inner.step > 0)
      inside = std::min(inside, (left + inner.step - 1) / inner.step);
    if (inside > 0)
      gather(size, source->bytes + place * size, inner.stride, inside, to);
    std::memset(to + inside * size, 0, static_cast<size_t>((run - inside) * size));
    to += run * size;
    count -= run;
    at.back() += run;
    for (size_t d = digits.size() - 1; d > 0 && at[d] == digits[d].extent; --d) {
      at[d] = 0;
      ++at[d - 1];
    }
  }
}

Status giveInPieces(const PackedConstant &packed, int threads, const TakeBytes &take) {
  const int64_t size = sizeInBytes(packed.source->type), elements = packed.numElements();
  const int64_t piece = kPieceBytes / size;
  const int64_t pieces = std::min<int64_t>(std::max(threads, 1), (elements + piece - 1) / piece);
  std::vector<uint8_t> made(static_cast<size_t>(std::min(elements, pieces * piece) * size));
  for (int64_t first = 0; first < elements; first += pieces * piece) {
    const int64_t end = std::min(elements, first + pieces * piece);
    const auto now = static_cast<size_t>((end - first + piece - 1) / piece);
    forEachAtOnce(now, threads, [&](size_t i) {
      const int64_t from = static_cast<int64_t>(i) * piece;
      packed.write(first + from, std::min(piece, end - first - from), made.data() + from * size);
    });
    FUSEC_CHECK(take(made.data(), static_cast<size_t>((end - first) * size)));
  }
  return success();
}

ConstantRef makeWhole(const PackedConstant &packed, std::vector<int64_t> dims) {
  std::vector<uint8_t> data(static_cast<size_t>(packed.sizeBytes()));
  packed.write(0, packed.numElements(), data.data());
  return makeConstant(packed.source->type, std::move(dims), std::move(data));
}

} // namespace fusec
