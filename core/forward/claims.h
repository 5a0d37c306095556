// What an architecture makes of a model's tensors: which it asks for, which it leaves, how many parameters.
#pragma once

#include "core/forward/assets.h"
#include "core/forward/bind.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline {

struct ModelClaims {
  std::string family = {};       // of the asset that is for this model; empty where there is none
  std::uint64_t parameters = 0;  // as people count them, where the asset fits; else every element once
  std::vector<std::string> missing = {};  // asked for by the asset, or promised by an index, and in no file
  std::vector<TensorId> unclaimed = {};   // neither asked for nor of a part that the asset leaves out
  std::vector<Note> notes = {};           // shapes that differ, or why the asset cannot be applied
};

// Never throws for a configuration that does not fit: a note says so.
ModelClaims model_claims(const MetaGraph& graph, const ForwardAssets& assets);

// Why the architecture is not believed to describe this model; empty where it is.
std::string doubts(const BoundModel& bound, const MetaGraph& graph);

}  // namespace loadline
