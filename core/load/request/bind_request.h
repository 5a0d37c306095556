// Data sheets of devices: the size and kind of their memory. Read from assets/targets/*.json, one file each:
//
//   {"id": "rtx-4060-8gb", "name": "NVIDIA GeForce RTX 4060",
//    "class": "desktop",              phone, laptop, desktop, server or board
//    "memory": "discrete",            or "unified": one memory for host and device
//    "device_bytes": "8GiB",          the device's own memory; if memory is unified, the part of it that
//                                     the device may use, if not all
//    "host_bytes": "16GiB",           the host's memory and so its budget; optional, as a card's data sheet
//                                     does not name its host. If memory is unified, the size of that memory
//    "device_bandwidth": 272000000000,  of the memory, bytes per second; optional
//    "link_bandwidth": 15750000000,   of the bus, bytes per second in one direction; optional
//    "options": {"allocator": "vulkan"},  load options for requests that do not set them; optional
//    "source": "..."}                 the data sheet, and the source of the options
//
#pragma once

#include "core/load/answer/projection.h"
#include "core/plan/dry_machine.h"
#include "core/plan/memory_views.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

struct Target {
  std::string id = {};
  std::string name = {};
  std::string device_class = {};
  MemoryKind memory = MemoryKind::discrete;
  std::optional<std::uint64_t> device_bytes = {};  // required if memory is discrete
  std::optional<std::uint64_t> host_bytes = {};    // required if memory is unified, else optional
  std::optional<std::uint64_t> device_bandwidth = {};
  std::optional<std::uint64_t> link_bandwidth = {};
  // Ids and values of load options that apply on this device unless a request sets them.
  std::vector<std::pair<std::string, std::string>> options = {};
  std::string source = {};
};

// Throws Error{malformed | limit} naming `path`, line, column and key.
Target parse_target(std::string_view json, const std::string& path);

struct Targets {
  std::vector<Target> rows = {};
  std::vector<std::string> faults = {};  // errors in files that were skipped
};
// Throws Error{usage} that lists the known ids.
const Target& find_target(std::span<const Target> targets, std::string_view id);

// The built-in targets, by file name.
std::span<const Target> built_in_targets();
// The built-in targets and those in folder/targets/*.json; a file replaces the built-in target with the same
// id. An empty `folder` gives the built-in targets only.
Targets load_targets(const std::string& folder);

// The budget that the device allows, with its memory treated as kind `memory`.
Budget target_budget(const Target& target, MemoryKind memory);
// Replaces rates of `costs` with those that the device's data sheet gives, and leaves out those at which
// another device's driver gives memory.
CostModel target_costs(const Target& target, CostModel costs);

}  // namespace loadline
