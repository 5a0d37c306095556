// The state of the window and the user's operations on it. Needs no window: no ImGui, no Vulkan types.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/base/shared.h"
#include "app/gui/state/base/window_requests.h"
#include "app/gui/state/document.h"
#include "app/gui/state/lesson_play.h"
#include "app/gui/state/load/load.h"
#include "app/gui/state/model/files.h"
#include "core/gpu/upload.h"
#include "core/io/file_system.h"
#include "core/load/answer/rows.h"
#include "exporters/writer/write_layout.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- The settings of the window, and what has been finished.

// How the map colors tensors; without another model to differ from, `diff` is `role`.
enum class ColorBy { role, dtype, layer, shard, diff };
inline constexpr std::array<std::string_view, 5> kColorNames = {"role", "dtype", "layer", "shard", "diff"};

// How the comparison is shown; `order` is where the order itself is arranged.
enum class CompareView : std::uint8_t { table, curves, overlay, order };
inline constexpr std::array<std::string_view, 4> kCompareViewNames = {"table", "curves", "overlay", "order"};
struct CompareSort {
  load::RowSort by = load::RowSort::fit;
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
  bool follows_desktop = false;  // dark is what the desktop wants, once that is known
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
  std::shared_ptr<const load::Projection> projection;
  gpu::UploadReport report;
  // No other job ran during the upload, so the system's counters for the process measure the upload alone.
  bool alone = true;
  std::optional<load::MeasuredRates> rates = {};  // of the projected time; absent: assumed ones
};

// A finished conversion.
struct Conversion {
  std::uint64_t document = 0;  // the id of the converted document
  exporters::WriteReport report;
  std::string out = {};  // the path that was asked for
};

// The disk that an output goes to, and whether something is there already.
struct OutputPlace : io::DiskSpace {
  bool exists = false;
};

// More than rounding to F16 or BF16 changes a number of ordinary size.
inline constexpr double kCastTolerance = 1.0 / 128;

// The output of a conversion compared with its source, weight by weight.
struct ConversionCheck {
  std::uint64_t document = 0;  // the id of the converted document
  bool numbers = false;        // types differ: numbers were compared, to within kCastTolerance
  std::uint64_t weights = 0, equal = 0, missing = 0;
  std::string first_difference = {};  // the name of a weight; empty if there is none
};

// --- The open models, and the user's operations on them.

// Every function returns at once. Long work runs in a job, whose result poll() takes in. Used from one
// thread.
class Workspace {
 public:
  // `hub_cache` as in ResolveOptions. Null `assets` means the built-in assets.
  explicit Workspace(std::string hub_cache, std::shared_ptr<const forward::ForwardAssets> assets = nullptr);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Opens a path in the background, with the options `with` of opening. Paths open one after the other, each
  // in a document of its own, which is shown then: the document that has this path already, else the one
  // without a model, else a new one at the end. A .csv file is a packing problem, which the panel "arena"
  // shows beside the model. A .json file may be a saved request.
  void open(const std::string& path, const std::vector<Remedy>& with = {});
  // Opens a saved request (core/load/request/load_options.h) and applies it to `model`, else to the model
  // that it names, else to the present model. Throws Error.
  void open_request(const std::string& path, const std::string& model = {});
  void save_request(const std::string& path);
  // Writes the built-in demo model to a temporary folder, once, and opens it.
  void open_demo();
  // Shows a graph that is already there.
  void show(graph::MetaGraphPtr graph, std::string path);
  // Reads the model again from its files. The question, the filter and the selection stay.
  void reload();
  // Closes the document that is shown, and shows the one beside it.
  void close_model();
  // The document that is shown. There always is one; a new model comes in a new document.
  Document& document() { return *documents_[shown_]; }
  const Document& document() const { return *documents_[shown_]; }
  // All of them, in the order of the tabs.
  const std::vector<std::unique_ptr<Document>>& documents() const { return documents_; }
  std::size_t shown_document() const { return shown_; }
  void show_document(std::size_t at);  // a position in documents(); others are ignored
  // The open model that is most like the one shown, by its number of weights: a converted file is compared
  // with its source. Nothing if no other model is open.
  std::optional<std::size_t> nearest_document() const;
  // The document with this id; null if it was closed.
  Document* find_document(std::uint64_t id) const;

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

  // Keeps the path of the model shown among the favorites, or drops it. Throws Error{usage} without a path.
  void toggle_favorite();

  // Plays a lesson (app/lesson/lesson.h): its first step comes into the views. Throws Error{usage}.
  void play_lesson(const std::string& id);
  // Goes to a step of the lesson and shows its scene. Throws Error{usage}.
  void go_to_step(std::size_t step);
  // Shows the scene of the step again: its model, its load, its panel.
  void show_lesson_scene();
  // Closes the lesson's model, and shows what was there before.
  void leave_lesson();

  // Applies remedies: opens `path` again with the options, sets options of the load, or passes options to the
  // convert panel.
  void mend(const std::vector<Remedy>& remedies, const std::string& path = {});
  // Quits, unless a conversion or an upload runs: then asks first, once.
  void ask_quit();
  // Calls `verb` and turns its Error into a notice: for buttons.
  void attempt(const std::function<void()>& verb);
  // Takes in the results of finished jobs; true if there were any.
  bool poll();
  bool busy() const { return !shared.jobs.idle() || !waiting_.empty() || requests.holds<ExportRequest>(); }
  // Called on another thread when poll() has something to do.
  void set_wake(const std::function<void()>& wake);

  Shared shared;
  Settings settings;
  LessonPlay lesson{shared};
  WindowRequests requests;
  std::string done;                    // what was finished last, in words; not a message that must be read
  std::vector<std::string> favorites;  // paths of models that the user keeps, the newest first
  std::vector<std::string> recent;     // paths of models, the last one opened first
  Latest<Model> opening;
  Latest<Conversion> conversion;
  Latest<UploadResult> uploading;
  std::shared_ptr<const LiveUpload>
      live_upload;  // of the upload that runs, or ran last; null before the first
  Latest<ConversionCheck> checking;
  Latest<OutputPlace> disk;  // as last measured; null while it is unknown
  Latest<FolderListing> listing;
  Latest<std::vector<std::string>> cached;  // org/name

 private:
  void take_scene(ModelPtr model);  // of the lesson
  void take_panel();                // of the document shown, as it was left
  // A model to be opened.
  struct ToOpen {
    std::string name;                                   // of the job
    std::string path;                                   // as asked for; empty: not to be remembered
    std::function<std::string(Progress&)> locate = {};  // makes or finds the model; empty: it is at the path
    std::vector<Remedy> with = {};
    std::optional<load::LoadRequest> request = {};  // asked of the model once it is there
    std::uint64_t in_place_of = 0;                  // the id of the document that is read again; 0: none
  };
  void ask_open(ToOpen wanted);
  void open_next();
  void take_opened(const ToOpen& wanted);
  void adopt(ModelPtr model, std::uint64_t in_place_of = 0);
  void replace(std::size_t at, ModelPtr model);
  void reload(std::size_t at);
  void watch_files();
  void take_changed_files();

  std::string hub_cache_;
  std::deque<ToOpen> waiting_;                        // the first is being opened
  std::shared_ptr<io::TemporaryFolder> demo_;         // shared with the jobs that write to it
  std::string disk_path_;                             // the path measured last
  std::vector<std::unique_ptr<Document>> documents_;  // never empty
  std::size_t shown_ = 0;
  // What was there before the lesson.
  struct BeforeLesson {
    std::uint64_t document = 0;
    Asked asked = {};
    Settings settings = {};
  };
  BeforeLesson before_lesson_;
  FileWatch watch_;
};

// What a tab is called, not escaped: the model's name, and where another open model has that too, its file's.
std::string tab_title(const Workspace& workspace, const Document& document);

}  // namespace loadline::gui
