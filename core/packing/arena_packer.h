// The components of one arena, turn and turn about.
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
  // Problem and options outlive the packer. Throws as normal_form().
  ArenaPacker(const Problem& problem, std::uint32_t arena, const PackOptions& options);

  // What is quick, for every component.
  void begin(const StopRule& rule);
  // One turn of one component: under a capacity of each that is too high in turn, for any may prove that it
  // cannot be done; else of the highest, down to where another has to be, or where its turns left one. False:
  // no turn is left that could change the answer.
  bool step(const StopRule& rule);

  // Proved that the capacity cannot be kept.
  bool refused() const { return refused_; }
  // Undecided also where nothing is packed.
  Verdict verdict() const;
  ArenaPacking result() const;
  // The rung that gave the highest component its height; empty where pins are the highest.
  std::string algorithm() const;
  std::uint64_t nodes() const;
  // Writes those of this arena; by buffer.
  void write(std::vector<std::uint64_t>& offsets) const;

 private:
  std::uint64_t bytes_of(std::size_t component) const;
  std::uint64_t bound_of(std::size_t component) const;
  std::uint64_t end_of_pins() const;
  std::uint64_t height() const;
  std::uint64_t lower_bound() const;
  bool reaches() const { return capacity_ && !options_.minimize; }
  bool lower(std::size_t a, std::size_t b) const { return bytes_of(a) < bytes_of(b); }
  bool step_in_turn(const StopRule& rule);
  bool step_highest(const StopRule& rule);
  bool turn(std::size_t component, std::uint64_t bytes, const StopRule& rule);

  const Problem& problem_;
  std::uint32_t arena_;
  const PackOptions& options_;
  unsigned turns_;  // that each component has
  NormalForm form_;
  std::optional<std::uint64_t> capacity_;  // to be reached, not undercut
  std::vector<std::unique_ptr<ComponentPacker>> packers_;
  std::optional<std::size_t> highest_pin_;  // a buffer
  // Components that have turns left: a heap, the highest first, or in turn.
  std::vector<std::size_t> waiting_;
  std::size_t next_ = 0;     // of those in turn
  std::uint64_t level_ = 0;  // below this it is no use to go
  bool refused_ = false;
};

}  // namespace loadline
