// Looks up the entries of an index among the tensors, first at the place where each most likely is.
#include "core/base/error.h"
#include "core/base/text.h"
#include "importers/huggingface/index.h"
#include "importers/huggingface/shards.h"

#include <algorithm>

namespace loadline {

HfIndexCheck::HfIndexCheck(std::span<const Tensor> tensors, std::span<const JoinedShard> shards)
    : tensors_(tensors),
      shards_(shards),
      shard_names_(shards.size()),
      planned_(tensors.size()),
      listed_(shards.size()) {
  for (std::uint32_t i = 0; i < shards_.size(); ++i)
    shard_names_.add(shards_[i].name, name_hash(shards_[i].name), i,
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
  if (!at || shards_[number].file == kNoFile)
    piece.promises.push_back({std::string(tensor), number, at.has_value()});
}

// Tries the shard of the previous entry first: neighbours mostly lie in one shard.
std::uint32_t HfIndexCheck::shard_number(Piece& piece, std::string_view name) {
  if (piece.shard != kNoShard && shards_[piece.shard].name == name) return piece.shard;
  const auto known = shard_names_.find(
      name, name_hash(name), [this](std::uint32_t at) -> std::string_view { return shards_[at].name; });
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
  const std::uint32_t hash = name_hash(name);
  const auto here = shard.names.find(
      name, hash, [&](std::uint32_t i) { return tensors_[shard.first_tensor + i].name.view(); });
  if (here) return static_cast<std::uint32_t>(shard.first_tensor + *here);
  index_names();
  return names_.find(name, hash, [this](std::uint32_t i) { return tensors_[i].name.view(); });
}

void HfIndexCheck::index_names() const {
  std::call_once(indexed_, [this] {
    names_ = NameIndex(tensors_.size());
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

}  // namespace loadline
