// A model's config.json for look-ups by expressions.
#pragma once

#include "core/assets/expression.h"
#include "core/base/error.h"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::forward {

// A value of a configuration, as JSON shows it.
struct Setting {
  std::string name;   // as ModelConfig::get() takes it: "rope_scaling.factor"
  std::string shown;  // shortened
};

// Keys are dotted paths: "rope_scaling.factor", "blocks.3.heads". A multimodal model keeps the settings of
// its language model in text_config or the like: keys are looked up there, unless the top level has a
// hidden_size and layers. Of the top level only what holds for all parts is read too, such as dtype;
// tie_word_embeddings is read there first. "root.KEY" always reads the top level. "rope.KEY" reads the rotary
// embedding's settings wherever they are, as transformers does: in rope_scaling, else in rope_parameters, and
// some beside them. A number such as 2.0 is a whole number. NaN and Infinity are read as Python does.
class ModelConfig {
 public:
  // Throws Error{malformed} naming `path` for anything but a JSON object of bounded depth, and if
  // "architectures" is no list.
  ModelConfig(std::string_view json, const std::string& path);

  // The value under `key`; null if the key is absent or its value is null. Throws Error{limit} for a list of
  // more than 100,000 values.
  assets::Datum get(std::string_view key) const;
  // Whether there is such a key, be its value null.
  bool given(std::string_view key) const;
  // All values that are neither null nor objects of some fields; of more than 10,000 the first, and one that
  // stands for the rest.
  std::vector<Setting> settings() const;
  // The text under `key`, or `otherwise` if there is none. Throws Error{malformed} for a value of another
  // kind.
  std::string text(std::string_view key, std::string_view otherwise) const;
  // "model_type", and the class names under "architectures".
  std::string model_type() const { return text("model_type", ""); }
  std::vector<std::string> architectures() const;
  // The first of these keys that holds a whole number above 0.
  std::optional<std::uint64_t> first_count(std::initializer_list<std::string_view> keys) const;
  // "dtype", once "torch_dtype", as torch's own names are: without "torch."; or `otherwise`.
  std::string dtype_name(std::string_view otherwise) const;

  // Whether the keys looked up are those of a language model inside another model.
  bool is_part_of_another() const;
  // Objects at the top that describe parts beside the one whose keys are looked up: "vision_config".
  std::vector<std::string> other_parts() const;

  const std::string& path() const { return path_; }
  Error fail(std::string_view detail, ErrorCode code = ErrorCode::malformed) const {
    return Error(code, {.file = path_}, detail);
  }
  template <typename First, typename... Rest>
  Error fail(fmt::format_string<First, Rest...> detail, const First& first, const Rest&... rest) const {
    return fail(fmt::vformat(detail, fmt::make_format_args(first, rest...)));
  }

 private:
  struct Json;

  std::string path_;
  std::shared_ptr<const Json> json_;
};

}  // namespace loadline::forward
