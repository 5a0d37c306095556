// The curves of `plan` as SVG: one panel per method, all with the same scale.
#pragma once

#include "app/report/row_curve.h"
#include "core/load/answer/rows.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::report {

// The contents of a chart. Holds references to the objects it was made from.
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

// The rows that pictures show: for each method that can be done, its row with the lowest leading peak; among
// equals the earlier row.
std::vector<PicturedRow> pictured_rows(const ChartSubject& subject);
std::vector<const LoadRow*> rows_of(std::span<const PicturedRow> pictured);
// A sentence on how many rows are shown; empty if all drawn rows are.
std::string pictured_note(const ChartSubject& subject);
// What a reader of the curves should know, a sentence each: which rows are shown, in which space they differ
// most, and what is held at t = 0. `rows`: those that are drawn, of pictured_rows().
std::vector<std::string> chart_notes(const ChartSubject& subject, std::span<const PicturedRow> rows);
// One line of plain text: the model and its size.
std::string chart_title(const ChartSubject& subject);

// The budget that the leading peak is compared with.
const std::optional<std::uint64_t>& leading_budget(const BoundRequest& bound);

// The scale that all panels share.
struct ChartScale {
  std::uint64_t above = 1;    // most bytes above the water line, over all rows
  std::uint64_t below = 0;    // most bytes below it
  double end = 0;             // end of a shared time axis; 0 if rows have axes of their own
  std::uint64_t weights = 0;  // W: a line there and at twice of it, as far as the scale reaches
  bool orders = false;        // rows differ in their order, so each panel names its own
};
ChartScale chart_scale(const ChartSubject& subject, const std::vector<PicturedRow>& rows);

struct PanelSize {
  double width = 200;
  double height = 168;
};
// One panel as an SVG group of the given size: title, peak, areas, axis. The style sheet `chart` has the
// rules for its classes; `light` and `dark` set its colours.
std::string panel_svg(const PicturedRow& pictured, const BoundRequest& bound, const ChartScale& scale,
                      const PanelSize& size = {});

// The whole chart as an SVG file: a slide of 1280 by 720 on a light ground.
std::string chart_svg(const ChartSubject& subject);

}  // namespace loadline::report
