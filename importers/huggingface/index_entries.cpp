// Reads the index entry by entry and looks each entry up among the tensors.

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "importers/huggingface/index.h"
#include "importers/huggingface/plain_json.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <utility>

#include <fmt/core.h>
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

namespace dom = simdjson::dom;

// What the text of an index, or of a piece of one that has been made whole, says.
class IndexText {
 public:
  // `text` has simdjson::SIMDJSON_PADDING bytes more behind its end. The parser must outlive this object.
  IndexText(dom::parser& parser, std::string_view text, const std::string& path) {
    if (parser.allocate(text.size(), kMostDepth) != simdjson::SUCCESS)
      throw Error(ErrorCode::limit, {.file = path}, "no memory to parse the index");
    constexpr bool kCopyIfNeeded = false;
    const auto error = parser.parse(text.data(), text.size(), kCopyIfNeeded).get(root_);
    if (error != simdjson::SUCCESS)
      fault_ = fmt::format("not a JSON object: {}", simdjson::error_message(error));
    else if (maps() > 1)
      fault_ = "weight_map occurs twice";
    else if (root_["weight_map"].get(map_) != simdjson::SUCCESS)
      fault_ = "weight_map is missing or not an object";
  }

  // Calls each(tensor, shard) for the entries. The first fault of the text ends it.
  template <typename Each>
  void read(Each each) {
    if (!fault_.empty()) return;
    for (const auto& [tensor, value] : map_) {
      std::string_view shard;
      if (value.get(shard) != simdjson::SUCCESS) {
        fault_ = fmt::format("weight_map: the shard of '{}' is not a string", safe_display(tensor, 100));
        return;
      }
      each(tensor, shard);
    }
  }
  const std::string& fault() const { return fault_; }  // empty if there is none

  // For texts without a fault.
  bool is_empty() const { return map_.size() == 0; }
  bool begins_with_map() const { return (*root_.begin()).key == "weight_map"; }
  bool ends_with_map() const {
    std::string_view last;
    for (const auto& field : root_) last = field.key;
    return last == "weight_map";
  }
  HfWeightMap::Metadata metadata() const {
    HfWeightMap::Metadata metadata;
    dom::element total;
    metadata.there = root_["metadata"].error() == simdjson::SUCCESS;
    if (root_["metadata"]["total_size"].get(total) != simdjson::SUCCESS) return metadata;
    std::uint64_t number = 0;
    metadata.odd_total = total.get(number) != simdjson::SUCCESS;
    if (!metadata.odd_total) metadata.total = number;
    return metadata;
  }

 private:
  std::size_t maps() const {
    std::size_t count = 0;
    for (const auto& field : root_) count += field.key == "weight_map" ? 1 : 0;
    return count;
  }

  dom::object root_, map_;
  std::string fault_;
};

// The position after the first comma that ends a line, from `from` on. No JSON string contains a line break,
// so such a comma always stands between two entries, or between the fields around the map, where the scan of
// the piece then fails.
std::size_t behind_entry(std::string_view text, std::size_t from) {
  const std::size_t end = text.find(",\n", from - 1);
  return end == std::string_view::npos ? end : end + 2;
}

// Calls each(tensor, shard) for the entries at the begin of `text` that are plain and end in a comma. Returns
// where the first other begins.
template <typename Each>
std::size_t read_plain_entries(std::string_view text, Each each) {
  PlainJson plain(text);
  std::size_t behind = 0;
  for (;;) {
    plain.skip_blanks();
    behind = plain.position();
    const std::string_view tensor = plain.string();
    if (tensor.data() == nullptr || !plain.take(':')) return behind;
    plain.skip_blanks();
    const std::string_view shard = plain.string();
    if (shard.data() == nullptr || !plain.take(',')) return behind;
    each(tensor, shard);
  }
}

// What stands before the first entry of an index as the usual writers make it.
struct IndexHead {
  std::size_t bytes = 0;
  HfWeightMap::Metadata metadata;
};
// Nothing if an index begins otherwise.
std::optional<IndexHead> index_head(std::string_view text, const std::string& path) {
  constexpr std::string_view kMap = "\"weight_map\":", kBehind = "}}";
  constexpr std::size_t kMostHead = 4096;
  const std::string_view begin = text.substr(0, kMostHead);
  const std::size_t map = begin.find(kMap);
  if (map == std::string_view::npos) return std::nullopt;
  const std::size_t brace = begin.find_first_not_of(' ', map + kMap.size());
  if (brace == std::string_view::npos || begin[brace] != '{') return std::nullopt;
  const std::size_t bytes = brace + 1;
  std::string head(text.substr(0, bytes));
  head.append(kBehind).append(simdjson::SIMDJSON_PADDING, ' ');
  dom::parser parser;
  IndexText index(parser, {head.data(), bytes + kBehind.size()}, path);
  // with two braces behind it, it is an index of no entries: so the map stands where a map must
  if (!index.fault().empty() || !index.is_empty() || !index.ends_with_map()) return std::nullopt;
  return IndexHead{bytes, index.metadata()};
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

bool HfWeightMap::scan(std::size_t threads, const Consume& take) {
  std::atomic<bool> plain = true;
  Metadata first, last;
  ParallelLoop(pieces(), threads, [&](std::size_t piece) {
    if (!plain) return;
    const std::optional<Metadata> found = scan_piece(piece, take);
    if (!found) plain = false;
    if (found && piece == 0) first = *found;
    if (found && piece > 0 && piece + 1 == pieces()) last = *found;
  }).finish();
  metadata_ = first.there ? first : last;
  return plain && !(first.there && last.there);
}

// The text of a piece runs from the first entry after its nominal begin to the first entry after its nominal
// end. The first piece includes the text before the map, the last piece the text after it. Most consist of
// plain entries. The rest, with what it lacks at its ends, is an index of its own.
std::optional<HfWeightMap::Metadata> HfWeightMap::scan_piece(std::size_t piece, const Consume& take) const {
  constexpr std::string_view kBefore = "{\"weight_map\":{", kBehind = "}}";
  const bool first = piece == 0, last = piece + 1 == pieces();
  const std::uint64_t nominal = piece * kPiece, next = nominal + kPiece;
  const std::uint64_t begin = first ? 0 : nominal - 1;  // a comma may stand just before
  const std::uint64_t end = last ? file_.size() : std::min(next + kMostEntry, file_.size());
  const auto bytes = static_cast<std::size_t>(end - begin);
  const std::unique_ptr<char[]> buffer(new char[kBefore.size() + bytes + simdjson::SIMDJSON_PADDING]);
  char* const text = buffer.get() + kBefore.size();
  file_.read_at(begin, std::as_writable_bytes(std::span(text, bytes)));
  const std::size_t to = last ? bytes : behind_entry({text, bytes}, static_cast<std::size_t>(next - begin));
  if (to == std::string_view::npos) return std::nullopt;
  const auto head = first ? index_head({text, to}, file_.path()) : std::nullopt;
  std::size_t from = head ? head->bytes : first ? 0 : behind_entry({text, bytes}, 1);
  if (from == std::string_view::npos || from >= to) return std::nullopt;
  const auto each = [&](std::string_view tensor, std::string_view shard) { take(piece, tensor, shard); };
  std::fill_n(text + to, simdjson::SIMDJSON_PADDING, ' ');
  const bool in_map = !first || head;  // the text begins with an entry
  const std::size_t plain = in_map ? read_plain_entries({text + from, to - from}, each) : 0;
  from += plain;
  if (from == to && !last) return head ? head->metadata : Metadata();
  char* whole = text + from;
  if (in_map) whole = std::ranges::copy(kBefore, whole - kBefore.size()).out - kBefore.size();
  // the braces take the place of ",\n"
  if (!last) std::ranges::copy(kBehind, text + to - kBehind.size());

  dom::parser parser;
  IndexText index(parser, {whole, static_cast<std::size_t>(text + to - whole)}, file_.path());
  index.read(each);
  if (!index.fault().empty()) return std::nullopt;
  if ((in_map && !index.begins_with_map()) || (!last && !index.ends_with_map())) return std::nullopt;
  // a comma would have no entry beside it
  if ((pieces() > 1 || plain > 0) && index.is_empty()) return std::nullopt;
  const Metadata metadata = index.metadata();
  if (!head || !head->metadata.there) return metadata;
  return metadata.there ? std::nullopt : std::optional(head->metadata);
}

void HfWeightMap::parse(const Consume& take) {
  const auto bytes = static_cast<std::size_t>(file_.size());
  const std::unique_ptr<char[]> buffer(new char[bytes + simdjson::SIMDJSON_PADDING]);
  file_.read_at(0, std::as_writable_bytes(std::span(buffer.get(), bytes)));
  std::fill_n(buffer.get() + bytes, simdjson::SIMDJSON_PADDING, ' ');
  dom::parser parser;
  IndexText index(parser, {buffer.get(), bytes}, file_.path());
  index.read([&](std::string_view tensor, std::string_view shard) { take(0, tensor, shard); });
  if (!index.fault().empty()) throw Error(ErrorCode::malformed, {.file = file_.path()}, "{}", index.fault());
  metadata_ = index.metadata();
}

// --- Looks up the entries of an index among the tensors, first at the place where each most likely is.

HfIndexCheck::HfIndexCheck(std::span<const graph::Tensor> tensors, std::span<const JoinedShard> shards)
    : tensors_(tensors),
      shards_(shards),
      shard_names_(shards.size()),
      in_shard_(shards.size()),
      planned_(tensors.size()),
      listed_(shards.size()) {
  for (std::uint32_t i = 0; i < shards_.size(); ++i)
    shard_names_.add(shards_[i].name, graph::name_hash(shards_[i].name), i,
                     [this](std::uint32_t at) -> std::string_view { return shards_[at].name; });
  reset(1);
}

void HfIndexCheck::reset(std::size_t pieces) {
  for (auto& planned : planned_) planned.store(kNoShard, std::memory_order_relaxed);
  for (auto& listed : listed_) listed.store(false, std::memory_order_relaxed);
  pieces_ = std::vector<Piece>(pieces);
  twice_ = false;
}

void HfIndexCheck::run(HfWeightMap& index, const std::string& path) {
  const HfWeightMap::Consume take = [&](std::size_t piece, std::string_view tensor, std::string_view shard) {
    this->take(pieces_[piece], tensor, shard);
    if (twice_.load(std::memory_order_relaxed) && alone_)
      throw Error(ErrorCode::malformed, {.file = path, .tensor = std::string(tensor)},
                  "the name occurs twice in weight_map");
  };
  alone_ = false;
  reset(index.pieces());
  bool plain = index.scan(threads_for_shards(shards_.size()), take);
  std::size_t found = 0, distinct = 0;
  for (const Piece& piece : pieces_) found += piece.count;
  for (const auto& planned : planned_)
    distinct += planned.load(std::memory_order_relaxed) != kNoShard ? 1 : 0;
  if (plain && !twice_ && found == distinct) return;
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
  const auto at = find(piece, tensor, number);
  if (at) {
    piece.found[piece.count++ % piece.found.size()] = *at;
    // cheaper than an exchange: run() finds what two threads do at the same time
    if (planned_[*at].load(std::memory_order_relaxed) != kNoShard) twice_ = true;
    planned_[*at].store(number, std::memory_order_relaxed);
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

std::optional<std::uint32_t> HfIndexCheck::find(Piece& piece, std::string_view name, std::uint32_t shard) {
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
  if (const auto here = find_in(shard, name, hash)) return here;
  index_names();
  return names_.find(name, hash, [this](std::uint32_t i) { return tensors_[i].name.view(); });
}

std::optional<std::uint32_t> HfIndexCheck::find_in(std::uint32_t shard, std::string_view name,
                                                   std::uint32_t hash) {
  ShardTensors& in = in_shard_[shard];
  const auto text_of = [this](std::uint32_t i) { return tensors_[i].name.view(); };
  in.indexed.run([&] {
    const std::size_t begin = shards_[shard].first_tensor, end = end_of(shard);
    in.names = graph::NameIndex(end - begin);
    for (std::size_t i = begin; i < end; ++i)
      in.names.add(tensors_[i].name, tensors_[i].name.hash(), static_cast<std::uint32_t>(i), text_of);
  });
  return in.names.find(name, hash, text_of);
}

std::size_t HfIndexCheck::end_of(std::uint32_t shard) const {
  return shard + 1 < shards_.size() ? shards_[shard + 1].first_tensor : tensors_.size();
}

void HfIndexCheck::index_names() const {
  indexed_.run([this] {
    names_ = graph::NameIndex(tensors_.size());
    for (std::uint32_t i = 0; i < tensors_.size(); ++i) {
      const auto before = names_.add(tensors_[i].name, tensors_[i].name.hash(), i,
                                     [this](std::uint32_t at) { return tensors_[at].name.view(); });
      if (before) repeated_[*before].push_back(i);
    }
  });
}

std::uint32_t HfIndexCheck::shard_of(std::size_t tensor) const {
  const auto next = std::ranges::upper_bound(shards_, tensor, {}, &JoinedShard::first_tensor);
  return static_cast<std::uint32_t>(next - shards_.begin() - 1);
}

std::vector<std::size_t> HfIndexCheck::settle_copies(const std::string& path) {
  index_names();
  std::vector<std::size_t> copies;
  for (const auto& [first, others] : repeated_) {
    std::vector<std::uint32_t> same = {first};
    same.insert(same.end(), others.begin(), others.end());
    // the entry was looked up by name: any of them may have been found
    std::uint32_t wanted = kNoShard;
    for (const std::uint32_t at : same) {
      const std::uint32_t found = planned(at);
      if (found != kNoShard && std::exchange(wanted, found) != kNoShard)
        throw Error(ErrorCode::malformed, {.file = path, .tensor = tensors_[at].name},
                    "the name occurs twice in weight_map");
    }
    if (std::ranges::count(same, wanted, [&](std::uint32_t at) { return shard_of(at); }) != 1)
      throw Error(ErrorCode::malformed,
                  {.file = path.substr(0, path.rfind('/') + 1) + shards_[shard_of(others.front())].name,
                   .tensor = tensors_[first].name},
                  "also in shard '{}'", safe_display(shards_[shard_of(first)].name));
    for (const std::uint32_t at : same) {
      planned_[at].store(shard_of(at) == wanted ? wanted : kNoShard, std::memory_order_relaxed);
      if (shard_of(at) != wanted) copies.push_back(at);
    }
  }
  std::ranges::sort(copies);
  return copies;
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
