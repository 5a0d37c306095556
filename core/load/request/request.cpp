// Words for settings, checks of a request without a model, packings by their names.
#include "core/load/request/request.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/graph/packed/quantization.h"
#include "core/load/request/casts.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

namespace loadline::load {

// --- Reads and writes single settings, and checks requests independently of any model.

Reserve parse_reserve(std::string_view text) {
  if (!text.ends_with('%')) return {.bytes = parse_size(text, "")};
  const OptionValue share = parse_option(OptionKind::count, text.substr(0, text.size() - 1));
  const auto percent = std::get<std::uint64_t>(share);
  check_option_number(percent, 1, 99, false);
  return {.percent = static_cast<std::uint32_t>(percent)};
}
std::string print_reserve(const Reserve& reserve) {
  return reserve.percent > 0 ? fmt::format("{}%", reserve.percent)
                             : print_option(OptionKind::bytes, reserve.bytes);
}

namespace {

struct CpuRow {
  std::string_view id;
  CpuRepack cpu;
};
constexpr std::array<CpuRow, 2> kCpus = {{{"x86", CpuRepack::x86}, {"arm", CpuRepack::arm}}};

struct ReadingRow {
  std::string_view id;
  io::FileReading reading;
};
constexpr std::array<ReadingRow, 3> kReadings = {{{"cache", io::FileReading::cached},
                                                  {"direct", io::FileReading::direct},
                                                  {"cold", io::FileReading::cold}}};

}  // namespace

CpuRepack find_cpu_repack(std::string_view id) {
  return find_row(std::span<const CpuRow>(kCpus), id, "CPU to repack for").cpu;
}

std::string_view cpu_repack_id(CpuRepack cpu) { return kCpus[static_cast<std::size_t>(cpu)].id; }

std::vector<std::string> cpu_repack_ids() {
  std::vector<std::string> ids;
  for (const CpuRow& row : kCpus) ids.emplace_back(row.id);
  return ids;
}

std::vector<std::string> mapped_pages_words() { return {"droppable", "anonymous"}; }
MappedPages find_mapped_pages(const std::string& word) {
  check_option_choice(word, mapped_pages_words());
  return word == "anonymous" ? MappedPages::anonymous : MappedPages::droppable;
}
std::string_view mapped_pages_word(MappedPages pages) {
  return pages == MappedPages::anonymous ? "anonymous" : "droppable";
}

io::FileReading find_reading(std::string_view id) {
  return find_row(std::span<const ReadingRow>(kReadings), id, "way of reading").reading;
}

std::string_view reading_id(io::FileReading reading) {
  return std::ranges::find(kReadings, reading, &ReadingRow::reading)->id;
}

std::vector<std::string> reading_words() {
  std::vector<std::string> words;
  for (const ReadingRow& row : kReadings) words.emplace_back(row.id);
  return words;
}

std::vector<std::string> value_type_words() { return {"f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "i8"}; }
graph::DType parse_value_type(const std::string& name) {
  const std::optional<graph::DType> type = graph::dtype_named(name);
  check_option_choice(type ? graph::dtype_word(*type) : name, value_type_words());
  return *type;
}

forward::SizeChoice parse_size_choice(const std::string& text) {
  constexpr std::size_t kMostDigits = 12;
  const std::size_t at = text.rfind('=');
  const std::string number = at == std::string::npos ? "" : text.substr(at + 1);
  const auto size = text_as<std::uint64_t>(number);
  if (at == 0 || !size || number.size() > kMostDigits)
    throw Error(ErrorCode::usage, "'{}' is not NAME=N, such as height=224", safe_display(text, 80));
  return {text.substr(0, at), *size};
}
std::string print_size_choice(const forward::SizeChoice& size) {
  return fmt::format("{}={}", size.name, size.size);
}

void check_request(const LoadRequest& request) {
  constexpr std::uint64_t kLeastSlot = 4096;
  const auto refuse = [](const std::string& text) { throw Error(ErrorCode::usage, text); };
  if (request.staging_bytes < kLeastSlot * request.slots)
    refuse(fmt::format("a ring of {} is too small for {}: it needs at least {} ({} for each)",
                       counted(request.staging_bytes, "byte"), counted(request.slots, "slot"),
                       counted(kLeastSlot * request.slots, "byte"), format_grouped(kLeastSlot)));
  if (request.cast && request.prepack)
    refuse("weights are cast on their way or packed on the device, not both");
  if (request.auto_map && request.prepack)
    refuse("an automatic map does not know what weights are packed to: place them by rules");
  if (request.activation_bytes > 0 && (asks_for_pass(request) || request.max_context))
    refuse("a size of activations and a forward pass exclude each other: the pass has its own activations");
  if (int{request.gpu_layers.has_value()} + int{request.auto_map.has_value()} + int{!request.place.empty()} >
      1)
    refuse("weights can be placed by layers, by an automatic map or by rules, not by several of them");
  const forward::Training& training = request.forward.training;
  const bool adapters = training.rank != forward::Training().rank || !training.targets.empty();
  if (training.weights == forward::TrainedWeights::full && adapters)
    refuse("a rank and layers with adapters are for a training step of adapters, not of all weights");
  if (training.weights && (request.forward.cache || request.forward.all_logits))
    refuse("a training step computes all logits and keeps no cache: their options do not go with it");
  if (request.forward.training.weights && (request.past > 0 || request.max_context))
    refuse("a training step has no tokens before it, and no largest context is looked for");
  if (request.memory == plan::MemoryKind::unified && request.host_budget)
    refuse("unified memory has one budget: the device budget covers the host's share as well");
}

// --- Chooses what is packed, and marks the blocks of a finished plan.

namespace {

constexpr std::array<PrepackingRow, 7> kPrepackings = {{
    {"f32", {convert::PrepackLayout::rows, graph::DType::f32}},
    {"f16", {convert::PrepackLayout::rows, graph::DType::f16}},
    {"bf16", {convert::PrepackLayout::rows, graph::DType::bf16}},
    {"transposed", {convert::PrepackLayout::transposed, {}}},
    {"transposed_f16", {convert::PrepackLayout::transposed, graph::DType::f16}},
    {"four_rows", {convert::PrepackLayout::four_rows, {}}},
    {"four_rows_f16", {convert::PrepackLayout::four_rows, graph::DType::f16}},
}};

// How the only tensor of a storage is packed.
std::optional<convert::Prepack> prepack_of(const graph::MetaGraph& graph, const graph::Tensor& tensor,
                                           const Prepacking& asked) {
  convert::Prepack how = {.from = tensor.dtype, .to = asked.to.value_or(tensor.dtype)};
  if (!convert::can_prepack(how.from, how.to)) return std::nullopt;
  std::uint64_t elements = 1;
  for (const std::uint64_t size : tensor.shape) {
    const auto product = checked_mul(elements, size);
    if (!product || *product >= convert::kMostPrepacked) return std::nullopt;
    elements = *product;
  }
  how.columns = elements;
  if (asked.layout != convert::PrepackLayout::rows && tensor.shape.size() == 2) {
    how.layout = asked.layout;
    how.rows = tensor.shape[0];
    how.columns = tensor.shape[1];
  }
  if (how.from == how.to && how.layout == convert::PrepackLayout::rows) return std::nullopt;
  const bool whole = tensor.offset == 0 && tensor.strides.empty() && elements > 0 &&
                     convert::stored_bytes(how) == graph.storage(tensor.storage).bytes;
  if (!whole ||
      convert::prepacked_bytes(how) / graph::dtype_info(how.to).block_bytes >= convert::kMostPrepacked)
    return std::nullopt;
  return how;
}

enum class Use : std::uint8_t { none, filled, read };

// What the plan's copies do with each block.
std::vector<Use> uses_of(const plan::Plan& plan) {
  std::vector<Use> uses(plan.blocks.size(), Use::none);
  for (const plan::Step& step : plan.steps) {
    if (step.verb != plan::Verb::copy) continue;
    Use& to = uses[graph::index(step.block)];
    to = std::max(
        to, step.cast ? Use::read : Use::filled);  // a block of cast weights is no place for stored ones
    if (const auto* const from = std::get_if<plan::BlockId>(&step.from))
      uses[graph::index(*from)] = Use::read;
  }
  return uses;
}

void require_whole_numbers(const plan::Plan& plan, const graph::MetaGraph& graph) {
  for (const plan::Step& step : plan.steps) {
    const plan::Block& to = plan.block(step.block);
    if (step.verb != plan::Verb::copy || !to.prepack()) continue;
    const std::uint64_t unit = graph::dtype_info(to.prepack()->from).block_bytes;
    if (step.offset % unit == 0 && step.bytes % unit == 0) continue;
    throw Error(ErrorCode::unsupported, {.tensor = plan::block_label(to, graph, graph::first_owner(graph))},
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

std::vector<std::optional<convert::Prepack>> storage_prepacks(const graph::MetaGraph& graph,
                                                              const Prepacking& prepacking) {
  std::vector<std::optional<convert::Prepack>> prepacks(graph.storages.size());
  std::vector<bool> met(graph.storages.size(), false);
  const auto parts = graph::logical_positions(graph);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const graph::Tensor& tensor = graph.tensors[i];
    const std::size_t at = graph::index(tensor.storage);
    std::optional<convert::Prepack> how;
    if (!parts[i]) how = prepack_of(graph, tensor, prepacking);
    const bool other = met[at] && prepacks[at] != how;
    prepacks[at] = other ? std::nullopt : how;
    met[at] = true;
  }
  return prepacks;
}

std::uint64_t bytes_once_packed(const graph::MetaGraph& graph, const Prepacking& prepacking) {
  const std::vector<std::optional<convert::Prepack>> prepacks = storage_prepacks(graph, prepacking);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < prepacks.size(); ++i)
    sum = add_loaded(sum, prepacks[i] ? convert::prepacked_bytes(*prepacks[i]) : graph.storages[i].bytes);
  return sum;
}

std::string prepacking_text(const graph::MetaGraph& graph, const Prepacking& prepacking) {
  const std::vector<std::optional<convert::Prepack>> prepacks = storage_prepacks(graph, prepacking);
  const std::size_t all = graph.tensors.size();
  const auto packed =
      static_cast<std::size_t>(std::ranges::count_if(graph.tensors, [&](const graph::Tensor& tensor) {
        return prepacks[graph::index(tensor.storage)].has_value();
      }));
  const std::string kept = packed == all ? ""
                                         : fmt::format("; {} {} as stored", format_grouped(all - packed),
                                                       all - packed == 1 ? "stays" : "stay");
  return fmt::format("Packed as {}: {} of {}{}.", prepacking_id(prepacking),
                     packed == 0 ? "none" : format_grouped(packed), counted(all, "tensor"), kept);
}

plan::Plan with_prepacks(plan::Plan plan, const graph::MetaGraph& graph, const Prepacking& prepacking) {
  const std::vector<std::optional<convert::Prepack>> prepacks = storage_prepacks(graph, prepacking);
  const std::vector<Use> uses = uses_of(plan);
  bool packed = false;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    plan::Block& block = plan.blocks[i];
    if (block.space == plan::Space::device && block.use == plan::BlockUse::storage && !block.storage &&
        uses[i] != Use::none)
      throw Error(
          ErrorCode::unsupported,
          "this load keeps several tensors in one allocation of device memory ('{}'): they cannot be packed",
          safe_display(block.label(), 60));
    if (block.space != plan::Space::device || block.use != plan::BlockUse::storage || !block.storage ||
        uses[i] != Use::filled || block.bytes != graph.storage(*block.storage).bytes)
      continue;
    if (const std::optional<convert::Prepack>& how = prepacks[graph::index(*block.storage)]) {
      block.extra = *how;
      block.bytes = convert::prepacked_bytes(*how);
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

}  // namespace loadline::load
