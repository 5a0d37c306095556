// The window's state and what a user can do, without a window: no ImGui, no Vulkan types.
#pragma once

#include "app/gui/convert_task.h"
#include "app/gui/document.h"
#include "app/gui/folder_listing.h"
#include "app/gui/latest.h"
#include "app/gui/shared.h"
#include "core/gpu/upload.h"
#include "core/io/file_system.h"
#include "core/load/rows.h"
#include "exporters/write_layout.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

class DemoFolder;

// How the map colours tensors.
enum class ColorBy { role, dtype, layer, shard };
inline constexpr std::array<std::string_view, 4> kColorNames = {"role", "dtype", "layer", "shard"};

// How the comparison is shown; `order` is where the order itself is arranged.
enum class CompareView : std::uint8_t { table, curves, overlay, order };
inline constexpr std::array<std::string_view, 4> kCompareViewNames = {"table", "curves", "overlay", "order"};
struct CompareSort {
  RowSort by = RowSort::table;
  bool ascending = true;
  bool operator==(const CompareSort&) const = default;
};

// How the window looks, whatever model it shows.
struct Settings {
  std::string panel = "explore";
  bool dark = true;
  ColorBy color_by = ColorBy::role;
  CompareView compare_view = CompareView::table;
  CompareSort compare_sort;
  bool operators_as_list = false;  // else as modules
  bool fold_operators = true;      // modules that are alike are one line
  bool verify_upload = true;
};

// A finished upload beside the projection it was meant to match.
struct UploadResult {
  std::shared_ptr<const Projection> projection;
  gpu::UploadReport report;
  // No other work of the window ran meanwhile: what the system counted for the process is the upload's.
  bool alone = true;
};

// A finished conversion.
struct Conversion {
  std::uint64_t document = 0;  // the id of the one that was converted
  WriteReport report;
};

// Verbs return at once; what takes time is a job, taken in by poll(). Used from one thread.
class Workspace {
 public:
  // `hub_cache` as in ResolveOptions; without `assets` those built in.
  explicit Workspace(std::string hub_cache, std::shared_ptr<const ForwardAssets> assets = nullptr);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Opens in the background; the model shown stays until the new one is there. A .csv file is a packing
  // problem: it stays beside the model, in the panel "arena".
  // A .json file may be a saved request. `with` are options of opening.
  void open(const std::string& path, const std::vector<Remedy>& with = {});
  // A saved request (core/load/request_file.h) is asked of its model, or else of the one that is shown.
  // Throws Error.
  void open_request(const std::string& path);
  void save_request(const std::string& path);
  // Writes the built-in demo model to a temporary folder, once, and opens it.
  void open_demo();
  // Shows a graph that is already there.
  void show(MetaGraphPtr graph, std::string path);
  void close_model();
  // The one that is shown; there always is one. A new model is another document in its place.
  Document& document() { return *document_; }
  const Document& document() const { return *document_; }

  // Throw Error when the model cannot be used that way; what goes wrong later is a notice.
  void convert(const ConvertTask& task);
  void upload();
  // The last ones, as long as they are of the model, and of the projection, that is shown; else null.
  std::shared_ptr<const Conversion> converted() const;
  std::shared_ptr<const UploadResult> uploaded() const;

  // Again at every call: what they have available changes.
  void find_devices();
  const std::vector<gpu::DeviceInfo>& devices() const { return shared.devices.or_empty(); }
  void choose_device(std::string device);
  // Looks how much room there is for a file at `path`.
  void measure_disk(const std::string& path);
  // Lists a folder, for the file browser; the listing's error says why it cannot.
  void browse(const std::string& folder);
  const FolderListing& folder() const { return listing.or_empty(); }  // last listed

  // Sets the options, and does again what failed without them: `path` could not be opened.
  void mend(const std::vector<Remedy>& remedies, const std::string& path = {});
  // Runs a verb and turns its Error into a notice: for buttons.
  void attempt(const std::function<void()>& verb);
  // Takes in what jobs delivered; true if anything changed.
  bool poll() { return shared.jobs.poll(); }
  bool busy() const { return !shared.jobs.idle(); }

  Shared shared;
  Settings settings;
  bool wants_browser = false;  // the file browser opens at the next frame
  bool wants_quit = false;
  std::string manual;  // the topic that is shown; empty: none
  Latest<Model> opening;
  Latest<Conversion> conversion;
  Latest<UploadResult> uploading;
  Latest<DiskSpace> disk;  // as last measured; null while it is unknown
  Latest<FolderListing> listing;

 private:
  void ask_open(std::string name, std::string path, std::function<std::string(Progress&)> locate,
                const std::vector<Remedy>& with = {});
  void adopt(ModelPtr model);

  std::string hub_cache_;
  std::optional<LoadRequest> wanted_;  // of the model that is being opened
  std::shared_ptr<DemoFolder> demo_;   // the jobs that write to it hold it, too
  std::string disk_path_;              // what was last measured
  std::unique_ptr<Document> document_;
};

}  // namespace loadline::gui
