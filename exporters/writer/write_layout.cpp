// New folders, one part at a time, all parts of a layout, the last step of shares.
#include "exporters/writer/write_layout.h"

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/io/graph_reader.h"
#include "core/io/system_memory.h"
#include "exporters/exporter.h"
#include "exporters/writer/checkpoints.h"
#include "exporters/writer/consume.h"
#include "exporters/writer/forecast.h"
#include "exporters/writer/pipeline.h"
#include "exporters/writer/work_folder.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace loadline::exporters {

// --- Folders that are made for an output, and go again if it fails.

namespace {

// Its destructor removes those that are still empty, unless they are kept.
class NewFolders {
 public:
  NewFolders() = default;
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;
  ~NewFolders() {
    std::error_code ignored;
    for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder)
      std::filesystem::remove(*folder, ignored);
  }

  // Creates a folder and those above it. Throws Error{io}.
  void make(const std::filesystem::path& folder) {
    std::error_code failure;
    if (folder.empty() || std::filesystem::is_directory(folder, failure)) return;
    make(folder.parent_path());
    if (std::filesystem::create_directory(folder, failure)) made_.push_back(folder);
    if (failure) throw system_error(folder.string(), "create the folder", failure.value());
  }
  void keep() { made_.clear(); }

 private:
  std::vector<std::filesystem::path> made_;
};

}  // namespace

// --- Writes one file of a layout as a part in the work folder, from its beginning or from where a run
// stopped.

namespace {

// What all parts of an output share; it must outlive the PartWriter.
struct PartContext {
  const Layout& layout;
  const graph::MetaGraph& source;
  const io::ReadTensor& read;
  Progress& progress;
  Consumption* consumption = nullptr;  // null: the source stays as it is
  io::WritePolicy policy = io::WritePolicy::drop_behind;
  bool refuse_faults = false;
  std::uint64_t step = 0;  // bytes between checkpoints
};

// A file of the layout that is being written; its members must outlive it.
struct OpenPart {
  std::size_t file = 0;  // its number in the layout
  io::OutputFile& out;
  const std::string& path;
  PartLog& log;
};

class PartWriter {
 public:
  PartWriter(const PartContext& context, const PipelineSizes& sizes)
      : context_(context), recipes_(sizes.recipes), pipeline_(sizes) {}

  // Writes all of a file that the log does not have yet, and makes it durable. Returns the last checkpoint:
  // size and hash of the whole.
  Checkpoint write(const OpenPart& part);

  std::uint64_t resumed_bytes() const { return resumed_; }  // that earlier runs had written
  std::uint64_t written_bytes() const { return written_; }
  std::uint64_t peak_anonymous() const { return peak_; }  // of this process, sampled at each window
  const std::vector<FaultyTensor>& faulty() const { return faulty_; }

 private:
  void note_written(const OpenPart& part, std::uint64_t offset, std::span<const std::byte> bytes,
                    std::uint64_t digest);
  void make_durable(const OpenPart& part, const Checkpoint& checkpoint);

  const PartContext& context_;
  std::uint64_t recipes_;
  Pipeline pipeline_;
  std::uint64_t resumed_ = 0, written_ = 0, peak_ = 0;
  std::vector<FaultyTensor> faulty_;
  // of the file being written
  Checkpoint durable_;
  io::Xxh3 unverified_;  // of the bytes behind durable_.at, if the source is consumed
};

// In the order of the file.
std::vector<FaultyTensor> faulty_tensors(const FileContent& content, const LayoutFile& file) {
  std::vector<FaultyTensor> faulty;
  const auto found = content.faults();
  if (found.empty()) return faulty;
  for (const Slot& slot : file.slots)
    if (const auto at = found.find(&slot); at != found.end())
      faulty.push_back({slot.name.str(), slot.dtype, at->second});
  return faulty;
}

void refuse_faults(const FileContent& content, const LayoutFile& file) {
  const WriteReport report{.files = {}, .faulty = faulty_tensors(content, file)};
  if (!report.faulty.empty())
    throw Error(ErrorCode::unsupported, "{}; without --strict they are written so", faults_text(report));
}

Checkpoint PartWriter::write(const OpenPart& part) {
  const LayoutFile& layout = context_.layout.files[part.file];
  std::optional<FileContent> content;
  io::Xxh3 hash;
  const auto restart = [&] {
    content.emplace(layout, context_.source, context_.read, recipes_);
    hash = io::Xxh3();
  };
  restart();
  const std::vector<Checkpoint> logged = part.log.read();
  std::vector<Checkpoint> known = logged;
  std::erase_if(known, [&](const Checkpoint& checkpoint) {
    return checkpoint.at > layout.bytes || !content->can_start_at(checkpoint.at);
  });
  while (!known.empty()) {
    const std::size_t good = matching_checkpoints(
        part.path, known, context_.progress, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
          hash.update(bytes);
          content->pass(offset, bytes);
        });
    if (good == known.size()) break;
    known.resize(good);
    restart();
  }
  durable_ = known.empty() ? Checkpoint{} : known.back();
  // before anything is changed: somebody may still mend it
  if (context_.consumption != nullptr)
    context_.consumption->require_source(part.file, durable_.at, part.path);
  part.log.keep(static_cast<std::size_t>(
      std::ranges::count_if(logged, [&](const Checkpoint& line) { return line.at <= durable_.at; })));
  resumed_ += durable_.at;
  if (context_.consumption != nullptr) context_.consumption->written(part.file, durable_.at);
  if (!known.empty() && durable_.at == layout.bytes) return durable_;

  part.out.set_policy(context_.policy);
  unverified_ = io::Xxh3();
  // a source that is consumed makes room only at checkpoints: nothing may be written ahead of them
  const bool waits = context_.consumption != nullptr;
  pipeline_.run(
      *content, durable_.at, layout.bytes, hash,
      {.write = [&](std::uint64_t at, std::span<const std::byte> bytes) { part.out.write_at(at, bytes); },
       .written =
           [&](std::uint64_t at, std::span<const std::byte> bytes, std::uint64_t digest) {
             if (context_.refuse_faults) refuse_faults(*content, layout);
             note_written(part, at, bytes, digest);
           },
       .step = waits ? context_.step : UINT64_MAX},
      context_.progress);
  if (context_.refuse_faults) refuse_faults(*content, layout);
  std::ranges::move(faulty_tensors(*content, layout), std::back_inserter(faulty_));
  if (durable_.at < layout.bytes || layout.bytes == 0) make_durable(part, {layout.bytes, hash.digest()});
  return durable_;
}

void PartWriter::note_written(const OpenPart& part, std::uint64_t offset, std::span<const std::byte> bytes,
                              std::uint64_t digest) {
  const std::uint64_t end = offset + bytes.size();
  written_ += bytes.size();
  context_.progress.add(bytes.size());
  peak_ = std::max(peak_, io::read_process_memory().rss_anon);
  if (context_.consumption != nullptr) unverified_.update(bytes);
  if (end - durable_.at >= context_.step) make_durable(part, {end, digest});
}

void PartWriter::make_durable(const OpenPart& part, const Checkpoint& checkpoint) {
  part.out.sync();
  if (context_.consumption != nullptr) {
    // nothing is taken from the source before its copy has been seen on the disk
    check_range_read_back(part.path, part.out.path(), durable_.at, checkpoint.at, unverified_.digest());
    unverified_ = io::Xxh3();
  }
  part.log.append(checkpoint);
  durable_ = checkpoint;
  if (context_.consumption != nullptr) context_.consumption->written(part.file, checkpoint.at);
}

}  // namespace

// --- Checks, writes the parts, puts them in place.

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

Checkpoint complete_part(const WorkFolder& work, std::size_t i, const Progress& progress) {
  const WorkFile& file = work.record().files[i];
  const auto log = read_part_log(work.log(i));
  // sparse parts have no log; the mark of a publication stands over whole parts only
  if (log.empty() && work.is_written()) {
    std::error_code failure;
    const std::string path = fs::exists(work.part(i)) ? work.part(i) : work.target(i);
    if (fs::file_size(path, failure) == file.bytes && !failure)
      return {file.bytes, file_hash(path, progress)};
  }
  const std::uint64_t have = log.empty() ? 0 : log.back().at;
  if (log.empty() || have != file.bytes)
    throw Error(ErrorCode::usage, {.file = work.target(i)},
                "{} of its {} bytes are written: run the conversion of its part again", have, file.bytes);
  return log.back();
}

class Writer {
 public:
  Writer(const Layout& layout, const graph::MetaGraph& source, const io::ReadTensor& reader,
         const WriteOptions& options, Progress& progress)
      : layout_(layout),
        source_(source),
        reader_(reader),
        options_(options),
        progress_(progress),
        anon_before_(io::read_process_memory().rss_anon) {}

  WriteReport write() {
    const auto start = std::chrono::steady_clock::now();
    NewFolders folders;
    WorkFolder work = enter(folders);
    try {
      if (!work.is_written()) write_parts(work);
      progress_.check_canceled();
      check_sources(work);
      if (options_.share)
        report_.complete = false;
      else
        finish(work);
      report_.verified = options_.verify;
      report_.peak_rss_bytes = io::peak_resident_bytes();
      report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (report_.complete && options_.published) options_.published(report_);
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
    if (options_.consume) record.removes = consumed_files(source_, options_.consumable_files);
    folders.make(output_folder(layout_));
    for (const LayoutFile& file : layout_.files) folders.make(fs::path(file.path).parent_path());
    return WorkFolder(
        WorkFolder::path_of(layout_), std::move(record),
        {.shared = options_.share.has_value(), .resume = options_.resume, .force = options_.overwrite});
  }

  // All parts are made of the files that were there when the first of them was begun.
  void check_sources(const WorkFolder& work) {
    if (work.is_written()) return;
    for (const SourceState& state : work.record().sources) check_unchanged(state, options_.consume);
  }

  void write_parts(WorkFolder& work) {
    if (work.resumed()) check_sources(work);
    if (options_.consume) consumption_.emplace(layout_, source_, options_.consumable_files, work.consumed());
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
                              .refuse_faults = options_.refuse_faults,
                              .step = std::min(options_.checkpoint_bytes,
                                               consumption_ ? kConsumedStep : options_.checkpoint_bytes)};
    PartWriter writer(context, forecast_.buffers);
    for (const std::size_t file : share_of(layout_, options_.share.value_or(WriteShare{})))
      write_part(work, writer, file);
    report_.bytes_written = writer.written_bytes();
    report_.bytes_resumed = writer.resumed_bytes();
    report_.faulty = writer.faulty();
    report_.peak_host_bytes = writer.peak_anonymous() - std::min(writer.peak_anonymous(), anon_before_);
  }

  io::OutputFile open_part(const WorkFolder& work, std::size_t file) {
    const std::string path = work.part(file);
    io::UniqueFd fd = io::create_for(path, work.target(file));
    if (!fd) fd = io::UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) throw system_error(path, "open", errno);
    return io::OutputFile(std::move(fd), layout_.files[file].path);
  }

  void write_part(WorkFolder& work, PartWriter& writer, std::size_t file) {
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
      work.seal(file, source_state(work.part(file)));
    } else {
      io::OutputFile part = open_part(work, file);
      if (options_.share) part.preallocate(out.bytes);
      const std::string path = work.part(file);
      whole = writer.write({file, part, path, *log});
      work.seal(file, source_state(part.descriptor(), path));
    }
    if (options_.verify) check_read_back(work.part(file), out.path, whole, progress_);
    report_.files.push_back({out.path, out.bytes, whole.xxh3});
    report_.tensors += out.slots.size();
    for (const Slot& slot : out.slots)
      report_.bytes_read += convert::recipe_source_bytes(source_, slot.recipe);
    if (!out.copy_of.empty()) report_.bytes_read += out.bytes;
  }

  // Another name for a file of the source. It is never opened for writing.
  Checkpoint link_part(const WorkFolder& work, std::size_t file, PartLog& log) {
    const LayoutFile& out = layout_.files[file];
    const std::string path = work.part(file);
    std::error_code ignored;
    fs::remove(path, ignored);
    log.keep(0);
    if (::linkat(AT_FDCWD, out.copy_of.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0)
      throw system_error(out.path, "link it to '" + safe_display(out.copy_of, 200) + "'", errno);
    const Checkpoint whole{out.bytes, file_hash(path, progress_)};
    log.append(whole);
    progress_.add(out.bytes);
    return whole;
  }

  // Headers, pieces and vectors that no source holds; all else is a hole.
  void write_sparse(WorkFolder& work) {
    for (std::size_t i = 0; i < layout_.files.size(); ++i) {
      const LayoutFile& file = layout_.files[i];
      io::OutputFile part = open_part(work, i);
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
      work.seal(i, source_state(part.descriptor(), work.part(i)));
      progress_.add(file.bytes);
      report_.bytes_written += end + computed;
      report_.tensors += file.slots.size();
      report_.files.push_back({file.path, file.bytes, 0});
    }
  }

  // Returns their bytes.
  std::uint64_t write_computed(const LayoutFile& file, io::OutputFile& part) const {
    std::uint64_t written = 0;
    for (const Slot& slot : file.slots) {
      if (slot.bytes == 0 || !convert::recipe_tensors(source_, slot.recipe).empty()) continue;
      convert::RecipeReader reader(source_, reader_, slot.recipe, convert::RecipeReader::kLeastMemory);
      std::vector<std::byte> bytes(static_cast<std::size_t>(slot.bytes));
      reader.read(0, bytes);
      part.write_at(slot.offset, bytes);
      written += slot.bytes;
    }
    return written;
  }

  void finish(WorkFolder& work) {
    if (report_.files.empty())
      for (std::size_t i = 0; i < layout_.files.size(); ++i) {
        const Checkpoint whole = complete_part(work, i, progress_);
        report_.files.push_back({work.target(i), whole.at, whole.xxh3});
      }
    work.publish();
  }

  const Layout& layout_;
  const graph::MetaGraph& source_;
  const io::ReadTensor& reader_;
  const WriteOptions& options_;
  Progress& progress_;
  WriteForecast forecast_;
  std::uint64_t anon_before_;  // measured before the buffers are allocated
  std::optional<Consumption> consumption_;
  WriteReport report_;
};

}  // namespace

WriteReport write_layout(const Layout& layout, const graph::MetaGraph& source, const io::ReadTensor& reader,
                         const WriteOptions& options, Progress& progress) {
  return Writer(layout, source, reader, options, progress).write();
}

std::string faults_text(const WriteReport& report) {
  constexpr std::size_t kMostNamed = 3;
  const auto sentence = [&](std::uint64_t convert::NumberFaults::*count, std::string_view what) {
    std::uint64_t numbers = 0;
    std::vector<std::string> names;
    graph::DType type = graph::DType::opaque;
    for (const FaultyTensor& tensor : report.faulty) {
      if (tensor.faults.*count == 0) continue;
      numbers += tensor.faults.*count;
      names.push_back(tensor.name);
      if (names.size() == 1) type = tensor.dtype;
    }
    if (names.empty()) return std::string();
    return fmt::format("{} in {} {}: {}", counted(numbers, "number"), counted(names.size(), "tensor"),
                       fmt::format(fmt::runtime(what), graph::dtype_info(type).name),
                       join_names(names, kMostNamed));
  };
  const std::string overflowed = sentence(&convert::NumberFaults::overflowed, "too large for {}"),
                    special = sentence(&convert::NumberFaults::special, "infinite or NaN in the source");
  return overflowed + (overflowed.empty() || special.empty() ? "" : "; ") + special;
}

// --- Reads every part back, then publishes.

namespace {

namespace fs = std::filesystem;

// Work with a record, for an output or in a folder.
std::vector<Remains> find_work(const std::string& out) {
  const bool folder = io::is_folder(out);
  const fs::path parent = fs::path(out).parent_path();
  std::vector<Remains> all = find_remains(folder ? out : parent.empty() ? "." : parent.string());
  const std::string name = fs::path(out).filename().string();
  const std::string first_of_split = fs::path(out).stem().string() + "-00001-of-";
  std::erase_if(all, [&](const Remains& remains) {
    if (!remains.record || remains.record->files.empty()) return true;
    const std::string& first = remains.record->files.front().target;
    return !folder && first != name && !first.starts_with(first_of_split);
  });
  return all;
}

}  // namespace

namespace {

WriteReport end_work(WorkFolder& work, bool overwrite, Progress& progress, const Published& published) {
  const auto start = std::chrono::steady_clock::now();
  WriteReport report;
  for (std::size_t i = 0; i < work.record().files.size(); ++i) {
    const Checkpoint whole = complete_part(work, i, progress);
    progress.add_total(whole.at);
    report.files.push_back({work.target(i), whole.at, whole.xxh3});
  }
  const bool before = work.is_written();
  for (std::size_t i = 0; i < report.files.size(); ++i) {
    const WrittenFile& file = report.files[i];
    // what an interrupted run has put in place already is read there
    const bool placed = before && !fs::exists(work.part(i));
    const std::string path = placed ? work.target(i) : work.part(i);
    if (!placed) work.seal(i, source_state(path));
    check_read_back(path, file.path, {file.bytes, file.xxh3}, progress);
    report.bytes_read += file.bytes;
  }
  for (const SourceState& state : work.record().sources)
    if (!before && fs::exists(state.path)) check_unchanged(state, !work.record().removes.empty());
  progress.check_canceled();
  work.allow_replacing(overwrite);
  work.publish();
  report.verified = true;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (published) published(report);
  work.remove();
  return report;
}

}  // namespace

WriteReport join_parts(const std::string& out, bool overwrite, Progress& progress,
                       const Published& published) {
  const std::vector<Remains> found = find_work(out);
  if (found.empty()) throw Error(ErrorCode::usage, {.file = out}, "there are no parts to join");
  if (found.size() > 1)
    throw Error(ErrorCode::usage, {.file = out}, "holds the parts of {} outputs: name one of them",
                found.size());
  WorkFolder work(found.front().path);
  return end_work(work, overwrite, progress, published);
}

WriteReport end_publication(const std::string& work_folder, Progress& progress) {
  WorkFolder work(work_folder);
  if (!work.is_written())
    throw Error(ErrorCode::usage, {.file = work_folder}, "holds no files that were being put in place");
  return end_work(work, false, progress, {});
}

bool waits_for_last_step(const std::string& out, const std::string& source) {
  if (!io::is_folder(out) && !io::is_folder(fs::path(out).parent_path().string()) &&
      fs::path(out).has_parent_path())
    return false;
  const std::vector<Remains> found = find_work(out);
  const std::string wanted = fs::absolute(source).lexically_normal().string();
  const auto is_of_source = [&](const SourceState& state) {
    const std::string path = fs::path(state.path).lexically_normal().string();
    return path == wanted || path.starts_with(wanted.ends_with('/') ? wanted : wanted + "/");
  };
  return found.size() == 1 && !found.front().alive && found.front().record &&
         std::ranges::any_of(found.front().record->sources, is_of_source) &&
         (found.front().pending || (found.front().published && !found.front().record->removes.empty()));
}

}  // namespace loadline::exporters
