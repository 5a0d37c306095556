// Hugging Face shard index (huggingface_hub serialization/_base.py), model.safetensors.index.json and
// pytorch_model.bin.index.json:
//
//   {"metadata": {"total_size": BYTES, ...}, "weight_map": {"tensor name": "shard file name", ...}}
#include "importers/hf_index.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/hf_names.h"
#include "importers/hf_config.h"
#include "importers/safetensors.h"
#include "importers/torch_legacy.h"
#include "importers/torch_zip.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <simdjson.h>

namespace loadline {
namespace {

constexpr std::uint64_t kMostIndex = 256'000'000;
constexpr std::size_t kMostDepth = 64;
// Opening waits for the disk more than for the processor, so threads may outnumber cores; on a warm
// cache a thread pays for itself after a few shards.
constexpr std::size_t kMostThreads = 8;
constexpr std::size_t kShardsPerThread = 4;

struct Index {
  // sorted naturally by shard name, so that "9" comes before "10"
  std::vector<std::pair<std::string, std::vector<std::string>>> shards;
  std::unordered_map<std::string, std::uint32_t> shard_of;  // tensor -> position in `shards`
  std::optional<std::uint64_t> total_size;
  bool odd_total = false;  // total_size is there but is no whole number
};

Index parse_index(const SourceFile& file) {
  const auto malformed = [&](std::string_view detail) {
    return Error(ErrorCode::malformed, {.file = file.path()}, detail);
  };
  if (file.size() > kMostIndex)
    throw Error(ErrorCode::limit, {.file = file.path()},
                fmt::format("an index of {} bytes, the limit is {}", file.size(), kMostIndex));
  simdjson::padded_string text(static_cast<std::size_t>(file.size()));
  file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  simdjson::dom::parser parser;
  simdjson::dom::object root, map;
  if (parser.allocate(text.size(), kMostDepth) != simdjson::SUCCESS)
    throw Error(ErrorCode::limit, {.file = file.path()}, "no memory to parse the index");
  if (const auto error = parser.parse(text).get(root); error != simdjson::SUCCESS)
    throw malformed(fmt::format("not a JSON object: {}", simdjson::error_message(error)));
  std::size_t maps = 0;
  for (const auto& field : root) maps += field.key == "weight_map" ? 1 : 0;
  if (maps > 1) throw malformed("weight_map occurs twice");
  if (root["weight_map"].get(map) != simdjson::SUCCESS)
    throw malformed("weight_map is missing or not an object");

  const auto natural = [](std::string_view a, std::string_view b) { return natural_less(a, b); };
  std::map<std::string_view, std::vector<std::string_view>, decltype(natural)> by_shard(natural);
  for (const auto& [tensor, value] : map) {
    std::string_view shard;
    if (value.get(shard) != simdjson::SUCCESS)
      throw malformed(
          fmt::format("weight_map: the shard of '{}' is not a string", safe_display(tensor, 100)));
    by_shard[shard].push_back(tensor);
  }

  Index index;
  for (const auto& [shard, tensors] : by_shard) {
    const auto number = static_cast<std::uint32_t>(index.shards.size());
    for (const std::string_view tensor : tensors)
      if (!index.shard_of.try_emplace(std::string(tensor), number).second)
        throw Error(ErrorCode::malformed, {.file = file.path(), .tensor = std::string(tensor)},
                    "the name occurs twice in weight_map");
    index.shards.emplace_back(std::string(shard), std::vector<std::string>(tensors.begin(), tensors.end()));
  }
  if (simdjson::dom::element total; root["metadata"]["total_size"].get(total) == simdjson::SUCCESS) {
    std::uint64_t bytes = 0;
    if (total.get(bytes) == simdjson::SUCCESS)
      index.total_size = bytes;
    else
      index.odd_total = true;
  }
  return index;
}

// What opening one shard gave: a graph, nothing (no such file), or an error.
struct Opened {
  std::optional<MetaGraph> graph;
  std::exception_ptr error;
};

// Content decides, as for any other file.
MetaGraph read_shard(const SourceFile& file) {
  const std::vector<std::byte> head = file.head(kSniffBytes);
  if (sniff_torch_zip(head, file.path()) == Match::yes) return read_torch_zip_file(file);
  if (sniff_torch_legacy(head, file.path()) == Match::yes) return read_torch_legacy_file(file);
  return read_safetensors_file(file);
}

std::vector<Opened> open_shards(const Source& source, const Index& index) {
  std::vector<Opened> opened(index.shards.size());
  const auto open_one = [&](std::size_t i) {
    try {
      if (const auto file = source.open_sibling(index.shards[i].first)) opened[i].graph = read_shard(*file);
    } catch (...) {
      opened[i].error = std::current_exception();
    }
  };
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < opened.size(); i = next++) open_one(i);
  };
  {
    std::vector<std::jthread> threads;
    while (threads.size() + 1 < std::min(kMostThreads, opened.size() / kShardsPerThread))
      threads.emplace_back(work);
    work();
  }
  // the first bad shard by name, whichever thread met it
  for (const Opened& shard : opened)
    if (shard.error) std::rethrow_exception(shard.error);
  return opened;
}

// Puts shard after shard into one graph, checking each name against the index.
class Joiner {
 public:
  Joiner(const Source& source, const Index& index) : index_(index), absent_(index.shards.size()) {
    graph_.format = "safetensors";
    graph_.files.push_back({source.file->path(), source.file->size()});
  }

  void add(std::uint32_t number, MetaGraph&& shard) {
    const std::string& shard_name = index_.shards[number].first;
    const FileId file{static_cast<std::uint32_t>(graph_.files.size())};
    const auto first_storage = static_cast<std::uint32_t>(graph_.storages.size());
    graph_.files.push_back(std::move(shard.files.front()));
    graph_.format = shard.format;
    for (Storage storage : shard.storages) {
      if (storage.file != kNoFile) storage.file = file;
      graph_.storages.push_back(storage);
    }
    for (Tensor& tensor : shard.tensors) {
      const auto planned = index_.shard_of.find(tensor.name);
      if (planned == index_.shard_of.end())
        note(Severity::error, tensor.name,
             fmt::format("in shard '{}' but not in the index", safe_display(shard_name)));
      else if (planned->second != number)
        note(Severity::error, tensor.name,
             fmt::format("in shard '{}', the index puts it in '{}'", safe_display(shard_name),
                         safe_display(index_.shards[planned->second].first)));
      if (const auto [other, fresh] = seen_.try_emplace(tensor.name, number); !fresh)
        throw Error(ErrorCode::malformed, {.file = graph_.files.back().path, .tensor = tensor.name},
                    fmt::format("also in shard '{}'", safe_display(index_.shards[other->second].first)));
      tensor.storage = StorageId{first_storage + static_cast<std::uint32_t>(tensor.storage)};
      graph_.tensors.push_back(std::move(tensor));
    }
    // the first shard that has a key says what it is
    for (MetaEntry& entry : shard.metadata)
      if (keys_.insert(entry.key).second) graph_.metadata.push_back(std::move(entry));
    for (Note& found : shard.notes) graph_.notes.push_back(std::move(found));
  }

  void missing_shard(std::uint32_t number) {
    const auto& [name, tensors] = index_.shards[number];
    absent_[number] = true;
    graph_.missing.insert(graph_.missing.end(), tensors.begin(), tensors.end());
    note(Severity::error, {},
         fmt::format("shard '{}' is missing; it held {} tensor{}: {}", safe_display(name), tensors.size(),
                     tensors.size() == 1 ? "" : "s", join_names(tensors, 3)));
  }

  MetaGraph finish() {
    for (std::size_t i = 0; i < index_.shards.size(); ++i) {
      if (absent_[i]) continue;
      const auto& [shard, tensors] = index_.shards[i];
      for (const std::string& tensor : tensors) {
        if (seen_.count(tensor) != 0) continue;
        graph_.missing.push_back(tensor);
        note(Severity::error, tensor,
             fmt::format("the index puts it in '{}', which does not hold it", safe_display(shard)));
      }
    }
    check_total();
    return std::move(graph_);
  }

 private:
  void note(Severity severity, std::optional<std::string> tensor, std::string text) {
    graph_.notes.push_back({severity, std::move(tensor), std::move(text)});
  }

  void check_total() {
    if (index_.odd_total) note(Severity::warning, {}, "the index's total_size is not a whole number");
    const std::uint64_t held = storage_bytes(graph_);
    const bool complete = std::find(absent_.begin(), absent_.end(), true) == absent_.end();
    // torch's writers add up tensors, of which several may view one storage, or a part of one
    const bool views = graph_.format != "safetensors";
    std::uint64_t viewed = 0;
    if (views)
      for (const Tensor& tensor : graph_.tensors) viewed += tensor_bytes(graph_, tensor);
    if (complete && index_.total_size && *index_.total_size != held &&
        (!views || *index_.total_size != viewed))
      note(views ? Severity::warning : Severity::error, {},
           fmt::format("the index says {} bytes in total, the shards hold {}", *index_.total_size, held));
  }

  const Index& index_;
  MetaGraph graph_;
  std::unordered_map<std::string, std::uint32_t> seen_;
  std::unordered_set<std::string> keys_;  // of the metadata
  std::vector<bool> absent_;              // by shard
};

}  // namespace

Match sniff_hf_index(std::span<const std::byte> head, std::string_view path) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return Match::no;
  if (text.find("\"weight_map\"") != std::string_view::npos) return Match::yes;
  return path.ends_with(kHfIndexSuffix) || path.ends_with(kHfTorchIndexSuffix) ? Match::yes : Match::no;
}

MetaGraph read_hf_index(const Source& source) {
  const Index index = parse_index(*source.file);
  std::vector<Opened> opened = open_shards(source, index);
  Joiner joiner(source, index);
  for (std::uint32_t i = 0; i < opened.size(); ++i)
    if (opened[i].graph)
      joiner.add(i, std::move(*opened[i].graph));
    else
      joiner.missing_shard(i);
  MetaGraph graph = joiner.finish();
  add_config(source, graph);
  return graph;
}

}  // namespace loadline
