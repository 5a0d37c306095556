// The data of the arena panel: a packing problem from the model, a file or the lesson, and its packing.
#pragma once

#include "app/gui/state/load/forward_scene.h"
#include "app/gui/state/model/model.h"
#include "core/base/tasks.h"
#include "core/load/answer/projection.h"
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

// The source of the buffers: one memory space of the load plan, the forward pass, a file, or the lesson.
enum class ArenaSource : std::uint8_t { device, host, staging, pass, file, example };
inline constexpr std::array<std::string_view, 6> kArenaSourceIds = {"device", "host", "staging",
                                                                    "pass",   "file", "example"};

// What is known of the model when a packing is requested. Every member may be null.
struct ArenaModel {
  ModelPtr model = {};
  std::shared_ptr<const Projection> projection = {};
  std::shared_ptr<const ForwardScene> forward = {};
  std::shared_ptr<const ForwardFigures> figures = {};
};

// The colours of buffers: by use, by size (in eighths from small to large), or a colour for each buffer.
enum class ArenaPalette : std::uint8_t { uses, sizes, each };
enum class ArenaKind : std::uint8_t { weights, activations, temporaries, ring };
inline constexpr std::size_t kArenaKinds = 4;

// A packing problem with the names of its buffers. Immutable once made; keeps the model alive for the names.
struct ArenaProblem {
  ArenaSource source = ArenaSource::example;
  std::string title = {};          // not escaped
  std::string_view tick = "tick";  // the word for a tick
  Problem problem = {};            // passed check_problem()
  ArenaPalette palette = ArenaPalette::uses;
  std::vector<std::uint8_t> kinds;   // by buffer: an ArenaKind with the palette `uses`, else below 8
  std::vector<BlockId> blocks = {};  // by buffer, of a plan
  std::vector<ValueId> values = {};  // by buffer, of a pass
  ArenaModel of = {};
  std::uint32_t arenas = 1;

  std::string name(std::uint32_t buffer) const;  // not escaped
  std::optional<TensorId> tensor(std::uint32_t buffer) const;
};
using ArenaProblemPtr = std::shared_ptr<const ArenaProblem>;

// Whether the model has buffers of that source. Not for `file` and `example`.
bool has_buffers(ArenaSource source, const ArenaModel& model);
// Makes a problem whose sizes and offsets are multiples of 256 bytes, as GPU allocators require. Throws
// Error{limit}.
ArenaProblemPtr model_arena(ArenaSource source, const ArenaModel& model);
ArenaProblemPtr example_arena();
// Reads a problem file (core/packing/csv.h). Throws Error{io, malformed, limit}.
ArenaProblemPtr file_arena(const std::string& path);

struct ArenaOptions {
  double seconds = 1;
  unsigned threads = 1;
  std::optional<std::uint64_t> capacity = {};  // of each arena; nothing: minimise the height
  bool operator==(const ArenaOptions&) const = default;
};

struct ArenaScene {
  ArenaProblemPtr of;
  ArenaOptions options = {};
  Packing packing = {};
  std::vector<std::size_t> buffers = {};  // by arena: the number of its buffers
  // By arena: the height that TensorFlow Lite's planner reaches. Nothing if that takes too long to compute or
  // exceeds 2^62.
  std::vector<std::optional<std::uint64_t>> greedy = {};
  std::vector<view::ArenaChart> charts = {};  // by arena
};
std::shared_ptr<const ArenaScene> make_arena_scene(ArenaProblemPtr problem, const ArenaOptions& options,
                                                   Progress& progress);

// Step by step: a greedy run beside the exact search, for problems of at most kMostTraced buffers.
inline constexpr std::size_t kMostTraced = 4096;
struct ArenaSteps {
  std::shared_ptr<const ArenaScene> of;
  std::uint32_t arena = 0;
  std::size_t rule = 0;  // of greedy_rules()
  std::uint64_t capacity = 0;
  PackingTrace greedy = {}, search = {};

  std::size_t length() const { return std::max(greedy.steps.size(), search.steps.size()); }
};
// Traces both runs into the capacity of the options, or else into the height of the packing found.
std::shared_ptr<const ArenaSteps> make_arena_steps(std::shared_ptr<const ArenaScene> scene,
                                                   std::uint32_t arena, std::size_t rule, Progress& progress);

// Says whether the arena fits into the capacity; empty without a capacity. Escaped for display.
std::string capacity_text(const ArenaScene& scene, std::uint32_t arena);
// Describes the state of a trace after `at` steps. Escaped for display.
std::string step_text(const ArenaSteps& steps, const PackingTrace& trace, std::size_t at);

}  // namespace loadline::gui
