// The names that Hugging Face libraries give to weight files.
#pragma once

#include <optional>
#include <string_view>

namespace loadline {

inline constexpr std::string_view kHfIndexSuffix = ".safetensors.index.json";
inline constexpr std::string_view kHfTorchIndexSuffix = ".bin.index.json";

// "model" of "model-00001-of-00003.safetensors", "pytorch_model" of "pytorch_model-00001-of-00003.bin";
// nothing for any other name.
std::optional<std::string_view> hf_shard_stem(std::string_view name);

// Whether `name` is the weight file, a shard or the index of the main model in a model folder.
bool is_hf_weight_file(std::string_view name);

}  // namespace loadline
