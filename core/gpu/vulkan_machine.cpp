// alloc, copy and free on Vulkan. Every copy takes one of three ways: on the device, to the device through
// the bounce ring, or by the host into memory that it can access.
#include "core/gpu/vulkan_machine.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/gpu/memory_need.h"
#include "core/io/striped_reader.h"
#include "core/io/system_memory.h"
#include "core/plan/block_contents.h"
#include "core/plan/reserved_memory.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include <unistd.h>

namespace loadline::gpu {
namespace {

constexpr std::uint64_t kBounceBytes = kBounceSlots * kBounceSlotBytes;
constexpr std::uint64_t kLeastFlush = 64ull << 10;
// What is read and then copied in one piece. Small, so that the copy finds the bytes in a cache, and the
// first copy begins early; large enough for the cost of a submission.
constexpr std::uint64_t kPieceBytes = io::StripedReader::kStripeBytes;

bool on_device(plan::Space space) { return space == plan::Space::device; }

std::uint64_t page_size() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

// Whether the plan reads files straight to the device. Only then is mapping device memory worth it, because
// mapped device memory may be slower for everything else.
bool reads_to_device(const plan::Plan& plan) {
  return std::ranges::any_of(plan.steps, [&](const plan::Step& step) {
    return step.verb == plan::Verb::copy && on_device(plan.block(step.block).space) &&
           std::holds_alternative<graph::StorageId>(step.from);
  });
}

MemoryUse device_use(const Device& device, const plan::Plan& plan) {
  // packing scatters numbers, which a host should not do over a bus
  const bool host_packs = device.info().type == DeviceType::cpu || !device.shaders();
  return reads_to_device(plan) && can_map_device_memory(device) && host_packs ? MemoryUse::direct
                                                                              : MemoryUse::device;
}

// Whether a shader can read the step's bytes where they are.
bool on_a_word(const plan::Step& step) { return step.from_offset % 4 == 0; }

// The first step whose bytes go through the machine's own ring; the number of steps if none does.
std::size_t first_bounce(const plan::Plan& plan, MemoryUse device_memory) {
  if (device_memory == MemoryUse::direct) return plan.steps.size();
  const auto first = std::ranges::find_if(plan.steps, [&](const plan::Step& step) {
    if (step.verb != plan::Verb::copy || !on_device(plan.block(step.block).space)) return false;
    const auto* const from = std::get_if<plan::BlockId>(&step.from);
    return from == nullptr || step.cast || !device_sees(plan.block(*from).space) ||
           (plan.block(step.block).prepack() && !on_a_word(step));
  });
  return static_cast<std::size_t>(first - plan.steps.begin());
}

bool needs_bounce(const plan::Plan& plan, MemoryUse device_memory) {
  return first_bounce(plan, device_memory) < plan.steps.size();
}

std::uint32_t heap_of(const Device& device, MemoryUse use) {
  const VkPhysicalDeviceMemoryProperties& memory = device.memory();
  return memory.memoryTypes[choose_memory_type(memory, buffer_memory_types(device, use), use)].heapIndex;
}

// `device_memory` is the use of the device's blocks.
MemorySupply supply_of(const Device& device, MemoryUse device_memory) {
  const std::uint32_t device_heap = heap_of(device, device_memory);
  const std::uint32_t staging_heap = heap_of(device, MemoryUse::staging);
  const auto room = [&](std::uint32_t heap) {
    if (!device.info().memory_budget) return device.info().heaps[heap].bytes;
    const HeapUse use = heap_use(device.physical())[heap];
    return use.budget > use.used ? use.budget - use.used : 0;
  };
  return {.device = room(device_heap),
          .staging = room(staging_heap),
          .same_heap = device_heap == staging_heap,
          .system = io::available_system_memory(),
          .shares_system = device.info().unified,
          .is_system = device.info().type == DeviceType::cpu,
          .set_aside = device.info().set_aside};
}

// A driver may allow more in one piece than it promises: it is asked now, and what it gives goes back. Throws
// Error{no_fit}.
void require_one_piece(const Device& device, const plan::Block& block, const graph::MetaGraph& graph,
                       MemoryUse use) {
  try {
    MemoryPool(device, use, {}).allocate(block.bytes);
  } catch (const Error& error) {
    refuse_piece(block, graph, device.info(), promised_piece(device.info(), pool_alignment(device)),
                 error.what());
  }
}

// Called before the first member that allocates memory is constructed.
plan::PerSpace<allocators::PoolForecast> fitting_forecasts(const Device& device,
                                                           const graph::MetaGraph& graph,
                                                           const plan::Plan& plan) {
  plan::PerSpace<allocators::PoolForecast> forecasts = plan::pool_forecasts(plan, pool_alignment(device));
  const MemoryUse device_memory = device_use(device, plan);
  const std::uint64_t bounce = needs_bounce(plan, device_memory) ? kBounceBytes : 0;
  require_fit(padded_needs(plan, pool_alignment(device), bounce), supply_of(device, device_memory),
              device.info().name);
  require_pieces(plan, graph, device.info(), pool_alignment(device));
  for (const plan::Space space : {plan::Space::device, plan::Space::staging})
    if (const auto large = largest_unpromised(plan, space, device.info(), pool_alignment(device)))
      require_one_piece(device, plan.block(*large), graph,
                        space == plan::Space::staging ? MemoryUse::staging : device_memory);
  require_allocations(plan, device.info(), pool_alignment(device));
  return forecasts;
}

// Whether the step puts bytes of a file unchanged where they go.
bool reads_plainly(const plan::Step& step) {
  return !step.cast && std::holds_alternative<graph::StorageId>(step.from);
}

// Reading into mapped device memory leaves a core free that staged copies on a software device need. One
// thread alone leaves the disk idle while it copies.
unsigned threads_for(unsigned asked, MemoryUse device_memory) {
  constexpr unsigned kLeast = 2, kMost = 8;
  if (asked > 0) return asked;
  const auto all = static_cast<unsigned>(cores());
  return std::clamp(device_memory == MemoryUse::direct ? all : all - 1, kLeast, kMost);
}

// Staging blocks into which the plan copies one storage whole, and nothing else.
std::vector<bool> staged_files(const plan::Plan& plan) {
  std::vector<std::uint32_t> copies(plan.blocks.size(), 0);
  std::vector<bool> staged(plan.blocks.size(), false);
  for (const plan::Step& step : plan.steps) {
    if (step.verb != plan::Verb::copy) continue;
    const plan::Block& to = plan.block(step.block);
    const auto* const file = std::get_if<graph::StorageId>(&step.from);
    ++copies[graph::index(step.block)];
    staged[graph::index(step.block)] = to.space == plan::Space::staging && to.storage && file != nullptr &&
                                       *file == *to.storage && !step.cast && step.offset == 0 &&
                                       step.from_offset == 0 && step.bytes == to.bytes;
  }
  for (std::size_t i = 0; i < staged.size(); ++i) staged[i] = staged[i] && copies[i] == 1;
  return staged;
}

// Those of them that the device can import; empty if it cannot, which is tried.
std::vector<bool> importable_blocks(const Device& device, const io::StorageReader& reader,
                                    const plan::Plan& plan, const MachineOptions& options) {
  if (!options.import_pages || device.import_alignment() == 0) return {};
  std::vector<bool> blocks = staged_files(plan);
  const auto first = std::ranges::find(blocks, true);
  if (first == blocks.end()) return {};
  const graph::StorageId storage = *plan.blocks[static_cast<std::size_t>(first - blocks.begin())].storage;
  const graph::Storage& stored = reader.graph().storage(storage);
  const bool can = stored.encoding == graph::Encoding::plain &&
                   can_import_pages(device, reader.file_of(storage), stored.offset, stored.bytes);
  return can ? blocks : std::vector<bool>();
}

// At most a quarter of the ring: while one quarter is read from disk, the others are in transfer.
std::uint64_t flush_bytes(std::uint64_t staging_peak) {
  return std::clamp((staging_peak == 0 ? kBounceBytes : staging_peak) / 4, kLeastFlush, kPieceBytes);
}

}  // namespace

std::uint64_t bounce_bytes(const Device& device, const plan::Plan& plan) {
  return needs_bounce(plan, device_use(device, plan)) ? kBounceBytes : 0;
}

plan::Plan with_bounce(const Device& device, plan::Plan plan) {
  const std::size_t first = first_bounce(plan, device_use(device, plan));
  if (first == plan.steps.size()) return plan;
  const plan::BlockId ring{static_cast<std::uint32_t>(plan.blocks.size())};
  plan.blocks.push_back({.bytes = kBounceBytes,
                         .space = plan::Space::host,
                         .use = plan::BlockUse::ring_slot,
                         .storage = {},
                         .extra = "the uploader's own ring"});
  plan.steps.insert(plan.steps.begin() + static_cast<std::ptrdiff_t>(first),
                    {.verb = plan::Verb::alloc, .block = ring});
  return plan;
}

unsigned spaces_in_device_heap(const Device& device, const plan::Plan& plan) {
  const bool one_heap = heap_of(device, device_use(device, plan)) == heap_of(device, MemoryUse::staging);
  return plan::space_bit(plan::Space::device) | (one_heap ? plan::space_bit(plan::Space::staging) : 0u);
}

VulkanMachine::VulkanMachine(const Device& device, const io::StorageReader& reader, const plan::Plan& plan,
                             const MachineOptions& options)
    : VulkanMachine(device, reader, plan.blocks.size(), device_use(device, plan),
                    fitting_forecasts(device, reader.graph(), plan),
                    importable_blocks(device, reader, plan, options), options) {}

VulkanMachine::VulkanMachine(const Device& device, const io::StorageReader& reader, std::size_t blocks,
                             MemoryUse device_memory,
                             const plan::PerSpace<allocators::PoolForecast>& expected,
                             std::vector<bool> importable, const MachineOptions& options)
    : device_(device),
      reader_(reader),
      host_(reader),
      device_memory_(device, device_memory, expected[plan::index(plan::Space::device)], options.take_at_once),
      staging_memory_(device, MemoryUse::staging, expected[plan::index(plan::Space::staging)],
                      options.take_at_once),
      bounce_memory_(device, MemoryUse::staging, {kBounceBytes, {}}),
      readback_memory_(device, MemoryUse::staging, {kBounceBytes, {}}),
      past_cache_(options.reads.reading != io::FileReading::cached),
      reads_(reader, threads_for(options.reads.threads, device_memory), options.reads.reading),
      shader_(device.shaders() ? std::optional<PrepackShader>(std::in_place, device) : std::nullopt),
      transfers_(device, flush_bytes(expected[plan::index(plan::Space::staging)].peak), &reads_),
      upload_bounce_(bounce_memory_, transfers_),
      readback_(readback_memory_, transfers_),
      blocks_(blocks),
      importable_(std::move(importable)),
      device_heap_(heap_of(device, device_memory)) {
  if (device.info().memory_budget) {
    budget_start_ = heap_use(device.physical())[device_heap_].used;
    budget_peak_ = 0;
  }
}

MemoryPool* VulkanMachine::pool_of(plan::Space space) {
  if (on_device(space)) return &device_memory_;
  return space == plan::Space::staging ? &staging_memory_ : nullptr;
}

void VulkanMachine::alloc(plan::BlockId id, const plan::Block& block) {
  BlockState& made = state(id);
  made = {};
  made.space = block.space;
  made.bytes = block.bytes;
  if (!importable_.empty() && importable_[graph::index(id)]) {
    made.imports = true;
    made.storage = block.storage;
    made.memory.range.bytes = block.bytes;
  } else if (MemoryPool* const pool = pool_of(block.space)) {
    made.memory = pool->allocate(block.bytes);
  } else {
    if (block.space == plan::Space::page_cache) made.storage = block.storage;
    host_.alloc(id, block);
    reserved_[plan::index(block.space)] += align_up(block.bytes, page_size());
  }
  live_[plan::index(block.space)] += made.memory.range.bytes;
  note_reserved();
}

std::optional<plan::PerSpace<std::uint64_t>> VulkanMachine::live_bytes() const {
  plan::PerSpace<std::uint64_t> live = *host_.live_bytes();
  for (const plan::Space space : {plan::Space::device, plan::Space::staging})
    live[plan::index(space)] += live_[plan::index(space)];
  return live;
}

void VulkanMachine::free(plan::BlockId id, const plan::Block& block) {
  BlockState& gone = state(id);
  wait_for_fills(gone, gone.fills.before_write(0, gone.bytes));
  wait_for(gone, gone.last_use);
  live_[plan::index(block.space)] -= gone.memory.range.bytes;
  if (gone.imports) {
    imported_.erase(id);
  } else if (MemoryPool* const pool = pool_of(block.space)) {
    pool->free(gone.memory);
  } else {
    host_.free(id, block);
    reserved_[plan::index(block.space)] -= align_up(block.bytes, page_size());
  }
  gone = {};
}

void VulkanMachine::copy(const plan::Step& step, const plan::Block& to) {
  if (step.bytes == 0) return;
  BlockState& target = state(step.block);
  if (to.space == plan::Space::page_cache) return host_.copy(step, to);
  if (to.prepack()) return pack(step, *to.prepack(), target);
  if (target.imports && import_pages(step.block, target)) return;
  if (const auto* const from = std::get_if<plan::BlockId>(&step.from))
    if (!step.cast && device_sees(state(*from).space) && device_sees(to.space))
      return copy_on_device(step, state(*from), target);
  if (on_device(to.space)) return copy_to_device(step, target);
  copy_to_host(step, target);
}

bool VulkanMachine::import_pages(plan::BlockId id, BlockState& to) {
  const graph::Storage& storage = reader_.graph().storage(*to.storage);
  std::unique_ptr<ImportedPages> pages;
  if (storage.encoding == graph::Encoding::plain)
    pages = ImportedPages::make(device_, reader_.file_of(*to.storage), storage.offset, to.bytes);
  if (!pages) {
    importable_.clear();  // a driver that refuses a file's pages refuses the next ones too
    to.imports = false;
    to.memory = staging_memory_.allocate(to.bytes);
    note_reserved();
    return false;
  }
  to.memory.range = pages->range();
  imported_bytes_ += to.bytes;
  imported_[id] = std::move(pages);
  note_reserved();
  return true;
}

std::uint64_t VulkanMachine::pack_from(const convert::Prepack& how, std::uint64_t at, const BufferRange& from,
                                       const BlockState& to, io::StripedReader::Ticket needs) {
  const graph::DTypeInfo& stored = graph::dtype_info(how.from);
  const std::uint64_t first = at / stored.block_bytes * stored.block_elements;
  const std::uint64_t count = from.bytes / stored.block_bytes * stored.block_elements;
  // pieces of a weight write numbers of their own, wherever in the block these are: as ranges they stand side
  // by side, so that no piece waits for another
  const std::uint64_t wide = graph::dtype_info(how.to).block_bytes;
  return transfers_.run(
      from, to.memory.range.part(first * wide, count * wide),
      [&](VkCommandBuffer commands) {
        shader_->record(commands, {.how = how,
                                   .first = first,
                                   .bytes = from.bytes,
                                   .source = from.address,
                                   .target = to.memory.range.address});
      },
      needs);
}

void VulkanMachine::pack(const plan::Step& step, const convert::Prepack& how, BlockState& to) {
  const auto from_host = [&](std::uint64_t at, std::span<std::byte> out) { fetch(step.from, at, out); };
  if (!to.memory.mapped.empty()) {
    wait_for(to, to.last_use);
    return plan::fill_prepacked(step, how, to.memory.mapped, from_host);
  }
  const std::uint64_t unit = graph::dtype_info(how.from).block_bytes;
  const auto* const id = std::get_if<plan::BlockId>(&step.from);
  if (id == nullptr || !device_sees(state(*id).space) || !on_a_word(step)) {
    to.last_use = upload_bounce_.send(
        [&](std::uint64_t at, std::span<std::byte> out) { from_host(step.from_offset + at, out); },
        step.bytes, unit,
        [&](std::uint64_t at, const BufferRange& slot) {
          return pack_from(how, step.offset + at, slot, to);
        });
    return note_reserved();
  }
  BlockState& from = state(*id);
  const std::uint64_t most = kPieceBytes / std::lcm(unit, 4) * std::lcm(unit, 4);
  std::uint64_t value = 0;
  for (std::uint64_t at = 0; at < step.bytes; at += most) {
    const std::uint64_t bytes = std::min(most, step.bytes - at), begin = step.from_offset + at;
    value = pack_from(how, step.offset + at, from.memory.range.part(begin, bytes), to,
                      from.fills.before_read(begin, begin + bytes));
  }
  from.last_use = to.last_use = value;
  if (from.space == plan::Space::staging)
    from.uses.add(step.from_offset, step.from_offset + step.bytes, value, false);
}

void VulkanMachine::copy_on_device(const plan::Step& step, BlockState& from, BlockState& to) {
  wait_for_fills(to, to.fills.before_write(step.offset, step.offset + step.bytes));
  // what is on the device already needs no pieces: each would cost more than its copy
  const bool there = on_device(from.space) && from.fills.empty();
  const std::uint64_t most = there ? step.bytes : kPieceBytes;
  std::uint64_t value = 0;
  for (std::uint64_t at = 0; at < step.bytes; at += most) {
    const std::uint64_t bytes = std::min(most, step.bytes - at), begin = step.from_offset + at;
    value =
        transfers_.copy(from.memory.range.part(begin, bytes), to.memory.range.part(step.offset + at, bytes),
                        from.fills.before_read(begin, begin + bytes));
  }
  from.last_use = to.last_use = value;
  if (from.space == plan::Space::staging)
    from.uses.add(step.from_offset, step.from_offset + step.bytes, value, false);
  if (to.space == plan::Space::staging) to.uses.add(step.offset, step.offset + step.bytes, value, true);
}

void VulkanMachine::copy_to_device(const plan::Step& step, BlockState& to) {
  const auto fill = [&](std::uint64_t at, std::span<std::byte> out) {
    plan::fill_from(step, at, out, [&](std::uint64_t offset, std::span<std::byte> piece) {
      fetch(step.from, offset, piece);
    });
  };
  if (!to.memory.mapped.empty()) {
    // wait for the device's pending uses of the block; its later copies see the new content
    wait_for(to, to.last_use);
    const std::span<std::byte> out = to.memory.mapped.subspan(static_cast<std::size_t>(step.offset),
                                                              static_cast<std::size_t>(step.written()));
    if (reads_plainly(step)) return read_into(step, to, out);
    wait_for_fills(to, to.fills.before_write(step.offset, step.offset + step.written()));
    return fill(0, out);
  }
  to.last_use = upload_bounce_.copy(fill, to.memory.range.part(step.offset, step.written()));
  note_reserved();
}

void VulkanMachine::copy_to_host(const plan::Step& step, BlockState& to) {
  const std::uint64_t written = step.written();
  if (to.space == plan::Space::staging) {
    wait_for(to, to.uses.before_write(step.offset, step.offset + written));
    if (reads_plainly(step)) return read_into(step, to, host_bytes(step.block, step.offset, written));
    wait_for_fills(to, to.fills.before_write(step.offset, step.offset + written));
  } else if (reads_plainly(step)) {
    return reads_.wait(reads_.start(std::get<graph::StorageId>(step.from), step.from_offset,
                                    host_bytes(step.block, step.offset, written)));
  }
  plan::fill_from(step, 0, host_bytes(step.block, step.offset, written),
                  [&](std::uint64_t offset, std::span<std::byte> piece) { fetch(step.from, offset, piece); });
}

void VulkanMachine::read_into(const plan::Step& step, BlockState& to, std::span<std::byte> out) {
  wait_for_fills(to, to.fills.before_write(step.offset, step.offset + out.size()));
  to.fills.complete(reads_.complete());
  for (std::uint64_t at = 0; at < out.size(); at += kPieceBytes) {
    const std::uint64_t bytes = std::min<std::uint64_t>(kPieceBytes, out.size() - at);
    const io::StripedReader::Ticket ticket =
        reads_.start(std::get<graph::StorageId>(step.from), step.from_offset + at,
                     out.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(bytes)));
    to.fills.add(step.offset + at, step.offset + at + bytes, ticket, true);
  }
}

void VulkanMachine::wait_for_fills(BlockState& block, io::StripedReader::Ticket ticket) {
  if (ticket == 0) return;
  reads_.wait(ticket);
  block.fills.complete(ticket);
}

void VulkanMachine::drain() {
  reads_.wait(reads_.newest());
  transfers_.drain();
}

// Bytes of a mapping are read from its file: the pages are the same, and a truncated file gives an Error
// instead of SIGBUS.
void VulkanMachine::fetch(const plan::CopySource& from, std::uint64_t offset, std::span<std::byte> out) {
  if (const auto* const storage = std::get_if<graph::StorageId>(&from))
    return past_cache_ ? reads_.wait(reads_.start(*storage, offset, out))
                       : reader_.read(*storage, offset, out);
  const plan::BlockId id = std::get<plan::BlockId>(from);
  BlockState& block = state(id);
  if (block.space == plan::Space::page_cache || block.imports)
    return reader_.read(*block.storage, offset, out);
  if (on_device(block.space)) {
    wait_for_fills(block, block.fills.before_read(offset, offset + out.size()));
    readback_.read(block.memory.range.part(offset, out.size()),
                   [&](std::uint64_t at, std::span<const std::byte> bytes) {
                     std::memcpy(out.data() + at, bytes.data(), bytes.size());
                   });
    return note_reserved();
  }
  if (block.space == plan::Space::staging) {
    wait_for(block, block.uses.before_read(offset, offset + out.size()));
    wait_for_fills(block, block.fills.before_read(offset, offset + out.size()));
  }
  std::memcpy(out.data(), host_bytes(id, offset, out.size()).data(), out.size());
}

std::span<std::byte> VulkanMachine::host_bytes(plan::BlockId id, std::uint64_t offset, std::uint64_t bytes) {
  const BlockState& block = state(id);
  if (block.space == plan::Space::staging)
    return block.memory.mapped.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
  return host_.bytes(id).subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
}

void VulkanMachine::wait_for(BlockState& block, std::uint64_t value) {
  transfers_.wait(value);
  block.uses.complete(value);
}

void VulkanMachine::read_back(plan::BlockId id, const Readback::Consume& take) {
  read_back(id, 0, state(id).memory.range.bytes, take);
}

void VulkanMachine::read_back(plan::BlockId id, std::uint64_t offset, std::uint64_t bytes,
                              const Readback::Consume& take) {
  BlockState& block = state(id);
  transfers_.wait(block.last_use);  // a packed block is written elsewhere than where its pieces are tracked
  wait_for_fills(block, block.fills.before_read(offset, offset + bytes));
  readback_.read(block.memory.range.part(offset, bytes), take);
}

void VulkanMachine::note_reserved() {
  reserved_[plan::index(plan::Space::staging)] =
      staging_memory_.reserved() + bounce_memory_.reserved() + readback_memory_.reserved();
  for (const auto& [id, pages] : imported_)
    reserved_[plan::index(plan::Space::staging)] += pages->whole_bytes();
  const std::uint64_t device_before = reserved_[plan::index(plan::Space::device)];
  reserved_[plan::index(plan::Space::device)] = device_memory_.reserved();
  for (std::size_t space = 0; space < plan::kSpaceCount; ++space)
    reserved_peak_[space] = std::max(reserved_peak_[space], reserved_[space]);
  if (budget_peak_ && reserved_[plan::index(plan::Space::device)] != device_before)
    budget_peak_ = std::max(*budget_peak_, *device_budget_growth());
}

// Queries of a physical device need no lock, and the members it reads are constant.
std::optional<std::uint64_t> VulkanMachine::device_budget_growth() const {
  if (!device_.info().memory_budget) return std::nullopt;
  const std::uint64_t used = heap_use(device_.physical())[device_heap_].used;
  return used - std::min(used, budget_start_);
}

}  // namespace loadline::gpu
