// Which settings of a configuration a reader has used, and which it has not accounted for.
#pragma once

#include "core/forward/family/model_config.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace loadline::forward {

// What a setting that no reader uses can change at most.
enum class Reach : std::uint8_t {
  nothing,  // neither results nor sizes
  numbers,  // results, but no size
  sizes,    // what a pass keeps, but no result
};

// Why the setting reaches no further than what is asked about in any model, in words; empty if it may.
// `nothing` asks about results, `numbers` about sizes.
std::string_view why_unused(std::string_view setting, Reach reach);

// The settings that the lines of an asset read: what a message about a misfit names, and what is left.
class SettingsRead {
 public:
  void begin_line() { read_.clear(); }
  // An expression of the current line reads a name: a setting, or what an earlier line has defined.
  void note(std::string_view name);
  // The name is one of a setting, which the configuration has or lacks.
  void is_setting(std::string_view name, bool held) { held_.insert_or_assign(std::string(name), held); }
  // What the current line has read makes up this name.
  void define(std::string_view name);

  // The settings that the current line depends on, by what it reads itself and by what others have defined.
  std::vector<std::string> settings() const;

  // For an Error about the configuration. `message` is that of a fault in the asset at `path`, "FILE: line 1,
  // column 2: DETAIL": DETAIL comes first, then the place with the settings that the current line depends on.
  std::string misfit(std::string_view message, const std::string& path) const;

  // Of these settings, those that no line has read and that reach further than `reach`.
  std::vector<Setting> unaccounted(std::vector<Setting> settings, Reach reach) const;
  // Whether any line has read it.
  bool reads(std::string_view setting) const;
  // Whether "rope.KEY" finds the setting of this name.
  static bool stands_for(std::string_view setting, std::string_view name);

 private:
  std::vector<std::string> read_;                                            // by the current line, each once
  std::map<std::string, std::vector<std::string>, std::less<>> defined_by_;  // settings
  std::map<std::string, bool, std::less<>> held_;                            // by setting, of all lines
};

// --- What config.json says of packed weights (quantization_config, MLX's quantization, compression_config).

// What is made of the settings.
enum class PackedUse : std::uint8_t {
  unpack,   // numbers, from the parts that the files hold
  stored,   // sizes, of the parts that the files hold
  foretell  // sizes, from the settings alone
};

// Of these settings, those of packed weights that the use of them does not account for.
std::vector<Setting> unaccounted_packing(const std::vector<Setting>& settings, PackedUse use);

// --- What generation_config.json says, and config.json of older models.

// Of these settings, those for which generate() keeps another cache, or runs something else, than one pass
// after another with a cache of the tokens seen. Names begin with "generation_config." where they stand in
// that file.
std::vector<Setting> unaccounted_generation(const std::vector<Setting>& settings);
// The settings in the text of that file. Throws Error{malformed} for what is no JSON object.
std::vector<Setting> generation_settings(std::string_view text);
// Such a setting as a note of the graph, and read from one; nothing from another note.
std::string generation_note(const Setting& setting);
std::optional<Setting> setting_of_note(std::string_view note);

// "'sliding_window' is 16, 'truncate' is false".
std::string settings_text(const std::vector<Setting>& settings);

// --- The same for other files that hold one JSON object, such as adapter_config.json.

// A setting that changes nothing of what its reader makes, whatever its value.
struct Unused {
  std::string_view pattern;  // a glob over dotted names
  std::string_view why;
};

// All values of the object that are neither null nor empty lists, nor objects of some fields, nor read, nor
// without effect. `read`: names, each of which stands for all that is in it. Of more than 10,000 values the
// first, and one for the rest. The depth of the object must be bounded.
std::vector<Setting> unaccounted(const nlohmann::ordered_json& object,
                                 const std::set<std::string, std::less<>>& read,
                                 std::span<const Unused> unused);

}  // namespace loadline::forward
