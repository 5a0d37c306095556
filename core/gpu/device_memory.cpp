// Chooses memory types, allocates blocks, maps file pages, takes slots in turn.
#include "core/gpu/device_memory.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

namespace loadline::gpu {

// --- Chooses memory types, allocates blocks and hands out ranges of them.

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

MemoryPool::MemoryPool(const Device& device, MemoryUse use, allocators::PoolForecast expected,
                       bool take_at_once)
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
    throw Error(ErrorCode::gpu, "a {} block needs {} bytes in one allocation, the device allows {}",
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

allocators::PoolBlock MemoryPool::take_block(std::uint32_t id, std::uint64_t wanted, std::uint64_t exact) {
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

// --- Maps whole pages around the range, and lays a buffer over them. What a driver refuses is no error:
// there is another way.

namespace {

constexpr VkExternalMemoryHandleTypeFlagBits kHostMemory =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;

// One bit for each memory type that the pages can be imported as.
std::uint32_t memory_types(const Device& device, const void* pages) {
  const auto ask = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
      vkGetDeviceProcAddr(device.get(), "vkGetMemoryHostPointerPropertiesEXT"));
  auto properties =
      vulkan_struct<VkMemoryHostPointerPropertiesEXT>(VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT);
  if (ask == nullptr || ask(device.get(), kHostMemory, pages, &properties) != VK_SUCCESS) return 0;
  return properties.memoryTypeBits;
}

}  // namespace

ImportedPages::Mapping::Mapping(const io::SourceFile& file, std::uint64_t offset, std::uint64_t length) {
  void* const mapped = ::mmap(nullptr, static_cast<std::size_t>(length), PROT_READ, MAP_SHARED,
                              file.descriptor(), static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return;
  base = mapped;
  bytes = static_cast<std::size_t>(length);
}

ImportedPages::Mapping::~Mapping() {
  if (base != nullptr) ::munmap(base, bytes);
}

std::unique_ptr<ImportedPages> ImportedPages::make(const Device& device, const io::SourceFile& file,
                                                   std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t unit = device.import_alignment();
  if (unit == 0 || device.shaders() || file.descriptor() < 0 || bytes == 0) return nullptr;
  const std::uint64_t begin = offset / unit * unit, lead = offset - begin;
  std::unique_ptr<ImportedPages> made(new ImportedPages(file, begin, align_up(lead + bytes, unit)));
  if (made->mapping_.base == nullptr) return nullptr;
#ifdef MADV_POPULATE_READ
  // a file that was cut short is an Error here
  if (::madvise(made->mapping_.base, static_cast<std::size_t>(lead + bytes), MADV_POPULATE_READ) != 0 &&
      errno != EINVAL)
    throw io::mapped_read_error(file, errno);
#endif
  if (!made->bind(device)) return nullptr;
  made->range_ = {made->buffer_.get(), lead, bytes};
  return made;
}

bool ImportedPages::bind(const Device& device) {
  auto external =
      vulkan_struct<VkExternalMemoryBufferCreateInfo>(VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  external.handleTypes = kHostMemory;
  auto info = vulkan_struct<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external);
  info.size = mapping_.bytes;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  VkBuffer buffer = VK_NULL_HANDLE;
  if (vkCreateBuffer(device.get(), &info, nullptr, &buffer) != VK_SUCCESS) return false;
  buffer_ = UniqueBuffer(device.get(), buffer);
  VkMemoryRequirements needs = {};
  vkGetBufferMemoryRequirements(device.get(), buffer, &needs);
  const std::uint32_t types = needs.memoryTypeBits & memory_types(device, mapping_.base);
  if (types == 0 || needs.size > mapping_.bytes) return false;

  auto import =
      vulkan_struct<VkImportMemoryHostPointerInfoEXT>(VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  import.handleType = kHostMemory;
  import.pHostPointer = mapping_.base;
  auto allocate = vulkan_struct<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &import);
  allocate.allocationSize = mapping_.bytes;
  // the content of imported pages is only kept in memory that the host sees
  const auto type = find_memory_type(device.memory(), types, MemoryUse::staging);
  if (!type) return false;
  allocate.memoryTypeIndex = *type;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  if (vkAllocateMemory(device.get(), &allocate, nullptr, &memory) != VK_SUCCESS) return false;
  memory_ = UniqueMemory(device.get(), memory);
  return vkBindBufferMemory(device.get(), buffer, memory, 0) == VK_SUCCESS;
}

bool can_import_pages(const Device& device, const io::SourceFile& file, std::uint64_t offset,
                      std::uint64_t bytes) try {
  constexpr std::uint64_t kTried = 4096;
  const std::uint64_t count = std::min(bytes, kTried);
  std::vector<std::byte> expected(static_cast<std::size_t>(count));
  file.read_at(offset, expected);
  DeviceOptions same;
  same.wanted = std::to_string(device.info().index);
  same.queues = {device.queue_family()};
  const Device trial(same);
  const auto pages = ImportedPages::make(trial, file, offset, count);
  if (!pages) return false;
  MemoryPool memory(trial, MemoryUse::staging, {kTried, {}});
  const Allocation copy = memory.allocate(count);
  TransferQueue transfers(trial, kTried);
  transfers.copy(pages->range(), copy.range);
  transfers.drain();
  return std::ranges::equal(copy.mapped, expected);
} catch (const Error& error) {
  if (error.code() == ErrorCode::io) throw;
  return false;
}

// --- Slots used in turn, each busy until its timeline value is complete.

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

// --- Uploads and readbacks through rings of mapped memory.

namespace {

// Alignment of the pieces in a slot, for aligned vector stores. Copies may start at any byte.
constexpr std::uint64_t kPieceAlignment = 64;

}  // namespace

UploadBounce::UploadBounce(MemoryPool& memory, TransferQueue& transfers)
    : memory_(memory), transfers_(transfers), ring_(kBounceSlots, kBounceSlotBytes) {}

std::uint64_t UploadBounce::copy(const Fill& fill, const BufferRange& to) {
  return send(fill, to.bytes, 1, [&](std::uint64_t at, const BufferRange& slot) {
    return transfers_.copy(slot, to.part(at, slot.bytes));
  });
}

std::uint64_t UploadBounce::send(const Fill& fill, std::uint64_t bytes, std::uint64_t unit,
                                 const Send& send) {
  if (slots_.range.bytes == 0) slots_ = memory_.allocate(kBounceSlots * kBounceSlotBytes);
  for (std::uint64_t done = 0; done < bytes;) {
    if (!ring_.filling()) {
      transfers_.wait(ring_.next_needs());
      ring_.begin(transfers_.completed());
    }
    StagingRing::Piece piece = ring_.take(bytes - done, kPieceAlignment);
    piece.bytes = piece.bytes / unit * unit;  // the rest of the slot stays empty
    if (piece.bytes > 0) {
      fill(done, slots_.mapped.subspan(static_cast<std::size_t>(piece.offset),
                                       static_cast<std::size_t>(piece.bytes)));
      newest_ = send(done, slots_.range.part(piece.offset, piece.bytes));
    }
    if (ring_.room() == 0) ring_.submit(newest_);
    done += piece.bytes;
  }
  return newest_;
}

Readback::Readback(MemoryPool& memory, TransferQueue& transfers) : memory_(memory), transfers_(transfers) {}

void Readback::read(const BufferRange& from, const Consume& take) {
  if (slots_.range.bytes == 0) slots_ = memory_.allocate(kBounceSlots * kBounceSlotBytes);
  std::array<std::uint64_t, kBounceSlots> values = {};
  const std::uint64_t chunks = (from.bytes + kBounceSlotBytes - 1) / kBounceSlotBytes;
  const auto size_of = [&](std::uint64_t chunk) {
    return std::min(kBounceSlotBytes, from.bytes - chunk * kBounceSlotBytes);
  };
  // chunk k goes to `take` just before its slot is needed for chunk k + kBounceSlots
  for (std::uint64_t chunk = 0; chunk < chunks + kBounceSlots; ++chunk) {
    const std::uint64_t slot = chunk % kBounceSlots;
    if (chunk >= kBounceSlots && chunk - kBounceSlots < chunks) {
      const std::uint64_t ready = chunk - kBounceSlots;
      transfers_.wait(values[slot]);
      take(ready * kBounceSlotBytes, slots_.mapped.subspan(static_cast<std::size_t>(slot * kBounceSlotBytes),
                                                           static_cast<std::size_t>(size_of(ready))));
    }
    if (chunk >= chunks) continue;
    values[slot] = transfers_.copy(from.part(chunk * kBounceSlotBytes, size_of(chunk)),
                                   slots_.range.part(slot * kBounceSlotBytes, size_of(chunk)));
    transfers_.flush();
  }
}

}  // namespace loadline::gpu
