// How weights are packed on the device as they arrive there.
#pragma once

#include "core/convert/numbers/prepack.h"
#include "core/plan/plan.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// What a load is asked to make of its weights. An absent type keeps the stored one.
struct Prepacking {
  PrepackLayout layout = PrepackLayout::rows;
  std::optional<DType> to = {};
  bool operator==(const Prepacking&) const = default;
};

struct PrepackingRow {
  std::string_view id;
  Prepacking prepacking;
};
std::span<const PrepackingRow> prepackings();
// Throws Error{usage} for an unknown id.
Prepacking find_prepacking(std::string_view id);
std::string_view prepacking_id(const Prepacking& prepacking);
std::vector<std::string> prepacking_ids();

// By storage: how it is packed, or nothing if it stays as it is stored. A storage is packed if it holds one
// tensor (under any number of names) of numbers that can_prepack() knows, whole and contiguous, and with
// fewer than kMostPrepacked of them once packed. A layout applies to matrices; other tensors are only
// converted.
std::vector<std::optional<Prepack>> storage_prepacks(const MetaGraph& graph, const Prepacking& prepacking);

// The weights' bytes, each storage counted once, packed if it can be.
std::uint64_t bytes_once_packed(const MetaGraph& graph, const Prepacking& prepacking);

// "Packed as f16: 74 of 75 tensors; 1 stays as stored."
std::string prepacking_text(const MetaGraph& graph, const Prepacking& prepacking);

// The plan, with each device block that holds one such storage packed. Copies into it convert and place their
// bytes. Throws Error{unsupported} if the plan brings no such storage to the device by itself, divides one
// inside a number, or keeps several tensors in one block there.
Plan with_prepacks(Plan plan, const MetaGraph& graph, const Prepacking& prepacking);

}  // namespace loadline
