// A mark: "LOADLINE MARK 1", the work folder, the names of files, each with a NUL behind it.
#include "core/io/unfinished.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/io/source_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace loadline::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "LOADLINE MARK 1";
constexpr std::uint64_t kMostMark = 16 << 20;

std::string in(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}

// What the names of all files of one output have in common: without the number of a part, and without what
// stands behind the name of an ONNX model.
std::string_view output_of(std::string_view file) {
  constexpr std::string_view kData = ".data", kGguf = ".gguf";
  constexpr std::size_t kNumbers = std::string_view("-00001-of-00001").size();
  if (file.ends_with(kData)) file.remove_suffix(kData.size());
  if (!file.ends_with(kGguf) || file.size() <= kNumbers + kGguf.size()) return file;
  const std::string_view numbers = file.substr(file.size() - kGguf.size() - kNumbers, kNumbers);
  const bool part = numbers[0] == '-' && numbers.substr(6, 4) == "-of-" &&
                    std::ranges::all_of(numbers.substr(1, 5), is_digit) &&
                    std::ranges::all_of(numbers.substr(10), is_digit);
  return part ? file.substr(0, file.size() - kGguf.size() - kNumbers)
              : file.substr(0, file.size() - kGguf.size());
}

bool is_about(const Mark& mark, std::string_view file) {
  return mark.any_file ||
         (file.empty() ? !mark.files.empty() : std::ranges::find(mark.files, file) != mark.files.end());
}

bool is_alive(const std::string& work) {
  const UniqueFd lock(::open(in(work, "lock").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  return lock && !change_lock(lock, LockKind::exclusive);
}

void refuse_published(const std::string& place, const std::string& work, std::string_view file) {
  const auto mark = read_mark(in(work, kPublishMark));
  if (!mark || !is_about(*mark, file)) return;
  if (is_alive(work))
    throw Error(ErrorCode::io, {.file = place},
                "another process is putting files in place here: wait for it");
  throw Error(ErrorCode::io, {.file = place},
              "a conversion was interrupted while it put its files in place: old and new ones may be mixed. "
              "`loadline clean {}` ends it",
              safe_display(fs::path(work).parent_path().string(), 200));
}

void refuse_consumed(const std::string& place, const std::string& folder, std::string_view file) {
  const auto mark = consumed_mark(folder);
  if (!mark || !is_about(*mark, file)) return;
  if (mark->any_file)
    throw Error(
        ErrorCode::io, {.file = place},
        "its folder has a file '{}', which marks models without parts of their weights, and cannot be "
        "read",
        kConsumedMark);
  if (is_alive(mark->by))
    throw Error(ErrorCode::io, {.file = place}, "another process is consuming this model");
  if (!is_folder(mark->by))
    throw Error(
        ErrorCode::io, {.file = place},
        "a conversion that consumed this model was interrupted: parts of its weights are gone here, and "
        "'{}', "
        "which had them, is not there any more. If that is for good, get the model again and delete '{}'",
        safe_display(mark->by, 200), kConsumedMark);
  throw Error(
      ErrorCode::io, {.file = place},
      "a conversion that consumes this model was interrupted: parts of its weights are gone here, and "
      "are in '{}' only. Continue that conversion, with the options consume and resume",
      safe_display(mark->by, 200));
}

}  // namespace

std::string work_folder_path(const std::string& folder, std::string_view file) {
  Xxh3 name;
  if (!file.empty()) name.update(std::as_bytes(std::span(output_of(file))));
  return in(folder, fmt::format("{}{:016x}", kHiddenPrefix, name.digest()));
}

void put_mark(const std::string& path, const Mark& mark) {
  std::string text;
  const auto add = [&](std::string_view part) { text.append(part).push_back('\0'); };
  add(kMagic);
  add(mark.by);
  for (const std::string& file : mark.files) add(file);
  AtomicFile file(path);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.commit();
}

std::optional<Mark> read_mark(const std::string& path) {
  struct stat state = {};
  if (::lstat(path.c_str(), &state) != 0) return std::nullopt;
  Mark mark{.by = {}, .files = {}, .any_file = true};
  if (!S_ISREG(state.st_mode) || static_cast<std::uint64_t>(state.st_size) > kMostMark) return mark;
  try {
    const SourceFile file = SourceFile::open(path);
    const std::string text = file.text_at(0, file.size());
    std::vector<std::string> parts;
    std::string_view rest = text;
    for (std::size_t end = 0; (end = rest.find('\0')) != std::string_view::npos; rest.remove_prefix(end + 1))
      parts.emplace_back(rest.substr(0, end));
    if (parts.size() < 2 || parts[0] != kMagic || !rest.empty()) return mark;
    return Mark{.by = parts[1], .files = {parts.begin() + 2, parts.end()}};
  } catch (const Error&) {
    return mark;  // what cannot be read may say anything
  }
}

std::optional<Mark> consumed_mark(const std::string& folder) {
  auto mark = read_mark(in(folder, kConsumedMark));
  const auto is_there = [&](const std::string& file) {
    struct stat state = {};
    return ::lstat(in(folder, file).c_str(), &state) == 0;
  };
  if (mark && !mark->any_file && std::ranges::none_of(mark->files, is_there)) mark.reset();
  return mark;
}

bool is_by(const Mark& mark, const std::string& work) {
  std::error_code failure;
  return fs::equivalent(mark.by, work, failure) ||
         (!fs::exists(fs::symlink_status(mark.by, failure)) &&
          fs::path(mark.by).filename() == fs::path(work).filename());
}

void require_whole(const std::string& path, bool consumed) {
  std::error_code ignored;
  const fs::path link(path);
  const fs::path real = fs::is_symlink(link, ignored) ? fs::canonical(link, ignored) : link;
  const fs::path file = real.empty() ? link : real;
  const std::string folder = file.parent_path().string(), name = file.filename().string();
  refuse_published(path, work_folder_path(folder, {}), name);
  refuse_published(path, work_folder_path(folder, name), name);
  if (!consumed) refuse_consumed(path, folder, name);
}

void require_whole(const std::string& folder, std::span<const std::string> hidden, bool consumed) {
  for (const std::string& name : hidden) {
    if (name == kConsumedMark && !consumed) refuse_consumed(folder, folder, {});
    if (name != kConsumedMark) refuse_published(folder, in(folder, name), {});
  }
}

// --- Git LFS (docs/spec.md): lines of a key and a value, "version" first, one of them "size".

void refuse_pointer(const SourceFile& file) {
  if (file.size() >= kMostPointer) return;
  const std::string text = file.head(kMostPointer);
  if (!text.starts_with("version https://git-lfs.github.com/spec/") &&
      !text.starts_with("version https://hawser.github.com/spec/"))
    return;
  std::string size;
  for (const std::string_view line : split(text, '\n'))
    if (const auto bytes = line.starts_with("size ") ? text_as<std::uint64_t>(line.substr(5)) : std::nullopt)
      size = fmt::format(" of {} bytes", *bytes);
  throw Error(ErrorCode::unsupported, {.file = file.path(), .byte = 0},
              "a Git LFS pointer to a file{} that has not been downloaded: `git lfs pull` downloads it",
              size);
}

// --- Where links may end.

namespace {

// For real paths, which hold no links, no dots and no doubled slashes.
bool is_inside(std::string_view path, std::string_view folder) {
  if (folder == "/") return path.starts_with('/');
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// The blobs/ folders in which links of a Hugging Face snapshot may end.
std::vector<fs::path> snapshot_blobs(const fs::path& folder) {
  for (fs::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    const fs::path repository = at.parent_path().parent_path();
    if (at.parent_path().filename() == "snapshots" &&
        repository.filename().string().rfind("models--", 0) == 0)
      return {repository / "blobs", repository.parent_path() / "blobs"};
  }
  return {};
}

}  // namespace

FolderBounds::FolderBounds(const fs::path& folder) {
  std::error_code failure;
  const fs::path real = fs::canonical(folder.empty() ? fs::path(".") : folder, failure);
  if (failure) throw system_error(folder.string(), "resolve the folder", failure.value());
  allowed_ = {real};
  for (fs::path& blobs : snapshot_blobs(real)) allowed_.push_back(std::move(blobs));
}

bool FolderBounds::hold(std::string_view real) const {
  return std::ranges::any_of(allowed_,
                             [&](const fs::path& folder) { return is_inside(real, folder.native()); });
}

}  // namespace loadline::io
