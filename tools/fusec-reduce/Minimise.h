#pragma once
#include <functional>
#include <vector>

namespace fusec::reduce {

/// Which parts of a list stay.
using Kept = std::vector<bool>;

/// Delta debugging: drops runs of parts, half of the list first and single ones last, for as long as what is left is
/// still interesting. The whole list is. In the end no single part can go. Deterministic.
Kept minimise(size_t count, const std::function<bool(const Kept &)> &isInteresting);

} // namespace fusec::reduce
