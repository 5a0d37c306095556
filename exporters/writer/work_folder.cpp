// Locks, records and renames. Whatever moment a process dies at, the next one finds either no folder, or one
// whose lock is free.
#include "exporters/writer/work_folder.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/io/source_file.h"
#include "core/io/unfinished.h"
#include "exporters/writer/checkpoints.h"
#include "exporters/writer/consume.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

namespace loadline::exporters {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPublishedName = "published";
constexpr std::string_view kRecordName = "job.json";
constexpr std::string_view kConsumedName = "consumed";
constexpr std::uint64_t kMostRecord = 64 << 20;

std::string in(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}
std::string record_path(const std::string& folder) { return in(folder, kRecordName); }

bool exists(const std::string& path) {
  std::error_code failure;
  return fs::exists(fs::symlink_status(path, failure));
}

std::optional<WorkRecord> read_record(const std::string& folder) {
  const std::string path = record_path(folder);
  if (!exists(path)) return std::nullopt;
  const io::SourceFile file = io::SourceFile::open(path);
  if (file.size() > kMostRecord)
    throw Error(ErrorCode::limit, {.file = path}, "has {} bytes, a record has at most {}", file.size(),
                kMostRecord);
  return parse_record(file.text_at(0, file.size()), path);
}

std::string consumed_mark(const std::string& source) {
  return in(fs::path(source).parent_path().string(), io::kConsumedMark);
}

// A mark that cannot be read may be of this work.
bool may_have_marked(const std::string& work, const std::string& source) {
  const auto mark = io::read_mark(consumed_mark(source));
  return mark && (mark->any_file || io::is_by(*mark, work));
}

// What was taken from the sources, which are marked once the list has its first line.
void add_consumed(Remains& remains) {
  ConsumedLog log;
  if (const std::string path = in(remains.path, kConsumedName); exists(path)) {
    const io::SourceFile file = io::SourceFile::open(path);
    log = parse_consumed(file.text_at(0, file.size()));
  }
  for (const ConsumedRange& range : log.ranges) remains.consumed += range.end - range.begin;
  if (log.damaged)
    remains.list = ConsumedList::damaged;
  else if (log.ranges.empty() && remains.record &&
           std::ranges::any_of(remains.record->removes, [&](const std::string& source) {
             return may_have_marked(remains.path, source);
           }))
    remains.list = ConsumedList::lost;
}

// Whether all targets of a record are there, in their sizes.
bool is_in_place(const std::string& work, const WorkRecord& record) {
  return std::ranges::all_of(record.files, [&](const WorkFile& file) {
    std::error_code failure;
    return fs::file_size(fs::path(work).parent_path() / file.target, failure) == file.bytes && !failure;
  });
}

void remove_file(const std::string& path, std::string_view verb) {
  std::error_code failure;
  if (!fs::remove(path, failure) && failure) throw system_error(path, verb, failure.value());
}

// Removes a work folder so that whatever a kill leaves of it is understood by a later run: without a record
// it is rubbish, and a record of work that is in place keeps the marker that says so.
std::error_code remove_work(const std::string& path) {
  std::error_code failure;
  if (!exists(in(path, kPublishedName)))
    for (const std::string& first : {in(path, kConsumedName), record_path(path)})
      if (!failure) fs::remove(first, failure);
  if (failure) return failure;
  std::vector<fs::path> rest;
  for (fs::directory_iterator at(path, failure), end; !failure && at != end; at.increment(failure))
    if (const std::string name = at->path().filename();
        name != kPublishedName && name != "lock" && name != kRecordName)
      rest.push_back(at->path());
  for (const fs::path& entry : rest)
    if (!failure) fs::remove_all(entry, failure);
  if (!failure) fs::remove(record_path(path), failure);
  if (!failure) fs::remove_all(path, failure);
  return failure;
}

// Whether the file is still the one that was converted.
bool is_unchanged(const SourceState& state) {
  try {
    check_unchanged(state, true);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string progress_text(const Remains& remains) {
  std::uint64_t all = 0;
  if (remains.record)
    for (const WorkFile& file : remains.record->files) all += file.bytes;
  return fmt::format("{} of {} are written", format_bytes(remains.written), format_bytes(all));
}

[[noreturn]] void refuse_living(const std::string& path) {
  throw Error(ErrorCode::usage, {.file = path}, "another process is writing this output");
}

// Whatever was taken from a source was noted after the record, and so was the last step.
void refuse_lost_record(const Remains& remains, bool force) {
  if (remains.record) return;
  const ErrorPlace place{.file = record_path(remains.path)};
  const std::string_view state = remains.damaged_record ? "is damaged" : "is gone";
  if (remains.pending)
    throw Error(ErrorCode::malformed, place,
                "{}: its folder holds files that were to be put in place, and those that they replace",
                state);
  if (remains.is_only_copy())
    throw Error(ErrorCode::malformed, place, "{}: what is left here holds the only copy of {} of a source",
                state, only_copy_text(remains));
  if (remains.damaged_record && !force)
    throw Error(ErrorCode::usage, place,
                "is damaged: which conversion was interrupted here cannot be told from it")
        .with({"force", "on"});
}

// Throws if remains with the record `found` may neither be continued nor removed.
void refuse_remains(const std::string& path, const WorkRecord& found, const WorkRecord& wanted,
                    const WorkPolicy& policy) {
  const bool same = found.identity == wanted.identity;
  if (same && (policy.resume || policy.shared)) return;
  const Remains remains = examine_remains(path);
  const ErrorPlace place{.file = path};
  if (!remains.record || (remains.published && !remains.pending)) return;
  if (remains.pending && !same)
    throw Error(ErrorCode::usage, place,
                "a conversion was interrupted while it put its files in place: that ends first, with "
                "`loadline clean {}`",
                safe_display(fs::path(path).parent_path().string(), 200));
  if (remains.pending)
    throw Error(ErrorCode::usage, place, "a conversion was interrupted while it put these files in place")
        .with({"resume", "on"});
  if (remains.is_only_copy())
    throw Error(ErrorCode::usage, place,
                "an interrupted conversion left these files: they hold the only copy of {} of its source{}",
                only_copy_text(remains), same ? "" : ", which had other options, or is another one")
        .with({"resume", "on"});
  if (policy.force) return;
  if (same)
    throw Error(ErrorCode::usage, place,
                "an interrupted conversion left these files: {} and can be continued", progress_text(remains))
        .with({"resume", "on"});
  throw Error(ErrorCode::usage, place,
              "an interrupted conversion with other options, or from another source, left these files: {} "
              "and must go first",
              progress_text(remains))
      .with({"force", "on"});
}

}  // namespace

void check_remains(const std::string& path, const WorkRecord& record, const WorkPolicy& policy) {
  const Remains remains = examine_remains(path);
  if (remains.alive && !policy.shared) refuse_living(path);
  refuse_lost_record(remains, policy.force);
  if (remains.record) refuse_remains(path, *remains.record, record, policy);
}

std::uint64_t allocated_bytes(const std::string& folder) {
  std::uint64_t bytes = 0;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    struct stat state = {};
    constexpr std::uint64_t kUnit = 512;  // of st_blocks
    if (::stat(at->path().c_str(), &state) == 0) bytes += static_cast<std::uint64_t>(state.st_blocks) * kUnit;
  }
  return bytes;
}

std::string WorkFolder::path_of(const Layout& layout) {
  // a folder holds one output; single files beside each other are told apart by their names
  std::string file;
  if (layout.folder.empty() && !layout.files.empty())
    file = fs::path(layout.files.front().path).filename().string();
  return io::work_folder_path(output_folder(layout), file);
}

WorkFolder::WorkFolder(std::string path, WorkRecord record, const WorkPolicy& policy)
    : path_(std::move(path)), record_(std::move(record)) {
  lock(policy.shared);
  try {
    settle(policy);
  } catch (...) {
    if (ours_) remove_if_alone();
    throw;
  }
}

WorkFolder::WorkFolder(std::string path) : path_(std::move(path)) {
  keep_ = true;
  lock(false);
  auto found = read_record(path_);
  if (!found) throw Error(ErrorCode::malformed, {.file = path_}, "has no record of the conversion");
  record_ = std::move(*found);
  resumed_ = true;
  struct stat state = {};
  if (!record_.removes.empty() &&
      (::lstat(record_path(path_).c_str(), &state) != 0 || state.st_uid != ::geteuid()))
    throw Error(ErrorCode::usage, {.file = path_},
                "would remove files, and was written by another user: that user ends it");
  // the record may be anybody's: no target leads out of the folder, not even through a link
  const fs::path folder = fs::canonical(fs::path(path_).parent_path());
  for (std::size_t i = 0; i < record_.files.size(); ++i) {
    const fs::path parent = fs::weakly_canonical(fs::path(target(i)).parent_path());
    const fs::path inside = parent.lexically_relative(folder);
    if (inside.empty() || *inside.begin() == "..")
      throw Error(ErrorCode::malformed, {.file = target(i)}, "leads out of the folder of its output");
  }
}

WorkFolder::~WorkFolder() {
  if (!keep_) remove_if_alone();
}

void WorkFolder::remove_if_alone() noexcept {
  if (!lock_ || (!alone_ && !io::change_lock(lock_, io::LockKind::exclusive))) return;
  (void)remove_work(path_);
}

void WorkFolder::lock(bool shared) {
  alone_ = !shared;
  if (fs::is_symlink(path_))
    throw Error(ErrorCode::usage, {.file = path_}, "is a link, where temporary files would go");
  constexpr int kMostTries = 1000;
  for (int tries = 1; !lock_; ++tries) {
    std::error_code failure;
    fs::create_directory(path_, failure);
    if (failure) throw system_error(path_, "create the folder", failure.value());
    try {
      lock_ = io::lock_file(in(path_, "lock"), shared ? io::LockKind::shared : io::LockKind::exclusive);
    } catch (const Error&) {
      if (io::is_folder(path_) || tries == kMostTries) throw;  // else another process has just removed it
      continue;
    }
    if (!lock_) throw Error(ErrorCode::usage, {.file = path_}, "another process is writing this output");
  }
}

// Decides what becomes of what lies in the folder.
void WorkFolder::settle(const WorkPolicy& policy) {
  const Remains remains = examine_remains(path_);
  if (remains.damaged_record) refuse_lost_record(remains, policy.force);
  if (std::optional<WorkRecord> found = remains.damaged_record ? std::nullopt : read_record(path_)) {
    refuse_remains(path_, *found, record_, policy);
    // of an output that was in place, and is changed or gone by now, nothing is left to go on with
    const bool useful = !exists(in(path_, kPublishedName)) || is_in_place();
    if (useful && found->identity == record_.identity && (policy.resume || policy.shared)) {
      // what may be removed is what this run says; the times of the sources are those of the first run
      record_.replaces |= found->replaces;
      record_.sources = std::move(found->sources);
      // files that made way are not in the folder any more
      if (is_written()) record_.superseded = std::move(found->superseded);
      resumed_ = true;
      return;
    }
    if (!alone_ && !io::change_lock(lock_, io::LockKind::exclusive)) refuse_living(path_);
  }
  if (alone_) refuse_lost_record(examine_remains(path_), policy.force);
  // what is left of a run that died before its record was written, or that is not wanted, goes
  for (const fs::directory_entry& entry : fs::directory_iterator(path_))
    if (alone_ && entry.path().filename() != "lock") {
      std::error_code failure;
      fs::remove_all(entry.path(), failure);
      if (failure) throw system_error(entry.path().string(), "remove", failure.value());
    }
  ours_ = alone_;
  write_record(policy.shared);
}

void WorkFolder::write_record(bool shared) {
  const std::string text = record_text(record_);
  io::AtomicFile file(record_path(path_));
  file.write_at(0, std::as_bytes(std::span(text)));
  file.sync();
  try {
    file.rename_into_place(!shared);
  } catch (const Error& error) {
    // of several processes that start together one writes the record
    if (!shared || error.code() != ErrorCode::usage) throw;
    const auto found = read_record(path_);
    if (!found || found->identity != record_.identity)
      throw Error(ErrorCode::usage, {.file = path_},
                  "another process is writing this output with other options, or from another source");
    record_ = *found;
    resumed_ = true;
  }
}

bool WorkFolder::is_written() const {
  return exists(in(path_, io::kPublishMark)) || (exists(in(path_, kPublishedName)) && is_in_place());
}

bool WorkFolder::is_in_place() const { return loadline::exporters::is_in_place(path_, record_); }

std::string WorkFolder::part(std::size_t file) const { return in(path_, fmt::format("{:05}.part", file)); }
std::string WorkFolder::log(std::size_t file) const { return in(path_, fmt::format("{:05}.log", file)); }
std::string WorkFolder::consumed() const { return in(path_, kConsumedName); }
std::string WorkFolder::target(std::size_t file) const {
  return (fs::path(path_).parent_path() / record_.files[file].target).string();
}

void WorkFolder::seal(std::size_t file, SourceState state) {
  sealed_.resize(record_.files.size());
  sealed_[file] = std::move(state);
}

// One file replaces another in one step: it needs none. An index goes first and comes back last.
std::vector<WorkFolder::Aside> WorkFolder::asides() const {
  std::vector<Aside> asides;
  const std::size_t count = record_.files.size();
  if (!record_.replaces || count + record_.superseded.size() < 2) return asides;
  const auto add = [&](std::string from, std::size_t number, std::size_t file) {
    asides.push_back({std::move(from), in(path_, fmt::format("{:05}.old", number)), file});
  };
  for (std::size_t i = count; i-- > 0;) add(target(i), i, i);
  for (std::size_t i = 0; i < record_.superseded.size(); ++i)
    add((fs::path(path_).parent_path() / record_.superseded[i]).string(), count + i, SIZE_MAX);
  std::stable_partition(asides.begin(), asides.end(),
                        [](const Aside& aside) { return aside.from.ends_with(".index.json"); });
  return asides;
}

void WorkFolder::publish() {
  for (std::size_t i = 0; i < sealed_.size(); ++i)
    if (sealed_[i] && exists(part(i))) check_unchanged(*sealed_[i], false);
  if (!exists(in(path_, kPublishedName))) put_in_place();
  keep_ = true;  // until the sources are gone too, as remove() is called
  remove_sources();
}

void WorkFolder::put_in_place() {
  const std::string mark = in(path_, io::kPublishMark), folder = fs::path(path_).parent_path().string();
  const bool before = exists(mark);
  const std::vector<Aside> asides = this->asides();
  try {
    if (!before) {
      write_record(false);  // whoever ends this must know what this run may replace and remove
      io::Mark files{.by = fs::absolute(path_).string(), .files = record_.superseded};
      if (record_.files.size() + files.files.size() > 1)
        for (const WorkFile& file : record_.files) files.files.push_back(file.target);
      io::put_mark(mark, files);
    }
    for (const Aside& aside : asides) {
      if (!exists(aside.from) || exists(aside.to) || (aside.file != SIZE_MAX && !exists(part(aside.file))))
        continue;
      if (io::is_folder(aside.from)) throw Error(ErrorCode::usage, {.file = aside.from}, "is a folder");
      if (::rename(aside.from.c_str(), aside.to.c_str()) != 0)
        throw system_error(aside.from, "move this file away, which is replaced", errno);
    }
    if (!asides.empty()) {
      io::sync_folder(path_);
      io::sync_folder(folder);
    }
    for (std::size_t i = 0; i < record_.files.size(); ++i)
      if (exists(part(i)) || !before || !exists(target(i)))
        io::rename_durably(part(i), target(i), record_.replaces || before);
    io::rename_durably(mark, in(path_, kPublishedName), true);
  } catch (...) {
    if (!take_back()) keep_ = true;
    throw;
  }
}

// Whatever this run or an earlier one has moved goes back. False if something stays where it is.
bool WorkFolder::take_back() noexcept {
  try {
    const std::string mark = in(path_, io::kPublishMark), published = in(path_, kPublishedName);
    const std::vector<Aside> asides = this->asides();
    // a file that replaced another in one step stays
    const bool alone = record_.replaces && asides.empty();
    if (exists(published) && (alone || ::rename(published.c_str(), mark.c_str()) != 0)) return false;
    const auto move = [](const std::string& from, const std::string& to) {
      return !exists(to) && ::rename(from.c_str(), to.c_str()) == 0;
    };
    for (std::size_t i = record_.files.size(); i-- > 0;)
      if (!exists(part(i)) && exists(target(i)) && (alone || !move(target(i), part(i)))) return false;
    for (auto aside = asides.rbegin(); aside != asides.rend(); ++aside)
      if (exists(aside->to) && !move(aside->to, aside->from)) return false;
    io::sync_folder(fs::path(path_).parent_path().string());
    if (::unlink(mark.c_str()) != 0 && errno != ENOENT) return false;
    io::sync_folder(path_);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void WorkFolder::remove_sources() {
  std::set<std::string> marks;
  for (const std::string& path : record_.removes) {
    marks.insert(consumed_mark(path));
    // only the very files that were converted: the record may be anybody's
    const auto state = std::ranges::find(record_.sources, path, &SourceState::path);
    if (state == record_.sources.end() || !exists(path) || !is_unchanged(*state)) continue;
    remove_file(path, "remove this file, which is converted");
  }
  // a folder has one mark: a damaged one is of this work too, which else could not have begun
  for (const std::string& path : marks)
    if (const auto mark = io::read_mark(path); mark && (mark->any_file || io::is_by(*mark, path_)))
      remove_file(path, "remove this mark of a model that is converted");
}

void WorkFolder::remove() {
  keep_ = true;
  if (const std::error_code failure = remove_work(path_))
    throw system_error(path_, "remove", failure.value());
}

Remains examine_remains(const std::string& path) {
  Remains remains{.path = path};
  if (!io::is_folder(path)) {  // a temporary file: its writer holds a lock on it
    const io::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    remains.alive = fd && !io::change_lock(fd, io::LockKind::exclusive);
    std::error_code failure;
    remains.written = fs::file_size(path, failure);
    return remains;
  }
  const io::UniqueFd lock(::open(in(path, "lock").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  remains.alive = lock && !io::change_lock(lock, io::LockKind::exclusive);
  try {
    remains.record = read_record(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io) throw;
    remains.damaged_record = true;
  }
  remains.published = exists(in(path, kPublishedName));
  if (!remains.published) add_consumed(remains);
  if (!remains.record) {
    remains.pending = exists(in(path, io::kPublishMark));
    if (remains.damaged_record) remains.written = allocated_bytes(path);  // how many parts is not known
    return remains;
  }
  for (std::size_t i = 0; i < remains.record->files.size(); ++i)
    if (const auto log = read_part_log(in(path, fmt::format("{:05}.log", i))); !log.empty())
      remains.written += log.back().at;
  if (remains.published && !is_in_place(path, *remains.record)) {
    remains.record.reset();
    return remains;
  }
  remains.pending =
      exists(in(path, io::kPublishMark)) ||
      (remains.published && std::ranges::any_of(remains.record->removes, [&](const auto& source) {
         return exists(source) || may_have_marked(path, source);
       }));
  if (remains.published) remains.written = 0;  // where it belongs
  return remains;
}

std::string only_copy_text(const Remains& remains) {
  if (remains.list != ConsumedList::whole) return "an unknown number of bytes";
  return fmt::format("{} ({} bytes)", format_bytes(remains.consumed), remains.consumed);
}

std::vector<Remains> find_remains(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    const std::string name = at->path().filename().string();
    const std::string_view digits =
        std::string_view(name).substr(std::min(io::kHiddenPrefix.size(), name.size()));
    const bool ours = name.starts_with(io::kHiddenPrefix) && digits.size() == 16 &&
                      digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    if (ours && !at->is_symlink()) paths.push_back(at->path().string());
  }
  if (failure) throw system_error(folder, "list the folder", failure.value());
  std::ranges::sort(paths);
  std::vector<Remains> all;
  for (const std::string& path : paths) all.push_back(examine_remains(path));
  return all;
}

void remove_remains(const Remains& remains, bool discard) {
  const ErrorPlace place{.file = remains.path};
  // held until all is gone, so that no process begins meanwhile
  const io::UniqueFd lock = io::lock_file(
      io::is_folder(remains.path) ? in(remains.path, "lock") : remains.path, io::LockKind::exclusive);
  if (!lock) throw Error(ErrorCode::usage, place, "a process is at work here");
  if (remains.pending)
    throw Error(ErrorCode::usage, place,
                "a conversion was interrupted while it put its files in place: that ends first, with "
                "`loadline clean {}`",
                safe_display(fs::path(remains.path).parent_path().string(), 200));
  if (remains.is_only_copy() && !discard)
    throw Error(ErrorCode::usage, place, "holds the only copy of {} of its source", only_copy_text(remains));
  std::error_code failure;
  if (io::is_folder(remains.path))
    failure = remove_work(remains.path);
  else
    fs::remove(remains.path, failure);
  if (failure) throw system_error(remains.path, "remove", failure.value());
  if (!remains.record) return;
  for (const std::string& source : remains.record->removes)
    if (const auto mark = io::read_mark(consumed_mark(source)); mark && io::is_by(*mark, remains.path))
      remove_consumed_mark(fs::path(source).parent_path().string(), false);
}

std::vector<std::string> damaged_sources(const Remains& remains) {
  std::vector<std::string> paths;
  if (!remains.record || !remains.is_only_copy()) return paths;
  for (const std::string& path : remains.record->removes)
    if (exists(path) && may_have_marked(remains.path, path)) paths.push_back(path);
  return paths;
}

bool remove_consumed_mark(const std::string& folder, bool only_look) {
  const std::string mark = in(folder, io::kConsumedMark);
  if (!exists(mark) || io::consumed_mark(folder)) return false;
  if (!only_look) remove_file(mark, "remove this mark of files that are gone");
  return true;
}

void remove_finished(const std::string& out) {
  const fs::path file(out);
  const std::string path =
      io::is_folder(out) ? io::work_folder_path(out, {})
                         : io::work_folder_path(file.has_parent_path() ? file.parent_path().string() : ".",
                                                file.filename().string());
  if (!io::is_folder(path) || fs::is_symlink(path)) return;
  const Remains remains = examine_remains(path);
  const bool rubbish = !remains.record && !remains.is_only_copy();
  if (!remains.alive && !remains.pending && (remains.published || rubbish)) remove_remains(remains, true);
}

}  // namespace loadline::exporters
