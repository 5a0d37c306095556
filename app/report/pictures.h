// Peaks as bars on one scale: the plainest comparison of methods.
#pragma once

#include "core/load/answer/rows.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

struct Bar {
  std::string label = {};
  std::string note = {};  // behind the bar: the law
  std::uint64_t bytes = 0;
  std::string_view colour = "device";  // the class of a space (row_curve.h)
};

struct Bars {
  std::string title = {};
  std::vector<Bar> bars = {};
  std::uint64_t weights = 0;  // W: a line there and at twice of it, as far as bars reach
  std::uint64_t scale = 0;    // at least so many bytes wide, to be compared with other bars
};

// The rows that can be done, by their peak in one space (row_space.h), which the title names: if none is
// given, in the one where they are furthest apart.
Bars method_bars(const std::vector<LoadRow>& rows, std::uint64_t weights, std::string_view space = {});

// An SVG element of its own; the style sheet `chart` has its classes. Text is escaped here.
std::string bars_svg(const Bars& bars);
// Lines of text for a terminal of that many columns.
std::string bars_text(const Bars& bars, std::size_t columns, bool unicode);

}  // namespace loadline::report
