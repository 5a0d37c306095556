// What the arena panel has in hand: what was chosen, and the packing that is shown. No ImGui.
#pragma once

#include "app/gui/arena_scene.h"
#include "app/gui/jobs.h"
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
  bool opening() const { return opening_ > 0; }
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
  const ArenaProblemPtr& file() const { return file_; }
  // The last packing, also while another is under way; nothing before the first.
  const std::shared_ptr<const ArenaScene>& scene() const { return scene_; }
  const std::shared_ptr<const ArenaSteps>& steps() const { return steps_; }
  bool packing() const { return packing_ > 0; }
  bool tracing() const { return tracing_ > 0; }
  // Why there is no packing of what is chosen; empty if there is, or while there will be.
  const std::string& error() const { return error_; }
  const std::string& steps_error() const { return steps_error_; }
  bool cancelled() const { return cancelled_; }
  bool steps_cancelled() const { return steps_cancelled_; }

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
  ArenaProblemPtr file_;
  std::optional<Asked> asked_;
  std::optional<Traced> traced_;
  std::shared_ptr<const ArenaScene> scene_;
  std::shared_ptr<const ArenaSteps> steps_;
  std::string error_, steps_error_;
  bool cancelled_ = false, steps_cancelled_ = false;
  std::uint64_t opening_ = 0, packing_ = 0, tracing_ = 0, count_ = 0;
  mutable std::shared_ptr<const Projection> scanned_;
  mutable std::vector<ArenaSource> spaces_;  // of scanned_
};

}  // namespace loadline::gui
