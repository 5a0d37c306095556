// The free ranges (holes) of an allocator, indexed by address and by size, because a file may cause very
// many.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace loadline {

struct Place {
  std::uint64_t segment = 0;  // number of the range that the allocator got from the system
  std::uint64_t offset = 0;   // inside the segment
  auto operator<=>(const Place&) const = default;
};

struct Hole {
  Place place = {};
  std::uint64_t bytes = 0;
  std::uint64_t end() const { return place.offset + bytes; }
};

// No two holes touch. Each call takes logarithmic time.
class Holes {
 public:
  enum class Of : std::uint8_t { first, last };  // of equal holes, that with the lowest or the highest place
  // Removes and returns the smallest hole of at least `bytes` bytes.
  std::optional<Hole> take(std::uint64_t bytes, Of equals = Of::first);
  // Adds a free range and merges it with the holes that it touches. Returns the resulting hole.
  Hole add(Hole hole);
  // Removes the hole that begins at `place`.
  void remove(const Place& place);
  // Size of the largest hole; 0 if there is none.
  std::uint64_t largest() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  std::map<Place, std::uint64_t> by_place_;
  std::set<std::pair<std::uint64_t, Place>> by_size_;
};

}  // namespace loadline
