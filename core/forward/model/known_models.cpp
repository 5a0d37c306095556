// Loads them, and replaces them by those of a user's folder; tensors from config.json.
#include "core/forward/model/known_models.h"

#include "core/assets/asset_file.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/forward/family/architecture.h"
#include "core/forward/model/forward_model.h"
#include "core/graph/packed/quantization.h"
#include "embedded/models_files.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/core.h>

namespace loadline::forward {

// --- Loads the built-in assets, and replaces them by those of a user's folder.

const Architecture* ForwardAssets::architecture(const ModelConfig& config) const {
  const std::span<const Architecture> all(architectures);
  const Architecture* const own = find_architecture(config, all.first(own_architectures));
  return own != nullptr ? own : find_architecture(config, all.subspan(own_architectures));
}

const Profile& ForwardAssets::profile(std::string_view id) const {
  return find_row(std::span<const Profile>(profiles), id, "profile");
}

std::shared_ptr<const ForwardAssets> built_in_assets() {
  // never taken apart: at the end of the program that would take as long as a short command
  static const auto& assets = *new std::shared_ptr<const ForwardAssets>([] {
    auto all = std::make_shared<ForwardAssets>();
    const auto architectures = built_in_architectures();
    const auto profiles = built_in_profiles();
    const auto policies = built_in_type_policies();
    all->architectures.assign(architectures.begin(), architectures.end());
    all->profiles.assign(profiles.begin(), profiles.end());
    all->type_policies.assign(policies.begin(), policies.end());
    return all;
  }());
  return assets;
}

std::shared_ptr<const ForwardAssets> load_assets(const std::string& folder) {
  const std::array kinds = {folder + "/architectures", folder + "/profiles", folder + "/types"};
  if (std::ranges::all_of(kinds, [](const std::string& kind) { return assets::json_files(kind).empty(); }))
    return built_in_assets();
  auto all = std::make_shared<ForwardAssets>(*built_in_assets());
  all->own_architectures = assets::add_folder(kinds[0], all->architectures, &Architecture::family,
                                              parse_architecture, all->faults);
  assets::add_folder(kinds[1], all->profiles, &Profile::id, parse_profile, all->faults);
  assets::add_folder(kinds[2], all->type_policies, &TypePolicy::name, parse_type_policy, all->faults);
  return all;
}

// --- The table of presets, whose configurations are embedded from assets/models by file name.

namespace {

constexpr std::uint64_t kHubShard = 5'000'000'000;       // huggingface_hub's default
constexpr std::uint64_t kDemoShard = 24'000'000;         // three shards, small enough to look at
constexpr std::uint64_t kDeepSeekShard = 4'270'000'000;  // 163 shards, as published

std::uint64_t shard_bytes(std::string_view id) {
  if (id == "demo") return kDemoShard;
  return id == "deepseek-v3" ? kDeepSeekShard : kHubShard;
}

std::vector<Preset> load_presets() {
  std::vector<Preset> rows;
  for (const embedded::File& file : embedded::models_files()) {
    const std::string_view id = file.name.substr(0, file.name.rfind('.'));
    rows.push_back({id, file.bytes, shard_bytes(id)});
  }
  return rows;
}

}  // namespace

std::span<const Preset> presets() {
  static const std::vector<Preset> rows = load_presets();
  return rows;
}

const Preset* find_preset(std::string_view id) { return find_option(presets(), id); }

// --- Makes a graph without files from the tensors that the architecture expects for a configuration.

graph::MetaGraph config_graph(std::string_view config_json, const std::string& path,
                              const ForwardAssets& assets) {
  const ModelConfig config(config_json, path);
  const Architecture* const architecture = assets.architecture(config);
  if (architecture == nullptr) {
    std::string known;
    for (const Architecture& row : assets.architectures)
      for (const std::string& name : row.model_types) known += (known.empty() ? "" : ", ") + name;
    const std::string model_type = config.model_type();
    throw config.fail(model_type.empty()
                          ? fmt::format("'model_type' is not set, which names the family; known: {}", known)
                          : fmt::format("model_type '{}' has no known shapes; known: {}",
                                        safe_display(model_type, 60), known),
                      ErrorCode::unsupported);
  }
  const BoundModel model = bind_architecture(*architecture, config, nullptr);
  if (model.asked.empty()) {
    const std::vector<std::string> classes = config.architectures();
    throw config.fail(fmt::format("the class '{}' has no known shapes",
                                  safe_display(classes.empty() ? "" : classes.front(), 60)),
                      ErrorCode::unsupported);
  }
  graph::MetaGraph graph;
  graph.format = "config";
  graph.metadata.push_back({std::string(graph::kConfigKey), std::string(config_json)});
  std::vector<std::string_view> texts;
  for (const BoundWeight& weight : model.asked) texts.push_back(weight.name);
  std::vector<graph::Name> names = graph::Name::many(texts);
  for (std::size_t i = 0; i < model.asked.size(); ++i) {
    const BoundWeight& weight = model.asked[i];
    const graph::StorageId storage{static_cast<std::uint32_t>(graph.storages.size())};
    // bind_architecture() has checked that the size fits
    graph.storages.push_back(
        graph::shapes_only_storage(*graph::byte_size(weight.dtype, *graph::element_count(weight.shape))));
    graph.tensors.push_back({std::move(names[i]), weight.dtype, weight.shape, {}, storage, 0});
  }
  if (!model.remark.empty()) graph.note(graph::Severity::warning, {}, "{}", model.remark);
  graph.logical = graph::find_logical_tensors(graph, {}).tensors;
  return graph;
}

graph::MetaGraph config_or_settings_graph(std::string_view config_json, const std::string& path,
                                          const ForwardAssets& assets) {
  try {
    return config_graph(config_json, path, assets);
  } catch (const Error& error) {
    const ModelConfig config(config_json, path);
    if (error.code() != ErrorCode::unsupported || !estimated_cache(config)) throw;
    graph::MetaGraph graph;
    graph.format = "config";
    graph.metadata.push_back({std::string(graph::kConfigKey), std::string(config_json)});
    const std::vector<std::string> classes = config.architectures();
    const std::string& name = classes.empty() ? config.model_type() : classes.front();
    graph.note(graph::Severity::error, {},
               "the shapes of a {} are not known: its weights are missing here, {}",
               name.empty() ? "model without 'model_type'" : safe_display(name, 60),
               "and of its memory the cache alone is told");
    return graph;
  }
}

}  // namespace loadline::forward
