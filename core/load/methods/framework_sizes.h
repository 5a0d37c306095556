// What frameworks hold besides the tensors as they are stored.
#pragma once

#include "core/base/tasks.h"
#include "core/graph/meta_graph.h"
#include "core/load/request/model_parts.h"
#include "core/load/request/request.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::load {

// --- What llama.cpp holds in host memory besides the tensors of a file as they are: matrices repacked for
// the CPU, and the vocabulary. After ggml/src/ggml-cpu/repack.cpp of 2026.

// By storage, whether the matrix is repacked where it is used on the host: its type has a kernel for the CPU
// (x86 with AVX2, ARM with dot products and i8mm) that takes its number of rows. Embeddings are only looked
// up.
std::vector<bool> repacked_storages(const graph::MetaGraph& graph, std::optional<CpuRepack> cpu);
// Bytes of the copy of an embedding that is repacked to serve as the head too; 0 if there is none.
std::uint64_t repacked_head(const graph::MetaGraph& graph, std::optional<CpuRepack> cpu);

// The host memory of a GGUF file's vocabulary: 243 bytes a token and 235 a merge, fitted to llama.cpp with
// 32,000 to 262,144 tokens. 0 without a tokenizer.
std::uint64_t vocabulary_bytes(const graph::MetaGraph& graph);

// By storage, whether llama.cpp reads its rows from the mapped file only as they are looked up, as
// `--lazy-mode auto` does in every load mode: embeddings of layers of more than 4 GiB, of the architectures
// that mark them. Measured with 2026.10: gemma4 does, gemma3n does not; qwen4exp does by its code.
std::vector<bool> storages_read_by_rows(const graph::MetaGraph& graph);

// --- What onnxruntime makes of the weights of an ONNX file on a processor, as of 1.32.

// Whether the storage lies in a file beside the model's own.
inline bool lies_outside(const graph::MetaGraph& graph, graph::StorageId id) {
  const graph::FileId file = graph.storage(id).file;
  return file != graph::FileId{} && file != graph::kNoFile;
}
struct PackedWeights {
  // By storage: the right-hand matrices of MatMul and Gemm that are F32, which kernels pack as the session
  // starts unless `session.disable_prepacking` is set. Of a file whose operators are not known, all matrices.
  std::vector<bool> packed = {};
  // The weights of convolutions over pictures that are F32, in the order of the operators: on x86 the
  // optimizer writes each anew in the order that its kernels read.
  std::vector<graph::StorageId> reordered = {};
};
PackedWeights packed_by_onnxruntime(const graph::MetaGraph& graph);

// --- What ExecuTorch, transformers and peft hold besides the weights as they are stored.

// The sum of the arenas that the plans of an ExecuTorch program name; 0 for other files.
std::uint64_t planned_bytes(const graph::MetaGraph& graph);
// By storage, whether it is a delegate's: bytes in a form of its own, and not a tensor of the program.
std::vector<bool> delegated_storages(const graph::MetaGraph& graph);

// What Python's reader of GGUF files makes of a vocabulary, fitted to loads with 32,000 tokens, and with
// 128,256 tokens and 280,147 merges. At most 14 times vocabulary_bytes().
std::uint64_t python_vocabulary_bytes(const graph::MetaGraph& graph);

// By storage, how transformers turns a GGUF file's blocks and numbers into another type; nothing for what has
// that type or is no floating point number.
std::vector<std::optional<plan::Cast>> unpacking_casts(const graph::MetaGraph& graph, graph::DType type);
// By storage, its bytes in that type.
std::vector<std::uint64_t> unpacked_bytes(const graph::MetaGraph& graph, graph::DType type);

// Adapters as peft puts them beside linear layers: two thin matrices in F32 for each.
struct Adapter {
  graph::StorageId weight{};
  std::uint64_t bytes = 0;    // of the adapter
  std::uint64_t product = 0;  // of the two matrices' product in F32

  // What merging takes for a moment beside a weight of so many bytes: the product and the scaled product, or
  // the scaled product with the weight and their sum in F32, where the weight has another type.
  std::uint64_t merge_bytes(std::uint64_t stored) const {
    return product / 4 > UINT64_MAX / 16 ? UINT64_MAX : product * (stored == product ? 2 : 3);
  }
};
// In the order of the model's modules. Linear layers are the matrices of layers whose last name is among
// `targets`; without targets all of them, but no experts, routers and embeddings.
std::vector<Adapter> adapters_of(const graph::MetaGraph& graph, const LoadRequest& request);

// --- How the Run:ai streamer divides its limit into requests (runai-model-streamer 0.17, _ring_sizing).

// A request holds whole tensors, at most `bytes` unless a single one is larger; `count` are in flight.
struct RunaiBuffers {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};
// `sizes` of the tensors in load order. A limit above their sum leaves every request in flight; a limit of 0
// reads one tensor of the largest size at a time.
RunaiBuffers runai_buffers(std::span<const std::uint64_t> sizes, std::uint64_t limit);

// --- Expert weights of a mixture-of-experts model that a framework fuses into one tensor on load.

// One fused tensor, as a table: one row per expert, one column per weight that is concatenated (gate and up;
// or down alone). All members of a column have the same size, and each fills its whole storage.
struct ExpertGroup {
  std::string label;                       // "model.layers.0.mlp.experts.gate_up_proj"
  std::vector<graph::StorageId> storages;  // experts * columns entries, expert by expert
  std::size_t columns = 1;
  std::uint64_t bytes = 0;

  std::size_t experts() const { return storages.size() / columns; }
  graph::StorageId member(std::size_t expert, std::size_t column) const {
    return storages[expert * columns + column];
  }
};

// Finds the groups of at least two experts in `order`, sorted by the position of each group's first member.
// Members are recognized by name: "experts.N.gate_proj" or "w1" pairs with "up_proj" or "w3"; "down_proj" or
// "w2" stands alone.
std::vector<ExpertGroup> expert_groups(const graph::MetaGraph& graph,
                                       std::span<const graph::StorageId> order);

// The groups, and the families of experts that they were found in: a family is all experts of one module.
struct FoundExperts {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<ExpertGroup> groups = {};
  std::vector<std::uint32_t> families = {};   // by group
  std::vector<std::uint32_t> family_of = {};  // by storage; empty if there are no groups
  bool by_order = false;                      // two tensors are the same expert: the first one counts
};

// What plans find by the names of a model's tensors, found when first asked for and kept. Names are compared
// once, and not for each of hundreds of plans. May be used from several threads; the graph must outlive it.
class NamedParts {
 public:
  explicit NamedParts(const graph::MetaGraph& graph);

  bool some_empty() const { return some_empty_; }  // whether a storage has no bytes

  std::optional<graph::StorageId> shared_embedding() const;  // model_parts.h
  // Of the storages that have bytes, sorted by their first member in file order.
  const std::vector<ExpertGroup>& expert_groups() const;
  // The same in another order of these storages: what expert_groups(graph, order) finds.
  std::vector<ExpertGroup> expert_groups(const StorageOrder& order) const;
  const std::vector<std::vector<graph::TensorId>>& tied_groups() const;  // of the graph
  // What load_units(graph, order) gives.
  std::vector<LoadUnit> units(const StorageOrder& order) const;
  // The storages that have bytes, by name, with numbers in names compared as numbers.
  const StorageOrder& by_name() const;

 private:
  StorageOrder with_bytes() const;

  const graph::MetaGraph& graph_;
  const bool some_empty_;
  mutable Once embedding_found_, experts_found_, ties_found_, units_found_, names_sorted_;
  mutable std::optional<graph::StorageId> embedding_;
  mutable FoundExperts experts_;
  mutable std::vector<std::vector<graph::TensorId>> tied_groups_;
  mutable std::vector<LoadUnit> units_;         // without storages
  mutable std::vector<std::uint32_t> unit_of_;  // by storage: positions in units_
  mutable StorageOrder by_name_;
};

}  // namespace loadline::load
