// Edits the parsed object; loaders take the types of weights from it, not from the weights.
#include "exporters/cast_config.h"

#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

namespace loadline {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 2> kTypes = {"dtype", "torch_dtype"};
constexpr std::array<const char*, 3> kPackings = {"quantization_config", "quantization",
                                                  "compression_config"};
constexpr int kMostDepth = 64;

// Sets the types that an object has; whether it had any.
bool set_types(Json& object, std::string_view name) {
  bool any = false;
  for (const char* const key : kTypes)
    if (const auto found = object.find(key);
        found != object.end() && (found->is_string() || found->is_null())) {
      *found = name;
      any = true;
    }
  return any;
}

}  // namespace

std::string cast_config(const std::string& text, DType outtype, bool unpacked) {
  bool deep = false;
  const auto measure = [&](int depth, Json::parse_event_t, Json&) {
    deep |= depth > kMostDepth;
    return depth <= kMostDepth;
  };
  Json config = Json::parse(text, measure, false);
  if (deep || !config.is_object()) return text;
  const std::string_view name = dtype_info(outtype).torch;
  bool any = set_types(config, name);
  const auto edit = [&](Json& object) {
    if (unpacked)
      for (const char* const key : kPackings) object.erase(key);
  };
  edit(config);
  for (auto& [key, value] : config.items())
    if (value.is_object() && key.ends_with("_config")) {
      any |= set_types(value, name);
      edit(value);
    }
  if (!any) config["torch_dtype"] = name;
  return config.dump(2) + "\n";
}

}  // namespace loadline
