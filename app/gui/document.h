// One model and what is asked of it: the load, the forward pass, what its files hold. No ImGui.
#pragma once

#include "app/gui/arena_work.h"
#include "app/gui/asked.h"
#include "app/gui/convert_task.h"
#include "app/gui/forward_scene.h"
#include "app/gui/latest.h"
#include "app/gui/load_task.h"
#include "app/gui/metadata_view.h"
#include "app/gui/model.h"
#include "app/gui/order_list.h"
#include "app/gui/shared.h"
#include "core/inspect/doctor.h"
#include "core/load/projection.h"

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

// Verbs return at once; what takes time is asked of a Latest, whose answer comes when the jobs are polled.
// Throws Error{usage} where a verb cannot be done; what goes wrong later is a notice. Used from one thread.
class Document {
 public:
  // What the document that is shown next takes over.
  struct Kept {
    Asked asked = {};
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

  // The load and its forward pass. Throws Error{usage} for what cannot be meant, which then changes nothing;
  // what the sizes of the pass are wrong for is forward_error().
  void ask(const Asked& asked);
  const Asked& asked() const { return asked_; }
  // One option of load_options(), from a word. With another target or kind of memory, budgets that mean
  // something else there go.
  void set_option(std::string_view option, std::string_view word);
  const std::vector<Target>& targets() const { return *shared_.targets; }
  // The kind of memory and the budgets in force.
  BoundMemory memory() const;
  // What the timeline's request means for the model, which there must be.
  BoundRequest bound() const;
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

  // Of the pass with the sizes chosen; null where no operators are known.
  const std::shared_ptr<const ForwardFigures>& figures() const { return figures_; }
  const std::string& figures_error() const { return figures_error_; }

  // Looks into the files for what slows down loading them.
  void diagnose();
  // Asks the exporter whether it can write the model that way.
  void weigh_convert(const ConvertTask& task);

  const std::uint64_t id;  // rises with every document: what is cached for another one is stale
  const ModelPtr model;
  MetadataView metadata;
  Latest<ForwardScene> forward;
  Latest<Projection> projection;
  Latest<report::PicturedAnswer> comparison;  // of all methods; never null
  Latest<OrderList> order;                    // as listed; never null
  Latest<std::vector<Finding>> findings;
  // Of the conversion last weighed: what the file would not hold of the model, in sentences. The error says
  // why it cannot be written.
  Latest<std::vector<std::string>> convert_fit;
  std::unique_ptr<ArenaWork> arena;  // never null

  // How the panels look at it.
  std::set<std::string, std::less<>> overlaid;  // methods whose curves lie over each other; none: a few
  std::string operator_search;
  std::optional<std::size_t> operator_shown;  // position in the forward graph
  std::vector<Remedy> wants_convert;          // the convert panel takes these options

 private:
  void refresh_table();
  void check(const Asked& asked) const;
  void lower();
  void evaluate_forward();
  const ForwardScene* pass() const;  // what follows the load; null if nothing does
  LoadTask task(LoadQuestion question) const;
  LoadQuestion timeline() const { return timeline_question(asked_, pass(), custom_); }
  void refresh_load();  // asks what was not asked yet, or was cancelled
  void plan();
  void compare();

  Shared& shared_;
  std::optional<TensorId> selection_;
  std::uint64_t selections_ = 0;
  NodeId zoomed_ = kRootNode;
  TableView table_;
  Asked asked_;
  std::shared_ptr<const StorageOrder> custom_;
  std::shared_ptr<PassMemo> passes_ = std::make_shared<PassMemo>();
  std::optional<LoadQuestion> planned_, compared_;
  std::optional<LoadQuestion> listed_;  // whose order `order` is
  std::string plan_failure_;            // the notice that another plan takes back
  std::string upload_misfit_;
  std::shared_ptr<const ForwardScene> evaluated_;  // what figures_ are of, with which sizes
  std::vector<std::uint64_t> symbols_;
  std::shared_ptr<const ForwardFigures> figures_;
  std::string figures_error_;
};

// Why there is no forward scene, or why it has no figures.
std::string forward_error(const Document& document);
// Why the last look into the files found nothing.
std::string diagnosis_error(const Document& document);

// What the arena can pack of the model.
ArenaModel arena_model(const Document& document);
// The plan or the pass is not there yet.
bool arena_waits(const Document& document);
// The panel is in sight: packs, unless what it would pack is still being worked out.
void show_arena(Document& document);

}  // namespace loadline::gui
