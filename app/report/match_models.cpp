// Maps one of the models where that is possible.
#include "app/report/match_models.h"

#include "core/base/error.h"
#include "exporters/gguf/hugging_face.h"

#include <utility>

namespace loadline::report {
namespace {

std::vector<inspect::Weight> weights_of(const graph::MetaGraph& graph, const graph::MetaGraph& other,
                                        bool& mapped) {
  auto slots = exporters::counterparts(graph, other);
  if (!slots) return inspect::model_weights(graph);
  mapped = true;
  std::vector<inspect::Weight> weights;
  for (exporters::Slot& slot : *slots)
    weights.push_back(inspect::computed_weight(graph, std::move(slot.name), std::move(slot.recipe)));
  return weights;
}

graph::MetaGraph running_keys(const graph::MetaGraph& graph, bool tokenizer) {
  graph::MetaGraph keys;
  keys.format = graph.format;
  keys.files = graph.files;
  for (const graph::MetaEntry& entry : graph.metadata)
    if (exporters::says_how_it_runs(entry.key) && (tokenizer || !entry.key.starts_with("tokenizer.")))
      keys.metadata.push_back(entry);
  return keys;
}

}  // namespace

MatchedModels match_models(const graph::MetaGraph& a, const graph::MetaGraph& b) {
  MatchedModels result;
  try {
    std::vector<inspect::Weight> of_a = weights_of(a, b, result.mapped),
                                 of_b = weights_of(b, a, result.mapped);
    result.match = inspect::match_weights(a, std::move(of_a), b, std::move(of_b));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::malformed) throw;
    result = {inspect::match_weights(a, b), false, error.what()};
  }
  return result;
}

std::vector<inspect::MetadataDifference> diff_model_metadata(const graph::MetaGraph& a,
                                                             const graph::MetaGraph& b, bool mapped,
                                                             Progress& progress, std::string& problem) {
  if (!mapped) return inspect::diff_metadata(a, b, progress);
  try {
    if (const auto of_a = exporters::counterpart_keys(a, b)) {
      problem = of_a->problem;
      return inspect::diff_metadata({of_a->graph, &of_a->header}, running_keys(b, problem.empty()), progress);
    }
    if (const auto of_b = exporters::counterpart_keys(b, a)) {
      problem = of_b->problem;
      return inspect::diff_metadata(running_keys(a, problem.empty()), {of_b->graph, &of_b->header}, progress);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::malformed) throw;
    problem = error.what();
    return {};
  }
  return inspect::diff_metadata(a, b, progress);
}

}  // namespace loadline::report
