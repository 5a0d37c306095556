// An architecture bound to a GGUF file: its operators use the file's own tensors, whatever the map of its
// family made of the checkpoint's.
#pragma once

#include "core/forward/family/bind.h"
#include "core/forward/gguf/gguf_config.h"
#include "core/forward/model/known_models.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace loadline {

struct GgufBinding {
  // Weights and claims name tensors of the file. One tensor may be the weight of several operators (fused
  // projections, stacked experts); one weight may be several tensors.
  BoundModel bound;
  std::uint64_t parameters = 0;  // as parameters.h counts them
};

// `config` is the gguf_config() of the graph. Flags of the file hide those of the same name in `flags`. A
// tensor of the file that no rule of the family explains is unclaimed. Throws Error{unsupported} if no
// architecture is for this configuration, and as config_graph(), map_to_gguf() and bind_architecture() do.
GgufBinding bind_gguf(const GgufConfig& config, const MetaGraph& graph, const ForwardAssets& assets,
                      const std::vector<std::pair<std::string, Datum>>& flags = {});

// The flags, with those of the file in place of those of the same name.
std::vector<std::pair<std::string, Datum>> flags_for(const GgufConfig& config,
                                                     std::vector<std::pair<std::string, Datum>> flags);

}  // namespace loadline
