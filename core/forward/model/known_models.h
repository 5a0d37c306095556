// The architectures, profiles and type policies that the program knows: the built-in ones and a user's own.
#pragma once

#include "core/forward/family/architecture.h"
#include "core/forward/gguf/type_policy.h"
#include "core/forward/pass/profile.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

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

std::shared_ptr<const ForwardAssets> built_in_assets();

// Loads the assets when they are first needed. An empty function means the built-in assets.
using AssetsLoader = std::function<std::shared_ptr<const ForwardAssets>()>;

// The built-in assets and every file folder/KIND/*.json, where KIND is architectures, profiles or types. A
// file replaces the built-in asset of the same family, profile or policy name. A missing folder adds nothing.
// A file that does not parse is left out, and its error is in `faults`.
std::shared_ptr<const ForwardAssets> load_assets(const std::string& folder);

}  // namespace loadline
