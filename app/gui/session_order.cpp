// The order of a load, arranged by hand or read from a file; and pictures of the comparison.
#include "app/gui/session.h"
#include "app/report/plan_chart.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/load/optimal_order.h"

#include <span>
#include <utility>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

void write_text(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.commit();
}

[[noreturn]] void refuse_suffix(const std::string& path, std::string_view suffix) {
  throw Error(ErrorCode::usage, fmt::format("'{}' does not end in {}: other files are not written over",
                                            safe_display(path, 120), suffix));
}

StorageOrder chosen_order(const PlanTask& task, bool with_pass, const Progress& progress) {
  return make_order(*task.graph, task_order(task), find_method(task.choice.method),
                    task_options(task, with_pass), progress);
}

}  // namespace

void Session::forget_order() {
  custom_.reset();
  order_list_ = {};
  listed_.clear();
  listing_ = 0;
  jobs_.cancel_tagged("order");
  overlaid.clear();
  // neither names of tensors nor counts of layers or bytes mean anything in another model
  if (choice_.order == kCustomOrder) choice_.order = "file";
  choice_ = without_placement(choice_);
}

void Session::list_order() {
  if (!model_) return;
  const bool own = choice_.order != kCustomOrder && find_order(choice_.order).make == nullptr;
  const std::string wanted = own ? choice_.order + " of " + choice_.method : choice_.order;
  if (wanted == listed_) return;
  listed_ = wanted;
  const std::uint64_t number = ++plan_count_;
  listing_ = number;
  jobs_.post(
      "Listing the order", "order",
      [task = plan_task(), with_pass = pass().has_value()](Progress& progress) {
        return OrderList(*task.graph, chosen_order(task, with_pass, progress));
      },
      [this, number](Outcome<OrderList> outcome) {
        if (listing_ != number) return;
        listing_ = 0;
        order_list_ = outcome.ok() ? std::move(outcome.value()) : OrderList();
        if (!outcome.ok()) fail("list the order", outcome.error(), About::model);
      });
}

void Session::arrange_order(OrderList list) {
  if (!model_) return;
  jobs_.cancel_tagged("order");
  listing_ = 0;
  order_list_ = std::move(list);
  listed_ = kCustomOrder;
  StorageOrder order = order_list_.order();
  const bool same = custom_ && choice_.order == kCustomOrder && order == *custom_;
  choice_.order = kCustomOrder;
  if (same) return;  // folded or unfolded
  custom_ = std::make_shared<const StorageOrder>(std::move(order));
  plan();
  compare();
}

void Session::load_order(const std::string& path) {
  if (!model_) throw Error(ErrorCode::usage, "no model is open");
  const std::uint64_t number = ++plan_count_;
  listing_ = number;
  jobs_.post(
      "Reading " + safe_display(path, 60), "order",
      [graph = model_->graph, path](Progress&) { return OrderList(*graph, read_order(*graph, path)); },
      [this, number](Outcome<OrderList> outcome) {
        if (listing_ != number) return;
        listing_ = 0;
        if (outcome.ok())
          arrange_order(std::move(outcome.value()));
        else
          fail("read the order", outcome.error(), About::model);
      });
}

void Session::save_order(const std::string& path) {
  if (!model_) throw Error(ErrorCode::usage, "no model is open");
  if (!path.ends_with(".txt")) refuse_suffix(path, ".txt");
  jobs_.post(
      "Writing " + safe_display(path, 60), "",
      [task = plan_task(), with_pass = pass().has_value(), path](Progress& progress) {
        write_text(path, order_text(*task.graph, chosen_order(task, with_pass, progress)));
        return path;
      },
      [this](Outcome<std::string> outcome) {
        if (outcome.ok())
          notify(Severity::info, fmt::format("The order is in {}", safe_display(outcome.value(), 120)));
        else
          fail("write the order", outcome.error(), About::work);
      });
}

void Session::save_chart(const std::string& path) {
  if (!model_ || comparison_->empty() || comparing())
    throw Error(ErrorCode::usage, "the methods are not compared yet");
  const bool page = path.ends_with(".html");
  if (!page && !path.ends_with(".svg")) refuse_suffix(path, ".svg or .html");
  jobs_.post(
      "Writing " + safe_display(path, 60), "",
      [task = plan_task(), rows = comparison_, frame = comparison_frame_, path, page](Progress&) {
        const report::ChartSubject subject = {*task.graph, frame, *rows};
        write_text(path,
                   page ? report::page_html(subject, task_page_text(task)) : report::chart_svg(subject));
        return path;
      },
      [this](Outcome<std::string> outcome) {
        if (outcome.ok())
          notify(Severity::info, fmt::format("The chart is in {}", safe_display(outcome.value(), 120)));
        else
          fail("write the chart", outcome.error(), About::work);
      });
}

}  // namespace loadline::gui
