// The table of rates, and the file format.
#include "core/load/request/rates.h"

#include "core/assets/asset_file.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::load {
namespace {

// From the speed of a floppy disk to a thousand times that of the fastest memory.
constexpr double kLeastRate = 1e3, kMostRate = 1e16;

constexpr std::array<RateRow, 10> kRows = {{
    {"disk_read", "disk read", &plan::CostModel::disk_read, false, kLeastRate, kMostRate},
    {"disk_write", "disk write", &plan::CostModel::disk_write, false, kLeastRate, kMostRate},
    {"memory_copy", "memory copy", &plan::CostModel::memory_copy, false, kLeastRate, kMostRate},
    {"link", "staging to device", &plan::CostModel::link, true, kLeastRate, kMostRate},
    {"pageable_link", "ordinary memory to device", &plan::CostModel::pageable_link, true, kLeastRate,
     kMostRate},
    {"device_copy", "on the device", &plan::CostModel::device_copy, true, kLeastRate, kMostRate},
    {"host_pages", "new memory", &plan::CostModel::host_pages, false, kLeastRate, kMostRate},
    {"staging_pages", "new staging", &plan::CostModel::staging_pages, true, kLeastRate, kMostRate},
    {"device_pages", "new device memory", &plan::CostModel::device_pages, true, kLeastRate, kMostRate},
    {"seek_seconds", "random read", &plan::CostModel::seek_seconds, false, 1e-9, 100},
}};

constexpr std::size_t kLongestText = 300;  // a device's name has up to 255 bytes
constexpr std::size_t kMostQueues = 64;    // Vulkan devices have up to about ten families

double number(const assets::AssetNode& node, std::string_view key, double least, double most) {
  const std::string& text = node.name(fmt::format("'{}'", key), assets::kMostAssetName);
  const auto value = text_as<double>(text);
  if (!value || !std::isfinite(*value))
    node.place.fail("'{}' is '{}', which is not a number", key, safe_display(text, 40));
  if (*value < least || *value > most)
    node.place.fail("'{}' is {}, not within {} and {}", key, *value, least, most);
  return *value;
}

std::map<std::string, double, std::less<>> queue_rates(const assets::AssetNode& root) {
  std::map<std::string, double, std::less<>> rates;
  assets::for_each_field(root, "queues", kMostQueues,
                         [&](const std::string& key, const assets::AssetNode& node) {
                           rates[key] = number(node, safe_display(key, 40), kLeastRate, kMostRate);
                         });
  return rates;
}

}  // namespace

std::span<const RateRow> rate_rows() { return kRows; }

plan::CostModel MeasuredRates::costs(plan::CostModel costs) const {
  for (const RateRow& row : kRows)
    if (const auto found = values.find(row.key); found != values.end()) costs.*row.member = found->second;
  return costs;
}

std::string rates_line(const std::optional<MeasuredRates>& rates) {
  if (!rates) return "Times by assumed rates.";
  const bool of_device = std::ranges::any_of(
      kRows, [&](const RateRow& row) { return row.of_device && rates->values.contains(row.key); });
  return fmt::format("Times by rates measured on {}{}.", safe_display(rates->measured, 40),
                     of_device ? "" : ", but for those of a device");
}

MeasuredRates parse_rates(std::string_view json, const std::string& path) {
  const assets::AssetNode root = assets::parse_asset(json, path);
  root.allow({"measured", "device", "how", "disk_read", "disk_write", "memory_copy", "link", "pageable_link",
              "device_copy", "host_pages", "staging_pages", "device_pages", "seek_seconds", "queues"});
  MeasuredRates rates;
  const assets::AssetNode& measured = root.at("measured");
  rates.measured = measured.name("'measured'", kLongestText);
  if (rates.measured.empty()) measured.place.fail("'measured' is empty");
  if (const assets::AssetNode* const device = root.find("device"))
    rates.device = device->name("'device'", kLongestText);
  for (const RateRow& row : kRows)
    if (const assets::AssetNode* const node = root.find(row.key))
      rates.values.emplace(row.key, number(*node, row.key, row.least, row.most));
  if (rates.values.empty()) root.place.fail("there is no rate in it");
  rates.queues = queue_rates(root);
  if (const assets::AssetNode* const how = root.find("how"))
    for (auto& [key, text] : how->pairs("'how'", kRows.size(), kLongestText)) rates.how.emplace(key, text);
  return rates;
}

MeasuredRates read_rates(const std::string& path) { return parse_rates(assets::asset_text(path), path); }

std::string rates_text(const MeasuredRates& rates) {
  nlohmann::ordered_json json = {{"measured", rates.measured}};
  if (!rates.device.empty()) json["device"] = safe_display(rates.device, kLongestText);
  for (const RateRow& row : kRows)
    if (const auto found = rates.values.find(row.key); found != rates.values.end())
      json[found->first] = found->second;
  for (const auto& [family, rate] : rates.queues) json["queues"][safe_display(family, kLongestText)] = rate;
  for (const auto& [key, text] : rates.how) json["how"][key] = safe_display(text, kLongestText / 2);
  return json.dump(2) + "\n";
}

}  // namespace loadline::load
