// What methods are written with, and the list of their functions.
#pragma once

#include "core/load/methods/framework_sizes.h"
#include "core/load/request/bind_request.h"

#include <memory>
#include <optional>
#include <vector>

namespace loadline::load {

// --- Helpers that write the plans of load methods; for methods only.

// A plan under construction for the storages that have bytes, in load order.
class MethodBuilder {
 public:
  // `used` and `pass_bytes` as in make_plan().
  MethodBuilder(const graph::MetaGraph& graph, const StorageOrder& order, const BoundRequest& bound,
                plan::Plan used = {}, std::uint64_t pass_bytes = 0);

  const graph::MetaGraph& graph() const { return graph_; }
  const StorageOrder& order() const { return order_; }
  const BoundRequest& bound() const { return bound_; }
  const NamedParts& parts() const { return *parts_; }
  std::uint64_t bytes(graph::StorageId id) const { return graph_.storage(id).bytes; }
  std::uint64_t all_bytes() const;
  std::uint64_t most_bytes() const;  // of the largest storage; 0 if there is none
  plan::Plan& plan() { return plan_; }
  // The storages of each shard (model_parts.h), in load order; shards sorted by their first storage in that
  // order.
  std::vector<StorageOrder> by_shard() const;

  // How the requested cast converts a storage; nothing if it keeps its stored type.
  std::optional<plan::Cast> cast(graph::StorageId id) const {
    return casts_.empty() ? std::nullopt : casts_[graph::index(id)];
  }
  std::uint64_t cast_bytes(graph::StorageId id) const;  // size once loaded; bytes(id) without a cast
  std::uint64_t all_cast_bytes() const;
  // Where copies may divide a storage that is to be packed: the bytes of one number or one block; 1
  // otherwise.
  std::uint64_t unit(graph::StorageId id) const;
  Home home(graph::StorageId id) const { return bound_.placement.of(id); }
  bool has_twin(graph::StorageId id) const { return bound_.placement.has_twin(id); }

  // Allocates a block for a storage in its stored type.
  plan::BlockId make(plan::Space space, graph::StorageId id, plan::BlockUse use = plan::BlockUse::storage);
  // One such block per storage, in load order.
  std::vector<plan::BlockId> make_all(plan::Space space, plan::BlockUse use = plan::BlockUse::storage);
  // The same with each storage's size after the cast.
  plan::BlockId make_cast(plan::Space space, graph::StorageId id,
                          plan::BlockUse use = plan::BlockUse::storage);
  std::vector<plan::BlockId> make_all_cast(plan::Space space, plan::BlockUse use = plan::BlockUse::storage);
  // A temporary block that the storage is read into.
  plan::BlockId load(plan::Space space, graph::StorageId id);

  void read(plan::BlockId to, graph::StorageId id) { plan::copy(plan_, to, 0, id, 0, bytes(id)); }
  void read_cast(plan::BlockId to, graph::StorageId id) {
    plan::copy(plan_, to, 0, id, 0, bytes(id), cast(id));
  }
  void move(plan::BlockId to, plan::BlockId from) {
    plan::copy(plan_, to, 0, from, 0, plan_.block(from).bytes);
  }
  // `from` holds the storage in its stored type; `to` receives it cast.
  void move_cast(plan::BlockId to, plan::BlockId from, graph::StorageId id) {
    plan::copy(plan_, to, 0, from, 0, bytes(id), cast(id));
  }
  void drop(plan::BlockId block) { plan::free(plan_, block); }
  void drop_all(const std::vector<plan::BlockId>& blocks);

  // A model as its constructor makes it in host memory: one block per storage in load order, in the type that
  // the weights are cast to. A head that is the embedding exists of its own until the two are tied.
  std::vector<plan::BlockId> build();
  // Such a head in memory of its own, where the embedding's weight is loaded to `space`; nothing if the
  // model has none.
  std::optional<plan::BlockId> untied_head(plan::Space space, plan::BlockUse use);
  // Reads the weights shard by shard into temporary blocks of `from`, and from there into the model's blocks,
  // which build() made.
  void fill_by_shard(const std::vector<plan::BlockId>& model, plan::Space from);
  // The weight stays a view of its mapped file. Its pages are touched when a forward pass first uses it.
  void view(graph::StorageId id) { views_.push_back(id); }

  // A forward pass on the device brings each weight that is not there to it and frees it after use: there is
  // room for the largest of them.
  void bring_offloaded();

  void activations();
  // Ends the plan of a load that allocates activations last: marks "loaded", touches the views if a forward
  // pass follows, then allocates the activations.
  plan::Plan finish();

 private:
  void touch_views();

  const graph::MetaGraph& graph_;
  const BoundRequest& bound_;
  const std::shared_ptr<const NamedParts> parts_;
  const std::uint64_t activations_;                        // bytes; with those of a pass ahead of the weights
  std::vector<std::optional<plan::Cast>> casts_;           // by storage; empty: no cast
  std::vector<std::optional<convert::Prepack>> prepacks_;  // likewise
  StorageOrder order_;
  StorageOrder views_;
  std::uint64_t offloaded_ = 0;
  plan::Plan plan_;
};

// The bytes of a slot in Loadline's own ring: as asked for, but no more than the slot's part of the weights,
// in whole pages.
std::uint64_t own_slot_bytes(const LoadRequest& request, std::uint64_t weights);

// A staging ring: fills a slot with reads, then copies its contents to the device. All reads into a slot come
// before its first transfer, so the slot needs only one wait before it is reused.
class TransferRing {
 public:
  // Throws Error{limit} if `bytes` would need so many transfers that the plan itself became too large; the
  // message ends with `remedy`.
  TransferRing(plan::Plan& plan, std::uint32_t slots, std::uint64_t slot_bytes, std::uint64_t bytes,
               std::string_view remedy = ": use larger slots");

  // Sends the `bytes` of a storage to block `to`. The slots hold the cast weights. Without a cast they are
  // divided at multiples of `unit`, and begin on a word if that is more than 1.
  void send(graph::StorageId from, std::uint64_t bytes, plan::BlockId to, std::uint64_t unit,
            std::optional<plan::Cast> cast = {});
  // Copies the contents of the slot being filled to the device; the slots stay allocated.
  void flush();
  void close();

 private:
  struct Transfer {
    plan::BlockId block{};
    std::uint64_t bytes = 0;
  };

  plan::Plan& plan_;
  std::uint64_t slot_bytes_;
  std::vector<plan::BlockId> slots_;
  std::vector<Transfer> transfers_;  // out of the slot that is being filled
  std::uint64_t first_at_ = 0;       // of the first transfer, in its block
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
  plan::BlockId touch(graph::StorageId id);
  // The parameter is a view of the mapping; nothing is read yet.
  void view(graph::StorageId id);
  // The parameter is a block in host memory, such as a cast copy.
  void own(graph::StorageId id, plan::BlockId block) { own_[graph::index(id)] = block; }
  // Closes one file, by its position, or all of them.
  void close(std::size_t file);
  void close();
  // Module.to(device), in the order of the files, for parameters that belong on the device; closes the files.
  // Other views remain views.
  void to_device();

 private:
  struct Mapping {
    std::vector<plan::BlockId> touched = {};
    std::size_t views = 0;
  };

  MethodBuilder& b_;
  const std::vector<StorageOrder> files_;
  std::vector<std::size_t> file_of_;  // by storage
  std::vector<Mapping> mappings_;     // by file
  std::vector<std::optional<plan::BlockId>> own_;
  std::vector<bool> viewed_;
};

// --- The functions that make the plans for the table of methods, grouped by origin; for methods.cpp only.
// Each follows the allocations and copies of its framework or loader step by step.

// PyTorch recipes.
plan::Plan load_to_device(MethodBuilder& b);
plan::Plan load_shard_by_shard(MethodBuilder& b);
plan::Plan load_meta_assign(MethodBuilder& b);
plan::Plan load_safetensors_bytes(MethodBuilder& b);
plan::Plan load_state_dict(MethodBuilder& b);
plan::Plan load_sequential(MethodBuilder& b);
plan::Plan load_meta_map_location(MethodBuilder& b);
plan::Plan load_mmap_assign(MethodBuilder& b);
plan::Plan load_mmap_copy(MethodBuilder& b);
plan::Plan load_mmap_state_dict(MethodBuilder& b);
plan::Plan load_per_tensor(MethodBuilder& b);

// ExecuTorch's Vulkan delegate.
bool executorch_waits(const LoadRequest& request);
plan::Plan load_executorch_before(MethodBuilder& b);
plan::Plan load_executorch_after(MethodBuilder& b);

// onnxruntime on a processor.
plan::Plan load_onnxruntime(MethodBuilder& b);
plan::Plan load_onnxruntime_unpacked(MethodBuilder& b);
plan::Plan load_onnxruntime_bytes(MethodBuilder& b);

// OpenVINO on a processor.
plan::Plan load_openvino(MethodBuilder& b);

// ExecuTorch on a processor.
plan::Plan load_executorch_mapped(MethodBuilder& b);
plan::Plan load_executorch_bytes(MethodBuilder& b);
plan::Plan load_executorch_xnnpack(MethodBuilder& b);

// LiteRT on a processor; arrays of numpy and torch.export.
plan::Plan load_litert(MethodBuilder& b);
plan::Plan load_litert_plain(MethodBuilder& b);
plan::Plan load_arrays(MethodBuilder& b);
plan::Plan load_arrays_by_file(MethodBuilder& b);

// Loads that differ in where weights are cast.
plan::Plan load_cast_on_host(MethodBuilder& b);
plan::Plan load_cast_on_device(MethodBuilder& b);

// transformers and accelerate.
plan::Plan load_transformers_v4(MethodBuilder& b);
plan::Plan load_transformers_v4_early(MethodBuilder& b);
plan::Plan load_transformers_v5(MethodBuilder& b);
plan::Plan load_transformers_v5_to(MethodBuilder& b);
plan::Plan load_fused_in_place(MethodBuilder& b);
plan::Plan load_accelerate(MethodBuilder& b);
plan::Plan load_transformers_gguf(MethodBuilder& b);
plan::Plan load_peft_attach(MethodBuilder& b);
plan::Plan load_peft_merge(MethodBuilder& b);

// Serving engines.
plan::Plan load_engine_repack(MethodBuilder& b);
plan::Plan load_engine_repack_all(MethodBuilder& b);

// Weights that are on the device only while in use.
plan::Plan load_layer_streaming(MethodBuilder& b);
plan::Plan load_layer_streaming_prefetch(MethodBuilder& b);

// No copy of the weights on the host.
plan::Plan load_direct(MethodBuilder& b);
plan::Plan load_host_import(MethodBuilder& b);

// llama.cpp.
plan::Plan load_llama_cpp_ring(MethodBuilder& b);
plan::Plan load_llama_cpp_direct(MethodBuilder& b);
plan::Plan load_llama_cpp_mmap(MethodBuilder& b);

// Loaders that stream.
plan::Plan load_staged_ring(MethodBuilder& b);
plan::Plan load_fastsafetensors(MethodBuilder& b);
plan::Plan load_fastsafetensors_copy(MethodBuilder& b);
plan::Plan load_fastsafetensors_all(MethodBuilder& b);
plan::Plan load_runai(MethodBuilder& b);
plan::Plan load_pinned_pool(MethodBuilder& b);

}  // namespace loadline::load
