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
#include "core/io/file_system.h"
#include "core/io/source_file.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <tuple>
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

Entries entries_of(const fs::path& folder) {
  Entries entries;
  std::error_code failed;
  fs::directory_iterator at(folder, failed);
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
    if (entries.folders.size() + entries.files.size() >= kMostStored) break;
    std::string name = at->path().filename().string();
    if (name.starts_with('.')) continue;
    std::error_code unknown;
    (at->is_directory(unknown) ? entries.folders : entries.files).push_back(std::move(name));
  }
  std::ranges::sort(entries.folders, natural_less);
  std::ranges::sort(entries.files, natural_less);
  return entries;
}

// Adds size and time of a file; false if it is not there.
bool add_file(StoredModel& model, const fs::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  model.bytes += static_cast<std::uint64_t>(status.st_size);
  const std::int64_t changed = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  model.changed = std::max(model.changed, changed);
  return true;
}

// --- The hub cache.

std::optional<fs::path> snapshot_of(const fs::path& repository) {
  std::error_code failed;
  const fs::path reference = repository / "refs" / "main";
  constexpr std::uintmax_t kMostCommit = 64;
  if (const std::uintmax_t size = fs::file_size(reference, failed); !failed && size <= kMostCommit + 2) {
    std::string commit = io::SourceFile::open(reference.string()).head(kMostCommit + 2);
    std::erase_if(commit, [](char letter) { return letter == '\n' || letter == '\r' || letter == ' '; });
    if (commit.find('/') == std::string::npos && io::is_folder((repository / "snapshots" / commit).string()))
      return repository / "snapshots" / commit;
  }
  const Entries snapshots = entries_of(repository / "snapshots");
  if (snapshots.folders.empty()) return std::nullopt;
  return repository / "snapshots" / snapshots.folders.back();
}

void add_hub(std::vector<StoredModel>& models, const std::string& cache, const Progress& progress) {
  constexpr std::string_view kPrefix = "models--";
  for (const std::string& folder : entries_of(cache).folders) {
    progress.check_canceled();
    if (!folder.starts_with(kPrefix)) continue;
    const fs::path repository = fs::path(cache) / folder;
    StoredModel model{
        .name = folder.substr(kPrefix.size()), .path = repository.string(), .store = Store::hub};
    if (const std::size_t between = model.name.find("--"); between != std::string::npos)
      model.name.replace(between, 2, "/");
    try {
      const std::optional<fs::path> snapshot = snapshot_of(repository);
      if (!snapshot) {
        model.incomplete = "the cache holds no snapshot of it";
      } else {
        for (const std::string& name : entries_of(*snapshot).files)
          if (!add_file(model, *snapshot / name))
            model.incomplete = fmt::format("'{}' is not in the cache", safe_display(name, 80));
      }
      const Entries blobs = entries_of(repository / "blobs");
      if (std::ranges::any_of(blobs.files, [](const auto& name) { return name.ends_with(".incomplete"); }))
        model.incomplete = "its download was not ended";
    } catch (const Error& error) {
      model.incomplete = error.what();
    }
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

void add_ollama(std::vector<StoredModel>& models, const std::string& store, const Progress& progress) {
  const fs::path manifests = fs::path(store) / "manifests";
  for (const std::string& host : entries_of(manifests).folders)
    for (const std::string& space : entries_of(manifests / host).folders)
      for (const std::string& name : entries_of(manifests / host / space).folders)
        for (const std::string& tag : entries_of(manifests / host / space / name).files) {
          progress.check_canceled();
          if (models.size() >= kMostStored) return;
          StoredModel model{.name = ollama_name(host, space, name, tag), .store = Store::ollama};
          try {
            const auto weights = weights_of(manifests / host / space / name / tag, store);
            if (!weights) continue;  // an adapter alone, or no manifest
            model.path = weights->string();
            if (!add_file(model, *weights)) model.incomplete = "its weights are not in the store";
          } catch (const Error& error) {
            model.path = (manifests / host / space / name / tag).string();
            model.incomplete = error.what();
          }
          models.push_back(std::move(model));
        }
}

// --- Folders of models.

// The number of a file in a set of GGUF splits, "model-00002-of-00005.gguf"; 0: it is in none.
int split_number(std::string_view name) {
  constexpr std::string_view kTail = "-00001-of-00005.gguf";
  if (name.size() <= kTail.size() || !name.ends_with(".gguf")) return 0;
  const std::string_view tail = name.substr(name.size() - kTail.size());
  if (tail.substr(6, 4) != "-of-") return 0;
  int number = 0;
  for (const char digit : tail.substr(1, 5)) {
    if (digit < '0' || digit > '9') return 0;
    number = number * 10 + (digit - '0');
  }
  return number;
}

bool is_weights(const std::string& name) {
  return name.ends_with(".safetensors") || name.ends_with(".bin") || name.ends_with(".pt") ||
         name.ends_with(".pth");
}

class FolderWalk {
 public:
  FolderWalk(std::vector<StoredModel>& models, Store store, const Progress& progress)
      : models_(models), store_(store), progress_(progress) {}

  void walk(const fs::path& folder, const std::string& shown, int depth) {
    progress_.check_canceled();
    const Entries entries = entries_of(folder);
    add_files(folder, shown, entries.files);
    if (depth == kMostDepth) return;
    for (const std::string& name : entries.folders) {
      if (++folders_ > kMostStored || models_.size() >= kMostStored) return;
      walk(folder / name, shown.empty() ? name : shown + "/" + name, depth + 1);
    }
  }

 private:
  // Each GGUF or ONNX file is a model; all other weights of a folder are one.
  void add_files(const fs::path& folder, const std::string& shown, const std::vector<std::string>& files) {
    StoredModel whole{
        .name = shown.empty() ? folder.filename().string() : shown, .path = folder.string(), .store = store_};
    bool weights = false;
    for (const std::string& name : files) {
      const bool gguf = name.ends_with(".gguf");
      if (gguf || name.ends_with(".onnx")) {
        const int split = gguf ? split_number(name) : 0;
        if (split > 1 || (gguf && !graph::gguf_role(name).empty())) continue;
        StoredModel model{.name = shown.empty() ? name : shown + "/" + name,
                          .path = (folder / name).string(),
                          .store = store_};
        if (!add_file(model, folder / name)) continue;
        if (split == 1)
          for (const std::string& other : files)
            if (split_number(other) > 1 && other.starts_with(name.substr(0, name.size() - 20)))
              add_file(model, folder / other);
        models_.push_back(std::move(model));
      } else if (is_weights(name)) {
        weights = add_file(whole, folder / name) || weights;
      }
    }
    if (weights) models_.push_back(std::move(whole));
  }

  std::vector<StoredModel>& models_;
  Store store_;
  const Progress& progress_;
  std::size_t folders_ = 0;
};

}  // namespace

std::string_view store_id(Store store) {
  constexpr std::string_view kIds[] = {"hub", "ollama", "lm_studio", "folder"};
  return kIds[static_cast<std::size_t>(store)];
}

std::vector<StoredModel> stored_models(const StorePlaces& places, const Progress& progress) {
  std::vector<StoredModel> models;
  if (!places.hub_cache.empty()) add_hub(models, places.hub_cache, progress);
  for (const std::string& store : places.ollama) add_ollama(models, store, progress);
  for (const std::string& store : places.lm_studio)
    FolderWalk(models, Store::lm_studio, progress).walk(store, "", 0);
  for (const std::string& folder : places.folders)
    FolderWalk(models, Store::folder, progress).walk(folder, "", 0);
  std::ranges::stable_sort(models, [](const StoredModel& a, const StoredModel& b) {
    return a.store != b.store ? a.store < b.store : natural_less(a.name, b.name);
  });
  const auto repeated = std::ranges::unique(
      models, {}, [](const StoredModel& model) { return std::tie(model.name, model.path); });
  models.erase(repeated.begin(), repeated.end());
  return models;
}

}  // namespace loadline::importers
