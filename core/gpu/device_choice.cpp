// The choice of a device and the sentences that explain it.
#include "core/base/number.h"
#include "core/base/text.h"
#include "core/gpu/device_info.h"

#include <fmt/format.h>

namespace loadline::gpu {
namespace {

bool is_wanted(const DeviceInfo& device, std::string_view wanted) {
  // a number is always an index: "1" must not match every name that contains a 1
  if (const auto number = text_as<std::size_t>(wanted)) return device.index == *number;
  return lower_case(device.name).find(lower_case(wanted)) != std::string::npos;
}

std::vector<std::string> defects(const DeviceInfo& device) {
  std::vector<std::string> found;
  if (device.api_version < ApiVersion{kLeastMajor, kLeastMinor, 0})
    found.push_back(fmt::format("offers Vulkan {}, {}.{} is needed", version_text(device.api_version),
                                kLeastMajor, kLeastMinor));
  if (!device.timeline_semaphore) found.emplace_back("has no timeline semaphores");
  if (device_heap(device) == nullptr) found.emplace_back("has no device memory");
  return found;
}

std::uint64_t memory_of(const DeviceInfo& device) {
  const DeviceHeap* const heap = device_heap(device);
  return heap == nullptr ? 0 : heap->bytes;
}

bool better(const DeviceInfo& a, const DeviceInfo& b) {
  if (a.type != b.type) return a.type > b.type;
  return memory_of(a) > memory_of(b);
}

std::string_view kind(DeviceType type) {
  constexpr std::string_view kKinds[] = {"of a kind its driver does not name", "a CPU that plays a GPU",
                                         "an integrated GPU", "a virtual GPU", "a discrete GPU"};
  return kKinds[static_cast<std::size_t>(type)];
}

std::string why_not(const DeviceInfo& device, const DeviceInfo& chosen) {
  if (device.type != chosen.type)
    return fmt::format("{} comes after {}", kind(device.type), kind(chosen.type));
  if (memory_of(device) != memory_of(chosen))
    return fmt::format("its memory of {} is less than {}", format_bytes(memory_of(device)),
                       format_bytes(memory_of(chosen)));
  return fmt::format("as good as device {}, which is listed before it", chosen.index);
}

}  // namespace

std::string_view device_type_name(DeviceType type) {
  constexpr std::string_view kNames[] = {"other", "cpu", "integrated", "virtual", "discrete"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string version_text(ApiVersion version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

std::string_view queue_family_words(const QueueFamily& family) {
  if (family.only_copies) return "only copies";
  if (family.draws) return family.computes ? "draws and computes" : "draws";
  return family.computes ? "computes" : "copies, encodes or decodes";
}

std::string queue_family_key(const QueueFamily& family) {
  return fmt::format("{} {}", family.index, queue_family_words(family));
}

std::optional<std::size_t> choose_queue_family(std::span<const QueueFamily> families, bool computes,
                                               const LinkRates& rates) {
  constexpr double kClearly = 1.05;
  const auto rank = [](const QueueFamily& family) {
    if (family.only_copies) return 3;
    if (family.draws) return 1;
    return family.computes ? 2 : 0;
  };
  const auto rate = [&](const QueueFamily& family) {
    const auto found = rates.find(queue_family_key(family));
    return found == rates.end() ? 0.0 : found->second;
  };
  std::optional<std::size_t> by_kind, fastest;
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (computes && !families[i].computes) continue;
    if (!by_kind || rank(families[i]) > rank(families[*by_kind])) by_kind = i;
    if (!fastest || rate(families[i]) > rate(families[*fastest])) fastest = i;
  }
  if (!by_kind) return std::nullopt;
  const double measured = rate(families[*by_kind]);
  return measured > 0 && rate(families[*fastest]) > kClearly * measured ? fastest : by_kind;
}

const DeviceHeap* device_heap(const DeviceInfo& device) {
  const DeviceHeap* best = nullptr;
  for (const DeviceHeap& heap : device.heaps)
    if (heap.device_local && (best == nullptr || heap.bytes > best->bytes)) best = &heap;
  return best;
}

DeviceChoice choose_device(std::span<const DeviceInfo> devices, std::string_view wanted) {
  DeviceChoice choice;
  choice.reasons.resize(devices.size());
  std::size_t usable = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::vector<std::string>& reasons = choice.reasons[i];
    reasons = defects(devices[i]);
    const bool can_serve = reasons.empty();
    usable += can_serve ? 1 : 0;
    if (!wanted.empty() && !is_wanted(devices[i], wanted)) {
      reasons.emplace_back(kNotWanted);
      continue;
    }
    if (can_serve && (!choice.chosen || better(devices[i], devices[*choice.chosen]))) choice.chosen = i;
  }
  if (!choice.chosen) return choice;

  const DeviceInfo& chosen = devices[*choice.chosen];
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (i != *choice.chosen && choice.reasons[i].empty())
      choice.reasons[i].push_back(why_not(devices[i], chosen));
  std::vector<std::string>& reasons = choice.reasons[*choice.chosen];
  if (!wanted.empty())
    reasons.emplace_back("asked for");
  else if (usable == 1)
    reasons.emplace_back("the only device that can be used");
  else
    reasons.push_back(
        fmt::format("{} with {} of memory", kind(chosen.type), format_bytes(memory_of(chosen))));
  if (const DeviceHeap* const heap = device_heap(chosen); chosen.type == DeviceType::cpu && heap->budget)
    reasons.push_back(fmt::format("its memory is the system's: {} available", format_bytes(*heap->budget)));
  return choice;
}

}  // namespace loadline::gpu
