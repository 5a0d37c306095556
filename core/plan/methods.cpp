// The table of load methods. Each follows its row of events in PyTorch's, llama.cpp's or
// ExecuTorch's loader; w is a tensor's bytes, W their sum, w* the largest, Q the activations.
#include "core/plan/methods.h"

#include "core/base/error.h"
#include "core/base/large_pages.h"
#include "core/base/lookup.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

namespace loadline {
namespace {

// A plan under construction over the storages that have bytes, in load order.
class Builder {
 public:
  Builder(const MetaGraph& graph, const StorageOrder& order, const MethodOptions& options)
      : graph_(graph), options_(options) {
    for (const StorageId id : order)
      if (graph.storage(id).bytes > 0) order_.push_back(id);
    // what the largest plans need, so that they do not move while they grow: untouched, it costs nothing
    plan_.blocks.reserve(3 * order_.size());
    plan_.steps.reserve(10 * order_.size());
    prefer_large_pages(plan_.blocks.data(), plan_.blocks.capacity() * sizeof(Block));
    prefer_large_pages(plan_.steps.data(), plan_.steps.capacity() * sizeof(Step));
  }

  const StorageOrder& order() const { return order_; }
  std::uint64_t bytes(StorageId id) const { return graph_.storage(id).bytes; }
  Plan& plan() { return plan_; }

  BlockId make(Space space, StorageId id, BlockUse use = BlockUse::storage) {
    return alloc(plan_, {.space = space, .bytes = bytes(id), .use = use, .storage = id});
  }
  // One block per storage, in load order.
  std::vector<BlockId> make_all(Space space) {
    std::vector<BlockId> blocks;
    for (const StorageId id : order_) blocks.push_back(make(space, id));
    return blocks;
  }
  void read(BlockId to, StorageId id) { copy(plan_, to, 0, id, 0, bytes(id)); }
  void move(BlockId to, BlockId from) { copy(plan_, to, 0, from, 0, plan_.block(from).bytes); }
  void drop(BlockId block) { free(plan_, block); }

  void activations() {
    if (options_.activation_bytes == 0) return;
    alloc(plan_, {.space = Space::device,
                  .bytes = options_.activation_bytes,
                  .use = BlockUse::value,
                  .storage = {},
                  .label = "activations"});
  }
  // The end of every load that allocates activations last.
  Plan finish() {
    mark(plan_, "loaded");
    activations();
    return std::move(plan_);
  }

 private:
  const MetaGraph& graph_;
  const MethodOptions& options_;
  StorageOrder order_;
  Plan plan_;
};

// A freshly initialised model in host memory that `.to(device)` moves parameter by parameter.
std::vector<BlockId> build_then_move(Builder& b) {
  const std::vector<BlockId> built = b.make_all(Space::host);
  mark(b.plan(), "built on the host");
  std::vector<BlockId> moved;
  for (std::size_t i = 0; i < built.size(); ++i) {
    moved.push_back(b.make(Space::device, b.order()[i]));
    b.move(moved.back(), built[i]);
    b.drop(built[i]);
  }
  mark(b.plan(), "model on the device");
  return moved;
}

Plan state_dict(const MetaGraph& graph, const StorageOrder& order, const MethodOptions& options) {
  Builder b(graph, order, options);
  const std::vector<BlockId> model = build_then_move(b);
  std::vector<BlockId> loaded;
  for (const StorageId id : b.order()) {
    const BlockId read = b.make(Space::host, id, BlockUse::temporary);
    b.read(read, id);
    loaded.push_back(b.make(Space::device, id, BlockUse::temporary));
    b.move(loaded.back(), read);
    b.drop(read);
  }
  mark(b.plan(), "state dict on the device");
  for (std::size_t i = 0; i < model.size(); ++i) b.move(model[i], loaded[i]);
  for (const BlockId block : loaded) b.drop(block);
  return b.finish();
}

Plan sequential(const MetaGraph& graph, const StorageOrder& order, const MethodOptions& options) {
  Builder b(graph, order, options);
  const std::vector<BlockId> model = build_then_move(b);
  std::vector<BlockId> read;
  for (const StorageId id : b.order()) {
    read.push_back(b.make(Space::host, id, BlockUse::temporary));
    b.read(read.back(), id);
  }
  mark(b.plan(), "state dict on the host");
  for (std::size_t i = 0; i < model.size(); ++i) {
    const BlockId temporary = b.make(Space::device, b.order()[i], BlockUse::temporary);
    b.move(temporary, read[i]);
    b.move(model[i], temporary);
    b.drop(temporary);
  }
  for (const BlockId block : read) b.drop(block);
  return b.finish();
}

Plan mmap_assign(const MetaGraph& graph, const StorageOrder& order, const MethodOptions& options) {
  Builder b(graph, order, options);
  std::vector<BlockId> mapped;
  for (const StorageId id : b.order()) {
    mapped.push_back(b.make(Space::page_cache, id, BlockUse::temporary));
    b.read(mapped.back(), id);
    b.move(b.make(Space::device, id), mapped.back());
  }
  for (const BlockId block : mapped) b.drop(block);
  return b.finish();
}

Plan per_tensor(const MetaGraph& graph, const StorageOrder& order, const MethodOptions& options) {
  Builder b(graph, order, options);
  const std::vector<BlockId> model = b.make_all(Space::device);
  for (std::size_t i = 0; i < model.size(); ++i) {
    const BlockId read = b.make(Space::host, b.order()[i], BlockUse::temporary);
    b.read(read, b.order()[i]);
    b.move(model[i], read);
    b.drop(read);
  }
  return b.finish();
}

// Fills slots of the ring and empties them into the device: all reads of a slot come before its
// first transfer, so that a slot needs one wait when it comes round again.
class Ring {
 public:
  Ring(Plan& plan, const MethodOptions& options)
      : plan_(plan), slot_bytes_(options.staging_bytes / options.slots) {
    for (std::uint32_t i = 0; i < options.slots; ++i)
      slots_.push_back(alloc(plan_, {.space = Space::staging,
                                     .bytes = slot_bytes_,
                                     .use = BlockUse::ring_slot,
                                     .storage = {},
                                     .label = fmt::format("ring slot {}", i)}));
  }

  void send(StorageId from, std::uint64_t bytes, BlockId to) {
    for (std::uint64_t done = 0; done < bytes;) {
      const std::uint64_t piece = std::min(slot_bytes_ - filled_, bytes - done);
      copy(plan_, slots_[current_], filled_, from, done, piece);
      transfers_.push_back({.block = to, .at = done, .slot_at = filled_, .bytes = piece});
      filled_ += piece;
      done += piece;
      if (filled_ == slot_bytes_) next_slot();
    }
  }
  void close() {
    next_slot();
    for (const BlockId slot : slots_) free(plan_, slot);
  }

 private:
  struct Transfer {
    BlockId block{};
    std::uint64_t at = 0;
    std::uint64_t slot_at = 0;
    std::uint64_t bytes = 0;
  };
  void next_slot() {
    for (const Transfer& t : transfers_) copy(plan_, t.block, t.at, slots_[current_], t.slot_at, t.bytes);
    transfers_.clear();
    filled_ = 0;
    current_ = (current_ + 1) % slots_.size();
  }

  Plan& plan_;
  std::uint64_t slot_bytes_;
  std::vector<BlockId> slots_;
  std::vector<Transfer> transfers_;
  std::uint64_t filled_ = 0;
  std::size_t current_ = 0;
};

// A plan lists every transfer: a ring far too small for its model is refused before it fills memory.
void check_ring_steps(std::uint64_t bytes, const MethodOptions& options) {
  constexpr std::uint64_t kMostTransfers = 2'000'000;
  const std::uint64_t slot = options.staging_bytes / options.slots;
  if (bytes / slot > kMostTransfers)
    throw Error(ErrorCode::limit,
                fmt::format("slots of {} need {} transfers for {}, the limit is {}: use larger slots",
                            format_bytes(slot), bytes / slot, format_bytes(bytes), kMostTransfers));
}

Plan staged_ring(const MetaGraph& graph, const StorageOrder& order, const MethodOptions& options) {
  check_options(options);
  check_ring_steps(storage_bytes(graph), options);
  Builder b(graph, order, options);
  const std::vector<BlockId> model = b.make_all(Space::device);
  Ring ring(b.plan(), options);
  for (std::size_t i = 0; i < model.size(); ++i) ring.send(b.order()[i], b.bytes(b.order()[i]), model[i]);
  ring.close();
  return b.finish();
}

std::vector<BlockId> read_all_to_host(Builder& b) {
  std::vector<BlockId> read;
  for (const StorageId id : b.order()) {
    read.push_back(b.make(Space::host, id, BlockUse::temporary));
    b.read(read.back(), id);
  }
  mark(b.plan(), "file data on the host");
  return read;
}

Plan executorch_before(const MetaGraph& graph, const StorageOrder& order, const MethodOptions& options) {
  Builder b(graph, order, options);
  const std::vector<BlockId> read = read_all_to_host(b);
  const std::vector<BlockId> model = b.make_all(Space::device);
  b.activations();
  mark(b.plan(), "prepack starts");
  for (std::size_t i = 0; i < model.size(); ++i) {
    const BlockId staging = b.make(Space::staging, b.order()[i], BlockUse::temporary);
    b.move(staging, read[i]);
    b.drop(read[i]);
    b.move(model[i], staging);
    b.drop(staging);
  }
  mark(b.plan(), "loaded");
  return std::move(b.plan());
}

Plan executorch_after(const MetaGraph& graph, const StorageOrder& order, const MethodOptions& options) {
  Builder b(graph, order, options);
  const std::vector<BlockId> read = read_all_to_host(b);
  mark(b.plan(), "prepack starts");
  for (std::size_t i = 0; i < read.size(); ++i) {
    const BlockId staging = b.make(Space::staging, b.order()[i], BlockUse::temporary);
    const BlockId weight = b.make(Space::device, b.order()[i]);
    b.move(staging, read[i]);
    b.drop(read[i]);
    b.move(weight, staging);
    b.drop(staging);
  }
  return b.finish();
}

constexpr std::array<Method, 7> kMethods = {{
    {"state_dict", "model on the device, then load_state_dict of a second copy there",
     "device max(2W, W + Q), host W",
     "The model is built in host memory and moved to the device; the checkpoint is then loaded to the same "
     "device (torch.load with map_location) and copied over the weights. Until the state dict is dropped the "
     "device holds everything twice.",
     state_dict},
    {"sequential", "model on the device, state dict on the host, copied tensor by tensor",
     "device W + max(w*, Q), host W",
     "The model is built and moved to the device; the checkpoint is read whole into host memory and each "
     "tensor "
     "goes over through one temporary on the device. The device holds one extra tensor at a time; the host "
     "still "
     "holds the whole checkpoint.",
     sequential},
    {"mmap_assign", "empty model, mapped file, tensors assigned", "device W + Q, page cache W",
     "The model starts on the meta device without memory; the file is mapped (torch.load with mmap=True and "
     "assign=True) and each tensor is copied from the mapped pages to its place. Nothing is anonymous "
     "memory, "
     "but the mapped pages count as resident until the system drops them.",
     mmap_assign},
    {"per_tensor", "empty model on the device, one tensor read at a time", "device W + Q, host w*",
     "The model is allocated on the device without initialising it, then each tensor is read into host "
     "memory, "
     "copied over and freed. The host needs the largest tensor only.",
     per_tensor},
    {"staged_ring", "empty model on the device, fed through a ring of pinned slots",
     "device W + Q, staging r*c",
     "The model is allocated on the device; the files are read straight into a small ring of staging slots, "
     "many "
     "tensors to a slot and large ones over several, while earlier slots are still being transferred. No "
     "host "
     "copy exists and the ring's size does not depend on the model.",
     staged_ring},
    {"executorch_before", "device tensors and activations first, then prepack from host copies",
     "unified <= 2W + Q + w*",
     "ExecuTorch's Vulkan delegate up to mid-2025: file data on the host, all device tensors and the "
     "activations "
     "allocated at once, then each tensor goes through a staging buffer of its size and its host copy is "
     "freed.",
     executorch_before},
    {"executorch_after", "each device tensor allocated just before its prepack",
     "unified max(W + 2w*, W + Q)",
     "The same delegate since: a device tensor is allocated just before it is filled and its host copy freed "
     "straight after, and the activations come last, so the three copies exist for one tensor at a time.",
     executorch_after},
}};

}  // namespace

std::span<const Method> methods() { return kMethods; }

const Method& find_method(std::string_view id) { return find_row(methods(), id, "method"); }

void check_options(const MethodOptions& options) {
  constexpr std::uint64_t kLeastSlot = 4096;
  constexpr std::uint32_t kMostSlots = 1024;
  if (options.slots == 0 || options.slots > kMostSlots)
    throw Error(ErrorCode::usage,
                fmt::format("a ring needs 1 to {} slots, {} were asked for", kMostSlots, options.slots));
  if (options.staging_bytes / options.slots < kLeastSlot)
    throw Error(
        ErrorCode::usage,
        fmt::format("a ring of {} bytes in {} slots has slots of {} bytes, the least is {}",
                    options.staging_bytes, options.slots, options.staging_bytes / options.slots, kLeastSlot));
  if (options.activation_bytes >> 60 != 0)
    throw Error(ErrorCode::usage, fmt::format("activations of {} are over the limit of 1 EiB",
                                              format_bytes(options.activation_bytes)));
  if (options.staging_bytes > std::uint64_t{1} << 40)
    throw Error(ErrorCode::usage,
                fmt::format("a ring of {} is over the limit of 1 TiB", format_bytes(options.staging_bytes)));
}

}  // namespace loadline
