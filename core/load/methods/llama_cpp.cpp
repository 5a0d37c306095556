// llama.cpp: the mapped file itself, plain reads, or direct I/O; with matrices repacked for the CPU.
#include "core/load/methods/builder.h"
#include "core/load/methods/framework_sizes.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace loadline {
namespace {

struct Range {
  std::uint64_t begin = UINT64_MAX;
  std::uint64_t end = 0;
  void add(const Storage& storage) {
    begin = std::min(begin, storage.offset);
    end = std::max(end, storage.offset + storage.bytes);
  }
  bool covers(const Storage& storage) const {
    return storage.offset >= begin && storage.offset + storage.bytes <= end;
  }
};

class LlamaCpp {
 public:
  explicit LlamaCpp(MethodBuilder& b)
      : b_(b),
        repacked_(repacked_storages(b.graph(), b.inputs().request.repack)),
        owners_(first_owner(b.graph())) {
    host_block(vocabulary_bytes(b.graph()), "vocabulary");
  }

  bool on_device(StorageId id) const { return b_.home(id) == Home::device; }
  // Weights used on the host from memory of their own.
  bool repacks(StorageId id) const { return !on_device(id) && repacked_[index(id)]; }

  // The copy of a shared embedding that serves as the head on the host.
  void repack_head() {
    if (std::ranges::none_of(b_.order(), [&](StorageId id) { return on_device(id); }))
      host_block(repacked_head(b_.graph(), b_.inputs().request.repack), "repacked head");
  }

  // As llama-model-loader.cpp reads: the ring for the device, then what is repacked, the largest first, each
  // through a temporary of its size, then all others in the order in which the model creates them. `piece`
  // is the size of the aligned buffer that direct I/O reads through; 0: none.
  void read_all(std::uint32_t slots, std::uint64_t slot_bytes, std::uint64_t piece) {
    std::vector<BlockId> device(b_.graph().storages.size());
    std::uint64_t sent = 0;
    for (const StorageId id : b_.order())
      if (on_device(id)) device[index(id)] = b_.make(Space::device, id), sent += b_.bytes(id);
    std::optional<TransferRing> ring;
    if (sent > 0) ring.emplace(b_.plan(), slots, slot_bytes, sent, "");
    for (const StorageId id : b_.order())
      if (on_device(id)) ring->send(id, b_.bytes(id), device[index(id)], b_.unit(id));
    if (ring) ring->close();
    const StorageOrder created = as_created();
    for (const StorageId id : largest_first(created)) read_repacked(id, piece);
    repack_head();
    for (const StorageId id : created) {
      if (repacks(id) || (on_device(id) && !b_.has_twin(id))) continue;
      const BlockId weight = b_.make(Space::host, id);
      const std::optional<BlockId> buffer = aligned_buffer(id, piece);
      b_.read(weight, id);
      if (buffer) b_.drop(*buffer);
    }
  }

 private:
  void host_block(std::uint64_t bytes, std::string label) {
    if (bytes == 0) return;
    alloc(b_.plan(), {.space = Space::host,
                      .bytes = bytes,
                      .use = BlockUse::value,
                      .storage = {},
                      .label = std::move(label)});
  }

  std::optional<BlockId> aligned_buffer(StorageId id, std::uint64_t piece) {
    if (piece == 0) return std::nullopt;
    return alloc(b_.plan(), {.space = Space::host,
                             .bytes = std::min(b_.bytes(id), piece),
                             .use = BlockUse::temporary,
                             .storage = {},
                             .label = "aligned buffer"});
  }

  void read_repacked(StorageId id, std::uint64_t piece) {
    const BlockId read = b_.make(Space::host, id, BlockUse::temporary);
    const std::optional<BlockId> buffer = aligned_buffer(id, piece);
    b_.read(read, id);
    if (buffer) b_.drop(*buffer);
    b_.move(b_.make(Space::host, id), read);
    b_.drop(read);
  }

  StorageOrder largest_first(const StorageOrder& created) const {
    StorageOrder order;
    for (const StorageId id : created)
      if (repacks(id)) order.push_back(id);
    std::ranges::stable_sort(order, [&](StorageId x, StorageId y) { return b_.bytes(x) > b_.bytes(y); });
    return order;
  }

  // Embedding, final norm and head come before the layers, and the parts of a layer in the order of its code.
  StorageOrder as_created() const {
    constexpr std::array<std::string_view, 10> kParts = {
        "attn_norm.", "attn_q.",       "attn_k.",  "attn_v.",  "attn_output.",
        "ffn_norm.",  "ffn_gate_inp.", "ffn_gate", "ffn_down", "ffn_up"};
    constexpr std::array<int, 5> kPhases = {0, 4, 3, 1, 2};  // by Phase
    const auto key = [&](StorageId id) {
      const std::string_view name = b_.graph().tensor(*owners_[index(id)]).name.view();
      const auto [phase, stack, layer] = forward_key(name);
      const auto part = std::ranges::find_if(
          kParts, [&](std::string_view p) { return name.find(p) != std::string_view::npos; });
      return std::tuple(kPhases[static_cast<std::size_t>(phase)], stack, layer, part - kParts.begin());
    };
    using Keyed = std::pair<decltype(key(StorageId{})), StorageId>;
    std::vector<Keyed> keyed;
    for (const StorageId id : b_.order()) keyed.emplace_back(key(id), id);
    std::ranges::stable_sort(keyed, {}, &Keyed::first);
    StorageOrder order;
    for (const Keyed& entry : keyed) order.push_back(entry.second);
    return order;
  }

  MethodBuilder& b_;
  const std::vector<bool> repacked_;
  const std::vector<std::optional<TensorId>> owners_;
};

}  // namespace

// Four pinned buffers of 1 MiB for any model, none if no weight goes to the device.
Plan load_llama_cpp_ring(MethodBuilder& b) {
  LlamaCpp(b).read_all(4, 1 << 20, 0);
  return b.finish();
}

// The same with buffers of 64 MiB.
Plan load_llama_cpp_direct(MethodBuilder& b) {
  LlamaCpp(b).read_all(4, 64 << 20, 64 << 20);
  return b.finish();
}

// The whole file is mapped and populated before anything is copied. Weights that stay on the host are the
// mapping itself, unless they are repacked out of it. At the end, only the parts of each file before the
// first and after the last weight that is used from the mapping are unmapped.
Plan load_llama_cpp_mmap(MethodBuilder& b) {
  LlamaCpp model(b);
  const auto stays_mapped = [&](StorageId id) {
    return (!model.on_device(id) && !model.repacks(id)) || b.has_twin(id);
  };
  std::map<FileId, Range> kept;
  for (const StorageId id : b.order())
    if (stays_mapped(id)) kept[b.graph().storage(id).file].add(b.graph().storage(id));
  std::vector<BlockId> mapped;
  for (const StorageId id : b.order()) {
    mapped.push_back(
        b.make(Space::page_cache, id, stays_mapped(id) ? BlockUse::storage : BlockUse::temporary));
    if (stays_mapped(id) && !model.on_device(id)) b.read(mapped.back(), id);
  }
  mark(b.plan(), "files mapped");
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    const StorageId id = b.order()[i];
    if (!model.on_device(id) && !model.repacks(id)) continue;
    const BlockId weight = b.make(model.on_device(id) ? Space::device : Space::host, id);
    b.read(mapped[i], id);
    b.move(weight, mapped[i]);
  }
  model.repack_head();
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    const Storage& storage = b.graph().storage(b.order()[i]);
    const auto range = kept.find(storage.file);
    if (range == kept.end() || !range->second.covers(storage)) b.drop(mapped[i]);
  }
  return b.finish();
}

}  // namespace loadline
