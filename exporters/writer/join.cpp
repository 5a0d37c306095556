// Reads every part back, then publishes.
#include "exporters/writer/join.h"

#include "core/base/error.h"
#include "core/io/file_system.h"
#include "exporters/writer/read_back.h"
#include "exporters/writer/work_folder.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

namespace loadline {
namespace {

namespace fs = std::filesystem;

// Work with a record, for an output or in a folder.
std::vector<Remains> find_work(const std::string& out) {
  const bool folder = is_folder(out);
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

// Logs are removed after all files are in place: a run that died meanwhile has left some.
bool is_in_place(const WorkFolder& work, std::size_t i) {
  std::error_code failure;
  return work.publishing() && !fs::exists(work.part(i)) &&
         fs::file_size(work.target(i), failure) == work.record().files[i].bytes && !failure;
}

Checkpoint complete_part(const WorkFolder& work, std::size_t i, const Progress& progress) {
  const WorkFile& file = work.record().files[i];
  const auto log = read_part_log(work.log(i));
  if (log.empty() && is_in_place(work, i)) return {file.bytes, file_hash(work.target(i), progress)};
  const std::uint64_t have = log.empty() ? 0 : log.back().at;
  if (log.empty() || have != file.bytes)
    throw Error(ErrorCode::usage, {.file = work.target(i)},
                "{} of its {} bytes are written: run the conversion of its part again", have, file.bytes);
  return log.back();
}

}  // namespace

WriteReport join_parts(const std::string& out, bool overwrite, Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Remains> found = find_work(out);
  if (found.empty()) throw Error(ErrorCode::usage, {.file = out}, "there are no parts to join");
  if (found.size() > 1)
    throw Error(ErrorCode::usage, {.file = out}, "holds the parts of {} outputs: name one of them",
                found.size());
  WorkFolder work(found.front().path);
  WriteReport report;
  for (std::size_t i = 0; i < work.record().files.size(); ++i) {
    const Checkpoint whole = complete_part(work, i, progress);
    progress.add_total(whole.at);
    report.files.push_back({work.target(i), whole.at, whole.xxh3});
  }
  const bool before = work.publishing();
  for (std::size_t i = 0; i < report.files.size(); ++i) {
    const WrittenFile& file = report.files[i];
    // what an interrupted run has put in place already is read there
    const std::string path = before && !fs::exists(work.part(i)) ? work.target(i) : work.part(i);
    check_read_back(path, file.path, {file.bytes, file.xxh3}, progress);
    report.bytes_read += file.bytes;
  }
  for (const SourceState& state : work.record().sources)
    if (!before && fs::exists(state.path)) check_unchanged(state, !work.record().removes.empty());
  progress.check_cancelled();
  work.allow_replacing(overwrite);
  work.publish();
  work.remove();
  report.verified = true;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

bool waits_for_last_step(const std::string& out) {
  if (!is_folder(out) && !is_folder(fs::path(out).parent_path().string()) && fs::path(out).has_parent_path())
    return false;
  const std::vector<Remains> found = find_work(out);
  return found.size() == 1 && found.front().publishing && !found.front().alive;
}

}  // namespace loadline
