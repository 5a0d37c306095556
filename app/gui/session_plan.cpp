// What is worked out of a model in the background: the forward pass, the projection, the comparison.
#include "app/gui/session.h"
#include "core/base/text.h"
#include "core/plan/optimal_order.h"

#include <algorithm>
#include <utility>

namespace loadline::gui {
namespace {

// With a pass the activations are its own, not a figure that somebody chose.
MethodOptions options_of(const PlanChoice& choice, bool with_pass) {
  MethodOptions options = choice.options;
  if (with_pass) options.activation_bytes = 0;
  return options;
}

// Jobs keep the scene that their pass points into.
const ForwardPass* pointer(const std::optional<ForwardPass>& pass) { return pass ? &*pass : nullptr; }

std::vector<MethodRow> compare_methods(const MetaGraph& graph, const PlanChoice& choice,
                                       const std::optional<ForwardPass>& pass, Progress& progress) {
  const Order& order = find_order(choice.order);
  const StorageOrder shared = order.make != nullptr ? order.make(graph) : StorageOrder();
  std::vector<MethodRow> rows;
  for (const Method& method : methods()) {
    MethodRow row;
    row.method = &method;
    try {
      const MethodOptions options = options_of(choice, pass.has_value());
      const StorageOrder own =
          order.make == nullptr ? make_order(graph, order, method, options, progress) : StorageOrder();
      const Projection projection = project(graph, method, choice.order, order.make == nullptr ? own : shared,
                                            options, progress, pointer(pass));
      for (std::size_t space = 0; space < kSpaceCount; ++space)
        row.peaks[space] = projection.timeline.peaks[space].bytes;
      row.unified = projection.timeline.unified.bytes;
      row.final_bytes = projection.timeline.final_bytes;
      row.seconds = projection.timeline.seconds;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      row.error = error.what();
    }
    rows.push_back(std::move(row));
  }
  return rows;
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
  find_order(choice.order);
  check_options(choice.options);
  const bool same_comparison =
      choice.order == choice_.order && choice.options.staging_bytes == choice_.options.staging_bytes &&
      choice.options.slots == choice_.options.slots &&
      choice.options.activation_bytes == choice_.options.activation_bytes &&
      choice.options.spaces == choice_.options.spaces && choice.first_token == choice_.first_token;
  const bool same_plan = same_comparison && choice.method == choice_.method;
  choice_ = choice;
  if (!model_) return;
  // what was cancelled or failed is tried again
  const bool planned = projection_ || planning();
  const bool compared = !comparison_.empty() || comparing();
  if (!same_plan || !planned) plan();
  if (!same_comparison || !compared) compare();
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

void Session::plan() {
  const std::uint64_t number = ++plan_count_;
  planning_ = number;
  upload_alone_ = false;
  jobs_.post(
      "Projecting " + choice_.method, "plan",
      [graph = model_->graph, choice = choice_, scene = forward_,
       pass = pass()](Progress& progress) -> std::shared_ptr<const Projection> {
        return std::make_shared<const Projection>(
            project(*graph, find_method(choice.method), find_order(choice.order),
                    options_of(choice, pass.has_value()), progress, pointer(pass)));
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
  const std::uint64_t number = ++plan_count_;
  comparing_ = number;
  upload_alone_ = false;
  jobs_.post(
      "Comparing load methods", "compare",
      [graph = model_->graph, choice = choice_, scene = forward_, pass = pass()](Progress& progress) {
        return compare_methods(*graph, choice, pass, progress);
      },
      [this, number](Outcome<std::vector<MethodRow>> outcome) {
        if (comparing_ != number) return;
        comparing_ = 0;
        comparison_.clear();
        if (outcome.ok())
          comparison_ = std::move(outcome.value());
        else
          fail("compare the methods", outcome.error(), About::model);
      });
}

}  // namespace loadline::gui
