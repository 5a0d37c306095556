// The load that the window asks for, the jobs that answer, its order as a list, the bytes that have arrived.
#pragma once

#include "app/report/chart.h"
#include "app/report/does_it_run.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "core/load/answer/answer.h"
#include "core/load/answer/projection.h"
#include "core/load/answer/rows.h"
#include "core/load/measure/rehearse.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/load_options.h"
#include "core/load/request/method.h"
#include "core/load/request/model_parts.h"
#include "core/load/request/pass.h"
#include "core/load/request/request.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loadline::gui {

struct ForwardScene;
struct Model;

// --- The load request of the window, and the part of its answers that the window shows. No ImGui.

inline constexpr std::uint64_t kFirstSequence = 512;  // tokens of the pass until the user chooses

struct Asked {
  // The timeline shows the first method in the first order; the comparison has all methods. The panels
  // Operators and Lifetimes show its forward pass.
  load::LoadRequest request = {.methods = {"staged_ring"}, .sequence = kFirstSequence};
  bool every_order = false;  // the comparison has a row for each order
  bool first_token = false;  // a forward pass follows the load
  std::vector<std::pair<std::string, std::uint64_t>> picture_sides = {};  // chosen, in pixels, by name
  bool operator==(const Asked&) const = default;
};

// The method and the order that the timeline shows. Throws Error{usage} for an unknown method.
const load::Method& shown_method(const Asked& asked);
std::string shown_order(const Asked& asked);

// What `after` asks differently, at most a few of the changes: "Target rtx-4090-24gb, Order name".
std::string changes_text(const Asked& before, const Asked& after);
// The value of an option as it is shown: "64.00 MiB".
std::string value_text(const load::LoadRequest& request, const load::LoadOption& option);

// Copies the options of the forward pass from `from`, and nothing else.
void take_pass(load::LoadRequest& request, const load::LoadRequest& from);
// Removes the options that refer to one model: custom orders, placements, layer counts, named sizes.
Asked of_any_model(Asked asked);
// Converts a saved request to the window's state, and back. saved_request() throws Error{usage} for an order
// that was arranged by hand and is not in a file.
Asked asked_by(load::LoadRequest saved);
load::LoadRequest saved_request(const Asked& asked);

// --- Questions about a load of a model, and the jobs that answer them.

// Caches the last forward pass of one model's loads, so that several jobs bind it only once.
class PassMemo {
 public:
  // Throws the Errors of RequestPass.
  std::shared_ptr<const load::RequestPass> find(const graph::MetaGraph& graph,
                                                const load::LoadRequest& request,
                                                const std::shared_ptr<const forward::ForwardAssets>& assets);

 private:
  std::mutex mutex_;
  load::LoadRequest of_;  // the options of last_; only those of the pass matter
  std::shared_ptr<const load::RequestPass> last_;
};

// A question about a load with everything that it refers to, so that a job can answer it. Equal questions
// about one model have equal answers.
struct LoadQuestion {
  load::LoadRequest request = {};
  std::shared_ptr<const load::StorageOrder> own_order = {};  // the custom order, if the request names it
  // What the document adds for a job; absent before.
  graph::MetaGraphPtr graph = {};
  std::shared_ptr<const forward::ForwardAssets> assets = {};
  std::shared_ptr<const std::vector<load::Target>> targets = {};
  std::optional<load::MeasuredRates> rates = {};
  std::shared_ptr<PassMemo> passes = {};
  std::shared_ptr<const forward::ClaimsOnce> claims = {};

  bool operator==(const LoadQuestion& other) const {
    return request == other.request && own_order == other.own_order;
  }
};
// The questions behind the timeline and the comparison. `pass` is the forward pass that follows the load, or
// null. The timeline does not depend on budgets.
LoadQuestion timeline_question(const Asked& asked, const ForwardScene* pass,
                               const std::shared_ptr<const load::StorageOrder>& own_order);
LoadQuestion comparison_question(const Asked& asked, const ForwardScene* pass,
                                 const std::shared_ptr<const load::StorageOrder>& own_order);

// This function and those below throw the Errors of bind_request(). The question has all that a job needs.
load::BoundRequest bind(const LoadQuestion& question);
// The storage order of the first method in the first order.
load::StorageOrder first_order(const LoadQuestion& question, const Progress& progress);
load::Projection project_load(const LoadQuestion& question, Progress& progress);
// The one row of a projection, against the budgets of the question; with the largest context if it asks for
// that.
load::LoadAnswer judge_load(const LoadQuestion& question, const load::Projection& projection,
                            Progress& progress);
// The comparison of all methods and orders of the question, with curves.
report::AnswerWithCurves compare_loads(const LoadQuestion& question, Progress& progress);
// Changes that make the load fit its budgets (core/load/answer/advice.h); none if it fits.
load::LoadAnswer advise_load(const LoadQuestion& question, Progress& progress);
// The GGUF files of the model that are smaller, and whether they fit.
report::TriedQuantizations try_quantizations(const LoadQuestion& question, Progress& progress);

// --- A load order as a list of rows to move: modules, some of them unfolded to their tensors. No ImGui.

// A row: neighboring storages of one module, or one tensor of an unfolded module.
struct OrderItem {
  std::string module;  // up to the number of a layer: "model.layers.3"
  load::StorageOrder storages;
  std::uint64_t bytes = 0;
  bool tensor = false;  // one storage, shown by its own name
};

class OrderList {
 public:
  OrderList() = default;
  OrderList(const graph::MetaGraph& graph, const load::StorageOrder& order);

  const std::vector<OrderItem>& items() const { return items_; }
  // Moves the item at `from` to the position `to`. Does nothing for positions beyond the end.
  void move(std::size_t from, std::size_t to);
  // Replaces a module by its tensors; does nothing for a tensor.
  void unfold(const graph::MetaGraph& graph, std::size_t at);
  // Joins the tensor at `at` and its neighbors of the same module into one item.
  void fold(std::size_t at);
  load::StorageOrder order() const;

 private:
  std::vector<OrderItem> items_;
};

// The module under which a tensor name is listed.
std::string order_module(std::string_view name);

// --- Which bytes have arrived in blocks, and from that in the memory of the whole load, at each of its
// steps.

// Follows a plan step by step. A block fills copy by copy, a ring slot each time anew. A block that holds no
// tensor and that nothing is copied into, as activations, is full at once.
class BlockFill {
 public:
  explicit BlockFill(const plan::Plan& plan);  // which must outlive it
  void rewind();                               // to before the first step

  // What the copies into the step's block have written, before the step and after it.
  struct Change {
    std::uint64_t before = 0, now = 0;
  };
  Change apply(const plan::Step& step);
  Change undo(const plan::Step& step);  // of a block that holds a tensor

 private:
  const plan::Plan* plan_;
  std::vector<bool> full_at_once_;      // per block
  std::vector<std::uint64_t> written_;  // per block; 0 unless it is alive
  std::vector<std::uint64_t> freed_;    // per block: what written_ was when it was freed
};
// The bytes of a block's memory that are filled: fewer than were written where it holds them packed.
std::uint64_t filled_bytes(const plan::Block& block, std::uint64_t written);

struct Arrivals {
  std::vector<plan::UsagePoint> usage;  // bytes that have arrived, after each step that changes them
  std::vector<std::uint32_t> full_at;  // per block: the step that brings its last bytes, or that allocates it
};
Arrivals arrivals_of(const plan::Plan& plan, const plan::Timeline& timeline);
// What has arrived after `step`, at most what is allocated.
const plan::PerSpace<std::uint64_t>& arrived_at(const Arrivals& arrivals, std::size_t step);

// --- Which bytes of a model have arrived in which memory at a step of its load, module by module.

// Follows a time cursor: a short way costs what changes on it, not what the model has.
class HeldBytes {
 public:
  // Goes to a step of a projection of the model; both must not be null.
  void move_to(const std::shared_ptr<const Model>& model,
               const std::shared_ptr<const load::Projection>& projection, std::size_t step);
  void clear();
  bool empty() const { return !projection_; }
  // Bytes of the tensors at and below a node that have arrived in each space: memory that is allocated and
  // not yet written does not count, two copies of a tensor count twice. Not of an empty object.
  const plan::PerSpace<std::uint64_t>& at(graph::NodeId node) const { return nodes_[graph::index(node)]; }
  // Bytes that have arrived in each space in all: what at() has, with the bytes that tensors share once.
  const plan::PerSpace<std::uint64_t>& arrived() const { return arrived_; }
  const std::shared_ptr<const load::Projection>& projection() const { return projection_; }
  std::size_t step() const { return step_; }

 private:
  void begin(const std::shared_ptr<const Model>& model,
             const std::shared_ptr<const load::Projection>& projection);
  void apply(const plan::Step& step, bool undo);

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const load::Projection> projection_;
  std::size_t step_ = 0;  // its effects are counted
  // The tensors of storage i are tensors_[first_[i]] to tensors_[first_[i + 1]], without the last.
  std::vector<std::uint32_t> first_;
  std::vector<graph::TensorId> tensors_;
  std::optional<BlockFill> fill_;
  std::vector<plan::PerSpace<std::uint64_t>> nodes_;
  plan::PerSpace<std::uint64_t> arrived_ = {};
};

// Bytes below each node of the model's tree that find no room: of the storages whose blocks, in the memory
// that runs out, are taken when it has run out or later. Empty if the load fits.
std::vector<std::uint64_t> unfit_bytes(const Model& model, const load::Projection& projection,
                                       const load::BudgetVerdict& verdict);

// --- The samples of an upload that runs, for the window to draw meanwhile.

// One thread adds samples while another reads them. All memory is taken and touched when it is made: none of
// it grows while the process is measured.
class LiveUpload {
 public:
  explicit LiveUpload(std::shared_ptr<const load::Projection> projection)
      : projection_(std::move(projection)) {}

  const std::shared_ptr<const load::Projection>& projection() const { return projection_; }
  void add(const plan::MemorySample& sample, std::size_t step) {
    const std::lock_guard lock(mutex_);
    log_.add(sample, step);
  }
  load::SampleLog::Entries samples() const {
    const std::lock_guard lock(mutex_);
    return log_.entries();
  }

 private:
  static constexpr std::size_t kMostSamples = 2048;  // about as many as a plot has columns

  std::shared_ptr<const load::Projection> projection_;
  mutable std::mutex mutex_;
  load::SampleLog log_{kMostSamples};
};

}  // namespace loadline::gui
