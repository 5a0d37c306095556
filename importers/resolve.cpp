// Files, folders, caches and names, in that order.
#include "importers/resolve.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "importers/containment.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include <fmt/format.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

Source make_source(std::shared_ptr<const SourceFile> file, std::shared_ptr<const ModelFolder> folder) {
  Source source;
  source.file = std::move(file);
  source.open_sibling = [folder = std::move(folder)](const std::string& name) { return folder->open(name); };
  return source;
}

std::vector<std::string> file_names(const fs::path& folder) {
  std::error_code failure;
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure))
    if (std::error_code ignored; !at->is_directory(ignored)) names.push_back(at->path().filename().string());
  if (failure) throw system_error(folder.string(), "list the folder", failure.value());
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return natural_less(a, b); });
  return names;
}

// What in a folder could be the model, best first; parts of a sharded set only through their index.
std::vector<std::string> candidates(const std::vector<std::string>& names) {
  const auto rank = [](const std::string& name) {
    if (name == "model.safetensors.index.json") return 0;
    if (name.ends_with(kIndexSuffix)) return 1;
    if (name == "model.safetensors") return 2;
    if (name.ends_with(".safetensors")) return 3;
    return name == "config.json" ? 4 : 5;
  };
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found),
               [&](const auto& n) { return rank(n) < 5; });
  std::stable_sort(found.begin(), found.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return found;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Removes five or six digits from the end of `text`; false if they are not there.
bool drop_number(std::string_view& text) {
  const std::size_t before = text.find_last_not_of("0123456789");
  const std::size_t digits = text.size() - (before == std::string_view::npos ? 0 : before + 1);
  text.remove_suffix(digits);
  return digits == 5 || digits == 6;
}

bool drop_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

// "model" of "model-00001-of-00003.safetensors"; nothing for any other name.
std::optional<std::string_view> shard_stem(std::string_view name) {
  if (drop_suffix(name, ".safetensors") && drop_number(name) && drop_suffix(name, "-of-") &&
      drop_number(name) && drop_suffix(name, "-") && !name.empty())
    return name;
  return std::nullopt;
}

Source resolve_model_folder(const fs::path& path, const ResolveOptions& options) {
  const auto folder = std::make_shared<const ModelFolder>(path, options.follow_links);
  const std::vector<std::string> names = file_names(path);
  const std::vector<std::string> found = candidates(names);
  if (found.empty())
    throw Error(ErrorCode::unsupported, {.file = path.string()},
                names.empty()
                    ? "the folder holds no files"
                    : "no *.safetensors, *.safetensors.index.json or config.json in the folder; it holds " +
                          join_names(names, 3));
  auto file = folder->open(found.front());
  if (!file) throw Error(ErrorCode::io, {.file = (path / found.front()).string()}, "is a broken link");
  Source source = make_source(std::move(file), folder);

  // other models beside the chosen one; its own shards and its config are not others
  std::vector<std::string> others;
  for (std::size_t i = 1; i < found.size(); ++i)
    if (found[i] != "config.json" && !(found.front().ends_with(kIndexSuffix) && shard_stem(found[i])))
      others.push_back(found[i]);
  if (!others.empty())
    source.notes.push_back({Severity::info,
                            {},
                            fmt::format("opened '{}'; the folder also holds {}", safe_display(found.front()),
                                        join_names(others, 3))});
  return source;
}

// The commit that refs/main names, else the snapshot changed last.
fs::path pick_snapshot(const fs::path& repository) {
  const fs::path snapshots = repository / "snapshots";
  std::ifstream ref(repository / "refs" / "main");
  std::string commit;
  if (ref >> commit && commit.find('/') == std::string::npos && commit != ".." &&
      fs::is_directory(snapshots / commit))
    return snapshots / commit;
  std::error_code failure;
  fs::path newest;
  fs::file_time_type newest_time = {};
  for (fs::directory_iterator at(snapshots, failure), end; !failure && at != end; at.increment(failure)) {
    std::error_code ignored;
    const auto time = at->last_write_time(ignored);
    if (at->is_directory(ignored) && (newest.empty() || time > newest_time))
      newest = at->path(), newest_time = time;
  }
  if (newest.empty())
    throw Error(ErrorCode::io, {.file = repository.string()},
                "this cache entry has no snapshot: the download is incomplete");
  return newest;
}

Source resolve_folder(const fs::path& path, const ResolveOptions& options) {
  const fs::path name = (path.filename().empty() ? path.parent_path() : path).filename();
  const bool repository = name.string().rfind("models--", 0) == 0 && fs::is_directory(path / "snapshots");
  return resolve_model_folder(repository ? pick_snapshot(path) : path, options);
}

// The index beside a shard that lists it, or nothing.
std::shared_ptr<const SourceFile> index_of(const fs::path& shard, const ModelFolder& folder) {
  const std::string name = shard.filename().string();
  const auto stem = shard_stem(name);
  if (!stem) return nullptr;
  auto index = folder.open(std::string(*stem) + std::string(kIndexSuffix));
  constexpr std::uint64_t kMostSearched = 64 << 20;
  if (!index || index->size() > kMostSearched) return nullptr;
  const std::vector<std::byte> bytes = index->head(kMostSearched);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.find('"' + name + '"') == std::string_view::npos ? nullptr : index;
}

Source resolve_file(const fs::path& path, const ResolveOptions& options) {
  // the file itself was named by the user and may be a link to anywhere
  auto file = std::make_shared<const SourceFile>(SourceFile::open(path.string()));
  const auto folder = std::make_shared<const ModelFolder>(path.parent_path(), options.follow_links);
  if (auto index = index_of(path, *folder)) {
    Source source = make_source(index, folder);
    source.notes.push_back({Severity::info,
                            {},
                            fmt::format("'{}' is one shard: opened the whole model through '{}'",
                                        safe_display(path.filename().string()),
                                        safe_display(fs::path(index->path()).filename().string()))});
    return source;
  }
  return make_source(std::move(file), folder);
}

// "org/name" or "name" as the hub spells them.
bool is_repository_name(std::string_view text) {
  const auto is_part = [](std::string_view part) {
    const auto allowed = [](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
             c == '-';
    };
    return !part.empty() && part.size() < 100 && part.front() != '.' && part.front() != '-' &&
           std::all_of(part.begin(), part.end(), allowed);
  };
  const std::size_t slash = text.find('/');
  return is_part(text.substr(0, slash)) &&
         (slash == std::string_view::npos || is_part(text.substr(slash + 1)));
}

}  // namespace

Source resolve(const std::string& path, const ResolveOptions& options) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (fs::is_directory(status)) return resolve_folder(path, options);
  if (fs::exists(status)) return resolve_file(path, options);
  if (!options.hub_cache.empty() && is_repository_name(path)) {
    std::string folder = "models--" + path;
    if (const std::size_t slash = folder.find('/'); slash != std::string::npos)
      folder.replace(slash, 1, "--");
    const fs::path repository = fs::path(options.hub_cache) / folder;
    if (fs::is_directory(repository, failure)) return resolve_folder(repository, options);
    throw Error(ErrorCode::io, {.file = path},
                fmt::format("no such file, and no such model in the hub cache '{}'",
                            safe_display(options.hub_cache)));
  }
  throw system_error(path, "open", ENOENT);
}

MetaGraph open_model(const std::string& path, const ResolveOptions& options) {
  return import_source(resolve(path, options));
}

}  // namespace loadline
