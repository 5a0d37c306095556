// What is worked out of a model in the background: the forward pass, the projection, the comparison.
#include "app/gui/session.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
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

void Session::set_plan(const PlanChoice& choice) {
  find_method(choice.method);
  if (choice.order != kCustomOrder)
    find_order(choice.order);
  else if (!custom_)
    throw Error(ErrorCode::usage, "no custom order was arranged or read from a file yet");
  find_preset(presets_, choice.preset);
  check_options(choice.options);
  // whether it can be done is asked only when it is another one: that looks at every tensor (a new model has
  // none yet)
  if (model_ && !same_placement(choice, choice_)) choice_placement(*model_->graph, choice);
  const bool load = same_load(choice, choice_);
  const bool rows = same_comparison(choice, choice_);
  choice_ = choice;
  if (!load && listed_ != kCustomOrder) listed_.clear();  // the optimal one may be another now
  if (!model_) return;
  // what was cancelled or failed is tried again
  const bool planned = projection_ || planning();
  const bool compared = !comparison_->empty() || comparing();
  if (!load || !planned) plan();
  if (!rows || !compared) compare();
}

void Session::set_forward(const ForwardChoice& choice) {
  if (!choice.options.profile.empty()) assets_->profile(choice.options.profile);
  const bool same_options = choice.options == forward_choice_.options;
  const bool same = choice == forward_choice_;
  forward_choice_ = choice;
  forward_choice_.batch = std::clamp<std::uint64_t>(choice.batch, 1, kMostBatch);
  forward_choice_.sequence = std::clamp<std::uint64_t>(choice.sequence, 1, kMostSequence);
  forward_choice_.past = std::min(choice.past, kMostPast);
  if (!model_) return;
  if (!same_options || (!forward_ && !lowering())) return lower();
  if (same || !forward_) return;
  evaluate_forward();
  if (choice_.first_token) plan(), compare();
}

void Session::lower() {
  const std::uint64_t number = ++lower_count_;
  lowering_ = number;
  jobs_.post(
      "Working out the forward pass", "forward",
      [graph = model_->graph, assets = assets_, options = forward_choice_.options](Progress& progress) {
        return make_forward_scene(graph, assets, options, progress);
      },
      [this, number](Outcome<std::shared_ptr<const ForwardScene>> outcome) {
        if (lowering_ != number) return;
        lowering_ = 0;
        forward_error_.clear();
        const auto before = std::exchange(forward_, nullptr);
        if (outcome.ok())
          forward_ = outcome.value();
        else
          forward_error_ = outcome.error().what();
        if (forward_ && !forward_->fault.empty()) {
          forward_choice_.options = {};
          add_notice({Severity::error, "The pass cannot be run as chosen: " + forward_->fault, true});
        }
        operator_shown = same_operator(before.get(), forward_.get(), operator_shown);
        evaluate_forward();
        if (choice_.first_token) plan(), compare();
      });
}

void Session::evaluate_forward() {
  forward_figures_.reset();
  if (!forward_ || forward_->forward() == nullptr) return;
  forward_error_.clear();
  try {
    const auto symbols = symbols_of(*forward_->forward(), forward_choice_);
    forward_figures_ =
        std::make_shared<const ForwardFigures>(*loadline::forward_figures(forward_->model, symbols));
  } catch (const Error& error) {
    forward_error_ = error.what();
  }
}

std::optional<ForwardPass> Session::pass() const {
  if (!choice_.first_token || !forward_figures_) return std::nullopt;
  return ForwardPass{forward_->forward(), symbols_of(*forward_->forward(), forward_choice_)};
}

bool Session::arena_waits() const { return model_ && (lowering() || (planning() && !projection_)); }

void Session::show_arena() {
  if (!arena_waits() && !arena_.opening()) arena_.update(arena_model());
}

PlanTask Session::plan_task() const {
  return {model_->graph, choice_, find_preset(presets_, choice_.preset), rates_, custom_};
}

void Session::plan() {
  const std::uint64_t number = ++plan_count_;
  planning_ = number;
  upload_alone_ = false;
  jobs_.post(
      "Projecting " + choice_.method, "plan",
      [task = plan_task(), scene = forward_,
       pass = pass()](Progress& progress) -> std::shared_ptr<const Projection> {
        const Method& method = find_method(task.choice.method);
        const MethodOptions options = task_options(task, pass.has_value());
        return std::make_shared<const Projection>(
            project(*task.graph, method, task.choice.order,
                    make_order(*task.graph, task_order(task), method, options, progress), options, progress,
                    pointer(pass)));
      },
      [this, number](Outcome<std::shared_ptr<const Projection>> outcome) {
        if (planning_ != number) return;
        planning_ = 0;
        std::erase_if(notices_, [&](const Notice& notice) { return notice.text == plan_failure_; });
        if (outcome.ok()) {
          projection_ = outcome.value();
        } else {
          projection_.reset();
          fail("project the load", outcome.error(), About::model);
          plan_failure_ = notices_.back().text;
        }
        weigh_upload();
      });
}

void Session::compare() {
  using Rows = std::shared_ptr<const std::vector<report::PlanRow>>;
  const std::uint64_t number = ++plan_count_;
  comparing_ = number;
  upload_alone_ = false;
  jobs_.post(
      "Comparing load methods", "compare",
      [task = plan_task(), scene = forward_, pass = pass()](Progress& progress) -> Rows {
        return std::make_shared<const std::vector<report::PlanRow>>(
            compare_methods(task, pointer(pass), progress));
      },
      [this, number, frame = task_frame(choice_, pass().has_value())](Outcome<Rows> outcome) {
        if (comparing_ != number) return;
        comparing_ = 0;
        ++comparisons_;
        comparison_frame_ = frame;
        comparison_ = outcome.ok() ? outcome.value() : std::make_shared<const std::vector<report::PlanRow>>();
        if (!outcome.ok()) fail("compare the methods", outcome.error(), About::model);
      });
}

}  // namespace loadline::gui
