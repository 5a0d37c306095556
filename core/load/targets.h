// Data sheets of devices: how much memory they have, of which kind. From assets/targets/*.json, one file
// each:
//
//   {"id": "rtx-4060-8gb", "name": "NVIDIA GeForce RTX 4060",
//    "class": "desktop",              phone, laptop, desktop, server or board
//    "memory": "discrete",            or "unified": one memory for host and device
//    "device_bytes": "8GiB",          the device's own memory; where memory is unified, what the device may
//                                     use of it, if less than all
//    "host_bytes": "16GiB",           the one memory, where it is unified; else the host's, and so the host's
//                                     budget: may be left out, as a card does not say what it is put into
//    "device_bandwidth": 272000000000,  bytes per second, of the memory; may be left out
//    "link_bandwidth": 15750000000,   bytes per second one way, of the bus; may be left out
//    "options": {"allocator": "vulkan"},  of a load, where a request does not set them; may be left out
//    "source": "..."}                 the data sheet, and where the options come from
//
#pragma once

#include "core/load/projection.h"
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
  std::optional<std::uint64_t> device_bytes = {};  // there where memory is discrete
  std::optional<std::uint64_t> host_bytes = {};    // there where memory is unified; may be where it is not
  std::optional<std::uint64_t> device_bandwidth = {};
  std::optional<std::uint64_t> link_bandwidth = {};
  // Options of a load that hold on this device unless a request sets them: ids and values.
  std::vector<std::pair<std::string, std::string>> options = {};
  std::string source = {};
};

// Throws Error{malformed | limit} naming `path`, line, column and key.
Target parse_target(std::string_view json, const std::string& path);

struct Targets {
  std::vector<Target> rows = {};
  std::vector<std::string> faults = {};  // what is wrong with files that were left out
};
// Throws Error{usage} that lists them.
const Target& find_target(std::span<const Target> targets, std::string_view id);

// Those built in, by file name.
std::span<const Target> built_in_targets();
// With every folder/targets/*.json, each of which takes the place of the built-in one of the same id. An
// empty folder means those built in.
Targets load_targets(const std::string& folder);

// What the device allows, with memory taken as `memory`.
Budget target_budget(const Target& target, MemoryKind memory);
// `costs` with the device's own rates where it has any.
CostModel target_costs(const Target& target, CostModel costs);

}  // namespace loadline
