// From configurations to buffers.
#include "tests/support/pass_models.h"

#include "core/forward/model/known_models.h"
#include "core/plan/dry_machine.h"
#include "core/plan/plan.h"
#include "core/plan/reserved_memory.h"

namespace loadline::testing {
namespace {

// Of all-mpnet-base-v2.
constexpr std::string_view kMpnet = R"({"architectures":["MPNetModel"],"model_type":"mpnet","hidden_size":768,
  "num_hidden_layers":12,"num_attention_heads":12,"intermediate_size":3072,"vocab_size":30527,
  "max_position_embeddings":514,"relative_attention_num_buckets":32,"torch_dtype":"float32"})";

}  // namespace

std::vector<DescribedModel> described_models() {
  std::vector<DescribedModel> models;
  for (const Preset& preset : presets()) {
    const std::string name(preset.id);
    models.push_back({name, config_graph(preset.config_json, name)});
  }
  models.push_back({"all-mpnet-base-v2", config_graph(kMpnet, "all-mpnet-base-v2")});
  return models;
}

Problem pass_problem(const ForwardModel& model, std::uint64_t batch, std::uint64_t sequence) {
  Plan plan;
  append_forward_pass(plan, {&*model.graph, symbol_values(*model.graph, batch, sequence, 0)});
  DryMachine machine;
  const Timeline timeline = run(plan, machine);
  return space_problem(plan, timeline, Space::device).problem;
}

}  // namespace loadline::testing
