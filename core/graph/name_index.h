// Finds names by their text: a flat hash table, for sets of a hundred thousand names.
#pragma once

#include "core/graph/name.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

// Maps names to the positions at which they were added. The texts are not copied: `text_of(position)` must
// return the text of every name that was added, as long as the index is used.
class NameIndex {
 public:
  // Reserves room for `most` names; the table grows if more are added.
  explicit NameIndex(std::size_t most = 0) { resize(most); }

  // Adds `name` at `position` and returns nothing; or returns the position of an equal name added before.
  template <typename TextOf>
  std::optional<std::uint32_t> add(std::string_view name, std::uint32_t hash, std::uint32_t position,
                                   const TextOf& text_of) {
    if (4 * (count_ + 1) > 3 * slots_.size()) grow();
    Slot& slot = slots_[find_slot(name, hash, text_of)];
    if (slot.position != kFree) return slot.position;
    slot = {hash, position};
    ++count_;
    return std::nullopt;
  }

  template <typename TextOf>
  std::optional<std::uint32_t> find(std::string_view name, std::uint32_t hash, const TextOf& text_of) const {
    const Slot& slot = slots_[find_slot(name, hash, text_of)];
    return slot.position == kFree ? std::nullopt : std::optional(slot.position);
  }

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t position = kFree;
  };

  // The table is at most three quarters full.
  void resize(std::size_t names) { slots_.assign(std::bit_ceil(names + names / 3 + 2), Slot()); }

  template <typename TextOf>
  std::size_t find_slot(std::string_view name, std::uint32_t hash, const TextOf& text_of) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].position != kFree && (slots_[at].hash != hash || text_of(slots_[at].position) != name))
      at = (at + 1) & mask;
    return at;
  }

  void grow() {
    const std::vector<Slot> old = std::move(slots_);
    resize(old.size());
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.position == kFree) continue;
      std::size_t at = slot.hash & mask;
      while (slots_[at].position != kFree) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace loadline
