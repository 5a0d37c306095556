// JSON, read with every value in doubt.
#include "app/gui/state/settings.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/source_file.h"
#include "core/load/request/request.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>

#include <nlohmann/json.hpp>

namespace loadline::gui {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostBytes = 1 << 20;
constexpr float kMostSize = 10'000;
constexpr std::size_t kMostPath = 4096;

bool flag(const Json& json, const char* key, bool otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

float size(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return 0;
  const auto value = found->get<double>();
  return std::isfinite(value) && value > 0 && value < kMostSize ? static_cast<float>(value) : 0;
}

Json paths_json(const std::vector<std::string>& paths) {
  Json list = Json::array();
  for (const std::string& path : paths)
    if (is_valid_utf8(path)) list.push_back(path);
  return list;
}

std::vector<std::string> paths(const Json& json, const char* key, std::size_t most) {
  std::vector<std::string> list;
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) return list;
  for (const Json& path : *found) {
    if (list.size() == most) break;
    if (path.is_string() && path.get_ref<const std::string&>().size() <= kMostPath)
      list.push_back(path.get<std::string>());
  }
  return list;
}

// "path": seconds; what is no such pair is left out.
std::map<std::string, std::int64_t> times(const Json& json, const char* key) {
  std::map<std::string, std::int64_t> all;
  const auto found = json.find(key);
  if (found == json.end() || !found->is_object()) return all;
  for (const auto& [path, time] : found->items())
    if (path.size() <= kMostPath && time.is_number_unsigned() && all.size() < kMostUsedPaths)
      all.emplace(path,
                  static_cast<std::int64_t>(std::min<std::uint64_t>(time.get<std::uint64_t>(), INT32_MAX)));
  return all;
}

std::uint64_t tokens(const Json& json, const char* key, std::uint64_t least, std::uint64_t otherwise) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return otherwise;
  const auto value = found->get<std::uint64_t>();
  return value >= least && value <= load::kMostTokens ? value : otherwise;
}

}  // namespace

std::string state_text(const WindowState& state) {
  Json json = {{"dark", state.dark},
               {"follows_desktop", state.follows_desktop},
               {"scale", state.scale},
               {"tree", state.layout.tree},
               {"inspector", state.layout.inspector},
               {"timeline", state.layout.timeline},
               {"show_tree", state.layout.show_tree},
               {"show_inspector", state.layout.show_inspector},
               {"show_timeline", state.layout.show_timeline},
               {"width", state.width},
               {"height", state.height},
               {"recent", paths_json(state.recent)},
               {"favorites", paths_json(state.favorites)},
               {"folders", paths_json(state.folders)},
               {"prompt", state.prompt},
               {"context", state.context},
               {"used", Json::object()}};
  for (const auto& [path, time] : state.used)
    if (is_valid_utf8(path)) json["used"][path] = static_cast<std::uint64_t>(std::max<std::int64_t>(time, 0));
  return json.dump(2) + "\n";
}

WindowState parse_state(std::string_view text) {
  WindowState state;
  const Json json = small_json<Json>(text);
  if (!json.is_object()) return state;
  state.dark = flag(json, "dark", state.dark);
  state.follows_desktop = flag(json, "follows_desktop", state.follows_desktop);
  if (const float scale = size(json, "scale"); scale >= 0.5f && scale <= 4) state.scale = scale;
  state.layout.tree = size(json, "tree");
  state.layout.inspector = size(json, "inspector");
  state.layout.timeline = size(json, "timeline");
  state.layout.show_tree = flag(json, "show_tree", true);
  state.layout.show_inspector = flag(json, "show_inspector", true);
  state.layout.show_timeline = flag(json, "show_timeline", true);
  state.width = static_cast<int>(size(json, "width"));
  state.height = static_cast<int>(size(json, "height"));
  state.recent = paths(json, "recent", kMostRecent);
  state.favorites = paths(json, "favorites", kMostFavorites);
  state.folders = paths(json, "folders", kMostFavorites);
  state.prompt = tokens(json, "prompt", 1, state.prompt);
  state.context = tokens(json, "context", 0, 0);
  state.used = times(json, "used");
  return state;
}

WindowState read_state(const std::string& path) {
  try {
    return parse_state(io::SourceFile::open(path).head(kMostBytes));
  } catch (const Error&) {
    return {};
  }
}

void write_state(const WindowState& state, const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  if (failed) throw Error(ErrorCode::io, {.file = path}, "cannot make its folder: {}", failed.message());
  const std::string text = state_text(state);
  io::AtomicFile file(path);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.commit();
}

void remember(Remembered& remembered, const std::string& path, std::int64_t now) {
  std::vector<std::string>& recent = remembered.recent;
  std::map<std::string, std::int64_t>& used = remembered.used;
  used[path] = now;
  if (used.size() > kMostUsedPaths)
    used.erase(std::ranges::min_element(used, {}, [](const auto& one) { return one.second; }));
  std::erase(recent, path);
  recent.insert(recent.begin(), path);
  if (recent.size() > kMostRecent) recent.resize(kMostRecent);
}

}  // namespace loadline::gui
