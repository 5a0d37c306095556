// The background computations for a model: the forward pass, the projection, the comparison.
#include "app/gui/state/document.h"
#include "app/gui/state/model/fits.h"
#include "core/base/error.h"
#include "core/io/system_memory.h"
#include "core/load/request/load_options.h"
#include "core/load/request/order_file.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace loadline::gui {
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
  const Op& op = old[*shown];
  if (op.name.empty()) return std::nullopt;
  const auto same = [&](const Op& other) { return other.name == op.name && other.kind == op.kind; };
  auto behind = std::count_if(old.begin() + static_cast<std::ptrdiff_t>(*shown) + 1, old.end(), same);
  for (std::size_t i = ops.size(); i-- > 0;)
    if (same(ops[i]) && behind-- == 0) return i;
  return std::nullopt;
}

}  // namespace

void Document::check(const Asked& asked) const {
  const LoadRequest& request = asked.request;
  for (const LoadOption& option : load_options())
    if (const OptionValue value = option.get(request); std::holds_alternative<std::uint64_t>(value))
      check_option_number(std::get<std::uint64_t>(value), option.least, option.most,
                          option.kind == OptionKind::bytes);
  if (shown_order(asked) == kOwnOrder && !custom_)
    throw Error(ErrorCode::usage, "no custom order was arranged or read from a file yet");
  if (!request.forward.profile.empty()) shared_.assets->profile(request.forward.profile);
  const LoadQuestion question = comparison_question(asked, pass(), custom_);
  if (model && question == compared_) return;
  check_request(question.request);
  (void)find_methods(request.methods);
  (void)bind_memory(request, *shared_.targets);
  if (model)
    (void)bind(task(question));  // visits every tensor if weights are placed
  else if (shown_order(asked) != kOwnOrder)
    check_order_choice(shown_order(asked));
}

void Document::ask(const Asked& asked) {
  check(asked);
  const bool same_run = asked.request.forward == asked_.request.forward;
  asked_ = asked;
  if (!model) return;
  // a load that is selected would go on showing what the change has left behind
  if (const LoadOf now = {std::string(shown_method(asked_).id), shown_order(asked_)};
      std::holds_alternative<LoadOf>(selected()) && selected() != Selected(now))
    select(now);
  if (!same_run || (!forward.value() && !forward.busy()))
    lower();
  else
    evaluate_forward();
  refresh_load();
}

void Document::set_option(std::string_view option, std::string_view word) {
  Asked asked = asked_;
  LoadRequest& request = asked.request;
  set_load_option(request, option, word);
  if (request.target != asked_.request.target) {  // the data sheet holds until the user chooses otherwise
    request.memory.reset();
    request.device_budget.reset();
    request.host_budget.reset();
  }
  if (request.memory != asked_.request.memory && request.memory == MemoryKind::unified)
    request.host_budget.reset();
  ask(asked);
}

BoundMemory Document::memory() const { return bind_memory(asked_.request, *shared_.targets); }

BoundRequest Document::bound() const { return bind(task(timeline())); }

void Document::lower() {
  forward.ask(
      shared_.jobs, "Working out the forward pass",
      [graph = model->graph, assets = shared_.assets, options = asked_.request.forward](Progress& progress) {
        return make_forward_scene(graph, assets, options, progress);
      },
      [this, before = forward.value()] {
        if (forward.error() != nullptr) forward.drop();
        const ForwardScene* scene = forward.value().get();
        if (scene != nullptr && !scene->fault.empty()) {
          asked_.request.forward = {};
          shared_.notices.add(Severity::error, "The pass cannot be run as chosen: " + scene->fault, id);
        }
        operator_shown = same_operator(before.get(), scene, operator_shown);
        evaluate_forward();
        refresh_load();
      });
}

void Document::evaluate_forward() {
  const std::shared_ptr<const ForwardScene> scene = forward.value();
  std::vector<std::uint64_t> symbols;
  std::string error;
  const bool known = scene && scene->forward() != nullptr;
  try {
    if (known) symbols = symbols_of(*scene->forward(), asked_.request);
    if (figures_ && evaluated_ == scene && symbols_ == symbols) return;
    figures_.reset();
    if (known) figures_ = std::make_shared<const ForwardFigures>(*forward_figures(scene->model, symbols));
  } catch (const Error& fault) {
    figures_.reset();
    error = fault.what();
  }
  figures_error_ = std::move(error);
  evaluated_ = scene;
  symbols_ = std::move(symbols);
}

std::string forward_error(const Document& document) {
  return document.forward.error() != nullptr ? document.forward.error_text() : document.figures_error();
}

const ForwardScene* Document::pass() const {
  return asked_.first_token && figures_ ? evaluated_.get() : nullptr;
}

LoadTask Document::task(LoadQuestion question) const {
  return {model->graph, std::move(question), shared_.assets, shared_.targets, shared_.rates, passes_};
}

void Document::refresh_load() {
  if (!model) return;
  // a question that was cancelled or failed is tried again
  const bool planned = projection.value() || projection.busy();
  const bool compared = !comparison.value()->answer.rows.empty() || comparison.busy();
  if (planned_ != timeline() || !planned) plan();
  judge();
  plan_beside();
  if (wants_comparison_ && (compared_ != comparison_question(asked_, pass(), custom_) || !compared))
    compare();
}

void Document::want_comparison() {
  if (wants_comparison_) return;
  wants_comparison_ = true;
  refresh_load();
}

void Document::plan() {
  planned_ = timeline();
  judged.reset();
  judged_of_.reset();
  projection.ask(
      shared_.jobs, fmt::format("Projecting {}", shown_method(asked_).id),
      [task = task(*planned_)](Progress& progress) { return project_load(task, progress); },
      [this] {
        shared_.notices.take_back(plan_failure_);
        step_.reset();
        playing = false;
        // the blocks of the projection before are gone
        history_.replace([](Selected what) {
          return std::holds_alternative<BlockId>(what) ? Selected() : std::move(what);
        });
        if (projection.error() != nullptr) {
          projection.drop();
          plan_failure_ = shared_.notices.fail("project the load", *projection.error(), id);
        }
        judge();
        weigh_upload();
      });
}

// The projection stays when only a budget changes.
void Document::judge() {
  if (projection.busy() || !projection.value()) return;
  LoadQuestion question = comparison_question(asked_, pass(), custom_);
  question.request.methods = {std::string(projection.value()->method->id)};
  if (judged_of_ == question) return;
  judged_of_ = question;
  judged.ask(shared_.jobs, "Checking the budgets",
             [task = task(std::move(question)), shown = projection.value()](Progress&) {
               return judge_load(task, *shown);
             });
}

void Document::set_beside(std::string method) {
  if (!method.empty()) method = find_method(method).id;
  beside_method_ = std::move(method);
  plan_beside();
}

void Document::plan_beside() {
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
      shared_.jobs, fmt::format("Projecting {}", beside_method_),
      [task = task(std::move(question))](Progress& progress) { return project_load(task, progress); },
      [this] {
        if (beside.error() != nullptr) shared_.notices.fail("project the load", *beside.error(), id);
      });
}

void Document::compare() {
  compared_ = comparison_question(asked_, pass(), custom_);
  comparison.ask(
      shared_.jobs, "Comparing load methods",
      [task = task(*compared_)](Progress& progress) { return compare_loads(task, progress); },
      [this] {
        if (comparison.error() == nullptr) return;
        shared_.notices.fail("compare the methods", *comparison.error(), id);
        comparison.set({});
      });
}

void Document::weigh_upload() {
  upload_misfit_.clear();
  device_misfits_.clear();
  if (!projection.value()) return;
  upload_misfit_ = mapping_misfit(*model, *projection.value());
  if (!upload_misfit_.empty() || !shared_.devices.value()) return;
  const std::vector<gpu::DeviceInfo>& devices = *shared_.devices.value();
  const std::optional<std::uint64_t> system = available_system_memory();
  for (const gpu::DeviceInfo& device : devices)
    device_misfits_.push_back(gui::upload_misfit(*projection.value(), *model->graph, device, system));
  const gpu::DeviceChoice choice = gpu::choose_device(devices, shared_.device);
  if (choice.chosen) upload_misfit_ = device_misfits_[*choice.chosen];
}

}  // namespace loadline::gui
