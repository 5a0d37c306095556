// A packing problem of the model, a file or the lesson, its packing, and the arena panel's state.
#pragma once

#include "app/gui/state/base/coordinates.h"
#include "app/gui/state/base/jobs.h"
#include "app/gui/state/load/forward_scene.h"
#include "app/gui/state/model/model.h"
#include "core/base/progress.h"
#include "core/load/answer/projection.h"
#include "core/packing/pack.h"
#include "core/packing/trace.h"
#include "core/view/arena_chart.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- The data of the arena panel: a packing problem from the model, a file or the lesson, and its packing.

// The source of the buffers: one memory space of the load plan, the forward pass, a file, or the lesson.
enum class ArenaSource : std::uint8_t { device, host, staging, pass, file, example };
inline constexpr std::array<std::string_view, 6> kArenaSourceIds = {"device", "host", "staging",
                                                                    "pass",   "file", "example"};

// What is known of the model when a packing is requested. Every member may be null.
struct ArenaModel {
  ModelPtr model = {};
  std::shared_ptr<const load::Projection> projection = {};
  std::shared_ptr<const ForwardScene> forward = {};
  std::shared_ptr<const forward::ForwardFigures> figures = {};
};

// The colors of buffers: by use, by size (in eighths from small to large), or a color for each buffer.
enum class ArenaPalette : std::uint8_t { uses, sizes, each };
enum class ArenaKind : std::uint8_t { weights, activations, temporaries, ring };
inline constexpr std::size_t kArenaKinds = 4;

// A packing problem with the names of its buffers. Immutable once made; keeps the model alive for the names.
struct ArenaProblem {
  ArenaSource source = ArenaSource::example;
  std::string title = {};          // not escaped
  std::string_view tick = "tick";  // the word for a tick
  packing::Problem problem = {};   // passed check_problem()
  ArenaPalette palette = ArenaPalette::uses;
  std::vector<std::uint8_t> kinds;          // by buffer: an ArenaKind with the palette `uses`, else below 8
  std::vector<plan::BlockId> blocks = {};   // by buffer, of a plan
  std::vector<graph::ValueId> values = {};  // by buffer, of a pass
  ArenaModel of = {};
  std::uint32_t arenas = 1;

  std::string name(std::uint32_t buffer) const;  // not escaped
  std::optional<graph::TensorId> tensor(std::uint32_t buffer) const;
};
using ArenaProblemPtr = std::shared_ptr<const ArenaProblem>;

// Whether the model has buffers of that source. Not for `file` and `example`.
bool has_buffers(ArenaSource source, const ArenaModel& model);
// Makes a problem whose sizes and offsets are multiples of 256 bytes, as GPU allocators require. Throws
// Error{limit}.
ArenaProblemPtr model_arena(ArenaSource source, const ArenaModel& model);
ArenaProblemPtr example_arena();
// Reads a problem file (core/plan/reserved_memory.h). Throws Error{io, malformed, limit}.
ArenaProblemPtr file_arena(const std::string& path);

struct ArenaOptions {
  double seconds = 1;
  unsigned threads = 1;
  std::optional<std::uint64_t> capacity = {};  // of each arena; nothing: minimize the height
  bool operator==(const ArenaOptions&) const = default;
};

struct ArenaScene {
  ArenaProblemPtr of;
  ArenaOptions options = {};
  packing::Packing packing = {};
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
  packing::PackingTrace greedy = {}, search = {};

  std::size_t length() const { return std::max(greedy.steps.size(), search.steps.size()); }
};
// Traces both runs into the capacity of the options, or else into the height of the packing found.
std::shared_ptr<const ArenaSteps> make_arena_steps(std::shared_ptr<const ArenaScene> scene,
                                                   std::uint32_t arena, std::size_t rule, Progress& progress);

// Says whether the arena fits into the capacity; empty without a capacity. Escaped for display.
std::string capacity_text(const ArenaScene& scene, std::uint32_t arena);
// Describes the state of a trace after `at` steps. Escaped for display.
std::string step_text(const ArenaSteps& steps, const packing::PackingTrace& trace, std::size_t at);

// --- The state of the arena panel: the chosen source and options, and the packing shown. No ImGui.

inline constexpr double kArenaSeconds[] = {0.1, 1, 10};
inline constexpr unsigned kArenaThreads[] = {1, 2, 4};
inline constexpr double kArenaSpeeds[] = {1, 2, 5, 20};  // steps per second

// How the panel shows the packing. The mouse and scripts change it.
struct ArenaView {
  bool steps = false;  // step mode
  std::size_t step = 0;
  bool playing = false;
  std::size_t speed = 1;
  std::size_t rule = 0;  // position in greedy_rules(), of the run beside the search
  std::uint32_t arena = 0;
  // The visible part, as shares of time and of height.
  PlotRange time = {}, height = {};
};

// Used from the thread that owns `jobs`, which must outlive this object.
class ArenaWork {
 public:
  // `fail` is called if a file cannot be opened.
  ArenaWork(Jobs& jobs, std::function<void(const Error&)> fail) : jobs_(jobs), fail_(std::move(fail)) {}

  // Reads a problem file in the background, and makes it the chosen source.
  void open(const std::string& path);
  bool opening() const { return file_.busy(); }
  // Throws Error{usage} for a source without buffers.
  void choose(ArenaSource source, const ArenaModel& model);
  // Called while the panel is visible. Packs the chosen source in the background, unless its packing is
  // there. If none is chosen, or the chosen one has no buffers: the pass, else the first of sources().
  void update(const ArenaModel& model);
  // Traces the packing shown, in the background; does nothing for more than kMostTraced buffers.
  void update_steps();
  void cancel();
  // Repeats the packing or the trace that was canceled.
  void retry();
  // Drops everything that keeps the model in memory.
  void forget_model();

  // The sources that can be chosen; scans each plan once.
  std::vector<ArenaSource> sources(const ArenaModel& model) const;
  ArenaSource source(const ArenaModel& model) const;
  const ArenaProblemPtr& file() const { return file_.value(); }
  // The last packing, even while another is under way; null before the first.
  const std::shared_ptr<const ArenaScene>& scene() const { return scene_.value(); }
  const std::shared_ptr<const ArenaSteps>& steps() const { return steps_.value(); }
  bool packing() const { return scene_.busy(); }
  bool tracing() const { return steps_.busy(); }
  // Why the chosen source could not be packed; empty if it could, while it is being packed, and if canceled.
  std::string error() const { return canceled() ? "" : scene_.error_text(); }
  std::string steps_error() const { return steps_canceled() ? "" : steps_.error_text(); }
  bool canceled() const { return scene_.was_canceled(); }
  bool steps_canceled() const { return steps_.was_canceled(); }

  ArenaOptions options;  // of the next packing
  ArenaView view;

 private:
  // The inputs of a packing.
  struct Asked {
    ArenaSource source;
    ArenaOptions options;
    std::shared_ptr<const load::Projection> projection;      // for a memory space of the plan
    std::shared_ptr<const forward::ForwardFigures> figures;  // for the pass
    ArenaProblemPtr file;
    bool operator==(const Asked&) const = default;
  };
  struct Traced {
    std::shared_ptr<const ArenaScene> scene;
    std::uint32_t arena;
    std::size_t rule;
    bool operator==(const Traced&) const = default;
  };

  Jobs& jobs_;
  std::function<void(const Error&)> fail_;
  std::optional<ArenaSource> source_;
  Latest<ArenaProblem> file_;
  std::optional<Asked> asked_;    // the inputs of scene_
  std::optional<Traced> traced_;  // the inputs of steps_
  Latest<ArenaScene> scene_;
  Latest<ArenaSteps> steps_;
  mutable std::shared_ptr<const load::Projection> scanned_;
  mutable std::vector<ArenaSource> spaces_;  // the sources found in scanned_
};

}  // namespace loadline::gui
