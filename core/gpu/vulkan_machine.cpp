// alloc, copy and free on Vulkan. Every copy takes one of three ways: on the device, to the device through
// the bounce ring, or by the host into memory that it can access.
#include "core/gpu/vulkan_machine.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/gpu/memory_need.h"
#include "core/io/process_memory.h"
#include "core/plan/allocator_books.h"
#include "core/plan/cast_range.h"

#include <algorithm>
#include <cstring>

#include <unistd.h>

namespace loadline::gpu {
namespace {

constexpr std::uint64_t kBounceBytes = kBounceSlots * kBounceSlotBytes;
constexpr std::uint64_t kLeastFlush = 64ull << 10;
constexpr std::uint64_t kMostFlush = 16ull << 20;

bool on_device(Space space) { return space == Space::device; }
bool device_sees(Space space) { return space == Space::device || space == Space::staging; }

std::uint64_t page_size() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

// Whether the plan reads files straight to the device. Only then is mapping device memory worth it, because
// mapped device memory may be slower for everything else.
bool reads_to_device(const Plan& plan) {
  return std::ranges::any_of(plan.steps, [&](const Step& step) {
    return step.verb == Verb::copy && on_device(plan.block(step.block).space) &&
           std::holds_alternative<StorageId>(step.from);
  });
}

MemoryUse device_use(const Device& device, const Plan& plan) {
  return reads_to_device(plan) && can_map_device_memory(device) ? MemoryUse::direct : MemoryUse::device;
}

bool needs_bounce(const Plan& plan, MemoryUse device_memory) {
  if (device_memory == MemoryUse::direct) return false;
  return std::ranges::any_of(plan.steps, [&](const Step& step) {
    if (step.verb != Verb::copy || !on_device(plan.block(step.block).space)) return false;
    const auto* const from = std::get_if<BlockId>(&step.from);
    return from == nullptr || step.cast || !device_sees(plan.block(*from).space);
  });
}

std::uint32_t heap_of(const Device& device, MemoryUse use) {
  const VkPhysicalDeviceMemoryProperties& memory = device.memory();
  return memory.memoryTypes[choose_memory_type(memory, buffer_memory_types(device, use), use)].heapIndex;
}

// `device_memory` is the use of the device's blocks.
MemorySupply supply_of(const Device& device, MemoryUse device_memory) {
  const std::uint32_t device_heap = heap_of(device, device_memory);
  const std::uint32_t staging_heap = heap_of(device, MemoryUse::upload);
  const auto room = [&](std::uint32_t heap) {
    if (!device.info().memory_budget) return device.info().heaps[heap].bytes;
    const HeapUse use = heap_use(device.physical())[heap];
    return use.budget > use.used ? use.budget - use.used : 0;
  };
  return {.device = room(device_heap),
          .staging = room(staging_heap),
          .same_heap = device_heap == staging_heap,
          .system = available_system_memory(),
          .device_is_system = device.info().type == DeviceType::cpu};
}

// Called before the first member that allocates memory is constructed.
PerSpace<std::uint64_t> fitting_peaks(const Device& device, const Plan& plan) {
  const PerSpace<std::uint64_t> peaks = padded_peaks(plan, pool_alignment(device));
  const MemoryUse device_memory = device_use(device, plan);
  const std::uint64_t bounce = needs_bounce(plan, device_memory) ? kBounceBytes : 0;
  require_fit(padded_needs(plan, pool_alignment(device), bounce), supply_of(device, device_memory),
              device.info().name);
  const std::uint64_t alignment = pool_alignment(device);
  for (const Block& block : plan.blocks)
    if (device_sees(block.space) && block.bytes > device.info().max_allocation / alignment * alignment)
      throw Error(ErrorCode::no_fit,
                  "a block of {} bytes is needed in one piece, {} allows {} in one allocation", block.bytes,
                  device.info().name, device.info().max_allocation);
  return peaks;
}

// A quarter of the ring: while one quarter is read from disk, the others are in transfer.
std::uint64_t flush_bytes(std::uint64_t staging_peak) {
  return std::clamp((staging_peak == 0 ? kBounceBytes : staging_peak) / 4, kLeastFlush, kMostFlush);
}

}  // namespace

VulkanMachine::VulkanMachine(const Device& device, const StorageReader& reader, const Plan& plan)
    : VulkanMachine(device, reader, plan.blocks.size(), device_use(device, plan),
                    fitting_peaks(device, plan)) {}

VulkanMachine::VulkanMachine(const Device& device, const StorageReader& reader, std::size_t blocks,
                             MemoryUse device_memory, const PerSpace<std::uint64_t>& peaks)
    : device_(device),
      reader_(reader),
      host_(reader),
      device_memory_(device, device_memory, peaks[index(Space::device)]),
      staging_memory_(device, MemoryUse::upload, peaks[index(Space::staging)]),
      bounce_memory_(device, MemoryUse::upload, kBounceBytes),
      readback_memory_(device, MemoryUse::readback, kBounceBytes),
      transfers_(device, flush_bytes(peaks[index(Space::staging)])),
      upload_bounce_(bounce_memory_, transfers_),
      readback_(readback_memory_, transfers_),
      blocks_(blocks),
      device_heap_(heap_of(device, device_memory)) {
  if (device.info().memory_budget) {
    budget_start_ = heap_use(device.physical())[device_heap_].used;
    budget_peak_ = 0;
  }
}

MemoryPool* VulkanMachine::pool_of(Space space) {
  if (on_device(space)) return &device_memory_;
  return space == Space::staging ? &staging_memory_ : nullptr;
}

void VulkanMachine::alloc(BlockId id, const Block& block) {
  BlockState& made = state(id);
  made = {};
  made.space = block.space;
  made.bytes = block.bytes;
  if (MemoryPool* const pool = pool_of(block.space)) {
    made.memory = pool->allocate(block.bytes);
  } else {
    if (block.space == Space::page_cache) made.storage = block.storage;
    host_.alloc(id, block);
    reserved_[index(block.space)] += align_up(block.bytes, page_size());
  }
  live_[index(block.space)] += made.memory.range.bytes;
  note_reserved();
}

std::optional<PerSpace<std::uint64_t>> VulkanMachine::live_bytes() const {
  PerSpace<std::uint64_t> live = *host_.live_bytes();
  for (const Space space : {Space::device, Space::staging}) live[index(space)] += live_[index(space)];
  return live;
}

void VulkanMachine::free(BlockId id, const Block& block) {
  BlockState& gone = state(id);
  wait_for(gone, gone.last_use);
  live_[index(block.space)] -= gone.memory.range.bytes;
  if (MemoryPool* const pool = pool_of(block.space)) {
    pool->free(gone.memory);
  } else {
    host_.free(id, block);
    reserved_[index(block.space)] -= align_up(block.bytes, page_size());
  }
  gone = {};
}

void VulkanMachine::copy(const Step& step, const Block& to) {
  if (step.bytes == 0) return;
  BlockState& target = state(step.block);
  if (to.space == Space::page_cache) return host_.copy(step, to);
  if (const auto* const from = std::get_if<BlockId>(&step.from))
    if (!step.cast && device_sees(state(*from).space) && device_sees(to.space))
      return copy_on_device(step, state(*from), target);
  if (on_device(to.space)) return copy_to_device(step, target);
  copy_to_host(step, target);
}

void VulkanMachine::copy_on_device(const Step& step, BlockState& from, BlockState& to) {
  const std::uint64_t value = transfers_.copy(from.memory.range.part(step.from_offset, step.bytes),
                                              to.memory.range.part(step.offset, step.bytes));
  from.last_use = to.last_use = value;
  if (from.space == Space::staging)
    from.uses.add(step.from_offset, step.from_offset + step.bytes, value, false);
  if (to.space == Space::staging) to.uses.add(step.offset, step.offset + step.bytes, value, true);
}

void VulkanMachine::copy_to_device(const Step& step, BlockState& to) {
  const auto fill = [&](std::uint64_t at, std::span<std::byte> out) {
    fill_from(step, at, out,
              [&](std::uint64_t offset, std::span<std::byte> piece) { fetch(step.from, offset, piece); });
  };
  if (!to.memory.mapped.empty()) {
    // wait for the device's pending uses of the block; its later copies see the new content
    wait_for(to, to.last_use);
    return fill(0, to.memory.mapped.subspan(static_cast<std::size_t>(step.offset),
                                            static_cast<std::size_t>(step.written())));
  }
  to.last_use = upload_bounce_.copy(fill, to.memory.range.part(step.offset, step.written()));
  note_reserved();
}

void VulkanMachine::copy_to_host(const Step& step, BlockState& to) {
  const std::uint64_t written = step.written();
  if (to.space == Space::staging) wait_for(to, to.uses.before_write(step.offset, step.offset + written));
  fill_from(step, 0, host_bytes(step.block, step.offset, written),
            [&](std::uint64_t offset, std::span<std::byte> piece) { fetch(step.from, offset, piece); });
}

// Bytes of a mapping are read from its file: the pages are the same, and a truncated file gives an Error
// instead of SIGBUS.
void VulkanMachine::fetch(const CopySource& from, std::uint64_t offset, std::span<std::byte> out) {
  if (const auto* const storage = std::get_if<StorageId>(&from)) return reader_.read(*storage, offset, out);
  const BlockId id = std::get<BlockId>(from);
  BlockState& block = state(id);
  if (block.space == Space::page_cache) return reader_.read(*block.storage, offset, out);
  if (on_device(block.space)) {
    readback_.read(block.memory.range.part(offset, out.size()),
                   [&](std::uint64_t at, std::span<const std::byte> bytes) {
                     std::memcpy(out.data() + at, bytes.data(), bytes.size());
                   });
    return note_reserved();
  }
  if (block.space == Space::staging) wait_for(block, block.uses.before_read(offset, offset + out.size()));
  std::memcpy(out.data(), host_bytes(id, offset, out.size()).data(), out.size());
}

std::span<std::byte> VulkanMachine::host_bytes(BlockId id, std::uint64_t offset, std::uint64_t bytes) {
  const BlockState& block = state(id);
  if (block.space == Space::staging)
    return block.memory.mapped.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
  return host_.bytes(id).subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
}

void VulkanMachine::wait_for(BlockState& block, std::uint64_t value) {
  transfers_.wait(value);
  block.uses.complete(value);
}

void VulkanMachine::read_back(BlockId id, const Readback::Take& take) {
  readback_.read(state(id).memory.range, take);
}

void VulkanMachine::read_back(BlockId id, std::uint64_t offset, std::uint64_t bytes,
                              const Readback::Take& take) {
  readback_.read(state(id).memory.range.part(offset, bytes), take);
}

void VulkanMachine::note_reserved() {
  reserved_[index(Space::staging)] =
      staging_memory_.reserved() + bounce_memory_.reserved() + readback_memory_.reserved();
  const std::uint64_t device_before = reserved_[index(Space::device)];
  reserved_[index(Space::device)] = device_memory_.reserved();
  for (std::size_t space = 0; space < kSpaceCount; ++space)
    reserved_peak_[space] = std::max(reserved_peak_[space], reserved_[space]);
  if (!budget_peak_ || reserved_[index(Space::device)] == device_before) return;
  const std::uint64_t used = heap_use(device_.physical())[device_heap_].used;
  if (used > budget_start_) budget_peak_ = std::max(*budget_peak_, used - budget_start_);
}

}  // namespace loadline::gpu
