// Tries the sources of a graph in turn; figures and notes of one pass.
#include "core/forward/model/forward_model.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/settings.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/known_models.h"
#include "core/forward/pass/lowering.h"
#include "core/graph/names/tensor_names.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include <fmt/core.h>

namespace loadline::forward {

// --- Tries the sources of a forward graph in turn: the file's operators, an architecture, an estimate,
// nothing.

namespace {

std::string without_asset(std::string_view name) {
  return fmt::format("no asset for {}: sizes only; the manual tells how to add one",
                     name.empty() ? "this model" : safe_display(name, 60));
}

void estimate(ForwardModel& model, const graph::MetaGraph& graph, const ModelConfig& config,
              const Profile& profile) {
  model.cache_estimate = estimated_cache(config, profile.cache);
  model.activation_bound_per_token = activation_bound_per_token(graph, config);
  if (!model.cache_estimate) return;
  model.cache_bytes_per_token = model.cache_estimate->most.each();
  model.source = ForwardSource::estimate;
}

// The name up to its layer's number: "model.layers.0" of "model.layers.0.mlp.up_proj"; empty without one.
std::string layer_path(std::string_view name) {
  const graph::LayerPart layer = graph::layer_part(name);
  return layer.empty() ? "" : std::string(name.substr(0, layer.end));
}

// A file may call the layers otherwise than the family does: then its operators are called as its weights
// are, "blk.0.attn_q", and those without weights by their layer and their last part. A weight that is read
// again names no second operator.
void take_names_of_file(graph::ForwardGraph& forward, const graph::MetaGraph& graph) {
  std::map<std::string, std::string> layers;  // of the family: that of the file
  const auto first_weight = [&](const graph::Op& op) {
    return op.weights.empty() ? std::string() : graph.tensor(op.weights.front()).name.str();
  };
  for (const graph::Op& op : forward.ops)
    if (std::string ours = layer_path(op.name), theirs = layer_path(first_weight(op));
        !ours.empty() && !theirs.empty())
      layers.try_emplace(std::move(ours), std::move(theirs));
  if (std::ranges::all_of(layers, [](const auto& pair) { return pair.first == pair.second; })) return;
  std::vector<bool> part(forward.ops.size());
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = graph::is_part_of_next(forward, i);
  std::set<std::string> taken;
  for (std::size_t i = 0; i < part.size(); ++i) {
    graph::Op& op = forward.ops[i];
    const std::string weight = first_weight(op);
    const auto layer = layers.find(layer_path(op.name));
    if (!weight.empty() && weight.find('.') != std::string::npos && taken.insert(weight).second)
      op.name = weight.substr(0, weight.rfind('.'));
    else if (layer != layers.end() && op.name.size() > layer->first.size())
      op.name = layer->second + op.name.substr(op.name.rfind('.'));
    else if (layer != layers.end())
      op.name = layer->second;
  }
  for (std::size_t i = part.size(); i-- > 0;)
    if (part[i]) forward.ops[i].name = forward.ops[i + 1].name;
}

// Lowers the bound architecture, unless the files leave doubts about it.
void run_architecture(ForwardModel& model, const graph::MetaGraph& graph, const Profile& profile) {
  model.family = model.bound->architecture->family;
  model.remark = doubts(*model.bound, graph);
  if (!model.remark.empty()) return;
  model.source = ForwardSource::architecture;
  model.activation_bound_per_token.reset();  // the operators give exact figures
  model.cache_estimate.reset();
  model.profile = profile.id;
  model.allocator = profile.allocator;
  model.micro_batch = profile.micro_batch;
  model.graph = lower(*model.bound, profile);
  take_names_of_file(*model.graph, graph);
  model.lives = lifetimes(*model.graph);
  // states that do not grow, and a cache of fixed size, are not counted
  model.cache_bytes_per_token = cache_growth(model, 1, 0);
}

// What generate() would do in another way than the passes that are counted, as the model's files say.
std::vector<Setting> generation_of(const graph::MetaGraph& graph, const ModelConfig& config) {
  std::vector<Setting> left = unaccounted_generation(config.settings());
  for (const graph::Note& note : graph.notes)
    if (auto setting = setting_of_note(note.text)) left.push_back(std::move(*setting));
  return left;
}

// Fills in the model from a configuration and its asset. If it throws, the estimate stays in `model`.
void describe(ForwardModel& model, const graph::MetaGraph& graph, const ModelConfig& config,
              const ForwardAssets& assets, const Profile& profile) {
  estimate(model, graph, config, profile);
  const Architecture* const architecture = assets.architecture(config);
  if (architecture == nullptr) {
    const std::vector<std::string> classes = config.architectures();
    model.remark = without_asset(classes.empty() ? config.model_type() : classes.front());
    return;
  }
  model.family = architecture->family;
  BoundModel bound = bind_architecture(*architecture, config, &graph, profile.flags);
  std::ranges::move(generation_of(graph, config), std::back_inserter(bound.unaccounted));
  model.bound = std::make_shared<const BoundModel>(std::move(bound));
  run_architecture(model, graph, profile);
}

// The same for a GGUF file, whose keys are its configuration.
void describe_gguf(ForwardModel& model, const graph::MetaGraph& graph, const ForwardAssets& assets,
                   Profile profile) {
  const std::string path = graph.files.empty() ? "" : graph.files.front().path;
  if (const auto usual = usual_gguf_config(graph))
    estimate(model, graph, ModelConfig(usual->json, path), profile);
  const std::optional<GgufConfig> config = gguf_config(graph);
  if (!config) {
    const std::string* const name = graph::find_text(graph, "general.architecture");
    const bool known = name != nullptr && find_gguf_reader(*name) != nullptr;
    model.remark =
        known ? fmt::format("the file has no keys of a '{}' model: sizes only", safe_display(*name, 60))
              : without_asset(name == nullptr ? "" : *name);
    return;
  }
  profile.flags = flags_for(*config, std::move(profile.flags));
  model.bound = std::make_shared<const BoundModel>(bind_gguf(*config, graph, assets, profile.flags).bound);
  run_architecture(model, graph, profile);
}

// Throws for a profile that is not for this model's operators. Operators that no profile is for accept any
// profile for architectures, which is then not applied.
void refuse_foreign(const Profile& profile, const graph::MetaGraph& graph, const ForwardAssets& assets) {
  if (runs(profile, graph)) return;
  if (!profile.format.empty())
    throw Error(ErrorCode::usage, "profile '{}' runs operators that {} files list; {} take another",
                safe_display(profile.id, 40), safe_display(profile.format, 20),
                graph.forward ? "those of this file" : "an architecture's");
  for (const Profile& other : assets.profiles)
    if (runs(other, graph))
      throw Error(ErrorCode::usage,
                  "profile '{}' runs an architecture's operators; those that this file lists take "
                  "another, such as '{}'",
                  safe_display(profile.id, 40), safe_display(other.id, 40));
}

// Why a file that should list its operators lists none; empty for other files.
std::string why_no_operators(const graph::MetaGraph& graph) {
  for (const graph::Note& note : graph.notes)
    if (note.text.starts_with(graph::kOperatorsLeftOut)) return note.text;
  return graph.format == "onnx" ? "the file lists no operators: sizes only" : "";
}

}  // namespace

std::string_view forward_source_name(ForwardSource source) {
  constexpr std::string_view kNames[] = {"nothing", "estimate", "architecture", "file"};
  return kNames[static_cast<std::size_t>(source)];
}

ForwardModel forward_model(const graph::MetaGraph& graph, const ForwardAssets& assets,
                           const Profile& profile) {
  ForwardModel model;
  if (!graph.forward) model.remark = why_no_operators(graph);
  if (!model.remark.empty()) return model;
  refuse_foreign(profile, graph, assets);
  if (graph.forward) {
    model.source = ForwardSource::file;
    if (runs(profile, graph)) {
      model.graph = with_profile(*graph.forward, profile, graph.tensors);
      model.profile = profile.id;
      model.allocator = profile.allocator;
    } else {
      model.graph = graph.forward;
    }
    model.lives = lifetimes(*model.graph);
    return model;
  }
  const std::string* const json = graph::find_text(graph, graph::kConfigKey);
  const bool gguf = json == nullptr && graph.format == "gguf";
  if (json == nullptr && !gguf) {
    model.remark = "there is no config.json beside the weights: sizes only";
    return model;
  }
  try {
    if (gguf)
      describe_gguf(model, graph, assets, profile);
    else
      describe(model, graph, ModelConfig(*json, "config.json"), assets, profile);
  } catch (const Error& error) {
    // a fault in the profile must be corrected by its author, so it is not hidden behind an estimate
    if (error.place().file == profile.path) throw;
    model.graph.reset();
    model.lives.clear();
    model.source = model.cache_bytes_per_token ? ForwardSource::estimate : ForwardSource::nothing;
    model.remark = error.what();
  }
  return model;
}

bool runs(const Profile& profile, const graph::MetaGraph& graph) {
  return profile.format == (graph.forward ? graph.format : "");
}

const Profile& default_profile(const ForwardAssets& assets, const graph::MetaGraph& graph) {
  const auto found = std::ranges::find_if(assets.profiles, [&](const Profile& one) {
    return graph.forward ? runs(one, graph) : one.default_for == graph.format;
  });
  return found == assets.profiles.end() ? assets.profile("fused") : *found;
}

Profile chosen_profile(const ForwardAssets& assets, const graph::MetaGraph& graph,
                       const ForwardOptions& options) {
  const bool trains = options.training.weights.has_value();
  const auto for_training = std::ranges::find(assets.profiles, "training", &Profile::default_for);
  Profile profile = !options.profile.empty()                          ? assets.profile(options.profile)
                    : trains && for_training != assets.profiles.end() ? *for_training
                                                                      : default_profile(assets, graph);
  const auto choose = [](std::optional<graph::DType>& chosen, const std::optional<graph::DType>& dtype) {
    if (!dtype) return;
    if (graph::dtype_info(*dtype).block_elements != 1)
      throw Error(ErrorCode::usage,
                  "{} comes in blocks: activations and caches are counted by "
                  "element",
                  graph::dtype_info(*dtype).name);
    chosen = dtype;
  };
  choose(profile.activation, options.activation);
  choose(profile.cache, options.cache);
  profile.all_logits = trains || options.all_logits.value_or(profile.all_logits);
  profile.training = options.training;
  return profile;
}

std::optional<std::uint64_t> activation_lower_bound(const ForwardModel& model, std::uint64_t batch,
                                                    std::uint64_t sequence) {
  if (!model.activation_bound_per_token) return std::nullopt;
  const auto tokens = checked_mul(batch, sequence);
  const auto bytes = tokens ? checked_mul(*tokens, *model.activation_bound_per_token) : std::nullopt;
  if (!bytes)
    throw Error(ErrorCode::limit, "{} x {} tokens of {} bytes each exceed 64 bits", batch, sequence,
                *model.activation_bound_per_token);
  return bytes;
}

std::optional<ForwardFigures> forward_figures(const ForwardModel& model,
                                              std::span<const std::uint64_t> symbols) {
  if (!model.graph || model.graph->ops.empty()) return std::nullopt;
  const graph::ForwardGraph& graph = *model.graph;
  ForwardFigures figures;
  figures.sizes = value_sizes(graph, symbols);
  figures.usage = forward_usage(graph, model.lives, figures.sizes);
  figures.peak = forward_peak(graph, figures.usage, figures.sizes);
  figures.reserved =
      allocators::reserved_bytes(allocations_of(graph, model.lives, figures.sizes), model.allocator);
  return figures;
}

std::optional<ForwardFigures> forward_figures(const ForwardModel& model, std::uint64_t batch,
                                              std::uint64_t sequence, std::uint64_t past) {
  if (!model.graph) return std::nullopt;
  return forward_figures(model, graph::symbol_values(*model.graph, batch, sequence, past));
}

bool is_estimate(const ForwardModel& model, const ForwardFigures& figures) {
  return figures.peak.unknown > 0 || (model.graph && !model.graph->unaccounted.empty());
}

std::uint64_t kept_for_backward(const ForwardModel& model, const ForwardFigures& figures) {
  const graph::TrainingParts& parts = *model.graph->training;
  std::uint64_t alive = 0;
  for (std::size_t i = 0; i < model.lives.size(); ++i)
    if (model.lives[i].first < parts.backward && model.lives[i].end > parts.backward)
      alive += figures.sizes[i].value_or(0);
  const std::uint64_t stays = parts.state_bytes + parts.adapter_bytes;
  return alive > stays ? alive - stays : 0;
}

std::vector<graph::ValueId> alive_during(const ForwardModel& model, const ForwardFigures& figures,
                                         std::uint32_t op) {
  std::vector<graph::ValueId> alive;
  for (std::uint32_t i = 0; i < model.lives.size(); ++i)
    if (model.lives[i].first <= op && op < model.lives[i].end && figures.sizes[i].value_or(0) > 0)
      alive.push_back(graph::ValueId{i});
  const auto bytes = [&](graph::ValueId id) { return *figures.sizes[static_cast<std::size_t>(id)]; };
  std::ranges::stable_sort(alive, [&](graph::ValueId a, graph::ValueId b) { return bytes(a) > bytes(b); });
  return alive;
}

std::string op_text(const graph::Op& op) {
  return op.name.empty() ? op.kind : fmt::format("{} ({})", op.name, op.kind);
}

// --- Inspects the bound operators, and compares the sizes of two passes.

namespace {

constexpr std::string_view kPositions = "pos";  // the input with the position of each token

// Describes the first table that is too short for the positions.
std::optional<std::string> beyond_table(const BoundModel& bound, std::uint64_t positions) {
  for (const BoundOp& op : bound.ops) {
    if (op.line->op != "embed" || op.inputs.empty() || op.weights.empty()) continue;
    const graph::Shape& table = op.weights[0].shape;
    if (bound.values[op.inputs[0]] != kPositions || table.empty()) continue;
    std::uint64_t rows = table[0];
    for (const auto& [key, value] : op.attributes)  // unused rows at the start
      if (key == "offset" && value.number() != nullptr && *value.number() > 0)
        rows -= std::min(rows, static_cast<std::uint64_t>(*value.number()));
    if (positions > rows)
      return fmt::format("{} positions, the model has {} ({})", format_grouped(positions),
                         format_grouped(rows), safe_display(op.weights[0].name, 100));
  }
  return std::nullopt;
}

// Whether the result of any operator has different sizes in `a` and `b`.
bool differs(const graph::ForwardGraph& graph, const std::vector<std::optional<std::uint64_t>>& a,
             const std::vector<std::optional<std::uint64_t>>& b) {
  return std::ranges::any_of(graph.ops, [&](const graph::Op& op) {
    return std::ranges::any_of(op.outputs, [&](graph::ValueId id) {
      return a[static_cast<std::size_t>(id)] != b[static_cast<std::size_t>(id)];
    });
  });
}

std::uint64_t cached(const ForwardModel& model, std::uint64_t sequence, std::uint64_t past) {
  const graph::ForwardGraph& graph = *model.graph;
  return forward_peak(graph, {}, value_sizes(graph, graph::symbol_values(graph, 1, sequence, past)))
      .cache_bytes;
}

}  // namespace

std::vector<std::string> pass_notes(const ForwardModel& model, std::uint64_t batch, std::uint64_t sequence,
                                    std::uint64_t past) {
  std::vector<std::string> notes;
  if (model.graph && !model.graph->unaccounted.empty())
    notes.push_back(
        fmt::format("activations are an estimate: profile '{}' does not account for {} as it stands here",
                    safe_display(model.profile, 40), join_names(model.graph->unaccounted, 5)));
  if (!model.graph || !model.bound || model.source != ForwardSource::architecture) return notes;
  const graph::ForwardGraph& graph = *model.graph;
  if (auto beyond = beyond_table(*model.bound, sequence + past)) notes.push_back(std::move(*beyond));
  const auto sizes = [&](std::uint64_t new_tokens, std::uint64_t old_tokens) {
    return value_sizes(graph, graph::symbol_values(graph, batch, new_tokens, old_tokens));
  };
  const auto here = sizes(sequence, past);
  if (!differs(graph, here, sizes(sequence + 1, past)))
    notes.push_back("the number of tokens changes nothing: what goes into this model has a size of its own");
  if (past > 0) {
    const auto first = sizes(sequence, 0);
    const bool ran = std::ranges::any_of(graph.inputs, [&](graph::ValueId id) {
      const auto at = static_cast<std::size_t>(id);
      return here[at] == std::uint64_t{0} && first[at].value_or(0) > 0;
    });
    if (ran) notes.push_back("the encoder has run before: only what it left in the cache is counted");
  }
  for (const std::string& part : left_out(*model.bound->architecture, model.bound->config))
    notes.push_back(fmt::format("{} is not described: text model only", safe_display(part, 60)));
  if (!model.bound->unaccounted.empty())
    notes.push_back(fmt::format("{}: not accounted for, so the sizes are estimates",
                                settings_text(model.bound->unaccounted)));
  return notes;
}

std::optional<std::uint64_t> cache_growth(const ForwardModel& model, std::uint64_t sequence,
                                          std::uint64_t past) {
  if (!model.graph) return std::nullopt;
  const std::uint64_t now = cached(model, sequence, past), next = cached(model, sequence, past + 1);
  return next < now ? std::nullopt : std::optional(next - now);
}

std::uint64_t widest_window(const ForwardModel& model) {
  std::uint64_t widest = 0;
  if (!model.bound) return widest;
  for (const BoundOp& op : model.bound->ops) {
    if (op.line->op != "cache") continue;
    for (const auto& [key, value] : op.attributes)
      if (key == "window" && value.number() != nullptr && *value.number() > 0)
        widest = std::max(widest, static_cast<std::uint64_t>(*value.number()));
  }
  return widest;
}

}  // namespace loadline::forward
