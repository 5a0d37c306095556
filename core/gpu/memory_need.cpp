// Compares the memory that a plan holds at once with the available memory.
#include "core/gpu/memory_need.h"

#include "core/allocators/block_pool.h"
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/system_memory.h"
#include "core/plan/plan.h"
#include "core/plan/reserved_memory.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

namespace loadline::gpu {
namespace {

void require(std::uint64_t need, std::uint64_t there, std::string_view what) {
  if (need <= there) return;
  throw Error(ErrorCode::no_fit, "does not fit: needs {} ({} bytes) of {}, {} ({} bytes) are available",
              format_bytes(need), need, what, format_bytes(there), there);
}

}  // namespace

load::MachineMemory machine_memory(std::span<const DeviceInfo> devices) {
  load::MachineMemory machine{.system = io::available_system_memory().value_or(0)};
  const std::optional<std::size_t> chosen = choose_device(devices).chosen;
  if (!chosen || devices[*chosen].type == DeviceType::cpu) return machine;
  const DeviceInfo& device = devices[*chosen];
  if (const DeviceHeap* const heap = device_heap(device))
    machine.device = {device.name, heap->budget.value_or(heap->bytes), device.unified};
  return machine;
}

MemoryNeeds padded_needs(const plan::Plan& plan, std::uint64_t alignment, std::uint64_t staging) {
  plan::PerSpace<std::uint64_t> live = {};
  MemoryNeeds needs = {};
  const auto note = [&] {
    for (unsigned mask = 0; mask < needs.size(); ++mask)
      needs[mask] = std::max(needs[mask], plan::sum_over(live, mask));
  };
  live[plan::index(plan::Space::staging)] = staging;
  note();
  for (const plan::Step& step : plan.steps) {
    if (step.verb == plan::Verb::copy) continue;
    const plan::Block& block = plan.block(step.block);
    const std::uint64_t bytes = align_up(block.bytes, alignment);
    if (step.verb == plan::Verb::alloc) {
      live[plan::index(block.space)] += bytes;
      note();
    } else {
      live[plan::index(block.space)] -= bytes;
    }
  }
  return needs;
}

MemoryNeeds needs_of(const plan::Timeline& timeline) {
  MemoryNeeds needs = {};
  for (unsigned mask = 1; mask < needs.size(); ++mask) needs[mask] = plan::peak_over(timeline, mask).bytes;
  return needs;
}

void require_fit(const MemoryNeeds& needs, const MemorySupply& supply, std::string_view device) {
  constexpr unsigned kDevice = plan::space_bit(plan::Space::device),
                     kStaging = plan::space_bit(plan::Space::staging),
                     kHost = plan::space_bit(plan::Space::host);
  if (supply.is_system) {
    if (supply.system)
      require(needs[kDevice | kStaging | kHost], *supply.system,
              fmt::format("system memory ({} has no other)", device));
    return;
  }
  if (supply.same_heap) {
    require(needs[kDevice | kStaging], supply.device,
            fmt::format("memory that {} shares with the host", device));
  } else {
    require(needs[kDevice], supply.device, fmt::format("device memory on {}", device));
    require(needs[kStaging], supply.staging, fmt::format("transfer memory for {}", device));
  }
  if (!supply.system) return;
  require(needs[kHost | kStaging], *supply.system, "system memory");
  if (supply.shares_system)
    require(needs[kDevice | kStaging | kHost], *supply.system + supply.set_aside,
            fmt::format("the memory that {} and the host have together", device));
}

namespace {

// What a block is for: "the tensor 'wte.weight'", or "a block" if it is for no storage.
std::string purpose(const plan::Block& block, const graph::MetaGraph& graph) {
  if (!block.storage) return "a block";
  const auto owner = graph::first_owner(graph)[graph::index(*block.storage)];
  return owner ? fmt::format("the tensor '{}'", safe_display(graph.tensor(*owner).name)) : "a block";
}

// The most allocations that the pools of the device and of staging have at once.
std::uint64_t allocations_at_once(const plan::Plan& plan, std::uint64_t alignment, std::uint64_t most) {
  std::uint64_t now = 0, needed = 0;
  const plan::PerSpace<allocators::PoolForecast> expected = plan::pool_forecasts(plan, alignment);
  const auto pool_of = [&](plan::Space space) {
    return allocators::BlockPool(
        {.alignment = alignment, .expected = expected[plan::index(space)], .most = most},
        [&](std::uint32_t, std::uint64_t wanted, std::uint64_t) {
          needed = std::max(needed, ++now);
          return allocators::PoolBlock{wanted, wanted};
        },
        [&](std::uint32_t) { --now; });
  };
  allocators::BlockPool device = pool_of(plan::Space::device), staging = pool_of(plan::Space::staging);
  std::vector<allocators::BlockPool::Range> ranges(plan.blocks.size());
  for (const plan::Step& step : plan.steps) {
    const plan::Block& block = plan.block(step.block);
    if (step.verb == plan::Verb::copy || !device_sees(block.space) || block.bytes == 0) continue;
    allocators::BlockPool& pool = block.space == plan::Space::staging ? staging : device;
    allocators::BlockPool::Range& range = ranges[graph::index(step.block)];
    if (step.verb == plan::Verb::alloc)
      range = pool.allocate(block.bytes);
    else
      pool.free(range);
  }
  return needed;
}

}  // namespace

// No allocation exceeds its heap. NVIDIA's driver promises 4 GiB and gives far more.
std::uint64_t largest_piece(const DeviceInfo& device, std::uint64_t alignment) {
  const DeviceHeap* const heap = device_heap(device);
  const std::uint64_t most = std::max(device.max_allocation, heap == nullptr ? 0 : heap->bytes);
  return std::min(most, device.max_buffer) / alignment * alignment;
}

std::uint64_t promised_piece(const DeviceInfo& device, std::uint64_t alignment) {
  return std::min(device.max_allocation, device.max_buffer) / alignment * alignment;
}

void refuse_piece(const plan::Block& block, const graph::MetaGraph& graph, const DeviceInfo& device,
                  std::uint64_t most, std::string_view why) {
  throw Error(ErrorCode::no_fit,
              "does not fit: {} needs {} ({} bytes) in one allocation, {} allows {} ({} bytes){}{}",
              purpose(block, graph), format_bytes(block.bytes), block.bytes, safe_display(device.name),
              format_bytes(most), most, why.empty() ? "" : ": ", why);
}

void require_pieces(const plan::Plan& plan, const graph::MetaGraph& graph, const DeviceInfo& device,
                    std::uint64_t alignment) {
  const std::uint64_t most = largest_piece(device, alignment);
  for (const plan::Block& block : plan.blocks)
    if (device_sees(block.space) && block.bytes > most) refuse_piece(block, graph, device, most);
}

std::optional<plan::BlockId> largest_unpromised(const plan::Plan& plan, plan::Space space,
                                                const DeviceInfo& device, std::uint64_t alignment) {
  const auto bytes = [&](const plan::Block& block) { return block.space == space ? block.bytes : 0; };
  const auto largest = std::ranges::max_element(plan.blocks, {}, bytes);
  if (largest == plan.blocks.end() || bytes(*largest) <= promised_piece(device, alignment))
    return std::nullopt;
  return plan::BlockId{static_cast<std::uint32_t>(largest - plan.blocks.begin())};
}

void require_allocations(const plan::Plan& plan, const DeviceInfo& device, std::uint64_t alignment) {
  if (device.max_allocations == 0) return;
  const std::uint64_t needed = allocations_at_once(plan, alignment, promised_piece(device, alignment));
  if (needed > device.max_allocations)
    throw Error(ErrorCode::no_fit, "does not fit: needs {} allocations at once, {} allows {}",
                format_grouped(needed), safe_display(device.name), format_grouped(device.max_allocations));
}

bool packs_weights(const plan::Plan& plan) {
  return std::ranges::any_of(plan.blocks,
                             [](const plan::Block& block) { return block.prepack() != nullptr; });
}

void require_packing(const DeviceInfo& device) {
  if (device.packs) return;
  throw Error(ErrorCode::unsupported,
              "'{}' cannot pack weights: its shaders cannot take addresses (bufferDeviceAddress) or write "
              "16-bit numbers (storageBuffer16BitAccess)",
              safe_display(device.name));
}

Unbindable unbindable_tensors(const graph::MetaGraph& graph, const plan::Plan& plan,
                              const DeviceInfo& device) {
  Unbindable found;
  if (device.max_binding == 0) return found;
  std::map<graph::StorageId, std::uint64_t> packed;
  for (const plan::Block& block : plan.blocks)
    if (block.prepack()) packed[*block.storage] = block.bytes;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const auto small = packed.find(graph.tensors[i].storage);
    const std::uint64_t bytes =
        small != packed.end() ? small->second : graph::tensor_bytes(graph, graph.tensors[i]);
    if (bytes <= device.max_binding) continue;
    ++found.count;
    if (bytes <= found.most) continue;
    found.most = bytes;
    found.largest = graph::TensorId{static_cast<std::uint32_t>(i)};
  }
  return found;
}

}  // namespace loadline::gpu
