// Records greedy orders and the last attempt of exact search.
#include "core/packing/trace.h"

#include "core/base/error.h"
#include "core/packing/floor_search.h"
#include "core/packing/normal_form.h"

#include <algorithm>

namespace loadline::packing {

// --- Translates boxes of components back into buffers.

namespace {

constexpr std::uint64_t kMostTracedBytes = std::uint64_t{256} << 20;

// Translates boxes to buffers, writes the trace, and tracks the first excess over the capacity.
class TraceWriter {
 public:
  // Places the pinned buffers.
  TraceWriter(const Problem& problem, const NormalForm& form, std::uint32_t arena, std::uint64_t capacity)
      : problem_(problem), capacity_(capacity), buffers_(form.components.size()) {
    for (std::size_t i = 0; i < form.components.size(); ++i)
      buffers_[i].resize(form.components[i].model.box_count());
    for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
      const Buffer& buffer = problem.buffers[i];
      const NormalForm::Place& place = form.places[i];
      if (buffer.arena != arena || !lives(buffer)) continue;
      if (buffer.offset) write(i, *buffer.offset);
      if (place.box != NormalForm::kNoBox) buffers_[place.component][place.box].push_back(i);
    }
  }

  void write_box(std::size_t component, std::uint32_t box, std::uint64_t offset) {
    for (const std::uint32_t buffer : buffers_[component][box]) write(buffer, offset);
  }
  // A step of search, as recorded.
  void write_step(std::size_t component, std::uint32_t box, std::uint64_t offset, PackingEvent event) {
    for (const std::uint32_t buffer : buffers_[component][box])
      trace.steps.push_back({buffer, offset, event});
  }
  PackingTrace finish() {
    const auto placed = placed_after(trace, problem_.buffers.size(), trace.steps.size());
    for (std::size_t i = 0; i < placed.size(); ++i)
      if (placed[i]) trace.height = std::max(trace.height, *placed[i] + problem_.buffers[i].size);
    if (trace.end == TraceEnd::packed && trace.height > capacity_) trace.end = TraceEnd::too_high;
    return std::move(trace);
  }

  PackingTrace trace = {};

 private:
  void write(std::uint32_t buffer, std::uint64_t offset) {
    const bool first = offset + problem_.buffers[buffer].size > capacity_ && !too_high_;
    too_high_ = too_high_ || first;
    trace.steps.push_back({buffer, offset, first ? PackingEvent::too_high : PackingEvent::placed});
  }

  const Problem& problem_;
  std::uint64_t capacity_;
  std::vector<std::vector<std::vector<std::uint32_t>>> buffers_;  // by component and box
  bool too_high_ = false;
};

// Records one attempt of one component's search; of a long attempt only the end.
class Recorder final : public FloorObserver {
 public:
  explicit Recorder(std::size_t most) : most_(std::max<std::size_t>(most, 1)) {}

  void begin() {
    steps_.clear();
    stack_.clear();
    before_.clear();
    shortened_ = 0;
  }
  void placed(std::uint32_t box, std::uint64_t offset) override {
    stack_.push_back({box, offset, PackingEvent::placed});
    add(stack_.back());
  }
  void kept(std::size_t placements) override {
    for (; stack_.size() > placements; stack_.pop_back())
      add({stack_.back().box, stack_.back().offset, PackingEvent::taken_back});
  }
  void write(TraceWriter& writer, std::size_t component, std::uint64_t unit) {
    if (steps_.size() > most_) shorten();
    writer.trace.shortened += shortened_;
    for (const auto* steps : {&before_, &steps_})
      for (const Step& step : *steps) writer.write_step(component, step.box, step.offset * unit, step.event);
  }

 private:
  struct Step {
    std::uint32_t box;
    std::uint64_t offset;
    PackingEvent event;
  };

  void add(const Step& step) {
    steps_.push_back(step);
    if (steps_.size() >= 2 * most_) shorten();
  }
  // Replaces the first steps by their result: `before_` is a stack, as in the search.
  void shorten() {
    const std::size_t gone = steps_.size() - most_;
    for (std::size_t i = 0; i < gone; ++i)
      if (steps_[i].event == PackingEvent::placed)
        before_.push_back(steps_[i]);
      else
        before_.pop_back();
    shortened_ += gone;
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(gone));
  }

  std::size_t most_;
  std::vector<Step> steps_, stack_, before_;
  std::size_t shortened_ = 0;
};

template <typename T>
SearchEnd run_attempts(const SectionModel& model, std::uint64_t capacity, Recorder& recorder,
                       const SearchTraceOptions& options, const StopRule& rule, std::uint64_t& attempts) {
  FloorSearch<T> search(model, capacity);
  search.observe(&recorder);
  for (std::uint64_t i = 0; i < options.attempts; ++i) {
    if (rule.due()) return SearchEnd::stopped;
    recorder.begin();
    ++attempts;
    const SearchEnd end = search.attempt(floor_attempt(i, model.box_count(), options.seed), rule);
    if (end != SearchEnd::gave_up) return end;
  }
  return SearchEnd::gave_up;
}

}  // namespace

PackingTrace greedy_trace(const Problem& problem, const GreedyRule& rule, std::uint64_t capacity,
                          std::uint32_t arena, const StopRule& stop) {
  check_problem(problem);
  const NormalForm form = normal_form(problem, arena);
  TraceWriter writer(problem, form, arena, capacity);
  for (std::size_t i = 0; i < form.components.size(); ++i) {
    const PackingComponent& component = form.components[i];
    ArenaIndex index(component.model);
    const std::vector<std::uint32_t> order = order_by(component.model, rule);
    const GreedyPacking packing =
        pack_in_order(component.model, index, order, rule.fit, kHighestPacking / component.unit, stop);
    if (packing.height == UINT64_MAX && stop.due()) {
      writer.trace.end = TraceEnd::gave_up;
      break;
    }
    if (packing.height == UINT64_MAX) throw Error(ErrorCode::limit, "the offsets exceed 2^62 in this order");
    for (const std::uint32_t box : order) writer.write_box(i, box, packing.offsets[box] * component.unit);
  }
  return writer.finish();
}

PackingTrace search_trace(const Problem& problem, std::uint64_t capacity, const SearchTraceOptions& options,
                          const StopRule& rule) {
  check_problem(problem);
  const NormalForm form = normal_form(problem, options.arena);
  TraceWriter writer(problem, form, options.arena, capacity);
  for (std::size_t i = 0; i < form.components.size(); ++i) {
    const PackingComponent& component = form.components[i];
    const std::uint64_t units = capacity / component.unit;
    if (!fits_in<std::int64_t>(component.model, units) ||
        floor_search_bytes(component.model) > kMostTracedBytes)
      throw Error(ErrorCode::limit, "the problem is too large to record its search");
    Recorder recorder(options.most_steps);
    std::uint64_t& attempts = writer.trace.attempts;
    const SearchEnd end =
        fits_in<std::int32_t>(component.model, units)
            ? run_attempts<std::int32_t>(component.model, units, recorder, options, rule, attempts)
            : run_attempts<std::int64_t>(component.model, units, recorder, options, rule, attempts);
    recorder.write(writer, i, component.unit);
    if (end == SearchEnd::solved) continue;
    writer.trace.end = end == SearchEnd::infeasible ? TraceEnd::infeasible : TraceEnd::gave_up;
    break;
  }
  return writer.finish();
}

std::vector<std::optional<std::uint64_t>> placed_after(const PackingTrace& trace, std::size_t buffers,
                                                       std::size_t steps) {
  std::vector<std::optional<std::uint64_t>> placed(buffers);
  for (std::size_t i = 0; i < std::min(steps, trace.steps.size()); ++i) {
    const PackingStep& step = trace.steps[i];
    if (step.event == PackingEvent::taken_back)
      placed[step.buffer].reset();
    else
      placed[step.buffer] = step.offset;
  }
  return placed;
}

// --- A small problem on which every greedy order fails.

// Cut from a square of 16 ticks by 16 units, so a solution wastes no space; found by trying seeds.
Problem teaching_problem() {
  constexpr std::uint64_t kUnit = kTeachingCapacity / 16;
  constexpr struct {
    const char* id;
    std::uint64_t lower, upper, units;
  } kRows[] = {{"A", 0, 13, 2}, {"B", 0, 3, 8},  {"C", 7, 9, 8}, {"D", 9, 16, 2}, {"E", 13, 16, 8},
               {"F", 3, 7, 8},  {"G", 9, 16, 6}, {"H", 0, 4, 6}, {"I", 4, 9, 6},  {"J", 9, 13, 6}};
  Problem problem;
  for (const auto& row : kRows) {
    problem.buffers.push_back({.lower = row.lower, .upper = row.upper, .size = row.units * kUnit});
    problem.ids.emplace_back(row.id);
  }
  return problem;
}

}  // namespace loadline::packing
