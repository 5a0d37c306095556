// The numbers that codes of four bits stand for.
#pragma once

#include <cstdint>

namespace loadline {

// IQ4_NL and IQ4_XS.
inline constexpr std::int8_t kFourBitLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};

// E2M1 numbers doubled; the factors are halved instead.
inline constexpr std::int8_t kE2M1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace loadline
