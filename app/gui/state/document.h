// The open model, what is asked of it, and the answers.
#pragma once

#include "app/gui/state/base/coordinates.h"
#include "app/gui/state/base/jobs.h"
#include "app/gui/state/base/shared.h"
#include "app/gui/state/load/forward_scene.h"
#include "app/gui/state/load/load.h"
#include "app/gui/state/model/file_data.h"
#include "app/gui/state/model/model.h"
#include "app/gui/state/model/model_diff.h"
#include "core/forward/model/assets_loader.h"
#include "core/inspect/doctor.h"
#include "core/load/answer/projection.h"
#include "exporters/convert.h"
#include "exporters/preflight.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace loadline::gui {

class ArenaWork;
struct ArenaModel;

// --- A conversion and its target path.

struct ConvertTask {
  exporters::ConvertRequest request = {};
  std::string out = {};
};

// For a job: files are read, and the order may take long to find.
exporters::Conversion bound_conversion(const Model& model, const ConvertTask& task,
                                       const forward::ForwardAssets& assets, const Progress& progress);

// --- The open model, the user's choices for it, and the answers: load, forward pass, tensor table. No ImGui.

// The tensors that pass a filter, sorted.
struct TableRows {
  std::string applied;  // the filter
  std::vector<graph::TensorId> rows;
  std::uint64_t bytes = 0;  // of the rows
  std::vector<bool> lit;    // per node of the tree: a tensor in it passes the filter; empty without a filter
};

// The rows belong to the last valid filter. Of a large model they come later, from a job.
struct TableView : TableRows {
  std::string filter;  // as typed
  std::string error;   // why the filter is invalid; empty if it is valid
  SortColumn column = SortColumn::offset;
  bool ascending = true;
};

// Every function returns at once. Long work runs in a job; its result arrives in a Latest when the jobs are
// polled. A function throws Error{usage} if it cannot be done; a later failure becomes a notice. Used from
// one thread.
class Document {
 public:
  // The state that the next document takes over.
  struct Kept {
    Asked asked = {};
    SortColumn column = SortColumn::offset;
    bool ascending = true;
    std::shared_ptr<ArenaWork> arena = nullptr;  // a packing problem from a file stays when the model changes
    std::string filter = {};
    std::string tensor = {};  // the name of the selected tensor; empty: none
  };

  // A null `model` is the start page; choices made there apply to the next model.
  Document(Shared& shared, ModelPtr model, Kept kept);
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  // What a document beside this one begins with: the question and the sorting.
  Kept kept() const;
  // Moves the state out for a document in the place of this one, which may then only be destroyed. The
  // filter and the selection go along if that is `again` the same model.
  Kept hand_over(bool again);

  // Selection and zoom, which every panel shares. What the model does not have is ignored.
  void select(Selected what);
  const Selected& selected() const { return history_.now(); }
  // The selected tensor, or the tensor of the selected block.
  std::optional<graph::TensorId> selected_tensor() const;
  // Counts the changes of the selection. Lists scroll to it when it changes.
  std::uint64_t selections() const { return selections_; }
  bool can_go_back() const { return history_.can_go_back(); }
  bool can_go_forward() const { return history_.can_go_forward(); }
  void go_back();
  void go_forward();
  // The time cursor: a step of the projection, the peak's until the user moves it. 0 without a projection.
  std::size_t step() const;
  void set_step(std::optional<std::size_t> step);  // nothing: back to the peak
  bool at_peak() const { return !step_; }
  // Plays the load from the cursor, or from its start if that is at the end; moves the cursor by the time
  // that has passed.
  void play(bool on);
  void advance(double seconds);
  void zoom(graph::NodeId module);  // the module that the map shows
  graph::NodeId zoomed() const { return zoomed_; }
  void set_filter(std::string filter);
  void set_sort(SortColumn column, bool ascending);
  const TableView& table() const { return table_; }

  // Sets the request of the load and its forward pass. Throws Error{usage} for an invalid request and then
  // changes nothing. Faults in the sizes of the pass are in forward_error().
  void ask(const Asked& asked);
  const Asked& asked() const { return asked_; }
  // Sets one option of load_options() from its text. A new target or kind of memory resets the budgets that
  // would change their meaning.
  void set_option(std::string_view option, std::string_view word);
  const std::vector<load::Target>& targets() const { return *shared_.targets; }
  // The kind of memory and the budgets in force.
  load::BoundMemory memory() const;
  // The timeline's request bound to the model, which must not be null.
  load::BoundRequest bound() const;
  // Counted by the model's architecture, if it is known, else every element; the latter until the count is
  // done.
  std::uint64_t parameters() const {
    return counted_.value() ? *counted_.value() : model ? model->tree.root().parameters : 0;
  }
  // The load that the timeline shows against its budgets; null while there is no projection.
  const JudgedLoad* judged_load() const { return judged.value().get(); }
  // Compares all methods, if that was put off: of a large model it takes seconds and half a gigabyte, so it
  // waits until somebody looks.
  void want_comparison();
  // Searches for changes that make the load fit, unless that is known already; the result is in `advice`.
  void advise();
  // Whether `advice` belongs to what is asked now.
  bool advised() const { return advised_ == asked_; }
  // Takes the changes over; take_back() undoes that while nothing else was asked since.
  void apply(const load::AdvisedLoad& load);
  void take_back();
  bool can_take_back() const { return applied_ == asked_; }
  // Projects an advised load, to be shown over the timeline; null ends that.
  void preview(const load::AdvisedLoad* load);
  // Another method, played in step with the load: at the same moments of their clocks. Empty: none. Throws
  // Error{usage} for an unknown method.
  void set_beside(std::string method);
  const std::string& beside_method() const { return beside_method_; }
  // Lists the chosen order in `order`, for the order editor, unless it is listed already.
  void list_order();
  // Makes the edited list the custom order, and chooses it.
  void arrange_order(OrderList list);
  bool has_custom_order() const { return custom_ != nullptr; }
  // Loads the custom order from a file, or saves the chosen order to one (core/load/request/bind_request.h).
  // Throws Error{usage} without a model. Only a .txt file is overwritten.
  void load_order(const std::string& path);
  void save_order(const std::string& path);
  // Saves the comparison as a picture (.svg) or as a page (.html). Throws Error{usage} without a comparison,
  // and for any other extension.
  void save_chart(const std::string& path);
  // Why the chosen device would refuse the upload; empty if the upload fits, or while this is unknown.
  const std::string& upload_misfit() const { return upload_misfit_; }
  // The same for every device that is listed; empty while this is unknown.
  const std::vector<std::string>& device_misfits() const { return device_misfits_; }
  void weigh_upload();  // updates both; called when the list of devices changes

  // The figures of the pass with the chosen sizes; null if no operators are known.
  const std::shared_ptr<const forward::ForwardFigures>& figures() const { return figures_; }
  const std::string& figures_error() const { return figures_error_; }

  // Searches the files for problems that slow down loading; the result is in `findings`.
  void diagnose();
  // Lays out a conversion without writing it, to see if the exporter can; the result is in `convert_fit`.
  void weigh_convert(const ConvertTask& task);

  const std::uint64_t id;  // increases with every document: caches with another id are stale
  const ModelPtr model;
  MetadataView metadata;
  ValuesView values;
  DiffView diff;
  Latest<ForwardScene> forward;
  Latest<load::Projection> projection;
  Latest<JudgedLoad> judged;                  // of the projection
  Latest<report::PicturedAnswer> comparison;  // of all methods; never null
  Latest<load::LoadAnswer> advice;            // of the load that was asked when advise() was called
  Latest<load::Projection> previewed;         // null without a preview
  Latest<load::Projection> beside;            // null without another method
  Latest<OrderList> order;                    // the order last listed; never null
  Latest<std::vector<inspect::Finding>> findings;
  // For the conversion last weighed: the parts of the model that the file would lose, in sentences. The error
  // says why the file cannot be written.
  Latest<exporters::Preflight> convert_fit;
  std::shared_ptr<ArenaWork> arena;  // never null

  // The state of panels.
  std::optional<std::size_t> hovered_step;  // of the timeline, under the mouse
  // What is under the mouse in any view is marked in all of them: set while one draws, seen by the others in
  // the next frame.
  void hover(graph::NodeId module) { hovering_ = module; }
  std::optional<graph::NodeId> hovered() const { return hovered_; }
  void begin_frame() { hovered_ = std::exchange(hovering_, std::nullopt); }
  bool playing = false;    // the time cursor moves by itself
  std::string panel = {};  // that was shown when another model came to the front; empty: none yet
  double play_speed = 1;
  std::set<std::string, std::less<>> compared;  // methods that the comparison shows; empty: all
  bool compares(std::string_view method) const { return compared.empty() || compared.contains(method); }
  std::set<std::string, std::less<>> overlaid;  // methods in the overlay of curves; empty: a default choice
  std::string operator_search;
  std::optional<std::size_t> operator_shown;  // position in the forward graph
  std::vector<Remedy> wants_convert;          // options that the convert panel takes over when next drawn

 private:
  bool exists(const Selected& what) const;
  void refresh_table();
  void take_rows(TableRows rows);
  void check(const Asked& asked) const;
  void lower();
  void evaluate_forward();
  const ForwardScene* pass() const;  // the pass that follows the load, or null
  LoadTask task(LoadQuestion question) const;
  LoadQuestion timeline() const { return timeline_question(asked_, pass(), custom_); }
  void refresh_load();  // asks questions that are new or were canceled
  void plan();
  void compare();
  void judge();
  void plan_beside();

  Shared& shared_;
  SelectionHistory history_;
  std::uint64_t selections_ = 0;
  std::optional<std::size_t> step_;  // of the cursor, if it was moved from the peak
  double played_ = 0;                // steps of the play, with fractions
  graph::NodeId zoomed_ = graph::kRootNode;
  std::optional<graph::NodeId> hovered_, hovering_;
  TableView table_;
  Latest<TableRows> listing_;  // of a large model
  Asked asked_;
  std::optional<Asked> advised_;             // what `advice` belongs to
  std::optional<Asked> applied_, restored_;  // what apply() made, and of what
  std::optional<Asked> previewing_;
  std::string beside_method_;
  std::optional<LoadQuestion> beside_of_;  // the question that `beside` answers, or will
  std::shared_ptr<const load::StorageOrder> custom_;
  std::shared_ptr<PassMemo> passes_ = std::make_shared<PassMemo>();
  Latest<std::uint64_t> counted_;  // parameters
  std::optional<LoadQuestion> planned_, compared_;
  std::optional<LoadQuestion> judged_of_;  // the question that `judged` answers, or will
  bool wants_comparison_ = true;
  std::optional<LoadQuestion> listed_;  // the question whose order is in `order`
  std::string plan_failure_;            // the notice to remove when another plan is made
  std::string upload_misfit_;
  std::vector<std::string> device_misfits_;
  std::shared_ptr<const ForwardScene> evaluated_;  // the scene and the symbol values behind figures_
  std::vector<std::uint64_t> symbols_;
  std::shared_ptr<const forward::ForwardFigures> figures_;
  std::string figures_error_;
};

// Why there is no forward scene, or why the scene has no figures.
std::string forward_error(const Document& document);
// Why the last diagnose() failed.
std::string diagnosis_error(const Document& document);

// The model's data that the arena can pack.
ArenaModel arena_model(const Document& document);
// Whether the plan or the pass to pack is still being computed.
bool arena_waits(const Document& document);
// Called while the arena panel is visible: packs, unless the plan or the pass is still being computed.
void show_arena(Document& document);

}  // namespace loadline::gui
