// Hugging Face config.json: model_type and the sizes of its family (core/forward/config_graph.h).
#include "importers/huggingface/config.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/config_graph.h"

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::size_t kMostConfig = 4 << 20;

}  // namespace

Match sniff_hf_config(std::span<const std::byte> head, std::string_view path) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return Match::no;
  const bool named = path == "config.json" || path.ends_with("/config.json");
  return named || text.find("\"model_type\"") != std::string_view::npos ||
                 text.find("\"architectures\"") != std::string_view::npos
             ? Match::maybe
             : Match::no;
}

MetaGraph read_hf_config(const Source& source) {
  if (source.file->size() > kMostConfig)
    throw Error(ErrorCode::limit, {.file = source.file->path()}, "too large for a config.json (over 4 MiB)");
  const std::vector<std::byte> bytes = source.file->head(kMostConfig);
  MetaGraph graph = config_graph({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                 source.file->path(), *(source.assets ? source.assets() : built_in_assets()));
  graph.files.push_back({source.file->path(), source.file->size()});
  return graph;
}

void add_config(const Source& source, MetaGraph& graph) {
  const auto file = source.open_sibling("config.json");
  if (!file) return;
  if (file->size() > kMostConfig) {
    graph.notes.push_back(
        {Severity::warning, {}, fmt::format("config.json has {} bytes and was not read", file->size())});
    return;
  }
  const std::vector<std::byte> bytes = file->head(kMostConfig);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!is_valid_utf8(text)) {
    graph.notes.push_back({Severity::warning, {}, "config.json is not UTF-8 and was not read"});
    return;
  }
  graph.metadata.push_back({std::string(kConfigKey), std::move(text)});
}

}  // namespace loadline
