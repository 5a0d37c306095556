// Containment of sibling files, the choice of a file in a folder, the hub cache, the option table.
#include "importers/resolve.h"

#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/graph/names/file_names.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/io/unfinished.h"
#include "importers/formats.h"
#include "importers/huggingface/index.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace loadline::importers {

// --- Opens a file first, then asks the system for the open file's real path: no gap between check and use.

namespace fs = std::filesystem;

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
    : folder_(folder),
      open_(::open(folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
      bounds_(folder),
      follow_links_(follow_links) {}

std::shared_ptr<const io::SourceFile> ModelFolder::open(const std::string& name,
                                                        const std::string& asked_by) const {
  if (!is_clean_relative(name))
    throw Error(ErrorCode::malformed, {.file = asked_by.empty() ? folder_.string() : asked_by},
                "names a file '{}' outside its folder or not cleanly inside it", safe_display(name, 200));
  const std::string path = (folder_ / name).string();
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  // mostly an entry of the folder, which needs no path to say where it lies
  const bool is_entry = open_ && name.find('/') == std::string::npos;
  io::UniqueFd fd(is_entry ? ::openat(open_.get(), name.c_str(), kFlags | O_NOFOLLOW) : -1);
  const bool may_leave = !is_entry || (!fd && errno == ELOOP);
  if (may_leave) fd = io::UniqueFd(::open(path.c_str(), kFlags));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return nullptr;
  if (!fd) throw system_error(path, "open", errno);
  if (may_leave) check_place(fd, path, asked_by);
  auto file = std::make_shared<const io::SourceFile>(io::SourceFile::adopt(std::move(fd), path));
  if (file->size() < io::kMostPointer) refuse_known(*file);
  return file;
}

void ModelFolder::check_place(const io::UniqueFd& fd, const std::string& path,
                              const std::string& asked_by) const {
  std::array<char, PATH_MAX> text;  // the begin of a longer path decides as well
  const std::string link = fmt::format("/proc/self/fd/{}", fd.get());
  const ssize_t length = ::readlink(link.c_str(), text.data(), text.size());
  if (length < 0) throw system_error(path, "resolve", errno);
  const std::string_view real(text.data(), static_cast<std::size_t>(length));
  if (!follow_links_ && !bounds_.hold(real))
    throw Error(ErrorCode::unsupported, {.file = path}, "{}links to '{}', outside the model's folder",
                asked_by.empty() ? "" : fmt::format("asked for by '{}': ", safe_display(asked_by)),
                safe_display(real, 200))
        .with({"follow_links", "on"});
}

// --- Resolves a path as a file, a folder, a cache or a hub name, in that order.

namespace {

Source make_source(std::shared_ptr<const io::SourceFile> file, std::shared_ptr<const ModelFolder> folder) {
  Source source;
  source.file = std::move(file);
  source.open_sibling = [folder = std::move(folder), asker = source.file->path()](const std::string& name) {
    return folder->open(name, asker);
  };
  return source;
}

struct Opening : ResolveOptions {
  bool consumed = false;  // parts of the model may be gone
};

struct Listing {
  std::vector<std::string> names;   // of files, sorted
  std::vector<std::string> hidden;  // files and folders of this program
};

Listing list_folder(const fs::path& folder) {
  std::error_code failure;
  Listing listing;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    std::string name = at->path().filename().string();
    // skips hidden files: editors' copies, and macOS's "._model.gguf"
    if (name.starts_with(io::kHiddenPrefix))
      listing.hidden.push_back(std::move(name));
    else if (std::error_code ignored; !name.starts_with('.') && !at->is_directory(ignored))
      listing.names.push_back(std::move(name));
  }
  if (failure) throw system_error(folder.string(), "list the folder", failure.value());
  std::ranges::sort(listing.names, [](const auto& a, const auto& b) { return natural_less(a, b); });
  return listing;
}

[[noreturn]] void fail_replaced(const std::string& path) {
  throw Error(ErrorCode::io, {.file = path}, "is being replaced by another process: try again");
}

constexpr int kMostTries = 3;  // while other processes put files in place

// The files of a model folder, of which none has appeared or gone while marks were looked for.
Listing list_model_folder(const fs::path& folder, bool consumed) {
  for (int tries = 1; tries <= kMostTries; ++tries) {
    Listing listing = list_folder(folder);
    io::require_whole(folder.string(), listing.hidden, consumed);
    if (list_folder(folder).names == listing.names) return listing;
  }
  fail_replaced(folder.string());
}

// An edit of one file leaves it readable, mostly: it is said, and what reads weights refuses.
void add_edit_note(Source& source, const std::string& path) {
  if (io::edit_was_interrupted(path))
    source.notes.push_back(graph::make_note(
        graph::Severity::error, {},
        "{}: an edit of this file was interrupted; `loadline edit` on it puts the old header back",
        safe_display(path, 100)));
}

// For the files of a folder, which are listed.
void add_edit_notes(Source& source, const fs::path& folder, const Listing& listing) {
  if (std::ranges::any_of(listing.hidden, io::is_edit_backup))
    for (const std::string& name : listing.names) add_edit_note(source, (folder / name).string());
}

// For one file, or for all that it may belong to.
void add_edit_notes(Source& source, const fs::path& file) {
  const std::string name = file.filename().string();
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (name.ends_with(".index.json") || name.find("-of-") != std::string::npos)
    add_edit_notes(source, folder, list_folder(folder));
  else
    add_edit_note(source, file.string());
}

// Training state beside a model. It is opened only if there is nothing else.
bool is_leftover(std::string_view name) {
  const std::string_view stem = name.substr(0, name.rfind('.'));
  return stem == "optimizer" || stem == "scheduler" || stem == "scaler" || stem == "training_args" ||
         stem.starts_with("rng_state") || stem.starts_with("random_states");
}

std::optional<std::size_t> candidate_rank(std::string_view name) {
  const std::optional<std::size_t> rank = graph::model_file_rank(name);
  return rank && is_leftover(name) ? std::numeric_limits<std::size_t>::max() : rank;
}

// The files of a folder that could be the model, best first; equal ranks are sorted by name.
std::vector<std::string> candidates(const std::vector<std::string>& names) {
  std::vector<std::pair<std::size_t, const std::string*>> ranked;
  for (const std::string& name : names)
    if (const auto rank = candidate_rank(name)) ranked.emplace_back(*rank, &name);
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  std::vector<std::string> found;
  for (const auto& entry : ranked) found.push_back(*entry.second);
  return found;
}

// Many programs use ".bin": only torch files are candidates.
bool is_foreign_bin(const ModelFolder& folder, const std::string& name) {
  if (!name.ends_with(".bin")) return false;
  try {
    const auto file = folder.open(name);
    if (!file) return false;
    const std::string head = file->head(kSniffBytes);
    return sniff_torch_zip(head, name) == Match::no && sniff_torch_legacy(head, name) == Match::no;
  } catch (const Error&) {
    return false;  // opening it later gives an Error with the reason
  }
}

std::string index_name(std::string_view shard) {
  const std::string_view suffix =
      shard.ends_with(".bin") ? graph::kHfTorchIndexSuffix : graph::kHfIndexSuffix;
  return std::string(*graph::hf_shard_stem(shard)).append(suffix);
}

// Whether opening `chosen` opens `other` as well: parts of one GGUF split set, a program's tensors, arrays.
bool belongs_to(std::string_view chosen, std::string_view other) {
  if (chosen.ends_with(".pte")) return other.ends_with(".ptd");
  if (chosen.ends_with(graph::kNpyExtension)) return other.ends_with(graph::kNpyExtension);
  constexpr std::size_t kTail = std::string_view("-00001-of-00001.gguf").size();
  const auto set = [](std::string_view name) {  // "model" and "of-00003.gguf"
    return std::pair(name.substr(0, name.size() - kTail), name.substr(name.size() - kTail + 7));
  };
  return chosen.size() > kTail && other.size() > kTail && chosen.ends_with(".gguf") &&
         set(chosen).second.starts_with("of-") && set(chosen) == set(other);
}

// Other models beside the chosen one, without shards that an index there lists, configurations and training
// state.
std::vector<std::string> other_models(const std::vector<std::string>& found) {
  std::vector<std::string> others;
  for (std::size_t i = 1; i < found.size(); ++i) {
    const bool indexed =
        graph::hf_shard_stem(found[i]) && std::ranges::find(found, index_name(found[i])) != found.end();
    if (found[i] != "config.json" && !is_leftover(found[i]) && !indexed &&
        !belongs_to(found.front(), found[i]))
      others.push_back(found[i]);
  }
  return others;
}

// The GGUF files that go with the chosen one, if that is the only model of the folder: one of each role.
// Several of a role are alternatives, as several models are: then none of them is opened.
std::vector<std::string> gguf_set(const std::vector<std::string>& found) {
  const std::string& chosen = found.front();
  if (!chosen.ends_with(".gguf") || !graph::gguf_role(chosen).empty()) return {};
  std::map<std::string_view, std::vector<std::string>> beside;
  for (const std::string& name : found) {
    if (!name.ends_with(".gguf") || name == chosen) continue;
    const std::string_view role = graph::gguf_role(name);
    if (role.empty() && !belongs_to(chosen, name)) return {};
    if (!role.empty()) beside[role].push_back(name);
  }
  std::vector<std::string> set;
  for (auto& [role, names] : beside)
    if (names.size() == 1) set.push_back(std::move(names.front()));
  return set;
}

Source resolve_model_folder(const fs::path& path, const Opening& options) {
  const auto folder = std::make_shared<const ModelFolder>(path, options.follow_links);
  const Listing listing = list_model_folder(path, options.consumed);
  const std::vector<std::string>& names = listing.names;
  std::vector<std::string> found = candidates(names);
  const auto foreign = std::stable_partition(
      found.begin(), found.end(), [&](const auto& name) { return !is_foreign_bin(*folder, name); });
  if (foreign == found.begin())
    for (const std::string& name : found)
      if (const auto file = folder->open(name)) refuse_known(*file);
  found.erase(foreign, found.end());
  if (found.empty())
    throw Error(ErrorCode::unsupported, {.file = path.string()},
                names.empty()
                    ? "the folder holds no files"
                    : "no model file, index or config.json in the folder; it holds " + join_names(names, 3));
  const auto best = std::ranges::find_if(
      found, [&](const auto& name) { return candidate_rank(name) != candidate_rank(found.front()); });
  LooseShards loose =
      loose_shards([&](const std::string& name) { return folder->open(name); }, {found.begin(), best});
  if (!loose.names.empty()) {  // in the place of the first of them
    std::erase_if(
        found, [&](const auto& name) { return std::ranges::find(loose.names, name) != loose.names.end(); });
    found.insert(found.begin(), loose.names.front());
  }
  auto file = folder->open(found.front());
  if (!file) throw Error(ErrorCode::io, {.file = (path / found.front()).string()}, "is a broken link");
  Source source = make_source(std::move(file), folder);
  source.set = std::move(loose.names);
  source.notes = std::move(loose.notes);
  source.others = shard_files(names, found.front());
  if (found.front().ends_with(graph::kNpyExtension))
    std::ranges::copy_if(names, std::back_inserter(source.set),
                         [](const std::string& name) { return name.ends_with(graph::kNpyExtension); });

  if (std::vector<std::string> set = gguf_set(found); !set.empty()) {
    std::erase_if(found, [&](const std::string& name) { return std::ranges::find(set, name) != set.end(); });
    source.notes.push_back(graph::make_note(graph::Severity::info, {}, "'{}' is opened together with {}",
                                            safe_display(found.front()), join_names(set, 3)));
    source.set = std::move(set);
  }

  source.beside = other_models(found);
  add_edit_notes(source, path, listing);
  return source;
}

// Whether a snapshot really lies in its repository: a link could lead anywhere.
bool is_own_snapshot(const fs::path& snapshot, const fs::path& repository) {
  std::error_code failure;
  const fs::path real = fs::canonical(snapshot, failure);
  return !failure && io::is_folder(real.string()) &&
         real.parent_path() == fs::canonical(repository, failure) / "snapshots";
}

// The snapshot that refs/main names; nothing if there is no such reference or snapshot.
std::optional<fs::path> main_snapshot(const fs::path& repository) {
  constexpr std::size_t kMostCommit = 64;
  std::shared_ptr<const io::SourceFile> file;
  try {
    file = ModelFolder(repository / "refs", false).open("main");
  } catch (const Error&) {
    return std::nullopt;  // not a regular file of this repository: counts as missing
  }
  if (!file || file->size() > kMostCommit + 2) return std::nullopt;
  std::string commit = file->head(kMostCommit + 2);
  while (!commit.empty() && std::string_view(" \t\r\n").find(commit.back()) != std::string_view::npos)
    commit.pop_back();
  const bool hexadecimal = commit.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (commit.empty() || !hexadecimal) return std::nullopt;
  fs::path snapshot = repository / "snapshots" / commit;
  return is_own_snapshot(snapshot, repository) ? std::optional(snapshot) : std::nullopt;
}

bool holds_model(const fs::path& folder) {
  try {
    return !candidates(list_folder(folder).names).empty();
  } catch (const Error&) {
    return false;  // it cannot be read
  }
}

// For a repository without a usable reference: the last changed snapshot that holds a model.
Source newest_snapshot(const fs::path& repository, const Opening& options) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code failure;
  for (fs::directory_iterator at(repository / "snapshots", failure), end; !failure && at != end;
       at.increment(failure)) {
    std::error_code ignored;
    if (is_own_snapshot(at->path(), repository) && holds_model(at->path()))
      found.emplace_back(at->last_write_time(ignored), at->path());
  }
  if (found.empty())
    throw Error(ErrorCode::io, {.file = repository.string()},
                "this cache entry has no snapshot with a model: the download is incomplete");
  const fs::path newest = std::ranges::max_element(found)->second;
  Source source = resolve_model_folder(newest, options);
  source.notes.push_back(graph::make_note(graph::Severity::warning, {},
                                          "refs/main names no snapshot here: opened '{}', the newest of {}",
                                          safe_display(newest.filename().string(), 60), found.size()));
  return source;
}

Source resolve_folder(const fs::path& path, const Opening& options) {
  const fs::path name = (path.filename().empty() ? path.parent_path() : path).filename();
  const bool repository =
      name.string().rfind("models--", 0) == 0 && io::is_folder((path / "snapshots").string());
  if (!repository) return resolve_model_folder(path, options);
  const auto snapshot = io::is_folder((path / "refs").string()) ? main_snapshot(path) : std::nullopt;
  return snapshot ? resolve_model_folder(*snapshot, options) : newest_snapshot(path, options);
}

// The index beside a shard that lists it, or nothing.
std::shared_ptr<const io::SourceFile> index_of(const fs::path& shard, const ModelFolder& folder) {
  const std::string name = shard.filename().string();
  if (!graph::hf_shard_stem(name)) return nullptr;
  auto index = folder.open(index_name(name));
  constexpr std::uint64_t kMostSearched = 64 << 20;
  if (!index || index->size() > kMostSearched) return nullptr;
  return index->head(kMostSearched).find('"' + name + '"') == std::string::npos ? nullptr : index;
}

Source resolve_file(const fs::path& path, const Opening& options) {
  io::require_whole(path.string(), options.consumed);
  // the user named this file, so it may be a link to anywhere
  auto file = std::make_shared<const io::SourceFile>(io::SourceFile::open(path.string()));
  const auto folder = std::make_shared<const ModelFolder>(path.parent_path(), options.follow_links);
  const std::string name = path.filename().string();
  std::vector<std::string> beside;
  if (graph::hf_shard_stem(name) || graph::has_ending_of(name, "hf_index"))
    beside = list_folder(path.has_parent_path() ? path.parent_path() : ".").names;
  if (auto index = index_of(path, *folder)) {
    Source source = make_source(index, folder);
    source.others = shard_files(beside, index->path());
    source.notes.push_back(graph::make_note(
        graph::Severity::info, {}, "'{}' is one shard: opened the whole model through '{}'",
        safe_display(path.filename().string()), safe_display(fs::path(index->path()).filename().string())));
    add_edit_notes(source, path);
    return source;
  }
  Source source = make_source(std::move(file), folder);
  source.others = shard_files(beside, name);
  source.set = complete_shards(name, beside);
  if (!source.set.empty())
    source.notes.push_back(graph::make_note(
        graph::Severity::warning, {}, "'{}' is one shard: opened all {} of the model, which no index lists",
        safe_display(name), source.set.size()));
  add_edit_notes(source, path);
  return source;
}

// "org/name" or "name" as the hub spells them.
bool is_repository_name(std::string_view text) {
  const auto is_part = [](std::string_view part) {
    const auto allowed = [](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
             c == '-';
    };
    return !part.empty() && part.size() < 100 && part.front() != '.' && part.front() != '-' &&
           std::ranges::all_of(part, allowed);
  };
  const std::size_t slash = text.find('/');
  return is_part(text.substr(0, slash)) &&
         (slash == std::string_view::npos || is_part(text.substr(slash + 1)));
}

}  // namespace

std::optional<std::string> cached_model(const std::string& name, const std::string& hub_cache) {
  if (hub_cache.empty() || !is_repository_name(name)) return std::nullopt;
  std::string folder = "models--" + name;
  if (const std::size_t slash = folder.find('/'); slash != std::string::npos) folder.replace(slash, 1, "--");
  std::string repository = (fs::path(hub_cache) / folder).string();
  return io::is_folder(repository) ? std::optional(std::move(repository)) : std::nullopt;
}

namespace {

Source resolve_path(const std::string& path, const Opening& options) {
  if (path.empty()) throw Error(ErrorCode::usage, "the path of the model is empty");
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (fs::is_directory(status)) return resolve_folder(path, options);
  if (fs::exists(status)) return resolve_file(path, options);
  const bool absent = status.type() == fs::file_type::not_found;
  if (absent && !options.hub_cache.empty() && is_repository_name(path)) {
    if (const auto repository = cached_model(path, options.hub_cache))
      return resolve_folder(*repository, options);
    throw Error(ErrorCode::io, {.file = path}, "no such file, and no such model in the hub cache '{}'",
                safe_display(options.hub_cache));
  }
  throw system_error(path, "open", failure ? failure.value() : ENOENT);
}

Source resolve(const std::string& path, const Opening& options) {
  Source source = resolve_path(path, options);
  source.assets = options.assets;
  source.weights_only = options.weights_only;
  source.picture_side = options.picture_side;
  source.picture_sides = options.picture_sides;
  return source;
}

// The files of a model as they were opened, or were not there. Another process may put other ones in place
// meanwhile. May be used by several threads.
class OpenedFiles {
 public:
  enum class Change : std::uint8_t { none, written, replaced };

  // Null: there is no file of that path.
  void add(const std::string& path, const io::SourceFile* file) {
    const Identity opened = file != nullptr ? identity(path, file->descriptor()) : Identity();
    const std::lock_guard lock(mutex_);
    const auto [known, is_new] = files_.try_emplace(path, opened);
    change_ = std::max(change_, between(known->second, opened));
  }
  // Whether a path leads to another file by now, led to two, or to one that was moved away and back; or a
  // file is being written to.
  Change change() const {
    Change most = change_;
    for (const auto& [path, opened] : files_) most = std::max(most, between(opened, identity(path, -1)));
    return most;
  }

 private:
  using Identity = std::array<std::int64_t, 7>;

  static Change between(const Identity& a, const Identity& b) {
    if (a == b) return Change::none;
    const bool same = a[0] == b[0] && a[1] == b[1];                   // device and inode
    const bool grown = a[2] != b[2] || a[3] != b[3] || a[4] != b[4];  // size and time of the last write
    return same && grown ? Change::written : Change::replaced;        // else a move has changed the last time
  }

  // Of an open file, else of the one that the path leads to; zeros if there is none.
  static Identity identity(const std::string& path, int descriptor) {
    struct stat state = {};
    if ((descriptor >= 0 ? ::fstat(descriptor, &state) : ::stat(path.c_str(), &state)) != 0) return {};
    return {static_cast<std::int64_t>(state.st_dev),
            static_cast<std::int64_t>(state.st_ino),
            state.st_size,
            state.st_mtim.tv_sec,
            state.st_mtim.tv_nsec,
            state.st_ctim.tv_sec,
            state.st_ctim.tv_nsec};
  }

  std::map<std::string, Identity> files_;
  Change change_ = Change::none;
  std::mutex mutex_;
};

// The source with files that are noted in `opened`.
Source noted(Source source, const std::shared_ptr<OpenedFiles>& opened) {
  opened->add(source.file->path(), source.file.get());
  source.open_sibling = [opened, folder = fs::path(source.file->path()).parent_path(),
                         open = std::move(source.open_sibling)](const std::string& name) {
    auto file = open(name);
    opened->add((folder / name).string(), file.get());
    return file;
  };
  return source;
}

graph::MetaGraph import_noted(const Source& source) {
  try {
    return import_source(source);
  } catch (const Error& error) {
    // half an edit may be why
    for (const graph::Note& note : source.notes)
      if (note.severity == graph::Severity::error)
        throw Error(error.code(), "{} ({})", error.what(), note.text);
    throw;
  }
}

// Files that are put in place while they are opened are old ones and new ones: then they are opened again. Of
// one that grows all the while, as in a download, the last try tells what there is to tell.
graph::MetaGraph open(const std::string& path, const Opening& options) {
  using Change = OpenedFiles::Change;
  const auto is_last_word = [](Change change, int tries) {
    return change == Change::none || (change == Change::written && tries == kMostTries);
  };
  for (int tries = 1; tries <= kMostTries; ++tries) {
    const auto opened = std::make_shared<OpenedFiles>();
    const Source source = noted(resolve(path, options), opened);
    try {
      graph::MetaGraph graph = import_noted(source);
      io::require_whole(source.file->path(), options.consumed);
      if (options.picture_side > 0 && graph.format != "onnx")
        throw Error(ErrorCode::usage, {.file = source.file->path()},
                    "a side of pictures can be chosen for ONNX files only: this model is in the format {}",
                    graph.format);
      if (is_last_word(opened->change(), tries)) return graph;
    } catch (const Error&) {
      if (is_last_word(opened->change(), tries)) throw;
    }
  }
  fail_replaced(path);
}

}  // namespace

Source resolve(const std::string& path, const ResolveOptions& options) {
  return resolve(path, Opening{options, false});
}

graph::MetaGraph open_model(const std::string& path, const ResolveOptions& options) {
  return open(path, {options, false});
}

graph::MetaGraph open_consumed(const std::string& path, const ResolveOptions& options) {
  return open(path, {options, true});
}

// --- The table of options for opening a model.

namespace {

constexpr std::array<Option<ResolveOptions>, 2> kOptions = {{
    {.id = "follow_links",
     .group = "Opening",
     .kind = OptionKind::flag,
     .title = "Follow links",
     .brief = "allow links that leave the model's folder",
     .help = "Opens files that are links to places outside the model's folder.",
     .access = access::flag<&ResolveOptions::follow_links>},
    {.id = "picture_side",
     .group = "Opening",
     .kind = OptionKind::count,
     .title = "Side of pictures",
     .value_name = "N",
     .brief = "height and width of pictures in ONNX",
     .help =
         "The height and the width of pictures, in pixels, where an ONNX file leaves them open. Shapes of "
         "convolutions follow from them. Otherwise the usual 224 are taken, 64 for latent pictures, or "
         "others "
         "if the file cannot take those.",
     .default_text = "usual ones",
     .access = access::number<&ResolveOptions::picture_side>,
     .least = 1,
     .most = 65536},
}};

}  // namespace

std::span<const Option<ResolveOptions>> open_options() { return kOptions; }

}  // namespace loadline::importers
