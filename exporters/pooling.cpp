// modules.json: [{"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}, ...]
#include "exporters/pooling.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/model_config.h"
#include "core/io/source_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;

std::optional<std::string> text_of(const std::vector<FolderFile>& files, const std::string& name,
                                   std::vector<std::string>& files_read) {
  const auto found = std::ranges::find(files, name, &FolderFile::name);
  if (found == files.end()) return std::nullopt;
  if (found->bytes > kMostBytes)
    throw Error(ErrorCode::limit, {.file = found->path}, "has {} bytes, the limit is {}", found->bytes,
                kMostBytes);
  files_read.push_back(name);
  return SourceFile::open(found->path).head(kMostBytes);
}

// The folder of the pooling module.
std::optional<std::string> pooling_folder(const std::string& modules) {
  const auto list = nlohmann::json::parse(modules, nullptr, false);
  if (!list.is_array()) throw Error(ErrorCode::malformed, {.file = "modules.json"}, "is no list of modules");
  for (const auto& module : list) {
    if (!module.is_object() || !module.contains("type") || !module["type"].is_string() ||
        !module.contains("path") || !module["path"].is_string())
      continue;
    if (module["type"].get<std::string>().ends_with("Pooling")) return module["path"].get<std::string>();
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> pooling_type(const std::vector<FolderFile>& files,
                                          std::vector<std::string>& files_read) {
  const auto modules = text_of(files, "modules.json", files_read);
  const auto folder = modules ? pooling_folder(*modules) : std::nullopt;
  if (!folder) return std::nullopt;
  const std::string name = folder->empty() ? std::string(kConfigKey) : *folder + "/config.json";
  const auto text = text_of(files, name, files_read);
  if (!text) return std::nullopt;
  const ModelConfig config(*text, name);
  constexpr std::array<std::pair<std::string_view, std::uint32_t>, 3> kFlags = {
      {{"pooling_mode_mean_tokens", 1}, {"pooling_mode_cls_token", 2}, {"pooling_mode_lasttoken", 3}}};
  for (const auto& [flag, type] : kFlags)
    if (config.get(flag).truth()) return type;
  constexpr std::array<std::pair<std::string_view, std::uint32_t>, 3> kModes = {
      {{"mean", 1}, {"cls", 2}, {"lasttoken", 3}}};
  const std::string mode = config.text("pooling_mode", "");
  for (const auto& [word, type] : kModes)
    if (mode == word) return type;
  throw config.fail(
      "llama.cpp takes the mean of all tokens, the first or the last one, this model none of them",
      ErrorCode::unsupported);
}

}  // namespace loadline
