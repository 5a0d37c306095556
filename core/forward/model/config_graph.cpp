// Makes a graph without files from the tensors that the architecture expects for a configuration.
#include "core/forward/model/config_graph.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/bind.h"
#include "core/graph/packed/find_logical.h"

#include <fmt/format.h>

namespace loadline {

MetaGraph config_graph(std::string_view config_json, const std::string& path, const ForwardAssets& assets) {
  const ModelConfig config(config_json, path);
  const Architecture* const architecture = assets.architecture(config);
  if (architecture == nullptr) {
    std::string known;
    for (const Architecture& row : assets.architectures)
      for (const std::string& name : row.model_types) known += (known.empty() ? "" : ", ") + name;
    throw config.fail(fmt::format("model_type '{}' has no known shapes; known: {}",
                                  safe_display(config.model_type(), 60), known),
                      ErrorCode::unsupported);
  }
  const BoundModel model = bind_architecture(*architecture, config, nullptr);
  MetaGraph graph;
  graph.format = "config";
  graph.metadata.push_back({std::string(kConfigKey), std::string(config_json)});
  std::vector<std::string_view> texts;
  for (const BoundWeight& weight : model.asked) texts.push_back(weight.name);
  std::vector<Name> names = Name::many(texts);
  for (std::size_t i = 0; i < model.asked.size(); ++i) {
    const BoundWeight& weight = model.asked[i];
    const StorageId storage{static_cast<std::uint32_t>(graph.storages.size())};
    // bind_architecture() has checked that the size fits
    graph.storages.push_back(shapes_only_storage(*byte_size(weight.dtype, *element_count(weight.shape))));
    graph.tensors.push_back({std::move(names[i]), weight.dtype, weight.shape, {}, storage, 0});
  }
  graph.logical = find_logical_tensors(graph, {}).tensors;
  return graph;
}

}  // namespace loadline
