// Reads the index of a sharded model entry by entry. An entry says which shard holds a tensor.
#pragma once

#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace loadline {

// Reads the index anew for each scan() or parse() and keeps no entries: an index may be as large as all shard
// headers together.
class HfWeightMap {
 public:
  // The file must outlive this object. Throws Error{limit} naming a file that is too large.
  explicit HfWeightMap(const SourceFile& file);

  // Receives one tensor name and the name of its shard. The entries of one piece come in order; different
  // pieces come concurrently, on several threads. The texts are valid during the call only.
  using Take = std::function<void(std::size_t piece, std::string_view tensor, std::string_view shard)>;

  // The number of pieces that an index of this size is cut into.
  std::size_t pieces() const;
  // The fast path, for an index in the form of the usual writers. Returns false for any other index; the
  // entries passed to `take` so far then mean nothing. Passes on exceptions of `take`.
  bool scan(std::size_t threads, const Take& take);
  // Reads any index, in one piece. Throws Error{malformed | limit} naming the file.
  void parse(const Take& take);

  // metadata.total_size, and whether it is present but not a whole number. Known after scan() or parse().
  std::optional<std::uint64_t> total_size() const { return total_size_; }
  bool odd_total() const { return odd_total_; }

 private:
  // The "metadata" object beside the map.
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
