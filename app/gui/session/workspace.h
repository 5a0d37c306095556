// The state of the program's window and the user's operations on it. Needs no window: no ImGui, no Vulkan
// types.
#pragma once

#include "app/gui/session/convert_task.h"
#include "app/gui/session/document.h"
#include "app/gui/session/folder_listing.h"
#include "app/gui/session/latest.h"
#include "app/gui/session/shared.h"
#include "core/gpu/upload.h"
#include "core/io/file_system.h"
#include "core/load/rows.h"
#include "exporters/write_layout.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
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
  RowSort by = RowSort::fit;
  bool ascending = true;
  bool operator==(const CompareSort&) const = default;
};

// The parts of the window. Sizes are logical; 0 follows the window until the user drags the part.
struct Layout {
  float tree = 0, inspector = 0, timeline = 0;
  bool show_tree = true, show_inspector = true, show_timeline = true;
  bool operator==(const Layout&) const = default;
};

// Display settings that do not depend on the model.
struct Settings {
  std::string panel = "map";
  std::map<std::string, std::string, std::less<>> last_in_tab =
      {};  // the panel of each tab that was shown last
  Layout layout;
  float scale = 0;        // pixels per logical unit that the user chose; 0: the monitor's
  float shown_scale = 1;  // that of the last frame
  bool dark = true;
  ColorBy color_by = ColorBy::role;
  CompareView compare_view = CompareView::table;
  CompareSort compare_sort;
  bool fits_only = false;          // the comparison leaves out what does not fit
  bool operators_as_list = false;  // else as modules
  bool fold_operators = true;      // repeated modules share one line
  bool verify_upload = true;
};

// A finished upload beside the projection it was meant to match.
struct UploadResult {
  std::shared_ptr<const Projection> projection;
  gpu::UploadReport report;
  // No other job ran during the upload, so the system's counters for the process measure the upload alone.
  bool alone = true;
};

// A finished conversion.
struct Conversion {
  std::uint64_t document = 0;  // the id of the converted document
  WriteReport report;
  std::string out = {};  // the path that was asked for
};

// The output of a conversion compared with its source, weight by weight.
struct ConversionCheck {
  std::uint64_t document = 0;  // the id of the converted document
  bool numbers = false;        // types differ: numbers were compared, to within kCastTolerance
  std::uint64_t weights = 0, equal = 0, missing = 0;
  std::string first_difference = {};  // the name of a weight; empty if there is none
};
// More than rounding to F16 or BF16 changes a number of ordinary size.
inline constexpr double kCastTolerance = 1.0 / 128;

// Every function returns at once. Long work runs in a job, whose result poll() takes in. Used from one
// thread.
class Workspace {
 public:
  // `hub_cache` as in ResolveOptions. Null `assets` means the built-in assets.
  explicit Workspace(std::string hub_cache, std::shared_ptr<const ForwardAssets> assets = nullptr);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Opens a path in the background, with the options `with` of opening. The present model is shown until the
  // new one is there. A .csv file is a packing problem, which the panel "arena" shows beside the model. A
  // .json file may be a saved request.
  void open(const std::string& path, const std::vector<Remedy>& with = {});
  // Opens a saved request (core/load/request_file.h) and applies it to the model that it names, else to the
  // present model. Throws Error.
  void open_request(const std::string& path);
  void save_request(const std::string& path);
  // Writes the built-in demo model to a temporary folder, once, and opens it.
  void open_demo();
  // Shows a graph that is already there.
  void show(MetaGraphPtr graph, std::string path);
  void close_model();
  // The document that is shown. There always is one; a new model comes in a new document.
  Document& document() { return *document_; }
  const Document& document() const { return *document_; }

  // Both throw Error if the model cannot be used that way. A later failure becomes a notice.
  void convert(const ConvertTask& task);
  // Compares the output of the last conversion with its source.
  void check_conversion();
  void upload();
  // The last conversion of the present model, and the last upload of the present projection; else null.
  std::shared_ptr<const Conversion> converted() const;
  std::shared_ptr<const ConversionCheck> checked() const;
  std::shared_ptr<const UploadResult> uploaded() const;

  // Lists the devices, at every call again: their free memory changes.
  void find_devices();
  const std::vector<gpu::DeviceInfo>& devices() const { return shared.devices.or_empty(); }
  void choose_device(std::string device);
  // Measures the free space for a file at `path`.
  void measure_disk(const std::string& path);
  // Lists the models of the hub cache in `cached`, once.
  void find_cached();
  // Lists a folder for the file browser. A failure is in listing.error().
  void browse(const std::string& folder);
  const FolderListing& folder() const { return listing.or_empty(); }  // last listed

  // Applies remedies: opens `path` again with the options, sets options of the load, or passes options to the
  // convert panel.
  void mend(const std::vector<Remedy>& remedies, const std::string& path = {});
  // Calls `verb` and turns its Error into a notice: for buttons.
  void attempt(const std::function<void()>& verb);
  // Takes in the results of finished jobs; true if there were any.
  bool poll() { return shared.jobs.poll(); }
  bool busy() const { return !shared.jobs.idle(); }

  Shared shared;
  Settings settings;
  bool wants_browser = false;  // the file browser opens at the next frame
  bool wants_quit = false;
  bool wants_advice = false;        // the sheet behind the verdict opens at the next frame
  bool wants_palette = false;       // the palette opens at the next frame
  bool shows_keys = false;          // the sheet of keys is shown
  bool wants_filter = false;        // the filter gets the keyboard at the next frame
  std::vector<std::string> recent;  // paths of models, the last one opened first
  std::string manual;               // the topic of the manual that is shown; empty: none
  Latest<Model> opening;
  Latest<Conversion> conversion;
  Latest<UploadResult> uploading;
  Latest<ConversionCheck> checking;
  Latest<DiskSpace> disk;  // as last measured; null while it is unknown
  Latest<FolderListing> listing;
  Latest<std::vector<std::string>> cached;  // org/name

 private:
  void ask_open(std::string name, std::string path, std::function<std::string(Progress&)> locate,
                const std::vector<Remedy>& with = {});
  void adopt(ModelPtr model);

  std::string hub_cache_;
  std::optional<LoadRequest> wanted_;  // the request for the model that is being opened
  std::shared_ptr<DemoFolder> demo_;   // shared with the jobs that write to it
  std::string disk_path_;              // the path measured last
  std::unique_ptr<Document> document_;
};

}  // namespace loadline::gui
