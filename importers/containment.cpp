// Opens a file first, then asks the system for the open file's real path: no gap between check and use.
#include "importers/containment.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;

bool is_inside(const fs::path& path, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  (void)rest;
  return end == folder.end();
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

bool is_clean_relative(std::string_view name) {
  if (name.empty() || name.size() > 4096 || name.find('\0') != std::string_view::npos ||
      name.find('\\') != std::string_view::npos || (name.size() > 1 && name[1] == ':'))
    return false;
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

ModelFolder::ModelFolder(const fs::path& folder, bool follow_links)
    : folder_(folder), follow_links_(follow_links) {
  std::error_code failure;
  const fs::path real = fs::canonical(folder.empty() ? fs::path(".") : folder, failure);
  if (failure) throw system_error(folder.string(), "resolve the folder", failure.value());
  allowed_ = {real};
  for (fs::path& blobs : snapshot_blobs(real)) allowed_.push_back(std::move(blobs));
}

bool ModelFolder::allows(const fs::path& real) const {
  return follow_links_ ||
         std::ranges::any_of(allowed_, [&](const fs::path& folder) { return is_inside(real, folder); });
}

std::shared_ptr<const SourceFile> ModelFolder::open(const std::string& name,
                                                    const std::string& asked_by) const {
  if (!is_clean_relative(name))
    throw Error(ErrorCode::malformed, {.file = asked_by.empty() ? folder_.string() : asked_by},
                "names a file '{}' outside its folder or not cleanly inside it", safe_display(name, 200));
  const std::string path = (folder_ / name).string();
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return nullptr;
  if (!fd) throw system_error(path, "open", errno);
  std::error_code failure;
  const fs::path real = fs::read_symlink(fmt::format("/proc/self/fd/{}", fd.get()), failure);
  if (failure) throw system_error(path, "resolve", failure.value());
  if (!allows(real))
    throw Error(ErrorCode::unsupported, {.file = path}, "{}links to '{}', outside the model's folder",
                asked_by.empty() ? "" : fmt::format("asked for by '{}': ", safe_display(asked_by)),
                safe_display(real.string(), 200))
        .with({"follow_links", "on"});
  return std::make_shared<const SourceFile>(SourceFile::adopt(std::move(fd), path));
}

}  // namespace loadline
