// The values that combos of several panels offer.
#pragma once

#include <array>
#include <cstdint>

namespace loadline::gui {

inline constexpr std::uint64_t kMiB = 1ull << 20, kGiB = 1ull << 30;

inline constexpr std::array<std::uint64_t, 8> kRingSizes = {4 * kMiB,   16 * kMiB,  32 * kMiB,  64 * kMiB,
                                                            128 * kMiB, 256 * kMiB, 512 * kMiB, kGiB};
inline constexpr std::array<std::uint32_t, 5> kRingSlots = {1, 2, 4, 8, 16};
inline constexpr std::array<std::uint64_t, 7> kActivationSizes = {0,    64 * kMiB, 256 * kMiB, 512 * kMiB,
                                                                  kGiB, 2 * kGiB,  4 * kGiB};

}  // namespace loadline::gui
