// The tensors that the shards of a model hold, against what its index says.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/graph/name_index.h"
#include "importers/huggingface/weight_map.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

// One shard of the joined model.
struct JoinedShard {
  std::string name;
  FileId file = kNoFile;          // kNoFile: there is no such file
  std::size_t first_tensor = 0;   // in the joined graph; up to the first of the next
  NameIndex names = NameIndex();  // positions counted from first_tensor
};

// Goes through the index once and looks up each of its entries among the tensors. Several threads take part;
// what is found does not depend on them.
class HfIndexCheck {
 public:
  static constexpr std::uint32_t kNoShard = UINT32_MAX;

  // Both must outlive this. The index is read again after an Error only.
  HfIndexCheck(std::span<const Tensor> tensors, std::span<const JoinedShard> shards);

  // Throws Error{malformed | limit} naming `path`: an index that cannot be read, or a name twice in it.
  void run(HfWeightMap& index, const std::string& path);

  // The names of all shards that the index lists, in natural order: "9" before "10".
  std::vector<std::string> listed() const;
  // Where the index puts a tensor of the graph; kNoShard if it does not name it.
  std::uint32_t planned(std::size_t tensor) const { return planned_[tensor].load(std::memory_order_relaxed); }

  // An entry of the index whose shard is not there, or whose tensor no shard holds.
  struct Promise {
    std::string tensor;
    std::uint32_t shard = 0;
    bool held = false;  // by another shard
  };
  // In the order of the index.
  std::vector<Promise> promises() const;

  // Two tensors of the same name, the first of which comes first; the second is the first such.
  std::optional<std::pair<std::size_t, std::size_t>> repeated() const;

 private:
  // Not shared between threads, nor are the cache lines that it lies in.
  struct alignas(64) Piece {
    std::uint32_t shard = kNoShard;  // of the entry before
    // Where the last few entries were found, in a ring, and how far back lies the one that this entry's
    // tensor most likely follows: a file groups its tensors by type, an index seldom does.
    std::array<std::uint32_t, 4> found = {};
    std::uint32_t count = 0;
    std::uint32_t lag = 1;
    std::vector<Promise> promises;
    std::vector<std::string> strangers;  // shards that are not among those opened
  };

  void reset(std::size_t pieces);
  void take(Piece& piece, std::string_view tensor, std::string_view shard);
  std::uint32_t shard_number(Piece& piece, std::string_view name);
  void index_names() const;
  std::optional<std::uint32_t> find(Piece& piece, std::string_view name, const JoinedShard& shard) const;

  std::span<const Tensor> tensors_;
  std::span<const JoinedShard> shards_;
  NameIndex shard_names_;
  mutable std::once_flag indexed_;
  mutable NameIndex names_;
  mutable std::optional<std::pair<std::size_t, std::size_t>> repeated_;
  std::vector<std::atomic<std::uint32_t>> planned_;  // by tensor
  std::vector<std::atomic<bool>> listed_;            // by shard
  std::vector<Piece> pieces_;
  std::atomic<bool> twice_ = false;
  bool alone_ = false;  // one thread: the first name that occurs twice is the one to tell
};

}  // namespace loadline
