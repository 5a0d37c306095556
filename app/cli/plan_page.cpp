// The page of an answer: what it says of the model comes from here.
#include "app/cli/plan_page.h"

#include "app/cli/plan_table.h"
#include "core/base/text.h"

#include <fmt/format.h>

namespace loadline::cli {
namespace {

std::string lead(const PlanAnswer& answer) {
  std::string text = fmt::format("{}, W = {}", counted(answer.graph.tensors.size(), "tensor"),
                                 counted(storage_bytes(answer.graph), "byte"));
  if (answer.options.activation_bytes > 0)
    text += fmt::format(", Q = {}", format_bytes(answer.options.activation_bytes));
  if (answer.device) text += ". " + device_text(*answer.device, answer.frame);
  return fmt::format("{}. {}", text, least_text(answer));
}

}  // namespace

std::string plan_page(const PlanAnswer& answer, const OptionList& options) {
  return report::page_html(answer, {lead(answer), options, LOADLINE_VERSION});
}

}  // namespace loadline::cli
