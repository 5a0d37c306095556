// Single values out of the config.json that a MetaGraph carries.
#pragma once

#include "core/graph/meta_graph.h"

#include <optional>
#include <string>
#include <string_view>

namespace loadline {

// The top-level string under `key`; nothing if there is no config, no such key or no string there.
std::optional<std::string> config_text(const MetaGraph& graph, std::string_view key);

// What the model says it is: config.json's model_type, else GGUF's general.architecture.
std::optional<std::string> model_family(const MetaGraph& graph);

}  // namespace loadline
