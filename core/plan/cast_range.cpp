// Reads sources piece by piece, so that a cast needs no second copy of its tensor.
#include "core/plan/cast_range.h"

#include "core/base/error.h"
#include "core/convert/numbers/cast.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace loadline {
namespace {

std::string refusal(const Cast& cast) {
  return fmt::format("casts from {} to {} can be projected, not run", dtype_info(cast.from).name,
                     dtype_info(cast.to).name);
}

}  // namespace

void cast_range(const Cast& cast, std::uint64_t at, std::span<std::byte> out, const Fetch& fetch) {
  if (!can_cast(cast.from, cast.to)) throw Error(ErrorCode::unsupported, refusal(cast));
  constexpr std::size_t kPieceElements = 128 << 10;  // each of at most 8 bytes
  const std::size_t wide = dtype_info(cast.from).block_bytes, narrow = dtype_info(cast.to).block_bytes;
  const std::size_t elements = out.size() / narrow;
  std::vector<std::byte> source(std::min(elements, kPieceElements) * wide);
  for (std::size_t done = 0; done < elements;) {
    const std::size_t count = std::min(elements - done, kPieceElements);
    const std::span<std::byte> piece(source.data(), count * wide);
    fetch((at / narrow + done) * wide, piece);
    loadline::cast(cast.from, piece, cast.to, out.subspan(done * narrow, count * narrow));
    done += count;
  }
}

void fill_from(const Step& step, std::uint64_t at, std::span<std::byte> out, const Fetch& fetch) {
  if (!step.cast) return fetch(step.from_offset + at, out);
  cast_range(*step.cast, at, out, [&](std::uint64_t offset, std::span<std::byte> piece) {
    fetch(step.from_offset + offset, piece);
  });
}

void fill_prepacked(const Step& step, const Prepack& how, std::span<std::byte> out, const Fetch& fetch) {
  constexpr std::uint64_t kPieceBytes = 1 << 20;
  const DTypeInfo& stored = dtype_info(how.from);
  const std::uint64_t most = kPieceBytes / stored.block_bytes * stored.block_bytes;
  std::vector<std::byte> source(static_cast<std::size_t>(std::min(most, step.bytes)));
  for (std::uint64_t at = 0; at < step.bytes; at += most) {
    const auto piece = std::span(source).first(static_cast<std::size_t>(std::min(most, step.bytes - at)));
    fetch(step.from_offset + at, piece);
    prepack(how, (step.offset + at) / stored.block_bytes * stored.block_elements, piece, out);
  }
}

std::string cast_refusal(const Plan& plan) {
  for (const Step& step : plan.steps)
    if (step.cast && !can_cast(step.cast->from, step.cast->to)) return refusal(*step.cast);
  return "";
}

}  // namespace loadline
