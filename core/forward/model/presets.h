// Built-in configurations: published models' config.json by a short name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace loadline {

struct Preset {
  std::string_view id;           // "llama-3-8b"
  std::string_view config_json;  // the whole text
  std::uint64_t max_shard_bytes = 0;
};

std::span<const Preset> presets();
const Preset* find_preset(std::string_view id);

}  // namespace loadline
