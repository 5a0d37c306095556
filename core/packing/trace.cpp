// Translates boxes of components back into buffers.
#include "core/packing/trace.h"

#include "core/base/error.h"
#include "core/packing/floor_portfolio.h"
#include "core/packing/floor_search.h"
#include "core/packing/normal_form.h"
#include "core/packing/validator.h"

#include <algorithm>

namespace loadline {
namespace {

constexpr std::uint64_t kMostSearchBytes = std::uint64_t{256} << 20;

// Whether the buffer occupies any bytes at any tick: gaps may cover its whole lifetime.
bool lives(const Buffer& buffer) { return buffer.size > 0 && alive_together(buffer, buffer); }

// The buffers that each box stands for.
class BoxNames {
 public:
  BoxNames(const Problem& problem, const NormalForm& form) : buffers_(form.components.size()) {
    for (std::size_t i = 0; i < form.components.size(); ++i)
      buffers_[i].resize(form.components[i].model.box_count());
    for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
      const Buffer& buffer = problem.buffers[i];
      const NormalForm::Place& place = form.places[i];
      if (place.box == NormalForm::kNoBox || !lives(buffer)) continue;
      buffers_[place.component][place.box].push_back(i);
    }
  }
  const std::vector<std::uint32_t>& of(std::size_t component, std::uint32_t box) const {
    return buffers_[component][box];
  }

 private:
  std::vector<std::vector<std::vector<std::uint32_t>>> buffers_;  // by component, then by box
};

// Writes a trace and tracks the greatest end and the first excess over the capacity.
class TraceWriter {
 public:
  TraceWriter(const Problem& problem, std::uint64_t capacity) : problem_(problem), capacity_(capacity) {}

  void place_pinned(std::uint32_t arena) {
    for (std::uint32_t i = 0; i < problem_.buffers.size(); ++i) {
      const Buffer& buffer = problem_.buffers[i];
      if (buffer.arena == arena && buffer.offset && lives(buffer)) place(i, *buffer.offset);
    }
  }
  void place(std::uint32_t buffer, std::uint64_t offset) {
    const std::uint64_t end = offset + problem_.buffers[buffer].size;
    const bool first = end > capacity_ && !too_high_;
    too_high_ = too_high_ || first;
    trace.steps.push_back({buffer, offset, first ? PackingEvent::too_high : PackingEvent::placed});
  }
  void append(const std::vector<PackingStep>& steps) {
    trace.steps.insert(trace.steps.end(), steps.begin(), steps.end());
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
  const Problem& problem_;
  std::uint64_t capacity_;
  bool too_high_ = false;
};

// Records one attempt of one component's search; of a long attempt only the end.
class Recorder final : public FloorObserver {
 public:
  Recorder(const BoxNames& names, std::size_t component, std::uint64_t unit, std::size_t most)
      : names_(names), component_(component), unit_(unit), most_(std::max<std::size_t>(most, 1)) {}

  void begin() {
    steps_.clear();
    stack_.clear();
    before_.clear();
    shortened_ = 0;
  }
  void placed(std::uint32_t box, std::uint64_t offset) override {
    stack_.push_back({box, offset * unit_});
    add(stack_.back(), PackingEvent::placed);
  }
  void kept(std::size_t placements) override {
    for (; stack_.size() > placements; stack_.pop_back()) add(stack_.back(), PackingEvent::taken_back);
  }
  void write(TraceWriter& writer) {
    if (steps_.size() > most_) shorten();
    writer.trace.shortened += shortened_;
    std::vector<PackingStep> all;
    for (const Placement& placement : before_) expand(placement, PackingEvent::placed, all);
    for (const auto& [placement, event] : steps_) expand(placement, event, all);
    writer.append(all);
  }

 private:
  struct Placement {
    std::uint32_t box;
    std::uint64_t offset;
  };
  struct Entry {
    Placement placement;
    PackingEvent event;
  };

  void add(const Placement& placement, PackingEvent event) {
    steps_.push_back({placement, event});
    if (steps_.size() >= 2 * most_) shorten();
  }
  // Replaces the first steps by their result: `before_` is a stack, as in the search.
  void shorten() {
    const std::size_t gone = steps_.size() - most_;
    for (std::size_t i = 0; i < gone; ++i)
      if (steps_[i].event == PackingEvent::placed)
        before_.push_back(steps_[i].placement);
      else
        before_.pop_back();
    shortened_ += gone;
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(gone));
  }
  void expand(const Placement& placement, PackingEvent event, std::vector<PackingStep>& to) const {
    for (const std::uint32_t buffer : names_.of(component_, placement.box))
      to.push_back({buffer, placement.offset, event});
  }

  const BoxNames& names_;
  std::size_t component_;
  std::uint64_t unit_;
  std::size_t most_;
  std::vector<Entry> steps_;
  std::vector<Placement> stack_, before_;
  std::size_t shortened_ = 0;
};

template <typename T>
SearchEnd run_attempts(const SectionModel& model, std::uint64_t capacity, Recorder& recorder,
                       const SearchTraceOptions& options, const StopRule& rule, std::uint64_t& attempts) {
  FloorSearch<T> search(model, static_cast<T>(capacity));
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
  const BoxNames names(problem, form);
  TraceWriter writer(problem, capacity);
  writer.place_pinned(arena);
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
    if (packing.height == UINT64_MAX) throw Error(ErrorCode::limit, "the order leads to offsets above 2^62");
    for (const std::uint32_t box : order)
      for (const std::uint32_t buffer : names.of(i, box))
        writer.place(buffer, packing.offsets[box] * component.unit);
  }
  return writer.finish();
}

PackingTrace search_trace(const Problem& problem, std::uint64_t capacity, const SearchTraceOptions& options,
                          const StopRule& rule) {
  check_problem(problem);
  const NormalForm form = normal_form(problem, options.arena);
  const BoxNames names(problem, form);
  TraceWriter writer(problem, capacity);
  writer.place_pinned(options.arena);
  for (std::size_t i = 0; i < form.components.size(); ++i) {
    const PackingComponent& component = form.components[i];
    const std::uint64_t units = capacity / component.unit;
    if (!fits_in<std::int64_t>(component.model, units) ||
        floor_search_bytes(component.model) > kMostSearchBytes)
      throw Error(ErrorCode::limit, "too large a problem to search it step by step");
    Recorder recorder(names, i, component.unit, options.most_steps);
    std::uint64_t& attempts = writer.trace.attempts;
    const SearchEnd end =
        fits_in<std::int32_t>(component.model, units)
            ? run_attempts<std::int32_t>(component.model, units, recorder, options, rule, attempts)
            : run_attempts<std::int64_t>(component.model, units, recorder, options, rule, attempts);
    recorder.write(writer);
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

}  // namespace loadline
