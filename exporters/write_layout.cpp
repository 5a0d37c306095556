// Streams every file of a layout through one bounded buffer, in file order, from one thread.
#include "exporters/write_layout.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/xxh3.h"
#include "core/io/atomic_file.h"
#include "core/io/process_memory.h"
#include "core/io/source_file.h"
#include "exporters/header_copy.h"
#include "exporters/output_check.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <zlib.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLeastBuffer = 64 << 10;
constexpr std::size_t kMostBuffer = 4 << 20;  // larger buffers do not write faster

// Creates the folders of an output. Its destructor removes those that are still empty, unless they are kept.
class NewFolders {
 public:
  void make(const fs::path& folder) {
    std::error_code failure;
    if (folder.empty() || fs::is_directory(folder, failure)) return;
    make(folder.parent_path());
    if (fs::create_directory(folder, failure)) made_.push_back(folder);
    if (failure) throw system_error(folder.string(), "create the folder", failure.value());
  }
  void keep() { made_.clear(); }
  ~NewFolders() {
    std::error_code ignored;
    for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) fs::remove(*folder, ignored);
  }

 private:
  std::vector<fs::path> made_;
};

// How a budget is shared: `out` collects what is written; recipes that are no copies compute in the rest.
struct Buffers {
  Buffers(std::uint64_t budget, bool computes) {
    const std::uint64_t share = computes ? budget / 2 : budget;
    const auto bytes = static_cast<std::size_t>(std::clamp<std::uint64_t>(share, kLeastBuffer, kMostBuffer));
    out.resize(bytes / 64 * 64);
    if (computes)
      recipes = std::max<std::uint64_t>(budget - std::min(budget, share), RecipeReader::kLeastMemory);
  }
  std::vector<std::byte> out;
  std::uint64_t recipes = 0;  // bytes
};

// Computes the checksums of a file while its bytes pass, and puts them where they belong.
class RunningCrc {
 public:
  RunningCrc() = default;
  explicit RunningCrc(std::span<const Checksum> wanted) : wanted_(wanted), values_(wanted.size(), 0) {
    for (std::size_t i = 0; i < wanted.size(); ++i)
      for (const std::uint64_t at : wanted[i].at) places_.emplace_back(at, i);
    std::ranges::sort(places_);
  }

  // `bytes` are those of the file from `offset` on; calls follow each other without gaps.
  void add(std::uint64_t offset, std::span<const std::byte> bytes) {
    const std::uint64_t end = offset + bytes.size();
    for (; next_ < wanted_.size() && wanted_[next_].begin < end; ++next_) {
      const Checksum& range = wanted_[next_];
      const std::uint64_t from = std::max(range.begin, offset), to = std::min(range.end, end);
      if (from < to)
        values_[next_] = static_cast<std::uint32_t>(::crc32_z(
            values_[next_], reinterpret_cast<const Bytef*>(bytes.data() + (from - offset)), to - from));
      if (range.end > end) return;
    }
  }

  // Puts checksums into a piece of the file.
  void fill_in(std::uint64_t offset, std::span<std::byte> piece) const {
    auto place = std::ranges::lower_bound(places_, offset, {}, &Place::first);
    for (; place != places_.end() && place->first < offset + piece.size(); ++place)
      std::memcpy(piece.data() + (place->first - offset), &values_[place->second], sizeof(std::uint32_t));
  }

 private:
  using Place = std::pair<std::uint64_t, std::size_t>;  // offset, position in wanted_
  std::span<const Checksum> wanted_;
  std::vector<std::uint32_t> values_;
  std::vector<Place> places_;
  std::size_t next_ = 0;
};

class Writer {
 public:
  Writer(const Layout& layout, const MetaGraph& source, const ReadTensor& reader, const WriteOptions& options,
         Progress& progress)
      : layout_(layout),
        source_(source),
        reader_(reader),
        options_(options),
        progress_(progress),
        anon_before_(read_process_memory().rss_anon),
        buffers_(options.memory_budget, computes()) {
    report_.buffer_bytes = buffers_.out.size() + buffers_.recipes;
  }

  WriteReport write() {
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t total = total_bytes(layout_);
    superseded_ = check_output(layout_, source_, options_.overwrite, options_.sparse ? 0 : total).superseded;
    progress_.add_total(options_.verify ? 2 * total : total);

    NewFolders folders;
    std::vector<AtomicFile> outputs;
    for (const LayoutFile& file : layout_.files) {
      folders.make(fs::path(file.path).parent_path());
      outputs.emplace_back(file.path);
      // all disk space is reserved before the first byte is written
      options_.sparse ? outputs.back().set_size(file.bytes) : outputs.back().preallocate(file.bytes);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) write_file(layout_.files[i], outputs[i]);
    for (AtomicFile& output : outputs) {
      progress_.check_cancelled();
      output.sync();
    }
    if (options_.verify)
      for (std::size_t i = 0; i < outputs.size(); ++i) verify_file(outputs[i], report_.files[i]);
    progress_.check_cancelled();
    publish(outputs);
    folders.keep();
    report_.verified = options_.verify;
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  bool computes() const {
    return std::ranges::any_of(layout_.files, [](const LayoutFile& file) {
      return std::ranges::any_of(file.slots, [](const Slot& slot) { return !copied_tensor(slot.recipe); });
    });
  }

  // Without `overwrite`, another writer may have created a target meanwhile: then the files already in place
  // are removed again.
  void publish(std::vector<AtomicFile>& outputs) {
    std::size_t published = 0;
    try {
      for (; published < outputs.size(); ++published)
        outputs[published].rename_into_place(options_.overwrite);
    } catch (...) {
      std::error_code ignored;
      if (!options_.overwrite)
        for (std::size_t i = 0; i < published; ++i) fs::remove(outputs[i].target(), ignored);
      throw;
    }
    for (const fs::path& old : superseded_) {
      std::error_code failure;
      if (!fs::remove(old, failure) && failure)
        throw system_error(old.string(), "remove this part of the model that was replaced", failure.value());
    }
  }

  void write_file(const LayoutFile& file, AtomicFile& output) {
    output_ = &output;
    report_.tensors += file.slots.size();
    hash_ = Xxh3();
    crc_ = RunningCrc(file.checksums);
    at_ = 0;
    append_header(file);
    append_copy(file);
    if (options_.sparse) {
      flush();
      for (const Piece& piece : file.pieces) output_->write_at(piece.offset, piece.bytes);
      progress_.add(file.bytes - at_);
      report_.files.push_back({file.path, file.bytes, 0});
      return;
    }
    auto piece = file.pieces.begin();
    const auto pieces_before = [&](std::uint64_t offset) {
      for (; piece != file.pieces.end() && piece->offset < offset; ++piece) {
        pad_to(piece->offset);
        append_piece(*piece);
      }
    };
    for (const Slot& slot : file.slots) {
      pieces_before(slot.offset);
      pad_to(slot.offset);
      append_tensor(slot);
    }
    pieces_before(UINT64_MAX);
    pad_to(file.bytes);
    flush();
    report_.files.push_back({file.path, file.bytes, hash_.digest()});
  }

  std::span<std::byte> room() {
    if (filled_ == buffers_.out.size()) flush();
    return std::span(buffers_.out).subspan(filled_);
  }

  void append_header(const LayoutFile& file) {
    auto rest = std::span<const std::byte>(file.header);
    for (const HeaderCopy& copy : file.copies) {
      const auto before = static_cast<std::size_t>(copy.at - at_ - filled_);
      append(rest.first(before));
      rest = rest.subspan(before);
      copy_elements(source_, copy.array, [this](std::span<const std::byte> bytes) { append(bytes); });
      report_.bytes_read += copy.array.bytes;
    }
    append(rest);
  }

  // A file that changed since it was listed would be cut or padded.
  void append_copy(const LayoutFile& file) {
    if (file.copy_of.empty()) return;
    const SourceFile source = SourceFile::open(file.copy_of);
    if (source.size() != file.bytes)
      throw Error(ErrorCode::io, {.file = file.copy_of}, "has {} bytes now, it had {}", source.size(),
                  file.bytes);
    append_from(file.bytes, 1, [&](std::uint64_t at, std::span<std::byte> out) { source.read_at(at, out); });
    report_.bytes_read += file.bytes;
  }

  // Counts bytes that were put where room() said.
  void take(std::span<const std::byte> bytes) {
    crc_.add(at_ + filled_, bytes);
    filled_ += bytes.size();
  }

  void append_piece(const Piece& piece) {
    std::vector<std::byte> bytes = piece.bytes;
    crc_.fill_in(piece.offset, bytes);
    append(bytes);
  }

  void append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto free = room();
      const std::size_t n = std::min(free.size(), bytes.size());
      std::copy_n(bytes.begin(), n, free.begin());
      take(free.first(n));
      bytes = bytes.subspan(n);
    }
  }

  void pad_to(std::uint64_t offset) {
    while (at_ + filled_ < offset) {
      const auto free = room();
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(free.size(), offset - at_ - filled_));
      std::fill_n(free.begin(), n, std::byte{0});
      take(free.first(n));
    }
  }

  void append_tensor(const Slot& slot) {
    if (const auto tensor = copied_tensor(slot.recipe)) {
      append_from(slot.bytes, 1,
                  [&](std::uint64_t at, std::span<std::byte> out) { reader_(*tensor, at, out); });
    } else {
      RecipeReader computed(source_, reader_, slot.recipe, buffers_.recipes);
      append_from(slot.bytes, dtype_info(slot.dtype).block_bytes,
                  [&](std::uint64_t at, std::span<std::byte> out) { computed.read(at, out); });
    }
    report_.bytes_read += recipe_source_bytes(source_, slot.recipe);
  }

  // Calls `fill` for pieces of whole elements.
  template <typename Fill>
  void append_from(std::uint64_t bytes, std::uint64_t element, Fill fill) {
    for (std::uint64_t done = 0; done < bytes;) {
      auto free = room();
      if (free.size() < element) flush(), free = room();
      const std::uint64_t n = std::min<std::uint64_t>(free.size() / element * element, bytes - done);
      const auto piece = free.first(static_cast<std::size_t>(n));
      fill(done, piece);
      take(piece);
      done += n;
    }
  }

  void flush() {
    progress_.check_cancelled();
    const auto bytes = std::span<const std::byte>(buffers_.out).first(filled_);
    output_->write_at(at_, bytes);
    hash_.update(bytes);
    at_ += filled_;
    report_.bytes_written += filled_;
    progress_.add(filled_);
    filled_ = 0;
    const std::uint64_t anon = read_process_memory().rss_anon;
    report_.peak_host_bytes =
        std::max(report_.peak_host_bytes, anon > anon_before_ ? anon - anon_before_ : 0);
  }

  // Drops the file's cached pages first, so that the bytes come from the disk.
  void verify_file(const AtomicFile& output, const WrittenFile& written) {
    const SourceFile file = SourceFile::open(output.temporary());
    ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
    Xxh3 hash;
    for (std::uint64_t at = 0; at < file.size();) {
      progress_.check_cancelled();
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(buffers_.out.size(), file.size() - at));
      const auto bytes = std::span(buffers_.out).first(n);
      file.read_at(at, bytes);
      hash.update(bytes);
      at += n;
      progress_.add(n);
    }
    if (file.size() != written.bytes || hash.digest() != written.xxh3)
      throw Error(ErrorCode::io, {.file = written.path},

                  "reads back differently: hash {:016x}, {:016x} was written; the disk or memory is faulty",
                  hash.digest(), written.xxh3);
  }

  const Layout& layout_;
  const MetaGraph& source_;
  const ReadTensor& reader_;
  const WriteOptions& options_;
  Progress& progress_;
  std::uint64_t anon_before_;  // measured before the buffers are allocated
  Buffers buffers_;
  std::vector<fs::path> superseded_;
  WriteReport report_;
  // of the file being written
  AtomicFile* output_ = nullptr;
  Xxh3 hash_;
  RunningCrc crc_ = {};
  std::uint64_t at_ = 0;    // bytes already in the file
  std::size_t filled_ = 0;  // bytes waiting in buffers_.out
};

}  // namespace

WriteReport write_layout(const Layout& layout, const MetaGraph& source, const ReadTensor& reader,
                         const WriteOptions& options, Progress& progress) {
  return Writer(layout, source, reader, options, progress).write();
}

}  // namespace loadline
