// Small checkpoints for tests, and the checks that every importer must pass.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::importers {
struct Source;
}

namespace loadline::testing {

// --- Small checkpoints for tests: byte-exact files, folders that clean up after themselves, random models.

// A folder under the system's temporary folder, removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void write_file(const std::string& path, std::string_view bytes);
std::string read_file(const std::string& path);
std::vector<std::byte> as_bytes(std::string_view text);

// u64 LE length, `header`, then `data` bytes of a repeating pattern.
std::string safetensors_bytes(std::string_view header, std::size_t data);
// The same with a length that need not be true.
std::string safetensors_bytes(std::uint64_t claimed, std::string_view header, std::size_t data);

// A header written entry by entry, each tensor after the one before.
class SafetensorsHeader {
 public:
  // `metadata` is the JSON of __metadata__, or empty.
  explicit SafetensorsHeader(std::string_view metadata = "");
  // `name` is JSON text without its quotes, `shape` the numbers with commas between.
  void add(std::string_view name, std::string_view dtype, std::string_view shape, std::uint64_t bytes);

  std::string text() const { return text_ + "}"; }
  std::size_t data_bytes() const { return static_cast<std::size_t>(data_bytes_); }

 private:
  std::string text_;
  std::uint64_t data_bytes_ = 0;
};

// Every dtype of the format, ranks 0 to 4, an empty tensor, odd names; about 4.5 kB.
std::string sample_safetensors();

// A source over memory without siblings, or with those given.
importers::Source memory_source(std::string name, std::string_view bytes,
                                std::vector<std::pair<std::string, std::string>> siblings = {});

// A single-file model on disk with `sizes` bytes per tensor ("t0", "t1", ... of dtype U8), random content.
graph::MetaGraphPtr byte_model(const TemporaryFolder& folder, const std::vector<std::uint64_t>& sizes,
                               std::uint64_t seed = 1);

// --- What the tests of importers share: errors as text, golden files, hostile tables, prefixes.

// A file, and what facts_of() is of reading it.
struct Hostile {
  const char* name;
  std::string bytes;
  std::string facts;
};

// Reads bytes as a file of that name, with the importer that its content asks for.
graph::MetaGraph import_bytes(std::string_view name, std::string_view bytes);
// The ids and figures of a sentence in their order: names in quotes, flags, and words that hold a digit, a
// dot or an underscore; of a path its last name. A list of what there is instead is left out.
std::string facts(std::string_view sentence);
// What the Error that a call gives says as data: its code, its file, and the facts of the rest; then the
// option that would help and its value: "usage >force=on". "" if the call gives none.
std::string facts_of(const std::function<void()>& call);
// The text of the Error that reading gives, or "" if it gives none. Any other exception fails.
std::string import_error(std::string_view name, std::string_view bytes);
// The same for any call.
std::string error_of(const std::function<void()>& call);

// LOADLINE_UPDATE_GOLDEN=1 rewrites the file.
void expect_golden(const std::string& name, const std::string& text);
void expect_hostile(std::string_view file, const std::vector<Hostile>& table);
// Every row gives the Error that it says; `read` takes the bytes.
void expect_errors(const std::vector<Hostile>& table, const std::function<void(std::string_view)>& read);
// Every prefix of `sample` gives an Error that names the file, but for the whole.
void expect_prefixes_refused(std::string_view file, std::string_view sample);
// Every byte of [0, end) changed in several ways gives a valid graph or an Error that names the file; some
// changes are refused and others are not. `read` takes the bytes.
void expect_flips_survived(std::string_view file, std::string_view sample, std::size_t end,
                           const std::function<void(std::string_view)>& read);
// The same for the importer that the content asks for.
void expect_flips_survived(std::string_view file, std::string_view sample, std::size_t end);

// A note of that severity whose facts() are these.
bool has_note(const graph::MetaGraph& graph, graph::Severity severity, std::string_view facts);
// Throws std::out_of_range.
const graph::Tensor& tensor_named(const graph::MetaGraph& graph, std::string_view name);

std::string repeat(std::string_view text, std::size_t times);

}  // namespace loadline::testing
