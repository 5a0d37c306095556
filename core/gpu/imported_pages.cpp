// Maps whole pages around the range, and lays a buffer over them. What a driver refuses is no error: there is
// another way.
#include "core/gpu/imported_pages.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/gpu/device_memory.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace loadline::gpu {
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

ImportedPages::Mapping::Mapping(const SourceFile& file, std::uint64_t offset, std::uint64_t length) {
  void* const mapped = ::mmap(nullptr, static_cast<std::size_t>(length), PROT_READ, MAP_SHARED,
                              file.descriptor(), static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return;
  base = mapped;
  bytes = static_cast<std::size_t>(length);
}

ImportedPages::Mapping::~Mapping() {
  if (base != nullptr) ::munmap(base, bytes);
}

std::unique_ptr<ImportedPages> ImportedPages::make(const Device& device, const SourceFile& file,
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
    throw mapped_read_error(file, errno);
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

bool can_import_pages(const Device& device, const SourceFile& file, std::uint64_t offset,
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

}  // namespace loadline::gpu
