// What every view shares: the selection and its history, the time axis and its cursor, the mouse, the visible
// part of an axis.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "core/graph/op_place.h"
#include "core/plan/plan.h"
#include "core/view/curves.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace loadline::gui {

// --- The visible part of an axis.

// The visible part, as shares of the axis's length.
struct PlotRange {
  double from = 0;
  double to = 1;
  bool operator==(const PlotRange&) const = default;
  bool is_whole() const { return *this == PlotRange(); }
};

// Around `share` of the axis, which stays where it is: smaller by a fifth for each notch of a wheel.
inline PlotRange zoomed(const PlotRange& range, double share, double notches) {
  constexpr double kLeast = 1e-4;
  const double shown = range.to - range.from;
  const double next = std::clamp(shown * std::pow(0.8, notches), kLeast, 1.0);
  const double from = std::clamp(share - (share - range.from) * next / shown, 0.0, 1.0 - next);
  return next >= 1 ? PlotRange() : PlotRange{from, from + next};
}

// --- The time axis of timeline, Load and Lifetimes.

// Where a plot begins and ends on the screen, in pixels.
struct PlotEdges {
  float left = 0, right = 0;
  bool operator==(const PlotEdges&) const = default;
};

// One unit and one visible part for all plots on it.
struct TimeAxis {
  view::RunAxis chosen = view::RunAxis::steps;  // Document::axis_unit() is what holds
  PlotRange range = {};
  // The part that a panel showed by itself: once the panel is left, the whole axis is shown again, unless a
  // person has chosen another part.
  std::optional<PlotRange> lent = {};
  // Of the frame that is being drawn: the timeline's card, which limits every plot on the axis, and once the
  // timeline is drawn, its plot; and the panel's plot, if that has this axis.
  std::optional<PlotEdges> room = {}, panel = {};
};

// --- What is selected, and what was selected before it.

struct OperatorAt {
  std::size_t at = 0;  // position in the forward graph
  bool operator==(const OperatorAt&) const = default;
};
// A finding of Checks::findings.
struct FindingAt {
  std::size_t at = 0;
  bool operator==(const FindingAt&) const = default;
};
// A row of the comparison of methods.
struct LoadOf {
  std::string method, order;
  bool operator==(const LoadOf&) const = default;
};
// Nothing is the model itself. An operator of the file that the pass does not run has its place there. A
// block belongs to the projection that is shown.
using Selected = std::variant<std::monostate, graph::TensorId, graph::NodeId, OperatorAt, plan::BlockId,
                              LoadOf, FindingAt, graph::OpPlace>;

// What a block holds, or the block where it holds no tensor.
inline Selected tensor_or_block(std::optional<graph::TensorId> tensor, plan::BlockId block) {
  return tensor ? Selected(*tensor) : Selected(block);
}

// Like the pages of a browser: selecting drops what would have come after.
class SelectionHistory {
 public:
  const Selected& now() const { return visited_[at_]; }
  // Counts what was selected, again or anew. Lists scroll to the selection when it changes.
  std::uint64_t count() const { return count_; }
  void select(Selected what) {
    ++count_;
    if (what == now()) return;
    visited_.resize(at_ + 1);
    if (visited_.size() == kMost) visited_.erase(visited_.begin());
    visited_.push_back(std::move(what));
    at_ = visited_.size() - 1;
  }
  bool can_go_back() const { return at_ > 0; }
  bool can_go_forward() const { return at_ + 1 < visited_.size(); }
  void go_back() {
    ++count_;
    at_ -= can_go_back() ? 1 : 0;
  }
  void go_forward() {
    ++count_;
    at_ += can_go_forward() ? 1 : 0;
  }
  // Puts `mend(entry)` in the place of every entry: for a projection whose blocks are gone.
  template <typename Mend>
  void replace(Mend mend) {
    for (Selected& entry : visited_) entry = mend(std::move(entry));
  }

 private:
  static constexpr std::size_t kMost = 200;
  std::vector<Selected> visited_ = std::vector<Selected>(1);
  std::size_t at_ = 0;
  std::uint64_t count_ = 0;
};

// --- What can be done with what is under the mouse.

// A row of a menu: lines of a script, that is, actions with their arguments, which run one after the other.
struct Offer {
  struct Line {
    std::string_view action;
    std::string argument = {};
  };
  std::string title;
  std::vector<Line> lines;
  bool apart = false;  // a line is drawn above it
};

// A menu that a view asks for: what it offers itself, then what can be done with the selection.
struct AskedMenu {
  std::string title = {};  // not escaped; empty: that of the selection
  std::vector<Offer> offers = {};
  bool of_selection = true;
};

// --- The step of the load at which every view stands.

// Stands at the peak until the user moves it.
class TimeCursor {
 public:
  // Another load: back to its peak, and the play ends. No steps: there is no load.
  void begin(std::size_t steps, std::size_t peak) {
    steps_ = steps;
    peak_ = peak;
    step_.reset();
    halt_.reset();
    playing_ = false;
  }
  // Where a play that comes by stands still until it is started again: where the load fails.
  void halt_at(std::optional<std::size_t> step) { halt_ = step; }
  // 0 without a load.
  std::size_t step() const { return std::min(step_.value_or(peak_), steps_); }
  void set_step(std::optional<std::size_t> step) { step_ = step; }  // nothing: back to the peak
  bool at_peak() const { return !step_; }

  // Plays the load from the cursor, or from its start if that is at the end.
  void play(bool on) {
    playing_ = on && steps_ > 0;
    if (playing_ && (at_peak() || step() >= steps_)) step_ = 0;
    played_ = static_cast<double>(step());
  }
  bool playing() const { return playing_; }
  // Moves the cursor of a play by the time that has passed.
  void advance(double seconds) {
    if (!playing_) return;
    constexpr double kWhole = 8;  // seconds, at the speed 1
    const auto steps = static_cast<double>(steps_);
    // somebody may have moved the cursor
    if (static_cast<std::size_t>(played_) != step()) played_ = static_cast<double>(step());
    const double before = std::exchange(played_, std::min(steps, played_ + seconds * speed * steps / kWhole));
    const bool halts =
        halt_ && before < static_cast<double>(*halt_) && played_ >= static_cast<double>(*halt_);
    if (halts) played_ = static_cast<double>(*halt_);
    step_ = static_cast<std::size_t>(played_);
    playing_ = !halts && played_ < steps;
  }

  double speed = 1;  // of the play

 private:
  std::size_t steps_ = 0, peak_ = 0;
  std::optional<std::size_t> step_;  // if it was moved from the peak
  std::optional<std::size_t> halt_;
  bool playing_ = false;
  double played_ = 0;  // steps, with fractions
};

// --- What is under the mouse in any view is marked in all of them.

// Set while one view draws, seen by the others in the next frame.
class Hover {
 public:
  void set(graph::NodeId module) { next_ = module; }
  void set(graph::ValueId value) { next_value_ = value; }
  std::optional<graph::NodeId> module() const { return module_; }
  std::optional<graph::ValueId> value() const { return value_; }  // of the forward pass
  void set_step(std::size_t at) { next_step_ = at; }
  void begin_frame() {
    module_ = std::exchange(next_, std::nullopt);
    value_ = std::exchange(next_value_, std::nullopt);
    step = std::exchange(next_step_, std::nullopt);
  }

  std::optional<std::size_t> step;  // of the load, under the mouse on the time axis

 private:
  std::optional<graph::NodeId> module_, next_;
  std::optional<graph::ValueId> value_, next_value_;
  std::optional<std::size_t> next_step_;
};

}  // namespace loadline::gui
