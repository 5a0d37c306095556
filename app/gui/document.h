// One model and what is asked of it: the load, the forward pass, what its files hold. No ImGui.
#pragma once

#include "app/gui/arena_work.h"
#include "app/gui/convert_request.h"
#include "app/gui/forward_scene.h"
#include "app/gui/latest.h"
#include "app/gui/metadata_view.h"
#include "app/gui/model.h"
#include "app/gui/order_list.h"
#include "app/gui/plan_choice.h"
#include "app/gui/shared.h"
#include "core/inspect/doctor.h"
#include "core/load/projection.h"
#include "core/plan/forward_pass.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace loadline::gui {

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

// The methods beside each other, and by what their rows were made and judged.
struct Comparison {
  std::vector<report::PlanRow> rows;
  report::RowFrame frame;
};

// Verbs return at once; what takes time is asked of a Latest, whose answer comes when the jobs are polled.
// Throws Error{usage} where a verb cannot be done; what goes wrong later is a notice. Used from one thread.
class Document {
 public:
  // What the document that is shown next takes over.
  struct Kept {
    PlanChoice choice = {};
    ForwardChoice forward_choice = {};
    SortColumn column = SortColumn::offset;
    bool ascending = true;
    std::unique_ptr<ArenaWork> arena = nullptr;  // a packing problem stays beside the models
  };

  // Without a model (null) it is the start page, where choices wait for one.
  Document(Shared& shared, ModelPtr model, Kept kept);
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  // Leaves nothing to do but to destroy it.
  Kept hand_over();

  // Looking at tensors. Those outside the model are not selected, nor zoomed to.
  void select(std::optional<TensorId> tensor);
  std::optional<TensorId> selection() const { return selection_; }
  // Rises with every select(): lists scroll to it.
  std::uint64_t selections() const { return selections_; }
  void zoom(NodeId module);  // what the map shows
  NodeId zoomed() const { return zoomed_; }
  void set_filter(std::string filter);
  void set_sort(SortColumn column, bool ascending);
  const TableView& table() const { return table_; }

  // The load. Ids are checked: Error{usage}; the custom order must have been arranged or read.
  void set_plan(const PlanChoice& choice);
  const PlanChoice& choice() const { return choice_; }
  // Lists the chosen order, for who arranges it; nothing if it is listed already.
  void list_order();
  // The list as somebody changed it becomes the custom order, and the chosen one.
  void arrange_order(OrderList list);
  bool has_custom_order() const { return custom_ != nullptr; }
  // The custom order from, and the chosen one to, a file (core/load/order_file.h). Error{usage} without a
  // model; only a .txt file is written over.
  void load_order(const std::string& path);
  void save_order(const std::string& path);
  // The comparison as a picture (.svg) or as a page (.html). Error{usage} without a comparison, or for a
  // file that ends otherwise.
  void save_chart(const std::string& path);
  // Why the upload as chosen would be refused on the device it would go to; empty if it fits, or if that is
  // not known yet.
  const std::string& upload_misfit() const { return upload_misfit_; }
  void weigh_upload();  // devices have changed

  // The forward pass. Its sizes are bounded by kMostBatch and the like; what the options are wrong for is
  // forward_error().
  void set_forward(const ForwardChoice& choice);
  const ForwardChoice& forward_choice() const { return forward_choice_; }
  // Of the pass with the sizes chosen; null where no operators are known.
  const std::shared_ptr<const ForwardFigures>& figures() const { return figures_; }
  const std::string& figures_error() const { return figures_error_; }

  // Looks into the files for what slows down loading them.
  void diagnose();
  // Asks the exporter whether it can write the model that way.
  void weigh_convert(const ConvertRequest& request);

  const std::uint64_t id;  // rises with every document: what is cached for another one is stale
  const ModelPtr model;
  MetadataView metadata;
  Latest<ForwardScene> forward;
  Latest<Projection> projection;
  Latest<Comparison> comparison;  // never null
  Latest<OrderList> order;        // as listed; never null
  Latest<std::vector<Finding>> findings;
  // Of the conversion last weighed: what the file would not hold of the model, in sentences.
  Latest<std::vector<std::string>> convert_fit;
  std::unique_ptr<ArenaWork> arena;  // never null

  // How the panels look at it.
  std::set<std::string, std::less<>> overlaid;  // methods whose curves lie over each other; none: a few
  std::string operator_search;
  std::optional<std::size_t> operator_shown;    // position in the forward graph
  std::optional<ConvertRequest> wants_convert;  // the convert panel takes these options

 private:
  void refresh_table();
  void lower();
  void evaluate_forward();
  std::optional<ForwardPass> pass() const;  // what follows the load, if it is known and wanted
  PlanTask plan_task() const;
  void plan();
  void compare();

  Shared& shared_;
  std::optional<TensorId> selection_;
  std::uint64_t selections_ = 0;
  NodeId zoomed_ = kRootNode;
  TableView table_;
  PlanChoice choice_;
  std::shared_ptr<const StorageOrder> custom_;
  std::string listed_;        // which order `order` is, and of which method where that matters; empty: none
  std::string plan_failure_;  // the notice that another plan takes back
  std::string upload_misfit_;
  ForwardChoice forward_choice_;
  std::shared_ptr<const ForwardFigures> figures_;
  std::string figures_error_;
};

// Why there is no forward scene, or why it has no figures.
std::string forward_error(const Document& document);
// Why the last look into the files found nothing.
std::string diagnosis_error(const Document& document);
// Why the conversion last weighed cannot be written, and what the file would not hold; empty if that is not
// known yet.
std::string convert_misfit(const Document& document);
std::vector<std::string> convert_losses(const Document& document);

// What the arena can pack of the model.
ArenaModel arena_model(const Document& document);
// The plan or the pass is not there yet.
bool arena_waits(const Document& document);
// The panel is in sight: packs, unless what it would pack is still being worked out.
void show_arena(Document& document);

}  // namespace loadline::gui
