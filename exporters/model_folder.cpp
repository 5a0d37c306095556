// Sorts the entries of a folder into copied files and others by their names.
#include "exporters/model_folder.h"

#include "core/base/error.h"
#include "core/io/file_system.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace loadline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 10'000;
constexpr int kMostDepth = 4;

// Endings of files that hold weights or training state, and of their indexes.
constexpr std::array<std::string_view, 21> kWeights = {
    ".safetensors", ".bin",       ".pt",  ".pth",       ".ckpt",   ".gguf",       ".onnx",
    ".onnx_data",   ".onnx.data", ".pte", ".ptd",       ".tflite", ".npz",        ".npy",
    ".h5",          ".msgpack",   ".ot",  ".mlpackage", ".pt2",    ".index.json", ".safetensors.index.json"};

bool holds_weights(std::string_view name) {
  return std::ranges::any_of(kWeights, [&](std::string_view ending) { return name.ends_with(ending); });
}

class Lister {
 public:
  Lister(const MetaGraph& graph, fs::path folder, bool follow_links)
      : graph_(graph), folder_(std::move(folder)), follow_links_(follow_links) {
    std::error_code ignored;
    real_ = fs::canonical(folder_, ignored);
  }

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
        if (at->is_symlink(ignored) || depth == kMostDepth)
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
    if (name == kConfigKey || is_own(entry)) return;
    const std::uintmax_t bytes = entry.file_size(failure);
    if (holds_weights(name) || failure || !(follow_links_ || stays_inside(entry.path())))
      return result_.left_out.push_back(name);
    result_.files.push_back({name, entry.path().string(), bytes});
  }

  bool is_own(const fs::directory_entry& entry) const {
    return std::ranges::any_of(graph_.files, [&](const ModelFile& file) {
      std::error_code ignored;
      return fs::path(file.path).filename() == entry.path().filename() &&
             fs::equivalent(file.path, entry.path(), ignored);
    });
  }

  // As importers see to it: a link may lead to the folder itself or into the blobs of a hub cache.
  bool stays_inside(const fs::path& path) const {
    std::error_code failure;
    const fs::path real = fs::canonical(path, failure);
    if (failure) return false;
    const fs::path from_folder = real.lexically_relative(real_);
    if (!from_folder.empty() && *from_folder.begin() != "..") return true;
    return real.parent_path().filename() == "blobs" &&
           real_.parent_path().parent_path() == real.parent_path().parent_path();
  }

  const MetaGraph& graph_;
  const fs::path folder_;
  fs::path real_;
  const bool follow_links_;
  std::size_t entries_ = 0;
  FolderFiles result_;
};

}  // namespace

FolderFiles folder_files(const MetaGraph& graph, bool follow_links) {
  if (graph.files.empty() || find_text(graph, kConfigKey) == nullptr) return {};
  fs::path folder = fs::path(graph.files.front().path).parent_path();
  if (folder.empty()) folder = ".";
  if (!is_folder(folder.string())) return {};
  return Lister(graph, std::move(folder), follow_links).list();
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

}  // namespace loadline
