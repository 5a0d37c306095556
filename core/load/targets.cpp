// Reads presets of devices and makes budgets of them.
#include "core/load/targets.h"

#include "core/base/text.h"
#include "core/forward/asset_folder.h"
#include "core/forward/asset_json.h"
#include "embedded/targets_files.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline {
namespace {

using Kind = AssetNode::Kind;

const AssetNode& required(const AssetNode& root, std::string_view key) {
  const AssetNode* const node = root.find(key);
  if (node == nullptr) root.place.fail(fmt::format("'{}' is missing", key));
  return *node;
}

std::string text(const AssetNode& root, std::string_view key) {
  const AssetNode& node = required(root, key);
  const std::string& value = node.name(fmt::format("'{}'", key), kMostAssetName);
  if (value.empty()) node.place.fail(fmt::format("'{}' is empty", key));
  return value;
}

std::string one_of(const AssetNode& root, std::string_view key, std::span<const std::string_view> known) {
  std::string value = text(root, key);
  if (std::find(known.begin(), known.end(), value) == known.end())
    required(root, key).place.fail(fmt::format("'{}' is '{}'; there are: {}", key, safe_display(value, 40),
                                               fmt::join(known.begin(), known.end(), ", ")));
  return value;
}

// Bytes, or bytes per second. No device has 2^60 of them.
std::optional<std::uint64_t> size(const AssetNode& root, std::string_view key) {
  const AssetNode* const node = root.find(key);
  if (node == nullptr) return std::nullopt;
  const std::string what = fmt::format("'{}'", key);
  std::uint64_t bytes = 0;
  try {
    bytes = parse_size(node->name(what, kMostAssetName), what);
  } catch (const Error& error) {
    node->place.fail(error.what());
  }
  if (bytes == 0 || bytes >> 60 != 0) node->place.fail(fmt::format("{} is {}", what, format_grouped(bytes)));
  return bytes;
}

std::vector<DevicePreset> load_built_in() {
  std::vector<DevicePreset> rows;
  for (const embedded::File& file : embedded::targets_files())
    rows.push_back(parse_device_preset(file.bytes, std::string(file.name)));
  return rows;
}

}  // namespace

DevicePreset parse_device_preset(std::string_view json, const std::string& path) {
  constexpr std::array<std::string_view, 5> kClasses = {"phone", "laptop", "desktop", "server", "board"};
  constexpr std::array<std::string_view, 2> kMemories = {"discrete", "unified"};
  const AssetNode root = parse_asset(json, path);
  root.allow({"id", "name", "class", "memory", "device_bytes", "host_bytes", "device_bandwidth",
              "link_bandwidth", "source"});
  DevicePreset preset;
  preset.id = text(root, "id");
  preset.name = text(root, "name");
  preset.device_class = one_of(root, "class", kClasses);
  preset.memory = memory_kind(one_of(root, "memory", kMemories));
  preset.device_bytes = size(root, "device_bytes");
  preset.host_bytes = size(root, "host_bytes");
  preset.device_bandwidth = size(root, "device_bandwidth");
  preset.link_bandwidth = size(root, "link_bandwidth");
  preset.source = text(root, "source");
  if (preset.memory == MemoryKind::unified) {
    required(root, "host_bytes");
    if (preset.device_bytes && *preset.device_bytes > *preset.host_bytes)
      required(root, "device_bytes")
          .place.fail(fmt::format("'device_bytes' {} is more than the one memory's 'host_bytes' {}",
                                  format_grouped(*preset.device_bytes), format_grouped(*preset.host_bytes)));
  } else {
    required(root, "device_bytes");
  }
  return preset;
}

const DevicePreset& DevicePresets::find(std::string_view id) const {
  std::string known;
  for (const DevicePreset& row : rows) {
    if (row.id == id) return row;
    known += (known.empty() ? "" : ", ") + safe_display(row.id, 60);
  }
  throw Error(ErrorCode::usage,
              fmt::format("no device is called '{}'; there are: {}", safe_display(id, 60), known));
}

std::span<const DevicePreset> built_in_devices() {
  static const std::vector<DevicePreset> rows = load_built_in();
  return rows;
}

DevicePresets load_device_presets(const std::string& folder) {
  DevicePresets presets;
  presets.rows.assign(built_in_devices().begin(), built_in_devices().end());
  if (!folder.empty())
    add_folder(folder + "/devices", presets.rows, &DevicePreset::id, parse_device_preset, presets.faults);
  return presets;
}

Budget device_budget(const DevicePreset& preset, MemoryKind memory) {
  Budget budget;
  const bool shares = preset.memory == MemoryKind::unified;
  if (memory == MemoryKind::unified) {
    budget.unified = shares ? preset.host_bytes : preset.device_bytes;
    if (shares) budget.device = preset.device_bytes;
  } else {
    budget.device = preset.device_bytes ? preset.device_bytes : preset.host_bytes;
    if (!shares) budget.host = preset.host_bytes;
  }
  return budget;
}

CostModel device_costs(const DevicePreset& preset, CostModel costs) {
  // a copy inside the device's memory reads and writes each byte
  if (preset.device_bandwidth) costs.device_copy = static_cast<double>(*preset.device_bandwidth) / 2;
  if (preset.link_bandwidth) {
    costs.link = static_cast<double>(*preset.link_bandwidth);
    costs.pageable_link = std::min(costs.pageable_link, costs.link);
  }
  return costs;
}

}  // namespace loadline
