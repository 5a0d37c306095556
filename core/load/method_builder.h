// What load methods are written with; for the methods only.
#pragma once

#include "core/load/methods.h"

#include <vector>

namespace loadline {

// A plan under construction over the storages that have bytes, in load order.
class MethodBuilder {
 public:
  // Throws Error{usage} for options that check_request() refuses.
  MethodBuilder(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs);

  const MetaGraph& graph() const { return graph_; }
  const StorageOrder& order() const { return order_; }
  const LoadInputs& inputs() const { return inputs_; }
  std::uint64_t bytes(StorageId id) const { return graph_.storage(id).bytes; }
  std::uint64_t all_bytes() const;
  std::uint64_t most_bytes() const;  // of one storage; 0 if there is none
  Plan& plan() { return plan_; }
  // The storages of each shard (shards.h), in load order; shards by their first one in it.
  std::vector<StorageOrder> by_shard() const;

  // What options().request.cast makes of a storage, if anything.
  std::optional<Cast> cast(StorageId id) const { return casts_.empty() ? std::nullopt : casts_[index(id)]; }
  std::uint64_t cast_bytes(StorageId id) const;  // v: what it takes once loaded; bytes(id) without a cast
  std::uint64_t all_cast_bytes() const;
  Home home(StorageId id) const { return inputs_.placement.of(id); }
  bool has_twin(StorageId id) const { return inputs_.placement.has_twin(id); }

  // A block for a storage as it is stored.
  BlockId make(Space space, StorageId id, BlockUse use = BlockUse::storage);
  // One block per storage, in load order.
  std::vector<BlockId> make_all(Space space, BlockUse use = BlockUse::storage);
  // The same for a storage as it is once loaded.
  BlockId make_cast(Space space, StorageId id, BlockUse use = BlockUse::storage);
  std::vector<BlockId> make_all_cast(Space space, BlockUse use = BlockUse::storage);

  void read(BlockId to, StorageId id) { copy(plan_, to, 0, id, 0, bytes(id)); }
  void read_cast(BlockId to, StorageId id) { copy(plan_, to, 0, id, 0, bytes(id), cast(id)); }
  void move(BlockId to, BlockId from) { copy(plan_, to, 0, from, 0, plan_.block(from).bytes); }
  // `from` holds the storage as it is stored, `to` gets it as it is once loaded.
  void move_cast(BlockId to, BlockId from, StorageId id) { copy(plan_, to, 0, from, 0, bytes(id), cast(id)); }
  void drop(BlockId block) { free(plan_, block); }
  void drop_all(const std::vector<BlockId>& blocks);

  void activations();
  // The end of every load that allocates activations last.
  Plan finish();

 private:
  const MetaGraph& graph_;
  const LoadInputs& inputs_;
  std::vector<std::optional<Cast>> casts_;  // by storage; empty: none
  StorageOrder order_;
  Plan plan_;
};

// Fills slots of the ring and empties them into the device: all reads of a slot come before its first
// transfer, so that a slot needs one wait when it comes round again.
class TransferRing {
 public:
  // Throws Error{limit} if `bytes` would take so many transfers that the plan itself became too large;
  // `remedy` ends its message, where somebody has a choice.
  TransferRing(Plan& plan, std::uint32_t slots, std::uint64_t slot_bytes, std::uint64_t bytes,
               std::string_view remedy = ": use larger slots");

  // All of a storage's `bytes`; what lies in the slots is cast already.
  void send(StorageId from, std::uint64_t bytes, BlockId to, std::optional<Cast> cast = {});
  // What is in the slot filled last goes out; the slots stay.
  void flush();
  void close();

 private:
  struct Transfer {
    BlockId block{};
    std::uint64_t at = 0;
    std::uint64_t slot_at = 0;
    std::uint64_t bytes = 0;
  };

  Plan& plan_;
  std::uint64_t slot_bytes_;
  std::vector<BlockId> slots_;
  std::vector<Transfer> transfers_;
  std::uint64_t filled_ = 0;
  std::size_t current_ = 0;
};

}  // namespace loadline
