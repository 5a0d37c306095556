// Code books of ggml's IQ types: the points that an index into a book stands for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace loadline {

template <std::size_t kPoints, std::size_t kElements>
using CodeBook = std::array<std::array<std::int8_t, kElements>, kPoints>;

// Made on first use. IQ2: elements 8, 25 and 43; IQ1: -1, 0 and 1; IQ3_XXS: 4 to 62; IQ3_S: odd numbers up
// to 15.
const CodeBook<256, 8>& iq2_xxs_book();
const CodeBook<512, 8>& iq2_xs_book();
const CodeBook<1024, 8>& iq2_s_book();
const CodeBook<2048, 8>& iq1_book();  // of IQ1_S and IQ1_M
const CodeBook<256, 4>& iq3_xxs_book();
const CodeBook<512, 4>& iq3_s_book();

}  // namespace loadline
