// Sums and relations over a MetaGraph.
#include "core/graph/meta_graph.h"

#include "core/base/error.h"
#include "core/graph/shares.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

namespace loadline {

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
    throw Error(ErrorCode::usage, "cannot {} this model: it has shapes only, no file holds its weights",
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

}  // namespace loadline
