// The holes of an allocator, found by place and by size: a file may leave very many of them.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace loadline {

struct Place {
  std::uint64_t segment = 0;  // of memory that the allocator got at once
  std::uint64_t offset = 0;   // in it
  auto operator<=>(const Place&) const = default;
};

struct Hole {
  Place place = {};
  std::uint64_t bytes = 0;
  std::uint64_t end() const { return place.offset + bytes; }
};

// None of them touches another. Each call takes time logarithmic in their number.
class Holes {
 public:
  // Takes the smallest out that has so many bytes, the first of several.
  std::optional<Hole> take(std::uint64_t bytes);
  // One more, which touches others or not, and what that makes a hole of.
  Hole add(Hole hole);
  // Takes out the one that begins there.
  void remove(const Place& place);
  // Bytes of the largest; 0 if there is none.
  std::uint64_t largest() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  std::map<Place, std::uint64_t> by_place_;
  std::set<std::pair<std::uint64_t, Place>> by_size_;
};

}  // namespace loadline
