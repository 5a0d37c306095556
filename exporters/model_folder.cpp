// Lists the files of a model folder, rewrites config.json, reads the pooling of sentence-transformers.
#include "exporters/model_folder.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/graph/names/file_names.h"
#include "core/io/file_system.h"
#include "core/io/source_file.h"
#include "core/io/unfinished.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::exporters {

// --- Sorts the entries of a folder into copied files and others by their names.

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 10'000;
constexpr int kMostFolderDepth = 4;

// Whether a link may be followed; what cannot be resolved may not.
bool stays_inside(const io::FolderBounds& bounds, const fs::path& path) {
  std::error_code failure;
  const fs::path real = fs::canonical(path, failure);
  return !failure && bounds.hold(real.native());
}

class Lister {
 public:
  Lister(const graph::MetaGraph& graph, fs::path folder, bool follow_links)
      : graph_(graph), folder_(std::move(folder)), bounds_(folder_), follow_links_(follow_links) {}

  FolderFiles list() {
    visit(folder_, 0);
    std::ranges::sort(result_.files, {}, &FolderFile::name);
    std::ranges::sort(result_.left_out);
    return std::move(result_);
  }

 private:
  void visit(const fs::path& folder, int depth) {
    std::error_code failure;
    for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
      if (++entries_ > kMostEntries)
        throw Error(ErrorCode::limit, {.file = folder_.string()}, "more than {} files beside the weights",
                    kMostEntries);
      const std::string last = at->path().filename().string();
      if (last.starts_with('.') || last == "__pycache__") continue;
      const std::string name = at->path().lexically_relative(folder_).generic_string();
      std::error_code ignored;
      if (at->is_directory(ignored)) {
        // a link to a folder could lead in a circle
        if (at->is_symlink(ignored) || depth == kMostFolderDepth)
          result_.left_out.push_back(name + "/");
        else
          visit(at->path(), depth + 1);
      } else if (at->is_regular_file(ignored)) {
        add(*at, name);
      } else {
        result_.left_out.push_back(name);
      }
    }
    if (failure) throw system_error(folder.string(), "list the folder", failure.value());
  }

  void add(const fs::directory_entry& entry, const std::string& name) {
    std::error_code failure;
    if (name == graph::kConfigKey || is_own(entry)) return;
    const std::uintmax_t bytes = entry.file_size(failure);
    if (graph::is_weight_file(name) || failure || !(follow_links_ || stays_inside(bounds_, entry.path())))
      return result_.left_out.push_back(name);
    result_.files.push_back({name, entry.path().string(), bytes});
  }

  bool is_own(const fs::directory_entry& entry) const {
    return std::ranges::any_of(graph_.files, [&](const graph::ModelFile& file) {
      std::error_code ignored;
      return fs::path(file.path).filename() == entry.path().filename() &&
             fs::equivalent(file.path, entry.path(), ignored);
    });
  }

  const graph::MetaGraph& graph_;
  const fs::path folder_;
  const io::FolderBounds bounds_;
  const bool follow_links_;
  std::size_t entries_ = 0;
  FolderFiles result_;
};

}  // namespace

namespace {

// What transformers and PEFT save of a tokenizer.
constexpr std::array<std::string_view, 12> kTokenizerFiles = {"tokenizer.json",
                                                              "tokenizer_config.json",
                                                              "special_tokens_map.json",
                                                              "added_tokens.json",
                                                              "chat_template.jinja",
                                                              "chat_template.json",
                                                              "vocab.json",
                                                              "merges.txt",
                                                              "vocab.txt",
                                                              "tokenizer.model",
                                                              "spiece.model",
                                                              "sentencepiece.bpe.model"};

// How AutoGPTQ, AutoAWQ and ModelOpt have packed the weights.
constexpr std::array<std::string_view, 3> kPackingFiles = {"quantize_config.json", "quant_config.json",
                                                           "hf_quant_config.json"};

void take_tokenizer(FolderFiles& into, const fs::path& folder, bool follow_links) {
  const io::FolderBounds bounds(folder);
  for (const std::string_view name : kTokenizerFiles) {
    std::error_code failure;
    const fs::path path = folder / name;
    if (!fs::is_regular_file(path, failure)) continue;
    if (!follow_links && !stays_inside(bounds, path))
      throw Error(ErrorCode::unsupported, {.file = path.string()}, "links to a file outside its folder")
          .with({"follow_links", "on"});
    const std::uintmax_t bytes = fs::file_size(path, failure);
    if (failure) throw system_error(path.string(), "examine", failure.value());
    std::erase_if(into.files, [&](const FolderFile& file) { return file.name == name; });
    into.files.push_back({std::string(name), path.string(), bytes});
    into.replaced.emplace_back(name);
  }
  std::ranges::sort(into.files, {}, &FolderFile::name);
}

}  // namespace

std::vector<std::string> remove_packing_files(std::vector<FolderFile>& files) {
  std::vector<std::string> names;
  std::erase_if(files, [&](const FolderFile& file) {
    if (std::ranges::find(kPackingFiles, file.name) == kPackingFiles.end()) return false;
    names.push_back(file.name);
    return true;
  });
  return names;
}

FolderFiles folder_files(const graph::MetaGraph& graph, bool follow_links,
                         const std::string& tokenizer_folder) {
  if (graph.files.empty() || graph::find_text(graph, graph::kConfigKey) == nullptr) return {};
  fs::path folder = fs::path(graph.files.front().path).parent_path();
  if (folder.empty()) folder = ".";
  if (!io::is_folder(folder.string())) return {};
  FolderFiles found = Lister(graph, std::move(folder), follow_links).list();
  if (!tokenizer_folder.empty()) take_tokenizer(found, tokenizer_folder, follow_links);
  return found;
}

void add_folder_files(Layout& layout, const std::vector<FolderFile>& files, bool link) {
  std::vector<LayoutFile> copies;
  for (const FolderFile& file : files) {
    const std::string path = (fs::path(layout.folder) / file.name).string();
    const bool written = std::ranges::any_of(
        layout.files, [&](const LayoutFile& other) { return fs::path(other.path) == fs::path(path); });
    if (written) continue;
    LayoutFile copy;
    copy.path = path;
    copy.copy_of = file.path;
    copy.bytes = file.bytes;
    copy.link = link;
    copies.push_back(std::move(copy));
  }
  layout.files.insert(layout.files.begin(), std::make_move_iterator(copies.begin()),
                      std::make_move_iterator(copies.end()));
}

// --- Edits the parsed object; loaders take the types of weights from it, not from the weights.

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 2> kTypes = {"dtype", "torch_dtype"};

// Sets the types that an object has; whether it had any.
bool set_types(Json& object, std::string_view name) {
  bool any = false;
  for (const char* const key : kTypes)
    if (const auto found = object.find(key);
        found != object.end() && (found->is_string() || found->is_null())) {
      *found = name;
      any = true;
    }
  return any;
}

}  // namespace

std::string cast_config(const std::string& text, graph::DType outtype, bool unpacked) {
  Json config = small_json<Json>(text);
  if (!config.is_object()) return text;
  const std::string_view name = graph::dtype_info(outtype).torch;
  bool any = set_types(config, name);
  const auto edit = [&](Json& object) {
    if (unpacked)
      for (const char* const key : kPackings) object.erase(key);
  };
  edit(config);
  for (auto& [key, value] : config.items())
    if (value.is_object() && key.ends_with("_config")) {
      any |= set_types(value, name);
      edit(value);
    }
  if (!any) config["torch_dtype"] = name;
  return config.dump(2) + "\n";
}

// --- modules.json: [{"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}, ...]

namespace {

constexpr std::size_t kMostBytes = 1 << 20;

std::optional<std::string> text_of(const std::vector<FolderFile>& files, const std::string& name,
                                   std::vector<std::string>& files_read) {
  const auto found = std::ranges::find(files, name, &FolderFile::name);
  if (found == files.end()) return std::nullopt;
  if (found->bytes > kMostBytes)
    throw Error(ErrorCode::limit, {.file = found->path}, "has {} bytes, the limit is {}", found->bytes,
                kMostBytes);
  files_read.push_back(name);
  const io::SourceFile file = io::SourceFile::open(found->path);
  io::refuse_pointer(file);
  return file.head(kMostBytes);
}

struct Module {
  std::string type, path;
};

std::vector<Module> modules_of(const std::string& text) {
  const auto list = small_json<nlohmann::json>(text);
  if (!list.is_array())
    throw Error(ErrorCode::malformed, {.file = "modules.json"}, "is not a list of modules");
  std::vector<Module> modules;
  for (const auto& module : list) {
    if (!module.is_object() || !module.contains("type") || !module["type"].is_string() ||
        !module.contains("path") || !module["path"].is_string())
      continue;
    modules.push_back({module["type"].get<std::string>(), module["path"].get<std::string>()});
  }
  return modules;
}

// The settings of the pooling module.
std::optional<forward::ModelConfig> pooling_config(const std::vector<FolderFile>& files,
                                                   std::vector<std::string>& files_read) {
  const auto text = text_of(files, "modules.json", files_read);
  for (const Module& module : text ? modules_of(*text) : std::vector<Module>()) {
    if (!module.type.ends_with("Pooling")) continue;
    const std::string name =
        module.path.empty() ? std::string(graph::kConfigKey) : module.path + "/config.json";
    const auto config = text_of(files, name, files_read);
    return config ? std::optional(forward::ModelConfig(*config, name)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> pooling_type(const std::vector<FolderFile>& files,
                                          std::vector<std::string>& files_read) {
  const auto config = pooling_config(files, files_read);
  if (!config) return std::nullopt;
  const auto is_set = [&](const forward::Setting& setting) {
    return setting.name.starts_with("pooling_mode_") && config->get(setting.name).truth();
  };
  const std::vector<forward::Setting> settings = config->settings();
  if (std::ranges::count_if(settings, is_set) > 1)
    throw config->fail("llama.cpp gives one vector of a text, this model several in a row",
                       ErrorCode::unsupported);
  constexpr std::array<std::pair<std::string_view, std::uint32_t>, 3> kFlags = {
      {{"pooling_mode_mean_tokens", 1}, {"pooling_mode_cls_token", 2}, {"pooling_mode_lasttoken", 3}}};
  for (const auto& [flag, type] : kFlags)
    if (config->get(flag).truth()) return type;
  constexpr std::array<std::pair<std::string_view, std::uint32_t>, 3> kModes = {
      {{"mean", 1}, {"cls", 2}, {"lasttoken", 3}}};
  const std::string mode = config->text("pooling_mode", "");
  for (const auto& [word, type] : kModes)
    if (mode == word) return type;
  throw config->fail(
      "llama.cpp takes the mean of all tokens, the first or the last one, this model none of them",
      ErrorCode::unsupported);
}

std::vector<forward::Setting> further_modules(const std::vector<FolderFile>& files) {
  // llama.cpp's programs norm what they return
  constexpr std::array<std::string_view, 3> kKnown = {"Transformer", "Pooling", "Normalize"};
  std::vector<forward::Setting> further;
  std::vector<std::string> files_read;
  const auto text = text_of(files, "modules.json", files_read);
  for (const Module& module : text ? modules_of(*text) : std::vector<Module>())
    if (std::ranges::none_of(kKnown, [&](std::string_view kind) { return module.type.ends_with(kind); }))
      further.push_back({module.path, safe_display(module.type, 80)});
  const auto pooling = pooling_config(files, files_read);
  if (pooling && pooling->given("include_prompt") && !pooling->get("include_prompt").truth())
    further.push_back({"include_prompt", "false"});
  return further;
}

}  // namespace loadline::exporters
