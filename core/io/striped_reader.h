// Reads many bytes fast: past the page cache, and storages on several threads in stripes.
#pragma once

#include "core/io/graph_reader.h"
#include "core/io/source_file.h"
#include "core/io/system_memory.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace loadline::io {

// --- Reads a file past the page cache.

// May be used from several threads, each with a buffer of its own.
class DirectFile {
 public:
  // Null if the file's bytes are in memory, or if its file system cannot read past the cache.
  static std::unique_ptr<DirectFile> open(const SourceFile& file);

  // Fills `out` from byte `offset`, through `buffer`: its address and size are multiples of kDirectUnit, and
  // it at least 2 of them. Throws Error{io} if the file cannot be read, or has become shorter.
  void read_at(std::uint64_t offset, std::span<std::byte> out, std::span<std::byte> buffer) const;

 private:
  DirectFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  UniqueFd fd_;
  std::string path_;
};

// --- Reads storages on several threads, each piece in stripes.

// Whether a file of `bytes`, of which the page cache holds `held`, is read past it.
bool reads_past_cache(FileReading reading, std::uint64_t held, std::uint64_t bytes);

// One core cannot read a warm page cache as fast as a link carries it away, so several threads read the
// stripes of a piece. Pieces are begun in the order of start(). One thread calls start(); wait() and done()
// may be called from any.
class StripedReader {
 public:
  // Numbers pieces from 1. Of two pieces the later one has the greater ticket; 0 is complete from the start.
  using Ticket = std::uint64_t;

  static constexpr std::uint64_t kStripeBytes = 4ull << 20;

  // `threads` > 0; fewer if the system gives no more. The reader must outlive this. Throws Error{limit} if it
  // gives none.
  StripedReader(const StorageReader& reader, unsigned threads, FileReading reading = FileReading::cached);
  StripedReader(const StripedReader&) = delete;
  StripedReader& operator=(const StripedReader&) = delete;
  // Waits for the stripes that are being read, and drops the others.
  ~StripedReader();

  // Begins to fill `out`, which must stay until wait() has returned or thrown, or until destruction.
  Ticket start(graph::StorageId storage, std::uint64_t offset, std::span<std::byte> out);
  // Returns once all pieces up to `ticket` are read. Throws the first Error of any piece, then and always.
  void wait(Ticket ticket) const;
  // Whether all pieces up to `ticket` are read.
  bool done(Ticket ticket) const;
  // All pieces up to this ticket are read.
  Ticket complete() const;
  // The newest ticket.
  Ticket newest() const { return newest_; }

 private:
  struct Stripe {
    Ticket ticket = 0;
    graph::StorageId storage = {};
    std::uint64_t offset = 0;
    std::span<std::byte> out = {};
  };
  void read_stripes();
  void read(const Stripe& stripe, std::optional<Pages>& buffer);
  void read_decoded(const Stripe& stripe, std::optional<Pages>& buffer);
  // Of the stripe's file; null if it is read through the cache.
  const DirectFile* direct_file(const Stripe& stripe);
  void finish(Ticket ticket);

  const StorageReader& reader_;
  FileReading reading_;

  struct Way {
    bool chosen = false;
    std::unique_ptr<DirectFile> direct = nullptr;
  };
  std::mutex ways_mutex_;
  std::vector<Way> ways_;  // for each file

  Ticket newest_ = 0;  // of the thread that starts pieces

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;  // a piece is complete, or one has failed
  std::condition_variable waiting_;          // there are stripes, or the end
  std::deque<Stripe> stripes_;               // not yet begun
  std::deque<std::size_t> left_;             // stripes that are not complete, of the pieces after complete_
  Ticket complete_ = 0;                      // this piece and all before it are complete
  std::size_t being_read_ = 0;               // stripes that threads are reading
  std::exception_ptr failure_;
  bool ends_ = false;
  std::vector<std::jthread> threads_;  // joined first
};

}  // namespace loadline::io
