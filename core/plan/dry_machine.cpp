// A serial reader and one asynchronous link.
#include "core/plan/dry_machine.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline {

AllocatorModel allocator_model(std::string_view name) {
  if (name == "exact") return AllocatorModel::exact;
  if (name == "torch") return AllocatorModel::torch;
  throw Error(ErrorCode::usage,
              fmt::format("no allocator '{}'; there are: exact, torch", safe_display(name, 40)));
}

void DryMachine::alloc(BlockId id, const Block& block) {
  if (blocks_.size() <= index(id)) blocks_.resize(index(id) + 1);
  blocks_[index(id)] = {block.space, reader_};
  if (allocator_ == AllocatorModel::exact) return;
  if (block.space == Space::device) {
    torch_blocks_.resize(blocks_.size());
    torch_blocks_[index(id)] = torch_.allocate(block.bytes);
    torch_peak_ = std::max(torch_peak_, torch_.allocated());
  } else {
    std::uint64_t& live = live_[index(block.space)];
    live += block.bytes;
    peak_[index(block.space)] = std::max(peak_[index(block.space)], live);
  }
}

void DryMachine::wait_for(BlockId id) { reader_ = std::max(reader_, blocks_[index(id)].busy_until); }

double DryMachine::rate(Space from, Space to) const {
  const bool from_device = from == Space::device, to_device = to == Space::device;
  if (from_device && to_device) return costs_.device_copy;
  return from_device || to_device ? costs_.pageable_link : costs_.memory_copy;
}

void DryMachine::copy(const Step& step, const Block& to) {
  const auto bytes = static_cast<double>(step.bytes);
  if (std::holds_alternative<StorageId>(step.from)) {
    wait_for(step.block);
    reader_ += bytes / costs_.disk_read + cast_seconds(step);
    if (to.space == Space::device) reader_ += bytes / costs_.pageable_link;
    return;
  }
  const BlockId from = std::get<BlockId>(step.from);
  const Space from_space = blocks_[index(from)].space;
  if (from_space == Space::staging && to.space == Space::device && !step.cast) {
    double& source_busy = blocks_[index(from)].busy_until;
    double& target_busy = blocks_[index(step.block)].busy_until;
    link_ = std::max({link_, reader_, source_busy, target_busy}) + bytes / costs_.link;
    source_busy = target_busy = link_;
    return;
  }
  wait_for(from);
  wait_for(step.block);
  reader_ += bytes / rate(from_space, to.space);
  if (from_space != Space::device || to.space != Space::device) reader_ += cast_seconds(step);
}

// The host writes what it casts once more; on the device that is part of the copy.
double DryMachine::cast_seconds(const Step& step) const {
  return step.cast ? static_cast<double>(step.written()) / costs_.memory_copy : 0;
}

void DryMachine::free(BlockId id, const Block& block) {
  wait_for(id);
  if (allocator_ == AllocatorModel::exact) return;
  if (block.space == Space::device)
    torch_.release(torch_blocks_[index(id)]);
  else
    live_[index(block.space)] -= block.bytes;
}

std::optional<PerSpace<std::uint64_t>> DryMachine::reserved_peak() const {
  if (allocator_ == AllocatorModel::exact) return std::nullopt;
  PerSpace<std::uint64_t> reserved = peak_;
  reserved[index(Space::device)] = torch_.reserved();  // it never gives back
  return reserved;
}

std::optional<std::uint64_t> DryMachine::allocated_peak() const {
  if (allocator_ == AllocatorModel::exact) return std::nullopt;
  return torch_peak_;
}

void DryMachine::drain() { reader_ = std::max(reader_, link_); }

}  // namespace loadline
