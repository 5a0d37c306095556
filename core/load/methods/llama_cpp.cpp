// llama.cpp: a ring of small pinned buffers, or the mapped file itself.
#include "core/load/methods/programs.h"

#include <algorithm>
#include <map>
#include <optional>

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

}  // namespace

// As llama-model-loader.cpp: four pinned buffers of 1 MiB for any model, none if no weight goes to the
// device. Weights that stay on the host are read straight into their blocks.
Plan load_llama_cpp_ring(MethodBuilder& b) {
  constexpr std::uint32_t kSlots = 4;
  constexpr std::uint64_t kSlotBytes = 1 << 20;
  std::vector<BlockId> model;
  std::uint64_t sent = 0;  // weights that stay on the host bypass the ring
  for (const StorageId id : b.order()) {
    const bool device = b.home(id) == Home::device;
    model.push_back(b.make(device ? Space::device : Space::host, id));
    sent += device ? b.bytes(id) : 0;
  }
  std::optional<TransferRing> ring;
  if (sent > 0) ring.emplace(b.plan(), kSlots, kSlotBytes, sent, "");
  for (std::size_t i = 0; i < model.size(); ++i) {
    const StorageId id = b.order()[i];
    if (b.home(id) == Home::device)
      ring->send(id, b.bytes(id), model[i]);
    else
      b.read(model[i], id);
    if (b.has_twin(id)) b.read(b.make(Space::host, id), id);
  }
  if (ring) ring->close();
  return b.finish();
}

// The whole file is mapped before anything is copied. Weights that stay on the host are the mapping itself.
// At the end, only the parts of each file before the first and after the last of them are unmapped.
Plan load_llama_cpp_mmap(MethodBuilder& b) {
  const auto stays_mapped = [&](StorageId id) { return b.home(id) != Home::device || b.has_twin(id); };
  std::map<FileId, Range> kept;
  for (const StorageId id : b.order())
    if (stays_mapped(id)) kept[b.graph().storage(id).file].add(b.graph().storage(id));
  std::vector<BlockId> mapped;
  for (const StorageId id : b.order())
    mapped.push_back(
        b.make(Space::page_cache, id, stays_mapped(id) ? BlockUse::storage : BlockUse::temporary));
  mark(b.plan(), "files mapped");
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    const StorageId id = b.order()[i];
    if (b.home(id) != Home::device) continue;
    const BlockId weight = b.make(Space::device, id);
    b.read(mapped[i], id);
    b.move(weight, mapped[i]);
  }
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    const Storage& storage = b.graph().storage(b.order()[i]);
    const auto range = kept.find(storage.file);
    if (range == kept.end() || !range->second.covers(storage)) b.drop(mapped[i]);
    // the host touches its weights' pages when it first uses them
    else if (b.home(b.order()[i]) != Home::device)
      b.read(mapped[i], b.order()[i]);
  }
  return b.finish();
}

}  // namespace loadline
