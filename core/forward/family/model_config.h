// A model's config.json for look-ups by expressions, and which settings an asset has read.
#pragma once

#include "core/assets/expression.h"
#include "core/base/error.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::forward {

// --- A model's config.json, for look-ups by expressions.

// Keys are dotted paths: "rope_scaling.factor". A multimodal model keeps the settings of its text part in
// text_config: keys are looked up there first, unless the top level has a hidden_size. "root.KEY" always
// reads the top level. A number such as 2.0 is a whole number.
class ModelConfig {
 public:
  // Throws Error{malformed} naming `path` for anything but a JSON object of bounded depth, and if
  // "architectures" is no list.
  ModelConfig(std::string_view json, const std::string& path);

  // The value under `key`; null if the key is absent or its value is null. Throws Error{limit} for a list of
  // more than 100,000 values.
  assets::Datum get(std::string_view key) const;
  // The text under `key`, or `otherwise` if there is none. Throws Error{malformed} for a value of another
  // kind.
  std::string text(std::string_view key, std::string_view otherwise) const;
  // "model_type", and the class names under "architectures".
  std::string model_type() const { return text("model_type", ""); }
  std::vector<std::string> architectures() const;

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
  assets::Datum find_value(std::string_view key) const;

  std::string path_;
  std::shared_ptr<const Json> json_;
};

// --- Which settings of a configuration the lines of an asset read: what a message about a misfit names.

class SettingsRead {
 public:
  void begin_line() { read_.clear(); }
  // An expression of the current line reads a name: a setting, or what an earlier line has defined.
  void note(std::string_view name);
  // The name is one of a setting, which the configuration has or lacks.
  void is_setting(std::string_view name, bool held) { held_.insert_or_assign(std::string(name), held); }
  // What the current line has read makes up this name.
  void define(std::string_view name);

  // For an Error about the configuration. `message` is that of a fault in the asset at `path`, "FILE: line 1,
  // column 2: DETAIL": DETAIL comes first, then the place with the settings that the current line depends on.
  std::string misfit(std::string_view message, const std::string& path) const;

 private:
  std::vector<std::string> settings() const;

  std::vector<std::string> read_;                                            // by the current line, each once
  std::map<std::string, std::vector<std::string>, std::less<>> defined_by_;  // settings
  std::map<std::string, bool, std::less<>> held_;                            // by setting
};

}  // namespace loadline::forward
