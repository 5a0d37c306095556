// Hugging Face shard index (huggingface_hub serialization/_base.py), NAME.index.json:
//
//   {"metadata": {"total_size": BYTES, ...}, "weight_map": {"tensor name": "shard file name", ...}}
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "importers/huggingface/weight_map.h"
#include "importers/wire/plain_json.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>

#include <simdjson.h>

namespace loadline {
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

HfWeightMap::HfWeightMap(const SourceFile& file) : file_(file) {
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

}  // namespace loadline
