// Plans step by step: blocks, staging ring, mapped files; and the plan of a method.
#include "core/load/methods/builder.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/system_memory.h"
#include "core/load/request/casts.h"
#include "core/load/request/model_parts.h"
#include "core/load/request/pass.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>
#include <utility>

#include <fmt/core.h>

namespace loadline::load {

// --- Builds plans step by step for load methods.

MethodBuilder::MethodBuilder(const graph::MetaGraph& graph, const StorageOrder& order,
                             const BoundRequest& bound, plan::Plan used, std::uint64_t pass_bytes)
    : graph_(graph),
      bound_(bound),
      parts_(bound.parts ? bound.parts : std::make_shared<const NamedParts>(graph)),
      activations_(bound.request.activation_bytes + pass_bytes),
      plan_(std::move(used)) {
  if (bound.request.cast) casts_ = storage_casts(graph, *bound.request.cast);
  if (bound.request.prepack) prepacks_ = storage_prepacks(graph, *bound.request.prepack);
  order_ = order;
  if (parts_->some_empty())
    std::erase_if(order_, [&](graph::StorageId id) { return graph.storage(id).bytes == 0; });
  plan_.blocks.clear();
  plan_.steps.clear();
  plan_.marks.clear();
  plan_.taken = 0;
  // room for the largest plans, so that they do not move while they grow; untouched memory costs nothing
  plan_.blocks.reserve(4 * order_.size());
  if (plan_.taker == nullptr) plan_.steps.reserve(12 * order_.size());
  io::prefer_large_pages(plan_.blocks.data(), plan_.blocks.capacity() * sizeof(plan::Block));
  io::prefer_large_pages(plan_.steps.data(), plan_.steps.capacity() * sizeof(plan::Step));
}

namespace {

// may wrap; check_plan refuses such plans
template <typename BytesOf>
std::uint64_t sum_of(const StorageOrder& order, const BytesOf& bytes_of) {
  std::uint64_t sum = 0;
  for (const graph::StorageId id : order) sum += bytes_of(id);
  return sum;
}

}  // namespace

std::uint64_t MethodBuilder::all_bytes() const {
  return sum_of(order_, [&](graph::StorageId id) { return bytes(id); });
}

std::uint64_t MethodBuilder::cast_bytes(graph::StorageId id) const {
  const auto how = cast(id);
  return how ? *loadline::plan::cast_bytes(*how, bytes(id)) : bytes(id);
}

std::uint64_t MethodBuilder::unit(graph::StorageId id) const {
  return prepacks_.empty() || !prepacks_[graph::index(id)]
             ? 1
             : graph::dtype_info(prepacks_[graph::index(id)]->from).block_bytes;
}

std::uint64_t MethodBuilder::all_cast_bytes() const {
  return sum_of(order_, [&](graph::StorageId id) { return cast_bytes(id); });
}

std::uint64_t MethodBuilder::most_bytes() const {
  std::uint64_t most = 0;
  for (const graph::StorageId id : order_) most = std::max(most, bytes(id));
  return most;
}

std::vector<StorageOrder> MethodBuilder::by_shard() const {
  constexpr std::size_t kUnmet = static_cast<std::size_t>(-1);
  const std::vector<std::uint32_t> numbers = shards_of(graph_, bound_.request.shard_bytes);
  std::vector<std::size_t> places(graph_.files.size() + numbers.size() + 1, kUnmet);
  std::vector<StorageOrder> shards;
  for (const graph::StorageId id : order_) {
    std::size_t& place = places[numbers[graph::index(id)]];
    if (place == kUnmet) {
      place = shards.size();
      shards.emplace_back();
    }
    shards[place].push_back(id);
  }
  return shards;
}

plan::BlockId MethodBuilder::make(plan::Space space, graph::StorageId id, plan::BlockUse use) {
  return plan::alloc(plan_, bytes(id), space, use, id);
}

plan::BlockId MethodBuilder::make_cast(plan::Space space, graph::StorageId id, plan::BlockUse use) {
  return plan::alloc(plan_, cast_bytes(id), space, use, id);
}

std::vector<plan::BlockId> MethodBuilder::make_all(plan::Space space, plan::BlockUse use) {
  std::vector<plan::BlockId> blocks;
  blocks.reserve(order_.size());
  for (const graph::StorageId id : order_) blocks.push_back(make(space, id, use));
  return blocks;
}

std::vector<plan::BlockId> MethodBuilder::make_all_cast(plan::Space space, plan::BlockUse use) {
  std::vector<plan::BlockId> blocks;
  blocks.reserve(order_.size());
  for (const graph::StorageId id : order_) blocks.push_back(make_cast(space, id, use));
  return blocks;
}

plan::BlockId MethodBuilder::load(plan::Space space, graph::StorageId id) {
  const plan::BlockId block = make(space, id, plan::BlockUse::temporary);
  read(block, id);
  return block;
}

void MethodBuilder::drop_all(const std::vector<plan::BlockId>& blocks) {
  for (const plan::BlockId block : blocks) drop(block);
}

std::optional<plan::BlockId> MethodBuilder::untied_head(plan::Space space, plan::BlockUse use) {
  const std::optional<graph::StorageId> embedding = parts_->shared_embedding();
  if (!embedding || bytes(*embedding) == 0) return std::nullopt;
  return plan::alloc(plan_, {.bytes = cast_bytes(*embedding),
                             .space = space,
                             .use = use,
                             .storage = {},
                             .extra = "head that is not tied"});
}

std::vector<plan::BlockId> MethodBuilder::build() {
  std::vector<plan::BlockId> model = make_all_cast(plan::Space::host);
  if (const std::optional<plan::BlockId> head = untied_head(plan::Space::host, plan::BlockUse::temporary))
    drop(*head);
  plan::mark(plan_, "built on the host");
  return model;
}

void MethodBuilder::fill_by_shard(const std::vector<plan::BlockId>& model, plan::Space from) {
  std::vector<plan::BlockId> weights(graph_.storages.size());
  for (std::size_t i = 0; i < model.size(); ++i) weights[graph::index(order_[i])] = model[i];
  for (const StorageOrder& shard : by_shard()) {
    std::vector<plan::BlockId> state;
    for (const graph::StorageId id : shard) {
      state.push_back(load(from, id));
      move_cast(weights[graph::index(id)], state.back(), id);
    }
    drop_all(state);
  }
  plan::mark(plan_, "loaded on the host");
}

void MethodBuilder::activations() {
  if (activations_ == 0) return;
  plan::alloc(plan_, {.bytes = activations_,
                      .space = computes_on_host(bound_.placement) ? plan::Space::host : plan::Space::device,
                      .use = plan::BlockUse::value,
                      .storage = {},
                      .extra = "activations"});
}

void MethodBuilder::touch_views() {
  const WeightReads reads(graph_, bound_, offloaded_ > 0);
  for (const graph::StorageId id : views_) {
    const std::uint64_t used = reads.of(id);
    const plan::BlockId pages = plan::alloc(
        plan_,
        {.bytes = used, .space = plan::Space::page_cache, .use = plan::BlockUse::storage, .storage = id});
    plan::copy(plan_, pages, 0, id, 0, used);
  }
  plan::mark(plan_, "weights on the host touched");
}

void MethodBuilder::bring_offloaded() {
  if (!uses_weights(bound_.request)) return;
  std::uint64_t largest = 0;
  bool some_on_device = false;
  for (const graph::StorageId id : order_)
    if (home(id) == Home::device)
      some_on_device = true;
    else
      largest = std::max(largest, cast_bytes(id));
  if (some_on_device && largest > 0) offloaded_ = largest;
}

plan::Plan MethodBuilder::finish() {
  plan::mark(plan_, "loaded");
  if (!views_.empty() && uses_weights(bound_.request)) touch_views();
  if (offloaded_ > 0)
    plan::alloc(plan_, {.bytes = offloaded_,
                        .space = plan::Space::device,
                        .use = plan::BlockUse::temporary,
                        .storage = {},
                        .extra = "offloaded weight in use"});
  activations();
  return std::move(plan_);
}

namespace {

// Copies whose offsets are no multiple of this are far slower on some devices; shaders read whole words.
constexpr std::uint64_t kCopyAlignment = 64;

}  // namespace

std::uint64_t own_slot_bytes(const LoadRequest& request, std::uint64_t weights) {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t pages = weights / request.slots / kPage + 1;
  return std::min(request.staging_bytes / request.slots, pages * kPage);
}

TransferRing::TransferRing(plan::Plan& plan, std::uint32_t slots, std::uint64_t slot_bytes,
                           std::uint64_t bytes, std::string_view remedy)
    : plan_(plan), slot_bytes_(slot_bytes) {
  assert(slots > 0 && slot_bytes > 0);
  // a plan lists every transfer: a ring far too small for its model is refused before the list fills memory
  constexpr std::uint64_t kMostTransfers = 2'000'000;
  if (bytes / slot_bytes > kMostTransfers)
    throw Error(ErrorCode::limit, "slots of {} need {} transfers for {}, the limit is {}{}",
                format_bytes(slot_bytes), format_grouped(bytes / slot_bytes), format_bytes(bytes),
                format_grouped(kMostTransfers), remedy);
  for (std::uint32_t i = 0; i < slots; ++i)
    slots_.push_back(plan::alloc(plan_, {.bytes = slot_bytes_,
                                         .space = plan::Space::staging,
                                         .use = plan::BlockUse::ring_slot,
                                         .storage = {},
                                         .extra = fmt::format("ring slot {}", i)}));
}

void TransferRing::send(graph::StorageId from, std::uint64_t bytes, plan::BlockId to, std::uint64_t unit,
                        std::optional<plan::Cast> cast) {
  // the smallest unit that can be cast alone: one number, or the numbers of one block
  std::uint64_t read_unit = unit;
  if (cast) {
    const graph::DTypeInfo &stored = graph::dtype_info(cast->from), &target = graph::dtype_info(cast->to);
    read_unit = std::uint64_t{stored.block_bytes} * target.block_elements;
    unit = target.block_bytes;
  }
  filled_ = std::min(align_up(filled_, kCopyAlignment), slot_bytes_);
  const std::uint64_t units = bytes / read_unit;
  // cuts come after as many: what follows is aligned on the device too
  const std::uint64_t aligned_units = kCopyAlignment / std::gcd(kCopyAlignment, unit);
  for (std::uint64_t done = 0; done < units;) {
    std::uint64_t piece = std::min((slot_bytes_ - filled_) / unit, units - done);
    const bool cut = piece < units - done;
    if (cut && piece > aligned_units) piece -= piece % aligned_units;
    if (cut && piece < aligned_units && filled_ > 0) piece = 0;  // the next slot has room for more
    if (piece == 0) {
      flush();
      continue;
    }
    plan::copy(plan_, slots_[current_], filled_, from, done * read_unit, piece * read_unit, cast);
    if (transfers_.empty()) first_at_ = done * unit;
    transfers_.push_back({.block = to, .bytes = piece * unit});
    filled_ += piece * unit;
    done += piece;
    if (cut || filled_ == slot_bytes_) flush();
  }
}

void TransferRing::flush() {
  // as send() placed them: only the first can be the rest of a storage
  std::uint64_t at = first_at_, slot_at = 0;
  for (const Transfer& t : transfers_) {
    plan::copy(plan_, t.block, std::exchange(at, 0), slots_[current_], slot_at, t.bytes);
    slot_at = std::min(align_up(slot_at + t.bytes, kCopyAlignment), slot_bytes_);
  }
  transfers_.clear();
  filled_ = 0;
  current_ = (current_ + 1) % slots_.size();
}

void TransferRing::close() {
  flush();
  for (const plan::BlockId slot : slots_) plan::free(plan_, slot);
}

// --- Maps, touches and unmaps files as views come and go.

MappedModel::MappedModel(MethodBuilder& b)
    : b_(b),
      files_(b.by_shard()),
      file_of_(b.graph().storages.size(), 0),
      mappings_(files_.size()),
      own_(b.graph().storages.size()),
      viewed_(b.graph().storages.size(), false) {
  for (std::size_t file = 0; file < files_.size(); ++file)
    for (const graph::StorageId id : files_[file]) file_of_[graph::index(id)] = file;
}

plan::BlockId MappedModel::touch(graph::StorageId id) {
  std::vector<plan::BlockId>& touched = mappings_[file_of_[graph::index(id)]].touched;
  touched.push_back(b_.load(plan::Space::page_cache, id));
  return touched.back();
}

void MappedModel::view(graph::StorageId id) {
  viewed_[graph::index(id)] = true;
  ++mappings_[file_of_[graph::index(id)]].views;
}

void MappedModel::close(std::size_t file) {
  if (mappings_[file].views == 0) b_.drop_all(std::exchange(mappings_[file].touched, {}));
}

void MappedModel::close() {
  for (std::size_t file = 0; file < files_.size(); ++file) close(file);
}

void MappedModel::to_device() {
  for (std::size_t file = 0; file < files_.size(); ++file) {
    for (const graph::StorageId id : files_[file]) {
      const bool moves = b_.home(id) == Home::device;
      if (const auto block = own_[graph::index(id)]; block && moves) {
        plan::Block made = b_.plan().block(*block);
        made.space = plan::Space::device;
        const plan::BlockId moved = plan::alloc(b_.plan(), std::move(made));
        b_.move(moved, *block);
        b_.drop(*block);
      }
      if (!viewed_[graph::index(id)]) continue;
      if (!moves) {
        b_.view(id);
        continue;
      }
      const plan::BlockId pages = touch(id);
      b_.move(b_.make(plan::Space::device, id), pages);
      --mappings_[file].views;
    }
    close(file);
  }
}

// --- Checks that a method supports the request, then makes its plan.

std::string_view framework_of(const Method& method) {
  struct Named {
    std::string_view prefix, framework;
  };
  constexpr auto kNamed = std::to_array<Named>({{"accelerate", "accelerate"},
                                                {"transformers", "transformers"},
                                                {"fastsafetensors", "fastsafetensors"},
                                                {"runai", "Run:ai Model Streamer"},
                                                {"executorch", "ExecuTorch"},
                                                {"onnxruntime", "onnxruntime"},
                                                {"litert", "LiteRT"},
                                                {"openvino", "OpenVINO"},
                                                {"peft", "peft"},
                                                {"numpy", "numpy"},
                                                {"llama_cpp", "llama.cpp"}});
  for (const Named& named : kNamed)
    if (method.id.starts_with(named.prefix)) return named.framework;
  switch (method.traits.runtime) {
    case Runtime::torch:
      return "PyTorch";
    case Runtime::own:
      return "a loader of one's own";
    default:
      return "any framework";
  }
}

bool can_cast_to(const Method& method, graph::DType type) {
  return method.traits.casts &&
         (method.traits.runtime != Runtime::torch || !graph::dtype_info(type).torch.empty());
}

std::uint32_t loading_threads(const BoundRequest& bound) {
  return bound.placement.leaves_on_disk() ? 1 : bound.request.workers;
}

plan::Plan make_plan(const graph::MetaGraph& graph, const Method& method, const StorageOrder& order,
                     const BoundRequest& asked, plan::Plan used, std::uint64_t pass_bytes) {
  const std::optional<BoundRequest> own = as_called(graph, method, asked);
  const BoundRequest& bound = own ? *own : asked;
  if (bound.request.cast && !method.traits.casts)
    throw Error(ErrorCode::unsupported, "the method does not cast weights");
  if (bound.request.cast && !can_cast_to(method, *bound.request.cast))
    throw Error(ErrorCode::unsupported, "PyTorch has no type {}",
                graph::dtype_info(*bound.request.cast).name);
  if (method.traits.host_only ? !computes_on_host(bound.placement) && !graph.storages.empty()
                              : !bound.placement.all_on_device() && !method.traits.offloads)
    throw Error(ErrorCode::unsupported, "the method places all weights on the {}",
                method.traits.host_only ? "host" : "device");
  if (!supports_placement(method, bound.request))
    throw Error(ErrorCode::unsupported, bound.request.gpu_layers
                                            ? "only llama.cpp counts layers on the device"
                                            : "the method has no automatic device map");
  if (!method.traits.disk && bound.placement.leaves_on_disk())
    throw Error(ErrorCode::unsupported, "the method leaves no weights on disk");
  // packed sizes are known only from the whole plan
  plan::StepTaker* const taker = used.taker;
  if (bound.request.prepack) used.taker = nullptr;
  MethodBuilder builder(graph, order, bound, std::move(used), pass_bytes);
  plan::Plan plan = method.make(builder);
  if (bound.request.prepack) plan = with_prepacks(std::move(plan), graph, *bound.request.prepack);
  plan.taker = taker;
  return plan;
}

}  // namespace loadline::load
