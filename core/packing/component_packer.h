// Packs one component by a ladder of algorithms: greedy orders, squeaky wheel, ejection, exact floor filling.
#pragma once

#include "core/packing/arena_index.h"
#include "core/packing/bounds.h"
#include "core/packing/ejection.h"
#include "core/packing/floor_portfolio.h"
#include "core/packing/greedy.h"
#include "core/packing/search_control.h"
#include "core/packing/section_model.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace loadline {

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
  // Frees what the exact searches have learnt so far.
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
  // Exact searches by capacity, between lower_ and height_; what they have learnt stays valid. Limited in
  // memory.
  std::map<std::uint64_t, FloorPortfolio> portfolios_;
};

}  // namespace loadline
