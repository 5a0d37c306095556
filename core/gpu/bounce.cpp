// Uploads and readbacks through rings of mapped memory.
#include "core/gpu/bounce.h"

#include <algorithm>
#include <array>

namespace loadline::gpu {
namespace {

// Alignment of the pieces in a slot, for aligned vector stores. Copies may start at any byte.
constexpr std::uint64_t kPieceAlignment = 64;

}  // namespace

UploadBounce::UploadBounce(MemoryPool& memory, TransferQueue& transfers)
    : memory_(memory), transfers_(transfers), ring_(kBounceSlots, kBounceSlotBytes) {}

std::uint64_t UploadBounce::copy(const Fill& fill, const BufferRange& to) {
  return send(fill, to.bytes, 1, [&](std::uint64_t at, const BufferRange& slot) {
    return transfers_.copy(slot, to.part(at, slot.bytes));
  });
}

std::uint64_t UploadBounce::send(const Fill& fill, std::uint64_t bytes, std::uint64_t unit,
                                 const Send& send) {
  if (slots_.range.bytes == 0) slots_ = memory_.allocate(kBounceSlots * kBounceSlotBytes);
  for (std::uint64_t done = 0; done < bytes;) {
    if (!ring_.filling()) {
      transfers_.wait(ring_.next_needs());
      ring_.begin(transfers_.completed());
    }
    StagingRing::Piece piece = ring_.take(bytes - done, kPieceAlignment);
    piece.bytes = piece.bytes / unit * unit;  // the rest of the slot stays empty
    if (piece.bytes > 0) {
      fill(done, slots_.mapped.subspan(static_cast<std::size_t>(piece.offset),
                                       static_cast<std::size_t>(piece.bytes)));
      newest_ = send(done, slots_.range.part(piece.offset, piece.bytes));
    }
    if (ring_.room() == 0) ring_.submit(newest_);
    done += piece.bytes;
  }
  return newest_;
}

Readback::Readback(MemoryPool& memory, TransferQueue& transfers) : memory_(memory), transfers_(transfers) {}

void Readback::read(const BufferRange& from, const Take& take) {
  if (slots_.range.bytes == 0) slots_ = memory_.allocate(kBounceSlots * kBounceSlotBytes);
  std::array<std::uint64_t, kBounceSlots> values = {};
  const std::uint64_t chunks = (from.bytes + kBounceSlotBytes - 1) / kBounceSlotBytes;
  const auto size_of = [&](std::uint64_t chunk) {
    return std::min(kBounceSlotBytes, from.bytes - chunk * kBounceSlotBytes);
  };
  // chunk k goes to `take` just before its slot is needed for chunk k + kBounceSlots
  for (std::uint64_t chunk = 0; chunk < chunks + kBounceSlots; ++chunk) {
    const std::uint64_t slot = chunk % kBounceSlots;
    if (chunk >= kBounceSlots && chunk - kBounceSlots < chunks) {
      const std::uint64_t ready = chunk - kBounceSlots;
      transfers_.wait(values[slot]);
      take(ready * kBounceSlotBytes, slots_.mapped.subspan(static_cast<std::size_t>(slot * kBounceSlotBytes),
                                                           static_cast<std::size_t>(size_of(ready))));
    }
    if (chunk >= chunks) continue;
    values[slot] = transfers_.copy(from.part(chunk * kBounceSlotBytes, size_of(chunk)),
                                   slots_.range.part(slot * kBounceSlotBytes, size_of(chunk)));
    transfers_.flush();
  }
}

}  // namespace loadline::gpu
