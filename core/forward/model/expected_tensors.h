// A model's tensors compared with those that its architecture expects; the same for a GGUF file; the number
// of parameters.
#pragma once

#include "core/base/tasks.h"
#include "core/forward/family/architecture.h"
#include "core/forward/gguf/gguf_map.h"
#include "core/forward/model/assets_loader.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace loadline::forward {

// --- Compares a model's tensors with those that its architecture expects, and counts the parameters.

struct ModelClaims {
  std::string family = {};       // of the asset for this model; empty if there is none
  std::uint64_t parameters = 0;  // parameters() if the asset fits the model; else every element, once
  // Of a configuration alone: parts, or the class, that are not described and so not counted.
  std::vector<std::string> without = {};
  // Settings of the configuration that may change sizes and that the asset does not read.
  std::vector<Setting> unaccounted = {};
  std::vector<std::string> missing = {};        // expected by the asset or listed by an index, but in no file
  std::vector<graph::TensorId> unclaimed = {};  // neither expected nor in a part that the asset leaves out
  std::vector<graph::Note> notes = {};          // shapes that differ, or why the asset cannot be applied
};

// ", known but for 'clip_qkv' is 8", behind the family; empty if all settings are accounted for.
std::string but_for_text(const ModelClaims& claims);
// ", without vision_config", behind a number of parameters; empty if nothing is left out.
std::string without_text(const ModelClaims& claims);

// A configuration that does not fit the asset gives a note, not an Error.
ModelClaims model_claims(const graph::MetaGraph& graph, const ForwardAssets& assets);

// The same of one model, compared when it is first asked for, by whichever thread.
class ClaimsOnce {
 public:
  ClaimsOnce(graph::MetaGraphPtr graph, std::shared_ptr<const ForwardAssets> assets)
      : graph_(std::move(graph)), assets_(std::move(assets)) {}
  std::shared_ptr<const ModelClaims> get() const;

 private:
  const graph::MetaGraphPtr graph_;
  const std::shared_ptr<const ForwardAssets> assets_;
  mutable Once once_;
  mutable std::shared_ptr<const ModelClaims> claims_;
};

// What the model lacks although no note of its files says so: "1 tensor is missing that its settings ask for:
// lm_head.weight". Empty: nothing.
std::string lacking_text(const graph::MetaGraph& graph, const ModelClaims& claims);

// Why the architecture does not describe this model: missing tensors, other shapes, or more than a hundredth
// of the bytes unclaimed. Empty if it does.
std::string doubts(const BoundModel& bound, const graph::MetaGraph& graph);

// --- An architecture bound to a GGUF file: its operators use the file's own tensors, whatever the map of its
// family made of the checkpoint's.

struct GgufBinding {
  // Weights and claims name tensors of the file. One tensor may be the weight of several operators (fused
  // projections, stacked experts); one weight may be several tensors.
  BoundModel bound;
  std::uint64_t parameters = 0;  // as parameters() counts them
};

// `config` is the gguf_config() of the graph. Flags of the file hide those of the same name in `flags`. A
// tensor of the file that no rule of the family explains is unclaimed. Throws Error{unsupported} if no
// architecture is for this configuration, and as config_graph(), map_to_gguf() and bind_architecture() do.
GgufBinding bind_gguf(const GgufConfig& config, const graph::MetaGraph& graph, const ForwardAssets& assets,
                      const std::vector<std::pair<std::string, assets::Datum>>& flags = {});

// The flags, with those of the file in place of those of the same name.
std::vector<std::pair<std::string, assets::Datum>> flags_for(
    const GgufConfig& config, std::vector<std::pair<std::string, assets::Datum>> flags);

// --- The number of parameters of a model, as publications count them.

// Counts the weights that the computation uses, each once. It leaves out buffers, tied copies, layers that
// are only stored, and the scales of quantized weights. A byte of 4-bit blocks counts as two. Tensors in
// parts that the architecture does not describe count with their shape in the file. `model` must be bound to
// `graph`.
std::uint64_t parameters(const BoundModel& model, const graph::MetaGraph& graph);

}  // namespace loadline::forward
