// Binds, projects and compares; folds orders; follows the time cursor through the bytes.
#include "app/gui/state/load/load.h"

#include "app/gui/state/load/forward_scene.h"
#include "app/gui/state/model/model.h"
#include "core/base/error.h"
#include "core/forward/model/known_models.h"
#include "core/load/order/optimal_order.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/load_options.h"
#include "core/view/curves.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {

// --- Turns the window's request into the questions behind the timeline and the comparison.

namespace {

bool is_row(const std::string& order) {
  return std::ranges::any_of(load::orders(), [&](const load::Order& row) { return row.id == order; });
}

load::LoadRequest load_request(const Asked& asked, const ForwardScene* pass) {
  load::LoadRequest request = asked.request;
  request.methods = {std::string(shown_method(asked).id)};
  request.orders = {shown_order(asked)};
  if (pass == nullptr) {
    take_pass(request, {});
    return request;
  }
  // a size that the file names may stand for the batch or for tokens
  const auto symbols = symbols_of(*pass->forward(), request);
  request.batch = symbols[graph::index(graph::kBatch)];
  request.sequence = symbols[graph::index(graph::kSequence)];
  request.past = symbols[graph::index(graph::kPast)];
  request.forward = pass->options;
  request.activation_bytes = 0;  // the pass gives the bytes of activations
  return request;
}

}  // namespace

const load::Method& shown_method(const Asked& asked) {
  for (const std::string& id : asked.request.methods)
    if (id != "all") return load::find_method(id);
  return load::find_method(Asked().request.methods.front());
}

std::string shown_order(const Asked& asked) {
  for (const std::string& name : asked.request.orders)
    if (name != "all") return name;
  return load::LoadRequest().orders.front();
}

std::string value_text(const load::LoadRequest& request, const load::LoadOption& option) {
  return option.kind == OptionKind::bytes ? show_option(option.kind, option.get(request))
                                          : load::load_option_text(request, option);
}

std::string changes_text(const Asked& before, const Asked& after) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> changes;
  for (const load::LoadOption& option : load::load_options())
    if (!same_option(option, before.request, after.request))
      changes.push_back(std::string(option.title) + " " + value_text(after.request, option));
  if (before.first_token != after.first_token)
    changes.emplace_back(after.first_token ? "a forward pass follows the load" : "no forward pass");
  if (before.every_order != after.every_order)
    changes.emplace_back(after.every_order ? "every order" : "one order");
  if (before.picture_sides != after.picture_sides && after.picture_sides.empty())
    changes.emplace_back("usual sides of pictures");
  else
    for (const auto& [name, pixels] : after.picture_sides)
      if (std::ranges::find(before.picture_sides, std::pair(name, pixels)) == before.picture_sides.end())
        changes.push_back(fmt::format("side {} of pictures {}", name, pixels));
  std::string text;
  for (std::size_t i = 0; i < std::min(changes.size(), kMost); ++i) text += (i > 0 ? ", " : "") + changes[i];
  if (changes.size() > kMost) text += " and " + std::to_string(changes.size() - kMost) + " more";
  return text;
}

void take_pass(load::LoadRequest& request, const load::LoadRequest& from) {
  request.batch = from.batch;
  request.sequence = from.sequence;
  request.past = from.past;
  request.sizes = from.sizes;
  request.forward = from.forward;
}

Asked of_any_model(Asked asked) {
  load::LoadRequest& request = asked.request;
  if (!is_row(shown_order(asked))) request.orders = load::LoadRequest().orders;
  request.gpu_layers.reset();
  request.auto_map.reset();
  request.place.clear();
  request.sizes.clear();
  return asked;
}

Asked asked_by(load::LoadRequest saved) {
  Asked asked;
  const std::vector<std::string>& orders = saved.orders;
  asked.every_order = std::ranges::find(orders, "all") != orders.end();
  asked.first_token = load::asks_for_pass(saved);
  if (saved.methods.empty()) saved.methods = asked.request.methods;
  if (saved.sequence == 0) saved.sequence = kFirstSequence;
  asked.request = std::move(saved);
  return asked;
}

load::LoadRequest saved_request(const Asked& asked) {
  load::LoadRequest request = asked.request;
  if (asked.first_token)
    request.activation_bytes = 0;
  else
    take_pass(request, {});
  const std::string order = shown_order(asked);
  if (order == load::kOwnOrder)
    throw Error(
        ErrorCode::usage,
        "the order was arranged by hand: save it to a file and choose that file before saving the request");
  request.orders = {order};
  if (asked.every_order) request.orders.emplace_back("all");
  return request;
}

LoadQuestion timeline_question(const Asked& asked, const ForwardScene* pass,
                               const std::shared_ptr<const load::StorageOrder>& own_order) {
  LoadQuestion question{load_request(asked, pass), nullptr};
  question.request.device_budget.reset();
  question.request.host_budget.reset();
  question.request.commit_limit.reset();
  question.request.page_cache_budget.reset();
  question.request.require_peak.reset();
  if (question.request.orders.front() == load::kOwnOrder) question.own_order = own_order;
  return question;
}

LoadQuestion comparison_question(const Asked& asked, const ForwardScene* pass,
                                 const std::shared_ptr<const load::StorageOrder>& own_order) {
  LoadQuestion question{load_request(asked, pass), nullptr};
  load::LoadRequest& request = question.request;
  request.methods = {"all"};
  if (asked.every_order) {
    if (is_row(request.orders.front())) request.orders.clear();
    request.orders.insert(request.orders.begin(), "all");
    if (own_order && request.orders.back() != load::kOwnOrder) request.orders.emplace_back(load::kOwnOrder);
  }
  if (request.orders.back() == load::kOwnOrder) question.own_order = own_order;
  return question;
}

// --- Binds the request of a question, and computes its projection or its comparison.

namespace {

load::LoadEnvironment environment_of(const LoadQuestion& question) {
  return {.assets = question.assets,
          .targets = *question.targets,
          .measured_rates = question.rates,
          .own_order = question.own_order,
          .claims = question.claims};
}

}  // namespace

std::shared_ptr<const load::RequestPass> PassMemo::find(
    const graph::MetaGraph& graph, const load::LoadRequest& request,
    const std::shared_ptr<const forward::ForwardAssets>& assets) {
  load::LoadRequest wanted;
  take_pass(wanted, request);
  const std::lock_guard lock(mutex_);
  if (!last_ || wanted != of_) {
    last_ = std::make_shared<const load::RequestPass>(graph, wanted, assets, load::UnknownPass::leave_out);
    of_ = wanted;
  }
  return last_;
}

load::BoundRequest bind(const LoadQuestion& question) {
  return load::bind_request(*question.graph, question.request, environment_of(question));
}

load::StorageOrder first_order(const LoadQuestion& question, const Progress& progress) {
  const load::BoundRequest bound = bind(question);
  return load::make_order(*question.graph, bound.orders.front(), *bound.methods.front(), bound, progress);
}

load::Projection project_load(const LoadQuestion& question, Progress& progress) {
  const load::BoundRequest bound = bind(question);
  const load::Method& method = *bound.methods.front();
  const load::OrderChoice& order = bound.orders.front();
  std::shared_ptr<const load::RequestPass> forward;
  if (load::asks_for_pass(question.request))
    forward = question.passes->find(*question.graph, question.request, question.assets);
  return load::project(*question.graph, method, order.name,
                       load::make_order(*question.graph, order, method, bound, progress), bound, progress,
                       forward ? forward->pass() : nullptr);
}

load::LoadAnswer judge_load(const LoadQuestion& question, const load::Projection& projection,
                            Progress& progress) {
  load::LoadAnswer judged;
  judged.bound = std::make_shared<const load::BoundRequest>(bind(question));
  const std::string unmapped = load::mapping_refusal(*question.graph);
  judged.rows.push_back(
      projection.maps_files && !unmapped.empty()
          ? load::refused_row(*projection.method, projection.order, Error(ErrorCode::unsupported, unmapped))
          : load::make_row(projection, *judged.bound, load::Labels(*question.graph), 0));
  if (load::asks_for_pass(question.request))
    judged.forward = question.passes->find(*question.graph, question.request, question.assets);
  load::mark_estimates(judged, *question.graph);
  if (question.request.max_context)
    judged.context = load::find_contexts(
        *question.graph, *judged.bound,
        *question.passes->find(*question.graph, question.request, question.assets), judged.rows, progress);
  return judged;
}

report::AnswerWithCurves compare_loads(const LoadQuestion& question, Progress& progress) {
  constexpr std::size_t kSlices = 48;
  const load::LoadRequest& request = question.request;
  auto forward = question.passes->find(*question.graph, request, question.assets);
  progress.check_canceled();
  // operators take no modeled time
  const report::CurveOptions curve = {
      .axis = forward->pass() != nullptr ? view::RunAxis::steps : view::RunAxis::seconds, .slices = kSlices};
  return report::answer_with_curves(*question.graph,
                                    std::make_shared<const load::BoundRequest>(bind(question)),
                                    {.advise = false}, curve, std::move(forward), progress);
}

load::LoadAnswer advise_load(const LoadQuestion& question, Progress& progress) {
  auto forward = question.passes->find(*question.graph, question.request, question.assets);
  return load::answer(*question.graph, std::make_shared<const load::BoundRequest>(bind(question)),
                      {.advise = true, .advised_contexts = true}, std::move(forward), progress);
}

report::TriedQuantizations try_quantizations(const LoadQuestion& question, Progress& progress) {
  LoadQuestion asked = question;
  if (!is_row(asked.request.orders.front())) asked.request.orders = load::LoadRequest().orders;
  asked.own_order.reset();  // of other storages
  asked.request.cast.reset();
  return report::quantizations(*asked.graph, asked.request, asked.assets->type_policies,
                               environment_of(asked), false, progress);
}

// --- Groups an order into runs of one module, and moves, unfolds and folds them.

std::string order_module(std::string_view name) {
  const auto number = [](std::string_view part) {
    return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
  };
  std::size_t begin = 0;
  std::size_t last = 0;  // begin of the last part
  while (true) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    if (number(name.substr(begin, end - begin))) return std::string(name.substr(0, end));
    if (end == name.size()) break;
    begin = end + 1;
    last = begin;
  }
  return std::string(last == 0 ? name : name.substr(0, last - 1));
}

OrderList::OrderList(const graph::MetaGraph& graph, const load::StorageOrder& order) {
  const auto owners = graph::first_owner(graph);
  for (const graph::StorageId id : order) {
    const auto owner = owners[graph::index(id)];
    if (!owner) continue;
    std::string module = order_module(graph.tensor(*owner).name);
    if (items_.empty() || items_.back().module != module) items_.push_back({std::move(module), {}, 0, false});
    items_.back().storages.push_back(id);
    items_.back().bytes += graph.storage(id).bytes;
  }
}

void OrderList::move(std::size_t from, std::size_t to) {
  if (from >= items_.size() || to >= items_.size() || from == to) return;
  const auto at = [&](std::size_t i) { return items_.begin() + static_cast<std::ptrdiff_t>(i); };
  if (from < to)
    std::rotate(at(from), at(from + 1), at(to + 1));
  else
    std::rotate(at(to), at(from), at(from + 1));
}

void OrderList::unfold(const graph::MetaGraph& graph, std::size_t at) {
  if (at >= items_.size() || items_[at].tensor) return;
  const OrderItem item = std::move(items_[at]);
  std::vector<OrderItem> parts;
  for (const graph::StorageId id : item.storages)
    parts.push_back({item.module, {id}, graph.storage(id).bytes, true});
  const auto place = items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(at));
  items_.insert(place, std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
}

void OrderList::fold(std::size_t at) {
  if (at >= items_.size() || !items_[at].tensor) return;
  const auto same = [&](std::size_t i) { return items_[i].tensor && items_[i].module == items_[at].module; };
  std::size_t first = at, end = at + 1;
  while (first > 0 && same(first - 1)) --first;
  while (end < items_.size() && same(end)) ++end;
  OrderItem whole = {items_[at].module, {}, 0, false};
  for (std::size_t i = first; i < end; ++i) {
    whole.storages.push_back(items_[i].storages.front());
    whole.bytes += items_[i].bytes;
  }
  items_[first] = std::move(whole);
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(first + 1),
               items_.begin() + static_cast<std::ptrdiff_t>(end));
}

load::StorageOrder OrderList::order() const {
  load::StorageOrder order;
  for (const OrderItem& item : items_) order.insert(order.end(), item.storages.begin(), item.storages.end());
  return order;
}

// --- What copies bring.

BlockFill::BlockFill(const plan::Plan& plan)
    : plan_(&plan),
      full_at_once_(plan.blocks.size()),
      written_(plan.blocks.size(), 0),
      freed_(plan.blocks.size(), 0) {
  for (std::size_t i = 0; i < plan.blocks.size(); ++i)
    full_at_once_[i] = !plan.blocks[i].storage && plan.blocks[i].use != plan::BlockUse::ring_slot;
  for (const plan::Step& step : plan.steps)
    if (step.verb == plan::Verb::copy) full_at_once_[graph::index(step.block)] = false;
}

void BlockFill::rewind() {
  written_.assign(written_.size(), 0);
  freed_.assign(freed_.size(), 0);
}

BlockFill::Change BlockFill::apply(const plan::Step& step) {
  const std::size_t at = graph::index(step.block);
  const plan::Block& block = plan_->block(step.block);
  std::uint64_t& written = written_[at];
  const std::uint64_t before = written;
  switch (step.verb) {
    case plan::Verb::alloc:
      if (full_at_once_[at]) written = block.addressed_bytes();
      break;
    case plan::Verb::copy:
      written = (block.storage ? written : step.offset) + step.written();
      break;
    case plan::Verb::free:
      freed_[at] = std::exchange(written, 0);
      break;
  }
  return {before, written};
}

BlockFill::Change BlockFill::undo(const plan::Step& step) {
  const std::size_t at = graph::index(step.block);
  std::uint64_t& written = written_[at];
  const std::uint64_t before = written;
  if (step.verb == plan::Verb::copy) written -= step.written();
  if (step.verb == plan::Verb::free) written = freed_[at];
  return {before, written};
}

std::uint64_t filled_bytes(const plan::Block& block, std::uint64_t written) {
  const std::uint64_t whole = block.addressed_bytes();
  if (whole == block.bytes || whole == 0) return std::min(written, whole);
  return static_cast<std::uint64_t>(static_cast<double>(std::min(written, whole)) /
                                    static_cast<double>(whole) * static_cast<double>(block.bytes));
}

Arrivals arrivals_of(const plan::Plan& plan, const plan::Timeline& timeline) {
  Arrivals arrivals;
  arrivals.full_at.assign(plan.blocks.size(), plan::kNever);
  BlockFill fill(plan);
  std::vector<std::uint8_t> filled(plan.blocks.size(), 0);
  plan::UsagePoint now;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    const plan::Block& block = plan.block(step.block);
    const BlockFill::Change change = fill.apply(step);
    std::uint32_t& full = arrivals.full_at[graph::index(step.block)];
    const bool slot = block.use == plan::BlockUse::ring_slot;  // that a small model may leave empty
    const bool first = step.verb == plan::Verb::copy ? filled[graph::index(step.block)] == 0 : !slot;
    if (step.verb == plan::Verb::copy) filled[graph::index(step.block)] = 1;
    if (step.verb != plan::Verb::free && (first || block.storage)) full = static_cast<std::uint32_t>(i);
    const std::uint64_t before = filled_bytes(block, change.before), after = filled_bytes(block, change.now);
    if (before == after) continue;
    now.bytes[plan::index(block.space)] += after - before;  // modulo 2^64
    now.step = i;
    now.seconds = view::x_of_step(timeline, plan.steps.size(), view::RunAxis::seconds, i);
    arrivals.usage.push_back(now);
  }
  return arrivals;
}

const plan::PerSpace<std::uint64_t>& arrived_at(const Arrivals& arrivals, std::size_t step) {
  static constexpr plan::PerSpace<std::uint64_t> kNone = {};
  const auto after = std::ranges::upper_bound(arrivals.usage, step, {}, &plan::UsagePoint::step);
  return after == arrivals.usage.begin() ? kNone : std::prev(after)->bytes;
}

// --- Plays the copies and frees between two steps, forwards or backwards.

void HeldBytes::clear() {
  fill_.reset();
  model_.reset();
  projection_.reset();
}

// At the first step, which is counted.
void HeldBytes::begin(const ModelPtr& model, const std::shared_ptr<const load::Projection>& projection) {
  const graph::MetaGraph& graph = *model->graph;
  if (model_ != model) {
    first_.assign(graph.storages.size() + 1, 0);
    for (const graph::Tensor& tensor : graph.tensors) ++first_[graph::index(tensor.storage) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    std::vector<std::uint32_t> next = first_;
    tensors_.resize(graph.tensors.size());
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i)
      tensors_[next[graph::index(graph.tensors[i].storage)]++] = graph::TensorId{i};
  }
  model_ = model;
  if (projection_ == projection && fill_)
    fill_->rewind();
  else
    fill_.emplace(projection->plan);
  projection_ = projection;
  nodes_.assign(model->tree.nodes.size(), {});
  arrived_ = {};
  step_ = 0;
  if (!projection->plan.steps.empty()) apply(projection->plan.steps.front(), false);
}

// Each tensor of the storage has arrived as far as the block was written.
void HeldBytes::apply(const plan::Step& step, bool undo) {
  const plan::Block& block = projection_->plan.block(step.block);
  if (!block.storage) return;
  const BlockFill::Change change = undo ? fill_->undo(step) : fill_->apply(step);
  if (change.before == change.now) return;
  const std::uint64_t whole = block.addressed_bytes();
  const auto arrived = [&](std::uint64_t bytes, std::uint64_t of_block) {
    const double share = static_cast<double>(std::min(of_block, whole)) /
                         static_cast<double>(std::max<std::uint64_t>(whole, 1));
    return of_block >= whole ? bytes : static_cast<std::uint64_t>(static_cast<double>(bytes) * share);
  };
  const std::size_t storage = graph::index(*block.storage), space = plan::index(block.space);
  arrived_[space] += filled_bytes(block, change.now) - filled_bytes(block, change.before);  // modulo 2^64
  for (std::uint32_t i = first_[storage]; i < first_[storage + 1]; ++i) {
    const std::uint64_t bytes = model_->bytes[graph::index(tensors_[i])];
    const std::uint64_t gone = whole == 0 ? 0 : arrived(bytes, change.before);
    const std::uint64_t come = whole == 0 ? 0 : arrived(bytes, change.now);
    if (gone == come) continue;
    for (graph::NodeId node = model_->nodes[graph::index(tensors_[i])];;
         node = model_->tree.node(node).parent) {
      std::uint64_t& below = nodes_[graph::index(node)][space];
      below = below - gone + come;
      if (node == graph::kRootNode) break;
    }
  }
}

void HeldBytes::move_to(const ModelPtr& model, const std::shared_ptr<const load::Projection>& projection,
                        std::size_t step) {
  const std::vector<plan::Step>& steps = projection->plan.steps;
  // a jump to the other end is shorter from the beginning
  if (model_ != model || projection_ != projection || step < step_ / 2) begin(model, projection);
  const std::size_t last = std::min(step, steps.empty() ? 0 : steps.size() - 1);
  for (; step_ < last; ++step_) apply(steps[step_ + 1], false);
  for (; step_ > last; --step_) apply(steps[step_], true);
}

// --- What finds no room.

std::vector<std::uint64_t> unfit_bytes(const Model& model, const load::Projection& projection,
                                       const load::BudgetVerdict& verdict) {
  if (!verdict.step || !verdict.block) return {};
  const plan::Plan& plan = projection.plan;
  const plan::Space space = plan.block(*verdict.block).space;
  std::vector<bool> left_out(model.graph->storages.size(), false), seen(left_out);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Block& block = plan.block(plan.steps[i].block);
    if (plan.steps[i].verb != plan::Verb::alloc || block.space != space || !block.storage) continue;
    const std::size_t storage = graph::index(*block.storage);
    if (!seen[storage]) left_out[storage] = i >= *verdict.step;
    seen[storage] = true;
  }
  std::vector<std::uint64_t> bytes(model.tree.nodes.size(), 0);
  for (std::size_t storage = 0; storage < left_out.size(); ++storage)
    if (const auto& owner = model.owners[storage]; left_out[storage] && owner)
      bytes[graph::index(model.nodes[graph::index(*owner)])] += model.graph->storages[storage].bytes;
  for (std::size_t i = bytes.size(); i-- > 1;) bytes[graph::index(model.tree.nodes[i].parent)] += bytes[i];
  return bytes;
}

}  // namespace loadline::gui
