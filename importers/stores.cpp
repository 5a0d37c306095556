// Walks the stores' folders; reads Ollama's manifests.
//
//   hub         models--org--name/refs/main, snapshots/COMMIT/FILE -> blobs/HASH; blobs/HASH.incomplete is a
//               download that was not ended (huggingface_hub, file_download.py)
//   ollama      manifests/HOST/NAMESPACE/MODEL/TAG: {"layers": [{"mediaType":
//               "application/vnd.ollama.image.model", "digest": "sha256:HASH", "size": N}, ...]};
//               blobs/sha256-HASH is a GGUF file (ollama, server/manifest.go)
//   lm_studio   PUBLISHER/MODEL/FILE.gguf, or a folder of safetensors files
#include "importers/stores.h"

#include "core/assets/asset_file.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/names/file_names.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/io/source_file.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>

namespace loadline::importers {
namespace {

namespace fs = std::filesystem;

// What a folder holds, links followed; empty for one that cannot be read.
struct Entries {
  std::vector<std::string> folders, files;
};

class Lister {
 public:
  explicit Lister(const Progress& progress) : progress_(progress) {}

  Entries entries_of(const fs::path& folder) {
    progress_.check_canceled();
    Entries entries;
    std::error_code failed;
    fs::directory_iterator at(folder, failed);
    for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
      if (seen_ == kMostEntries) {
        cut_ = true;
        break;
      }
      ++seen_;
      std::string name = at->path().filename().string();
      if (name.starts_with('.')) continue;
      std::error_code unknown;
      (at->is_directory(unknown) ? entries.folders : entries.files).push_back(std::move(name));
    }
    std::ranges::sort(entries.folders, natural_less);
    std::ranges::sort(entries.files, natural_less);
    return entries;
  }
  bool cut() const { return cut_; }

 private:
  const Progress& progress_;
  std::size_t seen_ = 0;
  bool cut_ = false;
};

// Takes the time of a file; nothing if it is not there.
std::optional<std::uint64_t> look_at(StoredModel& model, const fs::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  model.changed = std::max(model.changed, io::changed_at(status));
  return static_cast<std::uint64_t>(status.st_size);
}

// Adds size and time of a file; false if it is not there.
bool add_file(StoredModel& model, const fs::path& path) {
  const std::optional<std::uint64_t> bytes = look_at(model, path);
  model.bytes += bytes.value_or(0);
  return bytes.has_value();
}

// --- The files of one folder.

// A file of a set of GGUF splits: "model-00002-of-00005.gguf".
struct Split {
  std::string_view stem = {}, total = {};
  int number = 0;  // 0: it is in none
};

Split split_of(std::string_view name) {
  constexpr std::string_view kTail = "-00001-of-00005.gguf";
  if (name.size() <= kTail.size() || !name.ends_with(".gguf")) return {};
  const std::string_view tail = name.substr(name.size() - kTail.size());
  const auto number = text_as<std::uint32_t>(tail.substr(1, 5));
  if (tail.front() != '-' || tail.substr(6, 4) != "-of-" || !number) return {};
  return {name.substr(0, name.size() - kTail.size()), tail.substr(10, 5), static_cast<int>(*number)};
}

bool is_weights(const std::string& name) {
  return name.ends_with(".safetensors") || name.ends_with(".bin") || name.ends_with(".pt") ||
         name.ends_with(".pth");
}

// Each GGUF or ONNX file is a model, called by its name behind `before`; all other weights are one, called
// `shown`.
void add_files(std::vector<StoredModel>& models, const fs::path& folder, const std::string& shown,
               const std::string& before, Store store, const std::vector<std::string>& files) {
  StoredModel whole{.name = shown, .path = folder.string(), .store = store};
  bool weights = false;
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> sets;  // to their places in `models`
  for (const std::string& name : files) {
    const bool gguf = name.ends_with(".gguf");
    if (gguf || name.ends_with(".onnx")) {
      const Split split = gguf ? split_of(name) : Split();
      const auto set = sets.find({split.stem, split.total});
      if (split.number > 1 && set != sets.end()) add_file(models[set->second], folder / name);
      if (split.number > 1 || (gguf && !graph::gguf_role(name).empty())) continue;
      StoredModel model{.name = before + name, .path = (folder / name).string(), .store = store};
      if (!add_file(model, folder / name)) continue;
      models.push_back(std::move(model));
      if (split.number == 1) sets.emplace(std::pair(split.stem, split.total), models.size() - 1);
    } else if (is_weights(name)) {
      weights = add_file(whole, folder / name) || weights;
    } else if (name == "config.json") {
      (void)look_at(whole, folder / name);
    }
  }
  if (weights) models.push_back(std::move(whole));
}

// --- The hub cache.

std::optional<fs::path> snapshot_of(const fs::path& repository, Lister& lister) {
  std::error_code failed;
  const fs::path reference = repository / "refs" / "main";
  constexpr std::uintmax_t kMostCommit = 64;
  if (const std::uintmax_t size = fs::file_size(reference, failed); !failed && size <= kMostCommit + 2) try {
      std::string commit = io::SourceFile::open(reference.string()).head(kMostCommit + 2);
      std::erase_if(commit, [](char letter) { return letter == '\n' || letter == '\r' || letter == ' '; });
      const bool hexadecimal =
          !commit.empty() && commit.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
      if (hexadecimal && io::is_folder((repository / "snapshots" / commit).string()))
        return repository / "snapshots" / commit;
    } catch (const Error&) {
      // as if there were none
    }
  const Entries snapshots = lister.entries_of(repository / "snapshots");
  if (snapshots.folders.empty()) return std::nullopt;
  return repository / "snapshots" / snapshots.folders.back();
}

// Adds the sizes of a snapshot's files, and of its folders' too; names a link to nothing.
void add_snapshot(StoredModel& model, const fs::path& folder, const Entries& entries, Lister& lister,
                  int depth) {
  for (const std::string& name : entries.files)
    if (!add_file(model, folder / name))
      model.incomplete = fmt::format("'{}' is not in the cache", safe_display(name, 80));
  if (depth < kMostDepth)
    for (const std::string& name : entries.folders)
      add_snapshot(model, folder / name, lister.entries_of(folder / name), lister, depth + 1);
}

void add_hub(std::vector<StoredModel>& models, const std::string& cache, Lister& lister) {
  constexpr std::string_view kPrefix = "models--";
  for (const std::string& folder : lister.entries_of(cache).folders) {
    if (!folder.starts_with(kPrefix)) continue;
    const fs::path repository = fs::path(cache) / folder;
    StoredModel model{
        .name = folder.substr(kPrefix.size()), .path = repository.string(), .store = Store::hub};
    if (const std::size_t between = model.name.find("--"); between != std::string::npos)
      model.name.replace(between, 2, "/");
    const Entries blobs = lister.entries_of(repository / "blobs");
    model.unfinished =
        std::ranges::any_of(blobs.files, [](const auto& name) { return name.ends_with(".incomplete"); });
    const std::optional<fs::path> snapshot = snapshot_of(repository, lister);
    if (!snapshot) {
      model.incomplete = "the cache holds no snapshot of it";
      models.push_back(std::move(model));
      continue;
    }
    const Entries entries = lister.entries_of(*snapshot);
    const std::size_t before = models.size();
    const bool several =
        std::ranges::any_of(entries.files, [](const auto& name) { return name.ends_with(".gguf"); });
    if (several) add_files(models, *snapshot, model.name, model.name + "/", Store::hub, entries.files);
    for (std::size_t i = before; i < models.size(); ++i) models[i].unfinished = model.unfinished;
    if (models.size() > before) continue;
    add_snapshot(model, *snapshot, entries, lister, 0);
    models.push_back(std::move(model));
  }
}

// --- Ollama.

// The file of the weights that a manifest names; nothing for another file.
std::optional<fs::path> weights_of(const fs::path& manifest, const fs::path& store) {
  const assets::AssetNode root =
      assets::parse_asset(assets::asset_text(manifest.string()), manifest.string());
  const assets::AssetNode* const layers = root.find("layers");
  if (layers == nullptr || layers->kind != assets::AssetNode::Kind::list) return std::nullopt;
  for (const assets::AssetNode& layer : layers->items) {
    const assets::AssetNode* const type = layer.find("mediaType");
    const assets::AssetNode* const digest = layer.find("digest");
    if (type == nullptr || digest == nullptr || type->text != "application/vnd.ollama.image.model") continue;
    constexpr std::string_view kHash = "sha256:";
    const std::string& text = digest->text;
    if (!text.starts_with(kHash) ||
        text.find_first_not_of("0123456789abcdef", kHash.size()) != std::string::npos)
      continue;
    return store / "blobs" / ("sha256-" + text.substr(kHash.size()));
  }
  return std::nullopt;
}

// "llama3.2:3b" for a model of the library, else "namespace/name:tag" or with the host before it.
std::string ollama_name(const std::string& host, const std::string& space, const std::string& name,
                        const std::string& tag) {
  std::string shown = name + ":" + tag;
  if (host != "registry.ollama.ai") return host + "/" + space + "/" + shown;
  return space == "library" ? shown : space + "/" + shown;
}

void add_ollama(std::vector<StoredModel>& models, const std::string& store, Lister& lister) {
  const fs::path manifests = fs::path(store) / "manifests";
  for (const std::string& host : lister.entries_of(manifests).folders)
    for (const std::string& space : lister.entries_of(manifests / host).folders)
      for (const std::string& name : lister.entries_of(manifests / host / space).folders)
        for (const std::string& tag : lister.entries_of(manifests / host / space / name).files) {
          StoredModel model{.name = ollama_name(host, space, name, tag), .store = Store::ollama};
          try {
            const auto weights = weights_of(manifests / host / space / name / tag, store);
            if (!weights) continue;  // an adapter alone, or no manifest
            if (add_file(model, *weights))
              model.path = weights->string();
            else
              model.incomplete = "its weights are not in the store";
          } catch (const Error& error) {
            model.incomplete = error.what();
          }
          models.push_back(std::move(model));
        }
}

// --- Folders of models.

class FolderWalk {
 public:
  FolderWalk(std::vector<StoredModel>& models, Store store, Lister& lister)
      : models_(models), store_(store), lister_(lister) {}

  // A folder, or one file.
  void walk(const std::string& path) {
    if (!io::is_folder(path)) {
      StoredModel model{.name = fs::path(path).filename().string(), .path = path, .store = store_};
      if (add_file(model, path)) models_.push_back(std::move(model));
      return;
    }
    std::error_code failed;
    const fs::path real = fs::canonical(path, failed);
    if (!failed) walk(path, real.filename().string(), 0);
  }

 private:
  void walk(const fs::path& folder, const std::string& shown, int depth) {
    struct stat status = {};
    // links lead to folders that were there before
    if (::stat(folder.c_str(), &status) != 0 || !seen_.emplace(status.st_dev, status.st_ino).second) return;
    const Entries entries = lister_.entries_of(folder);
    // what lies in the folder that was named is called by its own name
    add_files(models_, folder, shown, depth == 0 ? "" : shown + "/", store_, entries.files);
    if (depth == kMostDepth) return;
    for (const std::string& name : entries.folders)
      walk(folder / name, depth == 0 ? name : shown + "/" + name, depth + 1);
  }

  std::vector<StoredModel>& models_;
  Store store_;
  Lister& lister_;
  std::set<std::pair<dev_t, ino_t>> seen_;
};

}  // namespace

std::string_view store_id(Store store) {
  constexpr std::string_view kIds[] = {"hub", "ollama", "lm_studio", "folder"};
  return kIds[static_cast<std::size_t>(store)];
}

StoredModels stored_models(const StorePlaces& places, const Progress& progress) {
  StoredModels found;
  std::vector<StoredModel>& models = found.models;
  const auto look = [&](auto add) {
    Lister lister(progress);
    add(lister);
    found.cut = found.cut || lister.cut();
  };
  if (!places.hub_cache.empty()) look([&](Lister& lister) { add_hub(models, places.hub_cache, lister); });
  for (const std::string& store : places.ollama)
    look([&](Lister& lister) { add_ollama(models, store, lister); });
  const auto walk = [&](const std::vector<std::string>& folders, Store store) {
    look([&](Lister& lister) {
      FolderWalk folder_walk(models, store, lister);
      for (const std::string& folder : folders) folder_walk.walk(folder);
    });
  };
  walk(places.lm_studio, Store::lm_studio);
  walk(places.folders, Store::folder);
  std::ranges::stable_sort(models, [](const StoredModel& a, const StoredModel& b) {
    return a.store != b.store ? a.store < b.store : natural_less(a.name, b.name);
  });
  return found;
}

}  // namespace loadline::importers
