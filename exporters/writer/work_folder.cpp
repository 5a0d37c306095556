// Locks, records and renames. Whatever moment a process dies at, the next one finds either no folder, or one
// whose lock is free.
#include "exporters/writer/work_folder.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/io/source_file.h"
#include "exporters/writer/checkpoints.h"
#include "exporters/writer/consume.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

namespace loadline::exporters {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = ".loadline-";
constexpr std::string_view kRecordName = "job.json";
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

// The ranges that were taken from the sources, one a line: file, begin, end.
std::uint64_t consumed_bytes(const std::string& folder) {
  const std::string path = in(folder, "consumed");
  if (!exists(path)) return 0;
  const io::SourceFile file = io::SourceFile::open(path);
  std::uint64_t bytes = 0;
  for (const ConsumedRange& range : parse_consumed(file.text_at(0, file.size())))
    bytes += range.end - range.begin;
  return bytes;
}

// A durable empty file.
void put_marker(const std::string& path) {
  const io::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!fd || ::fsync(fd.get()) != 0) throw system_error(path, "create", errno);
  io::sync_folder(fs::path(path).parent_path().string());
}

void remove_file(const std::string& path, std::string_view verb) {
  std::error_code failure;
  if (!fs::remove(path, failure) && failure) throw system_error(path, verb, failure.value());
}

// Removes a work folder so that whatever a kill leaves of it is understood by a later run: without a record
// it is rubbish, and a record of work that is in place keeps the marker that says so.
std::error_code remove_work(const std::string& path) {
  std::error_code failure;
  if (!exists(in(path, "publish"))) fs::remove(record_path(path), failure);
  if (failure) return failure;
  std::vector<fs::path> rest;
  for (fs::directory_iterator at(path, failure), end; !failure && at != end; at.increment(failure))
    if (const std::string name = at->path().filename();
        name != "publish" && name != "lock" && name != kRecordName)
      rest.push_back(at->path());
  for (const fs::path& entry : rest)
    if (!failure) fs::remove_all(entry, failure);
  if (!failure) fs::remove(record_path(path), failure);
  if (!failure) fs::remove_all(path, failure);
  return failure;
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

// Throws if remains with the record `found` may neither be continued nor removed.
void refuse_remains(const std::string& path, const WorkRecord& found, const WorkRecord& wanted,
                    const WorkPolicy& policy) {
  const bool same = found.identity == wanted.identity;
  if (same && (policy.resume || policy.shared)) return;
  const Remains remains = examine_remains(path);
  const ErrorPlace place{.file = path};
  if (remains.consumed > 0)
    throw Error(ErrorCode::usage, place,
                "an interrupted conversion left these files: they hold the only copy of {} ({} bytes) of its "
                "source{}",
                format_bytes(remains.consumed), remains.consumed,
                same ? "" : ", which had other options, or is another one")
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
  io::Xxh3 name;
  if (layout.folder.empty() && !layout.files.empty()) {
    const std::string file = fs::path(layout.files.front().path).filename().string();
    name.update(std::as_bytes(std::span(file)));
  }
  return in(output_folder(layout), fmt::format("{}{:016x}", kPrefix, name.digest()));
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
  if (std::optional<WorkRecord> found = read_record(path_)) {
    refuse_remains(path_, *found, record_, policy);
    if (found->identity == record_.identity && (policy.resume || policy.shared)) {
      // what may be removed is what this run says; the times of the sources are those of the first run
      record_.replaces |= found->replaces;
      record_.sources = std::move(found->sources);
      resumed_ = true;
      return;
    }
    if (!alone_ && !io::change_lock(lock_, io::LockKind::exclusive)) refuse_living(path_);
  }
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

bool WorkFolder::publishing() const { return exists(in(path_, "publish")); }
std::string WorkFolder::part(std::size_t file) const { return in(path_, fmt::format("{:05}.part", file)); }
std::string WorkFolder::log(std::size_t file) const { return in(path_, fmt::format("{:05}.log", file)); }
std::string WorkFolder::consumed() const { return in(path_, "consumed"); }
std::string WorkFolder::target(std::size_t file) const {
  return (fs::path(path_).parent_path() / record_.files[file].target).string();
}

void WorkFolder::publish() {
  const bool before = publishing();
  put_marker(in(path_, "publish"));
  const std::size_t count = record_.files.size();
  try {
    for (std::size_t i = 0; i < count; ++i)
      if (exists(part(i)) || !before || !exists(target(i)))
        io::rename_durably(part(i), target(i), record_.replaces || before);
  } catch (...) {
    if (record_.replaces || before) {
      keep_ = true;  // some files are in place: the others can still follow
      throw;
    }
    std::error_code ignored;
    for (std::size_t i = 0; i < count; ++i)
      if (!exists(part(i))) fs::rename(target(i), part(i), ignored);
    fs::remove(in(path_, "publish"), ignored);
    throw;
  }
  for (const std::string& old : record_.superseded)
    remove_file((fs::path(path_).parent_path() / old).string(),
                "remove this part of the model that was replaced");
  for (const std::string& path : record_.removes) {
    // only the very files that were converted: the record may be anybody's
    const auto state = std::ranges::find(record_.sources, path, &SourceState::path);
    if (state == record_.sources.end() || !exists(path)) continue;
    check_unchanged(*state, true);
    remove_file(path, "remove this file, which is converted");
  }
}

void WorkFolder::remove() {
  keep_ = true;
  if (const std::error_code failure = remove_work(path_))
    throw system_error(path_, "remove", failure.value());
}

Remains examine_remains(const std::string& path) {
  Remains remains{.path = path};
  if (!io::is_folder(path)) {  // a temporary file: its writer holds a lock on it
    const io::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    remains.alive = fd && !io::change_lock(fd, io::LockKind::exclusive);
    std::error_code failure;
    remains.written = fs::file_size(path, failure);
    return remains;
  }
  const io::UniqueFd lock(::open(in(path, "lock").c_str(), O_RDONLY | O_CLOEXEC));
  remains.alive = lock && !io::change_lock(lock, io::LockKind::exclusive);
  remains.record = read_record(path);
  if (!remains.record) return remains;
  for (std::size_t i = 0; i < remains.record->files.size(); ++i)
    if (const auto log = read_part_log(in(path, fmt::format("{:05}.log", i))); !log.empty())
      remains.written += log.back().at;
  remains.publishing = exists(in(path, "publish"));
  remains.consumed = consumed_bytes(path);
  return remains;
}

std::vector<Remains> find_remains(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    const std::string name = at->path().filename().string();
    const std::string_view digits = std::string_view(name).substr(std::min(kPrefix.size(), name.size()));
    const bool ours = name.starts_with(kPrefix) && digits.size() == 16 &&
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
  if (remains.consumed > 0 && !discard)
    throw Error(ErrorCode::usage, place, "holds the only copy of {} ({} bytes) of its source",
                format_bytes(remains.consumed), remains.consumed);
  std::error_code failure;
  if (io::is_folder(remains.path))
    failure = remove_work(remains.path);
  else
    fs::remove(remains.path, failure);
  if (failure) throw system_error(remains.path, "remove", failure.value());
}

}  // namespace loadline::exporters
