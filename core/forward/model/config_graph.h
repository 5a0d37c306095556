// The tensors of a model, derived from its config.json alone.
#pragma once

#include "core/forward/model/known_models.h"
#include "core/graph/meta_graph.h"

#include <string>
#include <string_view>

namespace loadline {

// The tensors are in the order of the architecture's asset, contiguous, each on a storage of its own without
// a file. Their dtype is torch_dtype (F32 if absent), or FP8 with scales per block if quantization_config
// says so. A tied head has no tensor of its own. Throws Error{malformed} naming `path` and the key, or the
// asset's line, for a missing or absurd value; Error{unsupported} for a model_type without an asset.
MetaGraph config_graph(std::string_view config_json, const std::string& path,
                       const ForwardAssets& assets = *built_in_assets());

}  // namespace loadline
