// Builds checkpoints, models and plans.
#include "tests/support/builders.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/plan/dry_machine.h"
#include "core/plan/plan.h"
#include "core/plan/reserved_memory.h"
#include "importers/importer.h"
#include "importers/resolve.h"
#include "tests/support/plan_models.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace loadline::testing {

// --- Builders for tests.

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "loadline-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::string& path, std::string_view bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error("cannot write " + path);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::byte> as_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string safetensors_bytes(std::uint64_t claimed, std::string_view header, std::size_t data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((claimed >> (8 * i)) & 0xFF);
  bytes += header;
  for (std::size_t i = 0; i < data; ++i) bytes += static_cast<char>(i * 7 + 3);
  return bytes;
}

std::string safetensors_bytes(std::string_view header, std::size_t data) {
  return safetensors_bytes(header.size(), header, data);
}

SafetensorsHeader::SafetensorsHeader(std::string_view metadata)
    : text_(metadata.empty() ? "{" : fmt::format(R"({{"__metadata__":{})", metadata)) {}

void SafetensorsHeader::add(std::string_view name, std::string_view dtype, std::string_view shape,
                            std::uint64_t bytes) {
  text_ += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                       text_.size() == 1 ? "" : ",", name, dtype, shape, data_bytes_, data_bytes_ + bytes);
  data_bytes_ += bytes;
}

std::string sample_safetensors() {
  SafetensorsHeader header(R"({"format":"pt","note":"gr\u00fc\u00df"})");
  header.add("scalar", "F64", "", 8);
  header.add("matrix.weight", "F32", "16,16", 1024);
  header.add("four.d", "BF16", "2,3,4,5", 240);
  header.add("empty", "F32", "0,7", 0);
  header.add("model.layers.10.mlp.up_proj.weight", "F16", "8,32", 512);
  header.add("model.layers.2.mlp.up_proj.weight", "F16", "8,32", 512);
  header.add("esc\\u0007\\\"aped", "U8", "3", 3);
  for (const graph::DTypeInfo& info : graph::dtype_table())
    if (!info.safetensors.empty())
      header.add(fmt::format("each.{}", info.name), info.safetensors, fmt::format("{}", info.block_elements),
                 info.block_bytes);
  std::string text = header.text();
  text.append((8 - (text.size() % 8)) % 8, ' ');
  return safetensors_bytes(text, header.data_bytes());
}

importers::Source memory_source(std::string name, std::string_view bytes,
                                std::vector<std::pair<std::string, std::string>> siblings) {
  importers::Source source;
  source.file =
      std::make_shared<const io::SourceFile>(io::SourceFile::from_memory(std::move(name), as_bytes(bytes)));
  source.open_sibling =
      [siblings = std::move(siblings)](const std::string& wanted) -> std::shared_ptr<const io::SourceFile> {
    for (const auto& [key, content] : siblings)
      if (key == wanted)
        return std::make_shared<const io::SourceFile>(io::SourceFile::from_memory(key, as_bytes(content)));
    return nullptr;
  };
  return source;
}

graph::MetaGraphPtr byte_model(const TemporaryFolder& folder, const std::vector<std::uint64_t>& sizes,
                               std::uint64_t seed) {
  SafetensorsHeader header;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    header.add(fmt::format("t{}", i), "U8", fmt::format("{}", sizes[i]), sizes[i]);
  std::string bytes = safetensors_bytes(header.text(), 0);
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < header.data_bytes(); ++i) bytes += static_cast<char>(random() & 0xFF);
  const std::string path = folder / "bytes.safetensors";
  write_file(path, bytes);
  return std::make_shared<const graph::MetaGraph>(importers::open_model(path, {}));
}

// --- Checks that every importer's test makes.

graph::MetaGraph import_bytes(std::string_view name, std::string_view bytes) {
  return importers::import_source(memory_source(std::string(name), bytes));
}

namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_./,^+-%").find(c) != std::string_view::npos;
}

std::string_view last_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Where the name in quotes that begins at `at` ends; 0 if none begins there.
std::size_t quoted_end(std::string_view text, std::size_t at) {
  const auto letter = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  if (text[at] != '\'' || (at > 0 && letter(at - 1))) return 0;
  std::size_t end = text.find('\'', at + 1);
  while (end != std::string_view::npos && letter(end + 1)) end = text.find('\'', end + 1);
  return end == std::string_view::npos ? 0 : end + 1;
}

}  // namespace

std::string facts(std::string_view sentence) {
  for (const std::string_view list : {"; there are", "with one of", "none of"})
    sentence = sentence.substr(0, sentence.find(list));
  std::string found;
  for (std::size_t at = 0; at < sentence.size();) {
    if (const std::size_t end = quoted_end(sentence, at); end > 0) {
      found += fmt::format(" '{}'", last_name(sentence.substr(at + 1, end - at - 2)));
      at = end;
      continue;
    }
    std::size_t end = at;
    while (end < sentence.size() && is_word(sentence[end])) ++end;
    std::string_view word = sentence.substr(at, end - at);
    while (!word.empty() && std::string_view("./,+-").find(word.back()) != std::string_view::npos)
      word.remove_suffix(1);
    word = last_name(word);
    if (word.find_first_of("0123456789._") != std::string_view::npos || word.starts_with("--"))
      found += fmt::format(" {}", word);
    at = std::max(end, at + 1);
  }
  return found.substr(found.empty() ? 0 : 1);
}

std::string facts_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    std::string_view said = error.what();
    std::string text(error_code_name(error.code()));
    if (const std::string file = safe_display(error.place().file); !file.empty()) {
      text += fmt::format(" {}", last_name(file));
      if (said.starts_with(file)) said.remove_prefix(file.size());  // a long one is cut in messages
    }
    if (const std::string rest = facts(said); !rest.empty()) text += " " + rest;
    if (error.remedy()) text += fmt::format(" >{}={}", error.remedy()->option, error.remedy()->value);
    return text;
  }
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string import_error(std::string_view name, std::string_view bytes) {
  return error_of([&] { import_bytes(name, bytes); });
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(LOADLINE_GOLDEN) + "/" + name;
  if (std::getenv("LOADLINE_UPDATE_GOLDEN") != nullptr) write_file(path, text);
  EXPECT_EQ(text, read_file(path)) << "LOADLINE_UPDATE_GOLDEN=1 rewrites it";
}

void expect_errors(const std::vector<Hostile>& table, const std::function<void(std::string_view)>& read) {
  for (const Hostile& row : table) {
    EXPECT_NE(row.facts, "") << row.name;
    EXPECT_EQ(facts_of([&] { read(row.bytes); }), row.facts) << row.name;
  }
}

void expect_hostile(std::string_view file, const std::vector<Hostile>& table) {
  expect_errors(table, [&](std::string_view bytes) { import_bytes(file, bytes); });
}

void expect_prefixes_refused(std::string_view file, std::string_view sample) {
  for (std::size_t length = 0; length < sample.size(); ++length) {
    const std::string error = import_error(file, sample.substr(0, length));
    ASSERT_NE(error, "") << "length " << length;
    ASSERT_EQ(error.rfind(file, 0), 0u) << error;
  }
  EXPECT_EQ(import_error(file, sample), "");
}

void expect_flips_survived(std::string_view file, std::string_view sample, std::size_t end,
                           const std::function<void(std::string_view)>& read) {
  int refused = 0, opened = 0;
  for (std::size_t at = 0; at < end; ++at)
    for (const int flip : {0x01, 0x08, 0x10, 0x80, 0xFF}) {
      std::string bytes(sample);
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      const std::string error = error_of([&] { read(bytes); });
      ++(error.empty() ? opened : refused);
      ASSERT_TRUE(error.empty() || error.rfind(file, 0) == 0) << "byte " << at << ": " << error;
    }
  EXPECT_GT(refused, 0);
  EXPECT_GT(opened, 0);
}

void expect_flips_survived(std::string_view file, std::string_view sample, std::size_t end) {
  // import_source() ends with validate()
  expect_flips_survived(file, sample, end, [&](std::string_view bytes) { import_bytes(file, bytes); });
}

bool has_note(const graph::MetaGraph& graph, graph::Severity severity, std::string_view facts) {
  return std::any_of(graph.notes.begin(), graph.notes.end(), [&](const graph::Note& note) {
    return note.severity == severity && testing::facts(note.text) == facts;
  });
}

const graph::Tensor& tensor_named(const graph::MetaGraph& graph, std::string_view name) {
  for (const graph::Tensor& tensor : graph.tensors)
    if (tensor.name == name) return tensor;
  throw std::out_of_range(std::string(name));
}

std::string repeat(std::string_view text, std::size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

// --- Generates random plans.

namespace {

class Generator {
 public:
  Generator(const graph::MetaGraph& graph, std::uint64_t seed) : graph_(graph), random_(seed) {}

  plan::Plan make(std::size_t steps) {
    while (plan_.steps.size() < steps) {
      const std::uint64_t dice = below(10);
      if (alive_.size() < 2 || dice < 3)
        add_block();
      else if (dice == 9)
        drop_block();
      else
        add_copy();
    }
    return std::move(plan_);
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  void add_block() {
    const auto space = static_cast<plan::Space>(below(plan::kSpaceCount));
    const graph::StorageId storage{static_cast<std::uint32_t>(below(graph_.storages.size()))};
    const std::uint64_t whole = graph_.storage(storage).bytes;
    const std::uint64_t bytes = space == plan::Space::page_cache ? whole
                                : below(3) == 0                  ? whole
                                                                 : 1 + below(20'000);
    alive_.push_back(plan::alloc(
        plan_, {.bytes = bytes, .space = space, .use = plan::BlockUse::storage, .storage = storage}));
  }

  void drop_block() {
    const std::size_t at = below(alive_.size());
    plan::free(plan_, alive_[at]);
    alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void add_copy() {
    const plan::BlockId to = alive_[below(alive_.size())], from = alive_[below(alive_.size())];
    const plan::Block& target = plan_.block(to);
    if (target.space == plan::Space::page_cache || below(2) == 0) return read_storage(to, target);
    if (from == to) return;
    const std::uint64_t have = plan_.block(from).bytes;
    const std::uint64_t offset = below(target.bytes + 1), from_offset = below(have + 1);
    const std::uint64_t bytes = below(std::min(target.bytes - offset, have - from_offset) + 1);
    if (below(4) == 0) return add_cast(to, offset, from, from_offset, bytes);
    plan::copy(plan_, to, offset, from, from_offset, bytes);
  }

  // As many whole numbers as fit where a plain copy of `bytes` would.
  void add_cast(plan::BlockId to, std::uint64_t offset, plan::CopySource from, std::uint64_t from_offset,
                std::uint64_t bytes) {
    constexpr plan::Cast kCasts[] = {{graph::DType::bf16, graph::DType::f32},
                                     {graph::DType::f32, graph::DType::bf16},
                                     {graph::DType::f16, graph::DType::f32}};
    const plan::Cast cast = kCasts[below(3)];
    const std::uint64_t wide = *graph::byte_size(cast.from, 1), narrow = *graph::byte_size(cast.to, 1);
    const std::uint64_t lead = (wide - from_offset % wide) % wide;
    const std::uint64_t elements = bytes < lead ? 0 : (bytes - lead) / std::max(wide, narrow);
    if (elements > 0) plan::copy(plan_, to, offset, from, from_offset + lead, elements * wide, cast);
  }

  void read_storage(plan::BlockId to, const plan::Block& target) {
    const bool mapped = target.space == plan::Space::page_cache;
    const graph::StorageId storage =
        mapped ? *target.storage
               : graph::StorageId{static_cast<std::uint32_t>(below(graph_.storages.size()))};
    const std::uint64_t have = graph_.storage(storage).bytes;
    const std::uint64_t from_offset = below(have + 1);
    const std::uint64_t offset = mapped ? from_offset : below(target.bytes + 1);
    const std::uint64_t bytes = below(std::min(target.bytes - offset, have - from_offset) + 1);
    if (!mapped && below(4) == 0) return add_cast(to, offset, storage, from_offset, bytes);
    plan::copy(plan_, to, offset, storage, from_offset, bytes);
  }

  const graph::MetaGraph& graph_;
  std::mt19937_64 random_;
  plan::Plan plan_;
  std::vector<plan::BlockId> alive_;
};

}  // namespace

plan::Plan random_plan(const graph::MetaGraph& graph, std::uint64_t seed, std::size_t steps) {
  return Generator(graph, seed).make(steps);
}

// --- Models as plain values.

graph::MetaGraph graph_of(const std::vector<std::uint64_t>& sizes) {
  graph::MetaGraph graph;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    graph.storages.push_back(graph::shapes_only_storage(sizes[i]));
    graph.tensors.push_back({"t" + std::to_string(i),
                             graph::DType::u8,
                             {sizes[i]},
                             {},
                             graph::StorageId{static_cast<std::uint32_t>(i)},
                             0});
  }
  return graph;
}

graph::MetaGraph model_of(const std::vector<Weight>& weights, graph::DType dtype) {
  graph::MetaGraph graph;
  graph.files.push_back({"model.safetensors", 0});
  std::uint64_t offset = 0;
  for (const Weight& weight : weights) {
    const graph::StorageId id{static_cast<std::uint32_t>(graph.storages.size())};
    const std::uint64_t bytes = *graph::byte_size(dtype, weight.rows * 32);
    graph.storages.push_back(graph::plain_storage(graph::FileId{0}, offset, bytes));
    graph.tensors.push_back({graph::Name(weight.name), dtype, {weight.rows, 32}, {}, id, 0});
    offset += bytes;
  }
  graph.files[0].bytes = offset;
  return graph;
}

void tie(graph::MetaGraph& graph, const std::string& name, std::uint32_t storage) {
  graph::Tensor twin = graph.tensors[storage];
  twin.name = graph::Name(name);
  graph.tensors.push_back(twin);
}

// --- From configurations to buffers.

namespace {

// Of all-mpnet-base-v2.
constexpr std::string_view kMpnet = R"({"architectures":["MPNetModel"],"model_type":"mpnet","hidden_size":768,
  "num_hidden_layers":12,"num_attention_heads":12,"intermediate_size":3072,"vocab_size":30527,
  "max_position_embeddings":514,"relative_attention_num_buckets":32,"torch_dtype":"float32"})";

}  // namespace

std::vector<DescribedModel> described_models() {
  std::vector<DescribedModel> models;
  for (const forward::Preset& preset : forward::presets()) {
    const std::string name(preset.id);
    models.push_back({name, forward::config_graph(preset.config_json, name)});
  }
  models.push_back({"all-mpnet-base-v2", forward::config_graph(kMpnet, "all-mpnet-base-v2")});
  return models;
}

packing::Problem pass_problem(const forward::ForwardModel& model, std::uint64_t batch,
                              std::uint64_t sequence) {
  plan::Plan plan;
  plan::append_forward_pass(plan, {&*model.graph, graph::symbol_values(*model.graph, batch, sequence, 0)});
  plan::DryMachine machine;
  const plan::Timeline timeline = plan::run(plan, machine);
  return plan::space_problem(plan, timeline, plan::Space::device).problem;
}

}  // namespace loadline::testing
