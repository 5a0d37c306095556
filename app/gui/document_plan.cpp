// What is worked out of a model in the background: the forward pass, the projection, the comparison.
#include "app/gui/document.h"
#include "app/gui/fits.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
#include "core/io/process_memory.h"
#include "core/load/optimal_order.h"

#include <algorithm>
#include <utility>

namespace loadline::gui {
namespace {

// Jobs keep the scene that their pass points into.
const ForwardPass* pointer(const std::optional<ForwardPass>& pass) { return pass ? &*pass : nullptr; }

std::optional<DevicePreset> find_preset(const std::vector<DevicePreset>& presets, const std::string& id) {
  if (id.empty()) return std::nullopt;
  return find_row(std::span(presets), id, "device");
}

// Another profile has other operators around the same ones: those of a name are counted from the last.
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

void Document::set_plan(const PlanChoice& choice) {
  find_method(choice.method);
  if (choice.order != kCustomOrder)
    find_order(choice.order);
  else if (!custom_)
    throw Error(ErrorCode::usage, "no custom order was arranged or read from a file yet");
  find_preset(shared_.presets, choice.preset);
  check_options(choice.options);
  // whether it can be done is asked only when it is another one: that looks at every tensor (a new model has
  // none yet)
  if (model && !same_placement(choice, choice_)) choice_placement(*model->graph, choice);
  const bool load = same_load(choice, choice_);
  const bool rows = same_comparison(choice, choice_);
  choice_ = choice;
  if (!load && listed_ != kCustomOrder) listed_.clear();  // the optimal one may be another now
  if (!model) return;
  // what was cancelled or failed is tried again
  const bool planned = projection.value() || projection.busy();
  const bool compared = !comparison.value()->rows.empty() || comparison.busy();
  if (!load || !planned) plan();
  if (!rows || !compared) compare();
}

void Document::set_forward(const ForwardChoice& choice) {
  if (!choice.options.profile.empty()) shared_.assets->profile(choice.options.profile);
  const bool same_options = choice.options == forward_choice_.options;
  const bool same = choice == forward_choice_;
  forward_choice_ = choice;
  forward_choice_.batch = std::clamp<std::uint64_t>(choice.batch, 1, kMostBatch);
  forward_choice_.sequence = std::clamp<std::uint64_t>(choice.sequence, 1, kMostSequence);
  forward_choice_.past = std::min(choice.past, kMostPast);
  if (!model) return;
  if (!same_options || (!forward.value() && !forward.busy())) return lower();
  if (same || !forward.value()) return;
  evaluate_forward();
  if (choice_.first_token) plan(), compare();
}

void Document::lower() {
  forward.ask(
      shared_.jobs, "Working out the forward pass",
      [graph = model->graph, assets = shared_.assets, options = forward_choice_.options](Progress& progress) {
        return make_forward_scene(graph, assets, options, progress);
      },
      [this, before = forward.value()] {
        if (forward.error() != nullptr) forward.drop();
        const ForwardScene* scene = forward.value().get();
        if (scene != nullptr && !scene->fault.empty()) {
          forward_choice_.options = {};
          shared_.notices.add(Severity::error, "The pass cannot be run as chosen: " + scene->fault, id);
        }
        operator_shown = same_operator(before.get(), scene, operator_shown);
        evaluate_forward();
        if (choice_.first_token) plan(), compare();
      });
}

void Document::evaluate_forward() {
  figures_.reset();
  figures_error_.clear();
  const ForwardScene* scene = forward.value().get();
  if (scene == nullptr || scene->forward() == nullptr) return;
  try {
    const auto symbols = symbols_of(*scene->forward(), forward_choice_);
    figures_ = std::make_shared<const ForwardFigures>(*forward_figures(scene->model, symbols));
  } catch (const Error& error) {
    figures_error_ = error.what();
  }
}

std::string forward_error(const Document& document) {
  return document.forward.error() != nullptr ? document.forward.error_text() : document.figures_error();
}

std::optional<ForwardPass> Document::pass() const {
  if (!choice_.first_token || !figures_) return std::nullopt;
  const ForwardGraph* graph = forward.value()->forward();
  return ForwardPass{graph, symbols_of(*graph, forward_choice_)};
}

PlanTask Document::plan_task() const {
  return {model->graph, choice_, find_preset(shared_.presets, choice_.preset), shared_.rates, custom_};
}

void Document::plan() {
  projection.ask(
      shared_.jobs, "Projecting " + choice_.method,
      [task = plan_task(), scene = forward.value(), pass = pass()](Progress& progress) {
        const Method& method = find_method(task.choice.method);
        const MethodOptions options = task_options(task, pass.has_value());
        return project(*task.graph, method, task.choice.order,
                       make_order(*task.graph, task_order(task), method, options, progress), options,
                       progress, pointer(pass));
      },
      [this] {
        shared_.notices.take_back(plan_failure_);
        if (projection.error() != nullptr) {
          projection.drop();
          plan_failure_ = shared_.notices.fail("project the load", *projection.error(), id);
        }
        weigh_upload();
      });
}

void Document::compare() {
  const report::RowFrame frame = task_frame(choice_, pass().has_value());
  comparison.ask(
      shared_.jobs, "Comparing load methods",
      [task = plan_task(), scene = forward.value(), pass = pass(), frame](Progress& progress) {
        return Comparison{compare_methods(task, pointer(pass), progress), frame};
      },
      [this, frame] {
        if (comparison.error() == nullptr) return;
        shared_.notices.fail("compare the methods", *comparison.error(), id);
        comparison.set({{}, frame});
      });
}

void Document::weigh_upload() {
  upload_misfit_.clear();
  if (!projection.value()) return;
  upload_misfit_ = mapping_misfit(*model, *projection.value());
  if (!upload_misfit_.empty() || !shared_.devices.value()) return;
  const std::vector<gpu::DeviceInfo>& devices = *shared_.devices.value();
  const gpu::DeviceChoice choice = gpu::choose_device(devices, shared_.device);
  if (choice.chosen)
    upload_misfit_ =
        gui::upload_misfit(projection.value()->timeline, devices[*choice.chosen], available_system_memory());
}

}  // namespace loadline::gui
