// Slots used in turn, each busy until its timeline value is complete.
#include "core/gpu/staging_ring.h"

#include "core/base/checked_arithmetic.h"

#include <algorithm>
#include <cassert>

namespace loadline::gpu {

StagingRing::StagingRing(std::uint32_t slots, std::uint64_t slot_bytes)
    : slot_bytes_(slot_bytes), busy_until_(slots, 0) {
  assert(slots > 0 && slot_bytes > 0);
}

void StagingRing::begin([[maybe_unused]] std::uint64_t completed) {
  assert(!filling_ && "one slot is filled at a time");
  assert(busy_until_[next_] <= completed && "the slot is still in flight");
  filling_ = true;
  used_ = 0;
}

std::uint64_t StagingRing::room() const {
  assert(filling_);
  return slot_bytes_ - used_;
}

StagingRing::Piece StagingRing::take(std::uint64_t most, [[maybe_unused]] std::uint64_t alignment) {
  assert(most > 0 && room() > 0 && slot_bytes_ % alignment == 0);
  const Piece piece = {next_, next_ * slot_bytes_ + used_, std::min(most, room())};
  used_ = std::min(align_up(used_ + piece.bytes, alignment), slot_bytes_);
  return piece;
}

void StagingRing::submit(std::uint64_t value) {
  assert(filling_ && "only a slot being filled can be submitted");
  assert(value >= last_value_ && "timeline values never decrease");
  last_value_ = value;
  busy_until_[next_] = value;
  next_ = (next_ + 1) % slots();
  filling_ = false;
}

}  // namespace loadline::gpu
