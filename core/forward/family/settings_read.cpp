// Follows defined names back to the settings that they were made from.
#include "core/forward/family/settings_read.h"

#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::size_t kMostRead = 16, kMostSettings = 8;  // of one line

void add_once(std::vector<std::string>& names, std::string_view name, std::size_t most) {
  if (names.size() < most && std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

}  // namespace

void SettingsRead::note(std::string_view name) { add_once(read_, name, kMostRead); }

void SettingsRead::define(std::string_view name) {
  defined_by_.insert_or_assign(std::string(name), settings());
}

std::vector<std::string> SettingsRead::settings() const {
  std::vector<std::string> found;
  for (const std::string& name : read_) {
    const auto defined = defined_by_.find(name);
    if (defined != defined_by_.end())
      for (const std::string& setting : defined->second) add_once(found, setting, kMostSettings);
    else if (held_.contains(name))
      add_once(found, name, kMostSettings);
  }
  return found;
}

std::string SettingsRead::misfit(std::string_view message, const std::string& path) const {
  const std::string begin = path + ": line ";
  const std::size_t end = message.starts_with(begin) ? message.find(": ", begin.size()) : message.npos;
  if (end == message.npos) return fmt::format("does not fit the architecture: {}", message);
  std::string held, lacking;
  for (const std::string& setting : settings()) {
    std::string& list = held_.find(setting)->second ? held : lacking;
    list += fmt::format("{}'{}'", list.empty() ? "" : ", ", safe_display(setting, 60));
  }
  std::string reads = held.empty() ? "" : ", which reads " + held;
  if (!lacking.empty()) reads += "; not set: " + lacking;
  return fmt::format("does not fit the architecture: {} ({}{})", message.substr(end + 2),
                     message.substr(0, end), reads);
}

}  // namespace loadline
