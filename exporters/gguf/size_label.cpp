// Counts elements, then shortens the count to two digits or more.
#include "exporters/gguf/size_label.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace loadline {
namespace {

std::string short_count(double count) {
  constexpr std::array<std::pair<double, char>, 3> kUnits = {{{1e12, 'T'}, {1e9, 'B'}, {1e6, 'M'}}};
  double scaled = count * 1e-3;
  char unit = 'K';
  for (const auto& [size, letter] : kUnits)
    if (count > size) {
      scaled = count * (1 / size);
      unit = letter;
      break;
    }
  const double whole = std::nearbyint(scaled);
  const int digits = whole < 1 ? 0 : static_cast<int>(std::log10(whole)) + 1;
  return fmt::format("{:.{}f}{}", scaled, std::max(2 - digits, 0), unit);
}

}  // namespace

std::string size_label(std::span<const Slot> slots) {
  double shared = 0, expert = 0;
  std::uint64_t experts = 0, stacks = 0;
  for (const Slot& slot : slots) {
    double elements = 1;
    for (const std::uint64_t side : slot.shape) elements *= static_cast<double>(side);
    const std::size_t rank = slot.shape.size();
    const bool stack = slot.name.view().find("_exps.") != std::string_view::npos && rank >= 3;
    if (!stack) {
      shared += elements;
      continue;
    }
    const std::uint64_t held = slot.shape[rank - 3];
    expert += held == 0 ? 0 : elements / static_cast<double>(held);
    experts += held;
    ++stacks;
  }
  const std::string count = short_count(shared + expert);
  return stacks == 0 || experts < stacks ? count : fmt::format("{}x{}", experts / stacks, count);
}

}  // namespace loadline
