// Lists the points of each set.
#include "core/convert/numbers/code_books.h"

#include "core/convert/numbers/code_book_sets.h"

#include <cassert>

namespace loadline {
namespace {

constexpr std::array<std::int8_t, 3> kIq2Levels = {8, 25, 43}, kIq1Levels = {-1, 0, 1};
constexpr std::array<std::int8_t, 8> kIq3XxsLevels = {4, 12, 20, 28, 36, 44, 52, 62},
                                     kIq3SLevels = {1, 3, 5, 7, 9, 11, 13, 15};

template <std::size_t kPoints, std::size_t kElements, std::size_t kBase, std::size_t kWords>
CodeBook<kPoints, kElements> book_of(const std::array<std::uint64_t, kWords>& set,
                                     const std::array<std::int8_t, kBase>& levels) {
  CodeBook<kPoints, kElements> book = {};
  std::size_t points = 0;
  for (std::size_t number = 0; number < 64 * kWords; ++number) {
    if ((set[number / 64] >> (number % 64) & 1) == 0) continue;
    assert(points < kPoints);
    std::size_t digits = number;
    for (std::int8_t& element : book[points]) {
      element = levels[digits % kBase];
      digits /= kBase;
    }
    ++points;
  }
  assert(points == kPoints);
  return book;
}

}  // namespace

const CodeBook<256, 8>& iq2_xxs_book() {
  static const auto book = book_of<256, 8>(kIq2XxsSet, kIq2Levels);
  return book;
}
const CodeBook<512, 8>& iq2_xs_book() {
  static const auto book = book_of<512, 8>(kIq2XsSet, kIq2Levels);
  return book;
}
const CodeBook<1024, 8>& iq2_s_book() {
  static const auto book = book_of<1024, 8>(kIq2SSet, kIq2Levels);
  return book;
}
const CodeBook<2048, 8>& iq1_book() {
  static const auto book = book_of<2048, 8>(kIq1SSet, kIq1Levels);
  return book;
}
const CodeBook<256, 4>& iq3_xxs_book() {
  static const auto book = book_of<256, 4>(kIq3XxsSet, kIq3XxsLevels);
  return book;
}
const CodeBook<512, 4>& iq3_s_book() {
  static const auto book = book_of<512, 4>(kIq3SSet, kIq3SLevels);
  return book;
}

}  // namespace loadline
