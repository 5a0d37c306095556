// Casts piece by piece; a plan's copies replayed on ranges.
#include "core/plan/block_contents.h"

#include "core/base/error.h"
#include "core/convert/numbers/elements.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include <fmt/core.h>

namespace loadline::plan {

// --- Reads sources piece by piece, so that a cast needs no second copy of its tensor.

namespace {

std::string refusal(const Cast& cast) {
  return fmt::format("casts from {} to {} can be projected, not run", graph::dtype_info(cast.from).name,
                     graph::dtype_info(cast.to).name);
}

}  // namespace

void cast_range(const Cast& cast, std::uint64_t at, std::span<std::byte> out, const Fetch& fetch) {
  if (!convert::can_cast(cast.from, cast.to)) throw Error(ErrorCode::unsupported, refusal(cast));
  constexpr std::size_t kPieceElements = 128 << 10;  // each of at most 8 bytes
  const std::size_t wide = graph::dtype_info(cast.from).block_bytes,
                    narrow = graph::dtype_info(cast.to).block_bytes;
  const std::size_t elements = out.size() / narrow;
  std::vector<std::byte> source(std::min(elements, kPieceElements) * wide);
  for (std::size_t done = 0; done < elements;) {
    const std::size_t count = std::min(elements - done, kPieceElements);
    const std::span<std::byte> piece(source.data(), count * wide);
    fetch((at / narrow + done) * wide, piece);
    loadline::convert::cast(cast.from, piece, cast.to, out.subspan(done * narrow, count * narrow));
    done += count;
  }
}

void fill_from(const Step& step, std::uint64_t at, std::span<std::byte> out, const Fetch& fetch) {
  if (!step.cast) return fetch(step.from_offset + at, out);
  cast_range(*step.cast, at, out, [&](std::uint64_t offset, std::span<std::byte> piece) {
    fetch(step.from_offset + offset, piece);
  });
}

void fill_prepacked(const Step& step, const convert::Prepack& how, std::span<std::byte> out,
                    const Fetch& fetch) {
  constexpr std::uint64_t kPieceBytes = 1 << 20;
  const graph::DTypeInfo& stored = graph::dtype_info(how.from);
  const std::uint64_t most = kPieceBytes / stored.block_bytes * stored.block_bytes;
  std::vector<std::byte> source(static_cast<std::size_t>(std::min(most, step.bytes)));
  for (std::uint64_t at = 0; at < step.bytes; at += most) {
    const auto piece = std::span(source).first(static_cast<std::size_t>(std::min(most, step.bytes - at)));
    fetch(step.from_offset + at, piece);
    convert::prepack(how, (step.offset + at) / stored.block_bytes * stored.block_elements, piece, out);
  }
}

std::string cast_refusal(const Plan& plan) {
  for (const Step& step : plan.steps)
    if (step.cast && !convert::can_cast(step.cast->from, step.cast->to)) return refusal(*step.cast);
  return "";
}

// --- Replays a plan's copies on ranges instead of bytes.

namespace {

// The smallest part of a cast that can be converted alone: its size before and after.
struct Unit {
  std::uint64_t stored = 1;
  std::uint64_t made = 1;
};
Unit unit_of(const std::optional<Cast>& cast) {
  if (!cast) return {};
  const graph::DTypeInfo &from = graph::dtype_info(cast->from), &to = graph::dtype_info(cast->to);
  return {std::uint64_t{from.block_bytes} * to.block_elements,
          std::uint64_t{to.block_bytes} * from.block_elements};
}

// The part [begin, end) of an extent; absent if the cut is inside a cast unit.
std::optional<Extent> part_of(const Extent& extent, std::uint64_t begin, std::uint64_t end) {
  const Unit unit = unit_of(extent.cast);
  const std::uint64_t skipped = begin - extent.offset;
  if (skipped % unit.made != 0 || (end - begin) % unit.made != 0) return std::nullopt;
  Extent part = extent;
  part.offset = begin;
  part.bytes = end - begin;
  part.storage_offset += skipped / unit.made * unit.stored;
  return part;
}

bool continues(const Extent& before, const Extent& after) {
  return before.end() == after.offset && before.storage == after.storage && before.cast == after.cast &&
         before.storage_offset + before.storage_bytes() == after.storage_offset;
}

// The contents of one block, sorted by offset.
class Content {
 public:
  void put(const Extent& extent) {
    if (extent.bytes == 0) return;
    erase(extent.offset, extent.end());
    Extent added = extent;
    auto next = extents_.lower_bound(added.offset);
    if (next != extents_.end() && continues(added, next->second)) {
      added.bytes += next->second.bytes;
      next = extents_.erase(next);
    }
    if (next != extents_.begin() && continues(std::prev(next)->second, added))
      std::prev(next)->second.bytes += added.bytes;
    else
      extents_.emplace(added.offset, added);
  }

  void erase(std::uint64_t begin, std::uint64_t end) {
    auto at = first_after(begin);
    while (at != extents_.end() && at->second.offset < end) {
      const Extent old = at->second;
      at = extents_.erase(at);
      if (old.offset < begin)
        if (const auto left = part_of(old, old.offset, begin)) extents_.emplace(left->offset, *left);
      if (old.end() > end)
        if (const auto right = part_of(old, end, old.end())) extents_.emplace(right->offset, *right);
    }
  }

  // The extents in [begin, end), cut to that range.
  std::vector<Extent> in(std::uint64_t begin, std::uint64_t end) {
    std::vector<Extent> found;
    for (auto at = first_after(begin); at != extents_.end() && at->second.offset < end; ++at)
      if (const auto part =
              part_of(at->second, std::max(begin, at->second.offset), std::min(end, at->second.end())))
        found.push_back(*part);
    return found;
  }

  std::vector<Extent> all() const {
    std::vector<Extent> list;
    list.reserve(extents_.size());
    for (const auto& [offset, extent] : extents_) list.push_back(extent);
    return list;
  }

 private:
  // The first extent that ends after `offset`.
  std::map<std::uint64_t, Extent>::iterator first_after(std::uint64_t offset) {
    auto at = extents_.upper_bound(offset);
    if (at != extents_.begin() && std::prev(at)->second.end() > offset) --at;
    return at;
  }

  std::map<std::uint64_t, Extent> extents_;
};

void copy_content(Content& to, Content& from, const Step& step) {
  const Unit unit = unit_of(step.cast);
  std::vector<Extent> parts = from.in(step.from_offset, step.from_offset + step.bytes);
  to.erase(step.offset, step.offset + step.written());
  for (Extent& part : parts) {
    const std::uint64_t at = part.offset - step.from_offset;
    if (step.cast && (part.cast || at % unit.stored != 0 || part.bytes % unit.stored != 0)) continue;
    part.offset = step.offset + at / unit.stored * unit.made;
    part.bytes = part.bytes / unit.stored * unit.made;
    if (step.cast) part.cast = step.cast;
    to.put(part);
  }
}

}  // namespace

std::uint64_t Extent::storage_bytes() const {
  const Unit unit = unit_of(cast);
  return bytes / unit.made * unit.stored;
}

std::vector<std::vector<Extent>> final_contents(const Plan& plan) {
  std::vector<Content> contents(plan.blocks.size());
  for (const Step& step : plan.steps) {
    Content& block = contents[graph::index(step.block)];
    if (step.verb == Verb::free) block = {};
    if (step.verb != Verb::copy) continue;
    if (const auto* const storage = std::get_if<graph::StorageId>(&step.from))
      block.put({step.offset, step.written(), *storage, step.from_offset, step.cast});
    else
      copy_content(block, contents[graph::index(std::get<BlockId>(step.from))], step);
  }
  std::vector<std::vector<Extent>> lists;
  lists.reserve(contents.size());
  for (const Content& content : contents) lists.push_back(content.all());
  return lists;
}

void expected_bytes(const io::StorageReader& reader, std::span<const Extent> extents, std::uint64_t offset,
                    std::span<std::byte> out) {
  const std::uint64_t end = offset + out.size();
  for (const Extent& extent : extents) {
    if (extent.end() <= offset || extent.offset >= end) continue;
    const std::uint64_t begin = std::max(offset, extent.offset);
    const std::uint64_t count = std::min(end, extent.end()) - begin;
    const auto part = out.subspan(static_cast<std::size_t>(begin - offset), static_cast<std::size_t>(count));
    const std::uint64_t at = begin - extent.offset;
    if (!extent.cast)
      reader.read(extent.storage, extent.storage_offset + at, part);
    else
      cast_range(*extent.cast, at, part, [&](std::uint64_t stored, std::span<std::byte> bytes) {
        reader.read(extent.storage, extent.storage_offset + stored, bytes);
      });
  }
}

}  // namespace loadline::plan
