// Turns usage into step curves and paints them from the top of the stack down.
#include "app/gui/parts/timeline_plot.h"

#include "app/gui/parts/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <variant>

#include <fmt/core.h>

namespace loadline::gui {

// --- Turns usage points into step curves over steps or seconds.

namespace {

std::vector<plan::Space> spaces_of(TimelineShape shape, bool above) {
  if (shape == TimelineShape::stacked) return plan::spaces_in(above ? plan::kAllSpaces : 0);
  const unsigned device = plan::space_bit(plan::Space::device);
  return plan::spaces_in(above ? device : plan::kAllSpaces & ~device);
}

std::vector<view::CurvePoint> sum_curve(const plan::Timeline& timeline, std::span<const plan::Space> spaces,
                                        view::RunAxis axis) {
  std::vector<view::CurvePoint> points;
  points.reserve(timeline.usage.size());
  for (const plan::UsagePoint& point : timeline.usage) {
    double sum = 0;
    for (const plan::Space space : spaces) sum += static_cast<double>(point.bytes[plan::index(space)]);
    points.push_back({view::x_of(point, axis), sum});
  }
  return points;
}

// What has arrived in `spaces[level]`, above what is allocated in those before it.
std::vector<view::CurvePoint> arrived_curve(const plan::Timeline& timeline, const Arrivals& arrivals,
                                            std::span<const plan::Space> spaces, std::size_t level,
                                            view::RunAxis axis) {
  std::vector<view::CurvePoint> points;
  points.reserve(arrivals.usage.size());
  const std::size_t own = plan::index(spaces[level]);
  double below = 0, arrived = 0;
  std::size_t i = 0, j = 0;
  const auto& allocated = timeline.usage;
  while (i < allocated.size() || j < arrivals.usage.size()) {
    const bool first =
        j == arrivals.usage.size() || (i < allocated.size() && allocated[i].step <= arrivals.usage[j].step);
    const plan::UsagePoint& point = first ? allocated[i++] : arrivals.usage[j++];
    if (first) {
      below = 0;
      for (const plan::Space space : spaces.first(level))
        below += static_cast<double>(point.bytes[plan::index(space)]);
    } else {
      arrived = static_cast<double>(point.bytes[own]);
    }
    // of two at one step the second has both
    if (!first || j == arrivals.usage.size() || arrivals.usage[j].step != point.step)
      points.push_back({view::x_of(point, axis), below + arrived});
  }
  return points;
}

double most_of(std::span<const view::CurvePoint> curve) {
  double most = 0;
  for (const view::CurvePoint& point : curve) most = std::max(most, point.y);
  return most;
}

TimelineSide make_side(const plan::Timeline& timeline, const plan::Timeline* measured,
                       const Arrivals* arrivals, std::vector<plan::Space> spaces, view::RunAxis axis) {
  TimelineSide side;
  unsigned counted = 0;
  for (const plan::Space space : spaces) {
    counted |= plan::space_bit(space) & plan::kHeldSpaces;
    if (timeline.peaks[plan::index(space)].bytes > 0) side.spaces.push_back(space);
  }
  for (std::size_t i = 1; i <= side.spaces.size(); ++i)
    side.sums.push_back(sum_curve(timeline, std::span(side.spaces).first(i), axis));
  if (side.spaces.empty()) return side;
  for (std::size_t i = 0; arrivals != nullptr && i < side.spaces.size(); ++i)
    side.arrived.push_back(arrived_curve(timeline, *arrivals, side.spaces, i, axis));
  side.most = most_of(side.sums.back());
  side.peak = plan::peak_over(timeline, counted);
  if (measured == nullptr) return side;
  side.measured = sum_curve(*measured, side.spaces, axis);
  side.most = std::max(side.most, most_of(side.measured));
  return side;
}

void add_sample(TimelineCurves& curves, double x, const plan::MemorySample& sample) {
  const auto process = static_cast<double>(sample.memory.rss_anon + sample.memory.rss_shmem);
  const auto driver = static_cast<double>(sample.device_counted);
  curves.process.push_back({x, process});
  curves.driver.push_back({x, driver});
  curves.sides[0].most = std::max({curves.sides[0].most, process, driver});
}

}  // namespace

TimelineCurves timeline_curves(const load::Projection& projection, const UploadResult* upload,
                               const load::Budget& budget, view::RunAxis axis, TimelineShape shape,
                               const Arrivals* arrivals) {
  TimelineCurves curves;
  curves.axis = axis;
  curves.shape = shape;
  const std::size_t steps = projection.plan.steps.size();
  curves.modeled_length = view::length_of(projection.timeline, steps, axis);
  curves.length = curves.modeled_length;
  const plan::Timeline* const measured = upload == nullptr ? nullptr : &upload->report.measured;
  for (const bool above : {true, false})
    curves.sides[above ? 0 : 1] =
        make_side(projection.timeline, measured, arrivals, spaces_of(shape, above), axis);
  curves.sides[0].budget = shape == TimelineShape::stacked ? budget.unified : budget.device;
  curves.sides[1].budget = budget.host;
  if (measured == nullptr) return curves;
  if (axis == view::RunAxis::seconds) curves.length = std::max(curves.length, measured->seconds);
  if (shape == TimelineShape::split) return curves;
  for (const plan::MemorySample& sample : measured->measured)
    add_sample(curves, view::x_of_sample(*measured, steps, axis, sample.seconds), sample);
  if (!upload->report.device_budget_peak) curves.driver.clear();
  return curves;
}

void take_samples(TimelineCurves& curves, const load::SampleLog::Entries& samples) {
  curves.process.clear();
  curves.driver.clear();
  for (std::size_t i = 0; i < samples.samples.size(); ++i)
    add_sample(curves, static_cast<double>(samples.steps[i]), samples.samples[i]);
  curves.sampled_until = samples.steps.empty() ? 0 : static_cast<double>(samples.steps.back());
  if (std::ranges::all_of(curves.driver, [](const view::CurvePoint& point) { return point.y == 0; }))
    curves.driver.clear();
}

std::size_t step_at_same_time(const load::Projection& first, std::size_t step,
                              const load::Projection& other) {
  const double seconds =
      view::x_of_step(first.timeline, first.plan.steps.size(), view::RunAxis::seconds, step);
  return view::step_at_x(other.timeline, other.plan.steps.size(), view::RunAxis::seconds, seconds);
}

std::string step_text(const Model& model, const load::Projection& projection, std::size_t step) {
  const plan::Plan& plan = projection.plan;
  if (step >= plan.steps.size()) return {};
  constexpr std::array<std::string_view, 3> kVerbs = {"allocate", "copy", "free"};
  const plan::Step& now = plan.steps[step];
  const plan::Block& block = plan.block(now.block);
  const auto* const storage = std::get_if<graph::StorageId>(&now.from);
  const bool reads = now.verb == plan::Verb::copy && storage != nullptr;
  // into a slot of a ring: what is read says more than where it goes
  const auto owner = reads ? model.owners[graph::index(*storage)] : std::nullopt;
  const std::string name =
      owner ? model.tensor(*owner).name.str() : plan::block_label(block, *model.graph, model.owners);
  const std::string_view verb =
      reads && block.space != plan::Space::page_cache ? "read" : kVerbs[static_cast<std::size_t>(now.verb)];
  return fmt::format("{} {}, {}", verb, safe_display(name, 60), plan::space_title(block.space));
}

// --- The shared axis.

double axis_length(const Workspace& workspace) {
  const Document& document = workspace.document();
  const view::RunAxis unit = document.axis_unit();
  const auto length = [&](const load::Projection& run) {
    return view::length_of(run.timeline, run.plan.steps.size(), unit);
  };
  if (!document.load.projection.value()) return 1;
  double longest = length(*document.load.projection.value());
  if (unit == view::RunAxis::seconds) {
    // clocks can be compared, steps cannot
    for (const auto& other : {document.load.beside.value(), document.advice.previewed.value()})
      if (other) longest = std::max(longest, length(*other));
    if (const auto upload = workspace.transfers.uploaded(document))
      longest = std::max(longest, upload->report.measured.seconds);
  }
  return longest > 0 ? longest : 1;
}

PlotArea on_time_axis(const Ui& ui, Document& document, PlotArea area) {
  if (const auto& room = document.axis.room) {
    area.low.x = std::max(area.low.x, std::round(room->left + ui.px(kPlotAxisWidth)));
    area.high.x = std::min(area.high.x, std::round(room->right - ui.px(kLevelLabels + 6)));
  }
  area.high.x = std::max(area.high.x, area.low.x + 1);
  document.axis.panel = PlotEdges{area.low.x, area.high.x};
  return area;
}

void paint_budget_line(const Ui& ui, float left, float right, float y) {
  ImGui::GetWindowDrawList()->AddLine({left, y}, {right, y}, ui.theme->text, std::max(1.0f, ui.px(1.5f)));
}

std::string moment_text(view::RunAxis unit, double x) {
  if (unit == view::RunAxis::seconds) return x <= 0 ? "0" : format_seconds(x);
  return x < 1 ? "start" : "step " + format_grouped(static_cast<std::uint64_t>(x));
}

void paint_time_axis(const Ui& ui, const PlotArea& area, const PlotRange& range, view::RunAxis unit,
                     double length) {
  for (const double tick : view::decimal_ticks(range.from * length, range.to * length, tick_room(ui, area))) {
    if (unit == view::RunAxis::steps && tick != std::floor(tick)) continue;  // no step is there
    paint_tick(ui, area, pixel_of_share(area, range, tick / length), moment_text(unit, tick));
  }
}

void unit_switch(const Ui& ui, Document& document) {
  const auto now = static_cast<std::size_t>(document.axis_unit());
  const std::size_t picked = segmented(ui, "axis", kAxisUnits, now);
  tooltip(
      ui,
      document.load.beside.value()
          ? "Two methods have the clock in common, not their steps (T)"
          : "Steps: every step is equally wide. Time: as wide as it lasts, by the modeled clock. Here and in "
            "the tab Load (T)");
  if (picked != now) document.show_unit(static_cast<view::RunAxis>(picked));
}

// Mapped pages can be dropped: they are paler.
ImU32 allocated_color(const Theme& theme, plan::Space space) {
  return mix(theme.panel, theme.spaces[plan::index(space)], space == plan::Space::page_cache ? 0.14f : 0.30f);
}
ImU32 arrived_color(const Theme& theme, plan::Space space) {
  return mix(theme.panel, theme.spaces[plan::index(space)], space == plan::Space::page_cache ? 0.40f : 0.85f);
}

// --- Painter's order from the top of the stack down: each level covers what lies below its sum.

// A line further than this above the curves would press them flat: its label says where it is.
constexpr double kReach = 1.35;

float TimelinePlot::Lane::y(double bytes) const {
  const double share = most > 0 ? std::min(bytes / most, 1.0) : 0;
  return std::round(base + static_cast<float>(share) * (far - base));
}

void TimelinePlot::set_curves(TimelineCurves curves, std::vector<TimelineLevel> levels) {
  curves_ = std::move(curves);
  levels_ = std::move(levels);
  ghost_.reset();
  columns_ = 0;
}

void TimelinePlot::take_samples(const load::SampleLog::Entries& samples) {
  gui::take_samples(curves_, samples);
  samples_stale_ = true;
}

void TimelinePlot::set_ghost(std::optional<TimelineCurves> ghost, std::string label) {
  ghost_ = std::move(ghost);
  ghost_label_ = std::move(label);
  columns_ = 0;
}

double TimelinePlot::top_of(std::size_t at) const {
  const TimelineSide& side = curves_.sides[at];
  double most = side.most;
  if (ghost_) most = std::max(most, ghost_->sides[at].most);
  if (most <= 0) return 0;
  const double reach = most * kReach;
  if (side.budget && static_cast<double>(*side.budget) <= reach)
    most = std::max(most, static_cast<double>(*side.budget));
  return most * kPlotHeadroom;
}

// Both sides have one scale: what is twice as high is twice as much. A line is left for the label of a peak.
std::array<TimelinePlot::Lane, 2> TimelinePlot::lanes(const Ui& ui, const Frame& frame) const {
  PlotArea whole = frame.area;
  const double above = top_of(0), below = top_of(1);
  const float label = whole.height() > ui.px(above > 0 && below > 0 ? 150 : 70) ? ui.px(16) : 0;
  if (above > 0) whole.low.y += label;
  if (below > 0) whole.high.y -= label;
  const double sum = std::max(above + below, 1.0);
  const float base = std::round(whole.low.y + whole.height() * static_cast<float>(above / sum));
  return {{{whole.low.x, whole.high.x, base, whole.low.y, above},
           {whole.low.x, whole.high.x, base, whole.high.y, below}}};
}

void TimelinePlot::refresh(std::size_t columns, const PlotRange& range) {
  const double x0 = range.from * curves_.length, x1 = range.to * curves_.length;
  const auto reduced = [&](std::span<const view::CurvePoint> curve) {
    return curve.empty() ? Columns() : view::step_columns(curve, x0, x1, columns);
  };
  const bool same = columns == columns_ && range == columns_range_;
  if (same && !samples_stale_) return;
  samples_stale_ = false;
  process_columns_ = reduced(curves_.process);
  driver_columns_ = reduced(curves_.driver);
  if (same) return;
  columns_ = columns;
  columns_range_ = range;
  shows_waiting_ = false;
  for (std::size_t i = 0; i < curves_.sides.size(); ++i) {
    const TimelineSide& side = curves_.sides[i];
    SideColumns& made = side_columns_[i] = {};
    for (const auto& sum : side.sums) made.sums.push_back(reduced(sum));
    for (const auto& sum : side.arrived) made.arrived.push_back(reduced(sum));
    // less is a line or two of pixels, which nobody sees as pale
    constexpr double kSeen = 0.003;  // of the area
    double pale = 0;
    for (std::size_t level = 0; level < made.arrived.size(); ++level)
      for (std::size_t x = 0; x < columns; ++x)
        pale += std::max(0.0, made.sums[level][x].low - made.arrived[level][x].high);
    shows_waiting_ = shows_waiting_ || pale > kSeen * top_of(i) * static_cast<double>(columns);
    made.measured = reduced(side.measured);
    if (!ghost_ || ghost_->sides[i].sums.empty()) continue;
    // over the same width: the loads have different steps
    const double scale = curves_.length > 0 ? ghost_->length / curves_.length : 1;
    made.ghost = view::step_columns(ghost_->sides[i].sums.back(), x0 * scale, x1 * scale, columns);
  }
}

float TimelinePlot::pixel_of(const Frame& frame, double x) const {
  return pixel_of_share(frame.area, frame.range, curves_.length > 0 ? x / curves_.length : 0);
}

void TimelinePlot::draw_byte_axis(const Ui& ui, const Lane& lane) const {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(ui.fonts.small);
  const float height = std::abs(lane.base - lane.far);
  if (height < ui.px(10)) return;
  const auto wanted = static_cast<std::size_t>(std::clamp(height / ui.px(20), 1.0f, 8.0f));
  for (const double tick : view::byte_ticks(lane.most, wanted)) {
    if (tick > lane.most) continue;
    const float y = lane.y(tick);
    draw->AddLine({lane.left, y}, {lane.right, y}, ui.theme->grid, std::max(1.0f, ui.px(1)));
    if (tick > 0 && std::abs(y - lane.base) < ImGui::GetFontSize()) continue;  // the zero has its label
    put_text_before(lane.left - ui.px(8), y - ImGui::GetFontSize() / 2, ui.theme->muted,
                    tick_label(static_cast<std::uint64_t>(tick)));
  }
}

void TimelinePlot::draw_level(const Ui& ui, const Lane& lane, const Columns& columns,
                              const Inks& inks) const {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float width = (lane.right - lane.left) / static_cast<float>(columns.size());
  const auto fill = [&](float x0, float x1, float from, float to, ImU32 ink) {
    if (from != to && ink != 0) draw->AddRectFilled({x0, std::min(from, to)}, {x1, std::max(from, to)}, ink);
  };
  for (std::size_t i = 0; i < columns.size();) {
    std::size_t end = i + 1;
    while (end < columns.size() && columns[end] == columns[i]) ++end;
    const float x0 = lane.left + static_cast<float>(i) * width;
    const float x1 = lane.left + static_cast<float>(end) * width;
    const float low = lane.y(columns[i].low), high = lane.y(columns[i].high);
    fill(x0, x1, lane.base, low, inks.body);
    fill(x0, x1, low, high, inks.teeth);
    const float line = high - lane.towards(std::max(1.0f, ui.px(1.5f)));
    if (high != lane.base) fill(x0, x1, high, line, inks.edge);
    if (high != lane.base) fill(x0, x1, high, high + lane.towards(std::max(1.0f, ui.px(1))), inks.gap);
    i = end;
  }
}

// What has arrived lies on what is allocated, and what is below in the stack covers the rest of both.
void TimelinePlot::draw_levels(const Ui& ui, const Lane& lane, const TimelineSide& side,
                               const SideColumns& columns) const {
  for (std::size_t level = side.spaces.size(); level-- > 0;) {
    const plan::Space space = side.spaces[level];
    const ImU32 color = ui.theme->spaces[plan::index(space)], dense = arrived_color(*ui.theme, space);
    const bool known = !columns.arrived.empty();
    draw_level(ui, lane, columns.sums[level],  // a line apart: some colors differ little to some eyes
               {known ? allocated_color(*ui.theme, space) : dense, with_alpha(color, known ? 0.22f : 0.5f),
                color, level + 1 < side.spaces.size() ? ui.theme->panel : 0});
    if (known) draw_level(ui, lane, columns.arrived[level], {dense, with_alpha(dense, 0.6f), 0});
  }
}

// Red is what does not fit, and nothing else.
void TimelinePlot::draw_excess(const Ui& ui, const Lane& lane, const Columns& columns,
                               std::uint64_t budget) const {
  const float width = (lane.right - lane.left) / static_cast<float>(columns.size());
  const float line = lane.y(static_cast<double>(budget));
  for (std::size_t i = 0; i < columns.size();) {
    std::size_t end = i + 1;
    while (end < columns.size() && columns[end] == columns[i]) ++end;
    if (columns[i].high > static_cast<double>(budget)) {
      const float high = lane.y(columns[i].high);
      ImGui::GetWindowDrawList()->AddRectFilled(
          {lane.left + static_cast<float>(i) * width, std::min(line, high)},
          {lane.left + static_cast<float>(end) * width, std::max(line, high)}, ui.theme->bad);
    }
    i = end;
  }
  // hatched: without red and green the host's color looks the same
  for (float x = lane.left + ui.px(3); x < lane.right; x += ui.px(6)) {
    const auto at = std::min(columns.size() - 1, static_cast<std::size_t>((x - lane.left) / width));
    if (columns[at].high > static_cast<double>(budget))
      ImGui::GetWindowDrawList()->AddLine({x, line}, {x, lane.y(columns[at].high)},
                                          with_alpha(ui.theme->sea, 0.4f), ui.px(1));
  }
}

void TimelinePlot::draw_ghost(const Ui& ui, const Lane& lane, const Columns& columns) {
  if (columns.empty()) return;
  const float each = (lane.right - lane.left) / static_cast<float>(columns.size());
  const auto place = [&](std::size_t i) {
    return ImVec2{lane.left + (static_cast<float>(i) + 0.5f) * each, lane.y(columns[i].high)};
  };
  const auto on = static_cast<std::size_t>(ui.px(7)), period = static_cast<std::size_t>(ui.px(11));
  for (std::size_t i = 1; i < columns.size(); ++i)
    if (i % period < on)
      ImGui::GetWindowDrawList()->AddLine(place(i - 1), place(i), ui.theme->text, ui.px(1.5f));
}

PlotArea TimelinePlot::place_of_label(const Ui& ui, const Frame& frame, std::size_t side, ImVec2 at,
                                      ImVec2 size) const {
  const Lane lane = lanes(ui, frame)[side];
  const SideColumns& columns = side_columns_[side];
  const float each = (lane.right - lane.left) / static_cast<float>(std::max<std::size_t>(columns_, 1));
  const auto covers = [&](const PlotArea& place, const Columns& curve) {
    const auto column = [&](float x) {
      return static_cast<std::size_t>(
          std::clamp((x - lane.left) / each, 0.0f, static_cast<float>(curve.size()) - 1));
    };
    for (std::size_t i = column(place.low.x); i <= column(place.high.x); ++i) {
      const float a = lane.y(curve[i].low), b = lane.y(curve[i].high);
      if (std::min(a, b) <= place.high.y && std::max(a, b) >= place.low.y) return true;
    }
    return false;
  };
  const auto faults = [&](const PlotArea& place) {
    int count = 0;
    for (const PlotArea& other : flags_) count += place.overlaps(other) ? 4 : 0;
    if (!columns.sums.empty() && !columns.sums.back().empty()) count += covers(place, columns.sums.back());
    if (!columns.ghost.empty()) count += covers(place, columns.ghost);
    return count;
  };
  const float gap = ui.px(6), beyond = lane.far < lane.base ? at.y - gap - size.y : at.y + gap;
  const float within = lane.far < lane.base ? at.y + gap : at.y - gap - size.y;
  const float right = at.x + ui.px(8), left = at.x - ui.px(8) - size.x;
  std::optional<PlotArea> best;
  for (const ImVec2 corner : {ImVec2{at.x - size.x / 2, beyond},
                              {right, beyond},
                              {left, beyond},
                              {right, at.y - size.y / 2},
                              {left, at.y - size.y / 2},
                              {right, within},
                              {left, within}}) {
    const ImVec2 low = {std::clamp(corner.x, lane.left, std::max(lane.left, lane.right - size.x)),
                        std::clamp(corner.y, frame.area.low.y - ui.px(2),
                                   std::max(frame.area.low.y, frame.area.high.y - size.y))};
    const PlotArea place = {low, low + size};
    if (!best || faults(place) < faults(*best)) best = place;
  }
  return *best;
}

// The other load's name at its highest place.
void TimelinePlot::label_ghost(const Ui& ui, const Frame& frame, std::size_t side) {
  const Columns& columns = side_columns_[side].ghost;
  if (columns.empty()) return;
  const Lane lane = lanes(ui, frame)[side];
  const FontScope font(ui.fonts.small);
  const auto highest = std::ranges::max_element(columns, {}, [](const auto& column) { return column.high; });
  const float each = (lane.right - lane.left) / static_cast<float>(columns.size());
  const ImVec2 at = {lane.left + (static_cast<float>(highest - columns.begin()) + 0.5f) * each,
                     lane.y(highest->high)};
  const std::string words =
      elided(fmt::format("{}: {}", ghost_label_, format_bytes(static_cast<std::uint64_t>(highest->high))),
             ui.px(320));
  const PlotArea flag =
      place_of_label(ui, frame, side, at, {text_width(words) + ui.px(12), ImGui::GetFontSize() + ui.px(4)});
  flags_.push_back(flag);
  ImGui::GetWindowDrawList()->AddRectFilled(flag.low, flag.high, ui.theme->raised, ui.px(5));
  put_text(flag.low + ImVec2{ui.px(6), ui.px(2)}, ui.theme->text, words);
}

void TimelinePlot::draw_line(const Ui& ui, const Lane& lane, const Columns& columns, ImU32 color, float width,
                             std::optional<double> until) const {
  if (columns.empty()) return;
  const float each = (lane.right - lane.left) / static_cast<float>(columns.size());
  std::size_t end = columns.size();
  if (until && curves_.length > 0) {
    const double share =
        (*until / curves_.length - columns_range_.from) / (columns_range_.to - columns_range_.from);
    end = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(columns.size()));
  }
  std::vector<ImVec2> points;
  points.reserve(end);
  for (std::size_t i = 0; i < end; ++i)
    points.push_back({lane.left + (static_cast<float>(i) + 0.5f) * each, lane.y(columns[i].high)});
  ImGui::GetWindowDrawList()->AddPolyline(points.data(), static_cast<int>(points.size()), color, 0,
                                          ui.px(width));
}

void TimelinePlot::draw_lines_of_levels(const Ui& ui, const Lane& lane, const TimelineSide& side) {
  const FontScope font(ui.fonts.small);
  const float line = ImGui::GetFontSize();
  // labels stand beside the plot, and move away from others without passing them; a line whose label has no
  // room is known by its height
  const auto label = [&](float y, ImU32 color, const std::string& words, const std::string& below = "") {
    const float low = std::min(lane.base, lane.far) - line / 2, high = std::max(lane.base, lane.far) + line;
    const float tall = below.empty() ? line : 2 * line;
    const auto place_at = [&](float center) {
      const float top = std::clamp(center - tall / 2, low, std::max(low, high - tall));
      return PlotArea{{lane.right, top}, {lane.right + ui.px(kLevelLabels), top + tall}};
    };
    const auto other_at = [&](const PlotArea& place) {
      return std::ranges::find_if(labels_, [&](const PlotArea& other) { return place.overlaps(other); });
    };
    PlotArea place = place_at(y);
    for (int moves = 0; moves < 2 && other_at(place) != labels_.end(); ++moves) {
      const PlotArea& other = *other_at(place);
      place =
          place_at(y < (other.low.y + other.high.y) / 2 ? other.low.y - tall / 2 : other.high.y + tall / 2);
    }
    if (other_at(place) != labels_.end()) return;
    labels_.push_back(place);
    put_text({lane.right + ui.px(6), place.low.y}, color, words);
    put_text({lane.right + ui.px(6), place.low.y + line}, color, below);
  };
  if (side.budget) {
    const auto bytes = static_cast<double>(*side.budget);
    const bool inside = bytes <= lane.most;
    const float y = inside ? lane.y(bytes) : lane.far;
    if (inside) paint_budget_line(ui, lane.left, lane.right, y);
    const std::string_view beyond = inside ? "" : lane.far < lane.base ? "\xE2\x86\x91 " : "\xE2\x86\x93 ";
    const std::string figure = fmt::format("{}{}", beyond, tick_label(*side.budget));
    const std::string words = figure + " budget";
    const bool broad = text_width(words) > ui.px(kLevelLabels - 6);
    label(y, ui.theme->text, broad ? figure : words, broad ? "budget" : "");
  }
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    const auto bytes = static_cast<double>(level->bytes);
    if (bytes > lane.most) continue;
    const float y = lane.y(bytes);
    paint_dashed({lane.left, y}, {lane.right, y}, with_alpha(ui.theme->text, 0.6f), ui.px(3), ui.px(5),
                 std::max(1.0f, ui.px(1)));
    label(y, ui.theme->muted, level->label);
  }
}

void TimelinePlot::draw(const Ui& ui, const Frame& frame) {
  flags_.clear();
  labels_.clear();
  refresh(static_cast<std::size_t>(std::max(1.0f, std::round(frame.area.width()))), frame.range);
  const std::array<Lane, 2> places = lanes(ui, frame);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const TimelineSide& side = curves_.sides[i];
    const SideColumns& columns = side_columns_[i];
    if (side.spaces.empty()) continue;
    draw_byte_axis(ui, places[i]);
    draw_levels(ui, places[i], side, columns);
    if (side.budget) {
      std::size_t counted = side.spaces.size();
      while (counted > 0 && side.spaces[counted - 1] == plan::Space::page_cache) --counted;
      if (counted > 0) draw_excess(ui, places[i], columns.sums[counted - 1], *side.budget);
    }
    draw_ghost(ui, places[i], columns.ghost);
    draw_line(ui, places[i], columns.measured, ui.theme->highlight, 2.0f);
    if (i > 0) continue;
    draw_line(ui, places[i], process_columns_, ui.theme->good, 1.6f, curves_.sampled_until);
    draw_line(ui, places[i], driver_columns_, ui.theme->accent, 1.6f, curves_.sampled_until);
  }
  for (std::size_t i = 0; i < places.size(); ++i)
    if (!curves_.sides[i].spaces.empty()) draw_lines_of_levels(ui, places[i], curves_.sides[i]);
  const float base = places[0].base;
  ImGui::GetWindowDrawList()->AddLine({frame.area.low.x, base}, {frame.area.high.x, base}, ui.theme->muted,
                                      std::max(1.0f, ui.px(1)));
  paint_time_axis(ui, frame.area, frame.range, curves_.axis, std::max(curves_.length, 1e-12));
}

void TimelinePlot::mark(const Ui& ui, const Frame& frame, double x, ImU32 color) const {
  const float at = pixel_of(frame, x);
  if (at >= frame.area.low.x && at <= frame.area.high.x) paint_mark(ui, frame.area, at, color, std::nullopt);
}

std::optional<PlotArea> TimelinePlot::label_mark(const Ui& ui, const Frame& frame, double x, ImU32 color,
                                                 std::string_view label) {
  const float at = pixel_of(frame, x);
  if (at < frame.area.low.x || at > frame.area.high.x) return std::nullopt;
  return paint_flag(ui, frame.area, at, color, label, flags_);
}

void TimelinePlot::mark_peak(const Ui& ui, const Frame& frame, std::size_t at, double x,
                             std::string_view label) {
  const TimelineSide& side = curves_.sides[at];
  const float pixel = pixel_of(frame, x);
  if (side.spaces.empty() || pixel < frame.area.low.x || pixel > frame.area.high.x) return;
  const bool over = side.budget && side.peak.bytes > *side.budget;
  const ImU32 color = over ? ui.theme->bad : ui.theme->text;
  const Lane lane = lanes(ui, frame)[at];
  const float y = lane.y(static_cast<double>(side.peak.bytes));
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddCircleFilled({pixel, y}, ui.px(4.5f), ui.theme->panel);
  draw->AddCircleFilled({pixel, y}, ui.px(3.2f), color);
  const FontScope font(ui.fonts.small);
  const ImVec2 pad = {ui.px(6), ui.px(2)};
  const PlotArea flag = place_of_label(ui, frame, at, {pixel, y},
                                       {text_width(label) + 2 * pad.x, ImGui::GetFontSize() + 2 * pad.y});
  flags_.push_back(flag);
  draw->AddRectFilled(flag.low, flag.high, over ? color : ui.theme->raised, ui.px(5));
  put_text(flag.low + pad, over ? text_on(color) : ui.theme->text, label);
}

}  // namespace loadline::gui
