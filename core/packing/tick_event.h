// The begins and ends of lifetimes in the order of time.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

namespace loadline {

struct TickEvent {
  std::uint64_t tick = 0;
  bool begins = false;  // at equal ticks ends sort before begins
  std::uint32_t index = 0;
  auto operator<=>(const TickEvent&) const = default;
};

// Two events for each of `lives`, which have ticks [lower, upper); sorted.
template <typename Life>
std::vector<TickEvent> tick_events(const std::vector<Life>& lives) {
  std::vector<TickEvent> events;
  events.reserve(lives.size() * 2);
  for (std::uint32_t i = 0; i < lives.size(); ++i) {
    events.push_back({lives[i].lower, true, i});
    events.push_back({lives[i].upper, false, i});
  }
  std::ranges::sort(events);
  return events;
}

}  // namespace loadline
