// Hugging Face config.json: the model_type and the sizes that its family needs (core/forward/config_graph.h).
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/model/config_graph.h"
#include "importers/formats.h"

namespace loadline {
namespace {

constexpr std::size_t kMostConfig = 4 << 20;

}  // namespace

Match sniff_hf_config(std::string_view head, std::string_view path) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] != '{') return Match::no;
  const bool named = path == "config.json" || path.ends_with("/config.json");
  return named || head.find("\"model_type\"") != std::string_view::npos ||
                 head.find("\"architectures\"") != std::string_view::npos
             ? Match::maybe
             : Match::no;
}

MetaGraph read_hf_config(const Source& source) {
  if (source.file->size() > kMostConfig)
    throw Error(ErrorCode::limit, {.file = source.file->path()}, "too large for a config.json (over 4 MiB)");
  MetaGraph graph = config_graph(source.file->head(kMostConfig), source.file->path(),
                                 *(source.assets ? source.assets() : built_in_assets()));
  graph.files.push_back({source.file->path(), source.file->size()});
  return graph;
}

void add_config(const Source& source, MetaGraph& graph) {
  const auto file = source.open_sibling("config.json");
  if (!file) return;
  if (file->size() > kMostConfig)
    return graph.note(Severity::warning, {}, "config.json has {} bytes and was not read", file->size());
  std::string text = file->head(kMostConfig);
  if (!is_valid_utf8(text))
    return graph.note(Severity::warning, {}, "config.json is not UTF-8 and was not read");
  graph.metadata.push_back({std::string(kConfigKey), std::move(text)});
}

}  // namespace loadline
