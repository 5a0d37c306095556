// Draws panels: the device above the water line, the host's spaces below it.
#include "app/report/chart.h"

#include "app/report/page_parts.h"
#include "app/report/row_text.h"
#include "core/base/text.h"
#include "core/plan/plan.h"
#include "core/view/curves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

namespace loadline::report {
namespace {

// The margins between a panel's border and its plot.
constexpr double kLeft = 50, kTop = 40, kRightMargin = 6, kBottomMargin = 18;

// Coordinates in a panel; bytes are measured from the water line, upwards or downwards.
class Frame {
 public:
  Frame(const ChartScale& scale, double end, const PanelSize& size)
      : right_(size.width - kRightMargin), bottom_(size.height - kBottomMargin) {
    share_ = scale.end > 0 && end > 0 ? end / scale.end : 1;
    const auto all = static_cast<double>(scale.above) + static_cast<double>(scale.below);
    unit_ = (bottom_ - kTop) / all;
    water_ = kTop + static_cast<double>(scale.above) * unit_;
  }
  // The x position of `place` on this row's own axis, from 0 to 1.
  double x(double place) const { return kLeft + place * share_ * (right_ - kLeft); }
  double y(double bytes, bool below) const { return below ? water_ + bytes * unit_ : water_ - bytes * unit_; }
  // The same as y() for areas, with a minimal height so that any bytes are visible.
  double edge(double bytes, bool below) const {
    constexpr double kLeast = 1.5;
    const double height = bytes > 0 ? std::max(bytes * unit_, kLeast) : 0;
    return below ? water_ + height : water_ - height;
  }
  double water() const { return water_; }
  double right() const { return right_; }
  double bottom() const { return bottom_; }

 private:
  double right_ = 0, bottom_ = 0;
  double share_ = 1, unit_ = 1, water_ = 0;
};

// The area between the water line and the sum of the stack's first `spaces` spaces.
std::string area_path(const CurveBand& band, const Frame& frame, unsigned spaces) {
  std::string path = fmt::format("M{:.1f},{:.1f}", frame.x(0), frame.water());
  const auto columns = static_cast<double>(band.columns.size());
  double last = -1;
  for (std::size_t i = 0; i < band.columns.size(); ++i) {
    const double y =
        frame.edge(static_cast<double>(plan::sum_over(band.columns[i].bytes, spaces)), band.is_below_water());
    if (i > 0 && std::abs(y - last) < 0.05) continue;
    path += fmt::format("H{:.1f}V{:.1f}", frame.x(static_cast<double>(i) / columns), y);
    last = y;
  }
  return path + fmt::format("H{:.1f}V{:.1f}Z", frame.x(1), frame.water());
}

// Draws the whole stack first, then the parts nearer to the water line over it.
std::string band_svg(const CurveBand& band, const Frame& frame) {
  std::string svg;
  unsigned spaces = band.mask;
  const std::vector<plan::Space> stack = plan::spaces_in(band.mask);
  for (auto space = stack.rbegin(); space != stack.rend(); ++space) {
    const bool there = std::ranges::any_of(
        band.columns, [&](const view::UsageColumn& column) { return column.bytes[plan::index(*space)] > 0; });
    if (there)
      svg += fmt::format("<path class=\"area {}\" d=\"{}\"/>\n", space_class(*space),
                         area_path(band, frame, spaces));
    spaces &= ~plan::space_bit(*space);
  }
  return svg;
}

// Areas whose tooltip lists the blocks alive there. Neighboring slices with the same text are merged.
std::string slices_svg(const CurveBand& band, const Frame& frame) {
  std::string svg;
  const auto slices = static_cast<double>(band.slices.size());
  const double height = band.is_below_water() ? frame.bottom() - frame.water() : frame.water() - kTop;
  const double top = band.is_below_water() ? frame.water() : kTop;
  for (std::size_t i = 0; i < band.slices.size();) {
    std::size_t end = i + 1;
    while (end < band.slices.size() && band.slices[end] == band.slices[i]) ++end;
    if (!band.slices[i].empty()) {
      const double from = frame.x(static_cast<double>(i) / slices);
      const double to = frame.x(static_cast<double>(end) / slices);
      std::string title;
      for (const std::string_view line :
           lines_of(band.slices[i]))  // names are escaped, so they contain no line ends
        title += (title.empty() ? "" : "\n") + markup_text(line);
      svg += fmt::format(
          "<rect class=\"slice\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
          "height=\"{:.1f}\"><title>{}</title>"
          "</rect>\n",
          from, top, to - from, std::max(height, 0.0), title);
    }
    i = end;
  }
  return svg;
}

std::string text_svg(double x, double y, std::string_view classes, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, classes, text);
}

std::string line_svg(double x0, double y0, double x1, double y1, std::string_view classes) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x0, y0,
                     x1, y1, classes);
}

// Ticks are powers of two apart: "512 GiB", "1.50 TiB".
std::string tick_text(double bytes) {
  std::string text = bytes <= 0 ? "0" : format_bytes(static_cast<std::uint64_t>(bytes));
  if (const std::size_t at = text.find(".00"); at != std::string::npos) text.erase(at, 3);
  return text;
}

std::string grid_svg(const ChartScale& scale, const Frame& frame) {
  constexpr double kMost = 4, kLeastGap = 13;
  const auto most = static_cast<double>(std::max(scale.above, scale.below));
  const std::vector<double> ticks = view::byte_ticks(most, static_cast<std::size_t>(kMost));
  std::string svg;
  for (const bool below : {false, true}) {
    const auto room = static_cast<double>(below ? scale.below : scale.above);
    for (const double tick : ticks) {
      const double y = frame.y(tick, below);
      if (tick > room || tick == 0) continue;
      svg += line_svg(kLeft, y, frame.right(), y, "grid");
      if (std::abs(y - frame.water()) >= kLeastGap)
        svg += text_svg(kLeft - 5, y + 3.5, "tick end", tick_text(tick));
    }
  }
  return svg + text_svg(kLeft - 5, frame.water() + 3.5, "tick end", "0");
}

// Lines at the weights and twice the weights, where the laws count from.
std::string weights_svg(const ChartScale& scale, const Frame& frame) {
  std::string svg;
  for (const auto& [bytes, name] :
       {std::pair{scale.weights, "weights"}, std::pair{2 * scale.weights, "twice"}}) {
    if (bytes == 0 || bytes > scale.above) continue;
    const double y = frame.y(static_cast<double>(bytes), false);
    svg += line_svg(kLeft, y, frame.right(), y, "weights") + text_svg(frame.right(), y - 3, "tick end", name);
  }
  return svg;
}

std::string axis_end(const RowCurve& curve, double end) {
  return curve.axis == view::RunAxis::steps ? counted(static_cast<std::uint64_t>(end), "step")
                                            : format_seconds(end);
}

std::string marks_svg(const DrawnRow& drawn, const load::BoundRequest& bound, const Frame& frame) {
  const load::LoadRow& row = *drawn.row;
  const RowCurve& curve = *drawn.curve;
  std::string svg;
  const std::optional<std::uint64_t>& limit = bound.memory.deciding_budget();
  if (limit) {
    const double y = frame.y(static_cast<double>(*limit), false);
    if (y >= kTop - 4) svg += line_svg(kLeft, y, frame.right(), y, "budget");
  }
  if (curve.has_pass) {
    const double x = frame.x(curve.loaded_place);
    svg += line_svg(x, kTop, x, frame.bottom(), "loaded");
    constexpr double kRoom = 24;
    if (x - kLeft > kRoom && frame.x(1) - x > 3 * kRoom)
      svg += text_svg(x, frame.bottom() + 13, "tick middle", "loaded");
  }
  const double peak = frame.y(static_cast<double>(row.deciding_peak.bytes), false);
  const double at = frame.x(curve.peak_place);
  svg += line_svg(at, peak, at, frame.water(), "stem");  // keeps a very short peak visible
  svg += fmt::format("<circle class=\"peak\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"/>\n", at, peak);
  return svg + line_svg(kLeft, frame.water(), frame.right(), frame.water(), "water");
}

}  // namespace

std::vector<DrawnRow> drawn_rows(const ChartSubject& subject) {
  std::vector<DrawnRow> rows;
  for (std::size_t i = 0; i < subject.curves.size(); ++i) {
    if (!subject.curves[i]) continue;
    const DrawnRow one = {&subject.rows[i], &*subject.curves[i]};
    const auto same = std::ranges::find_if(
        rows, [&](const DrawnRow& known) { return known.row->method == one.row->method; });
    if (same == rows.end())
      rows.push_back(one);
    else if (one.row->deciding_peak.bytes < same->row->deciding_peak.bytes)
      *same = one;
  }
  return rows;
}

std::vector<const load::LoadRow*> rows_of(std::span<const DrawnRow> drawn) {
  std::vector<const load::LoadRow*> rows;
  for (const DrawnRow& one : drawn) rows.push_back(one.row);
  return rows;
}

namespace {

// A sentence on how many rows are shown; empty if all drawn rows are.
std::string pictured_note(const ChartSubject& subject) {
  const std::size_t shown = drawn_rows(subject).size();
  const auto drawn = static_cast<std::size_t>(
      std::ranges::count_if(subject.curves, [](const auto& curve) { return curve.has_value(); }));
  if (shown == drawn) return "";
  return fmt::format("Each method in the order with the least peak: {} of {} rows.", shown, drawn);
}

// Why curves over time do not start at 0: memory that is taken at once takes no time. Empty if all nearly do.
std::string start_note(const ChartSubject& subject, std::span<const DrawnRow> rows) {
  constexpr std::uint64_t kWorthSaying = 2;  // half of the weights; a first tensor can be large
  const std::uint64_t least = std::max<std::uint64_t>(graph::storage_bytes(subject.graph) / kWorthSaying, 1);
  const DrawnRow* first = nullptr;
  std::uint64_t most = 0;
  plan::Space where = plan::Space::host;
  std::size_t count = 0;
  for (const DrawnRow& one : rows) {
    if (one.curve->axis != view::RunAxis::seconds) continue;
    bool counted_row = false;
    for (const CurveBand& band : one.curve->bands) {
      for (const plan::Space space : {plan::Space::device, plan::Space::host}) {
        if (band.columns.empty() || (band.mask & plan::space_bit(space)) == 0) continue;
        const std::uint64_t bytes = band.columns.front().bytes[plan::index(space)];
        if (bytes < least) continue;
        if (!std::exchange(counted_row, true)) ++count;
        if (bytes <= most) continue;
        most = bytes;
        where = space;
        first = &one;
      }
    }
  }
  if (first == nullptr) return "";
  const std::string others = count > 1 ? fmt::format(" and {} more", count - 1) : "";
  return fmt::format(
      "At t = 0 {}{} already {} {}{} on the {}: a model that is built first, or a buffer for a whole file, "
      "is allocated before a byte is read.",
      first->row->method->id, others, count > 1 ? "hold" : "holds", count > 1 ? "up to " : "",
      format_bytes(most), where == plan::Space::device ? "device" : "host");
}

}  // namespace

std::vector<std::string> chart_notes(const ChartSubject& subject, std::span<const DrawnRow> rows) {
  std::vector<std::string> notes = {pictured_note(subject),
                                    difference_text(rows_of(rows), subject.bound.memory.kind),
                                    start_note(subject, rows)};
  std::erase(notes, "");
  return notes;
}

std::string chart_title(const ChartSubject& subject) {
  return fmt::format("{}: memory while loading {}", safe_display(graph::model_name(subject.graph), 60),
                     format_bytes(graph::storage_bytes(subject.graph)));
}

ChartScale chart_scale(const ChartSubject& subject, const std::vector<DrawnRow>& rows) {
  ChartScale scale;
  scale.weights = graph::storage_bytes(subject.graph);
  scale.orders = std::ranges::any_of(
      rows, [&](const DrawnRow& one) { return one.row->order != rows.front().row->order; });
  for (const DrawnRow& one : rows) {
    for (const CurveBand& band : one.curve->bands)
      (band.is_below_water() ? scale.below : scale.above) =
          std::max(band.is_below_water() ? scale.below : scale.above, band.most);
    if (one.curve->axis == view::RunAxis::seconds) scale.end = std::max(scale.end, one.curve->end);
  }
  // includes the budget line in the scale if it is near the curves
  const auto& limit = subject.bound.memory.deciding_budget();
  if (limit && *limit / 3 <= scale.above / 2) scale.above = std::max(scale.above, *limit);
  return scale;
}

std::string panel_svg(const DrawnRow& drawn, const load::BoundRequest& bound, const ChartScale& scale,
                      const PanelSize& size) {
  const load::LoadRow& row = *drawn.row;
  const RowCurve& curve = *drawn.curve;
  const Frame place(scale, curve.end, size);
  const std::string figure = format_bytes(row.deciding_peak.bytes);
  // room for the label after the figure, in characters
  const double room = size.width - 20 - 7.6 * static_cast<double>(figure.size());
  const auto letters = static_cast<std::size_t>(std::max(room / 6.2, 8.0));
  // the law says more than the name of the tensor, which is in the slices
  const bool unified = bound.memory.kind == plan::MemoryKind::unified;
  const std::string law =
      load::law_text(*row.method, unified ? std::nullopt : std::optional(plan::Space::device));
  std::string svg = text_svg(0, 13, "method", markup_text(row.method->id));
  if (scale.orders) svg += text_svg(place.right(), 13, "tick end", markup_text(row.order, 14));
  svg +=
      fmt::format("<text x=\"0\" y=\"28\" class=\"where\"><tspan class=\"figure{}\">{}</tspan> {}</text>\n",
                  row.fits() ? "" : " over", figure,
                  markup_text(law.empty() ? "at " + row.deciding_peak.tensor : "= " + law, letters));
  svg += grid_svg(scale, place);
  for (const CurveBand& band : curve.bands) svg += band_svg(band, place);
  svg += weights_svg(scale, place) + marks_svg(drawn, bound, place);
  svg += text_svg(kLeft, place.bottom() + 13, "tick", "0");
  const double right = place.x(1);
  constexpr double kNarrow = 70;  // too narrow to align its end label left of the axis end
  svg += right - kLeft < kNarrow
             ? text_svg(right, place.bottom() + 13, "tick", axis_end(curve, curve.end))
             : text_svg(right, place.bottom() + 13, "tick end", axis_end(curve, curve.end));
  for (const CurveBand& band : curve.bands) svg += slices_svg(band, place);
  return svg;
}

namespace {

// Draws "[] device  [] host ..." from `x` on.
std::string legend_svg(const ChartSubject& subject, double x, double y) {
  std::string svg;
  const bool unified = subject.bound.memory.kind == plan::MemoryKind::unified;
  for (const plan::Space space : plan::kSpaceOrder) {
    svg += fmt::format(
        "<rect class=\"area {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" rx=\"2\"/>\n",
        space_class(space), x, y - 10.5);
    svg += text_svg(x + 17, y, "key", plan::space_title(space));
    x += 34 + 6.6 * static_cast<double>(plan::space_title(space).size());
  }
  svg += fmt::format("<circle class=\"peak\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"/>\n", x + 6, y - 4.5);
  const std::string_view most = unified ? "unified peak" : "peak on the device";
  svg += text_svg(x + 16, y, "key", most);
  x += 40 + 6.6 * static_cast<double>(most.size());
  const std::optional<std::uint64_t>& limit = subject.bound.memory.deciding_budget();
  if (!limit) return svg;
  return svg + line_svg(x, y - 4.5, x + 18, y - 4.5, "budget") +
         text_svg(x + 24, y, "key", fmt::format("budget {}", format_bytes(*limit)));
}

constexpr double kSlideWidth = 1280, kSlideHeight = 720;
constexpr double kMargin = 28, kHead = 74, kFoot = 12, kNote = 14, kGap = 12;

// Chooses the number of columns that makes panels largest on the slide, up to a largest scale; beyond it
// panels only get more room.
struct SlideGrid {
  std::size_t columns = 1;
  double scale = 0;
  PanelSize panel = {};
};
SlideGrid slide_grid(std::size_t panels, double foot) {
  constexpr double kLargest = 1.5;
  SlideGrid best;
  double most = 0;
  for (std::size_t columns = 1; columns <= std::max<std::size_t>(panels, 1); ++columns) {
    const auto across = static_cast<double>(columns);
    const auto lines = std::max(std::ceil(static_cast<double>(panels) / across), 1.0);
    const double width = (kSlideWidth - 2 * kMargin - (across - 1) * kGap) / across;
    const double height = (kSlideHeight - kHead - foot - (lines - 1) * kGap) / lines;
    const double fits = std::min(width / PanelSize{}.width, height / PanelSize{}.height);
    if (fits <= most) continue;
    most = fits;
    const double scale = std::min(fits, kLargest);
    best = {columns, scale, {width / scale, height / scale}};
  }
  return best;
}

}  // namespace

std::string chart_svg(const ChartSubject& subject) {
  const std::vector<DrawnRow> rows = drawn_rows(subject);
  const ChartScale scale = chart_scale(subject, rows);
  const std::vector<std::string> notes = chart_notes(subject, rows);
  const double foot = kFoot + kNote * static_cast<double>(notes.size());
  const SlideGrid grid = slide_grid(rows.size(), foot);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" style=\"max-width:100%;height:auto\" role=\"img\">\n<title>{2}</title>\n"
      "<style>{3}{4}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"var(--ground)\"/>\n",
      kSlideWidth, kSlideHeight, markup_text(chart_title(subject)), style_sheet("light"),
      style_sheet("chart"));
  svg += fmt::format("<text x=\"{:.1f}\" y=\"36\" style=\"font-size:24px;font-weight:650\">{}</text>\n",
                     kMargin, markup_text(chart_title(subject)));
  svg += legend_svg(subject, kMargin, 58);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double x = kMargin + static_cast<double>(i % grid.columns) * (grid.panel.width * grid.scale + kGap);
    const double y = kHead + static_cast<double>(i / grid.columns) * (grid.panel.height * grid.scale + kGap);
    svg += fmt::format("<g transform=\"translate({:.1f},{:.1f}) scale({:.3f})\">\n{}</g>\n", x, y, grid.scale,
                       panel_svg(rows[i], subject.bound, scale, grid.panel));
  }
  double y = kSlideHeight - foot;
  for (const std::string& note : notes) svg += text_svg(kMargin, y += kNote, "where", markup_text(note));
  return svg + "</svg>\n";
}

}  // namespace loadline::report
