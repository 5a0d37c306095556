// Chooses memory types, allocates blocks and hands out ranges of them.
#include "core/gpu/device_memory.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace loadline::gpu {
namespace {

std::string_view use_name(MemoryUse use) {
  constexpr std::string_view kNames[] = {"device", "device", "staging"};
  return kNames[static_cast<std::size_t>(use)];
}

// How well a memory type serves a use: larger is better; nothing if it cannot.
std::optional<std::uint64_t> type_rank(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t type,
                                       MemoryUse use) {
  constexpr VkMemoryPropertyFlags kMapped =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags flags = memory.memoryTypes[type].propertyFlags;
  constexpr VkMemoryPropertyFlags kSpecial =
      VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
      VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;
  if ((flags & kSpecial) != 0) return std::nullopt;
  const bool local = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
  const bool cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
  if (use == MemoryUse::device) {
    if (!local) return std::nullopt;
    const std::uint64_t heap = memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
    const bool unmapped = (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0;
    return (heap << 1) + (unmapped ? 1 : 0);
  }
  if ((flags & kMapped) != kMapped) return std::nullopt;
  if (use == MemoryUse::direct) {
    if (!local) return std::nullopt;
    return memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
  }
  return (local ? 0u : 2u) + (cached ? 1u : 0u);
}

}  // namespace

std::optional<std::uint32_t> find_memory_type(const VkPhysicalDeviceMemoryProperties& memory,
                                              std::uint32_t allowed, MemoryUse use) {
  std::optional<std::uint32_t> best;
  for (std::uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
    if ((allowed & (1u << type)) == 0) continue;
    const auto rank = type_rank(memory, type, use);
    if (rank && (!best || *rank > *type_rank(memory, *best, use))) best = type;
  }
  return best;
}

std::uint32_t choose_memory_type(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t allowed,
                                 MemoryUse use) {
  const auto found = find_memory_type(memory, allowed, use);
  if (!found) throw Error(ErrorCode::gpu, "the device has no {} memory for buffers", use_name(use));
  return *found;
}

bool can_map_device_memory(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t allowed) {
  std::uint64_t largest = 0, mapped = 0;
  for (std::uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
    if ((allowed & (1u << type)) == 0) continue;
    const std::uint64_t heap = memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
    if (type_rank(memory, type, MemoryUse::device)) largest = std::max(largest, heap);
    if (type_rank(memory, type, MemoryUse::direct)) mapped = std::max(mapped, heap);
  }
  return mapped > 0 && mapped == largest;
}

bool can_map_device_memory(const Device& device) {
  return can_map_device_memory(device.memory(), buffer_memory_types(device, MemoryUse::direct));
}

std::uint64_t pool_alignment(const Device& device) {
  const VkPhysicalDeviceLimits& limits = device.limits();
  return std::max<std::uint64_t>(
      {256, limits.optimalBufferCopyOffsetAlignment, limits.minStorageBufferOffsetAlignment});
}

namespace {

UniqueBuffer make_buffer(const Device& device, MemoryUse use, std::uint64_t bytes) {
  auto info = vulkan_struct<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (use == MemoryUse::device || use == MemoryUse::direct) info.usage |= VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  if (device.shaders()) info.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  return {device.get(), vkCreateBuffer, info, fmt::format("create a buffer of {} bytes", bytes)};
}

VkMemoryRequirements needs_of(const Device& device, const UniqueBuffer& buffer) {
  VkMemoryRequirements needs = {};
  vkGetBufferMemoryRequirements(device.get(), buffer.get(), &needs);
  return needs;
}

}  // namespace

// The Vulkan specification makes memoryTypeBits the same for all buffers of the same usage.
std::uint32_t buffer_memory_types(const Device& device, MemoryUse use) {
  return needs_of(device, make_buffer(device, use, 4096)).memoryTypeBits;
}

namespace {

// Makes the system give the pages now. Those that it does not give now come when they are first touched.
void populate(std::span<std::byte> memory) {
#ifdef MADV_POPULATE_WRITE
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(memory.data() + memory.size());
  (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
#endif
}

}  // namespace

// One allocation and the buffer that covers it.
class MemoryBlock {
 public:
  MemoryBlock(const Device& device, MemoryUse use, std::uint64_t bytes) {
    buffer = make_buffer(device, use, bytes);
    const VkMemoryRequirements needs = needs_of(device, buffer);
    reserved = needs.size;
    auto flags = vulkan_struct<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    auto allocate = vulkan_struct<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                                        device.shaders() ? &flags : nullptr);
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = choose_memory_type(device.memory(), needs.memoryTypeBits, use);
    // where memory runs short, staging is the first to leave the device, and weights are the last
    auto priority =
        vulkan_struct<VkMemoryPriorityAllocateInfoEXT>(VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT);
    priority.priority = use == MemoryUse::device || use == MemoryUse::direct ? 1.0F : 0.5F;
    if (device.info().memory_priority) {
      priority.pNext = allocate.pNext;
      allocate.pNext = &priority;
    }
    VkDeviceMemory taken = VK_NULL_HANDLE;
    result = vkAllocateMemory(device.get(), &allocate, nullptr, &taken);
    if (result != VK_SUCCESS) return;
    memory = UniqueMemory(device.get(), taken);
    check(vkBindBufferMemory(device.get(), buffer.get(), taken, 0), "bind a buffer to its memory");
    if (device.shaders()) {
      auto info = vulkan_struct<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
      info.buffer = buffer.get();
      address = vkGetBufferDeviceAddress(device.get(), &info);
    }
    // a software device's memory can always be mapped
    const bool software = device.info().type == DeviceType::cpu;
    if (use == MemoryUse::device && !software) return;
    void* host = nullptr;
    result = vkMapMemory(device.get(), taken, 0, VK_WHOLE_SIZE, 0, &host);
    if (result != VK_SUCCESS) return;
    const std::span<std::byte> whole = {static_cast<std::byte*>(host), static_cast<std::size_t>(bytes)};
    if (use != MemoryUse::device) mapped = whole;
    if (software) lazy = whole;
  }

  std::uint64_t reserved = 0;
  UniqueMemory memory;  // freed after the buffer bound to it
  UniqueBuffer buffer;
  VkDeviceAddress address = 0;  // 0 without shaders
  std::span<std::byte> mapped;  // valid until the memory is freed
  std::span<std::byte> lazy;    // on a software device: memory that it takes when it is touched
  VkResult result = VK_SUCCESS;
};

MemoryPool::MemoryPool(const Device& device, MemoryUse use, PoolForecast expected, bool take_at_once)
    : device_(device),
      use_(use),
      take_at_once_(take_at_once),
      alignment_(pool_alignment(device)),
      pool_(
          {.alignment = alignment_,
           .expected = std::move(expected),
           .most = promised_piece(device.info(), alignment_)},
          [this](std::uint32_t id, std::uint64_t wanted, std::uint64_t exact) {
            return take_block(id, wanted, exact);
          },
          [this](std::uint32_t id) { blocks_.erase(id); }) {}

MemoryPool::~MemoryPool() = default;

Allocation MemoryPool::allocate(std::uint64_t bytes) {
  if (bytes == 0) return {};
  if (const std::uint64_t most = largest_piece(device_.info(), alignment_); bytes > most)
    throw Error(ErrorCode::gpu, "a {} block needs {} bytes in one piece, the device allows {}",
                use_name(use_), bytes, most);
  Allocation made;
  made.place = pool_.allocate(bytes);
  const MemoryBlock& home = *blocks_.at(made.place.block);
  const std::uint64_t offset = made.place.offset;
  made.range = {home.buffer.get(), offset, bytes, !home.mapped.empty(),
                home.address == 0 ? 0 : home.address + offset};
  if (take_at_once_ && !home.lazy.empty())
    populate(home.lazy.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes)));
  if (!home.mapped.empty())
    made.mapped = home.mapped.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
  return made;
}

PoolBlock MemoryPool::take_block(std::uint32_t id, std::uint64_t wanted, std::uint64_t exact) {
  std::unique_ptr<MemoryBlock> block;
  std::uint64_t bytes = 0;
  const auto take = [&](MemoryUse use, std::uint64_t size) {
    bytes = size;
    block.reset();  // before the next one is taken
    block = std::make_unique<MemoryBlock>(device_, use, size);
    return block->result == VK_SUCCESS;
  };
  const auto take_either = [&](MemoryUse use) {
    return take(use, wanted) || (wanted > exact && take(use, exact));
  };
  if (!take_either(use_) && use_ == MemoryUse::direct) take_either(MemoryUse::device);
  check(block->result, fmt::format("allocate {} ({} bytes) of {} memory while {} are taken",
                                   format_bytes(exact), exact, use_name(use_), format_bytes(reserved())));
  const std::uint64_t reserved = block->reserved;
  blocks_.emplace(id, std::move(block));
  return {bytes, reserved};
}

void MemoryPool::free(const Allocation& allocation) {
  if (allocation.range.bytes > 0) pool_.free(allocation.place);
}

}  // namespace loadline::gpu
