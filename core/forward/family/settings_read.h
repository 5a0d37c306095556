// Which settings of a configuration the lines of an asset read: what a message about a misfit names.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

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

}  // namespace loadline
