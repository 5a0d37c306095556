// The ladder of algorithms for one component, the turns of an arena's components, the turns of arenas.
#include "core/packing/pack.h"

#include "core/packing/ejection.h"
#include "core/packing/floor_search.h"
#include "core/packing/greedy.h"
#include "core/packing/normal_form.h"
#include "core/packing/search_control.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace loadline::packing {

// --- Packs one component by a ladder of algorithms: greedy orders, squeaky wheel, ejection, exact floor
// filling.

namespace {

// All numbers are in units of the model. The model must outlive the packer.
class ComponentPacker {
 public:
  // No packing exceeds `highest`.
  ComponentPacker(const SectionModel& model, std::uint64_t highest, unsigned threads, std::uint64_t seed);

  // Runs fast heuristics. Finds some packing unless sizes and alignments exceed `highest`.
  void begin(const StopRule& rule);
  // Tries the other greedy orders.
  void try_orders(std::uint64_t target, const StopRule& rule);
  // One more turn to find a packing of at most `capacity`, with twice the effort of the previous turn. A
  // proof that there is none raises lower().
  void reach(std::uint64_t capacity, const StopRule& rule);
  // One more turn to lower the height, with the same rules.
  void minimize(const StopRule& rule);
  // Frees what the exact searches have learned so far.
  void forget() { portfolios_.clear(); }

  bool packed() const { return !offsets_.empty(); }
  std::uint64_t height() const { return height_; }  // UINT64_MAX if nothing is packed
  std::uint64_t lower() const { return lower_; }
  // The section that attains the initial lower bound; absent once a proof has raised the bound.
  std::optional<std::uint32_t> bound_section() const { return bound_section_; }
  const std::vector<std::uint64_t>& offsets() const { return offsets_; }
  const std::string& algorithm() const { return algorithm_; }
  std::uint64_t nodes() const { return nodes_; }
  unsigned turns() const { return turns_; }  // number of turns taken

 private:
  bool done(std::uint64_t target) const { return height_ <= target || lower_ > target; }
  bool keep(std::vector<std::uint64_t> offsets, std::string algorithm);
  void try_order(const GreedyRule& order, const StopRule& rule);
  bool quick_to_search() const;
  void squeak(std::uint64_t target, const StopRule& rule);
  bool eject(std::uint64_t target, std::uint64_t patience, const StopRule& rule);
  void eject_downwards(std::uint64_t least, std::uint64_t patience, const StopRule& rule);
  bool search(std::uint64_t capacity, std::uint64_t attempts, const StopRule& rule);
  void search_downwards(std::uint64_t least, unsigned turn, const StopRule& rule);

  const SectionModel& model_;
  std::uint64_t highest_;
  unsigned threads_;
  std::uint64_t seed_;
  // Boxes and obstacles, each counted once per section it covers, plus all pairs of a box and an obstacle.
  std::uint64_t places_ = 0;
  std::uint64_t height_ = UINT64_MAX;
  std::uint64_t lower_ = 0;
  std::optional<std::uint32_t> bound_section_;
  std::vector<std::uint64_t> offsets_;
  std::string algorithm_;
  std::uint64_t nodes_ = 0;
  unsigned turns_ = 0;

  ArenaIndex index_;
  const GreedyRule* best_rule_ = nullptr;
  bool orders_tried_ = false;
  std::optional<EjectionSearch> ejection_;
  // Exact searches by capacity, between lower_ and height_; what they have learned stays valid. Limited in
  // memory.
  std::map<std::uint64_t, FloorPortfolio> portfolios_;
};

// Memory limit for all exact searches of a component.
constexpr std::uint64_t kMostSearchBytes = std::uint64_t{512} << 20;
// Up to this size an attempt of exact search takes milliseconds and runs before the heuristics.
constexpr std::uint64_t kFewPlaces = 400'000;
constexpr std::uint32_t kFewBoxes = 20'000;  // each decision looks at every section of its component
// Above this many boxes ejection gains more per second than tightest gaps, further orders and the squeaky
// wheel.
constexpr std::uint32_t kManyBoxes = 50'000;
// Up to this many boxes whole rounds of the squeaky wheel run.
constexpr std::uint32_t kWheelBoxes = 10'000;

constexpr std::uint64_t kFirstAttempts = 8;
constexpr std::uint64_t kSqueakyRounds = 16;
constexpr std::uint64_t kFirstPatience = 4000;  // steps of ejection
constexpr unsigned kMostDoubled = 32;

Fit fit_of(const GreedyRule& rule, const SectionModel& model) {
  return model.box_count() > kManyBoxes ? Fit::first : rule.fit;
}

ComponentPacker::ComponentPacker(const SectionModel& model, std::uint64_t highest, unsigned threads,
                                 std::uint64_t seed)
    : model_(model), highest_(highest), seed_(seed), index_(model) {
  const LowerBound bound = lower_bound(model);
  lower_ = bound.units;
  bound_section_ = bound.section;
  places_ = places_of(model) + std::uint64_t{model.box_count()} * model.obstacles.size();
  const std::uint64_t lanes = kMostSearchBytes / std::max<std::uint64_t>(floor_search_bytes(model), 1);
  threads_ = static_cast<unsigned>(std::min<std::uint64_t>(std::max(1u, threads), lanes));
}

bool ComponentPacker::keep(std::vector<std::uint64_t> offsets, std::string algorithm) {
  std::uint64_t height = model_.top_of_obstacles();
  for (std::uint32_t box = 0; box < model_.box_count(); ++box)
    height = std::max(height, offsets[box] + model_.height_of(box));
  if (height >= height_) return false;
  height_ = height;
  offsets_ = std::move(offsets);
  algorithm_ = std::move(algorithm);
  portfolios_.erase(portfolios_.lower_bound(height_), portfolios_.end());
  return true;
}

void ComponentPacker::begin(const StopRule& rule) {
  GreedyPacking packing = pack_by_time(model_, highest_);
  if (packing.height != UINT64_MAX) keep(std::move(packing.offsets), "best fit in the order of time");
  best_rule_ = &greedy_rules().front();
  if (!done(lower_)) try_order(*best_rule_, rule);
}

void ComponentPacker::try_order(const GreedyRule& order, const StopRule& rule) {
  GreedyPacking packing = pack_in_order(model_, index_, order_by(model_, order), fit_of(order, model_),
                                        std::min(height_ - 1, highest_), rule);
  if (packing.height == UINT64_MAX) return;
  keep(std::move(packing.offsets), fmt::format("greedy by {}", order.id));
  best_rule_ = &order;
}

void ComponentPacker::try_orders(std::uint64_t target, const StopRule& rule) {
  if (orders_tried_ || model_.box_count() > kManyBoxes) return;
  orders_tried_ = true;
  for (const GreedyRule& order : greedy_rules().subspan(1)) {
    if (done(target) || rule.due()) return;
    try_order(order, rule);
  }
}

void ComponentPacker::squeak(std::uint64_t target, const StopRule& rule) {
  if (done(target) || model_.box_count() > kWheelBoxes) return;
  GreedyPacking packing =
      squeaky_wheel(model_, index_, order_by(model_, *best_rule_), fit_of(*best_rule_, model_), height_,
                    target, kSqueakyRounds, seed_, rule);
  if (packing.height < height_)
    keep(std::move(packing.offsets), fmt::format("squeaky wheel from {}", best_rule_->id));
}

bool ComponentPacker::eject(std::uint64_t target, std::uint64_t patience, const StopRule& rule) {
  if (!ejection_) ejection_.emplace(model_, seed_);
  std::vector<std::uint64_t> offsets = offsets_;
  return ejection_->lower(offsets, target, patience, rule) && keep(std::move(offsets), "ejection");
}

// Bisects between `least` and the known height, until the interval is a sixteenth of its first length.
void ComponentPacker::eject_downwards(std::uint64_t least, std::uint64_t patience, const StopRule& rule) {
  const std::uint64_t small = (height_ - least) / 16;
  for (std::uint64_t from = least; height_ > from && height_ - from > small && !rule.due();) {
    const std::uint64_t middle = from + (height_ - 1 - from) / 2;
    if (!eject(middle, patience, rule)) from = middle + 1;
  }
}

bool ComponentPacker::quick_to_search() const {
  return threads_ > 0 && model_.box_count() <= kFewBoxes && places_ <= kFewPlaces &&
         fits_in<std::int64_t>(model_, height_);
}

bool ComponentPacker::search(std::uint64_t capacity, std::uint64_t attempts, const StopRule& rule) {
  if (threads_ == 0 || !fits_in<std::int64_t>(model_, capacity)) return false;
  std::uint64_t bytes = floor_search_bytes(model_) * threads_;
  for (const auto& [at, portfolio] : portfolios_) bytes += portfolio.bytes();
  if (bytes > kMostSearchBytes) portfolios_.clear();
  FloorPortfolio& portfolio =
      portfolios_.try_emplace(capacity, model_, capacity, threads_, seed_).first->second;
  const std::uint64_t before = portfolio.nodes();
  const SearchEnd end = portfolio.run(attempts, rule);
  nodes_ += portfolio.nodes() - before;
  if (end == SearchEnd::infeasible) {
    lower_ = std::max(lower_, capacity + 1);
    bound_section_.reset();
    portfolios_.erase(portfolios_.begin(), portfolios_.lower_bound(lower_));
  }
  return end == SearchEnd::solved && keep(portfolio.offsets(), "floor filling");
}

// Leaps down from the known height. The farthest leaps get the least effort: they either succeed quickly or
// take too long to decide.
void ComponentPacker::search_downwards(std::uint64_t least, unsigned turn, const StopRule& rule) {
  constexpr unsigned kLeaps = 6;
  const std::uint64_t attempts = kFirstAttempts << turn;
  unsigned leap = 0;
  while (height_ > std::max(least, lower_) && leap <= kLeaps && !rule.due()) {
    const std::uint64_t way = std::max<std::uint64_t>((height_ - std::max(least, lower_)) >> leap, 1);
    const std::uint64_t effort = std::max<std::uint64_t>(attempts >> ((kLeaps - leap) / 2), 1);
    if (search(height_ - way, effort, rule))
      leap = leap > 0 ? leap - 1 : 0;
    else if (way == 1)
      return;
    else
      ++leap;
  }
}

void ComponentPacker::reach(std::uint64_t capacity, const StopRule& rule) {
  const unsigned turn = turns_++, doubled = std::min(turn, kMostDoubled);
  if (!packed() || done(capacity)) return;
  const bool quick = quick_to_search();
  if (turn == 0) {
    if (quick) search(capacity, kFirstAttempts, rule);
    if (!done(capacity)) try_orders(capacity, rule);
  }
  // if search is quick, a few dozen attempts are worth more than any heuristic
  const unsigned patient = quick ? 2 : 0;
  if (turn == patient) squeak(capacity, rule);
  if (!done(capacity) && (!quick || turn == patient)) eject(capacity, kFirstPatience << doubled, rule);
  if (!done(capacity) && quick) {
    search(capacity, 2 * kFirstAttempts << doubled, rule);
  } else if (!done(capacity) && places_ <= kFewPlaces && turn > 0) {
    search(capacity, turn, rule);
  }
  // also lowers the height towards the capacity, to show how close it gets
  if (done(capacity) || turn < patient) return;
  if (quick) search_downwards(capacity, std::min(turn - patient, kMostDoubled), rule);
  if (!quick || turn == patient) eject_downwards(capacity, kFirstPatience << doubled, rule);
}

void ComponentPacker::minimize(const StopRule& rule) {
  const unsigned turn = turns_++, doubled = std::min(turn, kMostDoubled);
  if (!packed() || done(lower_)) return;
  const bool quick = quick_to_search();
  if (turn == 0) {
    if (quick) search(lower_, kFirstAttempts, rule);
    if (!done(lower_)) try_orders(lower_, rule);
    squeak(lower_, rule);
  }
  if (!quick || turn == 0) eject_downwards(lower_, kFirstPatience << doubled, rule);
  if (quick) {
    search_downwards(lower_, doubled, rule);
  } else if (places_ <= kFewPlaces && turn > 0) {
    search(lower_, turn, rule);
  }
}

}  // namespace

// --- Packs the components of one arena by turns.

namespace {

class ArenaPacker {
 public:
  // Problem and options must outlive the packer. Throws as normal_form().
  ArenaPacker(const Problem& problem, std::uint32_t arena, const PackOptions& options);

  // Runs the fast heuristics on every component.
  void begin(const StopRule& rule);
  // Runs one turn of one component. With a capacity to reach, all components that exceed it take turns, since
  // any of them may prove that it cannot be kept. Otherwise the highest component has the turn, until it is
  // no higher than a component whose height is final. Returns false if no turn is left that could change the
  // answer.
  bool step(const StopRule& rule);

  // Whether a proof exists that the capacity cannot be kept.
  bool refused() const { return refused_; }
  // Undecided also if no packing is known.
  Verdict verdict() const;
  ArenaPacking result() const;
  // The algorithm that gave the highest component its height; empty if a pinned buffer is the highest.
  std::string algorithm() const;
  std::uint64_t nodes() const;
  // Writes the offsets of this arena's buffers; `offsets` is by buffer.
  void write(std::vector<std::uint64_t>& offsets) const;

 private:
  std::uint64_t bytes_of(std::size_t component) const;
  std::uint64_t bound_of(std::size_t component) const;
  std::uint64_t end_of_pins() const;
  std::uint64_t height() const;
  std::uint64_t lower_bound() const;
  bool reaches() const { return capacity_ && !options_.minimize; }
  bool step_in_turn(const StopRule& rule);
  bool step_highest(const StopRule& rule);
  bool turn(std::size_t component, std::uint64_t bytes, const StopRule& rule);

  const Problem& problem_;
  std::uint32_t arena_;
  const PackOptions& options_;
  unsigned turns_;  // number of turns for each component
  NormalForm form_;
  const Buffer* highest_pin_;
  std::optional<std::uint64_t> capacity_;  // to be reached; a lower height is not sought
  std::vector<std::unique_ptr<ComponentPacker>> packers_;
  // Components with turns left: a heap by height, or in rotation if there is a capacity to reach.
  std::vector<std::size_t> waiting_;
  std::size_t next_ = 0;     // next component of the rotation
  std::uint64_t level_ = 0;  // a lower height than this is of no use
  bool refused_ = false;
};

constexpr unsigned kBoundedTurns = 2;

unsigned turns_of(Effort effort) {
  if (effort == Effort::full) return UINT32_MAX;
  return effort == Effort::bounded ? kBoundedTurns : 0;
}

ArenaPacker::ArenaPacker(const Problem& problem, std::uint32_t arena, const PackOptions& options)
    : problem_(problem),
      arena_(arena),
      options_(options),
      turns_(turns_of(options.effort)),
      form_(normal_form(problem, arena)),
      highest_pin_(highest_pin(problem, arena)) {
  if (arena < options.capacity.size() && options.capacity[arena])
    capacity_ = std::min(*options.capacity[arena], kHighestPacking);
  for (const PackingComponent& component : form_.components)
    packers_.push_back(std::make_unique<ComponentPacker>(component.model, kHighestPacking / component.unit,
                                                         options.threads, options.seed));
}

std::uint64_t ArenaPacker::bytes_of(std::size_t component) const {
  const ComponentPacker& packer = *packers_[component];
  return packer.packed() ? packer.height() * form_.components[component].unit : ArenaPacking::kNotPacked;
}

// With alignments a component's bound may exceed the highest packing; it is cut to just above that, where it
// still holds.
std::uint64_t ArenaPacker::bound_of(std::size_t component) const {
  const std::uint64_t unit = form_.components[component].unit;
  return std::min(packers_[component]->lower(), kHighestPacking / unit + 1) * unit;
}

std::uint64_t ArenaPacker::end_of_pins() const {
  return highest_pin_ == nullptr ? 0 : *highest_pin_->offset + highest_pin_->size;
}

std::uint64_t ArenaPacker::height() const {
  std::uint64_t height = end_of_pins();
  for (std::size_t i = 0; i < packers_.size(); ++i) height = std::max(height, bytes_of(i));
  return height;
}

std::uint64_t ArenaPacker::lower_bound() const {
  std::uint64_t bound = end_of_pins();
  for (std::size_t i = 0; i < packers_.size(); ++i) bound = std::max(bound, bound_of(i));
  return bound;
}

void ArenaPacker::begin(const StopRule& rule) {
  for (const auto& packer : packers_) packer->begin(rule);
  level_ = lower_bound();
  refused_ = capacity_ && level_ > *capacity_;
  if (reaches()) level_ = *capacity_;
  for (std::size_t i = 0; i < packers_.size() && !refused_; ++i)
    if (packers_[i]->packed() && bytes_of(i) > level_) waiting_.push_back(i);
  if (!reaches())
    std::ranges::make_heap(waiting_, {}, [this](std::size_t component) { return bytes_of(component); });
}

// Returns whether the component has turns left and is still higher than `bytes`.
bool ArenaPacker::turn(std::size_t component, std::uint64_t bytes, const StopRule& rule) {
  ComponentPacker& packer = *packers_[component];
  const std::uint64_t units = bytes / form_.components[component].unit;
  if (turns_ == 0) {
    packer.try_orders(units, rule);
  } else if (reaches()) {
    packer.reach(units, rule);
  } else {
    packer.minimize(rule);
  }
  if (waiting_.size() > 1) packer.forget();  // together the components would keep too much memory
  return packer.turns() < turns_ && bytes_of(component) > bytes;
}

bool ArenaPacker::step_in_turn(const StopRule& rule) {
  next_ %= waiting_.size();
  const std::size_t at = waiting_[next_];
  if (turn(at, level_, rule)) {
    ++next_;
  } else {
    waiting_[next_] = waiting_.back();
    waiting_.pop_back();
  }
  refused_ = bound_of(at) > *capacity_;
  return !refused_ && !waiting_.empty();
}

bool ArenaPacker::step_highest(const StopRule& rule) {
  const auto bytes = [this](std::size_t component) { return bytes_of(component); };
  std::ranges::pop_heap(waiting_, {}, bytes);
  const std::size_t at = waiting_.back();
  if (bytes_of(at) <= level_) {
    waiting_.clear();
    return false;
  }
  const bool more = turn(at, level_, rule);
  level_ = std::max(level_, more ? bound_of(at) : bytes_of(at));
  refused_ = capacity_ && bound_of(at) > *capacity_;
  if (more) {
    std::ranges::push_heap(waiting_, {}, bytes);
  } else {
    waiting_.pop_back();
  }
  return !waiting_.empty();
}

bool ArenaPacker::step(const StopRule& rule) {
  if (waiting_.empty()) return false;
  return reaches() ? step_in_turn(rule) : step_highest(rule);
}

Verdict ArenaPacker::verdict() const {
  if (height() <= capacity_.value_or(kHighestPacking)) return Verdict::feasible;
  return capacity_ && lower_bound() > *capacity_ ? Verdict::infeasible : Verdict::undecided;
}

ArenaPacking ArenaPacker::result() const {
  ArenaPacking result;
  result.height = height();
  result.lower_bound = lower_bound();
  result.proven_optimal = result.height == result.lower_bound;
  if (highest_pin_ != nullptr && end_of_pins() == result.lower_bound)
    result.bound_ticks = {highest_pin_->lower, highest_pin_->upper};
  for (std::size_t i = 0; i < packers_.size(); ++i)
    if (const auto section = packers_[i]->bound_section(); section && bound_of(i) == result.lower_bound)
      result.bound_ticks = form_.components[i].ticks[*section];
  return result;
}

std::string ArenaPacker::algorithm() const {
  const std::uint64_t most = height();
  for (std::size_t i = 0; i < packers_.size(); ++i)
    if (packers_[i]->packed() && bytes_of(i) == most) return packers_[i]->algorithm();
  return "";
}

std::uint64_t ArenaPacker::nodes() const {
  std::uint64_t sum = 0;
  for (const auto& packer : packers_) sum += packer->nodes();
  return sum;
}

void ArenaPacker::write(std::vector<std::uint64_t>& offsets) const {
  for (std::size_t i = 0; i < problem_.buffers.size(); ++i) {
    const Buffer& buffer = problem_.buffers[i];
    if (buffer.arena != arena_) continue;
    const NormalForm::Place& place = form_.places[i];
    offsets[i] = 0;  // for buffers that are never alive
    if (buffer.offset)
      offsets[i] = *buffer.offset;
    else if (place.box != NormalForm::kNoBox && packers_[place.component]->packed())
      offsets[i] = packers_[place.component]->offsets()[place.box] * form_.components[place.component].unit;
  }
}

}  // namespace

// --- Runs arenas and components by turns and combines their results.

namespace {

using Clock = std::chrono::steady_clock;

// Gives each arena turns until nothing is left to gain, one is proved too small, or time runs out.
void run(std::vector<ArenaPacker>& packers, bool minimize, const StopRule& rule) {
  for (ArenaPacker& packer : packers) packer.begin(rule);
  const auto refused = [](const ArenaPacker& packer) { return packer.refused(); };
  for (bool more = true; more && !rule.due();) {
    more = false;
    if (!minimize && std::ranges::any_of(packers, refused)) return;
    for (ArenaPacker& packer : packers) more |= !rule.due() && packer.step(rule);
  }
}

Verdict worse(Verdict a, Verdict b) {
  if (a == Verdict::infeasible || b == Verdict::infeasible) return Verdict::infeasible;
  return a == Verdict::undecided ? a : b;
}

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
  return std::ranges::all_of(arenas, [](const ArenaPacking& a) { return a.proven_optimal; });
}

Packing pack(const Problem& problem, const PackOptions& options, Progress& progress) {
  const auto begin = Clock::now();
  check_problem(problem);
  StopRule rule;
  rule.stop = progress.stop_token();
  if (options.seconds)
    rule.deadline =
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*options.seconds));
  const std::uint32_t arenas = arena_count(problem);
  std::vector<ArenaPacker> packers;
  for (std::uint32_t arena = 0; arena < arenas; ++arena) packers.emplace_back(problem, arena, options);
  run(packers, options.minimize, rule);
  progress.check_canceled();
  Packing packing;
  packing.offsets.assign(problem.buffers.size(), 0);
  packing.verdict = Verdict::feasible;
  for (const ArenaPacker& packer : packers) {
    const ArenaPacking arena = packer.result();
    if (packing.arenas.empty() || arena.height > packing.height()) packing.algorithm = packer.algorithm();
    packing.arenas.push_back(arena);
    packing.nodes += packer.nodes();
    packing.verdict = worse(packing.verdict, packer.verdict());
    packer.write(packing.offsets);
  }
  if (packing.height() == ArenaPacking::kNotPacked) packing.offsets.clear();
  packing.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return packing;
}

}  // namespace loadline::packing
