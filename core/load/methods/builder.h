// What methods are written with, and the list of their functions.
#pragma once

#include "core/load/request/method.h"

#include <optional>
#include <vector>

namespace loadline {

// --- Helpers that write the plans of load methods; for methods only.

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

// --- A model on the host whose parameters are views of mapped files, or blocks of their own; for methods
// only.

// Keeps account of files that are mapped and touched tensor by tensor. Pages that were touched stay resident
// until their file is unmapped: once it is closed and no parameter is a view of it any longer.
class MappedModel {
 public:
  explicit MappedModel(MethodBuilder& b);

  // The files or shards, in load order.
  const std::vector<StorageOrder>& files() const { return files_; }
  // Reads the pages of a weight.
  BlockId touch(StorageId id);
  // The parameter is a view of the mapping; nothing is read yet.
  void view(StorageId id);
  // The parameter is a block in host memory, such as a cast copy.
  void own(StorageId id, BlockId block) { own_[index(id)] = block; }
  // Closes one file, by its position, or all of them.
  void close(std::size_t file);
  void close();
  // Module.to(device), in the order of the files, for parameters that belong on the device; closes the files.
  // Other views remain views.
  void to_device();

 private:
  struct Mapping {
    std::vector<BlockId> touched = {};
    std::size_t views = 0;
  };

  MethodBuilder& b_;
  const std::vector<StorageOrder> files_;
  std::vector<std::size_t> file_of_;  // by storage
  std::vector<Mapping> mappings_;     // by file
  std::vector<std::optional<BlockId>> own_;
  std::vector<bool> viewed_;
};

// --- The functions that make the plans for the table of methods, grouped by origin; for methods.cpp only.
// Each follows the allocations and copies of its framework or loader step by step.

// PyTorch recipes.
Plan load_to_device(MethodBuilder& b);
Plan load_shard_by_shard(MethodBuilder& b);
Plan load_meta_assign(MethodBuilder& b);
Plan load_safetensors_bytes(MethodBuilder& b);
Plan load_state_dict(MethodBuilder& b);
Plan load_sequential(MethodBuilder& b);
Plan load_meta_map_location(MethodBuilder& b);
Plan load_mmap_assign(MethodBuilder& b);
Plan load_mmap_copy(MethodBuilder& b);
Plan load_mmap_state_dict(MethodBuilder& b);
Plan load_per_tensor(MethodBuilder& b);

// ExecuTorch's Vulkan delegate.
bool executorch_waits(const LoadRequest& request);
Plan load_executorch_before(MethodBuilder& b);
Plan load_executorch_after(MethodBuilder& b);

// Loads that differ in where weights are cast.
Plan load_cast_on_host(MethodBuilder& b);
Plan load_cast_on_device(MethodBuilder& b);

// transformers and accelerate.
Plan load_transformers_v4(MethodBuilder& b);
Plan load_transformers_v4_early(MethodBuilder& b);
Plan load_transformers_v5(MethodBuilder& b);
Plan load_transformers_v5_to(MethodBuilder& b);
Plan load_fused_in_place(MethodBuilder& b);
Plan load_accelerate(MethodBuilder& b);

// Serving engines.
Plan load_engine_repack(MethodBuilder& b);
Plan load_engine_repack_all(MethodBuilder& b);

// Weights that are on the device only while in use.
Plan load_layer_streaming(MethodBuilder& b);
Plan load_layer_streaming_prefetch(MethodBuilder& b);

// No copy of the weights on the host.
Plan load_direct(MethodBuilder& b);
Plan load_host_import(MethodBuilder& b);

// llama.cpp.
Plan load_llama_cpp_ring(MethodBuilder& b);
Plan load_llama_cpp_direct(MethodBuilder& b);
Plan load_llama_cpp_mmap(MethodBuilder& b);

// Loaders that stream.
Plan load_staged_ring(MethodBuilder& b);
Plan load_fastsafetensors(MethodBuilder& b);
Plan load_fastsafetensors_copy(MethodBuilder& b);
Plan load_fastsafetensors_all(MethodBuilder& b);
Plan load_runai(MethodBuilder& b);
Plan load_pinned_pool(MethodBuilder& b);

}  // namespace loadline
