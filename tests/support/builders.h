// Small checkpoints for tests: byte-exact files, folders that clean up after themselves, random models.
#pragma once

#include "core/graph/meta_graph.h"
#include "importers/importer.h"

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::testing {

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
Source memory_source(std::string name, std::string_view bytes,
                     std::vector<std::pair<std::string, std::string>> siblings = {});

// A single-file model on disk with `sizes` bytes per tensor ("t0", "t1", ... of dtype U8), random content.
MetaGraphPtr byte_model(const TemporaryFolder& folder, const std::vector<std::uint64_t>& sizes,
                        std::uint64_t seed = 1);

}  // namespace loadline::testing
