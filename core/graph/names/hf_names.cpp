// Recognises file names (huggingface_hub serialization/_base.py).
#include "core/graph/names/hf_names.h"

#include <string>

namespace loadline {
namespace {

// Removes five or six digits from the end of `text`; false if they are not there.
bool drop_number(std::string_view& text) {
  const std::size_t before = text.find_last_not_of("0123456789");
  const std::size_t digits = text.size() - (before == std::string_view::npos ? 0 : before + 1);
  text.remove_suffix(digits);
  return digits == 5 || digits == 6;
}

bool drop_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::optional<std::string_view> hf_shard_stem(std::string_view name) {
  if ((drop_suffix(name, ".safetensors") || drop_suffix(name, ".bin")) && drop_number(name) &&
      drop_suffix(name, "-of-") && drop_number(name) && drop_suffix(name, "-") && !name.empty())
    return name;
  return std::nullopt;
}

bool is_hf_weight_file(std::string_view name) {
  return name == "model.safetensors" || name == std::string("model").append(kHfIndexSuffix) ||
         (name.ends_with(".safetensors") && hf_shard_stem(name) == "model");
}

}  // namespace loadline
