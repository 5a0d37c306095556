// The window's state and what a user can do, without a window: no ImGui, no Vulkan types.
#pragma once

#include "app/gui/arena_work.h"
#include "app/gui/array_view.h"
#include "app/gui/fits.h"
#include "app/gui/folder_listing.h"
#include "app/gui/forward_scene.h"
#include "app/gui/jobs.h"
#include "app/gui/model.h"
#include "app/gui/order_list.h"
#include "app/gui/plan_choice.h"
#include "core/forward/assets.h"
#include "core/gpu/device_info.h"
#include "core/gpu/upload.h"
#include "core/inspect/doctor.h"
#include "core/load/projection.h"
#include "core/plan/forward_pass.h"
#include "exporters/write_layout.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

class DemoFolder;

// How the treemap colours tensors.
enum class ColorBy { role, dtype, layer, shard };
inline constexpr std::size_t kColorModes = 4;
std::string_view color_by_name(ColorBy mode);

struct ConvertRequest {
  std::string exporter;
  std::string out;
  ExportOptions options = {};
  bool verify = true;
  bool overwrite = false;
};

// A finished upload beside the projection it was meant to match.
struct UploadResult {
  std::shared_ptr<const Projection> projection;
  gpu::UploadReport report;
  // No other work of the window ran meanwhile: what the system counted for the process is the upload's.
  bool alone = true;
};

// Something to tell the user until it is dismissed.
struct Notice {
  Severity severity = Severity::info;
  std::string text;
  bool of_model = false;  // about the model shown: goes when it goes
};

struct TableView {
  std::string filter;   // as typed
  std::string error;    // what is wrong with it; empty if nothing. Then the rest is of `applied`
  std::string applied;  // the last filter without a fault
  SortColumn column = SortColumn::offset;
  bool ascending = true;
  std::vector<TensorId> rows;
  std::uint64_t bytes = 0;  // of the rows
  std::vector<bool> lit;    // per node of the tree: something of it passes; empty without a filter
};

// Verbs return at once; what takes time is a job, taken in by poll(). Used from one thread.
class Session {
 public:
  // `hub_cache` as in ResolveOptions; without `assets` those built in.
  explicit Session(std::string hub_cache, std::shared_ptr<const ForwardAssets> assets = nullptr);
  ~Session();

  // Opens in the background; the model shown stays until the new one is there. A .csv file is a packing
  // problem: it stays beside the model, in the panel "arena".
  void open(const std::string& path);
  // Writes the built-in demo model to a temporary folder, once, and opens it.
  void open_demo();
  // Shows a graph that is already there.
  void show(MetaGraphPtr graph, std::string path);
  void close_model();

  void select(std::optional<TensorId> tensor);
  void zoom(NodeId module);  // what the treemap shows
  void color_by(ColorBy mode) { color_by_ = mode; }
  void set_filter(std::string filter);
  void set_sort(SortColumn column, bool ascending);
  // Ids are checked: Error{usage}; the custom order must have been arranged or read.
  void set_plan(const PlanChoice& choice);
  // Lists the chosen order in the background, for who arranges it; nothing if it is listed already.
  void list_order();
  // The list as somebody changed it becomes the custom order, and the chosen one.
  void arrange_order(OrderList list);
  // The custom order from, and the chosen one to, a file (core/load/order_file.h), in the background.
  // Error{usage} without a model; only a .txt file is written over.
  void load_order(const std::string& path);
  void save_order(const std::string& path);
  // The comparison as a picture (.svg) or as a page (.html), in the background. Error{usage} without a
  // comparison, or for a file that ends otherwise.
  void save_chart(const std::string& path);
  // Its sizes are bounded by kMostBatch and the like; what the options are wrong for is forward_error().
  void set_forward(const ForwardChoice& choice);
  void set_device(std::string device);
  // Which buffers the arena panel packs. Error{usage} for a source that has none.
  void set_arena(ArenaSource source) { arena_.choose(source, arena_model()); }
  // The panel is in sight: packs, unless what it would pack is still being worked out.
  void show_arena();
  void set_verify_upload(bool verify) { verify_upload_ = verify; }

  // Shows an entry of the metadata; an array is opened for reading. No such entry: nothing is shown.
  void look_at(std::optional<std::size_t> entry);
  // Looks into the files, in the background, for what makes loading them dear.
  void diagnose();
  void stop_diagnosis() { jobs_.cancel_tagged("doctor"); }
  // Asks the exporter, in the background, whether it can write the model that way.
  void weigh_convert(const ConvertRequest& request);

  // Throw Error when the model cannot be used that way; what goes wrong later is a notice.
  void convert(const ConvertRequest& request);
  void upload();
  // Again at every call: what they have available changes.
  void find_devices();
  // Looks in the background how much room there is for a file at `path`.
  void measure_disk(const std::string& path);
  // Lists a folder in the background, for the file browser; a failure is browse_error().
  void browse(const std::string& folder);
  void cancel(JobId job) { jobs_.cancel(job); }
  void dismiss(std::size_t notice);
  void notify(Severity severity, std::string text);
  // Runs a verb and turns its Error into a notice: for buttons.
  void attempt(const std::function<void()>& verb);

  // Takes in what jobs delivered; true if anything changed.
  bool poll() { return jobs_.poll(); }
  bool busy() const { return !jobs_.idle(); }
  void set_wake(std::function<void()> wake) { jobs_.set_wake(std::move(wake)); }

  const ModelPtr& model() const { return model_; }
  // Rises with every model shown: what is cached for an older one is stale.
  std::uint64_t generation() const { return generation_; }
  std::optional<TensorId> selection() const { return selection_; }
  // Rises with every select(): lists scroll to it.
  std::uint64_t selections() const { return selections_; }
  NodeId zoomed() const { return zoomed_; }
  ColorBy color_mode() const { return color_by_; }
  const TableView& table() const { return table_; }
  // What is looked at of the metadata; the array if it is one.
  std::optional<std::size_t> entry() const { return entry_; }
  const std::shared_ptr<ArrayView>& array() const { return array_; }
  // Rises with every look_at(): lists scroll to it.
  std::uint64_t looks() const { return looks_; }
  // What the files were found to have; nothing before they were looked into.
  const std::optional<std::vector<Finding>>& findings() const { return findings_; }
  // Why the last look into the files found nothing.
  const std::string& diagnosis_error() const { return diagnosis_error_; }
  std::optional<JobView> diagnosis() const;  // while it is under way
  bool diagnosing() const { return diagnosing_ > 0; }
  // Why what was last weighed cannot be written; empty if it can, or if that is not known yet.
  const std::string& convert_misfit() const { return convert_misfit_; }
  // What it would not hold of the model, in sentences.
  const std::vector<std::string>& convert_losses() const { return convert_losses_; }
  const PlanChoice& choice() const { return choice_; }
  const ForwardChoice& forward_choice() const { return forward_choice_; }
  // Nothing while it is being worked out for the first time, or where that failed.
  const std::shared_ptr<const ForwardScene>& forward() const { return forward_; }
  bool lowering() const { return lowering_ > 0; }
  // Of the pass with the sizes chosen; nothing where no operators are known.
  const std::shared_ptr<const ForwardFigures>& forward_figures() const { return forward_figures_; }
  // Why there is no scene, or no figures.
  const std::string& forward_error() const { return forward_error_; }
  // Nothing while it is being planned for the first time.
  const std::shared_ptr<const Projection>& projection() const { return projection_; }
  bool planning() const { return planning_ > 0; }
  ArenaWork& arena() { return arena_; }
  const ArenaWork& arena() const { return arena_; }
  ArenaModel arena_model() const { return {model_, projection_, forward_, forward_figures_}; }
  // Of the model shown the plan or the pass is not there yet.
  bool arena_waits() const;
  const std::vector<report::PlanRow>& comparison() const { return *comparison_; }
  // By what its rows were made and judged.
  const report::RowFrame& comparison_frame() const { return comparison_frame_; }
  // Rises with every comparison: what is cached for an older one is stale.
  std::uint64_t comparisons() const { return comparisons_; }
  const OrderList& order_list() const { return order_list_; }
  bool listing_order() const { return listing_ > 0; }
  bool has_custom_order() const { return custom_ != nullptr; }
  const std::vector<DevicePreset>& presets() const { return presets_; }
  void set_presets(std::vector<DevicePreset> presets) { presets_ = std::move(presets); }
  // What times are estimated with from the next plan on; absent: assumed rates.
  const std::optional<MeasuredRates>& rates() const { return rates_; }
  void set_rates(std::optional<MeasuredRates> rates) { rates_ = std::move(rates); }
  bool comparing() const { return comparing_ > 0; }
  // The last upload, as long as it is of the projection shown.
  std::shared_ptr<const UploadResult> upload_result() const;
  bool uploading() const { return uploading_; }
  bool verify_upload() const { return verify_upload_; }
  const std::string& device() const { return device_; }
  const std::vector<gpu::DeviceInfo>& devices() const { return devices_; }
  // Why the upload as chosen would be refused on the device it would go to; empty if it fits, or if
  // that is not known yet.
  const std::string& upload_misfit() const { return misfit_; }
  const std::optional<WriteReport>& convert_report() const { return convert_report_; }
  bool converting() const { return converting_; }
  // As last measured; nothing while it is unknown.
  const std::optional<DiskSpace>& disk() const { return disk_; }
  // The folder last listed.
  const FolderListing& folder() const { return folder_; }
  // Why the folder last asked for could not be listed; empty if it was, or is being listed.
  const std::string& browse_error() const { return browse_error_; }
  bool browsing() const { return browsing_ > 0; }
  bool opening() const { return opening_ > 0; }
  const std::vector<Notice>& notices() const { return notices_; }
  std::vector<JobView> jobs() const { return jobs_.view(); }

  // Verbs of the window itself, which scripts share with the mouse.
  std::string panel = "explore";
  bool dark = true;
  bool wants_browser = false;  // the file browser opens at the next frame
  CompareView compare_view = CompareView::table;
  CompareSort compare_sort;
  std::set<std::string, std::less<>> overlaid;  // methods whose curves lie over each other; none: a few
  std::string metadata_search;
  std::string operator_search;
  std::optional<std::size_t> operator_shown;    // position in the forward graph
  bool operators_as_list = false;               // else as modules
  bool fold_operators = true;                   // modules that are alike are one line
  std::optional<std::uint64_t> wants_element;   // the metadata panel shows it, of the array looked at
  std::optional<ConvertRequest> wants_convert;  // the convert panel takes these options

 private:
  void post_open(std::string name, std::function<std::string(Progress&)> locate);
  void adopt(ModelPtr model);
  void refresh_table();
  void forget_files();  // what was read of the files of the model before
  void lower();
  void evaluate_forward();
  std::optional<ForwardPass> pass() const;  // what follows the load, if it is known and wanted
  PlanTask plan_task() const;
  void plan();
  void compare();
  void forget_order();  // what belongs to the model before: its order and its layers
  void weigh_upload();
  enum class About { model, work };  // what a failure's notice is about: the model shown, or work done
  void fail(std::string_view what, const Error& error, About about);
  void add_notice(Notice notice);

  std::string hub_cache_;
  std::shared_ptr<const ForwardAssets> assets_;
  std::unique_ptr<DemoFolder> demo_;
  ModelPtr model_;
  std::uint64_t generation_ = 0;
  std::optional<TensorId> selection_;
  std::uint64_t selections_ = 0;
  NodeId zoomed_ = kRootNode;
  ColorBy color_by_ = ColorBy::role;
  TableView table_;
  ForwardChoice forward_choice_;
  std::shared_ptr<const ForwardScene> forward_;
  std::shared_ptr<const ForwardFigures> forward_figures_;
  std::string forward_error_;
  std::uint64_t lowering_ = 0;
  std::uint64_t lower_count_ = 0;
  PlanChoice choice_;
  std::shared_ptr<const Projection> projection_;
  std::shared_ptr<const std::vector<report::PlanRow>> comparison_ =
      std::make_shared<const std::vector<report::PlanRow>>();
  report::RowFrame comparison_frame_;
  std::uint64_t comparisons_ = 0;
  std::vector<DevicePreset> presets_;
  std::optional<MeasuredRates> rates_;
  std::shared_ptr<const StorageOrder> custom_;
  OrderList order_list_;
  std::string listed_;  // which order that is, and of which method where that matters; empty: none
  std::uint64_t listing_ = 0;
  std::uint64_t opening_ = 0;  // number of the newest open that is under way, else 0
  std::uint64_t open_count_ = 0;
  std::uint64_t planning_ = 0;
  std::string plan_failure_;  // the notice that another plan takes back
  std::uint64_t comparing_ = 0;
  std::uint64_t plan_count_ = 0;
  std::optional<std::size_t> entry_;
  std::shared_ptr<ArrayView> array_;
  std::uint64_t looks_ = 0;
  std::optional<std::vector<Finding>> findings_;
  std::string diagnosis_error_;
  std::uint64_t diagnosing_ = 0;
  std::uint64_t diagnosis_count_ = 0;
  JobId diagnosis_job_{};
  std::string convert_misfit_;
  std::vector<std::string> convert_losses_;
  std::uint64_t weighing_ = 0;
  std::shared_ptr<const UploadResult> upload_result_;
  bool uploading_ = false;
  bool upload_alone_ = true;
  bool verify_upload_ = true;
  std::string device_;
  std::vector<gpu::DeviceInfo> devices_;
  bool finding_devices_ = false;
  std::string misfit_;
  std::optional<WriteReport> convert_report_;
  bool converting_ = false;
  std::optional<DiskSpace> disk_;
  std::string disk_path_;  // what was last measured
  std::uint64_t measuring_ = 0;
  FolderListing folder_;
  std::string browse_error_;
  std::uint64_t browsing_ = 0;
  std::uint64_t browse_count_ = 0;
  std::vector<Notice> notices_;
  ArenaWork arena_;
  Jobs jobs_;  // last: stops before what its deliveries touch goes
};

}  // namespace loadline::gui
