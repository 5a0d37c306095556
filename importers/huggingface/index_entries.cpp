// Reads the index entry by entry and looks each entry up among the tensors.

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "importers/huggingface/index.h"
#include "importers/wire/plain_json.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>

#include <simdjson.h>

namespace loadline::importers {

// --- Hugging Face shard index (huggingface_hub serialization/_base.py), NAME.index.json:
//
//   {"metadata": {"total_size": BYTES, ...}, "weight_map": {"tensor name": "shard file name", ...}}

namespace {

constexpr std::uint64_t kMostIndex = 256'000'000;
constexpr std::size_t kMostDepth = 64;
// With an entry more, below the size from which the allocator takes fresh pages from the system each time.
constexpr std::uint64_t kPiece = 112 << 10;
// An entry must end within this many bytes after a piece's nominal end.
constexpr std::uint64_t kMostEntry = 8 << 10;

bool scan_metadata(PlainJson& json, std::optional<std::uint64_t>& total) {
  std::string_view name, value;
  if (!json.take('{')) return false;
  do {
    std::uint64_t number = 0;
    if (!json.string(name) || !json.take(':')) return false;
    if (name != "total_size" ? !json.number(number) && !json.string(value) : total || !json.number(number))
      return false;
    if (name == "total_size") total = number;
  } while (json.take(','));
  return json.take('}');
}

// The position after the first comma that ends a line, from `from` on. No string of a plain index contains a
// line break, so such a comma always stands between two entries, or between the fields around the map, where
// the scan of the piece then fails.
std::size_t behind_entry(std::string_view text, std::size_t from) {
  const std::size_t end = text.find(",\n", from - 1);
  return end == std::string_view::npos ? end : end + 2;
}

}  // namespace

HfWeightMap::HfWeightMap(const io::SourceFile& file) : file_(file) {
  if (file.size() > kMostIndex)
    throw Error(ErrorCode::limit, {.file = file.path()}, "an index of {} bytes, the limit is {}", file.size(),
                kMostIndex);
}

// The last piece is up to twice as large, so that a part of the map always reaches into it.
std::size_t HfWeightMap::pieces() const {
  return std::max<std::size_t>(1, static_cast<std::size_t>(file_.size() / kPiece));
}

bool HfWeightMap::scan(std::size_t threads, const Take& take) {
  std::atomic<bool> plain = true;
  Metadata before, behind;
  ParallelLoop(pieces(), threads, [&](std::size_t piece) {
    if (plain && !scan_piece(piece, take, before, behind)) plain = false;
  }).finish();
  odd_total_ = false;
  total_size_ = before.there ? before.total : behind.total;
  return plain && !(before.there && behind.there);
}

// The text of a piece runs from the first entry after its nominal begin to the first entry after its nominal
// end. The first piece includes the text before the map, the last piece the text after it.
bool HfWeightMap::scan_piece(std::size_t piece, const Take& take, Metadata& before, Metadata& behind) const {
  const bool first = piece == 0, last = piece + 1 == pieces();
  const std::uint64_t nominal = piece * kPiece, next = nominal + kPiece;
  const std::uint64_t begin = first ? 0 : nominal - 1;  // a comma may stand just before
  const std::uint64_t end = last ? file_.size() : std::min(next + kMostEntry, file_.size());
  const auto bytes = static_cast<std::size_t>(end - begin);
  const std::unique_ptr<char[]> buffer(new char[bytes]);
  file_.read_at(begin, std::as_writable_bytes(std::span(buffer.get(), bytes)));
  const std::string_view text(buffer.get(), bytes);
  const std::size_t from = first ? 0 : behind_entry(text, 1);
  const std::size_t to = last ? bytes : behind_entry(text, static_cast<std::size_t>(next - begin));
  if (from == std::string_view::npos || to == std::string_view::npos) return false;
  PlainJson json(text.substr(from, to - from));

  std::string_view tensor, shard;
  if (first) {
    if (!json.take('{') || !json.string(tensor) || !json.take(':')) return false;
    before.there = tensor == "metadata";
    if (before.there &&
        (!scan_metadata(json, before.total) || !json.take(',') || !json.string(tensor) || !json.take(':')))
      return false;
    if (tensor != "weight_map" || !json.take('{')) return false;
  }
  while (true) {
    if (!json.string(tensor) || !json.take(':') || !json.string(shard)) return false;
    take(piece, tensor, shard);
    if (!json.take(',')) break;
    if (!last && json.at_end()) return true;
  }
  if (!last || !json.take('}')) return false;
  if (json.take(',')) {  // some writers put "metadata" after the map
    behind.there = json.string(tensor) && tensor == "metadata" && json.take(':');
    if (!behind.there || !scan_metadata(json, behind.total)) return false;
  }
  return json.take('}') && json.at_end();
}

void HfWeightMap::parse(const Take& take) {
  const ErrorPlace place{.file = file_.path()};
  total_size_.reset();
  odd_total_ = false;
  const auto bytes = static_cast<std::size_t>(file_.size());
  const std::unique_ptr<char[]> buffer(new char[bytes + simdjson::SIMDJSON_PADDING]);
  file_.read_at(0, std::as_writable_bytes(std::span(buffer.get(), bytes)));
  std::fill_n(buffer.get() + bytes, simdjson::SIMDJSON_PADDING, ' ');
  simdjson::dom::parser parser;
  simdjson::dom::object root, map;
  if (parser.allocate(bytes, kMostDepth) != simdjson::SUCCESS)
    throw Error(ErrorCode::limit, {.file = file_.path()}, "no memory to parse the index");
  constexpr bool kCopyIfNeeded = false;
  if (const auto error = parser.parse(buffer.get(), bytes, kCopyIfNeeded).get(root);
      error != simdjson::SUCCESS)
    throw Error(ErrorCode::malformed, place, "not a JSON object: {}", simdjson::error_message(error));
  std::size_t maps = 0;
  for (const auto& field : root) maps += field.key == "weight_map" ? 1 : 0;
  if (maps > 1) throw Error(ErrorCode::malformed, place, "weight_map occurs twice");
  if (root["weight_map"].get(map) != simdjson::SUCCESS)
    throw Error(ErrorCode::malformed, place, "weight_map is missing or not an object");
  for (const auto& [tensor, value] : map) {
    std::string_view shard;
    if (value.get(shard) != simdjson::SUCCESS)
      throw Error(ErrorCode::malformed, place, "weight_map: the shard of '{}' is not a string",
                  safe_display(tensor, 100));
    take(0, tensor, shard);
  }
  if (simdjson::dom::element total; root["metadata"]["total_size"].get(total) == simdjson::SUCCESS) {
    std::uint64_t number = 0;
    if (total.get(number) == simdjson::SUCCESS)
      total_size_ = number;
    else
      odd_total_ = true;
  }
}

// --- Looks up the entries of an index among the tensors, first at the place where each most likely is.

HfIndexCheck::HfIndexCheck(std::span<const graph::Tensor> tensors, std::span<const JoinedShard> shards)
    : tensors_(tensors),
      shards_(shards),
      shard_names_(shards.size()),
      planned_(tensors.size()),
      listed_(shards.size()) {
  for (std::uint32_t i = 0; i < shards_.size(); ++i)
    shard_names_.add(shards_[i].name, graph::name_hash(shards_[i].name), i,
                     [this](std::uint32_t at) -> std::string_view { return shards_[at].name; });
}

void HfIndexCheck::reset(std::size_t pieces) {
  for (auto& planned : planned_) planned.store(kNoShard, std::memory_order_relaxed);
  for (auto& listed : listed_) listed.store(false, std::memory_order_relaxed);
  pieces_ = std::vector<Piece>(pieces);
  twice_ = false;
}

void HfIndexCheck::run(HfWeightMap& index, const std::string& path) {
  const HfWeightMap::Take take = [&](std::size_t piece, std::string_view tensor, std::string_view shard) {
    this->take(pieces_[piece], tensor, shard);
    if (twice_.load(std::memory_order_relaxed) && alone_)
      throw Error(ErrorCode::malformed, {.file = path, .tensor = std::string(tensor)},
                  "the name occurs twice in weight_map");
  };
  alone_ = false;
  reset(index.pieces());
  bool plain = index.scan(threads_for_shards(shards_.size()), take);
  if (plain && !twice_) return;
  alone_ = true;
  reset(index.pieces());
  if (plain) plain = index.scan(1, take);
  if (plain) return;
  reset(index.pieces());
  index.parse(take);
}

void HfIndexCheck::take(Piece& piece, std::string_view tensor, std::string_view shard) {
  const std::uint32_t number = shard_number(piece, shard);
  if (number == kNoShard) return;
  const auto at = find(piece, tensor, shards_[number]);
  if (at) {
    piece.found[piece.count++ % piece.found.size()] = *at;
    if (planned_[*at].exchange(number, std::memory_order_relaxed) != kNoShard) twice_ = true;
  }
  if (!at || shards_[number].file == graph::kNoFile)
    piece.promises.push_back({std::string(tensor), number, at.has_value()});
}

// Tries the shard of the previous entry first: neighbors mostly lie in one shard.
std::uint32_t HfIndexCheck::shard_number(Piece& piece, std::string_view name) {
  if (piece.shard != kNoShard && shards_[piece.shard].name == name) return piece.shard;
  const auto known =
      shard_names_.find(name, graph::name_hash(name),
                        [this](std::uint32_t at) -> std::string_view { return shards_[at].name; });
  if (known) {
    piece.shard = *known;
    listed_[*known].store(true, std::memory_order_relaxed);
    return *known;
  }
  if (piece.strangers.empty() || piece.strangers.back() != name) piece.strangers.emplace_back(name);
  return kNoShard;
}

std::optional<std::uint32_t> HfIndexCheck::find(Piece& piece, std::string_view name,
                                                const JoinedShard& shard) const {
  const auto size = static_cast<std::uint32_t>(piece.found.size());
  const auto follows = [&](std::uint32_t lag) -> std::optional<std::uint32_t> {
    if (lag > piece.count) return std::nullopt;
    const std::uint32_t next = piece.found[(piece.count - lag) % size] + 1;
    if (next >= tensors_.size() || tensors_[next].name != name) return std::nullopt;
    piece.lag = lag;
    return next;
  };
  if (const auto at = follows(piece.lag)) return at;
  for (std::uint32_t lag = 1; lag <= size; ++lag)
    if (const auto at = follows(lag)) return at;
  const std::uint32_t hash = graph::name_hash(name);
  const auto here = shard.names.find(
      name, hash, [&](std::uint32_t i) { return tensors_[shard.first_tensor + i].name.view(); });
  if (here) return static_cast<std::uint32_t>(shard.first_tensor + *here);
  index_names();
  return names_.find(name, hash, [this](std::uint32_t i) { return tensors_[i].name.view(); });
}

void HfIndexCheck::index_names() const {
  std::call_once(indexed_, [this] {
    names_ = graph::NameIndex(tensors_.size());
    for (std::uint32_t i = 0; i < tensors_.size(); ++i) {
      const auto before = names_.add(tensors_[i].name, tensors_[i].name.hash(), i,
                                     [this](std::uint32_t at) { return tensors_[at].name.view(); });
      if (before && !repeated_) repeated_ = {*before, i};
    }
  });
}

std::optional<std::pair<std::size_t, std::size_t>> HfIndexCheck::repeated() const {
  index_names();
  return repeated_;
}

std::vector<std::string> HfIndexCheck::listed() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < shards_.size(); ++i)
    if (listed_[i]) names.push_back(shards_[i].name);
  for (const Piece& piece : pieces_)
    names.insert(names.end(), piece.strangers.begin(), piece.strangers.end());
  std::ranges::sort(names, natural_less);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<HfIndexCheck::Promise> HfIndexCheck::promises() const {
  std::vector<Promise> all;
  for (const Piece& piece : pieces_) all.insert(all.end(), piece.promises.begin(), piece.promises.end());
  return all;
}

}  // namespace loadline::importers
