// Scales of the parts of a super-block in a few bits each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace loadline {

// What a search found for each part.
struct PartScales {
  std::span<const float> scales;
  std::span<const float> depths = {};   // of the types that have them
  std::span<const float> weights = {};  // sums; empty without importance
};

// What the stored scales stand for.
struct PartFactors {
  std::array<float, 16> scales{}, depths{};
};

// Each writes a block's scales, in their place in the block at `out`.
PartFactors put_q2_k_scales(const PartScales& parts, std::uint8_t* out);
PartFactors put_q3_k_scales(const PartScales& parts, std::uint8_t* out);
// Q4_K and Q5_K. Without `bounded`, a negative scale spoils others too, as in ggml's Q4_K with importance.
PartFactors put_q4_k_scales(const PartScales& parts, bool bounded, std::uint8_t* out);
// Nothing, and a block of zeros, where all scales are next to nothing.
std::optional<PartFactors> put_q6_k_scales(const PartScales& parts, std::uint8_t* out);
// The factors are inverse: 0 for a scale of 0.
PartFactors put_iq4_xs_scales(const PartScales& parts, std::uint8_t* out);

}  // namespace loadline
