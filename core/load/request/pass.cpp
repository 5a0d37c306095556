// Binds a pass to the model's operators; counts what each token reads.
#include "core/load/request/pass.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/model_config.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/casts.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/core.h>

namespace loadline::load {

// --- Binds a pass to a model's operators and evaluates its sizes.

RequestPass::RequestPass(const graph::MetaGraph& graph, const LoadRequest& request,
                         std::shared_ptr<const forward::ForwardAssets> assets, UnknownPass unknown)
    : assets_(assets ? std::move(assets) : forward::built_in_assets()),
      batch_(request.batch),
      sequence_(request.sequence),
      past_(request.past) {
  const forward::ForwardOptions& options = request.forward;
  if (options.training.weights && graph.forward)
    throw Error(ErrorCode::unsupported,
                "a training step is projected for checkpoints: this file lists the operators of a pass");
  const forward::Profile profile = forward::chosen_profile(*assets_, graph, options);
  const bool asked = asks_for_pass(request);
  try {
    model_ = forward::forward_model(graph, *assets_, profile);
  } catch (const Error& error) {
    if (asked || error.code() == ErrorCode::usage) throw;
    model_ = {};
    model_.remark = error.what();
  }
  if (model_.source == forward::ForwardSource::file &&
      (options.activation || options.cache || options.all_logits))
    throw Error(ErrorCode::usage,
                "types of activations and of the cache, and rows of logits, can be chosen for checkpoints: "
                "the operators of this file have types and shapes of their own");
  if (!request.sizes.empty() && model_.source != forward::ForwardSource::file)
    throw Error(ErrorCode::usage,
                "named sizes are for files that list their operators: this model's sizes have no names");
  if (!asked) return;
  if (model_.graph) choose_sizes(request);
  figures_ = forward::forward_figures(model_, symbols_);
  if (!figures_ && options.training.weights)
    throw Error(ErrorCode::unsupported, "no training step is known: {}",
                model_.remark.empty() ? "the file holds no operators" : model_.remark);
  if (!figures_) {
    bound_ = forward::activation_lower_bound(model_, batch_, sequence_);
    if (bound_ || model_.cache_bytes_per_token || unknown == UnknownPass::leave_out) return;
    // an unreadable configuration does not stop the load: the remark says what is wrong with it
    if (graph::find_metadata(graph, graph::kConfigKey) != nullptr && !model_.remark.empty()) return;
    throw Error(ErrorCode::unsupported, "no forward pass is known: {}",
                model_.remark.empty() ? "the file holds no operators" : model_.remark);
  }
  notes_ = forward::pass_notes(model_, batch_, sequence_, past_);
  pass_ = plan::ForwardPass{&*model_.graph, symbols_};
}

// Named sizes may stand for the batch, the sequence or the past tokens: then they set those too.
void RequestPass::choose_sizes(const LoadRequest& request) {
  const graph::ForwardGraph& graph = *model_.graph;
  symbols_ =
      forward::symbol_values(graph, batch_, std::max<std::uint64_t>(sequence_, 1), past_, request.sizes);
  batch_ = symbols_[graph::index(graph::kBatch)];
  sequence_ = symbols_[graph::index(graph::kSequence)];
  past_ = symbols_[graph::index(graph::kPast)];
  const auto check = [](const char* what, std::uint64_t given, std::uint64_t unset, std::uint64_t is) {
    if (given != unset && given != is)
      throw Error(ErrorCode::usage, "{} {} contradict the named sizes, which say {}", given, what, is);
  };
  check("sequences", request.batch, 1, batch_);
  check("new tokens", request.sequence, 0, sequence_);
  check("tokens before", request.past, 0, past_);
  if (model_.source != forward::ForwardSource::file) return;
  const auto is_chosen = [&](const graph::NamedSize& size) {
    return std::ranges::find(request.sizes, size.name, &forward::SizeChoice::name) != request.sizes.end();
  };
  for (const graph::NamedSize& size : graph.sizes)
    if (size.guessed && size.taken_as.constant() && is_chosen(size))
      continue;
    else if (size.guessed && size.taken_as.constant())
      picture_sides_.push_back(fmt::format("{} as {}", size.name, size.taken_as.text({})));
    else if (size.guessed)
      guessed_.push_back(
          fmt::format("{} as the {}", size.name,
                      size.taken_as == graph::SizePoly::symbol(graph::kBatch) ? "batch" : "sequence"));
  unset_ = forward::sizes_left_at_1(graph, request.sizes);
}

std::uint64_t RequestPass::estimated_cache() const {
  return model_.cache_estimate ? cache_of(model_.cache_estimate->most) : 0;
}

std::uint64_t RequestPass::least_cache() const {
  return model_.cache_estimate ? cache_of(model_.cache_estimate->least) : 0;
}

std::uint64_t RequestPass::cache_of(const forward::CacheGrowth& growth) const {
  const auto tokens = checked_add(sequence_, past_);
  const auto each = tokens ? growth.bytes(*tokens) : std::nullopt;
  const auto bytes = each ? checked_mul(*each, batch_) : std::nullopt;
  if (!bytes) throw Error(ErrorCode::limit, "the cache of this pass exceeds 64 bits");
  return *bytes;
}

// --- Adds up what stays mapped, or on disk.

namespace {

// "model.layers.0.mlp.experts.7.up_proj.weight" or "blk.0.ffn_up_exps.weight"; experts that all tokens share
// have other names.
bool is_of_experts(std::string_view name) {
  return std::ranges::any_of(
      split(name, '.'), [](std::string_view part) { return part == "experts" || part.ends_with("_exps"); });
}

std::uint64_t entry_of(const graph::MetaGraph& graph, std::string_view name) {
  const std::string* const architecture = graph::find_text(graph, "general.architecture");
  if (architecture == nullptr) return 0;
  const graph::MetaValue* const value =
      graph::find_metadata(graph, fmt::format("{}.{}", *architecture, name));
  if (value == nullptr) return 0;
  return std::visit(
      [](const auto& number) -> std::uint64_t {
        if constexpr (std::is_integral_v<std::decay_t<decltype(number)>>)
          return number > 0 ? static_cast<std::uint64_t>(number) : 0;
        else
          return 0;
      },
      *value);
}

// How many experts a layer has, and how many of them one token uses; none if that is not known.
Experts experts_of(const graph::MetaGraph& graph) {
  Experts experts{entry_of(graph, "expert_count"), entry_of(graph, "expert_used_count")};
  const std::string* const text = graph::find_text(graph, graph::kConfigKey);
  if (text != nullptr && experts.all == 0) {
    try {
      const forward::ModelConfig config(*text, std::string(graph::kConfigKey));
      experts = {config
                     .first_count({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts",
                                   "ffn_config.moe_num_experts"})
                     .value_or(0),
                 config
                     .first_count({"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k",
                                   "moe_k", "ffn_config.moe_top_k"})
                     .value_or(0)};
    } catch (const Error&) {
      return {};  // the forward pass says what is wrong with it
    }
  }
  return experts.used == 0 ? Experts() : experts;
}

}  // namespace

WeightReads::WeightReads(const graph::MetaGraph& graph, const BoundRequest& bound, bool whole)
    : graph_(graph),
      placement_(bound.placement),
      tokens_(whole ? 0 : bound.request.batch * bound.request.sequence),  // below 2^48
      owners_(graph::first_owner(graph)),
      shared_(shared_embedding(graph)),
      experts_(whole ? Experts() : experts_of(graph)) {}

std::uint64_t WeightReads::of(graph::StorageId id) const {
  constexpr std::uint64_t kAround = 64 << 10;
  const std::uint64_t bytes = graph_.storage(id).bytes;
  const graph::Tensor& tensor = graph_.tensor(*owners_[graph::index(id)]);
  const std::uint64_t rows = tensor.shape.empty() ? 0 : tensor.shape[0];
  if (tokens_ > 0 && experts_.used < experts_.all && is_of_experts(tensor.name.view())) {
    const std::uint64_t used = checked_mul(tokens_, experts_.used).value_or(experts_.all);
    return used >= experts_.all ? bytes : bytes / experts_.all * used + bytes % experts_.all;
  }
  // a shared embedding is also the head, unless the head's copy is on the device
  const bool head = id == shared_ && !placement_.has_twin(id);
  if (tokens_ == 0 || rows == 0 || head || phase_of(tensor.name) != Phase::embedding) return bytes;
  return std::min(bytes, checked_mul(tokens_, std::max(bytes / rows, kAround)).value_or(bytes));
}

PassReads pass_reads(const graph::MetaGraph& graph, const BoundRequest& bound, bool whole,
                     const plan::Plan& plan, const plan::Timeline& timeline) {
  PassReads reads;
  if (!uses_weights(bound.request)) return reads;
  const WeightReads weights(graph, bound, whole);
  std::vector<bool> in_memory(graph.storages.size(), false);
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const plan::Block& block = plan.blocks[i];
    if (timeline.lifetimes[i].to_step != plan::kNever || !block.storage) continue;
    in_memory[graph::index(*block.storage)] = true;
    if (block.space == plan::Space::page_cache && block.use == plan::BlockUse::storage)
      reads.mapped += std::min(block.bytes, weights.of(*block.storage));
  }
  const std::vector<std::uint64_t> landed = loaded_bytes(graph, bound.request.cast);
  for (const graph::StorageId id : used_storages(graph))
    if (bound.placement.of(id) == Home::disk && !in_memory[graph::index(id)])
      reads.disk = add_loaded(reads.disk, landed[graph::index(id)]);
  return reads;
}

}  // namespace loadline::load
