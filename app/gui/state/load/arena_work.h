// The state of the arena panel: the chosen source and options, and the packing shown. No ImGui.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/base/latest.h"
#include "app/gui/state/base/plot_range.h"
#include "app/gui/state/load/arena.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace loadline::gui {

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
  // Repeats the packing or the trace that was cancelled.
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
  // Why the chosen source could not be packed; empty if it could, while it is being packed, and if cancelled.
  std::string error() const { return cancelled() ? "" : scene_.error_text(); }
  std::string steps_error() const { return steps_cancelled() ? "" : steps_.error_text(); }
  bool cancelled() const { return scene_.was_cancelled(); }
  bool steps_cancelled() const { return steps_.was_cancelled(); }

  ArenaOptions options;  // of the next packing
  ArenaView view;

 private:
  // The inputs of a packing.
  struct Asked {
    ArenaSource source;
    ArenaOptions options;
    std::shared_ptr<const Projection> projection;   // for a memory space of the plan
    std::shared_ptr<const ForwardFigures> figures;  // for the pass
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
  mutable std::shared_ptr<const Projection> scanned_;
  mutable std::vector<ArenaSource> spaces_;  // the sources found in scanned_
};

}  // namespace loadline::gui
