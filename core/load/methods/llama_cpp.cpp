// llama.cpp: the mapped file itself, plain reads, or direct I/O; with matrices repacked for the CPU.
#include "core/load/methods/builder.h"
#include "core/load/methods/framework_sizes.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace loadline::load {
namespace {

struct Range {
  std::uint64_t begin = UINT64_MAX;
  std::uint64_t end = 0;
  void add(const graph::Storage& storage) {
    begin = std::min(begin, storage.offset);
    end = std::max(end, storage.offset + storage.bytes);
  }
  bool covers(const graph::Storage& storage) const {
    return storage.offset >= begin && storage.offset + storage.bytes <= end;
  }
};

class LlamaCpp {
 public:
  explicit LlamaCpp(MethodBuilder& b)
      : b_(b),
        repacked_(repacked_storages(b.graph(), b.bound().request.repack)),
        by_rows_(storages_read_by_rows(b.graph())) {
    host_block(vocabulary_bytes(b.graph()), "vocabulary");
  }

  bool on_device(graph::StorageId id) const { return b_.home(id) == Home::device; }
  // Weights used on the host from memory of their own.
  bool repacks(graph::StorageId id) const { return !on_device(id) && repacked_[graph::index(id)]; }

  // Weights of which nothing is read while the model loads: they are mapped, whatever the others are.
  bool read_by_rows(graph::StorageId id) const { return !on_device(id) && by_rows_[graph::index(id)]; }

  // The copy of a shared embedding that serves as the head on the host.
  void repack_head() {
    if (std::ranges::none_of(b_.order(), [&](graph::StorageId id) { return on_device(id); }))
      host_block(repacked_head(b_.graph(), b_.bound().request.repack), "repacked head");
  }

  // As llama-model-loader.cpp reads: the ring for the device, then what is repacked, the largest first, each
  // through a temporary of its size, then all others in the order in which the model creates them. `piece`
  // is the size of the aligned buffer that direct I/O reads through; 0: none.
  void read_all(std::uint32_t slots, std::uint64_t slot_bytes, std::uint64_t piece) {
    std::vector<plan::BlockId> device(b_.graph().storages.size());
    std::uint64_t sent = 0;
    for (const graph::StorageId id : b_.order())
      if (on_device(id)) device[graph::index(id)] = b_.make(plan::Space::device, id), sent += b_.bytes(id);
    std::optional<TransferRing> ring;
    if (sent > 0) ring.emplace(b_.plan(), slots, slot_bytes, sent, "");
    for (const graph::StorageId id : b_.order())
      if (on_device(id)) ring->send(id, b_.bytes(id), device[graph::index(id)], b_.unit(id));
    if (ring) ring->close();
    const StorageOrder created = as_created();
    for (const graph::StorageId id : largest_first(created)) read_repacked(id, piece);
    repack_head();
    for (const graph::StorageId id : created) {
      if (repacks(id)) continue;
      const plan::BlockId weight = b_.make(plan::Space::host, id);
      const std::optional<plan::BlockId> buffer = aligned_buffer(id, piece);
      b_.read(weight, id);
      if (buffer) b_.drop(*buffer);
    }
  }

 private:
  void host_block(std::uint64_t bytes, std::string label) {
    if (bytes == 0) return;
    plan::alloc(b_.plan(), {.bytes = bytes,
                            .space = plan::Space::host,
                            .use = plan::BlockUse::value,
                            .storage = {},
                            .extra = std::move(label)});
  }

  std::optional<plan::BlockId> aligned_buffer(graph::StorageId id, std::uint64_t piece) {
    if (piece == 0) return std::nullopt;
    return plan::alloc(b_.plan(), {.bytes = std::min(b_.bytes(id), piece),
                                   .space = plan::Space::host,
                                   .use = plan::BlockUse::temporary,
                                   .storage = {},
                                   .extra = "aligned buffer"});
  }

  void read_repacked(graph::StorageId id, std::uint64_t piece) {
    const plan::BlockId read = b_.make(plan::Space::host, id, plan::BlockUse::temporary);
    const std::optional<plan::BlockId> buffer = aligned_buffer(id, piece);
    b_.read(read, id);
    if (buffer) b_.drop(*buffer);
    b_.move(b_.make(plan::Space::host, id), read);
    b_.drop(read);
  }

  StorageOrder largest_first(const StorageOrder& created) const {
    StorageOrder order;
    for (const graph::StorageId id : created)
      if (repacks(id)) order.push_back(id);
    std::ranges::stable_sort(
        order, [&](graph::StorageId x, graph::StorageId y) { return b_.bytes(x) > b_.bytes(y); });
    return order;
  }

  // The weights on the host. Embedding, final norm and head come before the layers, and the parts of a layer
  // in the order of its code.
  StorageOrder as_created() const {
    StorageOrder order;
    for (const graph::StorageId id : b_.order())
      if ((!on_device(id) || b_.has_twin(id)) && !read_by_rows(id)) order.push_back(id);
    if (order.empty()) return order;
    const std::vector<std::optional<graph::TensorId>> owners = graph::first_owner(b_.graph());
    constexpr std::array<std::string_view, 10> kParts = {
        "attn_norm.", "attn_q.",       "attn_k.",  "attn_v.",  "attn_output.",
        "ffn_norm.",  "ffn_gate_inp.", "ffn_gate", "ffn_down", "ffn_up"};
    constexpr std::array<int, 5> kPhases = {0, 4, 3, 1, 2};  // by Phase
    const auto key = [&](graph::StorageId id) {
      const std::string_view name = b_.graph().tensor(*owners[graph::index(id)]).name.view();
      const auto [phase, stack, layer] = forward_key(name);
      const auto part = std::ranges::find_if(
          kParts, [&](std::string_view p) { return name.find(p) != std::string_view::npos; });
      return std::tuple(kPhases[static_cast<std::size_t>(phase)], stack, layer, part - kParts.begin());
    };
    using Keyed = std::pair<decltype(key(graph::StorageId{})), graph::StorageId>;
    std::vector<Keyed> keyed;
    for (const graph::StorageId id : order) keyed.emplace_back(key(id), id);
    std::ranges::stable_sort(keyed, {}, &Keyed::first);
    std::ranges::transform(keyed, order.begin(), &Keyed::second);
    return order;
  }

  MethodBuilder& b_;
  const std::vector<bool> repacked_, by_rows_;
};

}  // namespace

// Four pinned buffers of 1 MiB for any model, none if no weight goes to the device.
plan::Plan load_llama_cpp_ring(MethodBuilder& b) {
  LlamaCpp(b).read_all(4, 1 << 20, 0);
  return b.finish();
}

// The same with buffers of 64 MiB.
plan::Plan load_llama_cpp_direct(MethodBuilder& b) {
  LlamaCpp(b).read_all(4, 64 << 20, 64 << 20);
  return b.finish();
}

// The whole file is mapped and populated before anything is copied, but for what is read by rows. Weights
// that stay on the host are the mapping itself, unless they are repacked out of it. At the end, only the
// parts of each file before the first and after the last weight that is used from the mapping are unmapped.
plan::Plan load_llama_cpp_mmap(MethodBuilder& b) {
  LlamaCpp model(b);
  StorageOrder order;
  std::ranges::copy_if(b.order(), std::back_inserter(order),
                       [&](graph::StorageId id) { return !model.read_by_rows(id); });
  const auto stays_mapped = [&](graph::StorageId id) {
    return (!model.on_device(id) && !model.repacks(id)) || b.has_twin(id);
  };
  std::map<graph::FileId, Range> kept;
  for (const graph::StorageId id : order)
    if (stays_mapped(id)) kept[b.graph().storage(id).file].add(b.graph().storage(id));
  std::vector<plan::BlockId> mapped;
  for (const graph::StorageId id : order) {
    mapped.push_back(b.make(plan::Space::page_cache, id,
                            stays_mapped(id) ? plan::BlockUse::storage : plan::BlockUse::temporary));
    if (stays_mapped(id) && !model.on_device(id)) b.read(mapped.back(), id);
  }
  plan::mark(b.plan(), "files mapped");
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    const graph::StorageId id = order[i];
    if (!model.on_device(id) && !model.repacks(id)) continue;
    const plan::BlockId weight = b.make(model.on_device(id) ? plan::Space::device : plan::Space::host, id);
    b.read(mapped[i], id);
    b.move(weight, mapped[i]);
  }
  model.repack_head();
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    const graph::Storage& storage = b.graph().storage(order[i]);
    const auto range = kept.find(storage.file);
    if (range == kept.end() || !range->second.covers(storage)) b.drop(mapped[i]);
  }
  return b.finish();
}

}  // namespace loadline::load
