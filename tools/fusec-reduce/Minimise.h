#pragma once
#include <functional>
#include <vector>

namespace fusec::reduce {

/// For each part of a list, true if it stays.
using Choice = std::vector<bool>;

/// Delta debugging: drops runs of parts, half of the list first and single ones last, for as long as what is left is
/// still interesting. The whole list is. In the end no single part can go. Deterministic.
Choice minimise(size_t count, const std::function<bool(const Choice &)> &isInteresting);

} // namespace fusec::reduce
