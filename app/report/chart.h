// Curves of rows, the charts drawn from them, and an answer together with its curves.
#pragma once

#include "core/load/answer/answer.h"
#include "core/load/answer/projection.h"
#include "core/load/answer/rows.h"
#include "core/plan/timeline.h"
#include "core/view/curves.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

// --- The curve of a row, reduced to the columns that plots draw, made before its projection is destroyed.

struct CurveOptions {
  view::RunAxis axis = view::RunAxis::seconds;
  std::size_t columns = 240;
  std::size_t slices = 0;  // number of slices that list the blocks alive; 0: none
};

// A stack of spaces in one memory. With discrete memory the device is above the water line and the host's
// spaces are below it; unified memory is a single stack.
struct CurveBand {
  unsigned mask = 0;
  std::vector<view::UsageColumn> columns = {};
  std::uint64_t most = 0;                // greatest sum of the spaces
  std::vector<std::string> slices = {};  // for each slice the blocks alive at its highest moment; escaped

  bool is_below_water() const { return (mask & plan::space_bit(plan::Space::device)) == 0; }
};

struct RowCurve {
  view::RunAxis axis = view::RunAxis::seconds;
  double end = 0;  // seconds or steps
  std::vector<CurveBand> bands = {};
  double peak_place = 0;  // position of the deciding peak, from 0 to 1
  double loaded_place = 1;
  bool has_pass = false;  // a forward pass follows; the curve ends with the first token
};

// The class and the color of a space in style sheets.
std::string_view space_class(plan::Space space);

using BlockName = std::function<std::string(plan::BlockId)>;
// `peak_step` is the step that first reaches the deciding peak.
RowCurve row_curve(const load::Projection& projection, plan::MemoryKind memory, const CurveOptions& options,
                   std::size_t peak_step, const BlockName& name);

// --- The curves of `plan` as SVG: one panel per method, all with the same scale.

// The contents of a chart. Holds references to the objects it was made from.
struct ChartSubject {
  const graph::MetaGraph& graph;
  const load::BoundRequest& bound;
  std::span<const load::LoadRow> rows;
  std::span<const std::optional<RowCurve>> curves;  // parallel to rows
};

// A row and its curve.
struct DrawnRow {
  const load::LoadRow* row = nullptr;
  const RowCurve* curve = nullptr;
  bool operator==(const DrawnRow&) const = default;
};

// The rows that pictures show: for each method that can be done, its row with the lowest deciding peak; among
// equals the earlier row.
std::vector<DrawnRow> drawn_rows(const ChartSubject& subject);
std::vector<const load::LoadRow*> rows_of(std::span<const DrawnRow> drawn);
// What a reader of the curves should know, a sentence each: which rows are shown, in which space they differ
// most, and what is held at t = 0. `rows`: those that are drawn, of drawn_rows().
std::vector<std::string> chart_notes(const ChartSubject& subject, std::span<const DrawnRow> rows);
// One line of plain text: the model and its size.
std::string chart_title(const ChartSubject& subject);

// The scale that all panels share.
struct ChartScale {
  std::uint64_t above = 1;    // most bytes above the water line, over all rows
  std::uint64_t below = 0;    // most bytes below it
  double end = 0;             // end of a shared time axis; 0 if rows have axes of their own
  std::uint64_t weights = 0;  // a line there and at twice of it, as far as the scale reaches
  bool orders = false;        // rows differ in their order, so each panel names its own
};
ChartScale chart_scale(const ChartSubject& subject, const std::vector<DrawnRow>& rows);

struct PanelSize {
  double width = 200;
  double height = 168;
};
// One panel as an SVG group of the given size: title, peak, areas, axis. The style sheet `chart` has the
// rules for its classes; `light` and `dark` set its colors.
std::string panel_svg(const DrawnRow& drawn, const load::BoundRequest& bound, const ChartScale& scale,
                      const PanelSize& size = {});

// The whole chart as an SVG file: a slide of 1280 by 720 on a light ground.
std::string chart_svg(const ChartSubject& subject);

// --- An answer together with the curves of its rows.

struct AnswerWithCurves {
  load::LoadAnswer answer;
  std::vector<std::optional<RowCurve>> curves;  // parallel to the rows; all empty if no curves were requested

  // Holds references to this object and `graph`.
  ChartSubject subject(const graph::MetaGraph& graph) const {
    return {graph, *answer.bound, answer.rows, curves};
  }
};

// answer() with curves drawn as `curve` says; without curves if it is absent. Throws as answer() does.
AnswerWithCurves answer_with_curves(const graph::MetaGraph& graph,
                                    std::shared_ptr<const load::BoundRequest> bound,
                                    load::AnswerOptions options, const std::optional<CurveOptions>& curve,
                                    std::shared_ptr<const load::RequestPass> forward, Progress& progress);

// Keeps only the rows at these positions, in that order, and their curves.
void arrange(AnswerWithCurves& answered, const std::vector<std::size_t>& positions);

}  // namespace loadline::report
