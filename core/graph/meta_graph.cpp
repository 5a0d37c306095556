// Names of enumerators; sums and relations over a graph; bytes and elements that several tensors share.
#include "core/graph/meta_graph.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <tuple>

#include <fmt/core.h>

namespace loadline::graph {

// --- Metadata values as text.

namespace {

constexpr std::array<std::string_view, std::variant_size_v<MetaValue>> kMetaTypeNames = {
    "bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64", "string", "array"};

}  // namespace

std::uint64_t meta_type_bytes(MetaType type) {
  constexpr std::array<std::uint8_t, kMetaTypeNames.size()> kBytes = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 0, 0};
  return kBytes[static_cast<std::size_t>(type)];
}

std::string_view meta_type_name(MetaType type) { return kMetaTypeNames[static_cast<std::size_t>(type)]; }

std::string meta_text(const MetaValue& value) {
  if (const auto* array = std::get_if<MetaArray>(&value))
    return fmt::format("{} {}{}", format_grouped(array->count), meta_type_name(array->element),
                       array->element == MetaType::string ? (array->count == 1 ? "" : "s")
                       : array->count == 1                ? " value"
                                                          : " values");
  return std::visit(
      [](const auto& held) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, MetaArray>)
          return "";
        else
          return fmt::format("{}", held);
      },
      value);
}

// --- Names of packings and companions.

std::string_view packing_name(WeightPacking packing) {
  constexpr std::array<std::string_view, 15> kNames = {"GPTQ",
                                                       "GPTQ v2",
                                                       "AWQ",
                                                       "bitsandbytes",
                                                       "bitsandbytes",
                                                       "scaled",
                                                       "compressed-tensors integers",
                                                       "compressed-tensors NVFP4",
                                                       "compressed-tensors MXFP4",
                                                       "NVFP4",
                                                       "MXFP4",
                                                       "MLX affine",
                                                       "MLX MXFP4",
                                                       "MLX NVFP4",
                                                       "MLX MXFP8"};
  return kNames[static_cast<std::size_t>(packing)];
}

std::string_view companion_name(Companion companion) {
  constexpr std::array<std::string_view, kCompanions> kNames = {
      "scales", "zeros",         "biases",          "groups", "global_scale",     "codebook",
      "state",  "nested_scales", "nested_codebook", "shape",  "activation_scale", "format"};
  return kNames[static_cast<std::size_t>(companion)];
}

std::optional<TensorId> LogicalTensor::companion(Companion kind) const {
  const auto found = std::ranges::find(companions, kind, &CompanionTensor::kind);
  return found == companions.end() ? std::nullopt : std::optional(found->tensor);
}

// --- Sums and relations over a MetaGraph.

std::string_view severity_name(Severity severity) {
  constexpr std::string_view kNames[] = {"info", "warning", "error"};
  return kNames[index(severity)];
}

std::string_view encoding_name(Encoding encoding) {
  constexpr std::string_view kNames[] = {"plain",    "deflate",  "big-endian",
                                         "protobuf", "protobuf", "unreadable"};
  return kNames[index(encoding)];
}

Storage plain_storage(FileId file, std::uint64_t offset, std::uint64_t bytes) {
  return {.file = file, .offset = offset, .bytes = bytes, .stored_bytes = bytes};
}

Storage shapes_only_storage(std::uint64_t bytes) { return plain_storage(kNoFile, 0, bytes); }

std::uint64_t storage_bytes(const MetaGraph& graph) {
  std::uint64_t sum = 0;
  for (const Storage& storage : graph.storages) sum += storage.bytes;
  return sum;
}

std::uint64_t file_bytes(const MetaGraph& graph) {
  std::uint64_t sum = 0;
  for (const ModelFile& file : graph.files) sum += file.bytes;
  return sum;
}

std::uint64_t elements(const Tensor& tensor) { return element_count(tensor.shape).value_or(0); }

std::uint64_t tensor_bytes(const MetaGraph& graph, const Tensor& tensor) {
  return packed_byte_size(tensor.dtype, elements(tensor)).value_or(graph.storage(tensor.storage).bytes);
}

std::vector<std::optional<std::uint32_t>> logical_positions(const MetaGraph& graph) {
  std::vector<std::optional<std::uint32_t>> positions(graph.tensors.size());
  for (std::uint32_t i = 0; i < graph.logical.size(); ++i) {
    positions[index(graph.logical[i].codes)] = i;
    for (const CompanionTensor& companion : graph.logical[i].companions)
      positions[index(companion.tensor)] = i;
  }
  return positions;
}

std::uint64_t elements(const LogicalTensor& weight) { return element_count(weight.shape).value_or(0); }

std::uint64_t packed_bytes(const MetaGraph& graph, const LogicalTensor& weight) {
  std::uint64_t bytes = tensor_bytes(graph, graph.tensor(weight.codes));
  for (const CompanionTensor& companion : weight.companions)
    bytes += tensor_bytes(graph, graph.tensor(companion.tensor));  // in files: their sum fits in 63 bits
  return bytes;
}

double bits_per_weight(const MetaGraph& graph, const LogicalTensor& weight) {
  const std::uint64_t count = elements(weight);
  return count == 0 ? 0 : 8 * static_cast<double>(packed_bytes(graph, weight)) / static_cast<double>(count);
}

std::vector<EncodingShare> encoding_shares(const MetaGraph& graph) {
  std::vector<EncodingShare> shares;
  for (const Storage& storage : graph.storages) {
    if (storage.encoding == Encoding::plain || storage.bytes == 0) continue;
    auto share = std::ranges::find_if(shares, [&](const EncodingShare& known) {
      return encoding_name(known.encoding) == encoding_name(storage.encoding);
    });
    if (share == shares.end()) share = shares.insert(share, EncodingShare{storage.encoding, 0, 0});
    share->storages += 1;
    share->bytes += storage.bytes;
  }
  return shares;
}

std::vector<TensorId> all_tensors(const MetaGraph& graph) {
  std::vector<TensorId> all(graph.tensors.size());
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = TensorId{i};
  return all;
}

std::vector<std::optional<TensorId>> first_owner(const MetaGraph& graph) {
  std::vector<std::optional<TensorId>> owners(graph.storages.size());
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    std::optional<TensorId>& owner = owners[index(graph.tensors[i].storage)];
    if (!owner) owner = TensorId{static_cast<std::uint32_t>(i)};
  }
  return owners;
}

std::vector<std::vector<TensorId>> tied_groups(const MetaGraph& graph) {
  // only storages with several tensors can hold ties; most models have no such storage
  const auto owners = first_owner(graph);
  std::vector<TensorId> shared;
  std::vector<bool> listed(graph.storages.size(), false);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const std::size_t storage = index(graph.tensors[i].storage);
    const TensorId owner = *owners[storage];
    if (index(owner) == i) continue;
    if (!listed[storage]) shared.push_back(owner);
    listed[storage] = true;
    shared.push_back(TensorId{static_cast<std::uint32_t>(i)});
  }
  const auto view = [&](TensorId id) {
    const Tensor& t = graph.tensor(id);
    return std::tie(t.storage, t.offset, t.dtype, t.shape, t.strides);
  };
  std::ranges::sort(shared, [&](TensorId a, TensorId b) {
    return std::tuple_cat(view(a), std::tuple(a)) < std::tuple_cat(view(b), std::tuple(b));
  });
  std::vector<std::vector<TensorId>> result;
  for (std::size_t first = 0, end = 0; first < shared.size(); first = end) {
    end = first + 1;
    while (end < shared.size() && view(shared[end]) == view(shared[first])) ++end;
    if (end - first > 1)
      result.emplace_back(shared.begin() + static_cast<std::ptrdiff_t>(first),
                          shared.begin() + static_cast<std::ptrdiff_t>(end));
  }
  std::ranges::sort(result);  // by their first tensors
  return result;
}

std::uint64_t parameter_count(const MetaGraph& graph) { return sum(shares(graph)).elements; }

const MetaValue* find_metadata(const MetaGraph& graph, std::string_view key) {
  const auto entry = std::ranges::find_if(graph.metadata, [&](const MetaEntry& e) { return e.key == key; });
  return entry == graph.metadata.end() ? nullptr : &entry->value;
}

const std::string* find_text(const MetaGraph& graph, std::string_view key) {
  return std::get_if<std::string>(find_metadata(graph, key));
}

void require_sound(const MetaGraph& graph, std::string_view verb) {
  for (const Note& note : graph.notes)
    if (note.severity == Severity::error)
      throw Error(ErrorCode::malformed, {.tensor = note.tensor}, "cannot {} this model: {}", verb, note.text);
  if (shapes_only(graph))
    throw Error(ErrorCode::usage, "cannot {} this model: it has shapes only: no file holds its weights",
                verb);
}

bool shapes_only(const MetaGraph& graph) {
  return std::ranges::any_of(
      graph.storages, [](const Storage& storage) { return storage.file == kNoFile && storage.bytes > 0; });
}

namespace {

// "llama" of "llama-00001-of-00003"; any other name is returned unchanged.
std::string without_part(std::string_view name) {
  constexpr std::string_view kPattern = "-00000-of-00000";
  if (name.size() <= kPattern.size()) return std::string(name);
  const std::string_view end = name.substr(name.size() - kPattern.size());
  const bool part = std::equal(end.begin(), end.end(), kPattern.begin(), [](char c, char expected) {
    return expected == '0' ? c >= '0' && c <= '9' : c == expected;
  });
  return std::string(part ? name.substr(0, name.size() - kPattern.size()) : name);
}

}  // namespace

std::string model_name(const MetaGraph& graph) {
  if (graph.files.empty()) return "model";
  const std::filesystem::path path(graph.files.front().path);
  std::string stem = path.stem().string();
  if (const std::string whole = without_part(stem); graph.format == "gguf" && whole != stem) {
    const std::string* const text = find_text(graph, "general.name");
    if (text != nullptr && !text->empty()) return without_part(*text);
    stem = whole;
  }
  // "model.safetensors", "model-00001-of-00003" and arrays beside each other name no model, but their folder
  // does
  const bool arrays = graph.format == "npy" && graph.files.size() > 1;
  if (!arrays && stem.rfind("model", 0) != 0 && stem.rfind("pytorch_model", 0) != 0 && stem != "config")
    return stem;
  std::filesystem::path folder = std::filesystem::absolute(path).lexically_normal().parent_path();
  // HF cache: models--org--name/snapshots/<commit>/model.safetensors
  if (folder.parent_path().filename() == "snapshots") {
    std::string repository = folder.parent_path().parent_path().filename().string();
    if (repository.rfind("models--", 0) == 0) {
      repository.erase(0, 8);
      const std::size_t dashes = repository.find("--");
      return dashes == std::string::npos ? repository : repository.replace(dashes, 2, "/");
    }
  }
  return folder.filename().string();
}

// --- A storage of one tensor, the usual case, counts whole; the ranges of other storages are swept by
// offset.

namespace {

// The bytes of a storage from a tensor's first element to the end of its last, gaps included.
struct Range {
  StorageId storage{};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  TensorId tensor{};
  std::size_t place = 0;  // position in `tensors`

  auto key() const { return std::tuple(storage, begin, ~end, tensor); }
};

Range range_of(const MetaGraph& graph, TensorId id, std::size_t place) {
  const Tensor& tensor = graph.tensor(id);
  const std::uint64_t size = graph.storage(tensor.storage).bytes;
  const std::uint64_t begin = std::min(tensor.offset, size);
  const std::uint64_t bytes = std::min(spanned_bytes(tensor).value_or(size), size - begin);
  return {tensor.storage, begin, begin + bytes, id, place};
}

// Elements that a tensor holds in storage: a view with repeated elements counts each of them once.
std::uint64_t held_elements(const Tensor& tensor) {
  const DTypeInfo& type = dtype_info(tensor.dtype);
  const std::uint64_t count = elements(tensor);
  if (tensor.strides.empty() || type.block_bytes == 0) return count;
  const std::uint64_t span = spanned_bytes(tensor).value_or(0);
  return std::min(count, span / type.block_bytes * type.block_elements);
}

// Calls `visit(range, bytes not covered by earlier ranges, whether it lies within an earlier range)`.
template <typename Visit>
void sweep(std::vector<Range>& ranges, Visit visit) {
  std::ranges::sort(ranges, [](const Range& a, const Range& b) { return a.key() < b.key(); });
  std::uint64_t reached = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    const bool first = i == 0 || ranges[i - 1].storage != range.storage;
    if (first) reached = 0;
    const std::uint64_t from = std::max(range.begin, reached);
    visit(range, range.end > from ? range.end - from : 0, !first && range.end <= reached);
    reached = std::max(reached, range.end);
  }
}

// Whether several tensors use a storage.
std::vector<bool> shared_storages(const MetaGraph& graph,
                                  const std::vector<std::optional<TensorId>>& owners) {
  std::vector<bool> shared(graph.storages.size(), false);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const std::size_t storage = index(graph.tensors[i].storage);
    if (index(*owners[storage]) != i) shared[storage] = true;
  }
  return shared;
}

std::vector<Share> stored_shares(const MetaGraph& graph, std::span<const TensorId> tensors) {
  const auto owners = first_owner(graph);
  const std::vector<bool> shared = shared_storages(graph, owners);
  std::vector<Share> result(tensors.size());
  std::vector<Range> asked;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = graph.tensor(tensors[i]);
    if (shared[index(tensor.storage)])
      asked.push_back(range_of(graph, tensors[i], i));
    else
      result[i] = {graph.storage(tensor.storage).bytes, held_elements(tensor)};
  }
  if (asked.empty()) return result;
  sweep(asked, [&](const Range& range, std::uint64_t fresh, bool within) {
    result[range.place] = {fresh, within ? 0 : held_elements(graph.tensor(range.tensor))};
  });

  // bytes that no tensor of the graph covers, in `tensors` or not
  std::vector<Range> every;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i)
    if (shared[index(graph.tensors[i].storage)])
      every.push_back(range_of(graph, TensorId{static_cast<std::uint32_t>(i)}, i));
  std::vector<std::uint64_t> covered(graph.storages.size(), 0);
  sweep(every,
        [&](const Range& range, std::uint64_t fresh, bool) { covered[index(range.storage)] += fresh; });
  for (const Range& range : asked) {
    const std::size_t storage = index(range.storage);
    if (owners[storage] == range.tensor)
      result[range.place].bytes += graph.storages[storage].bytes - covered[storage];
  }
  return result;
}

}  // namespace

std::vector<Share> shares(const MetaGraph& graph, std::span<const TensorId> tensors) {
  std::vector<Share> result = stored_shares(graph, tensors);
  if (graph.logical.empty()) return result;
  const auto positions = logical_positions(graph);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto position = positions[index(tensors[i])];
    if (!position || result[i].elements == 0) continue;
    const LogicalTensor& weight = graph.logical[*position];
    result[i].elements = weight.codes == tensors[i] ? elements(weight) : 0;
  }
  return result;
}

std::vector<Share> shares(const MetaGraph& graph) { return shares(graph, all_tensors(graph)); }

Share sum(std::span<const Share> parts) {
  return std::accumulate(parts.begin(), parts.end(), Share{}, [](Share total, const Share& part) {
    return Share{total.bytes + part.bytes, total.elements + part.elements};
  });
}

}  // namespace loadline::graph
