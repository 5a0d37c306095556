// Maps one of the models where that is possible.
#include "app/report/match_models.h"

#include "core/base/error.h"
#include "exporters/gguf/hugging_face.h"

#include <utility>

namespace loadline::report {
namespace {

std::vector<Weight> weights_of(const MetaGraph& graph, const MetaGraph& other, bool& mapped) {
  auto slots = counterparts(graph, other);
  if (!slots) return model_weights(graph);
  mapped = true;
  std::vector<Weight> weights;
  for (Slot& slot : *slots)
    weights.push_back(computed_weight(graph, std::move(slot.name), std::move(slot.recipe)));
  return weights;
}

MetaGraph running_keys(const MetaGraph& graph, bool tokenizer) {
  MetaGraph keys;
  keys.format = graph.format;
  keys.files = graph.files;
  for (const MetaEntry& entry : graph.metadata)
    if (says_how_it_runs(entry.key) && (tokenizer || !entry.key.starts_with("tokenizer.")))
      keys.metadata.push_back(entry);
  return keys;
}

}  // namespace

MatchedModels match_models(const MetaGraph& a, const MetaGraph& b) {
  MatchedModels result;
  try {
    std::vector<Weight> of_a = weights_of(a, b, result.mapped), of_b = weights_of(b, a, result.mapped);
    result.match = match_weights(a, std::move(of_a), b, std::move(of_b));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::malformed) throw;
    result = {match_weights(a, b), false, error.what()};
  }
  return result;
}

std::vector<MetadataDifference> diff_model_metadata(const MetaGraph& a, const MetaGraph& b, bool mapped,
                                                    Progress& progress, std::string& problem) {
  if (!mapped) return diff_metadata(a, b, progress);
  try {
    if (const auto of_a = counterpart_keys(a, b)) {
      problem = of_a->problem;
      return diff_metadata({of_a->graph, &of_a->header}, running_keys(b, problem.empty()), progress);
    }
    if (const auto of_b = counterpart_keys(b, a)) {
      problem = of_b->problem;
      return diff_metadata(running_keys(a, problem.empty()), {of_b->graph, &of_b->header}, progress);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::malformed) throw;
    problem = error.what();
    return {};
  }
  return diff_metadata(a, b, progress);
}

}  // namespace loadline::report
