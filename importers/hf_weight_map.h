// The index of a sharded model, parsed: which shard holds which tensor.
#pragma once

#include "core/graph/name_index.h"
#include "core/io/source_file.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

class HfWeightMap {
 public:
  // Reads and parses the whole index. Throws Error{malformed | limit} naming the file.
  explicit HfWeightMap(const SourceFile& file);
  HfWeightMap(HfWeightMap&&) noexcept;
  ~HfWeightMap();

  struct Entry {
    std::string_view name;
    std::uint32_t hash = 0;   // name_hash
    std::uint32_t shard = 0;  // position in shards()
  };

  // Shard names in natural order: "9" before "10".
  const std::vector<std::string>& shards() const { return shards_; }
  // Tensor names and where they should be, in the order of the index.
  const std::vector<Entry>& entries() const { return entries_; }
  // The position of a name in entries(). Names mostly come in the order of the index, some left out: then
  // it lies just behind `last`, the position found before.
  std::optional<std::uint32_t> find(std::string_view name, std::uint32_t hash, std::uint32_t last) const {
    constexpr std::uint32_t kSteps = 2;
    for (std::uint32_t i = last + 1; i < entries_.size() && i <= last + kSteps; ++i)
      if (entries_[i].hash == hash && entries_[i].name == name) return i;
    return names_.find(name, hash, [this](std::uint32_t i) { return entries_[i].name; });
  }
  // metadata.total_size, and whether it is there but is no whole number.
  std::optional<std::uint64_t> total_size() const { return total_size_; }
  bool odd_total() const { return odd_total_; }

 private:
  struct Json;
  bool scan(std::string_view text);
  void parse(std::string_view text, const std::string& path);
  void add(std::string_view tensor, std::string_view shard);
  void sort_shards();
  void index_names(const std::string& path);

  std::unique_ptr<char[]> buffer_;
  std::unique_ptr<Json> json_;  // holds the texts where they had escapes
  std::vector<std::string> shards_;
  std::vector<Entry> entries_;
  NameIndex names_;
  NameIndex shard_names_;
  std::optional<std::uint64_t> total_size_;
  bool odd_total_ = false;
};

}  // namespace loadline
