// The models that lie on this disk: the hub cache, Ollama's and LM Studio's stores, folders.
#pragma once

#include "core/base/progress.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::importers {

enum class Store : std::uint8_t { hub, ollama, lm_studio, folder };
// "hub", "ollama", "lm_studio", "folder".
std::string_view store_id(Store store);

// Where programs keep models. An empty path, or one that is not there, holds none.
struct StorePlaces {
  std::string hub_cache = {};               // huggingface_hub: models--org--name/snapshots/COMMIT
  std::vector<std::string> ollama = {};     // manifests/HOST/NAMESPACE/MODEL/TAG and blobs/sha256-...
  std::vector<std::string> lm_studio = {};  // PUBLISHER/MODEL/*.gguf
  std::vector<std::string> folders = {};    // model folders and files, at most kMostDepth folders deep
};

struct StoredModel {
  std::string name = {};  // as its store calls it: "org/name", "llama3.2:3b", a file's or folder's name
  std::string path = {};  // to open it by; empty: there is nothing to open
  Store store = Store::folder;
  // Why it cannot be whole, as far as its store tells: a link to a file that is not there, a blob that is
  // missing. Empty: it may be.
  std::string incomplete = {};
  // The hub cache holds the beginning of a download for it. That is nothing yet: another revision's may lie
  // beside a whole model. It is why a model that turns out not to be whole is not.
  bool unfinished = false;
  // Of its files, and the latest change of these and of its config.json: with the path, a key for what was
  // read of it.
  std::uint64_t bytes = 0;
  std::int64_t changed = 0;  // nanoseconds since 1970
};

inline constexpr int kMostDepth = 5;                 // folders below a folder that is named
inline constexpr std::size_t kMostEntries = 20'000;  // files and folders looked at in one store

struct StoredModels {
  std::vector<StoredModel> models = {};
  bool cut = false;  // a store has more than kMostEntries
};

// Sorted by store and name; nothing is opened but Ollama's manifests. What cannot be read is left out: stores
// belong to others. Each GGUF file is a model, a set of splits is one, named by its first file; files that
// belong to another model (mmproj, draft) are none. One file or folder of `folders` is listed once. Throws
// Error{canceled}.
StoredModels stored_models(const StorePlaces& places, const Progress& progress);

// Where huggingface_hub, Ollama and LM Studio keep models by default, or by the variables that `environment`
// knows (HF_HUB_CACHE, OLLAMA_MODELS, ...; empty for those that are not set).
template <typename Environment>
StorePlaces usual_stores(std::string hub_cache, Environment environment) {
  StorePlaces places;
  places.hub_cache = std::move(hub_cache);
  if (std::string models = environment("OLLAMA_MODELS"); !models.empty()) places.ollama.push_back(models);
  if (const std::string home = environment("HOME"); !home.empty()) {
    if (places.ollama.empty()) places.ollama.push_back(home + "/.ollama/models");
    places.lm_studio = {home + "/.lmstudio/models", home + "/.cache/lm-studio/models"};
  }
  if (environment("OLLAMA_MODELS").empty()) places.ollama.emplace_back("/usr/share/ollama/.ollama/models");
  return places;
}

}  // namespace loadline::importers
