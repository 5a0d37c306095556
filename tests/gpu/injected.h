// Makes Vulkan calls fail, and counts what they leave behind. The definitions stand before those of the
// loader in this program, and pass on every call that does not have to fail.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace loadline::gpu {

struct Injected {
  // The k-th call from now on fails (from 1); 0: none does.
  std::uint64_t allocation = 0;  // vkAllocateMemory: VK_ERROR_OUT_OF_DEVICE_MEMORY, and every later one
  std::uint64_t buffer = 0;      // vkCreateBuffer: VK_ERROR_OUT_OF_DEVICE_MEMORY
  std::uint64_t map = 0;         // vkMapMemory: VK_ERROR_MEMORY_MAP_FAILED, that call alone
  std::uint64_t submission = 0;  // vkQueueSubmit: VK_ERROR_DEVICE_LOST, and every later one and every wait
  bool device_alone = false;     // until the device is destroyed: others are not lost
};
// Replaces what was asked before.
void inject(const Injected& failures);

// Devices have these extensions; none: only their own. VK_EXT_memory_budget counts the bytes of all
// allocations alive as the use of every heap, and each query of it takes `seconds`. VK_EXT_memory_priority is
// listened to.
void inject_extensions(std::vector<std::string> names, double seconds = 0);
// Since then: queries of the count, by other threads than the one that called inject_extensions(); and the
// bytes that were allocated by their priority.
std::uint64_t budget_queries();
std::map<float, std::uint64_t> bytes_by_priority();

// Devices have families of queues with these flags after their own; what goes through them goes through their
// first. They cannot be opened on the family with the index `broken`.
void inject_queue_families(std::vector<std::uint32_t> flags, std::uint32_t broken = UINT32_MAX);

// Objects that were made and not destroyed.
struct Alive {
  std::int64_t memory = 0, buffers = 0, semaphores = 0, pools = 0, devices = 0;
  bool operator==(const Alive&) const = default;
};
Alive alive();

}  // namespace loadline::gpu
