// Arenas and components, one after the other, and what they say together.
#include "core/packing/pack.h"

#include "core/base/error.h"
#include "core/packing/component_packer.h"
#include "core/packing/normal_form.h"
#include "core/packing/validator.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <queue>
#include <utility>

namespace loadline {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kBoundedTurns = 2;

// The components of one arena and what became of them.
class ArenaPacker {
 public:
  ArenaPacker(const Problem& problem, std::uint32_t arena, const PackOptions& options)
      : problem_(problem),
        arena_(arena),
        options_(options),
        form_(normal_form(problem, arena)),
        capacity_(arena < options.capacity.size() ? options.capacity[arena] : std::nullopt) {
    for (const PackingComponent& component : form_.components)
      packers_.push_back(std::make_unique<ComponentPacker>(component.model, options.threads, options.seed));
    for (const Buffer& buffer : problem.buffers)
      if (buffer.arena == arena && buffer.offset && buffer.size > 0 && alive_together(buffer, buffer))
        pins_ = std::max(pins_, *buffer.offset + buffer.size);
  }

  void run(const StopRule& rule) {
    for (const auto& packer : packers_) packer->begin(rule);
    const unsigned turns = options_.effort == Effort::full      ? UINT32_MAX
                           : options_.effort == Effort::bounded ? kBoundedTurns
                                                                : 0;
    if (capacity_ && !options_.minimize) {
      reach(*capacity_, turns, rule);
    } else {
      minimize(turns, rule);
    }
  }

  std::uint64_t lower_bound() const {
    std::uint64_t bound = pins_;
    for (std::size_t i = 0; i < packers_.size(); ++i)
      bound = std::max(bound, packers_[i]->lower() * form_.components[i].unit);
    return bound;
  }
  std::uint64_t height() const {
    std::uint64_t height = pins_;
    for (std::size_t i = 0; i < packers_.size(); ++i) height = std::max(height, bytes_of(i));
    return height;
  }

  void report(Packing& packing) const {
    ArenaPacking result;
    result.height = height();
    result.lower_bound = lower_bound();
    result.proven_optimal = result.height == result.lower_bound;
    for (std::size_t i = 0; i < packers_.size(); ++i) {
      packing.nodes += packers_[i]->nodes();
      if (bytes_of(i) == result.height) packing.algorithm = packers_[i]->algorithm();
    }
    if (const auto at = highest_bound()) {
      const PackingComponent& component = form_.components[*at];
      result.bound_ticks = component.ticks[packers_[*at]->bound_section()];
    }
    packing.arenas.push_back(result);
    for (std::size_t i = 0; i < problem_.buffers.size(); ++i) {
      const Buffer& buffer = problem_.buffers[i];
      if (buffer.arena != arena_) continue;
      const NormalForm::Place& place = form_.places[i];
      packing.offsets[i] =
          buffer.offset ? *buffer.offset
          : place.box == NormalForm::kNoBox || !packers_[place.component]->packed()
              ? 0
              : packers_[place.component]->offsets()[place.box] * form_.components[place.component].unit;
    }
  }

  Verdict verdict() const {
    if (height() <= capacity_.value_or(kHighestPacking)) return Verdict::feasible;
    return capacity_ && lower_bound() > *capacity_ ? Verdict::infeasible : Verdict::undecided;
  }

 private:
  std::uint64_t bytes_of(std::size_t component) const {
    const ComponentPacker& packer = *packers_[component];
    return packer.packed() ? packer.height() * form_.components[component].unit : ArenaPacking::kNotPacked;
  }
  // All that are too high, turn and turn about: any of them may prove that it cannot be done.
  void reach(std::uint64_t capacity, unsigned turns, const StopRule& rule) {
    std::deque<std::size_t> high;
    for (std::size_t i = 0; i < packers_.size(); ++i)
      if (bytes_of(i) > capacity) high.push_back(i);
    for (; !high.empty() && !rule.due(); high.pop_front()) {
      ComponentPacker& packer = *packers_[high.front()];
      const std::uint64_t units = capacity / form_.components[high.front()].unit;
      if (turns == 0) {
        packer.try_orders(units, rule);
      } else {
        packer.reach(units, rule);
      }
      if (packer.lower() > units) return;
      if (packer.packed() && packer.height() > units && packer.turns() < turns) high.push_back(high.front());
    }
  }

  // The highest again and again, down to where another has to be, or where its turns left one.
  void minimize(unsigned turns, const StopRule& rule) {
    std::priority_queue<std::pair<std::uint64_t, std::size_t>> high;
    for (std::size_t i = 0; i < packers_.size(); ++i) high.emplace(bytes_of(i), i);
    for (std::uint64_t level = lower_bound(); !high.empty() && high.top().first > level && !rule.due();) {
      const std::size_t at = high.top().second;
      high.pop();
      ComponentPacker& packer = *packers_[at];
      const std::uint64_t unit = form_.components[at].unit;
      if (!packer.packed()) return;
      if (turns == 0) {
        packer.try_orders(level / unit, rule);
      } else {
        packer.minimize(rule);
        level = std::max(level, packer.lower() * unit);
      }
      if (packer.turns() < turns) {
        high.emplace(bytes_of(at), at);
      } else {
        level = std::max(level, bytes_of(at));
      }
    }
  }

  std::optional<std::size_t> highest_bound() const {
    std::optional<std::size_t> best;
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < packers_.size(); ++i) {
      const std::uint64_t bound = packers_[i]->lower() * form_.components[i].unit;
      if (bound > most) most = bound, best = i;
    }
    return best;
  }

  const Problem& problem_;
  std::uint32_t arena_;
  const PackOptions& options_;
  NormalForm form_;
  std::optional<std::uint64_t> capacity_;
  std::vector<std::unique_ptr<ComponentPacker>> packers_;
  std::uint64_t pins_ = 0;
};

}  // namespace

std::uint64_t Packing::height() const {
  std::uint64_t most = 0;
  for (const ArenaPacking& arena : arenas) most = std::max(most, arena.height);
  return most;
}

std::uint64_t Packing::lower_bound() const {
  std::uint64_t most = 0;
  for (const ArenaPacking& arena : arenas) most = std::max(most, arena.lower_bound);
  return most;
}

bool Packing::proven_optimal() const {
  return std::all_of(arenas.begin(), arenas.end(), [](const ArenaPacking& a) { return a.proven_optimal; });
}

Packing pack(const Problem& problem, const PackOptions& options, Progress& progress) {
  const auto begin = Clock::now();
  check_problem(problem);
  StopRule rule;
  rule.stop = progress.stop_token();
  if (options.seconds)
    rule.deadline =
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*options.seconds));
  std::uint32_t arenas = 1;
  for (const Buffer& buffer : problem.buffers) arenas = std::max(arenas, buffer.arena + 1);
  Packing packing;
  packing.offsets.assign(problem.buffers.size(), 0);
  packing.verdict = Verdict::feasible;
  for (std::uint32_t arena = 0; arena < arenas; ++arena) {
    ArenaPacker packer(problem, arena, options);
    packer.run(rule);
    progress.check_cancelled();
    packer.report(packing);
    const Verdict verdict = packer.verdict();
    if (verdict == Verdict::infeasible || packing.verdict == Verdict::infeasible)
      packing.verdict = Verdict::infeasible;
    else if (verdict == Verdict::undecided)
      packing.verdict = Verdict::undecided;
  }
  if (packing.height() == ArenaPacking::kNotPacked) packing.offsets.clear();
  packing.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return packing;
}

Packing pack(const Problem& problem, const PackOptions& options) {
  Progress progress;
  return pack(problem, options, progress);
}

}  // namespace loadline
