// Words become what the arena panel packs, and how it looks at that.
#include "app/gui/actions_arena.h"

#include "app/gui/script_words.h"

#include <algorithm>
#include <array>

namespace loadline::gui {
namespace {

ArenaWork& arena_of(Workspace& workspace) { return *workspace.document().arena; }

template <typename Change>
void change_arena(Workspace& workspace, Change change) {
  ArenaOptions options = arena_of(workspace).options();
  change(options);
  arena_of(workspace).set_options(options);
}

}  // namespace

void choose_arena(Workspace& workspace, const std::string& id) {
  const std::size_t source = position(
      id, kArenaSources, [](std::size_t i) { return arena_source_id(static_cast<ArenaSource>(i)); }, "arena");
  arena_of(workspace).choose(static_cast<ArenaSource>(source), arena_model(workspace.document()));
}

void set_arena_time(Workspace& workspace, const std::string& text) {
  change_arena(workspace,
               [&](ArenaOptions& options) { options.seconds = parse_number<double>(text, 0, 600); });
}

void set_arena_threads(Workspace& workspace, const std::string& text) {
  change_arena(workspace,
               [&](ArenaOptions& options) { options.threads = parse_number<unsigned>(text, 1, 64); });
}

void set_arena_capacity(Workspace& workspace, const std::string& size) {
  change_arena(workspace, [&](ArenaOptions& options) { options.capacity = size_or_none(size, "capacity"); });
}

void play_arena(Workspace& workspace, const std::string& word) {
  arena_of(workspace).view.playing = on_or_off(word);
}

void show_arena_view(Workspace& workspace, const std::string& view) {
  if (view != "packing" && view != "steps")
    refuse(fmt::format("no view '{}'; there are: packing, steps", view));
  arena_of(workspace).view.steps = view == "steps";
}

// Steps are known once the panel was drawn.
void set_arena_step(Workspace& workspace, const std::string& text) {
  const auto steps = arena_of(workspace).steps();
  if (!steps) refuse("no steps are shown: arena-view steps shows them");
  arena_of(workspace).view.playing = false;
  arena_of(workspace).view.step =
      text == "end" ? steps->length() : parse_number<std::size_t>(text, 0, steps->length());
}

void set_arena_rule(Workspace& workspace, const std::string& id) {
  const auto rules = greedy_rules();
  arena_of(workspace).view.rule = position(
      id, rules.size(), [&](std::size_t i) { return rules[i].id; }, "greedy order");
}

void set_arena_number(Workspace& workspace, const std::string& text) {
  const std::uint32_t arenas = arena_of(workspace).scene() ? arena_of(workspace).scene()->of->arenas : 1;
  arena_of(workspace).view.arena = parse_number<std::uint32_t>(text, 0, arenas - 1);
}

void zoom_arena(Workspace& workspace, const std::string& text) {
  constexpr double kLeast = 0.99e-4;  // what the wheel goes down to, before rounding
  std::array<double, 4> shares = {0, 1, 0, 1};
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (count == shares.size()) refuse(fmt::format("'{}' is not TIME0 TIME1 [LOW HIGH]", text));
    shares[count++] = parse_number<double>(std::string_view(text).substr(at, end - at), 0, 1);
    at = end + 1;
  }
  if (count % 2 != 0 || shares[1] - shares[0] < kLeast || shares[3] - shares[2] < kLeast)
    refuse(fmt::format("'{}' is not TIME0 TIME1 [LOW HIGH]", text));
  arena_of(workspace).view.time = {shares[0], shares[1]};
  arena_of(workspace).view.height = {shares[2], shares[3]};
}

}  // namespace loadline::gui
