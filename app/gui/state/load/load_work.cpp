// The forward pass, the load, the comparison, advice, and orders of one's own.
#include "app/gui/state/load/load_work.h"

#include "app/gui/state/base/services.h"
#include "app/report/page.h"
#include "app/report/page_parts.h"
#include "app/report/row_text.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/known_models.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/load_options.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {

// --- The forward pass.

namespace {

// Finds an operator again under another profile, which adds operators: operators of one name are counted from
// the last.
std::optional<std::size_t> same_operator(const ForwardScene* before, const ForwardScene* now,
                                         std::optional<std::size_t> shown) {
  if (!shown || before == nullptr || now == nullptr) return std::nullopt;
  if (before->forward() == nullptr || now->forward() == nullptr) return std::nullopt;
  if (*shown >= before->forward()->ops.size()) return std::nullopt;
  const auto& old = before->forward()->ops;
  const auto& ops = now->forward()->ops;
  const graph::Op& op = old[*shown];
  if (op.name.empty()) return std::nullopt;
  const auto same = [&](const graph::Op& other) { return other.name == op.name && other.kind == op.kind; };
  auto behind = std::count_if(old.begin() + static_cast<std::ptrdiff_t>(*shown) + 1, old.end(), same);
  for (std::size_t i = ops.size(); i-- > 0;)
    if (same(ops[i]) && behind-- == 0) return i;
  return std::nullopt;
}

}  // namespace

void ForwardWork::work_out(const forward::ForwardOptions& options, std::function<void()> then) {
  scene.ask(
      services_.jobs, "Computing the forward pass",
      [graph = model_->graph, assets = services_.assets, options](Progress& progress) {
        return make_forward_scene(graph, assets, options, progress);
      },
      [this, before = scene.value(), then = std::move(then)] {
        if (scene.error() != nullptr) scene.drop();
        if (before) shown = same_operator(before.get(), scene.value().get(), shown);
        // what was shown of the model before it was read again may be gone
        if (graph() == nullptr || shown >= graph()->ops.size()) shown.reset();
        const auto holds = [this](graph::OpPlace place) {
          return graph::has_op(*scene.value()->drawn(), place) &&
                 !graph::op_at(*scene.value()->drawn(), place).bodies.empty();
        };
        if (graph() == nullptr || !std::ranges::all_of(inside, holds)) inside.clear();
        then();
      });
}

void ForwardWork::evaluate(const load::LoadRequest& request) {
  const std::shared_ptr<const ForwardScene> now = scene.value();
  std::vector<std::uint64_t> symbols;
  std::string error;
  const bool known = graph() != nullptr;
  try {
    if (known) symbols = symbols_of(*graph(), request);
    if (figures_ && evaluated_ == now && symbols_ == symbols) return;
    figures_.reset();
    if (known)
      figures_ =
          std::make_shared<const forward::ForwardFigures>(*forward::forward_figures(now->model, symbols));
  } catch (const Error& fault) {
    figures_.reset();
    error = fault.what();
  }
  figures_error_ = std::move(error);
  evaluated_ = now;
  symbols_ = std::move(symbols);
}

// --- The load.

namespace {

// The budgets do not depend on what follows the load. The window keeps the sizes of a pass beside the bytes
// of activations, of which a request may name one.
load::LoadMemory memory_of(const Asked& asked, std::span<const load::Target> targets) {
  load::LoadRequest request = asked.request;
  take_pass(request, {});
  request.activation_bytes = 0;
  return load::bind_memory(request, targets);
}

}  // namespace

LoadWork::LoadWork(Services& services, ModelPtr shown, std::uint64_t document, ForwardWork& forward,
                   Asked asked, Events events)
    : model(std::move(shown)),
      claims(model ? std::make_shared<const forward::ClaimsOnce>(model->graph, services.assets) : nullptr),
      services_(services),
      document_(document),
      forward_(forward),
      events_(std::move(events)),
      asked_(of_any_model(std::move(asked))),
      memory_(memory_of(asked_, targets())) {
  asked_.picture_sides.clear();
  if (model)
    for (const importers::NamedSide& side : model->picture_sides)
      asked_.picture_sides.emplace_back(side.name, side.pixels);
  constexpr std::size_t kSmall = 20'000;  // storages whose loads are compared at once
  wants_comparison_ = !model || model->graph->storages.size() <= kSmall;
  comparison.set({});
}

void LoadWork::begin() {
  // the method of the model before may not open this one
  if (model && !load::can_open(shown_method(asked_), *model->graph)) {
    const load::Method& refused = shown_method(asked_);
    asked_.request.methods = Asked().request.methods;
    services_.notices.add(
        graph::Severity::info,
        fmt::format("{} replaces {}, which opens {} and not this model ({})", shown_method(asked_).id,
                    refused.id, load::opened_text(refused.traits.opens),
                    model->graph->format.empty() ? "without files" : model->graph->format),
        document_);
  }
  if (model) work_out_pass();
  refresh();
}

load::LoadMemory LoadWork::check(const Asked& asked) const {
  const load::LoadRequest& request = asked.request;
  for (const load::LoadOption& option : load::load_options())
    if (const OptionValue value = option.get(request); std::holds_alternative<std::uint64_t>(value))
      check_option_number(std::get<std::uint64_t>(value), option.least, option.most,
                          option.kind == OptionKind::bytes);
  if (shown_order(asked) == load::kOwnOrder && !custom_)
    throw Error(ErrorCode::usage, "no custom order was arranged or read from a file yet");
  if (!request.forward.profile.empty()) services_.assets->profile(request.forward.profile);
  const LoadQuestion question = comparison_question(asked, pass(), custom_);
  if (model && question == compared_) return memory_;
  (void)load::find_methods(request.methods);
  if (model) return bind(task(question)).memory;  // visits every tensor if weights are placed
  if (shown_order(asked) != load::kOwnOrder) load::check_order_choice(shown_order(asked));
  return load::bind_memory(question.request, targets());
}

// Keeps the request of now, which `next` follows.
void LoadWork::remember(const Asked& next) {
  constexpr std::size_t kMost = 200;
  constexpr std::chrono::milliseconds kSameChange{800};
  std::vector<std::string_view> changed;
  for (const load::LoadOption& option : load::load_options())
    if (!same_option(option, next.request, asked_.request)) changed.push_back(option.id);
  const auto now = std::chrono::steady_clock::now();
  const bool goes_on = !changed.empty() && changed == changed_ && now - changed_at_ < kSameChange;
  changed_ = std::move(changed);
  changed_at_ = now;
  after_.clear();
  if (goes_on && !before_.empty()) return;
  before_.push_back(asked_);
  if (before_.size() > kMost) before_.erase(before_.begin());
}

void LoadWork::walk(std::vector<Asked>& from, std::vector<Asked>& to) {
  if (from.empty()) return;
  const std::vector<Asked> kept_before = before_, kept_after = after_;
  const Asked now = asked_, wanted = from.back();
  ask(wanted);  // may throw: then all is as it was
  before_ = kept_before;
  after_ = kept_after;
  from.pop_back();
  to.push_back(now);
  changed_.clear();
}

void LoadWork::forget_history() {
  before_.clear();
  after_.clear();
}

void LoadWork::reset_options(const std::vector<std::string_view>& ids) {
  Asked asked = asked_;
  const load::LoadRequest first = Asked().request;
  for (const std::string_view id : ids) {
    const load::LoadOption& option = *load::find_load_option(id);
    option.set(asked.request, option.get(first));
  }
  ask(asked);
}

void LoadWork::ask(const Asked& question) {
  Asked asked = question;
  // a training step that has just been asked for follows the load, whatever followed it before
  if (asked.request.forward.training.weights && !asked_.request.forward.training.weights)
    asked.first_token = true;
  memory_ = check(asked);
  if (asked != asked_) remember(asked);
  const bool same_run = asked.request.forward == asked_.request.forward;
  asked_ = asked;
  if (!model) return;
  events_.asked();
  if (!same_run || (!forward_.scene.value() && !forward_.scene.busy()))
    work_out_pass();
  else
    forward_.evaluate(asked_.request);
  refresh();
}

void LoadWork::set_option(std::string_view option, std::string_view word) {
  Asked asked = asked_;
  load::LoadRequest& request = asked.request;
  load::set_load_option(request, option, word);
  if (request.target != asked_.request.target) {  // the data sheet holds until the user chooses otherwise
    request.memory.reset();
    request.device_budget.reset();
    request.host_budget.reset();
  }
  if (request.memory != asked_.request.memory && request.memory == plan::MemoryKind::unified)
    request.host_budget.reset();
  ask(asked);
}

const std::vector<load::Target>& LoadWork::targets() const { return *services_.targets; }

void LoadWork::follow_targets() {
  if (asked_.request.target.empty()) return;
  memory_ = memory_of(asked_, targets());
  judged_of_.reset();
  compared_.reset();
  refresh();
}

void LoadWork::work_out_pass() {
  forward_.work_out(asked_.request.forward, [this] {
    if (const ForwardScene* scene = forward_.scene.value().get(); scene != nullptr && !scene->fault.empty()) {
      asked_.request.forward = {};
      services_.notices.add(graph::Severity::error,
                            "The forward pass cannot use these options: " + scene->fault, document_);
    }
    forward_.evaluate(asked_.request);
    refresh();
  });
}

LoadQuestion LoadWork::task(LoadQuestion question) const {
  question.graph = model->graph;
  question.assets = services_.assets;
  question.targets = services_.targets;
  question.rates = services_.rates;
  question.passes = passes_;
  question.claims = claims;
  return question;
}

void LoadWork::choose_order(std::shared_ptr<const load::StorageOrder> order) {
  Asked next = asked_;
  next.request.orders = {std::string(load::kOwnOrder)};
  if (next != asked_) remember(next);
  custom_ = std::move(order);
  asked_.request.orders = {std::string(load::kOwnOrder)};
  refresh();
}

void LoadWork::refresh() {
  if (!model) return;
  // a question that was canceled or failed is tried again
  const bool planned = projection.value() || projection.busy();
  const bool is_compared = !comparison.value()->answer.rows.empty() || comparison.busy();
  if (planned_ != timeline() || !planned) ask_projection();
  ask_verdict();
  plan_beside();
  if (wants_comparison_ && (compared_ != comparison_question(asked_, pass(), custom_) || !is_compared))
    compare();
}

void LoadWork::want_comparison() {
  if (wants_comparison_) return;
  wants_comparison_ = true;
  refresh();
}

void LoadWork::ask_projection() {
  planned_ = timeline();
  judged.reset();
  judged_of_.reset();
  const auto arrived = std::make_shared<Arrivals>();
  projection.ask(
      services_.jobs, fmt::format("Projecting {}", shown_method(asked_).id),
      [task = task(*planned_), arrived](Progress& progress) {
        load::Projection made = project_load(task, progress);
        *arrived = arrivals_of(made.plan, made.timeline);
        return made;
      },
      [this, arrived] {
        arrivals = projection.error() == nullptr ? arrived : nullptr;
        services_.notices.take_back(plan_failure_);
        if (projection.error() != nullptr) {
          projection.drop();
          plan_failure_ = services_.notices.fail("project the load", *projection.error(), document_);
        }
        events_.projected();
        ask_verdict();
      });
}

// The projection stays when only a budget changes.
void LoadWork::ask_verdict() {
  if (projection.busy() || !projection.value()) return;
  LoadQuestion question = comparison_question(asked_, pass(), custom_);
  question.request.methods = {std::string(projection.value()->method->id)};
  question.request.orders = {projection.value()->order};  // of one row, whatever is compared
  question.request.max_context =
      memory_.deciding_budget().has_value() && !question.request.forward.training.weights;
  if (judged_of_ == question) return;
  judged_of_ = question;
  judged.ask(
      services_.jobs, "Checking the budgets",
      [task = task(std::move(question)), shown = projection.value()](Progress& progress) {
        return judge_load(task, *shown, progress);
      },
      [this] { events_.judged(); });
}

void LoadWork::set_beside(std::string method) {
  if (!method.empty()) method = load::find_method(method).id;
  beside_method_ = std::move(method);
  plan_beside();
}

void LoadWork::plan_beside() {
  if (beside_method_ == shown_method(asked_).id) beside_method_.clear();  // that is the load itself
  if (beside_method_.empty() || !model) {
    beside_of_.reset();
    return beside.reset();
  }
  LoadQuestion question = timeline();
  question.request.methods = {beside_method_};
  if (beside_of_ == question) return;
  beside_of_ = question;
  beside.drop();
  beside.ask(
      services_.jobs, fmt::format("Projecting {}", beside_method_),
      [task = task(std::move(question))](Progress& progress) { return project_load(task, progress); },
      [this] {
        if (beside.error() != nullptr) services_.notices.fail("project the load", *beside.error(), document_);
      });
}

void LoadWork::compare() {
  compared_ = comparison_question(asked_, pass(), custom_);
  comparison.ask(
      services_.jobs, "Comparing load methods",
      [task = task(*compared_)](Progress& progress) { return compare_loads(task, progress); },
      [this] {
        if (comparison.error() == nullptr) return;
        services_.notices.fail("compare the methods", *comparison.error(), document_);
        comparison.set({});
      });
}

// --- What is written to files.

namespace {

[[noreturn]] void refuse_suffix(const std::string& path, std::string_view suffix) {
  throw Error(ErrorCode::usage, "'{}' does not end in {}: Loadline overwrites only such files",
              safe_display(path, 120), suffix);
}

// The lines of a page about the model and the request.
report::PageText page_text(const graph::MetaGraph& graph, const load::BoundRequest& bound) {
  report::PageText page;
  page.version = LOADLINE_VERSION;
  page.lead = fmt::format("{}, weights = {}", counted(graph.tensors.size(), "tensor"),
                          counted(graph::storage_bytes(graph), "byte"));
  if (const std::string target = report::budget_text(bound); !target.empty()) page.lead += ". " + target;
  page.options = report::asked_for(bound.request, bound.memory.kind);
  page.options.emplace_back("Times", load::rates_line(bound.rates));
  return page;
}

// Writes the text that `text` makes to a file, and reports the path. Its job continues if the model is
// closed.
template <typename Text>
void write(Services& services, const std::string& path, std::string_view what, Text text) {
  services.jobs.post(
      "Writing " + safe_display(path, 60), "",
      [text, path](Progress& progress) {
        report::write_file(path, text(progress));
        return path;
      },
      [&services, what](Outcome<std::string> outcome) {
        if (outcome.ok())
          services.notices.add(graph::Severity::info,
                               fmt::format("The {} is in {}", what, safe_display(outcome.value(), 120)));
        else
          services.notices.fail(fmt::format("write the {}", what), outcome.error());
      });
}

}  // namespace

void LoadWork::save_chart(const std::string& path) const {
  if (!model || comparison.value()->answer.rows.empty() || comparison.busy())
    throw Error(ErrorCode::usage, "the methods are not compared yet: the panel Methods compares them");
  const bool page = path.ends_with(".html");
  if (!page && !path.ends_with(".svg")) refuse_suffix(path, ".svg or .html");
  write(services_, path, "chart", [graph = model->graph, compared = comparison.value(), page](Progress&) {
    const report::ChartSubject subject = compared->subject(*graph);
    return page ? report::page_html(subject, page_text(*graph, subject.bound)) : report::chart_svg(subject);
  });
}

// --- Advice: changes that make the load fit, tried out, taken over and taken back.

namespace {

Asked asked_as(const Asked& now, const load::AdvisedLoad& load) {
  Asked asked = now;
  for (const auto& [id, value] : load.settings)
    if (id != "method" && id != "order") load::set_load_option(asked.request, id, value);
  asked.request.methods = {std::string(load.method->id)};
  asked.request.orders = {load.order};
  return asked;
}

}  // namespace

void Advisor::search() {
  if (!load_.model || is_current()) return;
  searched_ = load_.asked();
  answer.drop();
  quantizations.drop();
  LoadQuestion question = load_.timeline();
  load::LoadRequest budgeted = load_.asked().request;  // the timeline does not depend on budgets
  budgeted.methods = std::move(question.request.methods);
  budgeted.orders = std::move(question.request.orders);
  question.request = std::move(budgeted);
  if (load_.pass() == nullptr) take_pass(question.request, {});
  const LoadQuestion task = load_.task(std::move(question));
  answer.ask(services_.jobs, "Searching for loads that fit",
             [task](Progress& progress) { return advise_load(task, progress); });
  quantizations.ask(services_.jobs, "Trying quantizations",
                    [task](Progress& progress) { return try_quantizations(task, progress); });
}

void Advisor::apply(const load::AdvisedLoad& load) {
  const Asked before = load_.asked();
  load_.ask(asked_as(before, load));
  restored_ = before;
  applied_ = load_.asked();
}

void Advisor::take_back() {
  if (!can_take_back()) return;
  const Asked before = *restored_;
  load_.ask(before);
  applied_.reset();
}

void Advisor::preview(const load::AdvisedLoad* load) {
  if (load == nullptr) {
    previewing_.reset();
    return previewed.reset();
  }
  const Asked asked = asked_as(load_.asked(), *load);
  if (previewing_ == asked) return;
  previewing_ = asked;
  previewed.drop();
  previewed.ask(services_.jobs, "Projecting the change",
                [task = load_.task(timeline_question(asked, load_.pass(), load_.custom_order()))](
                    Progress& progress) { return project_load(task, progress); });
}

// --- Orders of one's own.

OrderEditing::OrderEditing(Services& services, LoadWork& load, std::uint64_t document)
    : services_(services), load_(load), document_(document) {
  list.set({});
}

void OrderEditing::list_chosen() {
  if (!load_.model) return;
  LoadQuestion wanted = load_.timeline();
  // a custom order stays unfolded as it is, whatever else changes
  if (wanted.own_order) wanted.request = {};
  if (wanted == listed_) return;
  listed_ = std::move(wanted);
  list.ask(
      services_.jobs, "Listing the order",
      [task = load_.task(load_.timeline())](Progress& progress) {
        return OrderList(*task.graph, first_order(task, progress));
      },
      [this] {
        if (list.error() == nullptr) return;
        services_.notices.fail("list the order", *list.error(), document_);
        list.set({});
      });
}

void OrderEditing::arrange(OrderList edited) {
  if (!load_.model) return;
  list.set(std::move(edited));
  load::StorageOrder arranged = list.value()->order();
  const auto& custom = load_.custom_order();
  const bool unfolded = custom && shown_order(load_.asked()) == load::kOwnOrder && arranged == *custom;
  load_.choose_order(unfolded ? custom : std::make_shared<const load::StorageOrder>(std::move(arranged)));
  listed_ = LoadQuestion{{}, load_.custom_order()};
}

void OrderEditing::read(const std::string& path) {
  if (!load_.model) throw Error(ErrorCode::usage, "no model is open");
  list.ask(
      services_.jobs, "Reading " + safe_display(path, 60),
      [graph = load_.model->graph, path](Progress&) {
        return OrderList(*graph, load::read_order(*graph, path));
      },
      [this] {
        if (list.error() == nullptr)
          arrange(*list.value());
        else
          services_.notices.fail("read the order", *list.error(), document_);
      });
}

void OrderEditing::save(const std::string& path) const {
  if (!load_.model) throw Error(ErrorCode::usage, "no model is open");
  if (!path.ends_with(".txt")) refuse_suffix(path, ".txt");
  write(services_, path, "order", [task = load_.task(load_.timeline())](Progress& progress) {
    return load::order_text(*task.graph, first_order(task, progress));
  });
}

}  // namespace loadline::gui
