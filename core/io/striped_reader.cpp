// O_DIRECT through an aligned buffer; threads that take stripes from one queue.
#include "core/io/striped_reader.h"

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/io/file_system.h"
#include "core/io/system_memory.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace loadline::io {

// --- Whole units are read into the buffer, and the wanted part copied out of it.

std::unique_ptr<DirectFile> DirectFile::open(const SourceFile& file) {
  if (file.descriptor() < 0) return nullptr;
  // the same file, whatever its path names by now
  UniqueFd fd(
      ::open(fmt::format("/proc/self/fd/{}", file.descriptor()).c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  if (!fd) return nullptr;
  return std::unique_ptr<DirectFile>(new DirectFile(std::move(fd), file.path()));
}

void DirectFile::read_at(std::uint64_t offset, std::span<std::byte> out, std::span<std::byte> buffer) const {
  assert(buffer.size() >= 2 * kDirectUnit && buffer.size() % kDirectUnit == 0);
  assert(reinterpret_cast<std::uintptr_t>(buffer.data()) % kDirectUnit == 0);
  while (!out.empty()) {
    const std::uint64_t before = offset % kDirectUnit, begin = offset - before;
    const std::uint64_t wanted = (before + out.size() + kDirectUnit - 1) / kDirectUnit * kDirectUnit;
    const ssize_t got = uninterrupted([&] {
      return ::pread(fd_.get(), buffer.data(), std::min<std::uint64_t>(wanted, buffer.size()),
                     static_cast<off_t>(begin));
    });
    if (got < 0) throw system_error(path_, fmt::format("read {} bytes at {}", out.size(), offset), errno);
    const auto read = static_cast<std::uint64_t>(got);
    if (read <= before)
      throw Error(ErrorCode::io, {.file = path_, .byte = offset},
                  "the file became shorter while it was read");
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(read - before, out.size()));
    std::memcpy(out.data(), buffer.data() + before, bytes);
    offset += bytes;
    out = out.subspan(bytes);
  }
}

// --- Threads that take stripes from one queue.

StripedReader::StripedReader(const StorageReader& reader, unsigned threads, FileReading reading)
    : reader_(reader), reading_(reading), ways_(reader.graph().files.size()) {
  assert(threads > 0);
  threads_.reserve(threads);
  try {
    for (unsigned i = 0; i < threads; ++i) threads_.push_back(start_thread([this] { read_stripes(); }));
  } catch (...) {
    if (threads_.empty()) throw;  // else those that have started do the work
  }
}

StripedReader::~StripedReader() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    stripes_.clear();
  }
  waiting_.notify_all();
  threads_.clear();
}

StripedReader::Ticket StripedReader::start(graph::StorageId storage, std::uint64_t offset,
                                           std::span<std::byte> out) {
  // the decoder of an encoded storage goes from front to back: only one thread may read it
  const graph::Encoding encoding = reader_.graph().storage(storage).encoding;
  const bool striped = encoding == graph::Encoding::plain || encoding == graph::Encoding::byte_swapped;
  const std::uint64_t most = striped ? kStripeBytes : std::max<std::uint64_t>(out.size(), 1);
  const Ticket ticket = ++newest_;
  std::size_t added = 0;
  {
    const std::lock_guard lock(mutex_);
    for (std::uint64_t at = 0; at < out.size(); at += most, ++added) {
      const std::uint64_t bytes = std::min<std::uint64_t>(most, out.size() - at);
      stripes_.push_back({ticket, storage, offset + at,
                          out.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(bytes))});
    }
    left_.push_back(added);
    if (added == 0) finish(ticket);
  }
  if (added == 1)
    waiting_.notify_one();
  else
    waiting_.notify_all();
  return ticket;
}

// Counts pieces that end in any order, so that complete_ never passes one that is being read. With the mutex
// held; `ticket` has no stripe left.
void StripedReader::finish([[maybe_unused]] Ticket ticket) {
  assert(ticket > complete_ && left_[static_cast<std::size_t>(ticket - complete_ - 1)] == 0);
  for (; !left_.empty() && left_.front() == 0; ++complete_) left_.pop_front();
  changed_.notify_all();
}

bool reads_past_cache(FileReading reading, std::uint64_t held, std::uint64_t bytes) {
  return reading == FileReading::direct || (reading == FileReading::cold && held < bytes / 2);
}

const DirectFile* StripedReader::direct_file(const Stripe& stripe) {
  const graph::Storage& storage = reader_.graph().storage(stripe.storage);
  if (reading_ == FileReading::cached || storage.encoding != graph::Encoding::plain ||
      storage.file == graph::kNoFile)
    return nullptr;
  const std::lock_guard lock(ways_mutex_);
  Way& way = ways_[graph::index(storage.file)];
  if (!std::exchange(way.chosen, true)) {
    const SourceFile& file = reader_.file_of(stripe.storage);
    const std::uint64_t held = reading_ == FileReading::cold ? resident_bytes(file) : 0;
    if (reads_past_cache(reading_, held, file.size())) way.direct = DirectFile::open(file);
  }
  return way.direct.get();
}

void StripedReader::read(const Stripe& stripe, std::optional<Pages>& buffer) {
  const graph::Storage& storage = reader_.graph().storage(stripe.storage);
  if (storage.encoding != graph::Encoding::plain) return read_decoded(stripe, buffer);
  const DirectFile* const direct = direct_file(stripe);
  if (direct == nullptr) return reader_.read(stripe.storage, stripe.offset, stripe.out);
  reader_.require_range(stripe.storage, stripe.offset, stripe.out.size());
  if (!buffer) buffer.emplace(kStripeBytes + 2 * kDirectUnit);
  direct->read_at(storage.offset + stripe.offset, stripe.out, buffer->span());
}

// Decoders read again what they have written, which is very slow in memory that is mapped from a device: they
// write into a buffer of ordinary memory. Pieces for mapped memory are no larger than a stripe; others are
// decoded to their place, at once, so that no other thread moves the decoder meanwhile.
void StripedReader::read_decoded(const Stripe& stripe, std::optional<Pages>& buffer) {
  if (stripe.out.size() > kStripeBytes) return reader_.read(stripe.storage, stripe.offset, stripe.out);
  if (!buffer) buffer.emplace(kStripeBytes + 2 * kDirectUnit);
  const std::span<std::byte> decoded = buffer->span().first(stripe.out.size());
  reader_.read(stripe.storage, stripe.offset, decoded);
  std::ranges::copy(decoded, stripe.out.begin());
}

void StripedReader::read_stripes() {
  std::optional<Pages> buffer;  // of this thread, for what is read past the cache or decoded
  std::unique_lock lock(mutex_);
  while (true) {
    waiting_.wait(lock, [&] { return ends_ || !stripes_.empty(); });
    if (ends_) return;
    if (failure_) {  // nobody will use them, and their memory may be gone
      stripes_.clear();
      continue;
    }
    const Stripe stripe = stripes_.front();
    stripes_.pop_front();
    ++being_read_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      read(stripe, buffer);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    --being_read_;
    if (failure || failure_) {
      if (!failure_) failure_ = failure;
      changed_.notify_all();
      continue;  // its piece never completes
    }
    std::size_t& left = left_[static_cast<std::size_t>(stripe.ticket - complete_ - 1)];
    if (--left == 0) finish(stripe.ticket);
  }
}

void StripedReader::wait(Ticket ticket) const {
  std::unique_lock lock(mutex_);
  // on failure the caller takes its memory back: no stripe may be on its way into it
  changed_.wait(lock, [&] { return failure_ ? being_read_ == 0 : complete_ >= ticket; });
  if (failure_) std::rethrow_exception(failure_);
}

StripedReader::Ticket StripedReader::complete() const {
  const std::lock_guard lock(mutex_);
  return complete_;
}

bool StripedReader::done(Ticket ticket) const {
  const std::lock_guard lock(mutex_);
  return complete_ >= ticket && !failure_;
}

}  // namespace loadline::io
