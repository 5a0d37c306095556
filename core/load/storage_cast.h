// What a cast makes of each storage.
#pragma once

#include "core/plan/plan.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

// What keeps a tensor as it is stored, whatever else is on its storage.
enum class KeptWhy : std::uint8_t { already, quantised, no_float, uneven, rows, too_large };
inline constexpr std::size_t kKeptWhys = 6;
// Nothing where it can be cast.
std::optional<KeptWhy> why_kept(const MetaGraph& graph, const Tensor& tensor, DType to);

// By storage: how its bytes become `to`, or nothing where they stay as they are. Cast is what holds floating
// point numbers of one type in whole tensors; to blocks (quantised types) only where every tensor on the
// storage has two dimensions or more and rows of whole blocks, as converters do it.
std::vector<std::optional<Cast>> storage_casts(const MetaGraph& graph, DType to);

// By storage: what it takes once loaded, cast where it is cast.
std::vector<std::uint64_t> loaded_bytes(const MetaGraph& graph, const std::optional<DType>& cast);

// The sum of sizes as loaded. Throws Error{limit}: what files hold together has a size, but a cast can make
// it larger than 64 bits can say.
std::uint64_t add_loaded(std::uint64_t sum, std::uint64_t bytes);

// A type to cast to: "f32", "bf16", "q4_k"; upper or lower case. Throws Error{usage}: none of that name, or
// one that weights cannot have.
DType find_cast(std::string_view name);

}  // namespace loadline
