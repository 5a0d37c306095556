// Hugging Face shard index (huggingface_hub serialization/_base.py), NAME.index.json:
//
//   {"metadata": {"total_size": BYTES, ...}, "weight_map": {"tensor name": "shard file name", ...}}
#include "importers/hf_weight_map.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "importers/plain_json.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <simdjson.h>

namespace loadline {
namespace {

constexpr std::uint64_t kMostIndex = 256'000'000;
constexpr std::size_t kMostDepth = 64;

}  // namespace

struct HfWeightMap::Json {
  simdjson::dom::parser parser;
};

HfWeightMap::HfWeightMap(HfWeightMap&&) noexcept = default;
HfWeightMap::~HfWeightMap() = default;

HfWeightMap::HfWeightMap(const SourceFile& file) {
  if (file.size() > kMostIndex)
    throw Error(ErrorCode::limit, {.file = file.path()},
                fmt::format("an index of {} bytes, the limit is {}", file.size(), kMostIndex));
  const auto bytes = static_cast<std::size_t>(file.size());
  buffer_.reset(new char[bytes + simdjson::SIMDJSON_PADDING]);
  const std::string_view text(buffer_.get(), bytes);
  file.read_at(0, std::as_writable_bytes(std::span(buffer_.get(), bytes)));
  std::fill_n(buffer_.get() + bytes, simdjson::SIMDJSON_PADDING, ' ');
  if (!scan(text)) {
    shards_.clear();
    entries_.clear();
    shard_names_ = NameIndex();
    total_size_.reset();
    parse(text, file.path());
  }
  sort_shards();
  index_names(file.path());
}

// Neighbours in the map mostly lie in the same shard.
void HfWeightMap::add(std::string_view tensor, std::string_view shard) {
  std::uint32_t number = entries_.empty() ? 0 : entries_.back().shard;
  if (number >= shards_.size() || shards_[number] != shard) {
    const auto fresh = static_cast<std::uint32_t>(shards_.size());
    const auto known = shard_names_.add(shard, name_hash(shard), fresh,
                                        [this](std::uint32_t i) { return std::string_view(shards_[i]); });
    number = known.value_or(fresh);
    if (!known) shards_.emplace_back(shard);
  }
  entries_.push_back({tensor, name_hash(tensor), number});
}

// The fast path: false for any index that is not as plain as the usual ones.
bool HfWeightMap::scan(std::string_view text) {
  constexpr std::size_t kUsualEntry = 80;
  PlainJson json(text);
  bool metadata = false, map = false;
  if (!json.take('{')) return false;
  do {
    std::string_view key, name, value;
    if (!json.string(key) || !json.take(':') || !json.take('{')) return false;
    if (key == "metadata" && !std::exchange(metadata, true)) {
      do {
        std::uint64_t number = 0;
        if (!json.string(name) || !json.take(':')) return false;
        if (name != "total_size" ? !json.number(number) && !json.string(value)
                                 : total_size_ || !json.number(number))
          return false;
        if (name == "total_size") total_size_ = number;
      } while (json.take(','));
    } else if (key == "weight_map" && !std::exchange(map, true)) {
      entries_.reserve(text.size() / kUsualEntry);
      do {
        if (!json.string(name) || !json.take(':') || !json.string(value)) return false;
        add(name, value);
      } while (json.take(','));
    } else {
      return false;
    }
    if (!json.take('}')) return false;
  } while (json.take(','));
  return json.take('}') && json.at_end() && map;
}

void HfWeightMap::parse(std::string_view text, const std::string& path) {
  const auto malformed = [&](std::string_view detail) {
    return Error(ErrorCode::malformed, {.file = path}, detail);
  };
  json_ = std::make_unique<Json>();
  simdjson::dom::parser& parser = json_->parser;
  simdjson::dom::object root, map;
  if (parser.allocate(text.size(), kMostDepth) != simdjson::SUCCESS)
    throw Error(ErrorCode::limit, {.file = path}, "no memory to parse the index");
  constexpr bool kCopyIfNeeded = false;
  if (const auto error = parser.parse(text.data(), text.size(), kCopyIfNeeded).get(root);
      error != simdjson::SUCCESS)
    throw malformed(fmt::format("not a JSON object: {}", simdjson::error_message(error)));
  std::size_t maps = 0;
  for (const auto& field : root) maps += field.key == "weight_map" ? 1 : 0;
  if (maps > 1) throw malformed("weight_map occurs twice");
  if (root["weight_map"].get(map) != simdjson::SUCCESS)
    throw malformed("weight_map is missing or not an object");
  for (const auto& [tensor, value] : map) {
    std::string_view shard;
    if (value.get(shard) != simdjson::SUCCESS)
      throw malformed(
          fmt::format("weight_map: the shard of '{}' is not a string", safe_display(tensor, 100)));
    add(tensor, shard);
  }
  if (simdjson::dom::element total; root["metadata"]["total_size"].get(total) == simdjson::SUCCESS) {
    std::uint64_t bytes = 0;
    if (total.get(bytes) == simdjson::SUCCESS)
      total_size_ = bytes;
    else
      odd_total_ = true;
  }
}

void HfWeightMap::sort_shards() {
  std::vector<std::uint32_t> order(shards_.size()), place(shards_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return natural_less(shards_[a], shards_[b]); });
  std::vector<std::string> sorted;
  for (const std::uint32_t from : order) {
    place[from] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(shards_[from]));
  }
  shards_ = std::move(sorted);
  for (Entry& entry : entries_) entry.shard = place[entry.shard];
}

void HfWeightMap::index_names(const std::string& path) {
  names_ = NameIndex(entries_.size());
  const auto text_of = [this](std::uint32_t i) { return entries_[i].name; };
  for (std::uint32_t i = 0; i < entries_.size(); ++i)
    if (names_.add(entries_[i].name, entries_[i].hash, i, text_of))
      throw Error(ErrorCode::malformed, {.file = path, .tensor = std::string(entries_[i].name)},
                  "the name occurs twice in weight_map");
}

}  // namespace loadline
