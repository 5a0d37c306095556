// Steps shared by all exporters.
#include "exporters/common.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/convert/cast.h"
#include "core/graph/find_logical.h"
#include "exporters/zip_layout.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

namespace loadline {
namespace {

// Limit for all tensors together. Views of a few stored bytes can have any number of elements.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

template <typename T>
void append_little_endian(std::vector<std::byte>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<std::byte>((value >> (8 * i)) & 0xFF));
}

std::uint64_t bytes_of(const Name& name, DType dtype, const Shape& shape) {
  const auto count = element_count(shape);
  const auto bytes = count ? byte_size(dtype, *count) : std::nullopt;
  if (!bytes) throw Error(ErrorCode::limit, {.tensor = name}, "its size overflows 64 bits");
  return *bytes;
}

const Tensor& source_tensor(const MetaGraph& graph, const Slot& slot) {
  const RecipeStep& first = slot.recipe.steps.front();
  return graph.tensor(first.kind == StepKind::take ? first.tensor : graph.logical[first.packed].codes);
}

Slot unpacked_slot(const MetaGraph& graph, std::uint32_t packed, DType outtype) {
  const LogicalTensor& weight = graph.logical[packed];
  Recipe recipe = unpack(packed);
  if (outtype != DType::f32) recipe.then({.kind = StepKind::cast, .dtype = outtype});
  return {weight.name,       outtype, weight.shape,
          std::move(recipe), 0,       bytes_of(weight.name, outtype, weight.shape)};
}

Slot slot_of(const MetaGraph& graph, TensorId id, const ExportOptions& options) {
  const Tensor& tensor = graph.tensor(id);
  Slot slot{tensor.name, tensor.dtype, tensor.shape, take(id), 0, 0};
  const auto to = options.outtype;
  if (to && *to != tensor.dtype && can_become(tensor.dtype, *to)) {
    slot.dtype = *to;
    if (can_become_f32(tensor.dtype)) slot.recipe.then({.kind = StepKind::dequantise});
    if (!can_become_f32(tensor.dtype) || *to != DType::f32)
      slot.recipe.then({.kind = StepKind::cast, .dtype = *to});
  }
  slot.bytes =
      slot.dtype == DType::opaque ? tensor_bytes(graph, tensor) : bytes_of(slot.name, slot.dtype, slot.shape);
  return slot;
}

// Tensors of one storage stay together, as they follow in the source.
void arrange(const MetaGraph& graph, const std::vector<StorageId>& order, std::vector<Slot>& slots) {
  if (order.empty()) return;
  std::vector<std::size_t> place(graph.storages.size(), SIZE_MAX);
  for (std::size_t i = 0; i < order.size(); ++i) place[index(order[i])] = i;
  std::ranges::stable_sort(
      slots, {}, [&](const Slot& slot) { return place[index(source_tensor(graph, slot).storage)]; });
}

// A tensor that is written as what a recipe gives.
Slot computed_slot(const MetaGraph& graph, const Name& name, const Recipe& recipe,
                   const ExportOptions& options) {
  Form form = recipe_forms(graph, recipe).back();
  Slot slot{name, form.dtype, std::move(form.shape), recipe, 0, 0};
  if (options.outtype && *options.outtype != slot.dtype && can_cast(slot.dtype, *options.outtype)) {
    slot.dtype = *options.outtype;
    slot.recipe.then({.kind = StepKind::cast, .dtype = slot.dtype});
  }
  slot.bytes = bytes_of(name, slot.dtype, slot.shape);
  return slot;
}

}  // namespace

bool can_become(DType dtype, DType outtype) { return can_cast(dtype, outtype) || can_become_f32(dtype); }

DType stored_dtype(const MetaGraph& graph, const Slot& slot) { return source_tensor(graph, slot).dtype; }

std::vector<Slot> output_slots(const MetaGraph& graph, const ExportOptions& options) {
  std::vector<bool> tied(graph.tensors.size(), false);
  for (const auto& group : tied_groups(graph))
    for (std::size_t i = 1; i < group.size(); ++i) tied[index(group[i])] = true;
  const auto packed = logical_positions(graph);
  std::vector<Slot> slots;
  std::uint64_t sum = 0;
  const TensorRecipes* const recipes = options.recipes.get();
  const std::size_t written =
      recipes == nullptr ? graph.tensors.size() : std::min(recipes->written, graph.tensors.size());
  for (std::size_t i = 0; i < written; ++i) {
    if (tied[i]) continue;
    const TensorId id{static_cast<std::uint32_t>(i)};
    const bool unpacks = options.outtype && packed[i];
    if (unpacks && graph.logical[*packed[i]].codes != id) continue;  // a companion
    const Name& name = unpacks ? graph.logical[*packed[i]].name : graph.tensors[i].name;
    if (recipes != nullptr && recipes->instead.contains(i))
      slots.push_back(computed_slot(graph, name, recipes->instead.at(i), options));
    else
      slots.push_back(unpacks ? unpacked_slot(graph, *packed[i], *options.outtype)
                              : slot_of(graph, id, options));
    const auto total = checked_add(sum, slots.back().bytes);
    if (!total || *total >= kMostBytes)
      throw Error(ErrorCode::limit, {.tensor = slots.back().name},
                  "the tensors add up to more than 2^62 bytes");
    sum = *total;
  }
  arrange(graph, options.order, slots);
  return slots;
}

void add_result(MetaGraph& result, FileId file, const Slot& slot) {
  const StorageId storage = result.add_storage(plain_storage(file, slot.offset, slot.bytes));
  result.tensors.push_back({slot.name, slot.dtype, slot.shape, {}, storage, 0});
}

// Tensors that hold a shape are written as they are, and what they hold is known from the source.
void add_logical(const MetaGraph& source, MetaGraph& result) {
  std::unordered_map<std::string_view, const LogicalTensor*> shapes;
  for (const LogicalTensor& weight : source.logical)
    for (const Companion kind : {Companion::state, Companion::shape})
      if (const auto id = weight.companion(kind)) shapes.emplace(source.tensor(*id).name.view(), &weight);
  result.logical = find_logical_tensors(result, [&](TensorId id) -> std::optional<std::string> {
                     const auto found = shapes.find(result.tensor(id).name.view());
                     if (found == shapes.end()) return std::nullopt;
                     if (!found->second->state.empty()) return found->second->state;
                     std::vector<std::byte> bytes;
                     for (const std::uint64_t side : found->second->shape) append_u64(bytes, side);
                     return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                   }).tensors;
}

std::uint64_t header_bytes(const LayoutFile& file) {
  std::uint64_t bytes = file.header.size();
  for (const HeaderCopy& copy : file.copies) bytes += copy.array.bytes;
  return bytes;
}

void append_bytes(std::vector<std::byte>& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_u32(std::vector<std::byte>& out, std::uint32_t value) { append_little_endian(out, value); }
void append_u64(std::vector<std::byte>& out, std::uint64_t value) { append_little_endian(out, value); }

void append_string(std::vector<std::byte>& out, std::string_view text) {
  append_u64(out, text.size());
  append_bytes(out, text);
}

std::uint64_t zip_alignment(const ExportOptions& options, std::uint64_t otherwise) {
  check_alignment(options.alignment);
  if (options.max_shard_bytes != 0)
    throw Error(ErrorCode::usage, "this format is one file: it has no shards");
  if (options.alignment > ZipLayout::kMostAlignment)
    throw Error(ErrorCode::usage, "an alignment of {}: members of zip archives can have up to {}",
                options.alignment, ZipLayout::kMostAlignment);
  return options.alignment == 0 ? otherwise : options.alignment;
}

void check_alignment(std::uint64_t alignment) {
  if (alignment != 0 && (!std::has_single_bit(alignment) || alignment > std::uint64_t{2} << 20))
    throw Error(ErrorCode::usage, "an alignment of {} is not a power of two up to 2097152", alignment);
}

}  // namespace loadline
