// Tab Forward: one pass for rows and curves; lanes arranged and painted.

#include "app/gui/panels/forward/forward.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/file_data.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

namespace loadline::gui {

// --- One pass over the values for the rows, one over the operators for the curves.

namespace {

void add_row(PassData& data, PassRow row) {
  LaneRows& lane = data.lanes[static_cast<std::size_t>(row.lane)];
  lane.most_bytes = std::max(lane.most_bytes, row.bytes);
  lane.bytes += row.bytes;
  lane.spans.push_back(
      {data.xs[row.ops.first], data.xs[std::min<std::size_t>(row.ops.end, data.xs.size() - 1)]});
  lane.rows.push_back(row);
}

// Of an activation: in a training step what it is for.
PassLane activation_lane(const graph::ForwardGraph& forward, const forward::OpRange& ops, graph::ValueId id) {
  if (!forward.training) return PassLane::activations;
  const graph::TrainingParts& training = *forward.training;
  // what a step leaves for the next one: the states of the optimizer, and adapters
  if (ops.first == 0 && ops.end >= forward.ops.size() &&
      std::ranges::find(forward.outputs, id) != forward.outputs.end())
    return PassLane::states;
  if (ops.first >= training.backward)
    return forward.value(id).name.ends_with(".grad") ? PassLane::gradients : PassLane::activations;
  return ops.end > training.backward ? PassLane::kept : PassLane::activations;
}

void add_rows(PassData& data) {
  const ForwardScene& scene = *data.scene;
  for (const ForwardScene::WeightUse& use : scene.weights)
    add_row(data, {PassLane::weights, static_cast<std::uint32_t>(use.tensor),
                   graph::tensor_bytes(*scene.graph, scene.graph->tensor(use.tensor)), use.ops});
  const auto value = [&](PassLane lane, graph::ValueId id, forward::OpRange ops) {
    const std::uint64_t bytes = data.figures ? data.figures->sizes[graph::index(id)].value_or(0) : 1;
    if (bytes > 0) add_row(data, {lane, static_cast<std::uint32_t>(id), data.figures ? bytes : 0, ops});
  };
  for (const auto& [id, ops] : scene.cache) value(PassLane::cache, id, ops);
  for (const graph::ValueId id : scene.activations) {
    const forward::OpRange& ops = scene.model.lives[graph::index(id)];
    value(activation_lane(*scene.forward(), ops, id), id, ops);
  }
  for (const graph::ValueId id : scene.temporaries)
    value(PassLane::temporaries, id, scene.model.lives[graph::index(id)]);
}

// Of the rows of a lane, during each operator.
std::vector<std::uint64_t> bytes_alive(const LaneRows& lane, std::size_t ops) {
  std::vector<std::uint64_t> change(ops + 1, 0);  // wraps around and back
  for (const PassRow& row : lane.rows) {
    change[std::min<std::size_t>(row.ops.first, ops)] += row.bytes;
    change[std::min<std::size_t>(row.ops.end, ops)] -= row.bytes;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  change.pop_back();
  return change;
}

// The sums from the bottom. A lane that does not count has the curve of the lane below it.
void add_curves(PassData& data, bool everything) {
  const std::vector<forward::LaneBytes>& usage = data.figures->usage;
  // the parts of a training step, which count among its activations
  constexpr std::array<PassLane, 3> kParts = {PassLane::states, PassLane::gradients, PassLane::kept};
  std::array<std::vector<std::uint64_t>, kParts.size()> alive;
  for (std::size_t part = 0; part < kParts.size(); ++part)
    alive[part] = bytes_alive(data.lanes[static_cast<std::size_t>(kParts[part])], usage.size());
  for (std::size_t i = 0; i < usage.size(); ++i) {
    const std::uint64_t of_parts = alive[0][i] + alive[1][i] + alive[2][i];
    const std::array<std::uint64_t, kPassLanes> parts = {
        everything ? data.weight_bytes : 0,
        everything ? usage[i].cache : 0,
        alive[0][i],
        alive[1][i],
        alive[2][i],
        usage[i].activations - std::min(usage[i].activations, of_parts),
        usage[i].temporaries};
    data.alive.push_back(parts);
    double sum = 0;
    for (std::size_t lane = 0; lane < kPassLanes; ++lane) {
      sum += static_cast<double>(parts[lane]);
      data.curves[lane].push_back({data.xs[i], sum});
    }
    data.most_everything = std::max(data.most_everything, sum);
  }
  data.most_passing = static_cast<double>(data.figures->peak.bytes);
}

}  // namespace

std::shared_ptr<const PassData> pass_data(std::shared_ptr<const ForwardScene> scene,
                                          std::shared_ptr<const forward::ForwardFigures> figures,
                                          bool everything, std::vector<double> steps) {
  auto data = std::make_shared<PassData>();
  data->scene = std::move(scene);
  data->figures = std::move(figures);
  const std::size_t ops = data->scene->forward()->ops.size();
  data->on_load = steps.size() == ops + 1;
  if (data->on_load)
    data->xs = std::move(steps);
  else
    for (std::size_t i = 0; i <= ops; ++i) data->xs.push_back(static_cast<double>(i));
  data->length = data->xs.back();
  data->weight_bytes = data->scene->tree.nodes.front().weight_bytes;
  add_rows(*data);
  if (data->figures) add_curves(*data, everything);
  return data;
}

std::optional<plan::PassPlaces> places_of_pass(const Document& document) {
  const auto& load = document.load.projection.value();
  if (document.load.pass() == nullptr || !load || document.forward.graph() == nullptr) return std::nullopt;
  const graph::ForwardGraph& forward = *document.forward.graph();
  try {
    return plan::pass_places(load->plan, {&forward, symbols_of(forward, document.load.asked().request)});
  } catch (const Error&) {
    return std::nullopt;  // what is asked now has sizes beyond counting, and the answer is still to come
  }
}

std::vector<PassRow> alive_rows(const PassData& data, std::uint32_t op) {
  // what it uses, which may lie between the first and the last use of the tensor only
  std::vector<bool> used(data.scene->graph->tensors.size(), false);
  for (const graph::TensorId id : data.scene->forward()->ops[op].weights) used[graph::index(id)] = true;
  std::vector<PassRow> alive;
  for (const PassLane lane : {PassLane::activations, PassLane::temporaries, PassLane::kept,
                              PassLane::gradients, PassLane::states, PassLane::cache, PassLane::weights}) {
    for (const PassRow& row : data.lanes[static_cast<std::size_t>(lane)].rows)
      if (lane == PassLane::weights ? used[row.id] : row.ops.first <= op && op < row.ops.end)
        alive.push_back(row);
  }
  std::ranges::stable_sort(alive, std::greater{}, &PassRow::bytes);
  return alive;
}

std::string_view row_name(const PassData& data, const PassRow& row) {
  constexpr std::size_t kMost = 300;
  if (row.lane == PassLane::weights)
    return beginning(data.scene->graph->tensor(graph::TensorId{row.id}).name, kMost);
  return beginning(data.scene->forward()->value(graph::ValueId{row.id}).name, kMost);
}

std::string row_shape(const PassData& data, const PassRow& row) {
  if (row.lane == PassLane::weights) {
    const graph::Tensor& tensor = data.scene->graph->tensor(graph::TensorId{row.id});
    return shape_text(tensor) + " " + std::string(graph::dtype_info(tensor.dtype).name);
  }
  const graph::ForwardGraph& forward = *data.scene->forward();
  const graph::Value& value = forward.value(graph::ValueId{row.id});
  std::string text = sides_text(forward, graph::ValueId{row.id});
  if (value.dtype) text += " " + std::string(graph::dtype_info(*value.dtype).name);
  return text;
}

// --- Lanes are arranged when data, range or size change; a frame draws rectangles only.

namespace {

constexpr float kTallestRow = 18;
constexpr float kLaneGap = 8;
constexpr float kLeastLane = 22;
constexpr float kLeastCurve = 64;
constexpr float kLabeledRow = 13;  // rows of this height have room for a name
// Shares of the room, by PassLane, where not all rows can have their full height.
constexpr std::array<float, kPassLanes> kShares = {2.0f, 1.2f, 1.2f, 2.0f, 2.5f, 3.0f, 1.6f};

// The height that each lane wants, or its share of `room` if all lanes together want more.
std::array<float, kPassLanes> divided(const std::array<float, kPassLanes>& wanted, float room) {
  std::array<float, kPassLanes> given = {};
  std::array<bool, kPassLanes> settled = {};
  for (std::size_t round = 0; round < kPassLanes; ++round) {
    float shares = 0;
    for (std::size_t i = 0; i < kPassLanes; ++i)
      if (wanted[i] > 0 && !settled[i]) shares += kShares[i];
    bool changed = false;
    const float left = room;
    for (std::size_t i = 0; i < kPassLanes; ++i) {
      if (wanted[i] <= 0 || settled[i]) continue;
      given[i] = left * kShares[i] / shares;
      if (wanted[i] > given[i]) continue;
      given[i] = wanted[i];
      settled[i] = changed = true;
      room -= wanted[i];
    }
    if (!changed) break;
  }
  return given;
}

// Heavy values stand out.
float strength(std::uint64_t bytes, std::uint64_t most) {
  if (most == 0) return 1;
  constexpr double kWeakest = 0.5;
  const double share = static_cast<double>(bytes) / static_cast<double>(most);
  return static_cast<float>(kWeakest + (1 - kWeakest) * std::sqrt(share));
}

}  // namespace

void LifetimesPlot::set_data(std::shared_ptr<const PassData> data) {
  data_ = std::move(data);
  lanes_.clear();  // of other rows
  arranged_.reset();
}

PlotArea LifetimesPlot::curve_area(const Frame& frame) const {
  PlotArea area = frame.area;
  area.high.y = curve_bottom_;
  return area;
}

double LifetimesPlot::top_of_curve(const Frame& frame) const {
  return (frame.everything ? data_->most_everything : data_->most_passing) * kPlotHeadroom;
}

float LifetimesPlot::pixel_of(const Frame& frame, double x) const {
  return pixel_of_share(frame.area, frame.range, x / data_->length);
}

std::uint32_t LifetimesPlot::op_at(const Frame& frame, float pixel) const {
  const double x = share_at_pixel(frame.area, frame.range, pixel) * data_->length;
  const auto after = std::ranges::upper_bound(data_->xs, x) - data_->xs.begin();
  const auto last = static_cast<std::ptrdiff_t>(data_->xs.size()) - 2;
  return static_cast<std::uint32_t>(std::clamp<std::ptrdiff_t>(after - 1, 0, last));
}

void LifetimesPlot::arrange_lanes(const Ui& ui, const PlotArea& area, double x0, double x1) {
  std::array<float, kPassLanes> wanted = {};
  std::size_t count = 0;
  for (std::size_t i = 0; i < kPassLanes; ++i) {
    const auto& spans = data_->lanes[i].spans;
    if (spans.empty()) continue;
    const auto rows =
        std::ranges::count_if(spans, [&](const view::Span& span) { return span.from < x1 && span.to > x0; });
    wanted[i] = std::max(static_cast<float>(rows) * ui.px(kTallestRow), ui.px(kLeastLane));
    ++count;
  }
  const float room = area.high.y - curve_bottom_ - ui.px(kLaneGap) * static_cast<float>(count);
  const std::array<float, kPassLanes> heights = divided(wanted, std::max(room, 0.0f));
  float top = curve_bottom_ + ui.px(kLaneGap);
  for (std::size_t i = 0; i < kPassLanes; ++i) {
    if (wanted[i] <= 0) continue;
    const float height = std::floor(heights[i]);
    lanes_.push_back({static_cast<PassLane>(i), top, top + height,
                      view::layout_lane(data_->lanes[i].spans, x0, x1, static_cast<double>(area.width()),
                                        static_cast<double>(height),
                                        {.tallest = static_cast<double>(ui.px(kTallestRow))})});
    top += height + ui.px(kLaneGap);
  }
}

void LifetimesPlot::arrange(const Ui& ui, const Frame& frame) {
  if (arranged_ == data_ && range_ == frame.range && area_ == frame.area) return;
  arranged_ = data_;
  range_ = frame.range;
  area_ = frame.area;
  lanes_.clear();
  const PlotArea& area = frame.area;
  curve_bottom_ =
      area.low.y + std::round(std::min(std::max(area.height() * 0.34f, ui.px(kLeastCurve)), area.height()));
  const double x0 = frame.range.from * data_->length;
  const double x1 = frame.range.to * data_->length;
  const auto columns = static_cast<std::size_t>(std::max(1.0f, area.width()));
  for (std::size_t i = 0; i < kPassLanes; ++i)
    columns_[i] = view::step_columns(data_->curves[i], x0, x1, columns);
  arrange_lanes(ui, area, x0, x1);
}

void LifetimesPlot::draw(const Ui& ui, const Frame& frame) {
  flags_.clear();
  arrange(ui, frame);
  draw_bands(ui, frame);
  draw_curve(ui, frame);
  for (const Lane& lane : lanes_) draw_lane(ui, frame, lane);
  draw_axis(ui, frame);
}

void LifetimesPlot::draw_bands(const Ui& ui, const Frame& frame) const {
  const PlotArea& area = frame.area;
  const auto& bands = data_->scene->bands;
  const float loaded = std::min(area.high.x, pixel_of(frame, data_->xs.front()));
  if (const FontScope font(ui.fonts.small);
      data_->on_load && loaded - area.low.x > text_width("the load") * 2)
    put_text({(area.low.x + loaded - text_width("the load")) / 2, area.low.y + ui.px(6)}, ui.theme->muted,
             "the load");
  for (std::size_t i = 0; i < bands.size(); i += 2) {
    const float left = std::max(area.low.x, pixel_of(frame, data_->xs[bands[i].ops.first]));
    const float right = std::min(area.high.x, pixel_of(frame, data_->xs[bands[i].ops.end]));
    if (right > left)
      ImGui::GetWindowDrawList()->AddRectFilled({left, area.low.y}, {right, area.high.y},
                                                with_alpha(ui.theme->grid, 0.45f));
  }
}

void LifetimesPlot::draw_curve(const Ui& ui, const Frame& frame) const {
  const PlotArea area = curve_area(frame);
  const double most = top_of_curve(frame);
  if (most <= 0) return;
  paint_byte_axis(ui, area, most);
  for (std::size_t i = kPassLanes; i-- > 0;)
    if (data_->lanes[i].bytes > 0 && (frame.everything || i > static_cast<std::size_t>(PassLane::cache)))
      paint_level(ui, area, most, columns_[i], pass_lane_color(*ui.theme, static_cast<PassLane>(i)));
}

void LifetimesPlot::draw_gutter(const Ui& ui, float right, const Lane& lane) const {
  const FontScope font(ui.fonts.small);
  const float line = ImGui::GetFontSize();
  const std::string figure = lane.lane == PassLane::weights ? format_bytes(data_->weight_bytes)
                             : data_->figures && lane.lane == PassLane::cache
                                 ? format_bytes(data_->figures->peak.cache_bytes)
                                 : counted(lane.layout.rows.size(), "value");
  const bool two = lane.bottom - lane.top >= 2 * line;
  const float y = (lane.top + lane.bottom) / 2 - (two ? line : line / 2);
  put_text_before(right - ui.px(8), y, ui.theme->text, pass_lane_name(lane.lane));
  if (two) put_text_before(right - ui.px(8), y + line, ui.theme->muted, figure);
}

void LifetimesPlot::draw_label(const Ui& ui, const PassRow& row, ImVec2 low, ImVec2 high, float right,
                               ImU32 color) const {
  const FontScope font(ui.fonts.small);
  constexpr std::size_t kMostName = 120;
  const std::string name = shown(row_name(*data_, row).substr(0, kMostName));
  const float width = text_width(name), pad = ui.px(4);
  const float y = std::round((low.y + high.y - ImGui::GetFontSize()) / 2);
  if (width + 2 * pad <= high.x - low.x)
    put_text({low.x + pad, y}, text_on(color), name);
  else if (high.x + pad + width <= right)
    put_text({high.x + pad, y}, ui.theme->muted, name);
}

void LifetimesPlot::draw_lane(const Ui& ui, const Frame& frame, const Lane& lane) const {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const PlotArea& area = frame.area;
  const ImU32 whole = pass_lane_color(*ui.theme, lane.lane);
  // as thin lines on a light ground, pale colors need a darker ink
  const bool thin = lane.layout.row_height < static_cast<double>(ui.px(4)) && !ui.theme->dark;
  const ImU32 color = thin ? mix(whole, ui.theme->text, 0.35f) : whole;
  const LaneRows& rows = data_->lanes[static_cast<std::size_t>(lane.lane)];
  // weights are there all the time, and so is the room for the cache; what is used stands out
  const bool throughout = lane.lane == PassLane::weights;
  draw->AddRectFilled({area.low.x, lane.top}, {area.high.x, lane.bottom},
                      throughout ? with_alpha(color, 0.16f) : with_alpha(ui.theme->raised, 0.45f), ui.px(3));
  draw->PushClipRect({area.low.x, lane.top}, {area.high.x, lane.bottom}, true);
  const auto row_of = [&](std::size_t at) -> const PassRow& { return rows.rows[lane.layout.rows[at]]; };
  for (const view::LaneBar& bar : lane.layout.bars) {
    std::uint64_t bytes = 0;
    bool selected = false;
    for (std::size_t i = bar.first; i < bar.first + bar.count; ++i) {
      bytes = std::max(bytes, row_of(i).bytes);
      selected = selected || (throughout && frame.selected && graph::index(*frame.selected) == row_of(i).id);
    }
    const ImVec2 low = {area.low.x + static_cast<float>(bar.rect.x),
                        lane.top + static_cast<float>(bar.rect.y)};
    const ImVec2 high = {low.x + static_cast<float>(bar.rect.w), low.y + static_cast<float>(bar.rect.h)};
    const ImU32 fill =
        selected ? ui.theme->highlight : mix(ui.theme->panel, color, strength(bytes, rows.most_bytes));
    draw->AddRectFilled(low, high, fill, bar.rect.h >= 8 ? ui.px(2) : 0);
    if (bar.count == 1 && bar.rect.h >= static_cast<double>(ui.px(kLabeledRow)))
      draw_label(ui, row_of(bar.first), low, high, area.high.x, fill);
  }
  draw->PopClipRect();
  draw_gutter(ui, area.low.x, lane);
}

// Labels under the axis that do not overlap.
class AxisLabels {
 public:
  AxisLabels(const Ui& ui, const PlotArea& area) : ui_(ui), area_(area) {}

  bool put(float x, const std::string& label) {
    const FontScope font(ui_.fonts.small);
    const float width = text_width(label);
    const float left = std::clamp(x - width / 2, area_.low.x, std::max(area_.low.x, area_.high.x - width));
    const float right = left + width;
    if (x < area_.low.x || x > area_.high.x || right > area_.high.x) return false;
    const float gap = ui_.px(14);
    for (const auto& [other_left, other_right] : taken_)
      if (left < other_right + gap && other_left < right + gap) return false;
    taken_.emplace_back(left, right);
    paint_tick(ui_, area_, x, label);
    return true;
  }

 private:
  const Ui& ui_;
  const PlotArea& area_;
  std::vector<std::pair<float, float>> taken_;
};

void LifetimesPlot::draw_axis(const Ui& ui, const Frame& frame) const {
  const PlotArea& area = frame.area;
  const double x0 = frame.range.from * data_->length;
  const double x1 = frame.range.to * data_->length;
  AxisLabels labels(ui, area);
  if (draw_layers(ui, frame, x0, x1, labels)) return;
  if (data_->on_load) return paint_time_axis(ui, area, frame.range, view::RunAxis::steps, data_->length);
  for (const double at : view::decimal_ticks(x0, x1, tick_room(ui, area)))
    if (at == std::floor(at) && at < data_->length)  // else no operator is there
      labels.put(pixel_of(frame, at + 0.5), "operator " + format_grouped(static_cast<std::uint64_t>(at)));
}

// The first in sight of each stack says whose layers these are and has the room before others; those are
// evenly apart.
bool LifetimesPlot::draw_layers(const Ui& ui, const Frame& frame, double x0, double x1,
                                AxisLabels& labels) const {
  constexpr std::size_t kMostName = 40;
  const auto& bands = data_->scene->bands;
  const auto in_sight = [&](const ForwardScene::Band& band) {
    return data_->xs[band.ops.first] < x1 && data_->xs[band.ops.end] > x0;
  };
  const auto middle = [&](const ForwardScene::Band& band) {
    const double from = std::max(data_->xs[band.ops.first], x0), to = std::min(data_->xs[band.ops.end], x1);
    return pixel_of(frame, (from + to) / 2);
  };
  bool drawn = false;
  std::string stack;
  for (std::size_t i = 0; i < bands.size(); ++i) {
    if (i == 0 || !bands[i].stack.empty()) stack = bands[i].stack.empty() ? "layer" : bands[i].stack;
    if (stack.empty() || !in_sight(bands[i])) continue;
    const std::string_view name = beginning(bands[i].name, kMostName);
    drawn =
        labels.put(middle(bands[i]), shown(fmt::format("{} {}", beginning(stack, kMostName), name))) || drawn;
    stack.clear();
  }
  std::size_t number = 0, stride = 1;
  for (std::size_t i = 0; i < bands.size(); ++i, ++number) {
    if (i == 0 || !bands[i].stack.empty()) {
      number = 0;
      const FontScope font(ui.fonts.small);
      const float wide =
          pixel_of(frame, data_->xs[bands[i].ops.end]) - pixel_of(frame, data_->xs[bands[i].ops.first]);
      const float needed = text_width("00") + ui.px(14);
      stride = static_cast<std::size_t>(std::max(1.0f, std::ceil(needed / std::max(wide, 0.01f))));
    }
    if (number % stride == 0 && in_sight(bands[i]))
      drawn = labels.put(middle(bands[i]), shown(beginning(bands[i].name, kMostName))) || drawn;
  }
  return drawn;
}

void LifetimesPlot::mark(const Ui& ui, const Frame& frame, std::uint32_t op, ImU32 color,
                         std::string_view label) {
  const PlotArea& area = frame.area;
  const float x = std::round(pixel_of(frame, (data_->xs[op] + data_->xs[op + 1]) / 2));
  if (x < area.low.x || x > area.high.x) return;
  const PlotArea curve = curve_area(frame);
  std::optional<float> dot;
  if (const double most = top_of_curve(frame); most > 0)
    dot = plot_y(curve, most, view::value_at(data_->curves.back(), data_->xs[op]));
  paint_mark(ui, area, x, color, dot);
  if (!label.empty()) paint_flag(ui, curve, x, color, label, flags_);
}

const PassRow* LifetimesPlot::row_at(const Frame& frame, ImVec2 at) const {
  const PlotArea& area = frame.area;
  if (at.x < area.low.x || at.x > area.high.x) return nullptr;
  for (const Lane& lane : lanes_) {
    if (at.y < lane.top || at.y >= lane.bottom) continue;
    const std::size_t row = view::lane_row_at(lane.layout, static_cast<double>(at.y - lane.top));
    if (row >= lane.layout.rows.size()) return nullptr;
    return &data_->lanes[static_cast<std::size_t>(lane.lane)].rows[lane.layout.rows[row]];
  }
  return nullptr;
}

}  // namespace loadline::gui
