// Opens the shards of a sharded model in parallel and joins them, each name checked against the index.
#include "importers/hf_index.h"

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/graph/hf_names.h"
#include "importers/hf_config.h"
#include "importers/hf_weight_map.h"
#include "importers/safetensors.h"
#include "importers/torch_legacy.h"
#include "importers/torch_zip.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::size_t kMostThreads = 8;
constexpr std::size_t kShardsPerThread = 4;
// How much of each file the disk is asked for beforehand: most headers whole.
constexpr std::uint64_t kReadAhead = 128 << 10;

std::size_t threads_for(std::size_t shards) {
  const std::size_t cores = std::max(2U, std::thread::hardware_concurrency());
  return std::min({kMostThreads, cores, shards / kShardsPerThread});
}

// What opening one shard gave: a graph, nothing (no such file), or an error.
struct Opened {
  std::optional<MetaGraph> graph;
  std::exception_ptr error;
};

// Content decides, but a shard that is called safetensors need not be looked at twice.
MetaGraph read_shard(const SourceFile& file) {
  if (file.path().ends_with(".safetensors")) return read_safetensors_file(file);
  const std::vector<std::byte> head = file.head(kSniffBytes);
  if (sniff_torch_zip(head, file.path()) == Match::yes) return read_torch_zip_file(file);
  if (sniff_torch_legacy(head, file.path()) == Match::yes) return read_torch_legacy_file(file);
  return read_safetensors_file(file);
}

// Opens shards and reads them on several threads. All files are opened first and the disk asked for their
// beginnings: parsing the first overlaps with reading the others, however few threads there are.
class ShardLoop {
 public:
  ShardLoop(const Source& source, std::vector<std::string> names)
      : source_(source),
        names_(std::move(names)),
        files_(names_.size()),
        opened_(names_.size()),
        loop_(2 * names_.size(), threads_for(names_.size()),
              [this](std::size_t i) { i < names_.size() ? open(i) : read(i - names_.size()); }) {}

  const std::vector<std::string>& names() const { return names_; }
  std::vector<Opened>& finish() {
    loop_.finish();
    return opened_;
  }

 private:
  struct File {
    std::once_flag once;
    std::shared_ptr<const SourceFile> file;
  };

  void open(std::size_t i) {
    std::call_once(files_[i].once, [&] {
      try {
        files_[i].file = source_.open_sibling(names_[i]);
        if (files_[i].file) files_[i].file->will_read(0, kReadAhead);
      } catch (...) {
        opened_[i].error = std::current_exception();
      }
    });
  }

  void read(std::size_t i) {
    open(i);  // another thread may not have come to it yet
    if (!files_[i].file) return;
    try {
      opened_[i].graph = read_shard(*files_[i].file);
    } catch (...) {
      opened_[i].error = std::current_exception();
    }
    files_[i].file.reset();
  }

  const Source& source_;
  std::vector<std::string> names_;
  std::vector<File> files_;
  std::vector<Opened> opened_;
  ParallelLoop loop_;  // last: its threads use all the others
};

// The shards that an index most likely lists, from the first name in it ("model-00001-of-00163.safetensors"):
// they can be opened while the index is still being parsed. Empty if names do not count like that.
std::vector<std::string> likely_shards(const SourceFile& index) {
  constexpr std::size_t kSearched = 4096;
  constexpr std::uint64_t kMostGuessed = 10'000;
  const std::vector<std::byte> bytes = index.head(kSearched);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::size_t end = text.find(".safetensors\"");
  if (end == std::string_view::npos) end = text.find(".bin\"");
  const std::size_t of = end == std::string_view::npos ? end : text.rfind("-of-", end);
  const std::size_t quote = of == std::string_view::npos ? of : text.rfind('"', of);
  if (quote == std::string_view::npos) return {};
  const std::string_view name = text.substr(quote + 1, end - quote - 1);
  const std::string_view total = text.substr(of + 4, end - of - 4);
  const std::string_view extension = text.substr(end, text.find('"', end) - end);
  const std::size_t digits = of - quote - 1 > 0 ? name.substr(0, of - quote - 1).rfind('-') : name.npos;
  const auto is_number = [](std::string_view part) {
    return !part.empty() && part.size() <= 9 && part.find_first_not_of("0123456789") == part.npos;
  };
  if (digits == std::string_view::npos || !is_number(total)) return {};
  const std::string_view number = name.substr(digits + 1, of - quote - 1 - digits - 1);
  const std::uint64_t count = std::stoull(std::string(total));
  if (!is_number(number) || count > kMostGuessed) return {};
  std::vector<std::string> names;
  for (std::uint64_t i = 1; i <= count; ++i)
    names.push_back(
        fmt::format("{}-{:0{}}-of-{}{}", name.substr(0, digits), i, number.size(), total, extension));
  return names;
}

// The index, and each of its shards opened. Both are needed whole before either can be checked.
struct OpenedModel {
  HfWeightMap index;
  std::vector<Opened> shards;
};

OpenedModel open_index_and_shards(const Source& source) {
  ShardLoop early(source, likely_shards(*source.file));
  OpenedModel model = {HfWeightMap(*source.file), {}};
  const std::vector<std::string>& names = model.index.shards();
  std::vector<Opened>& guessed = early.finish();

  std::unordered_map<std::string_view, std::size_t> at;
  for (std::size_t i = 0; i < guessed.size(); ++i) at.emplace(early.names()[i], i);
  model.shards.resize(names.size());
  std::vector<std::size_t> rest;
  std::vector<std::string> rest_names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (const auto found = at.find(names[i]); found != at.end()) {
      model.shards[i] = std::move(guessed[found->second]);
    } else {
      rest.push_back(i);
      rest_names.push_back(names[i]);
    }
  }
  ShardLoop late(source, std::move(rest_names));
  std::vector<Opened>& others = late.finish();
  for (std::size_t i = 0; i < rest.size(); ++i) model.shards[rest[i]] = std::move(others[i]);
  // the first bad shard by name, whichever thread met it
  for (const Opened& shard : model.shards)
    if (shard.error) std::rethrow_exception(shard.error);
  return model;
}

// Puts the shards into one graph, in parallel, each name checked against the index.
class Joiner {
 public:
  Joiner(const Source& source, OpenedModel& model)
      : index_(model.index),
        shards_(model.shards),
        held_by_(index_.entries().size()),
        findings_(shards_.size()) {
    graph_.format = "safetensors";
    graph_.files.push_back({source.file->path(), source.file->size()});
    for (std::atomic<std::uint32_t>& shard : held_by_) shard.store(kNoShard, std::memory_order_relaxed);
  }

  MetaGraph join() {
    std::size_t tensors = 0, storages = 0;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      findings_[i].first_tensor = tensors;
      findings_[i].first_storage = storages;
      if (!shards_[i].graph) continue;
      graph_.format = shards_[i].graph->format;
      storages += shards_[i].graph->storages.size();
      findings_[i].file = FileId{static_cast<std::uint32_t>(graph_.files.size())};
      graph_.files.push_back(std::move(shards_[i].graph->files.front()));
      tensors += shards_[i].graph->tensors.size();
    }
    graph_.tensors.resize(tensors);
    graph_.storages.resize(storages);
    ParallelLoop(shards_.size(), threads_for(shards_.size()), [this](std::size_t i) {
      if (shards_[i].graph) take_shard(static_cast<std::uint32_t>(i));
    }).finish();
    for (std::uint32_t i = 0; i < shards_.size(); ++i) report_shard(i);
    report_missing_tensors();
    check_total();
    return std::move(graph_);
  }

 private:
  static constexpr std::uint32_t kNoShard = UINT32_MAX;

  struct Finding {
    FileId file = kNoFile;
    std::size_t first_tensor = 0;  // in the joined graph
    std::size_t first_storage = 0;
    std::vector<Note> notes;
    std::vector<std::uint32_t> unplanned;  // tensors outside the index
    std::optional<std::pair<std::uint32_t, std::uint32_t>>
        repeated;  // a tensor, and the shard that has it too
  };

  // Called by several threads, each for shards of its own.
  void take_shard(std::uint32_t number) {
    Finding& finding = findings_[number];
    MetaGraph& shard = *shards_[number].graph;
    std::uint32_t last = 0;
    for (std::size_t i = 0; i < shard.storages.size(); ++i) {
      Storage& storage = graph_.storages[finding.first_storage + i];
      storage = shard.storages[i];
      if (storage.file != kNoFile) storage.file = finding.file;
    }
    for (std::size_t i = 0; i < shard.tensors.size(); ++i) {
      const auto at = static_cast<std::uint32_t>(finding.first_tensor + i);
      Tensor& tensor = graph_.tensors[at];
      tensor = std::move(shard.tensors[i]);
      tensor.storage = StorageId{static_cast<std::uint32_t>(finding.first_storage + index(tensor.storage))};
      const auto planned = index_.find(tensor.name, tensor.name.hash(), last);
      if (!planned) {
        finding.unplanned.push_back(at);
        continue;
      }
      last = *planned;
      const std::uint32_t before = held_by_[last].exchange(number, std::memory_order_relaxed);
      if (before != kNoShard && !finding.repeated) finding.repeated = {at, before};
      if (index_.entries()[last].shard != number)
        note(finding, tensor.name,
             fmt::format("in shard '{}', the index puts it in '{}'", shard_name(number),
                         shard_name(index_.entries()[last].shard)));
    }
    shard.tensors = {};
    shard.storages = {};
  }

  void report_shard(std::uint32_t number) {
    if (!shards_[number].graph) return report_missing_shard(number);
    Finding& finding = findings_[number];
    for (const std::uint32_t at : finding.unplanned) {
      const Name& name = graph_.tensors[at].name;
      note(finding, name, fmt::format("in shard '{}' but not in the index", shard_name(number)));
      const auto [other, fresh] = unplanned_.try_emplace(name, number);
      if (!fresh && !finding.repeated) finding.repeated = {at, other->second};
    }
    if (finding.repeated) {
      // whichever thread came first: the later shard is told to repeat the earlier
      const auto [at, other] = *finding.repeated;
      throw Error(ErrorCode::malformed,
                  {.file = graph_.file(findings_[std::max(number, other)].file).path,
                   .tensor = graph_.tensors[at].name},
                  fmt::format("also in shard '{}'", shard_name(std::min(number, other))));
    }
    MetaGraph& shard = *shards_[number].graph;
    // the first shard that has a key says what it is
    for (MetaEntry& entry : shard.metadata)
      if (keys_.insert(entry.key).second) graph_.metadata.push_back(std::move(entry));
    for (std::vector<Note>* notes : {&finding.notes, &shard.notes})
      graph_.notes.insert(graph_.notes.end(), std::make_move_iterator(notes->begin()),
                          std::make_move_iterator(notes->end()));
  }

  void report_missing_shard(std::uint32_t number) {
    if (complete_) {  // the first: which tensors each shard should hold is looked up once
      promised_.resize(shards_.size());
      for (const HfWeightMap::Entry& entry : index_.entries()) promised_[entry.shard].push_back(entry.name);
    }
    complete_ = false;
    const std::vector<std::string> tensors(promised_[number].begin(), promised_[number].end());
    graph_.missing.insert(graph_.missing.end(), tensors.begin(), tensors.end());
    graph_.notes.push_back(
        {Severity::error,
         {},
         fmt::format("shard '{}' is missing; it held {} tensor{}: {}", shard_name(number), tensors.size(),
                     tensors.size() == 1 ? "" : "s", join_names(tensors, 3))});
  }

  void report_missing_tensors() {
    for (std::size_t i = 0; i < held_by_.size(); ++i) {
      const HfWeightMap::Entry& entry = index_.entries()[i];
      if (held_by_[i].load(std::memory_order_relaxed) != kNoShard || !shards_[entry.shard].graph) continue;
      graph_.missing.emplace_back(entry.name);
      graph_.notes.push_back(
          {Severity::error, std::string(entry.name),
           fmt::format("the index puts it in '{}', which does not hold it", shard_name(entry.shard))});
    }
  }

  void check_total() {
    if (index_.odd_total())
      graph_.notes.push_back({Severity::warning, {}, "the index's total_size is not a whole number"});
    if (!complete_ || !index_.total_size()) return;
    const std::uint64_t held = storage_bytes(graph_);
    // torch's writers add up tensors, of which several may view one storage, or a part of one
    const bool views = graph_.format != "safetensors";
    std::uint64_t viewed = held;
    if (views) {
      viewed = 0;
      for (const Tensor& tensor : graph_.tensors) viewed += tensor_bytes(graph_, tensor);
    }
    if (*index_.total_size() != held && *index_.total_size() != viewed)
      graph_.notes.push_back(
          {views ? Severity::warning : Severity::error,
           {},
           fmt::format("the index says {} bytes in total, the shards hold {}", *index_.total_size(), held)});
  }

  std::string shard_name(std::uint32_t number) const { return safe_display(index_.shards()[number]); }
  static void note(Finding& finding, const Name& tensor, std::string text) {
    finding.notes.push_back({Severity::error, tensor.str(), std::move(text)});
  }

  const HfWeightMap& index_;
  std::vector<Opened>& shards_;
  MetaGraph graph_;
  std::vector<std::atomic<std::uint32_t>> held_by_;      // the shard that holds each entry of the index
  std::vector<Finding> findings_;                        // by shard
  std::unordered_map<Name, std::uint32_t> unplanned_;    // tensors outside the index, and their shard
  std::unordered_set<std::string> keys_;                 // of the metadata
  std::vector<std::vector<std::string_view>> promised_;  // by shard, once one is missing
  bool complete_ = true;                                 // no shard is missing
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
  OpenedModel model = open_index_and_shards(source);
  MetaGraph graph = Joiner(source, model).join();
  add_config(source, graph);
  return graph;
}

}  // namespace loadline
