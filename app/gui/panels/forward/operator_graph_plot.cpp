// A part of the operators drawn as a graph: what boxes say, where they stand in the window, edges.
#include "app/gui/panels/forward/forward.h"
#include "app/gui/parts/plot.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/model.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/core.h>
#include <imgui_internal.h>

namespace loadline::gui {
namespace {

constexpr std::size_t kMostName = 120;  // bytes of a name that are drawn
constexpr float kLeastZoom = 0.12f, kMostZoom = 2.5f;
constexpr float kReadable = 1;
constexpr float kBelowBox = 24;  // between layers
constexpr float kWidestBox = 280, kBoxPadding = 22, kBesideTitle = 7;

ImVec2 on_pixels(ImVec2 at) { return {std::round(at.x), std::round(at.y)}; }

// Glyphs are never smaller than the small font's own: what has no room then is left out.
float font_size(const ImFont* font, float zoom) { return font->FontSize * std::max(zoom, 1.0f); }
float width_of(const ImFont* font, float size, const std::string& words) {
  return font->CalcTextSizeA(size, std::numeric_limits<float>::max(), 0, words.c_str()).x;
}

}  // namespace

void GraphPlot::set_part(const Document& document, const Ui& ui, std::shared_ptr<const GraphLevel> level,
                         view::GraphPart part) {
  level_ = std::move(level);
  part_ = std::move(part);
  words_.clear();
  std::vector<view::BoxSize> sizes;
  for (const view::GraphBox& box : part_.boxes) {
    words_.push_back(words_of(document, box));
    const FontScope font(ui.fonts.strong);
    std::string& title = words_.back().title;
    const float room = ui.px(kWidestBox - kBoxPadding);
    // the end of a value's name tells it from others
    title = box.kind <= view::BoxKind::module ? elided(title, room) : elided_path(title, room);
    const float left = room - text_width(title) - ui.px(kBesideTitle);
    const FontScope small(ui.fonts.small);
    std::string& beside = words_.back().beside;
    // a shape has no room: its size alone, whole
    const std::size_t size = beside.rfind("  ");
    if (text_width(beside) > left && size != std::string::npos) beside.erase(0, size + 2);
    constexpr float kLeast = 40;
    if (left < ui.px(kLeast) || (size != std::string::npos && text_width(beside) > left))
      beside.clear();
    else
      beside = elided_name(beside, left);
    for (std::string& line : words_.back().lines) line = elided(line, room);
    sizes.push_back(size_of(ui, words_.back()));
  }
  const auto units = [&](float logical) { return static_cast<double>(ui.px(logical)); };
  places_ =
      view::place_graph(part_, sizes, {.across = units(18), .down = units(kBelowBox), .line = units(9)});
}

void GraphPlot::forget() {
  level_.reset();
  part_ = {};
  places_ = {};
  words_.clear();
}

bool GraphPlot::set_area(PlotArea area) { return !(std::exchange(area_, area) == area); }

ImVec2 GraphPlot::pixel_of(double x, double y) const {
  return {area_.low.x + static_cast<float>(x) * zoom_ + pan_.x,
          area_.low.y + static_cast<float>(y) * zoom_ + pan_.y};
}

PlotArea GraphPlot::pixels_of(std::size_t box) const {
  const view::Rect& at = places_.boxes[box];
  return {pixel_of(at.x, at.y), pixel_of(at.x + at.w, at.y + at.h)};
}

void GraphPlot::draw(const Document& document, const Ui& ui, std::optional<std::size_t> chosen,
                     std::optional<std::size_t> hovered_edge) const {
  ImGui::PushClipRect(area_.low, area_.high, true);
  const auto marked = [&](const view::GraphEdge& edge) { return edge.from == chosen || edge.to == chosen; };
  for (const bool on_top : {false, true})
    for (std::size_t e = 0; e < part_.edges.size(); ++e)
      if (on_top == (marked(part_.edges[e]) || hovered_edge == e))
        draw_edge(document, ui, e, hovered_edge == e, marked(part_.edges[e]));
  draw_sizes(document, ui);
  for (std::size_t i = 0; i < part_.boxes.size(); ++i) draw_box(document, ui, i, chosen == i);
  ImGui::PopClipRect();
}

std::optional<std::uint64_t> GraphPlot::bytes_of(const Document& document, graph::ValueId id) const {
  const auto passed = level_->scene->in_pass(id);
  if (passed && document.forward.figures())
    return document.forward.figures()->sizes[static_cast<std::size_t>(*passed)];
  // what the pass does not make has a size of its own if that is a number
  const auto bytes = graph::value_bytes(forward().value(id));
  return bytes ? bytes->evaluate({}) : std::nullopt;
}

std::string GraphPlot::size_text(const Document& document, graph::ValueId id) const {
  const auto bytes = bytes_of(document, id);
  return bytes ? format_bytes(*bytes) : "?";
}

// The name, or what is read first, stands beside the kind: most boxes have one line.
GraphPlot::BoxWords GraphPlot::operator_words(const view::GraphBox& box) const {
  const graph::Op& op = forward().ops[box.op];
  const graph::MetaGraph& graph = *level_->scene->graph;
  BoxWords words;
  words.title = shown(beginning(op.kind, kMostName));
  std::vector<std::string> lines;
  const std::string_view name = beginning(op.name, kMostName);
  const std::string_view last = name.substr(name.rfind(level_->tree().separator) + 1);
  if (!last.empty() && last != op.kind) lines.push_back(shown(last));
  for (std::size_t i = 0; i < op.bodies.size(); ++i)
    lines.push_back(
        fmt::format("{}: {}", graph::body_name(op, i),
                    counted(level_->scene->drawn()->bodies[op.bodies[i]].ops.size(), "operator")));
  if (graph::setting_for_people(op, graph::kNotDrawn) != nullptr) lines.push_back("inside: too much to draw");
  const std::vector<graph::TensorId> weights = level_->weights_of(box.op);
  std::uint64_t most = 0;
  std::size_t large = 0;
  constexpr std::uint64_t kSmall = 1024;  // bytes: scalars, axes and shapes are in the card
  for (const graph::TensorId id : weights) {
    const std::uint64_t bytes = graph::tensor_bytes(graph, graph.tensor(id));
    if (bytes >= most) {
      most = bytes;
      words.weight = id;
    }
    constexpr std::size_t kMostWeights = 2;
    if (bytes >= kSmall && ++large <= kMostWeights)
      lines.push_back(fmt::format("{}  {}", shape_text(graph.tensor(id)), format_bytes(bytes)));
  }
  if (large > 2) lines.push_back(fmt::format("and {}", counted(large - 2, "more weight")));
  if (lines.empty() && words.weight)
    lines.push_back(fmt::format("{}  {}", shape_text(graph.tensor(*words.weight)), format_bytes(most)));
  if (!lines.empty()) words.beside = std::move(lines.front());
  if (!lines.empty()) lines.erase(lines.begin());
  words.lines = std::move(lines);
  return words;
}

GraphPlot::BoxWords GraphPlot::words_of(const Document& document, const view::GraphBox& box) const {
  if (box.kind == view::BoxKind::op) return operator_words(box);
  BoxWords words;
  if (box.kind == view::BoxKind::module) {
    const graph::OpNode& node = level_->tree().node(box.module);
    words.title = shown(beginning(node.name, kMostName));
    words.beside = counted(node.all_ops, "operator");
    if (node.weight_bytes > 0) words.beside += "  " + format_bytes(node.weight_bytes);
    return words;
  }
  const graph::Value& value = forward().value(box.values.front());
  words.title = shown(beginning(value.name, kMostName));
  if (box.values.size() > 1) words.title += fmt::format(" and {} more", box.values.size() - 1);
  if (const std::string size = size_text(document, box.values.front()); size != "?" || value.shape)
    words.beside = fmt::format("{}  {}", shown(sides_text(forward(), box.values.front())), size);
  return words;
}

view::BoxSize GraphPlot::size_of(const Ui& ui, const BoxWords& words) const {
  const auto width = [&](ImFont* font, const std::string& text_) {
    return font
        ->CalcTextSizeA(font->FontSize, std::numeric_limits<float>::max(), 0, text_.data(),
                        text_.data() + text_.size())
        .x;
  };
  float w = width(ui.fonts.strong, words.title);
  if (!words.beside.empty()) w += ui.px(kBesideTitle) + width(ui.fonts.small, words.beside);
  for (const std::string& line : words.lines) w = std::max(w, width(ui.fonts.small, line));
  const float h = ui.fonts.strong->FontSize +
                  static_cast<float>(words.lines.size()) * (ui.fonts.small->FontSize + ui.px(2));
  return {static_cast<double>(std::clamp(w + ui.px(kBoxPadding), ui.px(60), ui.px(kWidestBox))),
          static_cast<double>(h + ui.px(10))};
}

void GraphPlot::fit(bool readable, std::optional<std::size_t> at) {
  const float w = std::max(static_cast<float>(places_.w), 1.0f),
              h = std::max(static_cast<float>(places_.h), 1.0f);
  zoom_ = std::clamp(std::min({1.0f, area_.width() / w, area_.height() / h}), kLeastZoom, 1.0f);
  if (readable) zoom_ = std::max(zoom_, kReadable);
  pan_ = {(area_.width() - w * zoom_) / 2, (area_.height() - h * zoom_) / 2};
  if (h * zoom_ > area_.height()) {  // a pass begins at the top
    const view::Rect first = at ? places_.boxes[*at] : view::Rect{};
    const float middle = static_cast<float>(first.y + first.h / 2) * zoom_;
    pan_.y = std::clamp(area_.height() / 2 - middle, area_.height() - h * zoom_, 0.0f);
  }
  if (w * zoom_ <= area_.width() || places_.boxes.empty()) return;
  if (!at && !places_.layers.front().empty()) at = places_.layers.front().front();
  const view::Rect& box = places_.boxes[at.value_or(0)];
  const float middle = static_cast<float>(box.x + box.w / 2) * zoom_;
  pan_.x = std::clamp(area_.width() / 2 - middle, area_.width() - w * zoom_, 0.0f);
}

void GraphPlot::keep_in_sight(std::size_t at) {
  const PlotArea box = pixels_of(at);
  const auto moved = [](float low, float high, float from, float to) {
    constexpr float kEdge = 24;
    if (high - low > to - from - 2 * kEdge) return (from + to - low - high) / 2;
    return low < from + kEdge ? from + kEdge - low : high > to - kEdge ? to - kEdge - high : 0;
  };
  pan_.x += moved(box.low.x, box.high.x, area_.low.x, area_.high.x);
  pan_.y += moved(box.low.y, box.high.y, area_.low.y, area_.high.y);
}

void GraphPlot::zoom_at(ImVec2 pixel, float factor) {
  const float next = std::clamp(zoom_ * factor, kLeastZoom, kMostZoom);
  const ImVec2 from = pixel - area_.low;
  pan_.x = from.x - (from.x - pan_.x) * next / zoom_;
  pan_.y = from.y - (from.y - pan_.y) * next / zoom_;
  zoom_ = next;
}

std::optional<std::size_t> GraphPlot::box_at(ImVec2 pixel) const {
  for (std::size_t i = 0; i < places_.boxes.size(); ++i) {
    const PlotArea box = pixels_of(i);
    if (pixel.x >= box.low.x && pixel.x < box.high.x && pixel.y >= box.low.y && pixel.y < box.high.y)
      return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> GraphPlot::edge_at(const Ui& ui, ImVec2 pixel) const {
  const float near = ui.px(5) * ui.px(5);
  std::optional<std::size_t> best;
  float least = near;
  for (std::size_t e = 0; e < places_.edges.size(); ++e) {
    const auto& route = places_.edges[e];
    for (std::size_t k = 0; k + 1 < route.size(); ++k) {
      const ImVec2 a = pixel_of(route[k].x, route[k].y), b = pixel_of(route[k + 1].x, route[k + 1].y);
      const ImVec2 along = b - a, to = pixel - a;
      const float length = along.x * along.x + along.y * along.y;
      const float t = length > 0 ? std::clamp((to.x * along.x + to.y * along.y) / length, 0.0f, 1.0f) : 0;
      const ImVec2 off = {to.x - along.x * t, to.y - along.y * t};
      const float far = off.x * off.x + off.y * off.y;
      if (far >= least) continue;
      least = far;
      best = e;
    }
  }
  return best;
}

void GraphPlot::draw_edge(const Document& document, const Ui& ui, std::size_t edge, bool hot,
                          bool marked) const {
  const auto& route = places_.edges[edge];
  const view::GraphEdge& flow = part_.edges[edge];
  const ImU32 color = hot || marked ? ui.theme->accent : ui.theme->muted;
  std::uint64_t bytes = 0;
  for (const graph::ValueId id : flow.values) bytes = std::max(bytes, bytes_of(document, id).value_or(0));
  // one pixel more for each factor of 64 above a KiB
  const float heavier =
      bytes > 1024 ? static_cast<float>(std::log2(static_cast<double>(bytes) / 1024) / 6) : 0;
  const float width =
      ui.px(std::max(1.0f, (1 + heavier * 0.8f) * std::min(zoom_, 1.0f))) + (hot ? ui.px(1) : 0);
  ImDrawList* const draw = ImGui::GetWindowDrawList();
  for (std::size_t k = 0; k + 1 < route.size(); ++k) {
    const ImVec2 a = pixel_of(route[k].x, route[k].y), b = pixel_of(route[k + 1].x, route[k + 1].y);
    const float bend = (b.y - a.y) * 0.45f;
    draw->AddBezierCubic(a, {a.x, a.y + bend}, {b.x, b.y - bend}, b, color, width);
  }
  const ImVec2 tip = pixel_of(route.back().x, route.back().y);
  const ImVec2 before = pixel_of(route[route.size() - 2].x, route[route.size() - 2].y);
  const float head = ui.px(5) * std::clamp(zoom_, 0.5f, 1.2f), way = before.y <= tip.y ? -1 : 1;
  draw->AddTriangleFilled(tip, {tip.x - head * 0.7f, tip.y + way * head * 1.3f},
                          {tip.x + head * 0.7f, tip.y + way * head * 1.3f}, color);
}

// The size of what a box gives stands once below it, where all edges leave it, if nothing is in its way.
void GraphPlot::draw_sizes(const Document& document, const Ui& ui) const {
  if (zoom_ < 0.6f) return;
  ImDrawList* const draw = ImGui::GetWindowDrawList();
  const float size = font_size(ui.fonts.small, std::min(zoom_, 1.1f));
  std::vector<bool> done(part_.boxes.size(), false);
  const std::vector<ImVec2> lines = points_of_edges(ui);
  std::vector<PlotArea> taken;
  for (std::size_t i = 0; i < part_.boxes.size(); ++i)
    if (const PlotArea box = pixels_of(i); box.overlaps(area_)) taken.push_back(box);
  const auto is_free = [&](const PlotArea& place) {
    return std::ranges::none_of(taken, [&](const PlotArea& other) { return place.overlaps(other); }) &&
           std::ranges::none_of(lines, [&](ImVec2 at) {
             return at.x > place.low.x && at.x < place.high.x && at.y > place.low.y && at.y < place.high.y;
           });
  };
  // beside the line of what goes straight down, which stays whole; nothing is looked for where nobody sees it
  const auto put = [&](const std::string& words, ImVec2 at) {
    if (at.x < area_.low.x || at.x > area_.high.x || at.y < area_.low.y || at.y > area_.high.y) return true;
    const float width = width_of(ui.fonts.small, size, words),
                gap = static_cast<float>(kBelowBox) * ui.px(zoom_);
    for (const float x : {at.x + ui.px(5), at.x - ui.px(5) - width}) {
      const ImVec2 pen = on_pixels({x, at.y + (gap - size) / 2});
      const PlotArea place = {pen - ImVec2{ui.px(2), 0}, pen + ImVec2{width + ui.px(2), size}};
      if (!is_free(place)) continue;
      taken.push_back(place);
      draw->AddText(ui.fonts.small, size, pen, ui.theme->muted, words.c_str());
      return true;
    }
    return false;
  };
  for (const view::GraphEdge& edge : part_.edges) {
    if (part_.boxes[edge.from].kind == view::BoxKind::arrives || done[edge.from]) continue;
    done[edge.from] = true;
    const view::Rect& box = places_.boxes[edge.from];
    const ImVec2 at = pixel_of(box.x + box.w / 2, box.y + box.h);
    const std::string sides = shown(sides_text(forward(), edge.values.front()));
    const std::string bytes = size_text(document, edge.values.front());
    if (bytes == "?") {
      if (forward().value(edge.values.front()).shape) put(sides, at);
    } else if (!put(sides + "  " + bytes, at)) {
      put(bytes, at);
    }
  }
}

// Places on the edges in sight, so close that no label fits between two.
std::vector<ImVec2> GraphPlot::points_of_edges(const Ui& ui) const {
  constexpr float kMostPoints = 200;
  constexpr std::size_t kMostInAll = 20'000;  // then the edges are so many that a label has no place anyway
  std::vector<ImVec2> points;
  for (const auto& route : places_.edges)
    for (std::size_t k = 0; k + 1 < route.size(); ++k) {
      const ImVec2 a = pixel_of(route[k].x, route[k].y), b = pixel_of(route[k + 1].x, route[k + 1].y);
      if (std::max(a.y, b.y) < area_.low.y || std::min(a.y, b.y) > area_.high.y) continue;
      if (std::max(a.x, b.x) < area_.low.x || std::min(a.x, b.x) > area_.high.x) continue;
      if (points.size() > kMostInAll) return points;
      const float bend = (b.y - a.y) * 0.45f;
      const float far = std::max(std::abs(b.x - a.x), std::abs(b.y - a.y));
      const float count = std::clamp(std::ceil(far / ui.px(5)), 1.0f, kMostPoints);
      for (float i = 0; i <= count; ++i)
        points.push_back(ImBezierCubicCalc(a, {a.x, a.y + bend}, {b.x, b.y - bend}, b, i / count));
    }
  return points;
}

void GraphPlot::draw_box(const Document& document, const Ui& ui, std::size_t box, bool chosen) const {
  const PlotArea at = pixels_of(box);
  if (!at.overlaps(area_)) return;
  const view::GraphBox& drawn = part_.boxes[box];
  ImDrawList* const draw = ImGui::GetWindowDrawList();
  const bool outer = drawn.kind >= view::BoxKind::arrives;
  const bool module = drawn.kind == view::BoxKind::module;
  const float round = (outer ? at.height() / 2 : ui.px(4)) * std::min(zoom_, 1.0f);
  draw->AddRectFilled(at.low, at.high,
                      outer    ? ui.theme->panel
                      : module ? ui.theme->hovered
                               : ui.theme->raised,
                      round);
  draw->AddRect(at.low, at.high, ui.theme->border, round, 0, ui.px(1));
  // a module stands for several: a second edge behind it says so
  if (module)
    draw->AddLine({at.low.x + ui.px(3), at.high.y + ui.px(2)}, {at.high.x - ui.px(3), at.high.y + ui.px(2)},
                  ui.theme->border, ui.px(1));
  if (words_[box].weight)
    draw->AddRectFilled(at.low, {at.low.x + ui.px(4) * std::max(zoom_, 0.5f), at.high.y},
                        paint_of(*document.model, *ui.theme, ColorBy::role, *words_[box].weight).color, round,
                        ImDrawFlags_RoundCornersLeft);
  if (chosen) {
    draw->AddRect(at.low - ImVec2{ui.px(1), ui.px(1)}, at.high + ImVec2{ui.px(1), ui.px(1)}, ui.theme->sea,
                  round, 0, ui.px(4));
    draw->AddRect(at.low, at.high, ui.theme->highlight, round, 0, ui.px(2));
  }
  draw_words(ui, box, at);
  draw_hidden(ui, box, at);
}

void GraphPlot::draw_words(const Ui& ui, std::size_t box, const PlotArea& at) const {
  ImDrawList* const draw = ImGui::GetWindowDrawList();
  const BoxWords& words = words_[box];
  // in a box that is drawn smaller, in the small font
  ImFont* const strong = zoom_ < 1 ? ui.fonts.small : ui.fonts.strong;
  const float title = font_size(strong, zoom_), small = font_size(ui.fonts.small, zoom_);
  const float end = at.high.x - ui.px(3) * std::min(zoom_, 1.0f);
  const ImVec4 clip = {at.low.x, at.low.y, end, at.high.y};
  ImVec2 pen = on_pixels(at.low + ImVec2{ui.px(11) * zoom_, ui.px(zoom_ < 1 ? 1 : 5) * zoom_});
  if (pen.y + title > at.high.y + ui.px(1)) return;
  const FontScope font(strong);  // titles are measured in it
  draw->AddText(strong, title, pen,
                part_.boxes[box].kind >= view::BoxKind::arrives ? ui.theme->muted : ui.theme->text,
                (zoom_ < 1 ? elided(words.title, end - pen.x) : words.title).c_str(), nullptr, 0, &clip);
  // whole or not at all: half a figure is a wrong one
  const auto fits = [&](float x, const std::string& line) {
    return x + width_of(ui.fonts.small, small, line) <= end + ui.px(1);
  };
  if (const float x = std::round(pen.x + width_of(strong, title, words.title) + ui.px(kBesideTitle) * zoom_);
      !words.beside.empty() && fits(x, words.beside))
    draw->AddText(ui.fonts.small, small, {x, std::round(pen.y + (title - small) * 0.7f)}, ui.theme->muted,
                  words.beside.c_str(), nullptr, 0, &clip);
  pen.y += title;
  for (const std::string& line : words.lines) {
    pen.y = std::round(pen.y + ui.px(2) * zoom_);
    if (pen.y + small > at.high.y + ui.px(1)) return;
    if (fits(pen.x, line))
      draw->AddText(ui.fonts.small, small, pen, ui.theme->muted, line.c_str(), nullptr, 0, &clip);
    pen.y += small;
  }
}

// Neighbors that are left out, as numbers above and below the box.
void GraphPlot::draw_hidden(const Ui& ui, std::size_t box, const PlotArea& at) const {
  ImDrawList* const draw = ImGui::GetWindowDrawList();
  if (zoom_ < 0.6f) return;
  const float small = font_size(ui.fonts.small, zoom_);
  const auto hidden = [&](std::uint32_t count, float y) {
    if (count == 0) return;
    const std::string words = fmt::format("+{}", count);
    const ImVec2 extent =
        ui.fonts.small->CalcTextSizeA(small, std::numeric_limits<float>::max(), 0, words.c_str());
    draw->AddText(ui.fonts.small, small, on_pixels({at.high.x - extent.x - ui.px(5) * zoom_, y}),
                  ui.theme->accent, words.c_str());
  };
  hidden(part_.boxes[box].hidden_before, at.low.y - small - ui.px(1));
  hidden(part_.boxes[box].hidden_after, at.high.y + ui.px(1));
}

void GraphPlot::describe_edge(const Document& document, const Ui& ui, std::size_t edge) const {
  constexpr std::size_t kMostListed = 8;
  const ForwardScene& scene = *level_->scene;
  const std::vector<graph::ValueId>& values = part_.edges[edge].values;
  for (std::size_t i = 0; i < std::min(values.size(), kMostListed); ++i) {
    text(shown(value_text(forward(), values[i])));
    const std::string formula = value_size_formula(forward(), values[i]);
    muted(ui, size_text(document, values[i]) + (formula.empty() ? "" : "  =  " + shown(formula)));
    const auto passed = scene.in_pass(values[i]);
    if (!passed || static_cast<std::size_t>(*passed) >= scene.model.lives.size()) continue;
    const forward::OpRange life = scene.model.lives[static_cast<std::size_t>(*passed)];
    if (!life.empty())
      muted(ui, life.end >= scene.forward()->ops.size()
                    ? fmt::format("in memory from operator {} to the end", life.first)
                    : fmt::format("in memory from operator {} to {}", life.first, life.end - 1));
  }
  if (values.size() > kMostListed) muted(ui, fmt::format("and {} more", values.size() - kMostListed));
}

void GraphPlot::describe_operator(const Document& document, const Ui& ui, std::uint32_t op) const {
  const ForwardScene& scene = *level_->scene;
  const graph::OpPlace place = level_->place_of(op);
  if (place.at == view::InnerGraph::kNoPosition) {
    text(shown(value_text(forward(), forward().ops[op].inputs.front())));
    return muted(ui, "is a result as it is");
  }
  text(shown(beginning(forward::op_text(graph::op_at(*scene.drawn(), place)), 300)));
  const auto runs = scene.op_at(place);
  if (!runs) muted(ui, scene.why_not_run(place));
  if (runs)
    muted(ui, fmt::format("operator {} of 0 to {}", format_grouped(*runs),
                          format_grouped(scene.forward()->ops.size() - 1)));
  if (runs && document.forward.figures()) {
    const forward::LaneBytes& alive = document.forward.figures()->usage[*runs];
    muted(ui, format_bytes(alive.passing()) + " of activations and temporaries alive during it");
  }
  if (!forward().ops[op].bodies.empty()) muted(ui, "a double click shows what is inside");
  if (const auto* const why = graph::setting_for_people(forward().ops[op], graph::kNotDrawn))
    muted(ui, "What is inside of it is " + *why);
}

void GraphPlot::describe_box(const Document& document, const Ui& ui, std::size_t box) const {
  const view::GraphBox& drawn = part_.boxes[box];
  if (drawn.kind == view::BoxKind::op) {
    describe_operator(document, ui, drawn.op);
  } else if (drawn.kind == view::BoxKind::module) {
    const graph::OpNode& node = level_->tree().node(drawn.module);
    text(shown(beginning(graph::op_path(level_->tree(), drawn.module), 300)));
    muted(ui, fmt::format("{}, {} with {} bytes", counted(node.all_ops, "operator"),
                          counted(node.weights, "weight"), format_grouped(node.weight_bytes)));
    muted(ui, "a double click shows what is inside");
  } else {
    const bool arrives = drawn.kind == view::BoxKind::arrives;
    const graph::ForwardGraph& all = *level_->scene->drawn();
    const auto& ends = arrives ? all.inputs : all.outputs;
    const bool of_model = std::ranges::find(ends, drawn.values.front()) != ends.end();
    muted(ui, of_model  ? arrives ? "An input of the model" : "A result of the model"
              : arrives ? "Made outside of this part"
                        : "Used outside of this part");
    for (std::size_t i = 0; i < std::min<std::size_t>(drawn.values.size(), 8); ++i)
      text(shown(value_text(forward(), drawn.values[i])));
    if (!of_model) muted(ui, "a double click goes there");
  }
  if (drawn.hidden_before > 0)
    muted(ui, fmt::format("{} above it {} not drawn", counted(drawn.hidden_before, "neighbor"),
                          drawn.hidden_before == 1 ? "is" : "are"));
  if (drawn.hidden_after > 0)
    muted(ui, fmt::format("{} below it {} not drawn", counted(drawn.hidden_after, "neighbor"),
                          drawn.hidden_after == 1 ? "is" : "are"));
}

}  // namespace loadline::gui
