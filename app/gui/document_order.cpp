// The order of a load, arranged by hand or read from a file; and pictures of the comparison.
#include "app/gui/document.h"
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

// Writes what `text` makes, and says where it is. That is a job of its own: it goes on when the model goes.
template <typename Text>
void save(Shared& shared, const std::string& path, std::string_view what, Text text) {
  shared.jobs.post(
      "Writing " + safe_display(path, 60), "",
      [text, path](Progress& progress) {
        write_text(path, text(progress));
        return path;
      },
      [&shared, what](Outcome<std::string> outcome) {
        if (outcome.ok())
          shared.notices.add(Severity::info,
                             fmt::format("The {} is in {}", what, safe_display(outcome.value(), 120)));
        else
          shared.notices.fail(fmt::format("write the {}", what), outcome.error());
      });
}

}  // namespace

void Document::list_order() {
  if (!model) return;
  const bool own = choice_.order != kCustomOrder && find_order(choice_.order).make == nullptr;
  const std::string wanted = own ? choice_.order + " of " + choice_.method : choice_.order;
  if (wanted == listed_) return;
  listed_ = wanted;
  order.ask(
      shared_.jobs, "Listing the order",
      [task = plan_task(), with_pass = pass().has_value()](Progress& progress) {
        return OrderList(*task.graph, chosen_order(task, with_pass, progress));
      },
      [this] {
        if (order.error() == nullptr) return;
        shared_.notices.fail("list the order", *order.error(), id);
        order.set({});
      });
}

void Document::arrange_order(OrderList list) {
  if (!model) return;
  order.set(std::move(list));
  listed_ = kCustomOrder;
  StorageOrder arranged = order.value()->order();
  const bool same = custom_ && choice_.order == kCustomOrder && arranged == *custom_;
  choice_.order = kCustomOrder;
  if (same) return;  // folded or unfolded
  custom_ = std::make_shared<const StorageOrder>(std::move(arranged));
  plan();
  compare();
}

void Document::load_order(const std::string& path) {
  if (!model) throw Error(ErrorCode::usage, "no model is open");
  order.ask(
      shared_.jobs, "Reading " + safe_display(path, 60),
      [graph = model->graph, path](Progress&) { return OrderList(*graph, read_order(*graph, path)); },
      [this] {
        if (order.error() == nullptr)
          arrange_order(*order.value());
        else
          shared_.notices.fail("read the order", *order.error(), id);
      });
}

void Document::save_order(const std::string& path) {
  if (!model) throw Error(ErrorCode::usage, "no model is open");
  if (!path.ends_with(".txt")) refuse_suffix(path, ".txt");
  save(shared_, path, "order", [task = plan_task(), with_pass = pass().has_value()](Progress& progress) {
    return order_text(*task.graph, chosen_order(task, with_pass, progress));
  });
}

void Document::save_chart(const std::string& path) {
  if (!model || comparison.value()->rows.empty() || comparison.busy())
    throw Error(ErrorCode::usage, "the methods are not compared yet");
  const bool page = path.ends_with(".html");
  if (!page && !path.ends_with(".svg")) refuse_suffix(path, ".svg or .html");
  save(shared_, path, "chart", [task = plan_task(), compared = comparison.value(), page](Progress&) {
    const report::ChartSubject subject = {*task.graph, compared->frame, compared->rows};
    return page ? report::page_html(subject, task_page_text(task)) : report::chart_svg(subject);
  });
}

}  // namespace loadline::gui
