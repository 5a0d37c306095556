// The index of a sharded model: its entries, its shards, the check of one against the other.
#pragma once

#include "core/base/tasks.h"
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
#include <map>
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
  std::exception_ptr error = {};
};

// Calls `take` once for each of `names`, in their order, as soon as that shard and all before it are open.
// Calls never overlap, but may come from different threads.
void open_shards(const Source& source, const std::vector<std::string>& names,
                 const std::function<void(OpenedShard shard)>& take);

// The number of threads worth starting for that many shards.
std::size_t threads_for_shards(std::size_t shards);

// The shard names that an index most likely lists, guessed from the first name in it. Empty if that name is
// no numbered shard's.
std::vector<std::string> likely_shards(const io::SourceFile& index);

// --- Compares the tensors in a model's shards with the model's index.

// One shard of the joined model. Its tensors are consecutive in the joined graph.
struct JoinedShard {
  std::string name;
  graph::FileId file = graph::kNoFile;  // kNoFile: there is no such file
  std::size_t first_tensor = 0;         // in the joined graph; ends at the next shard's first_tensor
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

  // Behind the last tensor of a shard.
  std::size_t end_of(std::uint32_t shard) const;

  // An entry of the index whose shard is missing or does not hold the tensor.
  struct Promise {
    std::string tensor;
    std::uint32_t shard = 0;
    bool held = false;  // another shard holds the tensor
  };
  // In the order of the index.
  std::vector<Promise> promises() const;

  // The tensors that do not count because the index puts their names in another shard, which holds them as
  // well: positions in ascending order. planned() is kNoShard for them afterwards, and for all others their
  // own shard. Throws Error{malformed} naming `path` for a name that occurs twice in the index, or naming a
  // shard if a name occurs twice, and not only once where the index says.
  std::vector<std::size_t> settle_copies(const std::string& path);

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
  std::uint32_t shard_of(std::size_t tensor) const;
  std::optional<std::uint32_t> find(Piece& piece, std::string_view name, std::uint32_t shard);
  std::optional<std::uint32_t> find_in(std::uint32_t shard, std::string_view name, std::uint32_t hash);

  std::span<const graph::Tensor> tensors_;
  std::span<const JoinedShard> shards_;
  graph::NameIndex shard_names_;
  // The tensors of one shard by name, indexed when the first is looked up by it: most are found by their
  // place.
  struct ShardTensors {
    Once indexed;
    graph::NameIndex names;
  };
  std::vector<ShardTensors> in_shard_;
  mutable Once indexed_;
  mutable graph::NameIndex names_;
  mutable std::map<std::uint32_t, std::vector<std::uint32_t>> repeated_;  // by the first tensor of a name
  std::vector<std::atomic<std::uint32_t>> planned_;                       // by tensor
  std::vector<std::atomic<bool>> listed_;  // by shard: whether the index names it
  std::vector<Piece> pieces_;
  std::atomic<bool> twice_ = false;
  bool alone_ = false;  // one thread, so that the Error names the first repeated name
};

// --- Weight files that no index lists.

// Numbered shards: "model-00001-of-00163.safetensors" is one of 163.
struct ShardNumbers {
  std::string_view stem;    // "model"
  std::string_view behind;  // "-of-00163.safetensors"
  std::size_t digits = 0;
  std::uint64_t count = 0;

  std::string name(std::uint64_t number) const;  // from 1 on
};
// Nothing for any other name. Points into the name.
std::optional<ShardNumbers> shard_numbers(std::string_view name);

// The names of the whole set of shards that a file belongs to, in order. Empty if it is no numbered shard,
// the only one of its set, or not all of the set are among `names`, those of the folder's files.
std::vector<std::string> complete_shards(std::string_view file, const std::vector<std::string>& names);

// Which of a folder's files are one model.
struct LooseShards {
  std::vector<std::string> names = {};  // in order; empty if the first candidate is opened by itself
  std::vector<graph::Note> notes = {};
};
// `candidates` are files of one rank (core/graph/names/file_names.h), the first is that which would be
// opened. A complete set of numbered shards is a model. Files with other names are one if none of their
// tensors is in two of them; files that hold the same tensors again are other versions of it. `open` is as
// Source::open_sibling.
LooseShards loose_shards(const std::function<std::shared_ptr<const io::SourceFile>(const std::string&)>& open,
                         const std::vector<std::string>& candidates);

// Reads the shards Source::set as one graph. Throws Error for a shard that is not there, and for a name in
// two of them.
graph::MetaGraph read_loose_shards(const Source& source);

// Those of a folder's files that an index of this name could list; none for any other file.
std::vector<std::string> shard_files(const std::vector<std::string>& names, std::string_view index);

// For a model that lacks tensors, because its index lists files that are not there: the note that names other
// files of the folder that hold all of them, and how to open them.
std::optional<graph::Note> replacements(const Source& source, const graph::MetaGraph& graph);

}  // namespace loadline::importers
