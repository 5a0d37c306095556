// Chooses what is packed, and marks the blocks of a finished plan.
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
#include "core/graph/packed/find_logical.h"
#include "core/load/request/casts.h"
#include "core/load/request/prepacking.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::array<PrepackingRow, 7> kPrepackings = {{
    {"f32", {PrepackLayout::rows, DType::f32}},
    {"f16", {PrepackLayout::rows, DType::f16}},
    {"bf16", {PrepackLayout::rows, DType::bf16}},
    {"transposed", {PrepackLayout::transposed, {}}},
    {"transposed_f16", {PrepackLayout::transposed, DType::f16}},
    {"four_rows", {PrepackLayout::four_rows, {}}},
    {"four_rows_f16", {PrepackLayout::four_rows, DType::f16}},
}};

// How the only tensor of a storage is packed.
std::optional<Prepack> prepack_of(const MetaGraph& graph, const Tensor& tensor, const Prepacking& asked) {
  Prepack how = {.from = tensor.dtype, .to = asked.to.value_or(tensor.dtype)};
  if (!can_prepack(how.from, how.to)) return std::nullopt;
  std::uint64_t elements = 1;
  for (const std::uint64_t size : tensor.shape) {
    const auto product = checked_mul(elements, size);
    if (!product || *product >= kMostPrepacked) return std::nullopt;
    elements = *product;
  }
  how.columns = elements;
  if (asked.layout != PrepackLayout::rows && tensor.shape.size() == 2) {
    how.layout = asked.layout;
    how.rows = tensor.shape[0];
    how.columns = tensor.shape[1];
  }
  if (how.from == how.to && how.layout == PrepackLayout::rows) return std::nullopt;
  const bool whole = tensor.offset == 0 && tensor.strides.empty() && elements > 0 &&
                     stored_bytes(how) == graph.storage(tensor.storage).bytes;
  if (!whole || prepacked_bytes(how) / dtype_info(how.to).block_bytes >= kMostPrepacked) return std::nullopt;
  return how;
}

enum class Use : std::uint8_t { none, filled, read };

// What the plan's copies do with each block.
std::vector<Use> uses_of(const Plan& plan) {
  std::vector<Use> uses(plan.blocks.size(), Use::none);
  for (const Step& step : plan.steps) {
    if (step.verb != Verb::copy) continue;
    Use& to = uses[index(step.block)];
    to = std::max(
        to, step.cast ? Use::read : Use::filled);  // a block of cast weights is no place for stored ones
    if (const auto* const from = std::get_if<BlockId>(&step.from)) uses[index(*from)] = Use::read;
  }
  return uses;
}

void require_whole_numbers(const Plan& plan, const MetaGraph& graph) {
  for (const Step& step : plan.steps) {
    const Block& to = plan.block(step.block);
    if (step.verb != Verb::copy || !to.prepack) continue;
    const std::uint64_t unit = dtype_info(to.prepack->from).block_bytes;
    if (step.offset % unit == 0 && step.bytes % unit == 0) continue;
    throw Error(ErrorCode::unsupported, {.tensor = block_label(to, graph, first_owner(graph))},
                "this load divides it at byte {}, inside a number of {} bytes: it cannot be packed piece by "
                "piece",
                step.offset % unit == 0 ? step.offset + step.bytes : step.offset, unit);
  }
}

}  // namespace

std::span<const PrepackingRow> prepackings() { return kPrepackings; }

Prepacking find_prepacking(std::string_view id) {
  return find_row(prepackings(), id, "prepacking").prepacking;
}

std::string_view prepacking_id(const Prepacking& prepacking) {
  return std::ranges::find(kPrepackings, prepacking, &PrepackingRow::prepacking)->id;
}

std::vector<std::string> prepacking_ids() {
  std::vector<std::string> ids;
  for (const PrepackingRow& row : kPrepackings) ids.emplace_back(row.id);
  return ids;
}

std::vector<std::optional<Prepack>> storage_prepacks(const MetaGraph& graph, const Prepacking& prepacking) {
  std::vector<std::optional<Prepack>> prepacks(graph.storages.size());
  std::vector<bool> met(graph.storages.size(), false);
  const auto parts = logical_positions(graph);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    const std::size_t at = index(tensor.storage);
    std::optional<Prepack> how;
    if (!parts[i]) how = prepack_of(graph, tensor, prepacking);
    const bool other = met[at] && prepacks[at] != how;
    prepacks[at] = other ? std::nullopt : how;
    met[at] = true;
  }
  return prepacks;
}

std::uint64_t bytes_once_packed(const MetaGraph& graph, const Prepacking& prepacking) {
  const std::vector<std::optional<Prepack>> prepacks = storage_prepacks(graph, prepacking);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < prepacks.size(); ++i)
    sum = add_loaded(sum, prepacks[i] ? prepacked_bytes(*prepacks[i]) : graph.storages[i].bytes);
  return sum;
}

std::string prepacking_text(const MetaGraph& graph, const Prepacking& prepacking) {
  const std::vector<std::optional<Prepack>> prepacks = storage_prepacks(graph, prepacking);
  const std::size_t all = graph.tensors.size();
  const auto packed = static_cast<std::size_t>(std::ranges::count_if(
      graph.tensors, [&](const Tensor& tensor) { return prepacks[index(tensor.storage)].has_value(); }));
  const std::string kept = packed == all ? ""
                                         : fmt::format("; {} {} as stored", format_grouped(all - packed),
                                                       all - packed == 1 ? "stays" : "stay");
  return fmt::format("Packed as {}: {} of {}{}.", prepacking_id(prepacking),
                     packed == 0 ? "none" : format_grouped(packed), counted(all, "tensor"), kept);
}

Plan with_prepacks(Plan plan, const MetaGraph& graph, const Prepacking& prepacking) {
  const std::vector<std::optional<Prepack>> prepacks = storage_prepacks(graph, prepacking);
  const std::vector<Use> uses = uses_of(plan);
  bool packed = false;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    Block& block = plan.blocks[i];
    if (block.space == Space::device && block.use == BlockUse::storage && !block.storage &&
        uses[i] != Use::none)
      throw Error(
          ErrorCode::unsupported,
          "this load keeps several tensors in one piece of device memory ('{}'): they cannot be packed",
          safe_display(block.label, 60));
    if (block.space != Space::device || block.use != BlockUse::storage || !block.storage ||
        uses[i] != Use::filled || block.bytes != graph.storage(*block.storage).bytes)
      continue;
    if (const std::optional<Prepack>& how = prepacks[index(*block.storage)]) {
      block.prepack = how;
      block.bytes = prepacked_bytes(*how);
      packed = true;
    }
  }
  const bool some = std::ranges::any_of(prepacks, [](const auto& how) { return how.has_value(); });
  if (some && !packed)
    throw Error(ErrorCode::unsupported,
                "this load puts no tensor into device memory of its own to be packed");
  require_whole_numbers(plan, graph);
  return plan;
}

}  // namespace loadline
