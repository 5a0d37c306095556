// Changes go to the document at once; the packing follows in the background.
#include "app/gui/panels/arena_controls.h"

#include "app/gui/panels/arena_plot.h"
#include "app/gui/parts/widgets.h"
#include "core/base/option.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

std::string source_title(ArenaSource source, const ArenaWork& work) {
  if (source == ArenaSource::file) return work.file()->title;
  constexpr std::array<const char*, kArenaSourceIds.size()> kTitles = {
      "Plan: device memory",  "Plan: host memory", "Plan: staging memory", "Forward pass without cache", "",
      "Example: greedy fails"};
  return kTitles[static_cast<std::size_t>(source)];
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1000) : fmt::format("{:.2f} s", seconds);
}

std::string over_text(std::uint64_t height, std::uint64_t bound) {
  return height <= bound ? "0%" : fmt::format("{:.2f}%", percent_over(height, bound));
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
    workspace.wants_browser = true;
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

}  // namespace

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
  if (work.cancelled() || (work.view.steps && work.steps_cancelled())) {
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
                                "How long a better packing, or a proof, is looked for");
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
                  "What the arena may take, as 512MiB; empty: the least height is looked for"))
    workspace.attempt([&] {
      options.capacity = capacity_.typed.empty() || capacity_.typed == "none"
                             ? std::nullopt
                             : std::optional(parse_size(capacity_.typed, "capacity"));
    });
}

void arena_figures(const Document& document, const Ui& ui, const ArenaScene& scene, std::uint32_t number) {
  const Theme& theme = *ui.theme;
  const ArenaPacking& arena = scene.packing.arenas[number];
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
      arena.proven_optimal ? "none: proved least"
                           : over_text(arena.height, arena.lower_bound) + ", not proved",
      arena.proven_optimal ? theme.good : theme.warning, "How much the height is over the lower bound");
  const bool higher = greedy && *greedy > arena.height;
  put("Greedy (TensorFlow Lite)",
      !greedy  ? "none known in time"
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
  if (document.arena->cancelled()) put("Then", "cancelled", theme.warning, "A later packing was cancelled");
}

namespace {

void legend_of_sizes(const Ui& ui, const ArenaProblem& problem) {
  std::uint64_t least = UINT64_MAX, most = 0;
  for (const Buffer& buffer : problem.problem.buffers)
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

}  // namespace

void arena_legend(const Ui& ui, const ArenaScene& scene, std::uint32_t arena) {
  const FontScope font(ui.fonts.small);
  const ArenaProblem& problem = *scene.of;
  if (problem.palette == ArenaPalette::sizes)
    legend_of_sizes(ui, problem);
  else if (problem.palette == ArenaPalette::uses)
    legend_of_uses(ui, problem);
  else
    muted(ui, "a colour for each buffer");
  const auto most = static_cast<std::uint64_t>(scene.charts[arena].most_free());
  const std::string free = most > 0
                               ? fmt::format("free below the highest end: at most {}", format_bytes(most))
                               : std::string("nothing is free below the highest end");
  continue_line(ui, 24, text_width(free) + ui.px(20));
  legend_entry(ui, mix(ui.theme->panel, ui.theme->warning, 0.55f), free, "");
}

}  // namespace loadline::gui
