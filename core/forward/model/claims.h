// Compares a model's tensors with those that its architecture expects, and counts the parameters.
#pragma once

#include "core/forward/family/bind.h"
#include "core/forward/model/known_models.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline {

struct ModelClaims {
  std::string family = {};       // of the asset for this model; empty if there is none
  std::uint64_t parameters = 0;  // parameters.h if the asset fits the model; else every element, once
  std::vector<std::string> missing = {};  // expected by the asset or listed by an index, but in no file
  std::vector<TensorId> unclaimed = {};   // neither expected nor in a part that the asset leaves out
  std::vector<Note> notes = {};           // shapes that differ, or why the asset cannot be applied
};

// A configuration that does not fit the asset gives a note, not an Error.
ModelClaims model_claims(const MetaGraph& graph, const ForwardAssets& assets);

// Why the architecture does not describe this model: missing tensors, other shapes, or more than a hundredth
// of the bytes unclaimed. Empty if it does.
std::string doubts(const BoundModel& bound, const MetaGraph& graph);

}  // namespace loadline
