// Looks up single values in the config.json that a MetaGraph carries.
#pragma once

#include "core/graph/meta_graph.h"

#include <optional>
#include <string>
#include <string_view>

namespace loadline {

// The top-level string under `key`. Nothing without a config, without the key, or if its value is no string.
std::optional<std::string> config_text(const MetaGraph& graph, std::string_view key);

// The same for a boolean.
std::optional<bool> config_flag(const MetaGraph& graph, std::string_view key);

// The model's family: config.json's model_type, else GGUF's general.architecture.
std::optional<std::string> model_family(const MetaGraph& graph);

}  // namespace loadline
