// Checks, writes the parts, puts them in place.
#include "exporters/writer/write_layout.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/system_memory.h"
#include "exporters/writer/consume.h"
#include "exporters/writer/forecast_2.h"
#include "exporters/writer/new_folders.h"
#include "exporters/writer/part_writer.h"
#include "exporters/writer/read_back.h"
#include "exporters/writer/work_folder.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <numeric>

#include <fcntl.h>
#include <unistd.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;

// The files of each process, about as many bytes for each: largest first, to the process with least.
std::vector<std::size_t> share_of(const Layout& layout, const WriteShare& share) {
  std::vector<std::size_t> by_size(layout.files.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::stable_sort(
      by_size, [&](std::size_t a, std::size_t b) { return layout.files[a].bytes > layout.files[b].bytes; });
  std::vector<std::uint64_t> bytes(share.count, 0);
  std::vector<std::size_t> own, others;
  for (const std::size_t file : by_size) {
    const auto least = std::ranges::min_element(bytes);
    *least += layout.files[file].bytes;
    (least - bytes.begin() == static_cast<std::ptrdiff_t>(share.index) ? own : others).push_back(file);
  }
  std::ranges::sort(own);
  // what the others have not begun, or died over, comes after the own share
  std::ranges::sort(others);
  own.insert(own.end(), others.begin(), others.end());
  return own;
}

class Writer {
 public:
  Writer(const Layout& layout, const MetaGraph& source, const ReadTensor& reader, const WriteOptions& options,
         Progress& progress)
      : layout_(layout),
        source_(source),
        reader_(reader),
        options_(options),
        progress_(progress),
        anon_before_(read_process_memory().rss_anon) {}

  WriteReport write() {
    const auto start = std::chrono::steady_clock::now();
    NewFolders folders;
    WorkFolder work = enter(folders);
    try {
      if (!work.publishing()) write_parts(work);
      progress_.check_cancelled();
      check_sources(work);
      if (options_.share)
        report_.complete = false;
      else
        finish(work);
    } catch (...) {
      const bool precious = consumption_ && consumption_->has_begun();
      if (options_.resume || options_.share || precious) work.keep();
      throw;
    }
    if (options_.share)
      work.keep();
    else
      work.remove();
    folders.keep();
    report_.verified = options_.verify;
    report_.peak_rss_bytes = peak_resident_bytes();
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  // Everything that can fail before a byte is written.
  WorkFolder enter(NewFolders& folders) {
    forecast_ = forecast_write(layout_, source_, options_);
    WorkRecord record = work_record(layout_, layout_sources(layout_, source_));
    record.replaces = options_.overwrite;
    for (const fs::path& old : forecast_.output.superseded)
      record.superseded.push_back(old.filename().string());
    if (options_.consume) record.removes = consumed_files(source_);
    folders.make(output_folder(layout_));
    for (const LayoutFile& file : layout_.files) folders.make(fs::path(file.path).parent_path());
    return WorkFolder(
        WorkFolder::path_of(layout_), std::move(record),
        {.shared = options_.share.has_value(), .resume = options_.resume, .force = options_.overwrite});
  }

  // All parts are made of the files that were there when the first of them was begun.
  void check_sources(const WorkFolder& work) {
    if (work.publishing()) return;
    for (const SourceState& state : work.record().sources) check_unchanged(state, options_.consume);
  }

  void write_parts(WorkFolder& work) {
    if (work.resumed()) check_sources(work);
    if (options_.consume) consumption_.emplace(layout_, source_, work.consumed());
    const std::uint64_t total = total_bytes(layout_);
    // all disk space is reserved before the first byte is written, unless the source makes room for it
    if (!consumption_ && !options_.share && !options_.sparse)
      for (std::size_t i = 0; i < layout_.files.size(); ++i)
        if (!layout_.files[i].link) open_part(work, i).preallocate(layout_.files[i].bytes);
    progress_.add_total(options_.verify ? 2 * total : total);
    if (options_.sparse) return write_sparse(work);

    report_.buffer_bytes = forecast_.buffers.bytes();
    const PartContext context{.layout = layout_,
                              .source = source_,
                              .read = reader_,
                              .progress = progress_,
                              .consumption = consumption_ ? &*consumption_ : nullptr,
                              .policy = options_.policy,
                              .step = std::min(options_.checkpoint_bytes,
                                               consumption_ ? kConsumedStep : options_.checkpoint_bytes)};
    PartWriter writer(context, forecast_.buffers);
    for (const std::size_t file : share_of(layout_, options_.share.value_or(WriteShare{})))
      write_part(work, writer, file);
    report_.bytes_written = writer.written_bytes();
    report_.bytes_resumed = writer.resumed_bytes();
    report_.peak_host_bytes = writer.peak_anonymous() - std::min(writer.peak_anonymous(), anon_before_);
  }

  OutputFile open_part(const WorkFolder& work, std::size_t file) {
    const std::string path = work.part(file);
    UniqueFd fd = create_for(path, work.target(file));
    if (!fd) fd = UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) throw system_error(path, "open", errno);
    return OutputFile(std::move(fd), layout_.files[file].path);
  }

  void write_part(const WorkFolder& work, PartWriter& writer, std::size_t file) {
    const LayoutFile& out = layout_.files[file];
    auto log = PartLog::claim(work.log(file));
    if (!log) return;  // another process writes it
    if (options_.share) {
      const auto known = log->read();
      if (!known.empty() && known.back().at == out.bytes)
        return;  // another process wrote it; joining verifies
    }
    Checkpoint whole;
    if (out.link) {
      whole = link_part(work, file, *log);
    } else {
      OutputFile part = open_part(work, file);
      if (options_.share) part.preallocate(out.bytes);
      const std::string path = work.part(file);
      whole = writer.write({file, part, path, *log});
    }
    if (options_.verify) check_read_back(work.part(file), out.path, whole, progress_);
    report_.files.push_back({out.path, out.bytes, whole.xxh3});
    report_.tensors += out.slots.size();
    for (const Slot& slot : out.slots) report_.bytes_read += recipe_source_bytes(source_, slot.recipe);
    if (!out.copy_of.empty()) report_.bytes_read += out.bytes;
  }

  // Another name for a file of the source. It is never opened for writing.
  Checkpoint link_part(const WorkFolder& work, std::size_t file, PartLog& log) {
    const LayoutFile& out = layout_.files[file];
    const std::string path = work.part(file);
    std::error_code ignored;
    fs::remove(path, ignored);
    log.clear();
    if (::linkat(AT_FDCWD, out.copy_of.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0)
      throw system_error(out.path, "link it to '" + safe_display(out.copy_of, 200) + "'", errno);
    const Checkpoint whole{out.bytes, file_hash(path, progress_)};
    log.append(whole);
    progress_.add(out.bytes);
    return whole;
  }

  // Headers, pieces and vectors that no source holds; all else is a hole.
  void write_sparse(const WorkFolder& work) {
    for (std::size_t i = 0; i < layout_.files.size(); ++i) {
      const LayoutFile& file = layout_.files[i];
      OutputFile part = open_part(work, i);
      part.set_size(file.bytes);
      HeaderStream header(file, source_);
      std::vector<std::byte> buffer(1 << 20);
      const std::uint64_t end = header_bytes(file);
      for (std::uint64_t at = 0; at < end;) {
        const auto bytes = std::span(buffer).first(
            static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), end - at)));
        header.read(bytes);
        part.write_at(at, bytes);
        at += bytes.size();
      }
      for (const Piece& piece : file.pieces) part.write_at(piece.offset, piece.bytes);
      const std::uint64_t computed = write_computed(file, part);
      part.sync();
      progress_.add(file.bytes);
      report_.bytes_written += end + computed;
      report_.tensors += file.slots.size();
      report_.files.push_back({file.path, file.bytes, 0});
    }
  }

  // Returns their bytes.
  std::uint64_t write_computed(const LayoutFile& file, OutputFile& part) const {
    std::uint64_t written = 0;
    for (const Slot& slot : file.slots) {
      if (slot.bytes == 0 || !recipe_tensors(source_, slot.recipe).empty()) continue;
      RecipeReader reader(source_, reader_, slot.recipe, RecipeReader::kLeastMemory);
      std::vector<std::byte> bytes(static_cast<std::size_t>(slot.bytes));
      reader.read(0, bytes);
      part.write_at(slot.offset, bytes);
      written += slot.bytes;
    }
    return written;
  }

  void finish(WorkFolder& work) {
    if (report_.files.empty())
      for (std::size_t i = 0; i < layout_.files.size(); ++i)
        if (const auto log = read_part_log(work.log(i)); !log.empty())
          report_.files.push_back({work.target(i), log.back().at, log.back().xxh3});
    work.publish();
  }

  const Layout& layout_;
  const MetaGraph& source_;
  const ReadTensor& reader_;
  const WriteOptions& options_;
  Progress& progress_;
  WriteForecast forecast_;
  std::uint64_t anon_before_;  // measured before the buffers are allocated
  std::optional<Consumption> consumption_;
  WriteReport report_;
};

}  // namespace

WriteReport write_layout(const Layout& layout, const MetaGraph& source, const ReadTensor& reader,
                         const WriteOptions& options, Progress& progress) {
  return Writer(layout, source, reader, options, progress).write();
}

}  // namespace loadline
