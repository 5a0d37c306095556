// Loads the built-in assets, and replaces them by those of a user's folder.
#include "core/forward/model/known_models.h"

#include "core/assets/asset_folder.h"
#include "core/base/lookup.h"

namespace loadline {

const Architecture* ForwardAssets::architecture(const ModelConfig& config) const {
  const std::span<const Architecture> all(architectures);
  const Architecture* const own = find_architecture(config, all.first(own_architectures));
  return own != nullptr ? own : find_architecture(config, all.subspan(own_architectures));
}

const Profile& ForwardAssets::profile(std::string_view id) const {
  return find_row(std::span<const Profile>(profiles), id, "profile");
}

std::shared_ptr<const ForwardAssets> built_in_assets() {
  static const auto assets = [] {
    auto all = std::make_shared<ForwardAssets>();
    const auto architectures = built_in_architectures();
    const auto profiles = built_in_profiles();
    const auto policies = built_in_type_policies();
    all->architectures.assign(architectures.begin(), architectures.end());
    all->profiles.assign(profiles.begin(), profiles.end());
    all->type_policies.assign(policies.begin(), policies.end());
    return std::shared_ptr<const ForwardAssets>(std::move(all));
  }();
  return assets;
}

std::shared_ptr<const ForwardAssets> load_assets(const std::string& folder) {
  auto all = std::make_shared<ForwardAssets>(*built_in_assets());
  all->own_architectures = add_folder(folder + "/architectures", all->architectures, &Architecture::family,
                                      parse_architecture, all->faults);
  add_folder(folder + "/profiles", all->profiles, &Profile::id, parse_profile, all->faults);
  add_folder(folder + "/types", all->type_policies, &TypePolicy::name, parse_type_policy, all->faults);
  return all;
}

}  // namespace loadline
