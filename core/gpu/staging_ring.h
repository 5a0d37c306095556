// The state machine of a ring of transfer slots: decides which slot may be filled now. Contains no Vulkan.
#pragma once

#include <cstdint>
#include <vector>

namespace loadline::gpu {

// A slot goes free -> filling -> in flight -> free. Slots take turns in one fixed order. The owner fills a
// slot with several pieces (take), records their copies, and submits the slot with the timeline value at
// which the last copy is complete. Values never decrease. Calls out of order are a caller's bug and asserted.
class StagingRing {
 public:
  StagingRing(std::uint32_t slots, std::uint64_t slot_bytes);

  struct Piece {
    std::uint32_t slot = 0;
    std::uint64_t offset = 0;  // from the start of the whole ring
    std::uint64_t bytes = 0;
  };

  std::uint32_t slots() const { return static_cast<std::uint32_t>(busy_until_.size()); }
  std::uint64_t slot_bytes() const { return slot_bytes_; }

  bool filling() const { return filling_; }
  // The timeline value that must be complete before the next slot may be begun; 0 if the slot was never used.
  std::uint64_t next_needs() const { return busy_until_[next_]; }
  // Opens the next slot in turn. `completed` is the timeline's current value.
  void begin(std::uint64_t completed);
  // Bytes left in the slot being filled.
  std::uint64_t room() const;
  // Hands out at most `most` (> 0) bytes of the slot being filled, which must have room. Pieces start on
  // multiples of `alignment`, a power of two that divides slot_bytes.
  Piece take(std::uint64_t most, std::uint64_t alignment);
  // Closes the slot being filled: it is in flight until `value` is complete.
  void submit(std::uint64_t value);

 private:
  std::uint64_t slot_bytes_;
  std::vector<std::uint64_t> busy_until_;  // per slot; 0 = never submitted
  std::uint32_t next_ = 0;                 // the slot being filled, or the one whose turn it is
  bool filling_ = false;
  std::uint64_t used_ = 0;  // bytes taken of the slot being filled
  std::uint64_t last_value_ = 0;
};

}  // namespace loadline::gpu
