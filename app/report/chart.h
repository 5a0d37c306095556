// plan's curves as SVG: small multiples, one per method, all to one scale.
#pragma once

#include "app/report/row_curve.h"
#include "core/load/rows.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

// What is pictured. Refers to what it was made of.
struct ChartSubject {
  const MetaGraph& graph;
  const BoundRequest& bound;
  std::span<const LoadRow> rows;
  std::span<const std::optional<RowCurve>> curves;  // parallel to rows
};

// A row and its curve.
struct PicturedRow {
  const LoadRow* row = nullptr;
  const RowCurve* curve = nullptr;
  bool operator==(const PicturedRow&) const = default;
};

// The rows that pictures show: of each method that can be done the one in the order with the least leading
// peak, the earlier where several have it.
std::vector<PicturedRow> pictured_rows(const ChartSubject& subject);
// What is not pictured, in a sentence; empty where nothing is.
std::string pictured_note(const ChartSubject& subject);
// What the pictures show of which model, in a line of plain text.
std::string chart_title(const ChartSubject& subject);

// What all panels share.
struct ChartScale {
  std::uint64_t above = 1;  // most bytes above the water line, of all rows
  std::uint64_t below = 0;  // and below it
  double end = 0;           // of the axis, where all rows share one; else 0
  bool orders = false;      // whether rows differ in their order: then each names its own
};
ChartScale chart_scale(const ChartSubject& subject, const std::vector<PicturedRow>& rows);

struct PanelSize {
  double width = 200;
  double height = 168;
};
// A group of that size: title, peak, areas, axis. Elements have classes; chart_style() gives them colours.
std::string panel_svg(const PicturedRow& pictured, const BoundRequest& bound, const ChartScale& scale,
                      const PanelSize& size = {});
// Rules for the classes. Colours are custom properties: --device, --ink, ...
std::string_view chart_style();
// `:root` values of those properties.
std::string_view light_colours();
std::string_view dark_colours();

// The whole chart as a file of its own: a slide of 1280 by 720 on a light ground.
std::string chart_svg(const ChartSubject& subject);

}  // namespace loadline::report
