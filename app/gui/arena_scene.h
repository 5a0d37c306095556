// What the arena panel shows: a packing problem out of the model, a file or the lesson, and its packing.
#pragma once

#include "app/gui/forward_scene.h"
#include "app/gui/model.h"
#include "core/base/progress.h"
#include "core/load/projection.h"
#include "core/packing/pack.h"
#include "core/packing/trace.h"
#include "core/view/arena_chart.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// Blocks of a space of the plan chosen, what passes through the operators, a file, the lesson.
enum class ArenaSource : std::uint8_t { device, host, staging, pass, file, example };
inline constexpr std::array<std::string_view, 6> kArenaSourceIds = {"device", "host", "staging",
                                                                    "pass",   "file", "example"};

// What the window knows of the model when it asks for a packing; all of it may be absent.
struct ArenaModel {
  ModelPtr model = {};
  std::shared_ptr<const Projection> projection = {};
  std::shared_ptr<const ForwardScene> forward = {};
  std::shared_ptr<const ForwardFigures> figures = {};
};

// What buffers are coloured by: what they are for, the size in eighths from small to large, or each by
// itself.
enum class ArenaPalette : std::uint8_t { uses, sizes, each };
enum class ArenaKind : std::uint8_t { weights, activations, temporaries, ring };
inline constexpr std::size_t kArenaKinds = 4;

// Immutable once made. Keeps alive what names are looked up in.
struct ArenaProblem {
  ArenaSource source = ArenaSource::example;
  std::string title = {};          // not escaped
  std::string_view tick = "tick";  // what a tick is called
  Problem problem = {};            // passed check_problem()
  ArenaPalette palette = ArenaPalette::uses;
  std::vector<std::uint8_t> kinds;   // by buffer; of `uses` an ArenaKind, else below 8
  std::vector<BlockId> blocks = {};  // by buffer, of a plan
  std::vector<ValueId> values = {};  // by buffer, of a pass
  ArenaModel of = {};
  std::uint32_t arenas = 1;

  std::string name(std::uint32_t buffer) const;  // not escaped
  std::optional<TensorId> tensor(std::uint32_t buffer) const;
};
using ArenaProblemPtr = std::shared_ptr<const ArenaProblem>;

// Whether there is anything to pack of that source; of `file` and `example` nobody has to ask.
bool has_buffers(ArenaSource source, const ArenaModel& model);
// Sizes and offsets are multiples of 256 bytes, as GPU allocators want them. Throws Error{limit}.
ArenaProblemPtr model_arena(ArenaSource source, const ArenaModel& model);
ArenaProblemPtr example_arena();
// Reads a problem file (core/packing/csv.h). Throws Error{io, malformed, limit}.
ArenaProblemPtr file_arena(const std::string& path);

struct ArenaOptions {
  double seconds = 1;
  unsigned threads = 1;
  std::optional<std::uint64_t> capacity = {};  // of each arena; nothing: the least height is looked for
  bool operator==(const ArenaOptions&) const = default;
};

struct ArenaScene {
  ArenaProblemPtr of;
  ArenaOptions options = {};
  Packing packing = {};
  std::vector<std::size_t> buffers = {};  // by arena: how many are in it
  // By arena: the height that TensorFlow Lite's planner has; nothing where that is not known in
  // time, or passes 2^62.
  std::vector<std::optional<std::uint64_t>> greedy = {};
  std::vector<view::ArenaChart> charts = {};  // by arena
};
std::shared_ptr<const ArenaScene> make_arena_scene(ArenaProblemPtr problem, const ArenaOptions& options,
                                                   Progress& progress);

// Two runs beside each other, for problems of at most kMostTraced buffers.
inline constexpr std::size_t kMostTraced = 4096;
struct ArenaSteps {
  std::shared_ptr<const ArenaScene> of;
  std::uint32_t arena = 0;
  std::size_t rule = 0;  // of greedy_rules()
  std::uint64_t capacity = 0;
  PackingTrace greedy = {}, search = {};

  std::size_t length() const { return std::max(greedy.steps.size(), search.steps.size()); }
};
// Into the capacity of the options, or else the height that was found.
std::shared_ptr<const ArenaSteps> make_arena_steps(std::shared_ptr<const ArenaScene> scene,
                                                   std::uint32_t arena, std::size_t rule, Progress& progress);

// Whether the arena keeps the capacity, in words; empty without one. Safe to show.
std::string capacity_text(const ArenaScene& scene, std::uint32_t arena);
// What a trace has come to after so many steps; safe to show.
std::string step_text(const ArenaSteps& steps, const PackingTrace& trace, std::size_t at);

}  // namespace loadline::gui
