// Properties of Vulkan devices, and the choice of the device for an upload. No Vulkan types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gpu {

// The oldest Vulkan version whose core has timeline semaphores.
inline constexpr std::uint32_t kLeastMajor = 1;
inline constexpr std::uint32_t kLeastMinor = 2;

enum class DeviceType : std::uint8_t { other, cpu, integrated, virtual_gpu, discrete };
std::string_view device_type_name(DeviceType type);

struct ApiVersion {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t patch = 0;
  auto operator<=>(const ApiVersion&) const = default;
};
// "1.3.230".
std::string version_text(ApiVersion version);

struct DeviceHeap {
  std::uint64_t bytes = 0;
  bool device_local = false;
  bool host_visible = false;  // some memory type of this heap can be mapped
  // Bytes that this process may take besides what it has, from VK_EXT_memory_budget. On a CPU-type device:
  // the available system memory, because the heap size that such a driver reports means nothing.
  std::optional<std::uint64_t> budget = {};
};

// A family of a device's queues that can copy.
struct QueueFamily {
  std::uint32_t index = 0;
  bool computes = false;
  bool draws = false;
  bool only_copies = false;  // a dedicated copy engine
};
// "only copies", "computes", "draws and computes", "copies, encodes or decodes".
std::string_view queue_family_words(const QueueFamily& family);

// "1 only copies": another driver may number its families in another way.
std::string queue_family_key(const QueueFamily& family);

// Bytes per second of the link on families of queues, by their key.
using LinkRates = std::map<std::string, double, std::less<>>;
// As measured on the device of this name.
struct QueueRates {
  std::string device = {};  // as safe_display() shows it
  LinkRates rates = {};
};

// The family for copies, as a position in `families`. By kind: one that only copies, else one that computes
// and does not draw, else one that draws, else any. Another whose measured rate is more than a twentieth
// higher goes before it. With `computes` only those that compute are considered. Absent if there is none.
std::optional<std::size_t> choose_queue_family(std::span<const QueueFamily> families, bool computes,
                                               const LinkRates& rates = {});

struct DeviceInfo {
  std::size_t index = 0;  // in the order in which Vulkan lists the devices
  std::string name;
  DeviceType type = DeviceType::other;
  std::string vendor;  // "NVIDIA", or the PCI id of an unknown vendor
  std::string driver;  // "llvmpipe Mesa 22.3.6"
  ApiVersion api_version = {};
  std::vector<DeviceHeap> heaps = {};
  std::vector<QueueFamily> queues = {};
  std::uint64_t max_allocation = 0;   // bytes of one allocation that the driver promises; it may allow more
  std::uint64_t max_buffer = 0;       // bytes of one buffer, which none exceeds
  std::uint64_t max_binding = 0;      // bytes of a buffer that a shader can see at once
  std::uint64_t max_allocations = 0;  // at once
  bool unified = false;               // its memory is the system's: an integrated GPU, or a CPU
  bool mappable = false;              // the whole device-local heap can be mapped, not just a small window
  // Of an integrated GPU: free memory that the firmware set aside for it, which the system does not count as
  // its own. 0: none, or the driver does not say.
  std::uint64_t set_aside = 0;
  bool memory_budget = false;         // VK_EXT_memory_budget
  bool external_memory_host = false;  // VK_EXT_external_memory_host
  bool memory_priority = false;       // VK_EXT_memory_priority
  bool pageable_memory = false;       // VK_EXT_pageable_device_local_memory; not switched on
  bool timeline_semaphore = false;
  bool packs = false;  // its shaders take addresses and write 16-bit numbers: they can pack weights
};

// The most bytes that a block may have, which is one buffer in one allocation: a multiple of `alignment`.
// More than max_allocation may be refused by the driver only when it is asked.
std::uint64_t largest_piece(const DeviceInfo& device, std::uint64_t alignment);
// The same, of what the driver promises: the size of blocks that hold several tensors.
std::uint64_t promised_piece(const DeviceInfo& device, std::uint64_t alignment);

// The largest device-local heap; null if the device has none.
const DeviceHeap* device_heap(const DeviceInfo& device);

// The reason against a device that is not the one asked for.
inline constexpr std::string_view kNotWanted = "not the one asked for";

// `reasons[i]` says why device i is chosen or not.
struct DeviceChoice {
  std::optional<std::size_t> chosen;
  std::vector<std::vector<std::string>> reasons;
};

// Prefers discrete to virtual to integrated to CPU devices, then the larger memory, then the first listed.
// `wanted` is an index, or a part of a name in upper or lower case; empty means the best device. Nothing is
// chosen if no device can be used or none matches `wanted`.
DeviceChoice choose_device(std::span<const DeviceInfo> devices, std::string_view wanted = {});

// A sentence if the devices are all software while this machine has a GPU whose Vulkan driver is missing;
// else empty. Knows of NVIDIA's, whose kernel driver works without.
std::string hidden_gpu_text(std::span<const DeviceInfo> devices);

// Every device of every installed driver. Throws Error{gpu} when there is no driver.
std::vector<DeviceInfo> list_devices();

}  // namespace loadline::gpu
