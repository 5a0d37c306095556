// Streams every file of a layout through one bounded buffer, in file order, from one thread.
#include "exporters/write_layout.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/xxh3.h"
#include "core/convert/cast.h"
#include "core/graph/hf_names.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/io/process_memory.h"
#include "core/io/source_file.h"
#include "exporters/header_copy.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fcntl.h>

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

// The buffers of one write_layout call, shared by its files.
struct Buffers {
  explicit Buffers(std::uint64_t budget, bool casts) {
    const std::uint64_t share = casts ? budget / 2 : budget;
    const auto bytes = static_cast<std::size_t>(std::clamp<std::uint64_t>(share, kLeastBuffer, kMostBuffer));
    out.resize(bytes / 64 * 64);
    // a cast reads at most as many elements as fit in `out`; the widest source element is 8 bytes
    if (casts) in.resize(out.size());
  }
  std::vector<std::byte> out;
  std::vector<std::byte> in;
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
        buffers_(options.memory_budget, layout_casts()) {
    report_.buffer_bytes = buffers_.out.size() + buffers_.in.size();
  }

  WriteReport write() {
    const auto start = std::chrono::steady_clock::now();
    check_targets();
    find_superseded();
    std::uint64_t total = 0;
    for (const LayoutFile& file : layout_.files) total += file.bytes;
    progress_.add_total(options_.verify ? 2 * total : total);
    if (!options_.sparse) check_room(total);

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
  bool layout_casts() const {
    for (const LayoutFile& file : layout_.files)
      for (const TensorSlot& slot : file.slots)
        if (slot.to != source_.tensor(slot.tensor).dtype) return true;
    return false;
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

  // Replaced files free no space before the renames. If the system does not tell the free space, a full disk
  // shows only while writing.
  void check_room(std::uint64_t needed) const {
    if (layout_.files.empty()) return;
    const auto disk = disk_space(layout_.files.front().path);
    if (disk && needed > disk->available)
      throw Error(ErrorCode::io,
                  {.file = layout_.folder.empty() ? layout_.files.front().path : layout_.folder},
                  "needs {} ({} bytes) in all, the disk of '{}' has {} free ({} bytes)", format_bytes(needed),
                  needed, safe_display(disk->folder, 100), format_bytes(disk->available), disk->available);
  }

  // Weight files in the output folder that this layout does not write.
  void find_superseded() {
    std::error_code failure;
    if (layout_.folder.empty() || !is_folder(layout_.folder)) return;
    for (fs::directory_iterator at(layout_.folder, failure), end; !failure && at != end;
         at.increment(failure)) {
      const fs::path path = at->path();
      const std::string name = path.filename().string();
      const bool written = std::ranges::any_of(
          layout_.files, [&](const LayoutFile& file) { return fs::path(file.path).filename() == name; });
      if (written) continue;
      // opening the folder would find that index before the new model
      if (name.ends_with(kHfIndexSuffix) && !is_hf_weight_file(name))
        throw Error(ErrorCode::usage, {.file = path.string()}, "is another model's index; write elsewhere");
      if (!is_hf_weight_file(name)) continue;
      refuse_input(path);
      std::error_code ignored;
      if (at->is_directory(ignored)) throw Error(ErrorCode::usage, {.file = path.string()}, "is a folder");
      superseded_.push_back(path);
    }
    if (failure) throw system_error(layout_.folder, "list the folder", failure.value());
    if (!superseded_.empty() && !options_.overwrite)
      throw Error(ErrorCode::usage, {.file = superseded_.front().string()},
                  "belongs to another model in the output folder")
          .with({"force", "on"});
  }

  // No target, and no file to be removed, may be a file of the source model, not even through links.
  void refuse_input(const fs::path& target) const {
    std::error_code failure;
    for (const ModelFile& input : source_.files)
      for (const fs::path& own : {fs::path(input.path), fs::path(input.path).parent_path() / "config.json"})
        if (fs::equivalent(target, own, failure))
          throw Error(ErrorCode::usage, {.file = target.string()},
                      "is a file of the model being read; write elsewhere");
  }

  void check_targets() const {
    for (const LayoutFile& file : layout_.files) {
      std::error_code failure;
      const fs::path target(file.path);
      if (!fs::exists(fs::symlink_status(target, failure))) continue;
      refuse_input(target);
      if (fs::is_directory(target, failure))
        throw Error(ErrorCode::usage, {.file = file.path}, "is a folder");
      if (!options_.overwrite)
        throw Error(ErrorCode::usage, {.file = file.path}, "exists").with({"force", "on"});
    }
  }

  void write_file(const LayoutFile& file, AtomicFile& output) {
    output_ = &output;
    report_.tensors += file.slots.size();
    hash_ = Xxh3();
    at_ = 0;
    append_header(file);
    if (options_.sparse) {
      flush();
      progress_.add(file.bytes - at_);
      report_.files.push_back({file.path, file.bytes, 0});
      return;
    }
    for (const TensorSlot& slot : file.slots) {
      pad_to(slot.offset);
      append_tensor(slot);
    }
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

  void append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto free = room();
      const std::size_t n = std::min(free.size(), bytes.size());
      std::copy_n(bytes.begin(), n, free.begin());
      filled_ += n;
      bytes = bytes.subspan(n);
    }
  }

  void pad_to(std::uint64_t offset) {
    while (at_ + filled_ < offset) {
      const auto free = room();
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(free.size(), offset - at_ - filled_));
      std::fill_n(free.begin(), n, std::byte{0});
      filled_ += n;
    }
  }

  void append_tensor(const TensorSlot& slot) {
    const DType from = source_.tensor(slot.tensor).dtype;
    const std::uint64_t in_size = slot.to == from ? 1 : dtype_info(from).block_bytes;
    const std::uint64_t out_size = slot.to == from ? 1 : dtype_info(slot.to).block_bytes;
    for (std::uint64_t done = 0, count = slot.bytes / out_size; done < count;) {
      auto free = room();
      if (free.size() < out_size) flush(), free = room();
      const std::uint64_t fits =
          in_size == 1 ? free.size() : std::min(free.size() / out_size, buffers_.in.size() / in_size);
      const std::uint64_t n = std::min(fits, count - done);
      const auto out = free.first(static_cast<std::size_t>(n * out_size));
      if (slot.to == from) {
        reader_(slot.tensor, done, out);
      } else {
        const auto in = std::span(buffers_.in).first(static_cast<std::size_t>(n * in_size));
        reader_(slot.tensor, done * in_size, in);
        cast(from, in, slot.to, out);
      }
      filled_ += out.size();
      report_.bytes_read += n * in_size;
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
  std::uint64_t at_ = 0;    // bytes already in the file
  std::size_t filled_ = 0;  // bytes waiting in buffers_.out
};

}  // namespace

WriteReport write_layout(const Layout& layout, const MetaGraph& source, const ReadTensor& reader,
                         const WriteOptions& options, Progress& progress) {
  return Writer(layout, source, reader, options, progress).write();
}

}  // namespace loadline
