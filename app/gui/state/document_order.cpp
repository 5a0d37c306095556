// Custom load orders, arranged by hand or read from a file, and pictures of the comparison.
#include "app/gui/state/document.h"
#include "app/report/asked_for.h"
#include "app/report/page.h"
#include "app/report/verdict.h"
#include "app/report/write_file.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/request/order_file.h"

#include <utility>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

[[noreturn]] void refuse_suffix(const std::string& path, std::string_view suffix) {
  throw Error(ErrorCode::usage, "'{}' does not end in {}: other files are not written over",
              safe_display(path, 120), suffix);
}

// The lines of a page about the model and the request.
report::PageText page_text(const MetaGraph& graph, const BoundRequest& bound) {
  report::PageText page;
  page.version = LOADLINE_VERSION;
  page.lead = fmt::format("{}, W = {}", counted(graph.tensors.size(), "tensor"),
                          counted(storage_bytes(graph), "byte"));
  if (const std::string target = report::budget_text(bound); !target.empty()) page.lead += ". " + target;
  page.options = report::asked_for(bound.request(), bound.memory);
  page.options.emplace_back("Times", rates_line(bound.rates));
  return page;
}

// Writes the text that `text` makes to a file, and reports the path. Its job continues if the model is
// closed.
template <typename Text>
void save(Shared& shared, const std::string& path, std::string_view what, Text text) {
  shared.jobs.post(
      "Writing " + safe_display(path, 60), "",
      [text, path](Progress& progress) {
        report::write_file(path, text(progress));
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
  LoadQuestion wanted = timeline();
  // a custom order stays unfolded as it is, whatever else changes
  if (wanted.own_order) wanted.request = {};
  if (wanted == listed_) return;
  listed_ = std::move(wanted);
  order.ask(
      shared_.jobs, "Listing the order",
      [task = task(timeline())](Progress& progress) {
        return OrderList(*task.graph, first_order(task, progress));
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
  StorageOrder arranged = order.value()->order();
  const bool unfolded = custom_ && shown_order(asked_) == kOwnOrder && arranged == *custom_;
  if (!unfolded) custom_ = std::make_shared<const StorageOrder>(std::move(arranged));
  asked_.request.orders = {std::string(kOwnOrder)};
  listed_ = LoadQuestion{{}, custom_};
  refresh_load();
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
  save(shared_, path, "order", [task = task(timeline())](Progress& progress) {
    return order_text(*task.graph, first_order(task, progress));
  });
}

void Document::save_chart(const std::string& path) {
  if (!model || comparison.value()->answer.rows.empty() || comparison.busy())
    throw Error(ErrorCode::usage, "the methods are not compared yet");
  const bool page = path.ends_with(".html");
  if (!page && !path.ends_with(".svg")) refuse_suffix(path, ".svg or .html");
  save(shared_, path, "chart", [graph = model->graph, compared = comparison.value(), page](Progress&) {
    const report::ChartSubject subject = compared->subject(*graph);
    return page ? report::page_html(subject, page_text(*graph, subject.bound)) : report::chart_svg(subject);
  });
}

}  // namespace loadline::gui
