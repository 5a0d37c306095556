// The architectures and profiles that the program knows: those built in, and a user's own.
#pragma once

#include "core/forward/architecture.h"
#include "core/forward/profile.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

struct ForwardAssets {
  std::vector<Architecture> architectures = {};  // a user's come first,
  std::size_t own_architectures = 0;             // so many of them
  std::vector<Profile> profiles = {};
  std::vector<std::string> faults = {};  // what is wrong with files that were left out

  // A user's own for this configuration, by whatever it matches, else a built-in one; nothing if there is
  // none.
  const Architecture* architecture(const ModelConfig& config) const;
  // Throws Error{usage} that lists the profiles.
  const Profile& profile(std::string_view id) const;
};

std::shared_ptr<const ForwardAssets> built_in_assets();

// Assets are read when they are first needed. An empty one means those built in.
using AssetsLoader = std::function<std::shared_ptr<const ForwardAssets>()>;

// With every folder/architectures/*.json and folder/profiles/*.json, each of which takes the place of the
// built-in one of the same family or name. A folder that is not there adds nothing; a file that is no asset
// is left out and told in `faults`.
std::shared_ptr<const ForwardAssets> load_assets(const std::string& folder);

}  // namespace loadline
