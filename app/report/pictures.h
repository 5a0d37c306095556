// Small pictures: peaks as bars, a model as a treemap.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/load/answer/rows.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

// --- Peaks as bars on one scale: the plainest comparison of methods.

struct Bar {
  std::string label = {};
  std::string note = {};  // behind the bar: the law
  std::uint64_t bytes = 0;
  std::string_view color = "device";  // the class of a space (chart.h)
};

struct Bars {
  std::string title = {};
  std::vector<Bar> bars = {};
  std::uint64_t weights = 0;  // a line there and at twice of it, as far as bars reach
  std::uint64_t scale = 0;    // at least so many bytes wide, to be compared with other bars
};

// The rows that can be done, by their peak in one space (row_text.h), which the title names: if none is
// given, in the one where they are furthest apart.
Bars method_bars(const std::vector<load::LoadRow>& rows, std::uint64_t weights, std::string_view space = {});

// An SVG element of its own; the style sheet `chart` has its classes. Text is escaped here.
std::string bars_svg(const Bars& bars);
// Lines of text for a terminal of that many columns.
std::string bars_text(const Bars& bars, std::size_t columns, bool unicode);

// --- What is in a model, as a treemap for a page.

// An SVG element of its own: area is bytes, color is the role of a tensor, titles have what they take. A
// page defines the colors of the classes role0 to role6 (assets/report/treemap.css). Parts too small to see
// are drawn together, so the size is bounded for any model.
std::string treemap_svg(const graph::MetaGraph& graph);
// The roles that the model has, with their bytes, as a legend.
std::string treemap_legend(const graph::MetaGraph& graph);

}  // namespace loadline::report
