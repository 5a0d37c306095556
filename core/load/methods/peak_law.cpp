// The laws of peaks as texts and numbers, and the sizes of a load that they are made of.
#include "core/base/checked_arithmetic.h"
#include "core/load/methods/builder.h"
#include "core/load/methods/framework_sizes.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/casts.h"
#include "core/load/request/method.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace loadline::load {

// --- Laws as texts and numbers.

namespace {

std::string_view space_words(const std::optional<plan::Space>& space) {
  if (!space) return "unified";
  return *space == plan::Space::page_cache ? "page cache" : plan::space_name(*space);
}

}  // namespace

std::string law_text(const Method& method) {
  std::string text;
  for (const LawPart& part : method.law({}))
    text += fmt::format("{}{}: {}{}", text.empty() ? "" : "; ", space_words(part.space), part.bytes.text,
                        part.cases);
  return text;
}

std::string law_text(const Method& method, std::optional<plan::Space> space) {
  const PeakLaw law = method.law({});
  const auto part = std::ranges::find(law, space, &LawPart::space);
  return part == law.end() ? "" : part->bytes.text;
}

std::vector<LawWord> law_words(std::span<const Method* const> methods) {
  std::vector<LawWord> words;
  for (const Method* const method : methods)
    for (const LawPart& part : method->law({}))
      for (const LawWord& word : part.bytes.words)
        if (std::ranges::find(words, word.name, &LawWord::name) == words.end()) words.push_back(word);
  std::stable_partition(words.begin(), words.end(),
                        [](const LawWord& word) { return !word.name.starts_with("if "); });
  return words;
}

LawPeaks law_peaks(const Method& method, const LawSizes& sizes) {
  LawPeaks peaks;
  for (const LawPart& part : method.law(sizes))
    (part.space ? peaks.spaces[plan::index(*part.space)] : peaks.unified.emplace()) = part.bytes.bytes;
  peaks.spaces[plan::index(plan::Space::host)] += sizes.host_pass;
  return peaks;
}

// --- What the words stand for in one load.

namespace {

// Bytes that tied weights hold until their last name is packed: the host copy; if doubled, also the staging
// buffers and device tensors of all names.
std::uint64_t held_for_ties(const graph::MetaGraph& graph, bool doubled) {
  std::uint64_t held = 0;
  for (const std::vector<graph::TensorId>& group : graph::tied_groups(graph))
    held = add_loaded(
        held, graph.storage(graph.tensor(group.front()).storage).bytes * (doubled ? 2 * group.size() : 1));
  return held;
}

// Sizes of the parts that run at once, in forward order; a tied weight counts in each part that uses it.
std::vector<std::uint64_t> unit_bytes(const graph::MetaGraph& graph) {
  std::map<std::tuple<Phase, int, std::uint64_t>, std::set<graph::StorageId>> units;
  for (const graph::Tensor& tensor : graph.tensors)
    units[forward_key(tensor.name.view())].insert(tensor.storage);
  std::vector<std::uint64_t> sizes;
  for (const auto& [key, storages] : units) {
    sizes.push_back(0);
    for (const graph::StorageId id : storages)
      sizes.back() = add_loaded(sizes.back(), graph.storage(id).bytes);
  }
  return sizes;
}

std::uint64_t sum_of_largest(std::vector<std::uint64_t> sizes, std::uint64_t count) {
  count = std::min<std::uint64_t>(count, sizes.size());
  std::ranges::partial_sort(sizes, sizes.begin() + static_cast<std::ptrdiff_t>(count), std::greater<>());
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum = add_loaded(sum, sizes[i]);
  return sum;
}

// One request more than are in flight, of the largest size that each may have in any order.
std::uint64_t runai_bound(const graph::MetaGraph& graph, const StorageOrder& storages, std::uint64_t limit) {
  std::vector<std::uint64_t> sizes;
  std::uint64_t all = 0;
  for (const graph::StorageId id : storages) {
    sizes.push_back(graph.storage(id).bytes);
    all = add_loaded(all, sizes.back());
  }
  const RunaiBuffers buffers = runai_buffers(sizes, limit);
  if (all < limit) return all;
  return std::min(all, checked_mul(buffers.count + 1, buffers.bytes).value_or(all));
}

class SizesOfLoad {
 public:
  SizesOfLoad(const graph::MetaGraph& graph, const BoundRequest& bound) : graph_(graph), bound_(bound) {}

  LawSizes sizes(std::uint64_t pass_bytes) {
    count_weights();
    count_mapped();
    count_experts();
    count_llama_cpp();
    count_packed();
    count_converted();
    count_streamed();
    count_buffers();
    sizes_.disk.holds = sizes_.disk_weights.bytes > 0;
    sizes_.pickled.holds = is_pickled(graph_);
    sizes_.used.holds = uses_weights(request_);
    sizes_.brought.holds =
        sizes_.used.holds && sizes_.device_weights.bytes > 0 && sizes_.largest_off_device.bytes > 0;
    const bool on_host = computes_on_host(bound_.placement);
    (on_host ? sizes_.host_pass : sizes_.pass.bytes) = add_loaded(request_.activation_bytes, pass_bytes);
    return sizes_;
  }

 private:
  std::uint64_t stored(graph::StorageId id) const { return graph_.storage(id).bytes; }
  std::uint64_t loaded(graph::StorageId id) const { return loaded_[graph::index(id)]; }
  std::uint32_t shard(graph::StorageId id) const { return shards_[graph::index(id)]; }
  Home home(graph::StorageId id) const { return bound_.placement.of(id); }
  bool stays(graph::StorageId id) const { return !request_.cast || !casts_[graph::index(id)]; }
  static void raise(LawSize& most, std::uint64_t bytes) { most.bytes = std::max(most.bytes, bytes); }
  static void add(LawSize& sum, std::uint64_t bytes) { sum.bytes = add_loaded(sum.bytes, bytes); }

  void count_weights() {
    std::map<std::uint32_t, std::uint64_t> shard_bytes;
    for (const graph::StorageId id : storages_) {
      add(sizes_.weights, stored(id));
      raise(sizes_.largest_weight, stored(id));
      raise(sizes_.largest_loaded, loaded(id));
      raise(sizes_.largest_stored_and_loaded, add_loaded(stored(id), loaded(id)));
      raise(sizes_.largest_shard, shard_bytes[shard(id)] += stored(id));
      const bool twin = bound_.placement.has_twin(id);
      const bool on_host = home(id) == Home::host;
      add(home(id) == Home::device ? sizes_.device_weights
          : on_host                ? sizes_.host_weights
                                   : sizes_.disk_weights,
          loaded(id));
      if (home(id) != Home::device || twin) raise(sizes_.largest_off_device, loaded(id));
      if (twin) add(sizes_.host_weights, loaded(id));
    }
    sizes_.largest_per_thread.bytes = sum_of_largest(loaded_, loading_threads(bound_));
    sizes_.cast.holds = request_.cast.has_value();
    sizes_.partly_cast.holds =
        request_.cast && std::ranges::any_of(storages_, [&](graph::StorageId id) { return stays(id); });
    sizes_.converted_on_host.holds =
        request_.cast && (sizes_.host_weights.bytes > 0 || sizes_.disk_weights.bytes > 0);
    if (const auto shared = shared_embedding(graph_)) sizes_.untied_head.bytes = loaded(*shared);
    sizes_.tied_copies.bytes = held_for_ties(graph_, request_.doubled_ties);
  }

  void count_mapped() {
    std::set<std::uint32_t> viewed;
    for (const graph::StorageId id : storages_)
      if (home(id) == Home::host && stays(id) && stored(id) > 0) viewed.insert(shard(id));
    for (const graph::StorageId id : storages_)
      if (home(id) == Home::device && viewed.contains(shard(id))) add(sizes_.still_mapped, stored(id));
  }

  void count_experts() {
    for (const ExpertGroup& group : expert_groups(graph_, storages_)) {
      std::uint64_t bytes = 0;
      for (const graph::StorageId id : group.storages) bytes = add_loaded(bytes, loaded(id));
      raise(sizes_.largest_fused_group, bytes);
      add(sizes_.fused_groups, bytes);
      if (home(group.storages.front()) != Home::device) sizes_.converted_on_host.holds = true;
    }
    sizes_.fused_experts.holds = sizes_.fused_groups.bytes > 0;
  }

  void count_llama_cpp() {
    sizes_.vocabulary.bytes = vocabulary_bytes(graph_);
    sizes_.repacked.holds = request_.repack.has_value();
    if (sizes_.device_weights.bytes == 0)
      sizes_.repacked_head.bytes = load::repacked_head(graph_, request_.repack);
    sizes_.repacked_weights.bytes = sizes_.repacked_head.bytes;
    const std::vector<bool> packed = repacked_storages(graph_, request_.repack);
    for (const graph::StorageId id : storages_)
      if (packed[graph::index(id)] && home(id) != Home::device) add(sizes_.repacked_weights, stored(id));
    const std::vector<bool> by_rows = storages_read_by_rows(graph_);
    for (const graph::StorageId id : storages_)
      if (by_rows[graph::index(id)] && home(id) != Home::device) {
        sizes_.by_rows.holds = true;
      } else {
        add(sizes_.mapped_weights, stored(id));
        if (home(id) != Home::device || bound_.placement.has_twin(id)) add(sizes_.read_weights, stored(id));
      }
  }

  void count_packed() {
    PackedWeights weights = packed_by_onnxruntime(graph_);
    for (const graph::StorageId id : storages_)
      if (weights.packed[graph::index(id)]) add(sizes_.bf16_matrices, stored(id) / 2);
    std::vector<bool> reordered(graph_.storages.size(), false);
    for (const graph::StorageId id : weights.reordered) {
      weights.packed[graph::index(id)] = true;
      reordered[graph::index(id)] = true;
      add(sizes_.reordered, stored(id));
      raise(sizes_.largest_reordered, stored(id));
    }
    for (const graph::StorageId id : storages_)
      if (!lies_outside(graph_, id)) {
        add(sizes_.inside, stored(id));
        raise(sizes_.largest_inside, stored(id));
      } else {
        add(sizes_.outside, stored(id));
        add(weights.packed[graph::index(id)] ? sizes_.outside_packed : sizes_.outside_mapped, stored(id));
        if (weights.packed[graph::index(id)]) raise(sizes_.largest_outside_packed, stored(id));
        if (reordered[graph::index(id)])
          raise(sizes_.largest_outside_reordered, stored(id));
        else
          add(sizes_.outside_unordered, stored(id));
      }
  }

  void count_converted() {
    sizes_.planned.bytes = planned_bytes(graph_);
    const std::vector<bool> delegated = delegated_storages(graph_);
    for (const graph::StorageId id : storages_)
      if (delegated[graph::index(id)]) add(sizes_.delegated, stored(id));
    for (const Adapter& adapter : adapters_of(graph_, request_)) {
      add(sizes_.adapters, adapter.bytes);
      add(sizes_.adapted, stored(adapter.weight));
      raise(sizes_.largest_adapted, stored(adapter.weight));
      raise(sizes_.largest_merge, adapter.merge_bytes(stored(adapter.weight)));
    }
    if (file_kind(graph_) != opened::kGguf) return;
    for (const std::uint64_t bytes : unpacked_bytes(graph_, request_.cast.value_or(graph::DType::f32)))
      add(sizes_.unpacked, bytes);
    for (const std::uint64_t bytes : unpacked_bytes(graph_, graph::DType::f32))
      raise(sizes_.largest_unpacked_f32, bytes);
  }

  void count_streamed() {
    std::uint64_t before = 0;
    for (const std::uint64_t unit : unit_bytes(graph_)) {
      raise(sizes_.largest_streamed_part, unit);
      raise(sizes_.two_streamed_parts, add_loaded(before, unit));
      before = unit;
    }
  }

  void count_buffers() {
    const std::uint64_t slot = request_.staging_bytes / request_.slots;
    sizes_.ring.bytes = slot * request_.slots;
    sizes_.own_ring.bytes = own_slot_bytes(request_, sizes_.device_weights.bytes) * request_.slots;
    const std::uint64_t rest = slot > 0 ? sizes_.weights.bytes % slot : 0;
    sizes_.weights_in_slots.bytes =
        rest > 0 ? add_loaded(sizes_.weights.bytes, slot - rest) : sizes_.weights.bytes;
    sizes_.flush_threshold.bytes = request_.flush_bytes;
    sizes_.requests.bytes = runai_bound(graph_, storages_, request_.runai_buffer);
  }

  const graph::MetaGraph& graph_;
  const BoundRequest& bound_;
  const LoadRequest& request_ = bound_.request;
  const StorageOrder storages_ = find_order("file").make(graph_);
  const std::vector<std::uint64_t> loaded_ = loaded_bytes(graph_, request_.cast);
  const std::vector<std::uint32_t> shards_ = shards_of(graph_, request_.shard_bytes);
  const std::vector<std::optional<plan::Cast>> casts_ =
      request_.cast ? storage_casts(graph_, *request_.cast) : std::vector<std::optional<plan::Cast>>();
  LawSizes sizes_ = {};
};

}  // namespace

LawSizes law_sizes(const graph::MetaGraph& graph, const BoundRequest& bound, std::uint64_t pass_bytes) {
  return SizesOfLoad(graph, bound).sizes(pass_bytes);
}

}  // namespace loadline::load
