// What a cast converts and what stays as it is stored.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/plan/plan.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loadline::load {

// --- How a cast converts each storage.

// Why a tensor cannot be cast, regardless of the other tensors on its storage.
enum class KeptWhy : std::uint8_t { already, quantized, no_float, uneven, rows, too_large };
inline constexpr std::size_t kKeptWhys = 6;
// By tensor; absent if it can be cast.
std::vector<std::optional<KeptWhy>> kept_reasons(const graph::MetaGraph& graph, graph::DType to);

// By storage: its conversion to `to`, or nothing if it keeps its stored type. A storage is cast if it holds
// floating point numbers of a single type in whole tensors. For block types (quantized), every tensor on it
// must also have at least two dimensions and rows of whole blocks, as converters require.
std::vector<std::optional<plan::Cast>> storage_casts(const graph::MetaGraph& graph, graph::DType to);

// By storage: its size once loaded, after the cast if it is cast.
std::vector<std::uint64_t> loaded_bytes(const graph::MetaGraph& graph,
                                        const std::optional<graph::DType>& cast);

// Adds sizes once loaded. Throws Error{limit} on overflow: stored sizes always have a 64-bit sum, but a cast
// can make it larger.
std::uint64_t add_loaded(std::uint64_t sum, std::uint64_t bytes);

// Finds a type to cast to: "f32", "bf16", "torch.bfloat16", "q4_k"; case does not matter. Throws Error{usage}
// for an unknown name or a type that weights cannot have.
graph::DType find_cast(std::string_view name);

// The types in which from_pretrained() loads floating point weights unless it is told another. Nothing where
// a type changes no weight, without a config.json, or if weights are packed: what unpacks them chooses their
// types.
struct OwnTypes {
  // Of transformers 5: that in config.json ("dtype", once "torch_dtype"); where it names none, that of the
  // first weight.
  std::optional<graph::DType> configured = {};
  std::optional<graph::DType> f32 = {};  // of transformers 4: torch's default type
};
OwnTypes own_types(const graph::MetaGraph& graph);

// --- What a cast changes, and why the other tensors keep their stored type.

struct CastSummary {
  std::uint64_t tensors = 0;       // number that are cast
  std::uint64_t bytes_before = 0;  // of the storages of cast tensors, each counted once
  std::uint64_t bytes_after = 0;
  std::uint64_t kept = 0;  // number of tensors that are not cast
  // Why tensors are not cast, and how many for each reason: "are F32 already". Largest count first.
  std::vector<std::pair<std::string, std::uint64_t>> reasons = {};
};
// Summarizes storage_casts(). Throws Error{limit} if the sum of the cast sizes overflows.
CastSummary cast_summary(const graph::MetaGraph& graph, graph::DType to);

// "Cast to F16: 74 tensors, 61.02 MiB become 30.51 MiB; 1 tensor stays as stored: 1 is F16 already."
std::string cast_text(const CastSummary& summary, graph::DType to);

}  // namespace loadline::load
