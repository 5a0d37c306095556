// What the arena panel has in hand: what was chosen, and the packing that is shown. No ImGui.
#pragma once

#include "app/gui/arena_scene.h"
#include "app/gui/jobs.h"
#include "app/gui/latest.h"
#include "app/gui/panels/plot_range.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace loadline::gui {

inline constexpr double kArenaSeconds[] = {0.1, 1, 10};
inline constexpr unsigned kArenaThreads[] = {1, 2, 4};
inline constexpr double kArenaSpeeds[] = {1, 2, 5, 20};  // steps per second

// How the panel looks at it; scripts set it as the mouse does.
struct ArenaView {
  bool steps = false;  // step mode
  std::size_t step = 0;
  bool playing = false;
  std::size_t speed = 1;
  std::size_t rule = 0;  // of greedy_rules(), beside search
  std::uint32_t arena = 0;
  // The part in sight, as shares of time and of height.
  PlotRange time = {}, height = {};
};

// Used from the thread of its jobs' owner, which outlives them.
class ArenaWork {
 public:
  // Failures to open a file go to `fail`.
  ArenaWork(Jobs& jobs, std::function<void(const Error&)> fail) : jobs_(jobs), fail_(std::move(fail)) {}

  // Reads a problem file in the background; it is what is packed from then on.
  void open(const std::string& path);
  bool opening() const { return file_.busy(); }
  // Throws Error{usage} for a source without buffers.
  void choose(ArenaSource source, const ArenaModel& model);
  void set_options(const ArenaOptions& options) { options_ = options; }
  // The panel is in sight: packs what is chosen, in the background, if that is not done. Without a choice, or
  // where it has no buffers, the first of sources(), a pass before all.
  void update(const ArenaModel& model);
  // Traces the packing shown, likewise; nothing where it has more buffers than kMostTraced.
  void update_steps();
  void cancel();
  // Packs, or traces, again what was cancelled.
  void retry();
  // The model goes: what keeps it in memory, too.
  void forget_model();

  // What there is to choose from; scans the plan once.
  std::vector<ArenaSource> sources(const ArenaModel& model) const;
  ArenaSource source(const ArenaModel& model) const;
  const ArenaOptions& options() const { return options_; }
  const ArenaProblemPtr& file() const { return file_.value(); }
  // The last packing, also while another is under way; nothing before the first.
  const std::shared_ptr<const ArenaScene>& scene() const { return scene_.value(); }
  const std::shared_ptr<const ArenaSteps>& steps() const { return steps_.value(); }
  bool packing() const { return scene_.busy(); }
  bool tracing() const { return steps_.busy(); }
  // Why there is no packing of what is chosen; empty if there is, or while there will be.
  std::string error() const { return cancelled() ? "" : scene_.error_text(); }
  std::string steps_error() const { return steps_cancelled() ? "" : steps_.error_text(); }
  bool cancelled() const { return scene_.was_cancelled(); }
  bool steps_cancelled() const { return steps_.was_cancelled(); }

  ArenaView view;

 private:
  // What was last asked for.
  struct Asked {
    ArenaSource source;
    ArenaOptions options;
    std::shared_ptr<const Projection> projection;   // of the plan's spaces
    std::shared_ptr<const ForwardFigures> figures;  // of the pass
    ArenaProblemPtr file;
    bool operator==(const Asked&) const = default;
  };
  struct Traced {
    std::shared_ptr<const ArenaScene> scene;
    std::uint32_t arena;
    std::size_t rule;
    bool operator==(const Traced&) const = default;
  };

  void post(const Asked& asked, const ArenaModel& model);

  Jobs& jobs_;
  std::function<void(const Error&)> fail_;
  std::optional<ArenaSource> source_;
  ArenaOptions options_;
  Latest<ArenaProblem> file_;
  std::optional<Asked> asked_;    // what scene_ answers
  std::optional<Traced> traced_;  // what steps_ answers
  Latest<ArenaScene> scene_;
  Latest<ArenaSteps> steps_;
  mutable std::shared_ptr<const Projection> scanned_;
  mutable std::vector<ArenaSource> spaces_;  // of scanned_
};

}  // namespace loadline::gui
