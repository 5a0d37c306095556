// Packs the components of one arena by turns.
#pragma once

#include "core/packing/component_packer.h"
#include "core/packing/normal_form.h"
#include "core/packing/pack.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace loadline {

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

}  // namespace loadline
