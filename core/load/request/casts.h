// How a cast converts each storage.
#pragma once

#include "core/plan/plan.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

// Why a tensor cannot be cast, regardless of the other tensors on its storage.
enum class KeptWhy : std::uint8_t { already, quantised, no_float, uneven, rows, too_large };
inline constexpr std::size_t kKeptWhys = 6;
// By tensor; absent if it can be cast.
std::vector<std::optional<KeptWhy>> kept_reasons(const MetaGraph& graph, DType to);

// By storage: its conversion to `to`, or nothing if it keeps its stored type. A storage is cast if it holds
// floating point numbers of a single type in whole tensors. For block types (quantised), every tensor on it
// must also have at least two dimensions and rows of whole blocks, as converters require.
std::vector<std::optional<Cast>> storage_casts(const MetaGraph& graph, DType to);

// By storage: its size once loaded, after the cast if it is cast.
std::vector<std::uint64_t> loaded_bytes(const MetaGraph& graph, const std::optional<DType>& cast);

// Adds sizes once loaded. Throws Error{limit} on overflow: stored sizes always have a 64-bit sum, but a cast
// can make it larger.
std::uint64_t add_loaded(std::uint64_t sum, std::uint64_t bytes);

// Finds a type to cast to: "f32", "bf16", "q4_k"; case does not matter. Throws Error{usage} for an unknown
// name or a type that weights cannot have.
DType find_cast(std::string_view name);

}  // namespace loadline
