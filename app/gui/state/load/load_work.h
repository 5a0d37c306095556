// What is asked of a model's load and its forward pass, and the answers, which jobs work out.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/load/forward_scene.h"
#include "app/gui/state/load/load.h"
#include "app/gui/state/model/model.h"
#include "app/report/does_it_run.h"
#include "core/load/answer/projection.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::gui {

struct Services;

// Every function of these classes returns at once. Long work runs in a job; its result arrives in a Latest
// when the jobs are polled. A function throws Error{usage} if it cannot be done; a later failure becomes a
// notice. Used from one thread; a null model has no answers.

// --- The forward pass: its operators, and its figures with the chosen sizes.

class ForwardWork {
 public:
  ForwardWork(Services& services, ModelPtr model) : services_(services), model_(std::move(model)) {}

  // Makes the scene with these options; `then` is called once it is there, or has failed.
  void work_out(const forward::ForwardOptions& options, std::function<void()> then);
  // Works out the figures with the sizes of the request, unless they are there.
  void evaluate(const load::LoadRequest& request);

  // The operators; null if none are known.
  const graph::ForwardGraph* graph() const { return scene.value() ? scene.value()->forward() : nullptr; }
  // Null if no operators are known, or the sizes are at fault.
  const std::shared_ptr<const forward::ForwardFigures>& figures() const { return figures_; }
  // The scene behind the figures.
  const ForwardScene* evaluated() const { return figures_ ? evaluated_.get() : nullptr; }
  // Why there is no scene, or why it has no figures.
  std::string error() const { return scene.error() != nullptr ? scene.error_text() : figures_error_; }

  Latest<ForwardScene> scene;
  std::string search;                // among the operators
  std::optional<std::size_t> shown;  // position in the graph
  // The operators that the graph draws: those of a module, of the model or of what is inside the last of
  // these operators of ForwardScene::drawn(), each inside the one before it.
  std::vector<graph::OpPlace> inside;
  graph::OpNodeId module = graph::kRootOpNode;
  // A side of pictures that is being typed, until it is entered.
  std::optional<std::pair<std::string, std::uint64_t>> typed_side = {};

 private:
  Services& services_;
  ModelPtr model_;
  std::shared_ptr<const ForwardScene> evaluated_;  // the scene and the symbol values behind figures_
  std::vector<std::uint64_t> symbols_;
  std::shared_ptr<const forward::ForwardFigures> figures_;
  std::string figures_error_;
};

// --- The load: its projection against the budgets, another method beside it, all methods.

class LoadWork {
 public:
  // Called before the answers to another request are worked out, once a projection is there or has failed,
  // and once it was held against the budgets.
  struct Events {
    std::function<void()> asked, projected, judged;
  };

  LoadWork(Services& services, ModelPtr model, std::uint64_t document, ForwardWork& forward, Asked asked,
           Events events);
  void begin();

  // Sets the request of the load and its forward pass. Throws Error{usage} for an invalid request and then
  // changes nothing. Faults in the sizes of the pass are in ForwardWork::error().
  void ask(const Asked& asked);
  const Asked& asked() const { return asked_; }
  // Sets one option of load_options() from its text. A new target or kind of memory resets the budgets that
  // would change their meaning.
  void set_option(std::string_view option, std::string_view word);
  const std::vector<load::Target>& targets() const;
  // The kind of memory and the budgets in force.
  const load::LoadMemory& memory() const { return memory_; }
  // The timeline's request bound to the model.
  load::BoundRequest bound() const { return bind(task(timeline())); }
  // The load that the timeline shows against its budgets, in one row; null while there is no projection.
  const load::LoadAnswer* judged_load() const { return judged.value().get(); }
  // The targets have other figures: what is held against the budgets of one is worked out again.
  void follow_targets();
  // Walks the requests that were asked before this one, and back. Changes of the same options that follow
  // each other at once, as a slider makes them, are one.
  bool can_undo() const { return !before_.empty(); }
  bool can_redo() const { return !after_.empty(); }
  void undo() { walk(before_, after_); }
  void redo() { walk(after_, before_); }
  // The changes that undo() takes back, and that redo() makes again: "Target rtx-4090-24gb".
  std::string undone_by_undo() const { return before_.empty() ? "" : changes_text(before_.back(), asked_); }
  std::string done_by_redo() const { return after_.empty() ? "" : changes_text(asked_, after_.back()); }
  void forget_history();
  // The requests before and after this one, for a document in the place of this one.
  struct History {
    std::vector<Asked> before = {}, after = {};  // the last ones nearest to what is asked
  };
  History history() const { return {before_, after_}; }
  void take_history(History history) {
    before_ = std::move(history.before);
    after_ = std::move(history.after);
  }
  // Sets options back to what a new window has.
  void reset_options(const std::vector<std::string_view>& ids);
  // Compares all methods, if that was put off: of a large model it takes seconds and half a gigabyte, so it
  // waits until somebody looks.
  void want_comparison();
  // Another method, played in step with the load: at the same moments of their clocks. Empty: none. Throws
  // Error{usage} for an unknown method.
  void set_beside(std::string method);
  const std::string& beside_method() const { return beside_method_; }
  // Makes an order the custom order, and chooses it.
  void choose_order(std::shared_ptr<const load::StorageOrder> order);
  const std::shared_ptr<const load::StorageOrder>& custom_order() const { return custom_; }
  // Saves the comparison as a picture (.svg) or as a page (.html). Throws Error{usage} without a comparison,
  // and for any other extension.
  void save_chart(const std::string& path) const;

  // For further questions about the load: the pass that follows it, or null; the question of the timeline;
  // a question with all that its job needs, of a model that is not null.
  const ForwardScene* pass() const { return asked_.first_token ? forward_.evaluated() : nullptr; }
  LoadQuestion timeline() const { return timeline_question(asked_, pass(), custom_); }
  LoadQuestion task(LoadQuestion question) const;

  const ModelPtr model;
  const std::shared_ptr<const forward::ClaimsOnce> claims;  // null without a model
  Latest<load::Projection> projection;
  std::shared_ptr<const Arrivals> arrivals;     // of the projection, and null without it
  Latest<load::LoadAnswer> judged;              // of the projection
  Latest<report::AnswerWithCurves> comparison;  // of all methods; never null
  Latest<load::Projection> beside;              // null without another method

 private:
  load::LoadMemory check(const Asked& asked) const;
  void remember(const Asked& next);
  void walk(std::vector<Asked>& from, std::vector<Asked>& to);
  void work_out_pass();
  void refresh();  // asks questions that are new or were canceled
  void ask_projection();
  void ask_verdict();
  void plan_beside();
  void compare();

  Services& services_;
  std::uint64_t document_;
  ForwardWork& forward_;
  Events events_;
  Asked asked_;
  load::LoadMemory memory_;                // of asked_
  std::vector<Asked> before_, after_;      // the last ones nearest to asked_
  std::vector<std::string_view> changed_;  // by the change before, and when
  std::chrono::steady_clock::time_point changed_at_ = {};
  std::shared_ptr<const load::StorageOrder> custom_;
  std::shared_ptr<PassMemo> passes_ = std::make_shared<PassMemo>();
  std::string beside_method_;
  bool wants_comparison_;
  // The questions that the answers are of, or will be.
  std::optional<LoadQuestion> planned_, judged_of_, compared_, beside_of_;
  std::string plan_failure_;  // the notice to remove when another plan is made
};

// --- Advice: changes that make the load fit, tried out, taken over and taken back.

class Advisor {
 public:
  Advisor(Services& services, LoadWork& load) : services_(services), load_(load) {}

  // Searches for changes, unless they are known already.
  void search();
  // Whether the answer belongs to what is asked now.
  bool is_current() const { return searched_ == load_.asked(); }
  // Takes the changes over; take_back() undoes that while nothing else was asked since.
  void apply(const load::AdvisedLoad& load);
  void take_back();
  bool can_take_back() const { return applied_ == load_.asked(); }
  // Projects an advised load, to be shown over the timeline; null ends that.
  void preview(const load::AdvisedLoad* load);

  Latest<load::LoadAnswer> answer;                   // of the load that was asked when search() was called
  Latest<report::TriedQuantizations> quantizations;  // of the model, for that load
  Latest<load::Projection> previewed;                // null without a preview

 private:
  Services& services_;
  LoadWork& load_;
  std::optional<Asked> searched_;            // what the answer belongs to
  std::optional<Asked> applied_, restored_;  // what apply() made, and of what
  std::optional<Asked> previewing_;
};

// --- The order of a load, arranged by hand or read from a file.

class OrderEditing {
 public:
  OrderEditing(Services& services, LoadWork& load, std::uint64_t document);

  // Lists the chosen order, unless it is listed already.
  void list_chosen();
  // Makes the edited list the custom order, and chooses it.
  void arrange(OrderList edited);
  // Reads the custom order from a file, or saves the chosen order to one
  // (core/load/request/bind_request.h). Throws Error{usage} without a model. Only a .txt file is overwritten.
  void read(const std::string& path);
  void save(const std::string& path) const;

  Latest<OrderList> list;  // the order last listed; never null

 private:
  Services& services_;
  LoadWork& load_;
  std::uint64_t document_;
  std::optional<LoadQuestion> listed_;  // the question whose order is in `list`
};

}  // namespace loadline::gui
