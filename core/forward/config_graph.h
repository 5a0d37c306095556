// Which tensors a model has, from its config.json alone.
#pragma once

#include "core/forward/assets.h"
#include "core/graph/meta_graph.h"

#include <string>
#include <string_view>

namespace loadline {

// Every tensor in the order in which the architecture's asset names it, contiguous, one storage each and no
// file; dtype from torch_dtype (F32 if absent), FP8 with scales per block where quantization_config says so.
// A tied head has no tensor of its own. Throws Error{malformed} naming `path` and the key, or the asset's
// line, for a missing or absurd value, Error{unsupported} for a model_type without an asset.
MetaGraph config_graph(std::string_view config_json, const std::string& path,
                       const ForwardAssets& assets = *built_in_assets());

}  // namespace loadline
