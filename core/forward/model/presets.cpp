// The table of presets, whose configurations are embedded from assets/models by file name.
#include "core/forward/model/presets.h"

#include "core/base/option.h"
#include "embedded/models_files.h"

#include <vector>

namespace loadline {
namespace {

constexpr std::uint64_t kHubShard = 5'000'000'000;       // huggingface_hub's default
constexpr std::uint64_t kDemoShard = 24'000'000;         // three shards, small enough to look at
constexpr std::uint64_t kDeepSeekShard = 4'270'000'000;  // 163 shards, as published

std::uint64_t shard_bytes(std::string_view id) {
  if (id == "demo") return kDemoShard;
  return id == "deepseek-v3" ? kDeepSeekShard : kHubShard;
}

std::vector<Preset> load_presets() {
  std::vector<Preset> rows;
  for (const embedded::File& file : embedded::models_files()) {
    const std::string_view id = file.name.substr(0, file.name.rfind('.'));
    rows.push_back({id, file.bytes, shard_bytes(id)});
  }
  return rows;
}

}  // namespace

std::span<const Preset> presets() {
  static const std::vector<Preset> rows = load_presets();
  return rows;
}

const Preset* find_preset(std::string_view id) { return find_option(presets(), id); }

}  // namespace loadline
