// The open model, with what is asked of it and the answers.
#pragma once

#include "app/gui/state/base/coordinates.h"
#include "app/gui/state/base/jobs.h"
#include "app/gui/state/base/services.h"
#include "app/gui/state/load/load_work.h"
#include "app/gui/state/model/checks.h"
#include "app/gui/state/model/file_data.h"
#include "app/gui/state/model/model.h"
#include "app/gui/state/model/model_diff.h"
#include "app/gui/state/model/tensor_table.h"
#include "app/gui/state/summary.h"
#include "core/forward/model/expected_tensors.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::gui {

class ArenaWork;
struct ArenaModel;

// Each member holds one matter: its question, its jobs, its answers. The document composes them, and does
// what concerns several: it refuses a selection that does not exist, and lets selection, time cursor and
// checks follow the load. No ImGui. Used from one thread.
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
    // Of the operators: what is looked for, the one shown, and the part that the graph draws.
    std::string search = {};
    std::optional<std::size_t> op = {};
    std::vector<graph::OpPlace> inside = {};
    graph::OpNodeId module = graph::kRootOpNode;
    LoadWork::History history = {};
  };

  // A null `model` is the start page; choices made there apply to the next model.
  Document(Services& services, ModelPtr model, Kept kept);
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  // What a document beside this one begins with: the question and the sorting.
  Kept kept() const;
  // Moves the state out for a document in the place of this one, which may then only be destroyed. The
  // filter and the selection go along if that is `again` the same model.
  Kept hand_over(bool again);

  // Selection and zoom, which every panel shares. What the model does not have is ignored.
  void select(Selected what);
  // Selects, and asks for the menu of what can be done with the selection: a right click.
  void select_for_menu(Selected what) {
    select(std::move(what));
    asked_menu = AskedMenu();
  }
  bool exists(const Selected& what) const;
  const Selected& selected() const { return history.now(); }
  // An operator of ForwardScene::drawn(): that of the pass which runs it, if one does.
  Selected operator_at(graph::OpPlace place) const;
  // The selected tensor, or the tensor of the selected block.
  std::optional<graph::TensorId> selected_tensor() const;
  void zoom(graph::NodeId module);  // the module that the map shows
  graph::NodeId zoomed() const { return zoomed_; }
  // Holds the load against the devices that are listed.
  void weigh_upload() { checks.weigh_upload(load.projection.value().get()); }
  // Counted by the model's architecture, if it is known, else every element; the latter until the count is
  // done.
  std::uint64_t parameters() const {
    return claims_.value() ? claims_.value()->parameters : model ? model->tree.root().parameters : 0;
  }
  // ", without vision_config": what that count leaves out, since nothing describes it.
  std::string uncounted() const { return claims_.value() ? without_text(*claims_.value()) : ""; }
  // What is wrong with the model or not understood of it; without its architecture until that is compared.
  const std::vector<Caveat>& caveats() const { return caveats_; }
  // The unit of the time axis: two methods side by side share a clock, not their steps.
  view::RunAxis axis_unit() const { return load.beside.value() ? view::RunAxis::seconds : axis.chosen; }
  // What is visible stays: the same moments in the other unit.
  void show_unit(view::RunAxis unit);
  // The first step of the load that exceeds a limit, and the label of the block that it takes.
  struct Failure {
    std::size_t step = 0;
    std::string label = {};
  };
  std::optional<Failure> failure() const;
  bool compares(std::string_view method) const { return compared.empty() || compared.contains(method); }

  const std::uint64_t id;  // increases with every document: caches with another id are stale
  const ModelPtr model;
  SelectionHistory history;
  TimeCursor time;
  TimeAxis axis;
  Hover hover;
  MetadataView metadata;
  ValuesView values;
  SmallValues constants;
  DiffView diff;
  TensorTable table;
  Checks checks;
  ForwardWork forward;
  LoadWork load;
  Advisor advice;
  OrderEditing order;
  std::shared_ptr<ArenaWork> arena;  // never null

  std::optional<AskedMenu> asked_menu;  // the window takes it

  // The state of panels.
  std::string panel = {};  // that was shown when another model came to the front; empty: none yet
  std::set<std::string, std::less<>> compared;  // methods that the comparison shows; empty: all
  std::set<std::string, std::less<>> overlaid;  // methods in the overlay of curves; empty: a default choice

 private:
  void follow_load();
  void take_projection();

  graph::NodeId zoomed_ = graph::kRootNode;
  Latest<forward::ModelClaims> claims_;
  std::vector<Caveat> caveats_;
};

// The model's data that the arena can pack.
ArenaModel arena_model(const Document& document);
// Whether the plan or the pass to pack is still being computed.
bool arena_waits(const Document& document);
// Called while the arena panel is visible: packs, unless the plan or the pass is still being computed.
void show_arena(Document& document);

}  // namespace loadline::gui
