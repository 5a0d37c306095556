// Reads data sheets of devices and derives budgets from them.
#include "core/assets/asset_file.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/load_options.h"
#include "embedded/targets_files.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline::load {
namespace {

using Kind = assets::AssetNode::Kind;

std::string text(const assets::AssetNode& root, std::string_view key) {
  const assets::AssetNode& node = root.at(key);
  const std::string& value = node.name(fmt::format("'{}'", key), assets::kMostAssetName);
  if (value.empty()) node.place.fail("'{}' is empty", key);
  return value;
}

std::string one_of(const assets::AssetNode& root, std::string_view key,
                   std::span<const std::string_view> known) {
  std::string value = text(root, key);
  if (std::ranges::find(known, value) == known.end())
    root.at(key).place.fail("'{}' is '{}'; there are: {}", key, safe_display(value, 40),
                            fmt::join(known.begin(), known.end(), ", "));
  return value;
}

// Bytes, or bytes per second. Refuses 2^60 and more, which no device has.
std::optional<std::uint64_t> size(const assets::AssetNode& root, std::string_view key) {
  const assets::AssetNode* const node = root.find(key);
  if (node == nullptr) return std::nullopt;
  const std::string what = fmt::format("'{}'", key);
  std::uint64_t bytes = 0;
  try {
    bytes = parse_size(node->name(what, assets::kMostAssetName), what);
  } catch (const Error& error) {
    node->place.fail(error.what());
  }
  if (bytes == 0 || bytes >> 60 != 0) node->place.fail("{} is {}", what, format_grouped(bytes));
  return bytes;
}

std::vector<std::pair<std::string, std::string>> options_of(const assets::AssetNode& node) {
  auto options = node.pairs("'options'", load_options().size(), assets::kMostAssetName);
  LoadRequest request;
  for (const auto& [id, value] : options) try {
      set_load_option(request, id, value);
    } catch (const Error& error) {
      node.place.fail(error.what());
    }
  return options;
}

}  // namespace

Target parse_target(std::string_view json, const std::string& path) {
  constexpr std::array<std::string_view, 5> kClasses = {"phone", "laptop", "desktop", "server", "board"};
  constexpr std::array<std::string_view, 2> kMemories = {"discrete", "unified"};
  const assets::AssetNode root = assets::parse_asset(json, path);
  root.allow({"id", "name", "class", "memory", "device_bytes", "host_bytes", "device_bandwidth",
              "link_bandwidth", "options", "source"});
  Target target;
  target.id = text(root, "id");
  target.name = text(root, "name");
  target.device_class = one_of(root, "class", kClasses);
  target.memory = plan::memory_kind(one_of(root, "memory", kMemories));
  target.device_bytes = size(root, "device_bytes");
  target.host_bytes = size(root, "host_bytes");
  target.device_bandwidth = size(root, "device_bandwidth");
  target.link_bandwidth = size(root, "link_bandwidth");
  if (const assets::AssetNode* const options = root.find("options")) target.options = options_of(*options);
  target.source = text(root, "source");
  const bool unified = target.memory == plan::MemoryKind::unified;
  root.at(unified ? "host_bytes" : "device_bytes");  // the one that is required
  if (unified && target.device_bytes && *target.device_bytes > *target.host_bytes)
    root.at("device_bytes")
        .place.fail("'device_bytes' {} is more than the one memory's 'host_bytes' {}",
                    format_grouped(*target.device_bytes), format_grouped(*target.host_bytes));
  return target;
}

Target machine_target(const MachineMemory& machine) {
  const bool own = machine.device && !machine.device->unified;
  Target target;
  target.id = kThisMachine;
  target.name = machine.device ? "This machine: " + machine.device->name : "This machine";
  target.device_class = "here";
  target.memory = own ? plan::MemoryKind::discrete : plan::MemoryKind::unified;
  target.host_bytes = machine.system;
  if (own) target.device_bytes = machine.device->bytes;
  if (machine.device && !own) target.device_bytes = std::min(machine.device->bytes, machine.system);
  target.source = "what the system and its GPU could give when it was asked";
  return target;
}

const Target& find_target(std::span<const Target> targets, std::string_view id) {
  return find_row(targets, id, "data sheet");
}

std::span<const Target> built_in_targets() {
  static const auto rows = assets::parse_all(embedded::targets_files(), parse_target);
  return rows;
}

Targets load_targets(const std::string& folder) {
  Targets targets;
  targets.rows.assign(built_in_targets().begin(), built_in_targets().end());
  if (folder.empty()) return targets;
  assets::add_folder(folder + "/targets", targets.rows, &Target::id, parse_target, targets.faults);
  return targets;
}

Budget target_budget(const Target& target, plan::MemoryKind memory) {
  Budget budget;
  const bool shares = target.memory == plan::MemoryKind::unified;
  if (memory == plan::MemoryKind::unified) {
    budget.unified = shares ? target.host_bytes : target.device_bytes;
    if (shares) budget.device = target.device_bytes;
  } else {
    budget.device = target.device_bytes ? target.device_bytes : target.host_bytes;
    if (!shares) budget.host = target.host_bytes;
  }
  return budget;
}

plan::CostModel target_costs(const Target& target, plan::CostModel costs) {
  // a copy inside the device's memory reads and writes each byte
  if (target.device_bandwidth) costs.device_copy = static_cast<double>(*target.device_bandwidth) / 2;
  if (target.link_bandwidth) {
    costs.link = static_cast<double>(*target.link_bandwidth);
    costs.pageable_link = std::min(costs.pageable_link, costs.link);
  }
  // data sheets do not say how fast a driver gives memory, and another device's drivers say nothing of it
  costs.staging_pages = costs.device_pages = plan::CostModel::kUncounted;
  return costs;
}

}  // namespace loadline::load
