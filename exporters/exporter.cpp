// The slots of an output, and the table of exporters.
#include "exporters/exporter.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/convert/numbers/elements.h"
#include "core/convert/recipe/packed_weights.h"
#include "core/forward/family/model_config.h"
#include "core/forward/family/settings.h"
#include "core/graph/packed/quantization.h"
#include "exporters/formats/formats.h"
#include "exporters/gguf/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>
#include <utility>

namespace loadline::exporters {

// --- Steps shared by all exporters.

namespace {

// Limit for all tensors together. Views of a few stored bytes can have any number of elements.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

template <typename T>
void append_little_endian(std::vector<std::byte>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<std::byte>((value >> (8 * i)) & 0xFF));
}

// The first tensor that is read for a slot; null for one that is computed from nothing but numbers.
const graph::Tensor* source_tensor(const graph::MetaGraph& graph, const Slot& slot) {
  for (const convert::RecipeStep& step : slot.recipe.steps) {
    if (step.kind == convert::StepKind::take) return &graph.tensor(step.tensor);
    if (step.kind == convert::StepKind::unpack || step.kind == convert::StepKind::repack)
      return &graph.tensor(graph.logical[step.packed].codes);
  }
  return nullptr;
}

// Throws Error{unsupported} for texts and for parts of blocks, and Error{limit} beyond 64 bits.
std::uint64_t slot_bytes(const graph::Name& name, graph::DType dtype, const graph::Shape& shape) {
  const auto count = graph::element_count(shape);
  const graph::DTypeInfo& type = graph::dtype_info(dtype);
  if (type.block_elements == 0)
    throw Error(ErrorCode::unsupported, {.tensor = name},
                "values of type {} have no fixed size: they stay in files of their own format", type.name);
  if (count && *count % type.block_elements != 0)
    throw Error(ErrorCode::unsupported, {.tensor = name}, "has {} elements, {} needs multiples of {}", *count,
                type.name, type.block_elements);
  const auto bytes = count ? graph::byte_size(dtype, *count) : std::nullopt;
  if (!bytes) throw Error(ErrorCode::limit, {.tensor = name}, "its size overflows 64 bits");
  return *bytes;
}

// A tensor as it is stored.
SlotDraft stored_draft(const graph::MetaGraph& graph, graph::TensorId id) {
  const graph::Tensor& tensor = graph.tensor(id);
  const std::uint64_t bytes = tensor.dtype == graph::DType::opaque
                                  ? graph::tensor_bytes(graph, tensor)
                                  : slot_bytes(tensor.name, tensor.dtype, tensor.shape);
  Slot stored{tensor.name, tensor.dtype, tensor.shape, convert::take(id), 0, bytes};
  if (!convert::can_become_f32(tensor.dtype)) return {std::move(stored), tensor.dtype};
  Slot floats = slot_then(stored, {.kind = convert::StepKind::dequantize}, graph::DType::f32);
  return {std::move(floats), graph::DType::f32, std::move(stored)};
}

// No format here has torch's quantized tensors: they are written as the numbers that they stand for.
bool is_torch_quantized(const graph::LogicalTensor& weight) {
  return weight.packing == graph::WeightPacking::scaled && !weight.state.empty();
}

// Goes through the tensors of a model.
class DraftList {
 public:
  DraftList(const graph::MetaGraph& graph, const ExportOptions& options, bool ggml)
      : graph_(graph),
        options_(options),
        ggml_(ggml),
        packed_(graph::logical_positions(graph)),
        tied_(graph.tensors.size(), false) {
    for (const auto& group : graph::tied_groups(graph))
      for (std::size_t i = 1; i < group.size(); ++i) tied_[graph::index(group[i])] = true;
  }

  std::vector<SlotDraft> list() {
    std::vector<SlotDraft> drafts;
    const std::size_t written = options_.recipes == nullptr
                                    ? graph_.tensors.size()
                                    : std::min(options_.recipes->written, graph_.tensors.size());
    for (std::size_t i = 0; i < written; ++i)
      if (auto draft = draft_at(graph::TensorId{static_cast<std::uint32_t>(i)}))
        drafts.push_back(std::move(*draft));
    arrange(graph_, options_, drafts);
    return drafts;
  }

 private:
  // Nothing for tied tensors, and for parts of packed weights that are written as one tensor.
  std::optional<SlotDraft> draft_at(graph::TensorId id) const {
    if (tied_[graph::index(id)]) return std::nullopt;
    const auto packed = packed_[graph::index(id)];
    const convert::Recipe* const recipe = instead(id);
    if (packed && (!options_.keeps_types() || is_torch_quantized(graph_.logical[*packed])))
      return graph_.logical[*packed].codes == id ? std::optional(packed_draft(*packed, recipe))
                                                 : std::nullopt;
    if (recipe != nullptr) {
      Slot slot = slot_of(graph_, graph_.tensor(id).name, *recipe);
      const graph::DType own = slot.dtype;
      return SlotDraft{std::move(slot), own};
    }
    const auto blocks =
        packed && ggml_ ? convert::ggml_repacking(graph_, graph_.logical[*packed]) : std::nullopt;
    if (blocks && blocks->codes == id) return packed_draft(*packed, nullptr);
    if (blocks && blocks->scales == id) return std::nullopt;
    return stored_draft(graph_, id);
  }

  // A packed weight as one tensor.
  SlotDraft packed_draft(std::uint32_t packed, const convert::Recipe* recipe) const {
    const graph::LogicalTensor& weight = graph_.logical[packed];
    const graph::Name name(weight.name);
    SlotDraft draft{slot_of(graph_, name, recipe != nullptr ? *recipe : convert::unpack(packed)),
                    weight.dtype};
    if (ggml_ && recipe == nullptr && convert::ggml_repacking(graph_, weight))
      draft.blocks = slot_of(graph_, name, {{{.kind = convert::StepKind::repack, .packed = packed}}});
    return draft;
  }

  const convert::Recipe* instead(graph::TensorId id) const {
    if (options_.recipes == nullptr) return nullptr;
    const auto found = options_.recipes->instead.find(graph::index(id));
    return found == options_.recipes->instead.end() ? nullptr : &found->second;
  }

  const graph::MetaGraph& graph_;
  const ExportOptions& options_;
  bool ggml_;
  std::vector<std::optional<std::uint32_t>> packed_;
  std::vector<bool> tied_;
};

}  // namespace

Slot slot_of(const graph::MetaGraph& graph, const graph::Name& name, convert::Recipe recipe) {
  convert::Form form = convert::recipe_forms(graph, recipe).back();
  const std::uint64_t bytes = slot_bytes(name, form.dtype, form.shape);
  return {name, form.dtype, std::move(form.shape), std::move(recipe), 0, bytes};
}

Slot slot_then(Slot slot, convert::RecipeStep step, graph::DType dtype) {
  slot.recipe.then(std::move(step));
  slot.dtype = dtype;
  slot.bytes = slot_bytes(slot.name, slot.dtype, slot.shape);
  return slot;
}

Slot cast_slot(Slot slot, graph::DType dtype) {
  if (dtype == slot.dtype || !convert::can_cast(slot.dtype, dtype)) return slot;
  return slot_then(std::move(slot), {.kind = convert::StepKind::cast, .dtype = dtype}, dtype);
}

Slot plain_slot(SlotDraft draft, std::optional<graph::DType> outtype) {
  if (draft.blocks && !outtype) return std::move(*draft.blocks);
  const graph::DType otherwise = draft.stays_f32 ? graph::DType::f32 : outtype.value_or(draft.own);
  return cast_slot(std::move(draft.floats), otherwise);
}

std::vector<Slot> plain_slots(std::vector<SlotDraft> drafts, std::optional<graph::DType> outtype) {
  std::vector<Slot> slots;
  slots.reserve(drafts.size());
  for (SlotDraft& draft : drafts) slots.push_back(plain_slot(std::move(draft), outtype));
  check_total(slots);
  return slots;
}

std::vector<SlotDraft> slot_drafts(const graph::MetaGraph& graph, const ExportOptions& options, bool ggml) {
  return DraftList(graph, options, ggml).list();
}

std::vector<Slot> output_slots(const graph::MetaGraph& graph, const ExportOptions& options) {
  return plain_slots(slot_drafts(graph, options, false), options.outtype);
}

std::vector<graph::Note> packing_notes(const graph::MetaGraph& graph, const std::vector<Slot>& slots,
                                       const ExportOptions& options) {
  const std::string file(graph::kConfigKey);
  const std::string* const text = graph::find_text(graph, file);
  const bool unpacks = std::ranges::any_of(slots, [](const Slot& slot) {
    return std::ranges::any_of(slot.recipe.steps, [](const convert::RecipeStep& step) {
      return step.kind == convert::StepKind::unpack;
    });
  });
  std::vector<forward::Setting> left;
  if (unpacks && text != nullptr)
    left = forward::unaccounted_packing(forward::ModelConfig(*text, file).settings(),
                                        forward::PackedUse::unpack);
  check_ignored(left, options);
  left = ignored_settings(left, options, file, "how these weights were packed is not understood");
  if (left.empty()) return {};
  return {graph::make_note(graph::Severity::warning, {},
                           "{}: ignored, so the weights may differ from the model's",
                           forward::settings_text(left))};
}

void refuse_dtype(const Slot& slot, std::string_view format, graph::DType instead) {
  const Error error(ErrorCode::unsupported, {.tensor = slot.name}, "{} has no dtype {}", format,
                    graph::dtype_info(slot.dtype).name);
  if (!convert::can_become_f32(slot.dtype) && !convert::can_cast(slot.dtype, instead)) throw error;
  throw error.with({"outtype", lower_case(graph::dtype_info(instead).name)});
}

void check_rank(const Slot& slot, std::size_t most, std::string_view format) {
  if (slot.shape.size() > most)
    throw Error(ErrorCode::unsupported, {.tensor = slot.name}, "has rank {}, {} holds at most {}",
                slot.shape.size(), format, most);
}

void check_name(const graph::Name& name) {
  if (!is_valid_utf8(name) || name.view().find('\0') != std::string_view::npos)
    throw Error(ErrorCode::unsupported, {.tensor = name}, "its name is not UTF-8 text without NUL");
}

void check_total(const std::vector<Slot>& slots) {
  std::uint64_t sum = 0;
  for (const Slot& slot : slots) {
    const auto total = checked_add(sum, slot.bytes);
    if (!total || *total >= kMostBytes)
      throw Error(ErrorCode::limit, {.tensor = slot.name}, "the tensors add up to more than 2^62 bytes");
    sum = *total;
  }
}

bool can_become(graph::DType dtype, graph::DType outtype) {
  return convert::can_cast(dtype, outtype) || convert::can_become_f32(dtype);
}

graph::DType stored_dtype(const graph::MetaGraph& graph, const Slot& slot) {
  const graph::Tensor* const tensor = source_tensor(graph, slot);
  return tensor == nullptr ? slot.dtype : tensor->dtype;
}

void arrange(const graph::MetaGraph& graph, const ExportOptions& options, std::vector<SlotDraft>& drafts) {
  if (options.order.empty()) return;
  std::vector<std::size_t> place(graph.storages.size(), SIZE_MAX);
  for (std::size_t i = 0; i < options.order.size(); ++i) place[graph::index(options.order[i])] = i;
  std::ranges::stable_sort(drafts, {}, [&](const SlotDraft& draft) {
    const graph::Tensor* const tensor = source_tensor(graph, draft.floats);
    return tensor == nullptr ? 0 : place[graph::index(tensor->storage)];
  });
}

std::vector<std::vector<graph::Name>> all_names(const graph::MetaGraph& graph,
                                                const std::vector<Slot>& slots) {
  std::vector<const std::vector<graph::TensorId>*> ties(graph.tensors.size(), nullptr);
  const auto groups = graph::tied_groups(graph);
  for (const auto& group : groups) ties[graph::index(group.front())] = &group;
  std::vector<std::vector<graph::Name>> names;
  for (const Slot& slot : slots) {
    std::vector<graph::Name> own = {slot.name};
    const convert::RecipeStep& first = slot.recipe.steps.front();
    if (first.kind == convert::StepKind::take && ties[graph::index(first.tensor)] != nullptr)
      for (const graph::TensorId id : std::span(*ties[graph::index(first.tensor)]).subspan(1))
        own.push_back(graph.tensor(id).name);
    names.push_back(std::move(own));
  }
  return names;
}

void add_result(graph::MetaGraph& result, graph::FileId file, const Slot& slot,
                std::span<const graph::Name> names) {
  const graph::StorageId storage = result.add_storage(graph::plain_storage(file, slot.offset, slot.bytes));
  result.tensors.push_back({slot.name, slot.dtype, slot.shape, {}, storage, 0});
  for (std::size_t i = 1; i < names.size(); ++i) {
    result.tensors.push_back(result.tensors.back());
    result.tensors.back().name = names[i];
  }
}

// Tensors that hold a shape are written as they are, and what they hold is known from the source.
void add_logical(const graph::MetaGraph& source, graph::MetaGraph& result) {
  std::unordered_map<std::string_view, const graph::LogicalTensor*> shapes;
  for (const graph::LogicalTensor& weight : source.logical)
    for (const graph::Companion kind : {graph::Companion::state, graph::Companion::shape})
      if (const auto id = weight.companion(kind)) shapes.emplace(source.tensor(*id).name.view(), &weight);
  result.logical = graph::find_logical_tensors(result, [&](graph::TensorId id) -> std::optional<std::string> {
                     const auto found = shapes.find(result.tensor(id).name.view());
                     if (found == shapes.end()) return std::nullopt;
                     if (const auto& state = found->second->state; !state.empty())
                       return std::string(state.begin(), state.end());
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

// --- The table of exporters.

namespace {

OutputKind one_file(const ExportOptions&) { return OutputKind::file; }
OutputKind always_folder(const ExportOptions&) { return OutputKind::folder; }
OutputKind shards_in_folder(const ExportOptions& options) {
  return options.max_shard_bytes > 0 ? OutputKind::folder : OutputKind::file;
}

constexpr std::array<Exporter, 7> kExporters = {{
    {"safetensors", "safetensors, one file or a model folder with shards", ".safetensors",
     "outtype,align,max_shard_size,link,names,ignore", shards_in_folder, safetensors_supports,
     safetensors_carries, safetensors_layout},
    {"gguf", "GGUF version 3, one file or a split set", ".gguf",
     "outtype,type,imatrix,align,max_shard_size,order,metadata_slack,names,pre_tokenizer,ignore", one_file,
     gguf_supports, gguf_carries, gguf_layout},
    {"torch", "PyTorch state_dict, one file that torch.load can map", ".pt", "outtype,align,order,ignore",
     one_file, torch_supports, torch_carries, torch_layout, true},
    {"npz", "numpy archive, one file", ".npz", "outtype,align,order,ignore", one_file, npz_supports,
     npz_carries, npz_layout},
    {"npy", "numpy arrays, a folder with one file a tensor", "", "outtype,align,ignore", always_folder,
     npz_supports, npz_carries, npy_layout},
    {"ptd", "ExecuTorch tensors, one file", ".ptd", "outtype,align,order,ignore", one_file, ptd_supports,
     ptd_carries, ptd_layout, true},
    {"onnx", "ONNX from ONNX, with external data or without", ".onnx", "align,order,inline_weights", one_file,
     onnx_supports, onnx_carries, onnx_layout, true},
}};

}  // namespace

std::span<const Exporter> exporters() { return kExporters; }

const Exporter& find_exporter(std::string_view id) { return find_row(exporters(), id, "output format"); }

const Exporter* exporter_for(std::string_view path) {
  const auto row = std::ranges::find_if(kExporters, [&](const Exporter& exporter) {
    return !exporter.extension.empty() && path.ends_with(exporter.extension);
  });
  return row == kExporters.end() ? nullptr : &*row;
}

}  // namespace loadline::exporters
