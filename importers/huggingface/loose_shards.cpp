// Which files of a folder are one model without an index, and which take a missing shard's place.

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/names/file_names.h"
#include "importers/huggingface/index.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/core.h>

namespace loadline::importers {

// --- Shards that are numbered.

namespace {

constexpr std::size_t kMostFiles = 10'000;
constexpr std::size_t kMostNamed = 3;

std::string_view ending(std::string_view name) { return name.substr(std::min(name.rfind('.'), name.size())); }

std::unordered_set<std::string_view> set_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

}  // namespace

std::optional<ShardNumbers> shard_numbers(std::string_view name) {
  const auto stem = graph::hf_shard_stem(name);
  if (!stem) return std::nullopt;
  const std::string_view numbers = name.substr(stem->size() + 1);
  const std::size_t digits = numbers.find('-');
  const std::string_view behind = numbers.substr(digits);
  const auto count = text_as<std::uint64_t>(behind.substr(4, behind.rfind('.') - 4));
  if (!count || *count == 0) return std::nullopt;
  return ShardNumbers{*stem, behind, digits, *count};
}

std::string ShardNumbers::name(std::uint64_t number) const {
  return fmt::format("{}-{:0{}}{}", stem, number, digits, behind);
}

namespace {

std::vector<std::string> complete_shards(const ShardNumbers& numbers,
                                         const std::unordered_set<std::string_view>& held) {
  if (numbers.count < 2 || numbers.count > held.size()) return {};
  std::vector<std::string> shards;
  for (std::uint64_t i = 1; i <= numbers.count; ++i) {
    shards.push_back(numbers.name(i));
    if (!held.contains(shards.back())) return {};
  }
  return shards;
}

}  // namespace

std::vector<std::string> complete_shards(std::string_view file, const std::vector<std::string>& names) {
  const auto numbers = shard_numbers(file);
  return numbers ? complete_shards(*numbers, set_of(names)) : std::vector<std::string>();
}

namespace {

LooseShards opened_as_one(std::vector<std::string> shards) {
  LooseShards loose;
  loose.notes.push_back(graph::make_note(graph::Severity::warning, {},
                                         "no index lists the files of this model: {} are opened as one: {}",
                                         shards.size(), join_names(shards, kMostNamed)));
  loose.names = std::move(shards);
  return loose;
}

// For a numbered shard that is not the only one: the note that names those that are not there.
std::optional<graph::Note> lacks_others(const std::string& file, const std::vector<std::string>& names) {
  const auto numbers = shard_numbers(file);
  if (!numbers || numbers->count == 1) return std::nullopt;
  const std::unordered_set<std::string_view> held = set_of(names);
  std::vector<std::string> missing;
  for (std::uint64_t i = 1; i <= std::min<std::uint64_t>(numbers->count, kMostFiles); ++i)
    if (std::string name = numbers->name(i); !held.contains(name)) missing.push_back(std::move(name));
  return graph::make_note(graph::Severity::error, {},
                          "'{}' is one shard of a model of {}, which has no index; not there: {}",
                          safe_display(file), numbers->count, join_names(missing, kMostNamed));
}

// --- Files with other names: a model in parts has each tensor once, another version of it has all again.

// The tensors of an adapter go on top of a model's.
bool is_adapter(const graph::MetaGraph& graph) {
  return std::ranges::any_of(graph.tensors, [](const graph::Tensor& tensor) {
    const std::string_view name = tensor.name.view();
    return name.starts_with("base_model.model.") || name.find("lora_") != std::string_view::npos;
  });
}

// Weights with Mistral's own names, in a folder that has them with those of transformers, too.
bool is_consolidated(std::string_view name) { return name.starts_with("consolidated"); }

class Parts {
 public:
  LooseShards join(const Source& source, const std::vector<std::string>& files) {
    std::size_t taken = 0;
    open_shards(source, files, [&](OpenedShard shard) { take(files[taken++], std::move(shard)); });
    if (overlap_ || joined_.empty() || joined_.front() != files.front()) return {};
    LooseShards loose;
    if (joined_.size() > 1) loose = opened_as_one(std::move(joined_));
    if (!fault_.empty())
      loose.notes.push_back(graph::make_note(
          graph::Severity::error, {},
          "whether '{}' is a part of this model is not known, because it cannot be read ({}); to open one "
          "file alone, name it",
          safe_display(unreadable_), fault_));
    return loose;
  }

 private:
  void take(const std::string& file, const OpenedShard& shard) {
    if (shard.error) return refuse(file, shard.error);
    if (!shard.graph || is_adapter(*shard.graph)) return;
    const std::vector<graph::Tensor>& tensors = shard.graph->tensors;
    const auto known = static_cast<std::size_t>(std::ranges::count_if(
        tensors, [&](const graph::Tensor& tensor) { return names_.contains(tensor.name.str()); }));
    if (known == tensors.size() && !joined_.empty()) return;  // the same tensors again
    if (known > 0) overlap_ = true;
    for (const graph::Tensor& tensor : tensors) names_.insert(tensor.name.str());
    joined_.push_back(file);
  }

  void refuse(const std::string& file, const std::exception_ptr& error) {
    if (!fault_.empty()) return;
    try {
      std::rethrow_exception(error);
    } catch (const Error& known) {
      unreadable_ = file;
      fault_ = known.what();
    }
  }

  std::unordered_set<std::string> names_;
  std::vector<std::string> joined_;
  std::string unreadable_, fault_;  // the first file that cannot be read, and why
  bool overlap_ = false;
};

}  // namespace

LooseShards loose_shards(const std::function<std::shared_ptr<const io::SourceFile>(const std::string&)>& open,
                         const std::vector<std::string>& candidates) {
  const std::string& chosen = candidates.front();
  if (ending(chosen) != ".safetensors" && ending(chosen) != ".bin") return {};
  const std::unordered_set<std::string_view> held = set_of(candidates);
  for (const std::string& name : candidates) {
    const auto numbers = shard_numbers(name);
    if (!numbers || numbers->name(1) != name) continue;  // each set once
    if (auto shards = complete_shards(*numbers, held); !shards.empty())
      return opened_as_one(std::move(shards));
  }
  if (auto note = lacks_others(chosen, candidates)) return {.notes = {std::move(*note)}};
  std::vector<std::string> files;
  std::ranges::copy_if(candidates, std::back_inserter(files), [&](const std::string& name) {
    return ending(name) == ending(chosen) && is_consolidated(name) == is_consolidated(chosen);
  });
  if (files.size() < 2 || files.size() > kMostFiles) return {};
  Source source;
  source.open_sibling = open;
  return Parts().join(source, files);
}

// --- An index that lists files of another time.

std::vector<std::string> shard_files(const std::vector<std::string>& names, std::string_view index) {
  std::vector<std::string> files;
  if (!graph::has_ending_of(index, "hf_index")) return files;
  const std::string_view wanted = index.ends_with(graph::kHfTorchIndexSuffix) ? ".bin" : ".safetensors";
  std::ranges::copy_if(names, std::back_inserter(files),
                       [&](const std::string& name) { return name.ends_with(wanted); });
  return files;
}

std::optional<graph::Note> replacements(const Source& source, const graph::MetaGraph& graph) {
  if (graph.missing.empty()) return std::nullopt;
  std::unordered_set<std::string> opened;
  for (const graph::ModelFile& file : graph.files) opened.insert(file.path.substr(file.path.rfind('/') + 1));
  std::vector<std::string> files;
  std::ranges::copy_if(source.others, std::back_inserter(files),
                       [&](const std::string& name) { return !opened.contains(name); });
  if (files.empty() || files.size() > kMostFiles) return std::nullopt;

  std::unordered_set<std::string_view> missing(graph.missing.begin(), graph.missing.end());
  std::vector<std::string> holders;
  std::size_t taken = 0;
  open_shards(source, files, [&](const OpenedShard& shard) {
    const std::string& file = files[taken++];
    std::size_t held = 0;
    if (shard.graph)
      for (const graph::Tensor& tensor : shard.graph->tensors) held += missing.erase(tensor.name.view());
    if (held > 0) holders.push_back(file);
  });
  if (!missing.empty()) return std::nullopt;
  const std::string held_by = join_names(holders, kMostNamed);
  if (complete_shards(holders.front(), source.others) == holders)
    return graph::make_note(graph::Severity::error, {},
                            "the index is of other files: {} hold all tensors that it puts in missing ones; "
                            "open '{}' to read them without the index",
                            held_by, safe_display(holders.front()));
  return graph::make_note(graph::Severity::error, {},
                          "the index is of other files: {} {} all tensors that it puts in missing ones; "
                          "correct the index, or the {} of the file{}",
                          held_by, holders.size() == 1 ? "holds" : "hold",
                          holders.size() == 1 ? "name" : "names", holders.size() == 1 ? "" : "s");
}

}  // namespace loadline::importers
