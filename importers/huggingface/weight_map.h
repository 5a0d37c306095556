// The index of a sharded model, entry by entry: which shard should hold which tensor.
#pragma once

#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace loadline {

// Reads an index as often as asked and keeps nothing of it: it may be as large as all the headers together.
class HfWeightMap {
 public:
  // The file must outlive this. Throws Error{limit} naming it.
  explicit HfWeightMap(const SourceFile& file);

  // One tensor and the name of its shard. The entries of a piece come in their order; different pieces come
  // at the same time, on several threads. The texts are gone when the call returns.
  using Take = std::function<void(std::size_t piece, std::string_view tensor, std::string_view shard)>;

  // How many pieces an index of this size is cut into.
  std::size_t pieces() const;
  // The fast path, for an index as the usual writers give it: false for any other, and then what was taken
  // means nothing. Passes on what `take` throws.
  bool scan(std::size_t threads, const Take& take);
  // Any index, in one piece. Throws Error{malformed | limit} naming the file.
  void parse(const Take& take);

  // metadata.total_size, and whether it is there but is no whole number; known after scan or parse.
  std::optional<std::uint64_t> total_size() const { return total_size_; }
  bool odd_total() const { return odd_total_; }

 private:
  // What the map's object says beside the map.
  struct Metadata {
    bool there = false;
    std::optional<std::uint64_t> total = {};
  };
  bool scan_piece(std::size_t piece, const Take& take, Metadata& before, Metadata& behind) const;

  const SourceFile& file_;
  std::optional<std::uint64_t> total_size_;
  bool odd_total_ = false;
};

}  // namespace loadline
