// Tab Arena: source, options, figures, and the packing.

#include "app/gui/panels/arena_plot.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/theme.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/file_data.h"
#include "app/gui/state/workspace.h"
#include "core/base/option.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace loadline::gui {

// --- The arena panel's controls for source and options, and the figures of a packing.

namespace {

// Draws the controls on as many lines as they need.
class ArenaControls {
 public:
  void draw(Workspace& workspace, const Ui& ui);

 private:
  void pick_options(Workspace& workspace, const Ui& ui);
  void pick_capacity(Workspace& workspace, const Ui& ui, ArenaOptions& options);

  TypedField capacity_;
};

std::string source_title(ArenaSource source, const ArenaWork& work) {
  if (source == ArenaSource::file) return work.file()->title;
  constexpr std::array<const char*, kArenaSourceIds.size()> kTitles = {
      "Plan: device memory",  "Plan: host memory", "Plan: staging memory", "Forward pass without cache", "",
      "Example: greedy fails"};
  return kTitles[static_cast<std::size_t>(source)];
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1000) : fmt::format("{:.2f} s", seconds);
}

std::string over_text(std::uint64_t height, std::uint64_t bound) {
  return height <= bound ? "0%" : fmt::format("{:.2f}%", packing::percent_over(height, bound));
}

void pick_source(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  ArenaWork& work = *document.arena;
  const ArenaModel model = arena_model(document);
  const std::vector<ArenaSource> sources = work.sources(model);
  const ArenaSource current = work.source(model);
  std::vector<std::string> titles;
  std::size_t at = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    titles.push_back(source_title(sources[i], work));
    if (sources[i] == current) at = i;
  }
  titles.emplace_back("Open a problem (.csv)");
  const auto picked = combo(ui, "##source", ui.px(206), titles[at], titles, at);
  tooltip(ui,
          "Which buffers get offsets in one arena: blocks of the plan chosen, what passes through the "
          "operators, a file with the columns id, lower, upper, size, or the example");
  if (!picked) return;
  if (*picked == sources.size())
    workspace.services.requests.add(OpenBrowser{});
  else
    work.choose(sources[*picked], arena_model(document));
}

void pick_arena(ArenaWork& work, const Ui& ui) {
  const std::uint32_t arenas = work.scene() ? work.scene()->of->arenas : 1;
  if (arenas < 2) return;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < arenas; ++i) names.push_back(fmt::format("arena {}", i));
  const std::size_t at = std::min(work.view.arena, arenas - 1);
  const float width = ui.px(116);
  label_before(ui, "", width);
  const auto arena = combo(ui, "##arena", width, names[at], names, at);
  tooltip(ui, "The problem has several arenas");
  if (arena) work.view.arena = static_cast<std::uint32_t>(*arena);
}

void ArenaControls::draw(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (!document.model) {
    if (button(ui, "Start page", ButtonKind::ghost)) workspace.settings.panel = "map";
    ImGui::SameLine(0, ui.px(8));
  }
  pick_source(workspace, ui);
  pick_options(workspace, ui);
  ArenaWork& work = *document.arena;
  pick_arena(work, ui);
  constexpr std::array<std::string_view, 2> kViews = {"Packing", "Step by step"};
  continue_line(ui, 14, segmented_width(ui, kViews));
  work.view.steps = segmented(ui, "view", kViews, work.view.steps ? 1 : 0) == 1;
  tooltip(ui, "Step by step: a greedy order and the exact search beside each other");
  if (!work.view.steps) work.view.playing = false;
  if (work.canceled() || (work.view.steps && work.steps_canceled())) {
    continue_line(ui, 14, text_width("Pack again") + ui.px(30));
    if (button(ui, "Pack again")) work.retry();
  }
  if (!work.packing() && !(work.view.steps && work.tracing())) return;
  continue_line(ui, 14, text_width("Cancel") + text_width("Packing") + ui.px(50));
  control_text("Packing", ui.theme->muted);
  ImGui::SameLine(0, ui.px(8));
  if (button(ui, "Cancel")) work.cancel();
}

void ArenaControls::pick_options(Workspace& workspace, const Ui& ui) {
  ArenaOptions& options = workspace.document().arena->options;
  const auto pick = [&](std::string_view label, const char* id, std::span<const std::string_view> labels,
                        std::size_t at, std::string_view hint) {
    label_before(ui, label, segmented_width(ui, labels));
    const std::size_t now = segmented(ui, id, labels, at);
    tooltip(ui, hint);
    return now;
  };
  const auto position = [](const auto& values, auto value) {
    return static_cast<std::size_t>(std::find(std::begin(values), std::end(values), value) -
                                    std::begin(values));
  };
  constexpr std::array<std::string_view, 3> kTimes = {"0.1 s", "1 s", "10 s"};
  constexpr std::array<std::string_view, 3> kThreads = {"1", "2", "4"};
  const std::size_t time = pick("Time", "time", kTimes, position(kArenaSeconds, options.seconds),
                                "How long to search for a better packing or a proof");
  if (time < kTimes.size()) options.seconds = kArenaSeconds[time];
  const std::size_t threads =
      pick("Threads", "threads", kThreads, position(kArenaThreads, options.threads), "Of the exact search");
  if (threads < kThreads.size()) options.threads = kArenaThreads[threads];
  pick_capacity(workspace, ui, options);
}

void ArenaControls::pick_capacity(Workspace& workspace, const Ui& ui, ArenaOptions& options) {
  const float width = ui.px(84);
  label_before(ui, "Capacity", width);
  const std::string now = options.capacity ? print_option(OptionKind::bytes, *options.capacity) : "";
  if (typed_field(ui, "##capacity", width, capacity_, now, "least",
                  "The largest size of the arena, such as 512MiB; empty: search for the least height"))
    workspace.attempt([&] {
      options.capacity = capacity_.typed.empty() || capacity_.typed == "none"
                             ? std::nullopt
                             : std::optional(parse_size(capacity_.typed, "capacity"));
    });
}

// Draws height, lower bound, gap, greedy height, how the packing was found, and whether it fits the capacity.
void arena_figures(const Document& document, const Ui& ui, const ArenaScene& scene, std::uint32_t number) {
  const Theme& theme = *ui.theme;
  const packing::ArenaPacking& arena = scene.packing.arenas[number];
  const std::optional<std::uint64_t> greedy = scene.greedy[number];
  const auto bytes = [](std::uint64_t value) { return format_grouped(value) + " bytes"; };
  bool first = true;
  const auto put = [&](std::string_view label, std::string_view value, ImU32 color, std::string_view hint) {
    const auto width = [](ImFont* font, std::string_view words) {
      const FontScope scope(font);
      return text_width(words);
    };
    if (!std::exchange(first, false))
      continue_line(ui, 22, std::max(width(ui.fonts.small, label), width(ui.fonts.strong, value)));
    fact(ui, label, value, color, ui.fonts.strong, 1);
    tooltip(ui, hint);
  };
  put("Buffers", format_grouped(scene.buffers[number]), theme.text, shown(scene.of->title));
  put("Height", format_bytes(arena.height), theme.text, bytes(arena.height));
  put("Lower bound", format_bytes(arena.lower_bound), theme.text,
      bytes(arena.lower_bound) + ": no packing needs less");
  put("Gap",
      arena.proven_optimal ? "0: proved optimal"
                           : over_text(arena.height, arena.lower_bound) + ", not proved",
      arena.proven_optimal ? theme.good : theme.warning, "How much the height exceeds the lower bound");
  const bool higher = greedy && *greedy > arena.height;
  put("Greedy (TensorFlow Lite)",
      !greedy  ? "none found in time"
      : higher ? fmt::format("{}, +{}", format_bytes(*greedy), over_text(*greedy, arena.height))
               : format_bytes(*greedy),
      higher ? theme.warning : theme.text,
      (greedy ? bytes(*greedy) + ": " : "") + "by size, each buffer where it fits best");
  put("Found by", scene.packing.algorithm.empty() ? "pins" : scene.packing.algorithm, theme.text,
      counted(scene.packing.nodes, "decision") + " of exact search");
  put("Time", seconds_text(scene.packing.seconds), theme.text, "");
  const std::string verdict = capacity_text(scene, number);
  if (!verdict.empty())
    put(fmt::format("In {}", format_bytes(*scene.options.capacity)), verdict,
        arena.height <= *scene.options.capacity       ? theme.good
        : arena.lower_bound > *scene.options.capacity ? theme.bad
                                                      : theme.warning,
        "");
  if (document.arena->canceled())
    put("Last packing", "canceled", theme.warning, "A later packing was canceled");
}

void legend_of_sizes(const Ui& ui, const ArenaProblem& problem) {
  std::uint64_t least = UINT64_MAX, most = 0;
  for (const packing::Buffer& buffer : problem.problem.buffers)
    least = std::min(least, buffer.size), most = std::max(most, buffer.size);
  muted(ui, format_bytes(least));
  ImGui::SameLine(0, ui.px(6));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float step = ui.px(14), height = ImGui::GetFontSize();
  for (std::uint8_t kind = 0; kind < 8; ++kind)
    ImGui::GetWindowDrawList()->AddRectFilled(
        {at.x + step * kind, at.y + ui.px(2)}, {at.x + step * static_cast<float>(kind + 1), at.y + height},
        mix(ui.theme->panel, arena_kind_color(*ui.theme, ArenaPalette::sizes, kind), 0.8f));
  ImGui::Dummy({step * 8, height});
  ImGui::SameLine(0, ui.px(6));
  muted(ui, format_bytes(most) + " a buffer");
}

void legend_of_uses(const Ui& ui, const ArenaProblem& problem) {
  std::array<std::uint64_t, kArenaKinds> bytes = {};
  for (std::size_t i = 0; i < problem.kinds.size(); ++i)
    bytes[problem.kinds[i]] += problem.problem.buffers[i].size;
  bool first = true;
  for (std::uint8_t kind = 0; kind < bytes.size(); ++kind) {
    if (bytes[kind] == 0) continue;
    const std::string_view name = arena_kind_name(static_cast<ArenaKind>(kind));
    if (!first) continue_line(ui, 18, legend_width(ui, name, ""));
    first = false;
    legend_entry(ui, arena_kind_color(*ui.theme, ArenaPalette::uses, kind), name, "");
  }
}

// Draws the legend of the colors.
void arena_legend(const Ui& ui, const ArenaScene& scene, std::uint32_t arena) {
  const FontScope font(ui.fonts.small);
  const ArenaProblem& problem = *scene.of;
  if (problem.palette == ArenaPalette::sizes)
    legend_of_sizes(ui, problem);
  else if (problem.palette == ArenaPalette::uses)
    legend_of_uses(ui, problem);
  else
    muted(ui, "a color for each buffer");
  const auto most = static_cast<std::uint64_t>(scene.charts[arena].most_free());
  const std::string free = most > 0
                               ? fmt::format("free below the highest end: at most {}", format_bytes(most))
                               : std::string("nothing is free below the highest end");
  continue_line(ui, 24, text_width(free) + ui.px(20));
  legend_entry(ui, mix(ui.theme->panel, ui.theme->warning, 0.55f), free, "");
}

}  // namespace

// --- The arena panel: the packing, its quality and the place of every buffer; in step mode, how it was
// found.

namespace {

constexpr double kHeadroom = 1.07;
constexpr float kStrip = 52;  // of what is taken over time
constexpr float kStripGap = 10;
constexpr std::size_t kMostName = 120;

void draw_state(Document& document, const Ui& ui) {
  ArenaWork& work = *document.arena;
  if (work.opening()) return empty_state(ui, "Reading the problem", "");
  if (arena_waits(document))
    return empty_state(ui, "Collecting the buffers", "The plan is being run on the modeled machine.");
  if (work.packing()) return empty_state(ui, "Packing", "Every buffer gets an offset in the arena.");
  if (!work.canceled()) return empty_state(ui, "Packing is not possible", shown(work.error()));
  empty_state(ui, "Canceled", "Nothing was packed.");
}

class ArenaPanel final : public Panel {
 public:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void forget() override;

 private:
  struct Layout {
    ArenaFrame plot;
    PlotArea strip;
    double top = 1;  // bytes at the upper edge when everything is in sight
  };

  void draw_plot(Document& document, const Ui& ui, ImVec2 size);
  Layout layout(const Document& document, const Ui& ui, ImVec2 low, ImVec2 size) const;
  void arrange(const Ui& ui, const Layout& at);
  std::optional<float> paint_binding(const Ui& ui, const Layout& at) const;  // where it ends
  void paint_strip(const Ui& ui, const Layout& at) const;
  void paint_levels(const Ui& ui, const Layout& at, std::vector<PlotArea>& taken) const;
  void paint_selection(const Document& document, const Ui& ui, const Layout& at);
  std::optional<Selected> meant_by(const Document& document, std::uint32_t buffer) const;
  void handle_mouse(Document& document, const Ui& ui, const Layout& at);
  void describe(const Ui& ui, std::uint32_t buffer, std::uint64_t tick) const;
  void describe_tick(const Ui& ui, double tick, std::string_view what) const;
  void outline(const Ui& ui, const Layout& at, std::uint32_t buffer, ImU32 color, float thickness) const;
  const view::ArenaChart& chart() const { return scene_->charts[arena_]; }
  const packing::ArenaPacking& packing() const { return scene_->packing.arenas[arena_]; }

  ArenaControls controls_;
  ArenaStepsView steps_;
  std::shared_ptr<const ArenaScene> scene_;
  std::uint32_t arena_ = 0;
  // geometry, and of what it is
  view::ArenaPicture picture_;
  std::vector<view::CurveColumn> taken_, tops_;
  std::shared_ptr<const ArenaScene> arranged_;
  std::uint32_t arranged_arena_ = 0;
  view::ArenaSight sight_;
  ImVec2 size_ = {};
  // buffers of the tensor selected
  std::shared_ptr<const ArenaScene> selected_of_;
  std::optional<graph::TensorId> selected_;
  std::vector<std::uint32_t> selected_buffers_;
};

void ArenaPanel::forget() {
  scene_.reset();
  arranged_.reset();
  selected_of_.reset();
  picture_ = {};
  steps_.forget();
}

void ArenaPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  show_arena(document);
  if (!workspace.lesson.presents) controls_.draw(workspace, ui);
  scene_ = document.arena->scene();
  if (!scene_) return draw_state(document, ui);
  arena_ = std::min(document.arena->view.arena, scene_->of->arenas - 1);
  if (chart().boxes().empty())
    return empty_state(ui, "Nothing to pack", "No buffer has both a size and a lifetime.");
  ImGui::Dummy({0, ui.px(2)});
  if (document.arena->view.steps) return steps_.draw(document, ui);
  arena_figures(document, ui, *scene_, arena_);
  arena_legend(ui, *scene_, arena_);
  // ticks that are one double have no room between them
  if (static_cast<double>(chart().first_tick()) >= static_cast<double>(chart().last_tick()))
    return empty_state(
        ui, "Numbers too large to draw",
        fmt::format("Ticks {} to {} cannot be told apart at this size.", format_grouped(chart().first_tick()),
                    format_grouped(chart().last_tick())));
  draw_plot(document, ui, ImGui::GetContentRegionAvail());
}

ArenaPanel::Layout ArenaPanel::layout(const Document& document, const Ui& ui, ImVec2 low, ImVec2 size) const {
  Layout at;
  const float left = std::round(low.x + ui.px(kPlotAxisWidth)), right = std::round(low.x + size.x - ui.px(4));
  const float bottom = std::round(low.y + size.y - ui.px(kPlotAxisHeight));
  const float strip = size.y > ui.px(220) ? ui.px(kStrip) : 0;
  at.strip = {{left, bottom - strip}, {right, bottom}};
  at.plot.area = {{left, std::round(low.y + ui.px(6))},
                  {right, bottom - strip - (strip > 0 ? ui.px(kStripGap) : 0)}};
  std::uint64_t top = std::max<std::uint64_t>({packing().height, packing().lower_bound, chart().height(), 1});
  // a capacity far above would leave the packing flat
  if (const auto capacity = scene_->options.capacity; capacity && *capacity / 2 <= top)
    top = std::max(top, *capacity);
  at.top = static_cast<double>(top) * kHeadroom;
  const ArenaView& view = document.arena->view;
  const auto first = static_cast<double>(chart().first_tick()),
             last = static_cast<double>(chart().last_tick());
  at.plot.sight = {first + view.time.from * (last - first), first + view.time.to * (last - first),
                   view.height.from * at.top, view.height.to * at.top};
  return at;
}

void ArenaPanel::arrange(const Ui& ui, const Layout& at) {
  const PlotArea& area = at.plot.area;
  const ImVec2 size = area.high - area.low;
  if (arranged_ == scene_ && arranged_arena_ == arena_ && sight_ == at.plot.sight && size_.x == size.x &&
      size_.y == size.y)
    return;
  arranged_ = scene_;
  arranged_arena_ = arena_;
  sight_ = at.plot.sight;
  size_ = size;
  picture_ = view::draw_arena(chart().boxes(), scene_->of->kinds, sight_, static_cast<double>(size.x),
                              static_cast<double>(size.y), static_cast<double>(ui.px(2)));
  const auto columns = static_cast<std::size_t>(std::max(1.0f, size.x));
  taken_ = view::step_columns(chart().taken(), sight_.x0, sight_.x1, columns);
  tops_ = view::step_columns(chart().tops(), sight_.x0, sight_.x1, columns);
}

void ArenaPanel::draw_plot(Document& document, const Ui& ui, ImVec2 size) {
  if (size.x < ui.px(200) || size.y < ui.px(76))
    return ImGui::Dummy({std::max(size.x, 1.0f), std::max(size.y, 1.0f)});
  const ImVec2 low = ImGui::GetCursorScreenPos();
  plot_area("plot", size);
  Layout at = layout(document, ui, low, size);
  ArenaView& view = document.arena->view;
  if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const auto first = static_cast<double>(chart().first_tick());
    const double length = static_cast<double>(chart().last_tick()) - first;
    zoom_with_mouse(view.time, view.height, (at.plot.tick_at(mouse.x) - first) / length,
                    at.plot.byte_at(mouse.y) / at.top, at.plot.area.width(), at.plot.area.height());
    at = layout(document, ui, low, size);
  }
  arrange(ui, at);
  ImGui::GetWindowDrawList()->AddRectFilled(at.plot.area.low, at.plot.area.high,
                                            with_alpha(ui.theme->raised, 0.35f));
  paint_arena_bytes(ui, at.plot);
  ImGui::PushClipRect(at.plot.area.low, at.plot.area.high, true);
  paint_arena(ui, at.plot, picture_, *scene_->of);
  ImGui::PopClipRect();
  if (at.strip.high.y > at.strip.low.y) paint_strip(ui, at);
  const auto binding = paint_binding(ui, at);
  paint_selection(document, ui, at);
  std::vector<PlotArea> taken;
  paint_levels(ui, at, taken);
  if (binding)
    paint_flag(ui, at.plot.area, *binding, ui.theme->good, "binding: the lower bound is here", taken);
  paint_arena_ticks(ui, at.plot, at.strip, scene_->of->tick);
  handle_mouse(document, ui, at);
}

// Where the lower bound comes from; and the buffer that ends highest, where that is higher.
std::optional<float> ArenaPanel::paint_binding(const Ui& ui, const Layout& at) const {
  const auto highest = chart().highest();
  if (highest && packing().height > packing().lower_bound) outline(ui, at, *highest, ui.theme->warning, 2);
  const auto lower = static_cast<double>(packing().bound_ticks.lower);
  const auto upper = static_cast<double>(packing().bound_ticks.upper);
  if (lower >= upper || upper <= at.plot.sight.x0 || lower >= at.plot.sight.x1) return std::nullopt;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float left = std::round(at.plot.x_of(lower));
  const float right = std::max(std::round(at.plot.x_of(upper)), left + ui.px(2));
  draw->AddRectFilled({left, at.plot.area.low.y}, {right, at.strip.high.y},
                      with_alpha(ui.theme->good, 0.16f));
  for (const float x : {left, right})
    draw->AddLine({x, at.plot.area.low.y}, {x, at.strip.high.y}, with_alpha(ui.theme->good, 0.8f),
                  std::max(1.0f, ui.px(1)));
  return right - ui.px(6);
}

void ArenaPanel::paint_strip(const Ui& ui, const Layout& at) const {
  const double most = std::max(1.0, static_cast<double>(chart().height())) * kPlotHeadroom;
  ImGui::GetWindowDrawList()->AddRectFilled(at.strip.low, at.strip.high, with_alpha(ui.theme->raised, 0.35f));
  paint_level(ui, at.strip, most, tops_, mix(ui.theme->panel, ui.theme->warning, 0.7f));
  paint_level(ui, at.strip, most, taken_, mix(ui.theme->panel, ui.theme->accent, 0.85f));
  const FontScope font(ui.fonts.small);
  const float right = at.strip.low.x - ui.px(8), middle = at.strip.low.y + at.strip.height() / 2;
  put_text_before(right, middle - ImGui::GetFontSize(), ui.theme->warning, "free");
  put_text_before(right, middle, ui.theme->accent, "taken");
}

void ArenaPanel::paint_levels(const Ui& ui, const Layout& at, std::vector<PlotArea>& taken) const {
  const packing::ArenaPacking& arena = packing();
  const auto level = [&](std::uint64_t bytes, ImU32 color, bool dashed, const std::string& label) {
    paint_level_line(ui, at.plot, static_cast<double>(bytes), color, dashed, label, taken);
  };
  if (scene_->options.capacity)
    level(*scene_->options.capacity, ui.theme->accent, false,
          fmt::format("capacity {}", format_bytes(*scene_->options.capacity)));
  if (arena.height == arena.lower_bound)
    return level(arena.height, ui.theme->good, true,
                 fmt::format("height = lower bound {}", format_bytes(arena.height)));
  level(arena.height, ui.theme->warning, true, fmt::format("height {}", format_bytes(arena.height)));
  level(arena.lower_bound, ui.theme->good, true,
        fmt::format("lower bound {}", format_bytes(arena.lower_bound)));
}

void ArenaPanel::outline(const Ui& ui, const Layout& at, std::uint32_t buffer, ImU32 color,
                         float thickness) const {
  std::vector<view::ArenaBox> boxes;
  view::append_boxes(scene_->of->problem.buffers[buffer], buffer, scene_->packing.offsets[buffer], boxes);
  for (const view::ArenaBox& box : boxes) paint_box(ui, at.plot, box, {0, color, thickness});
}

void ArenaPanel::paint_selection(const Document& document, const Ui& ui, const Layout& at) {
  const ArenaProblem& problem = *scene_->of;
  if (!document.selected_tensor() || problem.blocks.empty()) return;
  if (selected_of_ != scene_ || selected_ != document.selected_tensor()) {
    selected_of_ = scene_;
    selected_ = document.selected_tensor();
    selected_buffers_.clear();
    const graph::StorageId storage = problem.of.model->tensor(*selected_).storage;
    for (std::uint32_t i = 0; i < problem.blocks.size(); ++i)
      if (problem.of.projection->plan.block(problem.blocks[i]).storage == storage)
        selected_buffers_.push_back(i);
  }
  for (const std::uint32_t buffer : selected_buffers_) outline(ui, at, buffer, ui.theme->highlight, 2.5f);
}

// What a buffer holds: a tensor, else a block of the load that is shown, else a value of the pass, which
// stands for the operator from which on it is alive. Nothing for the buffers of a file.
std::optional<Selected> ArenaPanel::meant_by(const Document& document, std::uint32_t buffer) const {
  const ArenaProblem& problem = *scene_->of;
  if (const auto tensor = problem.tensor(buffer)) return *tensor;
  if (!problem.blocks.empty() && problem.of.projection == document.load.projection.value())
    return problem.blocks[buffer];
  if (!problem.values.empty() && problem.of.model == document.model)
    return OperatorAt{problem.problem.buffers[buffer].lower};
  return std::nullopt;
}

void ArenaPanel::handle_mouse(Document& document, const Ui& ui, const Layout& at) {
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (mouse.x < at.strip.low.x || mouse.x >= at.strip.high.x || mouse.y >= at.strip.high.y) return;
  const double tick = std::floor(at.plot.tick_at(mouse.x));
  const float x = std::round(mouse.x);
  ImGui::GetWindowDrawList()->AddLine({x, at.plot.area.low.y}, {x, at.strip.high.y},
                                      with_alpha(ui.theme->text, 0.35f));
  if (mouse.y < at.plot.area.low.y || tick < 0) return;
  if (mouse.y >= at.plot.area.high.y) return hover_card(ui, [&] { describe_tick(ui, tick, "Everything"); });
  const double byte = std::floor(at.plot.byte_at(mouse.y));
  if (byte < 0) return;
  const auto buffer = chart().buffer_at(whole(tick), whole(byte));
  if (!buffer) return hover_card(ui, [&] { describe_tick(ui, tick, "Free"); });
  outline(ui, at, *buffer, ui.theme->highlight, 2);
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left))
    if (const auto tensor = scene_->of->tensor(*buffer)) document.select(*tensor);
  if (const auto meant = is_right_clicked() ? meant_by(document, *buffer) : std::nullopt)
    return document.select_for_menu(*meant);
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Right))
    hover_card(ui, [&] { describe(ui, *buffer, whole(tick)); });
}

void ArenaPanel::describe(const Ui& ui, std::uint32_t buffer, std::uint64_t tick) const {
  const ArenaProblem& problem = *scene_->of;
  const packing::Buffer& row = problem.problem.buffers[buffer];
  const std::uint64_t offset = scene_->packing.offsets[buffer];
  const auto name = [&](std::uint32_t of) { return shown(beginning(problem.name(of), kMostName)); };
  text(name(buffer));
  muted(ui, fmt::format("{} ({} bytes) at offset {}", format_bytes(row.size), format_grouped(row.size),
                        format_grouped(offset)));
  muted(ui, fmt::format("alive from {} {} to {}{}", problem.tick, format_grouped(row.lower),
                        format_grouped(row.upper - 1), row.gaps.empty() ? "" : ", with gaps"));
  if (row.offset) muted(ui, "fixed at this offset by the problem");
  if (chart().highest() == buffer) muted(ui, "highest buffer");
  const auto neighbor = [&](std::string_view where, std::optional<std::uint32_t> other) {
    muted(ui, fmt::format("{} {}", where, other ? name(*other) : "nothing"));
  };
  neighbor("above it:", chart().buffer_at(tick, offset + row.size));
  if (offset > 0) neighbor("below it:", chart().buffer_at(tick, offset - 1));
}

void ArenaPanel::describe_tick(const Ui& ui, double tick, std::string_view what) const {
  const double taken = view::value_at(chart().taken(), tick), top = view::value_at(chart().tops(), tick);
  const auto bytes = [](double value) { return format_bytes(whole(value)); };
  text(fmt::format("{} at {} {}", what, scene_->of->tick, format_grouped(whole(tick))));
  muted(ui, fmt::format("{} taken, highest end {}", bytes(taken), bytes(top)));
  muted(ui, fmt::format("{} free below it{}", bytes(top - taken),
                        top > 0 ? fmt::format(", {}", percent_text((top - taken) / top)) : ""));
}

}  // namespace

std::unique_ptr<Panel> make_arena_panel() { return std::make_unique<ArenaPanel>(); }

}  // namespace loadline::gui
