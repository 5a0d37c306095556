// The projecting machine: a serial reader and one asynchronous link. Moves no bytes and keeps a modeled
// clock.
#pragma once

#include "core/plan/reserved_memory.h"
#include "core/plan/run.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace loadline::plan {

// Allocations take the reader's time too. Copies from staging to the device run on a link engine in parallel
// with the reader; all other work takes the reader's time. Access to a block waits for the copies in flight
// on it, as on a real machine. A read from a file straight to the device takes the longer of disk time and
// link time: the system reads ahead while the bytes are written through the device's mapped memory at the
// link's rate, or through a small ring if that memory cannot be mapped.
class DryMachine final : public Machine {
 public:
  // `expected`: pool_forecasts() of the plan, for the simulation of `allocator`.
  explicit DryMachine(CostModel costs = {},
                      allocators::AllocatorModel allocator = allocators::AllocatorModel::exact,
                      const PerSpace<allocators::PoolForecast>& expected = {})
      : costs_(costs) {
    if (allocators::reserves(allocator)) books_.emplace(allocator, expected);
  }

  void alloc(BlockId id, const Block& block) override;
  void copy(const Step& step, const Block& to) override;
  void free(BlockId id, const Block& block) override;
  double now() const override { return reader_; }
  void drain() override { reader_ = std::max(reader_, link_); }
  std::optional<PerSpace<std::uint64_t>> reserved_peak() const override {
    return books_ ? std::optional(books_->reserved_peak()) : std::nullopt;
  }
  std::optional<PerSpace<std::uint64_t>> reserved() const override {
    return books_ ? std::optional(books_->reserved()) : std::nullopt;
  }
  std::optional<std::uint64_t> allocated_peak() const override {
    return books_ ? books_->allocated_peak() : std::nullopt;
  }

 private:
  // When the copies in flight on a block end; 0 for a block that never had any.
  double busy_until(BlockId id) const {
    return graph::index(id) < busy_until_.size() ? busy_until_[graph::index(id)] : 0;
  }
  void set_busy(BlockId id, double until);
  void wait_for(BlockId id) { reader_ = std::max(reader_, busy_until(id)); }
  double rate(Space from, Space to) const;
  double pages_seconds(const Block& block);
  double cast_seconds(const Step& step) const;

  CostModel costs_;
  double reader_ = 0;          // the clock of the thread that runs the plan
  double link_ = 0;            // when the transfer engine is free again
  std::vector<Space> spaces_;  // by block
  PerSpace<std::uint64_t> live_ = {}, most_live_ = {};
  std::vector<double> busy_until_;       // by block, up to the last that was ever in flight
  std::optional<AllocatorBooks> books_;  // absent if the allocator reserves what is requested
};

// --- A step of a plan is a few instructions, and there are a million: the calls would cost more.

inline void DryMachine::alloc(BlockId id, const Block& block) {
  if (spaces_.size() <= graph::index(id)) spaces_.resize(std::max(graph::index(id) + 1, 2 * spaces_.size()));
  spaces_[graph::index(id)] = block.space;
  reader_ += pages_seconds(block);
  if (books_) books_->alloc(id, block);
}

inline void DryMachine::set_busy(BlockId id, double until) {
  constexpr std::size_t kTogether = 4096;
  if (busy_until_.size() <= graph::index(id)) busy_until_.resize(graph::index(id) + kTogether);
  busy_until_[graph::index(id)] = until;
}

inline double DryMachine::rate(Space from, Space to) const {
  const bool from_device = from == Space::device, to_device = to == Space::device;
  if (from_device && to_device) return costs_.device_copy;
  return from_device || to_device ? costs_.pageable_link : costs_.memory_copy;
}

// Values of a forward pass use the same memory again, on the host too.
inline double DryMachine::pages_seconds(const Block& block) {
  std::uint64_t& live = live_[index(block.space)];
  std::uint64_t& most = most_live_[index(block.space)];
  live += block.bytes;
  const std::uint64_t more = live > most ? live - most : 0;
  most = std::max(most, live);
  switch (block.space) {
    case Space::host:
      return static_cast<double>(block.storage ? block.bytes : more) / costs_.host_pages;
    case Space::staging:
      return static_cast<double>(more) / costs_.staging_pages;
    case Space::device:
      return static_cast<double>(more) / costs_.device_pages;
    case Space::page_cache:
      break;  // its pages come with the bytes that are read
  }
  return 0;
}

inline void DryMachine::copy(const Step& step, const Block& to) {
  const auto bytes = static_cast<double>(step.bytes);
  if (std::holds_alternative<graph::StorageId>(step.from)) {
    wait_for(step.block);
    double seconds = bytes / costs_.disk_read;
    if (to.space == Space::device) seconds = std::max(seconds, bytes / costs_.link);
    reader_ += seconds + cast_seconds(step);
    return;
  }
  const BlockId from = std::get<BlockId>(step.from);
  const Space from_space = spaces_[graph::index(from)];
  if (from_space == Space::staging && to.space == Space::device && !step.cast) {
    link_ = std::max({link_, reader_, busy_until(from), busy_until(step.block)}) + bytes / costs_.link;
    set_busy(from, link_);
    return set_busy(step.block, link_);
  }
  wait_for(from);
  wait_for(step.block);
  reader_ += bytes / rate(from_space, to.space);
  if (from_space != Space::device || to.space != Space::device) reader_ += cast_seconds(step);
}

// A cast on the host writes its result once more; on the device it is part of the copy.
inline double DryMachine::cast_seconds(const Step& step) const {
  return step.cast ? static_cast<double>(step.written()) / costs_.memory_copy : 0;
}

inline void DryMachine::free(BlockId id, const Block& block) {
  wait_for(id);
  live_[index(block.space)] -= block.bytes;
  if (books_) books_->free(id, block);
}

}  // namespace loadline::plan
