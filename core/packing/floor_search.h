// Exact search by filling the floor, and many short attempts of it on several threads.
#pragma once

#include "core/packing/search_control.h"
#include "core/packing/skyline.h"

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace loadline::packing {

// --- Exact packing by filling the floor: at a section where the floor is lowest, either one box sits exactly
// on it or none does.

// Why the search is complete: push every box of a solution down as far as possible. Take a section t in a
// stretch of listed sections whose floor is lower than on both sides. A box over t that may start at the
// floor lies within the stretch, since elsewhere it could not start so low. Either exactly one such box sits
// on the floor at t, or none does. If none does, the lowest box over t rests on a box that is not over t, and
// t is empty up to there. The cases exclude each other, and none depends on the order of decisions elsewhere,
// so the search stays local in time. Components are solved one after the other. If one has no solution, the
// choice that created it is undone, and with it the solutions of its siblings.

// Which section is filled next. `c` counts its choices: the boxes that may sit on its floor, plus one if it
// may stay empty.
enum class Selection : std::uint8_t {
  weighted,  // least c relative to how often the section failed
  fullest,   // least c, then the most bytes still to be stacked there
  fewest     // least c, then the leftmost
};
// Which candidate is tried first: the greatest by this measure.
enum class Preference : std::uint8_t { longest, area, size, busiest };

struct Attempt {
  Selection selection = Selection::fullest;
  Preference preference = Preference::size;
  double noise = 0;  // preferences are multiplied by e^x, x random in [-noise, noise)
  std::uint64_t seed = 0;
  std::uint64_t nodes = 0;  // limit of decisions
};

enum class SearchEnd : std::uint8_t { solved, infeasible, gave_up, stopped };

// Observes a search: every placement, including one that leaves a section without room, and how many
// placements remain when some are undone.
class FloorObserver {
 public:
  FloorObserver() = default;
  FloorObserver(const FloorObserver&) = delete;
  FloorObserver& operator=(const FloorObserver&) = delete;
  virtual ~FloorObserver() = default;
  virtual void placed(std::uint32_t box, std::uint64_t offset) = 0;
  virtual void kept(std::size_t placements) = 0;
};

// T as for Skyline. Attempts share what they learn: states without a solution, and how often sections failed.
template <typename T>
class FloorSearch {
 public:
  FloorSearch(const SectionModel& model, std::uint64_t capacity);

  // `infeasible` is a proof: the attempt went through all choices.
  SearchEnd attempt(const Attempt& attempt, const StopRule& rule);
  // The solution, by box of the model; valid after `solved`.
  const std::vector<T>& offsets() const { return offsets_; }
  std::uint64_t nodes() const { return nodes_; }
  // Bytes of the failed states and of the undo log at its largest.
  std::size_t learned_bytes() const { return failed_.size() * sizeof(Hash) + skyline_.log_bytes(); }
  void observe(FloorObserver* observer) { observer_ = observer; }

 private:
  using Hash = typename Skyline<T>::Hash;
  // The listed sections `from` to `to`. `rest`: the component to solve after it. `maker`: the frame whose
  // choice created it.
  struct Component {
    std::uint32_t from, to;
    std::size_t rest, maker;
  };
  struct Frame {
    std::size_t component;
    typename Skyline<T>::Moment moment;
    std::size_t components;  // number of components when the frame was opened
    std::size_t tried, end;  // candidates
    std::size_t first_candidate;
    std::uint32_t section;
    bool may_stay_empty;
    bool known;  // the state is known to fail: nothing to record
    Hash hash;
  };
  static constexpr std::size_t kNone = SIZE_MAX;
  static constexpr std::size_t kMostFailed = std::size_t{1} << 22;  // limit of stored states, 16 bytes each
  static constexpr std::size_t kMostLogged = std::size_t{1}
                                             << 26;  // bytes for undoing: beyond, an attempt gives up

  void rank(const Attempt& attempt);
  void split(std::uint32_t from, std::uint32_t to, std::size_t rest, std::size_t maker);
  void open_frame();
  bool advance(const StopRule& rule);
  bool place_next(Frame& frame);
  bool leave_empty(Frame& frame);
  bool fail();
  std::uint32_t choose(const Component& component) const;
  double score(std::uint32_t section) const;
  T level_if_empty(std::uint32_t section) const;
  void number_kinds();
  bool has_failed(const Hash& hash) const;
  void record_failure(const Hash& hash);
  void keep_solution();

  std::vector<std::uint32_t> order_;  // by box of the skyline: the box of the model
  // kinds_, by box of the skyline: equal boxes have the same kind. seen_, by kind: the number of the last
  // frame with a candidate of that kind.
  std::vector<std::uint32_t> kinds_;
  std::vector<std::uint64_t> seen_;
  Skyline<T> skyline_;
  std::vector<T> offsets_;
  std::vector<double> ranks_, weights_, busiest_;
  Selection selection_ = Selection::fullest;

  std::vector<Component> components_;
  std::vector<Frame> frames_;
  std::vector<std::uint32_t> candidates_;
  std::size_t todo_ = kNone;

  std::vector<Hash> failed_;
  std::size_t failures_ = 0;
  std::uint64_t nodes_ = 0, choices_ = 0;
  bool stopped_ = false;
  FloorObserver* observer_ = nullptr;
};

extern template class FloorSearch<std::int32_t>;
extern template class FloorSearch<std::int64_t>;

// --- Exact packing by many short attempts: floor searches with different preferences, on several threads.

// Attempt number `index`: rotates through four strategies, with random noise after the first use of each. Its
// node limit follows Luby's sequence (Luby, Sinclair, Zuckerman 1993): run times have a heavy tail, so a new
// attempt often pays more than a longer one.
Attempt floor_attempt(std::uint64_t index, std::uint32_t boxes, std::uint64_t seed);

// Bytes of the lists of one floor search of the model (one per thread). Learned states and the undo log come
// on top, at most 64 MiB each.
std::uint64_t floor_search_bytes(const SectionModel& model);

// Attempts at one capacity, in lanes with one thread and one search each. The first lane does the same as it
// would alone; the others skip the attempts without noise and use seeds of their own. If several lanes
// finish, the attempt with the lowest number counts (ties: the lowest lane). So the answer depends only on
// seed and thread count, unless the clock ends the run.
class FloorPortfolio {
 public:
  // The model must outlive the portfolio; fits_in<std::int64_t>(model, capacity) must hold.
  FloorPortfolio(const SectionModel& model, std::uint64_t capacity, unsigned threads, std::uint64_t seed);

  // Each lane continues up to attempt number `attempts`. Returns `gave_up` if no attempt finished.
  SearchEnd run(std::uint64_t attempts, const StopRule& rule);
  // The solution, by box; valid after `solved`.
  const std::vector<std::uint64_t>& offsets() const { return offsets_; }
  std::uint64_t nodes() const;
  // Memory in use now.
  std::uint64_t bytes() const;

 private:
  using Lane = std::variant<FloorSearch<std::int32_t>, FloorSearch<std::int64_t>>;
  Attempt attempt_of(std::size_t lane, std::uint64_t index) const;

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::uint64_t done_ = 0;
  std::uint32_t boxes_;
  std::uint64_t list_bytes_;  // of each lane
  std::uint64_t seed_;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace loadline::packing
