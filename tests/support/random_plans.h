// Random plans that obey check_plan, and a simulation in memory of what they leave behind.
#pragma once

#include "core/io/storage_reader.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace loadline::testing {

// Blocks of all four spaces, copies between every pair that is allowed, from storages and blocks.
Plan random_plan(const MetaGraph& graph, std::uint64_t seed, std::size_t steps);

// Content of every block that is alive when the plan ends; bytes nothing was copied into are absent.
using Content = std::vector<std::optional<std::byte>>;
std::vector<Content> simulate(const Plan& plan, const StorageReader& reader);

}  // namespace loadline::testing
