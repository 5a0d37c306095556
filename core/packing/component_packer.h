// The ladder for one component: greedy orders, the squeaky wheel, exact floor filling, windows.
#pragma once

#include "core/packing/bounds.h"
#include "core/packing/greedy.h"
#include "core/packing/section_model.h"
#include "core/packing/stop_rule.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline {

// All in units of the model, which outlives the packer.
class ComponentPacker {
 public:
  ComponentPacker(const SectionModel& model, unsigned threads, std::uint64_t seed);

  // The best of the greedy orders: always some packing.
  void begin(const StopRule& rule);
  // Looks for a packing of at most `capacity`. False: there is none (proved: lower() says so), or not in
  // the time or the effort given. `effort` counts attempts of exact search; 0 for no end but time.
  bool reach(std::uint64_t capacity, std::uint64_t effort, const StopRule& rule);
  // Lowers the height until it is proved, or time or the effort is over.
  void minimize(std::uint64_t effort, const StopRule& rule);

  std::uint64_t height() const { return height_; }
  std::uint64_t lower() const { return lower_; }
  std::uint32_t bound_section() const { return bound_section_; }
  const std::vector<std::uint64_t>& offsets() const { return offsets_; }
  const std::string& algorithm() const { return algorithm_; }
  std::uint64_t nodes() const { return nodes_; }

 private:
  void keep(std::vector<std::uint64_t> offsets, std::string algorithm);
  bool exact_fits(std::uint64_t capacity) const;
  bool probe(std::uint64_t capacity, std::uint64_t attempts, const StopRule& rule);
  void squeak(std::uint64_t target, std::uint64_t rounds, const StopRule& rule);
  void descend(std::uint64_t attempts, const StopRule& rule);

  const SectionModel& model_;
  unsigned threads_;
  std::uint64_t seed_;
  std::uint64_t height_ = UINT64_MAX;
  std::uint64_t lower_ = 0;
  std::uint32_t bound_section_ = 0;
  std::vector<std::uint64_t> offsets_;
  std::string algorithm_;
  std::uint64_t nodes_ = 0;
};

}  // namespace loadline
