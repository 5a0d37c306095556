// The architectures, profiles, type policies and published configurations that the program knows, and a model
// of a configuration alone.
#pragma once

#include "core/forward/family/architecture.h"
#include "core/forward/gguf/type_policy.h"
#include "core/forward/model/assets_loader.h"
#include "core/forward/pass/profile.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::forward {

// --- The architectures, profiles and type policies that the program knows: the built-in ones and a user's
// own.

struct ForwardAssets {
  std::vector<Architecture> architectures = {};  // a user's own come first
  std::size_t own_architectures = 0;             // number of the user's own
  std::vector<Profile> profiles = {};
  std::vector<TypePolicy> type_policies = {};
  std::vector<std::string> faults = {};  // error messages of the files that were left out

  // The architecture for this configuration; null if there is none. A user's own that matches by class name
  // or by model_type comes before any built-in one.
  const Architecture* architecture(const ModelConfig& config) const;
  // The profile with this id. Throws Error{usage} that lists the profiles.
  const Profile& profile(std::string_view id) const;
};

// The built-in assets and every file folder/KIND/*.json, where KIND is architectures, profiles or types. A
// file replaces the built-in asset of the same family, profile or policy name. A missing folder adds nothing.
// A file that does not parse is left out, and its error is in `faults`.
std::shared_ptr<const ForwardAssets> load_assets(const std::string& folder);

// --- Built-in configurations: published models' config.json by a short name.

struct Preset {
  std::string_view id;           // "llama-3-8b"
  std::string_view config_json;  // the whole text
  std::uint64_t max_shard_bytes = 0;
};

std::span<const Preset> presets();
const Preset* find_preset(std::string_view id);

// --- The tensors of a model, derived from its config.json alone.

// The tensors are in the order of the architecture's asset, contiguous, each on a storage of its own without
// a file. Their dtype is torch_dtype (F32 if absent), or FP8 with scales per block if quantization_config
// says so. A tied head has no tensor of its own. Throws Error{malformed} naming `path` and the key, or the
// asset's line, for a missing or absurd value; Error{unsupported} for a model_type without an asset.
graph::MetaGraph config_graph(std::string_view config_json, const std::string& path,
                              const ForwardAssets& assets = *built_in_assets());
// The same; of a model whose shapes are not known but whose settings tell its cache, a graph without tensors
// and with a note of severity error.
graph::MetaGraph config_or_settings_graph(std::string_view config_json, const std::string& path,
                                          const ForwardAssets& assets);

}  // namespace loadline::forward
