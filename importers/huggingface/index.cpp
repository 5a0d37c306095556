// Opens a sharded model: config.json, the shards in parallel, the joined graph.
#include "importers/huggingface/index.h"

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/forward/family/settings.h"
#include "core/forward/model/known_models.h"
#include "core/graph/name.h"
#include "core/graph/names/file_names.h"
#include "core/io/system_memory.h"
#include "importers/formats.h"
#include "importers/importer.h"
#include "importers/torch/values.h"

#include <algorithm>
#include <mutex>
#include <string_view>

#include <fmt/core.h>

namespace loadline::importers {

// --- Hugging Face config.json: the model_type and the sizes that its family needs
// (core/forward/model/known_models.h).

namespace {

constexpr std::size_t kMostConfig = 4 << 20;

// What generation_config.json changes of the passes that a load is followed by.
void note_generation(const Source& source, graph::MetaGraph& graph) {
  const auto file = source.open_sibling("generation_config.json");
  if (!file || file->size() > kMostConfig) return;
  const std::string text = file->head(kMostConfig);
  try {
    for (const forward::Setting& setting :
         forward::unaccounted_generation(forward::generation_settings(text)))
      graph.note(graph::Severity::info, {}, "{}", forward::generation_note(setting));
  } catch (const Error&) {
    graph.note(graph::Severity::info, {}, "generation_config.json is not a JSON object and was not read");
  }
}

}  // namespace

Match sniff_hf_config(std::string_view head, std::string_view path) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] != '{') return Match::no;
  return graph::has_ending_of(path, "config") || head.find("\"model_type\"") != std::string_view::npos ||
                 head.find("\"architectures\"") != std::string_view::npos
             ? Match::maybe
             : Match::no;
}

graph::MetaGraph read_hf_config(const Source& source) {
  if (source.file->size() > kMostConfig)
    throw Error(ErrorCode::limit, {.file = source.file->path()}, "too large for a config.json (over 4 MiB)");
  graph::MetaGraph graph =
      forward::config_or_settings_graph(source.file->head(kMostConfig), source.file->path(),
                                        *(source.assets ? source.assets() : forward::built_in_assets()));
  graph.files.push_back({source.file->path(), source.file->size()});
  note_generation(source, graph);
  return graph;
}

void add_config(const Source& source, graph::MetaGraph& graph) {
  const auto file = source.open_sibling("config.json");
  if (!file) return;
  if (file->size() > kMostConfig)
    return graph.note(graph::Severity::warning, {}, "config.json has {} bytes and was not read",
                      file->size());
  std::string text = file->head(kMostConfig);
  if (!is_valid_utf8(text))
    return graph.note(graph::Severity::warning, {}, "config.json is not UTF-8 and was not read");
  graph.metadata.push_back({std::string(graph::kConfigKey), std::move(text)});
  note_generation(source, graph);
}

// --- Opens shards and reads them on several threads.

namespace {

constexpr std::size_t kMostThreads = 8;
constexpr std::size_t kShardsPerThread = 4;
// How many files are opened ahead, and how many bytes of each are read ahead: enough for most headers.
constexpr std::size_t kMostAhead = 256;  // files open at a time, but for those being read
constexpr std::uint64_t kReadAhead = 128 << 10;

// The content decides the format; for a name with .safetensors the sniff is skipped.
graph::MetaGraph read_shard(const io::SourceFile& file) {
  if (file.path().ends_with(".safetensors")) return read_safetensors_file(file);
  const std::string head = file.head(kSniffBytes);
  const bool zip = sniff_torch_zip(head, file.path()) == Match::yes;
  if (!zip && sniff_torch_legacy(head, file.path()) != Match::yes) return read_safetensors_file(file);
  return zip ? read_torch_zip_file(file) : read_torch_legacy_file(file);
}

// Opens files well ahead and asks the system to read their beginnings, so that parsing one shard overlaps
// with reading the others, even with few threads.
class ShardLoop {
 public:
  ShardLoop(const Source& source, const std::vector<std::string>& names,
            const std::function<void(OpenedShard)>& take)
      : source_(source), names_(names), take_(take), shards_(names.size()) {}

  void run() {
    const std::size_t ahead = std::min(kMostAhead, names_.size());
    ParallelLoop(names_.size() + ahead, threads_for_shards(names_.size()), [&](std::size_t i) {
      if (i < names_.size()) open(shards_[i], names_[i]);
      if (i < ahead) return;
      Shard& shard = shards_[i - ahead];
      open(shard, names_[i - ahead]);  // in case no other thread has opened it yet
      read(shard);
      hand_over(shard);
    }).finish();
  }

 private:
  struct Shard {
    Once once;
    std::shared_ptr<const io::SourceFile> file;
    OpenedShard opened;
    bool ready = false;
  };

  void open(Shard& shard, const std::string& name) {
    shard.once.run([&] {
      try {
        shard.file = source_.open_sibling(name);
        if (shard.file) shard.file->will_read(0, kReadAhead);
      } catch (...) {
        shard.opened.error = std::current_exception();
      }
    });
  }

  static void read(Shard& shard) {
    if (!shard.file) return;
    try {
      shard.opened.graph = read_shard(*shard.file);
    } catch (...) {
      shard.opened.error = std::current_exception();
    }
    shard.file.reset();
  }

  // Hands over this shard and all ready ones after it, once those before it are done. So few shards wait
  // here.
  void hand_over(Shard& shard) {
    const std::lock_guard lock(mutex_);
    shard.ready = true;
    for (; next_ < shards_.size() && shards_[next_].ready; ++next_) take_(std::move(shards_[next_].opened));
  }

  const Source& source_;
  const std::vector<std::string>& names_;
  const std::function<void(OpenedShard)>& take_;
  std::vector<Shard> shards_;
  std::mutex mutex_;      // for the two below, and Shard::ready
  std::size_t next_ = 0;  // to be handed over
};

}  // namespace

void open_shards(const Source& source, const std::vector<std::string>& names,
                 const std::function<void(OpenedShard shard)>& take) {
  ShardLoop(source, names, take).run();
  forget_safetensors_memory();
}

std::size_t threads_for_shards(std::size_t shards) {
  return std::min({kMostThreads, std::max<std::size_t>(2, cores()), shards / kShardsPerThread});
}

std::vector<std::string> likely_shards(const io::SourceFile& index) {
  constexpr std::size_t kSearched = 4096;
  constexpr std::uint64_t kMostGuessed = 10'000;
  const std::string head = index.head(kSearched);
  const std::string_view text = head;
  std::size_t end = text.find(".safetensors\"");
  if (end == std::string_view::npos) end = text.find(".bin\"");
  const std::size_t quote = end == std::string_view::npos ? end : text.rfind('"', end);
  if (quote == std::string_view::npos) return {};
  const std::string_view name = text.substr(quote + 1, text.find('"', end) - quote - 1);
  const auto numbers = shard_numbers(name);
  // each listed shard needs its name's bytes in the index: with fewer bytes the number cannot be true
  if (!numbers || numbers->count > std::min(kMostGuessed, index.size() / name.size())) return {};
  std::vector<std::string> names;
  for (std::uint64_t i = 1; i <= numbers->count; ++i) names.push_back(numbers->name(i));
  return names;
}

// --- Joins the shards of a sharded model into one graph and checks each name against the index.

namespace {

// Joins all shards into one graph. A shard that is missing or could not be read has no file.
class JoinedModel {
 public:
  JoinedModel() = default;
  explicit JoinedModel(const io::SourceFile& index) : graph(file_graph(index, "safetensors")) {
    constexpr std::uint64_t kShortEntry = 80, kLongEntry = 100, kMostExpected = 1'000'000;
    // a generous reserve costs nothing: pages that are never written take no memory, but for large ones
    const auto most = static_cast<std::size_t>(std::min(index.size() / kShortEntry, kMostExpected));
    const auto least = static_cast<std::size_t>(std::min(index.size() / kLongEntry, kMostExpected));
    graph.tensors.reserve(most);
    graph.storages.reserve(most);
    io::prefer_large_pages(graph.tensors.data(), least * sizeof(graph::Tensor));
    io::prefer_large_pages(graph.storages.data(), least * sizeof(graph::Storage));
  }

  void add(const std::string& name, OpenedShard opened) {
    if (opened.error && !error) error = opened.error;
    shards.push_back({name, graph::kNoFile, graph.tensors.size()});
    if (!opened.graph) return;
    graph::MetaGraph& from = *opened.graph;
    const graph::FileId file{static_cast<std::uint32_t>(graph.files.size())};
    shards.back().file = file;
    graph.format = from.format;
    graph.files.push_back(std::move(from.files.front()));
    append_weights(graph, from, file);
    // the first shard with a metadata key gives its value
    for (graph::MetaEntry& entry : from.metadata)
      if (keys_.insert(entry.key).second) graph.metadata.push_back(std::move(entry));
  }

  graph::MetaGraph graph;
  std::vector<JoinedShard> shards;
  std::exception_ptr error;  // of the first bad shard by name, whichever thread read it

 private:
  graph::TextSet keys_;  // of the metadata
};

// Removes tensors, given by their positions, with the packed weights whose codes they are and the storages
// that only they use. The parts of the other packed weights are then to be found anew.
void erase_tensors(graph::MetaGraph& graph, const std::vector<std::size_t>& positions) {
  std::vector<bool> tensor_goes(graph.tensors.size()), storage_goes(graph.storages.size());
  for (const std::size_t at : positions)
    storage_goes[graph::index(graph.tensors[at].storage)] = tensor_goes[at] = true;
  std::erase_if(graph.logical,
                [&](const graph::LogicalTensor& weight) { return tensor_goes[graph::index(weight.codes)]; });
  for (std::size_t i = 0; i < tensor_goes.size(); ++i)
    if (!tensor_goes[i]) storage_goes[graph::index(graph.tensors[i].storage)] = false;
  std::vector<graph::StorageId> place;
  std::uint32_t storages = 0;
  for (std::size_t i = 0; i < storage_goes.size(); ++i) {
    place.push_back(graph::StorageId{storages});
    if (!storage_goes[i]) graph.storages[storages++] = graph.storages[i];
  }
  graph.storages.resize(storages);
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < tensor_goes.size(); ++i) {
    if (tensor_goes[i]) continue;
    graph.tensors[i].storage = place[graph::index(graph.tensors[i].storage)];
    if (tensors != i) graph.tensors[tensors] = std::move(graph.tensors[i]);
    ++tensors;
  }
  graph.tensors.resize(tensors);
}

// Compares index and shards. Disagreements become notes in the graph, contradictions an Error.
class Report {
 public:
  Report(const HfWeightMap& index, HfIndexCheck& check, JoinedModel& model)
      : index_(index), check_(check), shards_(model.shards), graph_(model.graph) {}

  void write() {
    take_promises();
    for (std::uint32_t i = 0; i < shards_.size(); ++i) {
      if (is_there(i))
        add_shard(i);
      else
        add_missing_shard(i);
    }
    leave_copies();
    add_missing_tensors();
    check_total();
  }

 private:
  // Finds entries without a shard or tensor. The first name that occurs twice among them is an Error.
  void take_promises() {
    promises_ = check_.promises();
    graph::TextViewSet names;
    for (const HfIndexCheck::Promise& promise : promises_)
      if (!promise.held && !names.insert(promise.tensor).second)
        throw Error(ErrorCode::malformed, {.file = graph_.files.front().path, .tensor = promise.tensor},
                    "the name occurs twice in weight_map");
  }

  void add_shard(std::uint32_t number) {
    const std::size_t end = check_.end_of(number);
    for (std::size_t i = shards_[number].first_tensor; i < end; ++i) {
      if (check_.planned(i) == number) continue;
      if (!copies_) copies_ = check_.settle_copies(graph_.files.front().path);
      const std::uint32_t planned = check_.planned(i);
      if (planned == number || std::ranges::binary_search(*copies_, i)) continue;
      if (planned == HfIndexCheck::kNoShard)
        note(graph_.tensors[i].name, "in shard '{}' but not in the index", shard_name(number));
      else
        note(graph_.tensors[i].name, "in shard '{}', the index puts it in '{}'", shard_name(number),
             shard_name(planned));
    }
  }

  void leave_copies() {
    if (!copies_ || copies_->empty()) return;
    std::vector<std::string> names;
    for (const std::size_t at : *copies_) names.push_back(graph_.tensors[at].name);
    graph_.note(graph::Severity::warning, {},
                "{} {} in several shards, and taken from where the index says: {}",
                counted(names.size(), "tensor"), names.size() == 1 ? "is" : "are", join_names(names, 3));
    const std::uint64_t all = graph::storage_bytes(graph_);
    erase_tensors(graph_, *copies_);
    copied_bytes_ = all - graph::storage_bytes(graph_);
  }

  void add_missing_shard(std::uint32_t number) {
    if (complete_) {  // the first: which tensors each shard should hold is looked up once
      promised_.resize(shards_.size());
      for (const HfIndexCheck::Promise& promise : promises_)
        promised_[promise.shard].push_back(promise.tensor);
    }
    complete_ = false;
    const std::vector<std::string>& tensors = promised_[number];
    graph_.note(graph::Severity::error, {}, "shard '{}' is missing; it held {} tensor{}: {}",
                shard_name(number), tensors.size(), tensors.size() == 1 ? "" : "s", join_names(tensors, 3));
  }

  void add_missing_tensors() {
    for (HfIndexCheck::Promise& promise : promises_) {
      if (promise.held) continue;
      if (is_there(promise.shard))
        note(promise.tensor, "the index puts it in '{}', which does not hold it", shard_name(promise.shard));
      graph_.missing.push_back(std::move(promise.tensor));
    }
  }

  void check_total() {
    if (index_.odd_total())
      graph_.note(graph::Severity::warning, {}, "the index's total_size is not a whole number");
    if (!complete_ || !index_.total_size()) return;
    const std::uint64_t held = graph::storage_bytes(graph_);
    // torch's writers sum the sizes of tensors; several tensors may share a storage or view a part of one
    const bool views = graph_.format != "safetensors";
    std::uint64_t viewed = held;
    if (views) {
      viewed = 0;
      for (const graph::Tensor& tensor : graph_.tensors) viewed += graph::tensor_bytes(graph_, tensor);
    }
    const std::uint64_t total = *index_.total_size();  // with or without copies
    if (total != held && total != viewed && total != held + copied_bytes_)
      graph_.note(views ? graph::Severity::warning : graph::Severity::error, {},
                  "the index says {} bytes in total, the shards hold {}", total, held);
  }

  bool is_there(std::uint32_t number) const { return shards_[number].file != graph::kNoFile; }
  std::string shard_name(std::uint32_t number) const { return safe_display(shards_[number].name); }
  template <typename... Values>
  void note(const std::string& tensor, fmt::format_string<Values...> detail, const Values&... values) {
    graph_.note(graph::Severity::error, tensor, detail, values...);
  }

  const HfWeightMap& index_;
  HfIndexCheck& check_;
  const std::vector<JoinedShard>& shards_;
  graph::MetaGraph& graph_;
  std::uint64_t copied_bytes_ = 0;
  std::optional<std::vector<std::size_t>> copies_;  // once a tensor lies elsewhere than the index says
  std::vector<HfIndexCheck::Promise> promises_;
  std::vector<std::vector<std::string>> promised_;  // by shard, once one is missing
  bool complete_ = true;                            // no shard is missing
};

// The model with these shards. If the index lists other shards: nothing, and `names` becomes that list.
std::optional<graph::MetaGraph> read_with_shards(const Source& source, std::vector<std::string>& names) {
  HfWeightMap index(*source.file);
  JoinedModel model(*source.file);
  open_shards(source, names,
              [&](OpenedShard shard) { model.add(names[model.shards.size()], std::move(shard)); });
  HfIndexCheck check(model.graph.tensors, model.shards);
  check.run(index, source.file->path());
  std::vector<std::string> listed = check.listed();
  if (listed != names) {
    names = std::move(listed);
    return std::nullopt;
  }
  if (model.error) std::rethrow_exception(model.error);
  Report(index, check, model).write();
  bind_quantized(model.graph);
  return std::move(model.graph);
}

}  // namespace

graph::MetaGraph read_loose_shards(const Source& source) {
  JoinedModel model;
  open_shards(source, source.set, [&](OpenedShard shard) {
    const std::string& name = source.set[model.shards.size()];
    if (!shard.error && !shard.graph)
      shard.error = std::make_exception_ptr(
          Error(ErrorCode::io, {.file = source.file->path()}, "the shard '{}' is gone", safe_display(name)));
    model.add(name, std::move(shard));
  });
  if (model.error) std::rethrow_exception(model.error);
  HfIndexCheck(model.graph.tensors, model.shards).settle_copies(source.file->path());
  bind_quantized(model.graph);
  add_config(source, model.graph);
  return std::move(model.graph);
}

Match sniff_hf_index(std::string_view head, std::string_view path) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] != '{') return Match::no;
  if (head.find("\"weight_map\"") != std::string_view::npos) return Match::yes;
  return graph::has_ending_of(path, "hf_index") ? Match::yes : Match::no;
}

graph::MetaGraph read_hf_index(const Source& source) {
  source.file->will_read(0, source.file->size());
  std::vector<std::string> names = likely_shards(*source.file);
  std::optional<graph::MetaGraph> graph = read_with_shards(source, names);
  if (!graph) graph = read_with_shards(source, names);  // with the shards that the index really lists
  if (!graph)
    throw Error(ErrorCode::io, {.file = source.file->path()}, "the index changed while it was read");
  if (auto note = replacements(source, *graph)) graph->notes.insert(graph->notes.begin(), std::move(*note));
  add_config(source, *graph);
  return std::move(*graph);
}

}  // namespace loadline::importers
