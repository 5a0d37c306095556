// Guided ejection: a box without a gap takes the place where it does the least harm.
#pragma once

#include "core/packing/normal_form.h"
#include "core/packing/search_control.h"

#include <cstdint>
#include <span>
#include <vector>

namespace loadline::packing {

// --- Sorts indices by keys with vector instructions.

// Reuses its memory between calls.
class KeyOrder {
 public:
  // The indices 0, 1, ... sorted by keys[i]; equal keys by index. Fewer than 2^32 keys. The result is valid
  // until the next call.
  std::span<const std::uint32_t> sort(std::span<const std::uint64_t> keys);

 private:
  std::vector<std::uint64_t> packed_;
  std::vector<std::uint32_t> order_;
};

// --- Packs below a target by ejection: a box without a gap takes the place where it does the least harm, and
// the boxes that it ejects look for new places.

// Guided ejection (after Nagata and Braysy 2009, who use it for vehicle routing). A box that had to eject
// others becomes more expensive to eject itself, so that the same few boxes do not eject each other for ever.
// Improves on greedy orders for problems of any size, but proves nothing. Each step sorts the boxes that are
// alive together with one box.
class EjectionSearch {
 public:
  // The model must outlive the search.
  EjectionSearch(const SectionModel& model, std::uint64_t seed);

  // Starts from `offsets`, by box, and moves the boxes that end above `target`. If all end at or below it,
  // writes the new offsets and returns true. Returns false, with `offsets` unchanged, if `rule` is due or if
  // for `patience` steps (fewer if very many boxes are alive together) the number of boxes without a place
  // reached no new minimum.
  bool lower(std::vector<std::uint64_t>& offsets, std::uint64_t target, std::uint64_t patience,
             const StopRule& rule);

 private:
  static constexpr std::uint32_t kObstacle = UINT32_MAX;
  static constexpr double kGrudge = 0.3;  // added to a box's cost factor for each ejection it made
  static constexpr double kShake = 0.4;   // largest random share of a cost, drawn for each query
  // A box or obstacle over sections [first, last); sorted by `first`.
  struct Piece {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t box = kObstacle;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;  // of an obstacle
  };
  // A placed piece that is alive with the box looking for a place; from_ and to_ hold the starts that it
  // blocks.
  struct Near {
    const Piece* piece = nullptr;
    double cost = 0;
  };
  struct Place {
    std::uint64_t offset = 0;
    double cost = 0;
    bool free = false;  // no box must be ejected
  };

  void meet(std::uint32_t box);
  bool best_place(std::uint32_t box, std::uint64_t target, Place& place);
  void drive_out(std::uint32_t box, std::uint64_t offset);
  void wait(std::uint32_t box);
  std::uint32_t next_waiting();
  auto lighter() const {
    return [this](std::uint32_t a, std::uint32_t b) {
      return weights_[a] != weights_[b] ? weights_[a] < weights_[b] : a > b;
    };
  }
  double cost_of(std::uint32_t box) const { return weights_[box] * (1 + kGrudge * driven_[box]); }

  const SectionModel& model_;
  MixedSequence random_;
  std::vector<Piece> pieces_;
  // The largest `last` in each block of pieces, and in each block of blocks.
  std::vector<std::uint32_t> reach_, far_reach_;
  // by box
  std::vector<double> weights_;
  std::vector<double> driven_;  // how often it ejected others
  std::vector<char> placed_;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::uint32_t> waiting_;  // a heap, heaviest first
  std::vector<Near> near_;
  std::vector<std::uint64_t> from_, to_;  // by index in near_
  KeyOrder rises_, falls_;
};

}  // namespace loadline::packing
