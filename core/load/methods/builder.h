// Helpers that write the plans of load methods; for methods only.
#pragma once

#include "core/load/request/method.h"

#include <vector>

namespace loadline {

// A plan under construction for the storages that have bytes, in load order.
class MethodBuilder {
 public:
  // `used` as in make_plan(). Throws Error{usage} as check_request() does.
  MethodBuilder(const MetaGraph& graph, const StorageOrder& order, const LoadInputs& inputs, Plan used = {});

  const MetaGraph& graph() const { return graph_; }
  const StorageOrder& order() const { return order_; }
  const LoadInputs& inputs() const { return inputs_; }
  std::uint64_t bytes(StorageId id) const { return graph_.storage(id).bytes; }
  std::uint64_t all_bytes() const;
  std::uint64_t most_bytes() const;  // of the largest storage; 0 if there is none
  Plan& plan() { return plan_; }
  // The storages of each shard (shards.h), in load order; shards sorted by their first storage in that order.
  std::vector<StorageOrder> by_shard() const;

  // How the requested cast converts a storage; nothing if it keeps its stored type.
  std::optional<Cast> cast(StorageId id) const { return casts_.empty() ? std::nullopt : casts_[index(id)]; }
  std::uint64_t cast_bytes(StorageId id) const;  // size once loaded; bytes(id) without a cast
  std::uint64_t all_cast_bytes() const;
  // Where copies may divide a storage that is to be packed: the bytes of one number or one block; 1
  // otherwise.
  std::uint64_t unit(StorageId id) const;
  Home home(StorageId id) const { return inputs_.placement.of(id); }
  bool has_twin(StorageId id) const { return inputs_.placement.has_twin(id); }

  // Allocates a block for a storage in its stored type.
  BlockId make(Space space, StorageId id, BlockUse use = BlockUse::storage);
  // One such block per storage, in load order.
  std::vector<BlockId> make_all(Space space, BlockUse use = BlockUse::storage);
  // The same with each storage's size after the cast.
  BlockId make_cast(Space space, StorageId id, BlockUse use = BlockUse::storage);
  std::vector<BlockId> make_all_cast(Space space, BlockUse use = BlockUse::storage);
  // A temporary block that the storage is read into.
  BlockId load(Space space, StorageId id);

  void read(BlockId to, StorageId id) { copy(plan_, to, 0, id, 0, bytes(id)); }
  void read_cast(BlockId to, StorageId id) { copy(plan_, to, 0, id, 0, bytes(id), cast(id)); }
  void move(BlockId to, BlockId from) { copy(plan_, to, 0, from, 0, plan_.block(from).bytes); }
  // `from` holds the storage in its stored type; `to` receives it cast.
  void move_cast(BlockId to, BlockId from, StorageId id) { copy(plan_, to, 0, from, 0, bytes(id), cast(id)); }
  void drop(BlockId block) { free(plan_, block); }
  void drop_all(const std::vector<BlockId>& blocks);

  // A model as its constructor makes it in host memory: one block per storage in load order, in the type that
  // the weights are cast to. A head that is the embedding exists of its own until the two are tied.
  std::vector<BlockId> build();
  // Such a head in memory of its own, where the embedding's weight is loaded to `space`; nothing if the
  // model has none.
  std::optional<BlockId> untied_head(Space space, BlockUse use);
  // Reads the weights shard by shard into temporary blocks of `from`, and from there into the model's blocks,
  // which build() made.
  void fill_by_shard(const std::vector<BlockId>& model, Space from);
  // The weight stays a view of its mapped file. Its pages are touched when a forward pass first uses it.
  void view(StorageId id) { views_.push_back(id); }

  // A forward pass on the device brings each weight that is not there to it and frees it after use: there is
  // room for the largest of them.
  void bring_offloaded();

  void activations();
  // Ends the plan of a load that allocates activations last: marks "loaded", touches the views if a forward
  // pass follows, then allocates the activations.
  Plan finish();

 private:
  void touch_views();

  const MetaGraph& graph_;
  const LoadInputs& inputs_;
  std::vector<std::optional<Cast>> casts_;        // by storage; empty: no cast
  std::vector<std::optional<Prepack>> prepacks_;  // likewise
  StorageOrder order_;
  StorageOrder views_;
  std::uint64_t offloaded_ = 0;
  Plan plan_;
};

// A staging ring: fills a slot with reads, then copies its contents to the device. All reads into a slot come
// before its first transfer, so the slot needs only one wait before it is reused.
class TransferRing {
 public:
  // Throws Error{limit} if `bytes` would need so many transfers that the plan itself became too large; the
  // message ends with `remedy`.
  TransferRing(Plan& plan, std::uint32_t slots, std::uint64_t slot_bytes, std::uint64_t bytes,
               std::string_view remedy = ": use larger slots");

  // Sends the `bytes` of a storage to block `to`. The slots hold the cast weights. Without a cast they are
  // divided at multiples of `unit`, and begin on a word if that is more than 1.
  void send(StorageId from, std::uint64_t bytes, BlockId to, std::uint64_t unit,
            std::optional<Cast> cast = {});
  // Copies the contents of the slot being filled to the device; the slots stay allocated.
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
