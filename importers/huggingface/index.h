// The index of a sharded model: its entries, its shards, the check of one against the other.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/graph/name.h"
#include "core/io/source_file.h"
#include "importers/importer.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::importers {

// --- Reads the index of a sharded model entry by entry. An entry says which shard holds a tensor.

// Reads the index anew for each scan() or parse() and keeps no entries: an index may be as large as all shard
// headers together.
class HfWeightMap {
 public:
  // The file must outlive this object. Throws Error{limit} naming a file that is too large.
  explicit HfWeightMap(const io::SourceFile& file);

  // Receives one tensor name and the name of its shard. The entries of one piece come in order; different
  // pieces come concurrently, on several threads. The texts are valid during the call only.
  using Consume = std::function<void(std::size_t piece, std::string_view tensor, std::string_view shard)>;

  // The number of pieces that an index of this size is cut into.
  std::size_t pieces() const;
  // Reads the pieces in parallel, for an index with an entry a line, as the usual writers make it. Returns
  // false for any other index of several pieces; the entries passed to `take` so far then mean nothing.
  // Passes on exceptions of `take`.
  bool scan(std::size_t threads, const Consume& take);
  // Reads any index, in one piece. Throws Error{malformed | limit} naming the file.
  void parse(const Consume& take);

  // metadata.total_size, and whether it is present but not a whole number. Known after scan() or parse().
  std::optional<std::uint64_t> total_size() const { return metadata_.total; }
  bool odd_total() const { return metadata_.odd_total; }

  // The "metadata" object beside the map.
  struct Metadata {
    bool there = false;
    std::optional<std::uint64_t> total = {};
    bool odd_total = false;
  };

 private:
  std::optional<Metadata> scan_piece(std::size_t piece, const Consume& take) const;

  const io::SourceFile& file_;
  Metadata metadata_;
};

// --- Opens the shards of a sharded model in parallel.

// The result for one shard: a graph, an error, or neither if there is no such file.
struct OpenedShard {
  std::optional<graph::MetaGraph> graph = {};
  graph::NameIndex names = graph::NameIndex();  // the positions of its tensors
  std::exception_ptr error = {};
};

// Calls `take` once for each of `names`, in their order, as soon as that shard and all before it are open.
// Calls never overlap, but may come from different threads.
void open_shards(const Source& source, const std::vector<std::string>& names,
                 const std::function<void(OpenedShard shard)>& take);

// The number of threads worth starting for that many shards.
std::size_t threads_for_shards(std::size_t shards);

// The shard names that an index most likely lists, guessed from the first name in it
// ("model-00001-of-00163.safetensors"). Empty if that name has no such number.
std::vector<std::string> likely_shards(const io::SourceFile& index);

// --- Compares the tensors in a model's shards with the model's index.

// One shard of the joined model. Its tensors are consecutive in the joined graph.
struct JoinedShard {
  std::string name;
  graph::FileId file = graph::kNoFile;          // kNoFile: there is no such file
  std::size_t first_tensor = 0;                 // in the joined graph; ends at the next shard's first_tensor
  graph::NameIndex names = graph::NameIndex();  // positions counted from first_tensor
};

// Looks up each entry of the index among the tensors, in one pass on several threads. The result does not
// depend on the number of threads.
class HfIndexCheck {
 public:
  static constexpr std::uint32_t kNoShard = UINT32_MAX;

  // Tensors and shards must outlive this object.
  HfIndexCheck(std::span<const graph::Tensor> tensors, std::span<const JoinedShard> shards);

  // Throws Error{malformed | limit} naming `path` if the index cannot be read or contains a name twice.
  void run(HfWeightMap& index, const std::string& path);

  // The names of all shards that the index lists, in natural order: "9" before "10".
  std::vector<std::string> listed() const;
  // The shard in which the index places a tensor of the graph; kNoShard if it does not name the tensor.
  std::uint32_t planned(std::size_t tensor) const { return planned_[tensor].load(std::memory_order_relaxed); }

  // An entry of the index whose shard is missing or does not hold the tensor.
  struct Promise {
    std::string tensor;
    std::uint32_t shard = 0;
    bool held = false;  // another shard holds the tensor
  };
  // In the order of the index.
  std::vector<Promise> promises() const;

  // Two tensors with the same name: the first tensor that repeats an earlier name is the second of the pair.
  std::optional<std::pair<std::size_t, std::size_t>> repeated() const;

 private:
  // The state of one piece of the index. Aligned so that no two threads share a cache line.
  struct alignas(64) Piece {
    std::uint32_t shard = kNoShard;  // of the previous entry
    // A ring of the tensors found for the last few entries. `lag` says how many entries back the tensor is
    // that most likely precedes the next one in the file: a file groups tensors by type, an index seldom
    // does.
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

  std::span<const graph::Tensor> tensors_;
  std::span<const JoinedShard> shards_;
  graph::NameIndex shard_names_;
  mutable std::once_flag indexed_;
  mutable graph::NameIndex names_;
  mutable std::optional<std::pair<std::size_t, std::size_t>> repeated_;
  std::vector<std::atomic<std::uint32_t>> planned_;  // by tensor
  std::vector<std::atomic<bool>> listed_;            // by shard: whether the index names it
  std::vector<Piece> pieces_;
  std::atomic<bool> twice_ = false;
  bool alone_ = false;  // one thread, so that the Error names the first repeated name
};

}  // namespace loadline::importers
