// GGUF models (the bytes: gguf_file.cpp). A split set (llama.cpp gguf-split) is PREFIX-00001-of-00003.gguf
// and so on; each part says its number from 0, the first carries all other metadata.
#include "importers/gguf/gguf.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/name.h"
#include "core/graph/names/file_names.h"
#include "importers/formats.h"
#include "importers/importer.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include <fmt/core.h>

namespace loadline::importers {
namespace {

constexpr std::uint64_t kMostParts = 9'999;

std::string part_name(std::string_view prefix, std::uint64_t number, std::uint64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number + 1, count);
}

// The prefix ("model") of a file name, if the name is correct for this part of the split set.
std::optional<std::string> split_prefix(const std::string& path, const GgufSplit& split) {
  const std::string name = std::filesystem::path(path).filename().string();
  const std::string suffix = part_name("", split.number, split.count);
  if (name.size() <= suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  return name.substr(0, name.size() - suffix.size());
}

bool is_split_key(const graph::MetaEntry& entry) { return entry.key.rfind("split.", 0) == 0; }

class Joiner {
 public:
  Joiner(const Source& source, const GgufSplit& split, std::string prefix)
      : source_(source), split_(split), prefix_(std::move(prefix)) {}

  // `opened` is the part that the user opened.
  graph::MetaGraph join(GgufFile opened) {
    graph_.format = "gguf";
    for (std::uint64_t i = 0; i < split_.count; ++i) {
      if (i == split_.number) {
        add(i, std::move(opened));
        continue;
      }
      const std::string name = part_name(prefix_, i, split_.count);
      if (const auto file = source_.open_sibling(name))
        add(i, read_gguf_file(*file));
      else
        missing(name);
    }
    if (split_.tensors && complete_ && *split_.tensors != graph_.tensors.size())
      graph_.note(graph::Severity::error, {}, "split.tensors.count is {}, the parts hold {} tensors",
                  *split_.tensors, graph_.tensors.size());
    return std::move(graph_);
  }

 private:
  void missing(const std::string& name) {
    complete_ = false;
    graph_.note(graph::Severity::error, {}, "part '{}' is missing: which tensors it holds is not known",
                safe_display(name));
  }

  void add(std::uint64_t number, GgufFile part) {
    const std::string& path = part.graph.files.front().path;
    if (!part.split)
      throw Error(ErrorCode::malformed, {.file = path},
                  "is named as part {} of {} but is not part of a split set", number + 1, split_.count);
    if (part.split->number != number || part.split->count != split_.count)
      throw Error(ErrorCode::malformed, {.file = path},
                  "says it is part {} of {}, its name and the other parts say {} of {}",
                  part.split->number + 1, part.split->count, number + 1, split_.count);
    const graph::FileId file{static_cast<std::uint32_t>(graph_.files.size())};
    graph_.files.push_back(part.graph.files.front());
    append_weights(graph_, part.graph, file);
    for (graph::MetaEntry& entry : part.graph.metadata) {
      if (is_split_key(entry) || !keys_.insert(entry.key).second) continue;
      if (auto* array = std::get_if<graph::MetaArray>(&entry.value)) array->file = file;
      graph_.metadata.push_back(std::move(entry));
    }
  }

  const Source& source_;
  GgufSplit split_;
  std::string prefix_;
  graph::MetaGraph graph_;
  graph::TextSet keys_;  // of the metadata
  bool complete_ = true;
};

}  // namespace

Match sniff_gguf(std::string_view head, std::string_view) {
  return head.starts_with("GGUF") ? Match::yes : Match::no;
}

namespace {

// Adds the tensors of a file that goes with the model, under its role.
void add_beside(graph::MetaGraph& graph, const io::SourceFile& file, std::string_view role) {
  GgufFile beside = read_gguf_file(file);
  if (beside.split && beside.split->count > 1)
    throw Error(ErrorCode::unsupported, {.file = file.path()},
                "is part {} of {}: a file that goes with a model must be whole", beside.split->number + 1,
                beside.split->count);
  const graph::FileId id{static_cast<std::uint32_t>(graph.files.size())};
  graph.files.push_back(beside.graph.files.front());
  for (graph::Tensor& tensor : beside.graph.tensors)
    tensor.name = graph::Name(fmt::format("{}.{}", role, tensor.name.view()));
  for (graph::Note& note : beside.graph.notes)
    if (note.tensor) note.tensor = fmt::format("{}.{}", role, *note.tensor);
  append_weights(graph, beside.graph, id);
}

graph::MetaGraph read_model(const Source& source) {
  GgufFile file = read_gguf_file(*source.file);
  if (!file.split) return std::move(file.graph);
  const GgufSplit split = *file.split;
  if (split.count > kMostParts || split.number >= split.count)
    throw Error(ErrorCode::malformed, {.file = source.file->path()},
                "split.no is {} of split.count {}, at most {} parts can be read", split.number, split.count,
                kMostParts);
  if (auto prefix = split_prefix(source.file->path(), split))
    return Joiner(source, split, std::move(*prefix)).join(std::move(file));
  file.graph.note(graph::Severity::error, {},
                  "is part {} of {} but not named '...{}': the other parts cannot be found", split.number + 1,
                  split.count, part_name("", split.number, split.count));
  return std::move(file.graph);
}

}  // namespace

// --- What llama.cpp refuses of a model's keys, and what others read.

namespace {

// Keys of every architecture that llama.cpp reads as numbers of one type.
constexpr std::pair<std::string_view, graph::MetaType> kTypes[] = {
    {"block_count", graph::MetaType::u32},
    {"context_length", graph::MetaType::u32},
    {"embedding_length", graph::MetaType::u32},
    {"feed_forward_length", graph::MetaType::u32},
    {"expert_count", graph::MetaType::u32},
    {"expert_used_count", graph::MetaType::u32},
    {"attention.head_count", graph::MetaType::u32},
    {"attention.head_count_kv", graph::MetaType::u32},
    {"attention.key_length", graph::MetaType::u32},
    {"attention.value_length", graph::MetaType::u32},
    {"attention.layer_norm_epsilon", graph::MetaType::f32},
    {"attention.layer_norm_rms_epsilon", graph::MetaType::f32},
    {"rope.dimension_count", graph::MetaType::u32},
    {"rope.freq_base", graph::MetaType::f32},
};

void note_types(graph::MetaGraph& graph) {
  const std::string* const architecture = graph::find_text(graph, "general.architecture");
  if (architecture == nullptr) return;
  std::vector<std::string> wrong;
  for (const auto& [name, type] : kTypes) {
    const std::string key = fmt::format("{}.{}", *architecture, name);
    const graph::MetaValue* const value = graph::find_metadata(graph, key);
    if (value == nullptr || graph::meta_type(*value) == type ||
        graph::meta_type(*value) == graph::MetaType::array)
      continue;
    wrong.push_back(fmt::format("'{}' is of type {}, not {}", safe_display(key, 60),
                                graph::meta_type_name(graph::meta_type(*value)),
                                graph::meta_type_name(type)));
  }
  if (wrong.empty()) return;
  graph.note(graph::Severity::warning, {}, "llama.cpp refuses the keys: {}{}", wrong.front(),
             wrong.size() == 1 ? "" : fmt::format(" and {} more", wrong.size() - 1));
}

const graph::MetaArray* find_array(const graph::MetaGraph& graph, std::string_view key) {
  const graph::MetaValue* const value = graph::find_metadata(graph, key);
  return value == nullptr ? nullptr : std::get_if<graph::MetaArray>(value);
}

// What llama.cpp of October 2026 (build 11549) knows: kinds of vocabularies, and for those that merge bytes
// the ways to cut texts, without which it takes "default".
constexpr std::string_view kKinds[] = {"none", "no_vocab",  "llama",  "bert", "gpt2",  "t5",
                                       "rwkv", "hybriddna", "gemma4", "test", "plamo2"};
constexpr std::string_view kMergingKinds[] = {"gpt2", "hybriddna"};
constexpr std::string_view kCuts[] = {"a.x-4.0",
                                      "afmoe",
                                      "bailingmoe",
                                      "bailingmoe2",
                                      "bloom",
                                      "chameleon",
                                      "chatglm-bpe",
                                      "codeshell",
                                      "cohere2moe",
                                      "command-r",
                                      "dbrx",
                                      "deepseek-coder",
                                      "deepseek-llm",
                                      "deepseek-r1-qwen",
                                      "deepseek-v3",
                                      "default",
                                      "exaone",
                                      "exaone-moe",
                                      "exaone4",
                                      "f2llmv2",
                                      "falcon",
                                      "falcon-h1",
                                      "falcon3",
                                      "gemma4",
                                      "gigachat",
                                      "glm4",
                                      "glm5",
                                      "gpt-2",
                                      "gpt-4o",
                                      "gpt3-finnish",
                                      "granite-docling",
                                      "granite-embed-multi-311m",
                                      "granite-embed-multi-97m",
                                      "grok-2",
                                      "hunyuan",
                                      "hunyuan-dense",
                                      "jais",
                                      "jais-2",
                                      "jina-de",
                                      "jina-es",
                                      "jina-v1-en",
                                      "jina-v2-code",
                                      "jina-v2-de",
                                      "jina-v2-es",
                                      "jina-v5-nano",
                                      "joyai-llm",
                                      "k2-horizon",
                                      "kanana2",
                                      "kimi-k2",
                                      "kormo",
                                      "laguna",
                                      "lfm2",
                                      "llada-moe",
                                      "llama-bpe",
                                      "llama-v3",
                                      "llama3",
                                      "llama4",
                                      "megrez",
                                      "mellum",
                                      "mellum2",
                                      "midm-2.0",
                                      "minerva-7b",
                                      "minicpm5",
                                      "minimax-m2",
                                      "mmbert",
                                      "modern-bert",
                                      "mpt",
                                      "olmo",
                                      "phi-2",
                                      "pixtral",
                                      "poro-chat",
                                      "qwen2",
                                      "qwen35",
                                      "refact",
                                      "roberta-bpe",
                                      "sarvam-moe",
                                      "seed-coder",
                                      "smaug-bpe",
                                      "smollm",
                                      "solar-open",
                                      "stablelm2",
                                      "starcoder",
                                      "superbpe",
                                      "talkie",
                                      "tekken",
                                      "tiny_aya",
                                      "trillion",
                                      "ufakzeka",
                                      "viking",
                                      "whitespace",
                                      "youtu"};

bool holds(std::span<const std::string_view> list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

void note_unknown_vocabulary(graph::MetaGraph& graph, const std::string& kind) {
  constexpr std::string_view kCut = "tokenizer.ggml.pre";
  const std::string* const cut = graph::find_text(graph, kCut);
  if (!holds(kKinds, kind))
    graph.note(graph::Severity::warning, {},
               "llama.cpp refuses the file: as of October 2026 it knows no vocabulary of kind '{}'",
               safe_display(kind, 40));
  else if (cut != nullptr && !cut->empty() && holds(kMergingKinds, kind) && !holds(kCuts, *cut))
    graph.note(graph::Severity::warning, {},
               "llama.cpp refuses the file: as of October 2026 it does not know '{}', which '{}' says",
               safe_display(*cut, 40), kCut);
}

// What kind of vocabulary there is, if only that there is none.
void note_kind_of_vocabulary(graph::MetaGraph& graph, bool has_tokens) {
  constexpr std::string_view kKind = "tokenizer.ggml.model";
  if (graph::find_metadata(graph, kKind) == nullptr) {
    graph.note(graph::Severity::warning, {}, "llama.cpp refuses a model without the key '{}'", kKind);
    return;
  }
  const std::string* const kind = graph::find_text(graph, kKind);
  if (kind == nullptr)
    graph.note(graph::Severity::warning, {}, "llama.cpp refuses '{}': it is no text", kKind);
  else if (!has_tokens && *kind != "none" && *kind != "no_vocab")
    graph.note(graph::Severity::warning, {},
               "llama.cpp refuses a vocabulary of kind '{}' without the key 'tokenizer.ggml.tokens'",
               safe_display(*kind, 40));
  else
    note_unknown_vocabulary(graph, *kind);
}

// llama.cpp takes the size of a vocabulary from its list of tokens.
void note_vocabulary(graph::MetaGraph& graph) {
  const graph::MetaArray* const tokens = find_array(graph, "tokenizer.ggml.tokens");
  const std::string* const architecture = graph::find_text(graph, "general.architecture");
  if (architecture == nullptr) return;
  if (graph::find_metadata(graph, *architecture + ".block_count") == nullptr) return;  // no model of its kind
  note_kind_of_vocabulary(graph, tokens != nullptr);
  if (tokens == nullptr) return;
  constexpr std::string_view kScores = "tokenizer.ggml.scores", kTypesOfTokens = "tokenizer.ggml.token_type";
  for (const std::string_view key : {kScores, kTypesOfTokens}) {
    const graph::MetaArray* const list = find_array(graph, key);
    const graph::MetaType type = key == kScores ? graph::MetaType::f32 : graph::MetaType::i32;
    if (list != nullptr && list->count < tokens->count)
      graph.note(graph::Severity::warning, {}, "llama.cpp refuses '{}': it has {} entries, the vocabulary {}",
                 key, list->count, tokens->count);
    else if (list != nullptr && list->element != type)
      graph.note(graph::Severity::warning, {}, "llama.cpp {} '{}': it holds {}, not {}",
                 key == kScores ? "misreads" : "refuses", key, graph::meta_type_name(list->element),
                 graph::meta_type_name(type));
  }
  const auto table = std::ranges::find(graph.tensors, std::string_view("token_embd.weight"),
                                       [](const graph::Tensor& tensor) { return tensor.name.view(); });
  if (table != graph.tensors.end() && table->shape.size() == 2 && table->shape.front() != tokens->count)
    graph.note(graph::Severity::warning, "token_embd.weight",
               "llama.cpp refuses that: it has {} rows, the vocabulary {} tokens", table->shape.front(),
               tokens->count);
}

}  // namespace

graph::MetaGraph read_gguf(const Source& source) {
  graph::MetaGraph graph = read_model(source);
  note_types(graph);
  note_vocabulary(graph);
  for (const std::string& name : source.set)
    if (const auto file = source.open_sibling(name)) add_beside(graph, *file, graph::gguf_role(name));
  return graph;
}

}  // namespace loadline::importers
