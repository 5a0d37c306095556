// Binds the architecture to the model, without a profile, and reads the claims.
#include "core/forward/model/claims.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/parameters.h"
#include "core/forward/model/pass_notes.h"

#include <unordered_set>

#include <fmt/format.h>

namespace loadline {

std::string doubts(const BoundModel& bound, const MetaGraph& graph) {
  const Claims& claims = bound.claims;
  if (!claims.missing.empty())
    return fmt::format("architecture '{}' asks for {} that the files do not hold, {} first",
                       bound.architecture->family, counted(claims.missing.size(), "tensor"),
                       safe_display(claims.missing.front(), 100));
  if (!claims.disagreements.empty())
    return fmt::format("tensor '{}': {}", safe_display(claims.disagreements.front().tensor.value_or(""), 100),
                       claims.disagreements.front().text);
  constexpr std::uint64_t kHundredth = 100;
  if (claims.unclaimed_bytes > storage_bytes(graph) / kHundredth)
    return fmt::format("architecture '{}' leaves {} of {} unexplained", bound.architecture->family,
                       format_bytes(claims.unclaimed_bytes), format_bytes(storage_bytes(graph)));
  return "";
}

namespace {

void claim(ModelClaims& result, const MetaGraph& graph, BoundModel bound, std::uint64_t parameters) {
  result.family = bound.architecture->family;
  if (doubts(bound, graph).empty()) result.parameters = parameters;
  const std::unordered_set<std::string_view> known(graph.missing.begin(), graph.missing.end());
  for (std::string& name : bound.claims.missing)
    if (!known.contains(name)) result.missing.push_back(std::move(name));
  result.unclaimed = std::move(bound.claims.unclaimed);
  result.notes = std::move(bound.claims.disagreements);
  for (std::string& note : left_out(*bound.architecture, bound.config))
    result.notes.push_back({Severity::info, {}, std::move(note)});
}

}  // namespace

ModelClaims model_claims(const MetaGraph& graph, const ForwardAssets& assets) {
  ModelClaims result;
  result.missing = graph.missing;
  const std::string* const json = find_text(graph, kConfigKey);
  try {
    // an ONNX export beside a config.json names its tensors differently
    const bool checkpoint = !graph.forward && graph.format != "onnx" && graph.format != "gguf";
    if (const auto config = gguf_config(graph)) {
      GgufBinding binding = bind_gguf(*config, graph, assets);
      claim(result, graph, std::move(binding.bound), binding.parameters);
    } else if (json != nullptr && checkpoint) {
      const ModelConfig config_json(*json, std::string(kConfigKey));
      if (const Architecture* const architecture = assets.architecture(config_json)) {
        BoundModel bound = bind_architecture(*architecture, config_json, &graph);
        const std::uint64_t count = parameters(bound, graph);
        claim(result, graph, std::move(bound), count);
      }
    }
  } catch (const Error& error) {
    result.notes.push_back({Severity::info, {}, error.what()});
  }
  if (result.parameters == 0) result.parameters = parameter_count(graph);
  return result;
}

}  // namespace loadline
