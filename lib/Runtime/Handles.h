#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace fusec::rt {

/// Objects behind numbers: kind (8 bits), generation (24 bits), index + 1 (32 bits). A number is never valid again
/// once its object is removed (a slot is given up after 2^24 uses), and none is 0.
template <typename T, uint8_t Kind> class Handles {
public:
  uint64_t add(std::shared_ptr<T> object) {
    std::lock_guard lock(mutex);
    uint32_t index;
    if (!freeSlots.empty()) {
      index = freeSlots.back();
      freeSlots.pop_back();
    } else {
      index = static_cast<uint32_t>(slots.size());
      slots.push_back({});
      freeSlots.reserve(slots.size()); // remove() cannot fail
    }
    slots[index].object = std::move(object);
    return id(index);
  }
  std::shared_ptr<T> get(uint64_t handle) {
    std::lock_guard lock(mutex);
    Slot *s = find(handle);
    return s ? s->object : nullptr;
  }
  /// The object, no longer in the table; null when the handle was not valid.
  std::shared_ptr<T> remove(uint64_t handle) {
    std::lock_guard lock(mutex);
    Slot *s = find(handle);
    if (!s)
      return nullptr;
    std::shared_ptr<T> out = std::move(s->object);
    s->object.reset();
    if (++s->generation < (1u << 24))
      freeSlots.push_back(static_cast<uint32_t>(s - slots.data()));
    return out;
  }

private:
  struct Slot {
    std::shared_ptr<T> object;
    uint32_t generation = 0;
  };
  uint64_t id(uint32_t index) const {
    return uint64_t{Kind} << 56 | uint64_t{slots[index].generation} << 32 | (uint64_t{index} + 1);
  }
  Slot *find(uint64_t handle) {
    const uint64_t index = (handle & 0xffffffffu) - 1;
    if (index >= slots.size() || !slots[index].object || id(static_cast<uint32_t>(index)) != handle)
      return nullptr;
    return &slots[index];
  }
  std::mutex mutex;
  std::vector<Slot> slots;
  std::vector<uint32_t> freeSlots;
};

} // namespace fusec::rt
