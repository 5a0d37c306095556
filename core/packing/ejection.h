// Packs below a target by force: what finds no gap takes the place where it does the least harm, and what it
// drives out looks for another one.
#pragma once

#include "core/packing/key_order.h"
#include "core/packing/mix.h"
#include "core/packing/section_model.h"
#include "core/packing/stop_rule.h"

#include <cstdint>
#include <vector>

namespace loadline {

// Guided ejection (after Nagata and Braysy 2009, who route vehicles with it). A box that had to drive others
// out is dearer to drive out from then on, so that the same few do not chase each other for ever. It finds
// what greedy orders leave on the table in problems of any size, proves nothing, and costs a sort of the
// boxes that live together with one for each step.
class EjectionSearch {
 public:
  // The model outlives the search.
  EjectionSearch(const SectionModel& model, std::uint64_t seed);

  // From offsets by box, of which those that end above `target` have to move; gives them back when all end at
  // or below it. False: for `patience` steps (fewer where very many boxes live together) there were never
  // fewer boxes without a place, or `rule` is due; the offsets are as they were.
  bool lower(std::vector<std::uint64_t>& offsets, std::uint64_t target, std::uint64_t patience,
             const StopRule& rule);

 private:
  static constexpr std::uint32_t kObstacle = UINT32_MAX;
  static constexpr double kGrudge = 0.3;  // what each time adds to a box's cost
  static constexpr double kShake = 0.4;   // what chance adds at most, each time that it is asked
  // What is taken over sections [first, last); sorted by `first`.
  struct Piece {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t box = kObstacle;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;  // of an obstacle
  };
  // A placed piece beside a box that looks for a place; the starts that it bars are in from_ and to_.
  struct Near {
    const Piece* piece = nullptr;
    double cost = 0;
  };
  struct Place {
    std::uint64_t offset = 0;
    double cost = 0;
    bool free = false;  // nobody has to go
  };

  void meet(std::uint32_t box);
  bool best_place(std::uint32_t box, std::uint64_t target, Place& place);
  void drive_out(std::uint32_t box, std::uint64_t offset);
  void wait(std::uint32_t box);
  std::uint32_t next_waiting();
  bool lighter(std::uint32_t a, std::uint32_t b) const;
  double cost_of(std::uint32_t box) const { return weights_[box] * (1 + kGrudge * driven_[box]); }

  const SectionModel& model_;
  MixedSequence random_;
  std::vector<Piece> pieces_;
  // By block of pieces, and by block of blocks: where the last of them ends.
  std::vector<std::uint32_t> reach_, far_reach_;
  // by box
  std::vector<double> weights_;
  std::vector<double> driven_;  // how often it drove others out
  std::vector<char> placed_;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::uint32_t> waiting_;  // a heap: the heaviest first
  std::vector<Near> near_;
  std::vector<std::uint64_t> from_, to_;  // by number in near_
  KeyOrder rises_, falls_;
};

}  // namespace loadline
