// Columns and sentences of plan's answer.
#include "app/cli/plan_table.h"

#include "app/cli/order_gain.h"
#include "app/cli/rates.h"
#include "app/cli/refusals.h"
#include "app/cli/table.h"
#include "app/cli/wrap.h"
#include "core/base/text.h"
#include "core/load/cast_summary.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace loadline::cli {
namespace {

std::string peak_cell(std::uint64_t bytes) { return bytes == 0 ? "-" : format_bytes(bytes); }

// A column of figures: what it is called and what stands in it.
struct Column {
  std::string title;
  std::uint64_t (*bytes)(const Row& row);
};

template <Space space>
std::uint64_t peak_in(const Row& row) {
  return row.peaks[index(space)].bytes;
}

template <Space space>
std::uint64_t reserved_in(const Row& row) {
  return row.reserved ? (*row.reserved)[index(space)] : 0;
}

std::uint64_t kept_on_host(const Row& row) {
  return row.reserved_final ? (*row.reserved_final)[index(Space::host)] : 0;
}

// The figure that decides comes first.
std::vector<Column> columns_of(const PlanAnswer& answer) {
  const bool unified = answer.frame.memory == MemoryKind::unified;
  std::vector<Column> columns;
  if (unified) columns.push_back({"must hold", [](const Row& row) { return row.leading.bytes; }});
  // what an allocator takes stands beside what is asked of it
  const AllocatorModel allocator = answer.options.allocator;
  const bool arena = allocator == AllocatorModel::arena;
  const bool blocks = allocator == AllocatorModel::vulkan || arena;
  columns.push_back({"device", peak_in<Space::device>});
  if (allocator == AllocatorModel::torch)
    columns.push_back({"allocated", [](const Row& row) { return row.allocated.value_or(0); }});
  if (blocks || allocator == AllocatorModel::torch)
    columns.push_back({"device reserved", reserved_in<Space::device>});
  columns.push_back({"host", peak_in<Space::host>});
  if (arena || allocator == AllocatorModel::malloc)
    columns.push_back({"host reserved", reserved_in<Space::host>});
  if (allocator == AllocatorModel::malloc) columns.push_back({"kept at end", kept_on_host});
  if (answer.frame.cache_limit) {
    columns.push_back({"page cache", [](const Row& row) { return row.cache ? row.cache->peak : 0; }});
    columns.push_back({"read again", [](const Row& row) { return row.cache ? row.cache->reread_bytes : 0; }});
  } else {
    columns.push_back({"page cache", peak_in<Space::page_cache>});
  }
  columns.push_back({"staging", peak_in<Space::staging>});
  if (blocks) columns.push_back({"staging reserved", reserved_in<Space::staging>});
  columns.push_back({"unified", [](const Row& row) { return row.unified.bytes; }});
  return columns;
}

std::string rows_text(const PlanAnswer& answer, bool colour) {
  const std::vector<Column> columns = columns_of(answer);
  const bool verdicts =
      answer.frame.judged() || std::any_of(answer.rows.begin(), answer.rows.end(),
                                           [](const Row& row) { return row.refusal.has_value(); });
  std::vector<std::string> header = {"method", "order"};
  std::vector<Align> alignment = {Align::left, Align::left};
  for (const Column& column : columns) {
    header.push_back(column.title);
    alignment.push_back(Align::right);
  }
  // what orders change, or a verdict, needs the room: --explain has the law
  const bool laws = !answer.frame.judged() && !answer.several_orders;
  const bool times = answer.several_orders || answer.rates_asked;
  if (answer.several_orders) header.emplace_back("jumps");
  if (times) header.emplace_back("time");
  alignment.resize(header.size(), Align::right);
  if (laws) header.emplace_back("law");
  header.emplace_back(verdicts ? "verdict" : "");
  alignment.insert(alignment.end(), 2, Align::left);
  Table table(header, alignment);
  for (const Row& row : answer.rows) {
    std::vector<std::string> cells = {std::string(row.method->id), safe_display(row.order, 40)};
    for (const Column& column : columns) cells.push_back(row.refusal ? "-" : peak_cell(column.bytes(row)));
    if (answer.several_orders) cells.push_back(row.refusal ? "-" : format_grouped(row.reads.jumps));
    if (times) cells.push_back(row.refusal ? "-" : format_seconds(row.seconds));
    if (laws) cells.emplace_back(row.method->peak_law);
    cells.push_back(verdicts ? verdict_text(row, answer.frame) : "");
    table.row(std::move(cells));
  }
  return table.text(colour);
}

// What the best order gains, where there are several.
std::string gain_text(const PlanAnswer& answer) {
  const bool unified = answer.frame.memory == MemoryKind::unified;
  std::vector<OrderFigures> figures;
  for (const Row& row : answer.rows)
    if (!row.refusal)
      figures.push_back({row.method->id, row.order, row.order == "file" || row.order == "offset",
                         row.leading.bytes, row.reads.jumps, row.seconds});
  return order_gain_text(figures, unified ? "in one memory" : "on the device");
}

constexpr std::size_t kColumns = 100;

std::string refused_text(const PlanAnswer& answer) {
  std::vector<Refusal> refusals;
  for (const Row& row : answer.rows)
    if (row.refusal) refusals.push_back({row.method->id, row.refusal->what()});
  return refusals_text(refusals, "cannot be done");
}

// What is missed: a budget, --max-peak, or both.
std::string no_fit_text(const RowFrame& frame) {
  const bool budget = frame.budget.device || frame.budget.host || frame.budget.unified;
  if (!frame.max_peak) return "Nothing here fits the budget.\n";
  const std::string peak = fmt::format("--max-peak, {}", format_bytes(*frame.max_peak));
  return budget ? fmt::format("Nothing here fits the budget and stays within {}.\n", peak)
                : fmt::format("Nothing here stays within {}.\n", peak);
}

// Whether some row is in an order that was made for its method.
bool has_own_order(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.order_proven.has_value(); });
}

// Whose optimal order may not be the best.
std::string unproven_text(const std::vector<Row>& rows) {
  std::vector<std::string_view> ids;
  for (const Row& row : rows)
    if (row.order_proven == false) ids.push_back(row.method->id);
  if (ids.empty()) return "";
  return fmt::format("The order optimal is the best of those tried, not proven, for {}.\n",
                     fmt::join(ids, ", "));
}

constexpr std::size_t kTitle = 22;
constexpr std::size_t kBytes = 11;

// `title`, and `text` beside it.
std::string beside(std::string_view title, std::string_view text) {
  const std::string head = fmt::format("  {:<{}}", title, kTitle);
  const std::string indent(head.size(), ' ');
  return head + wrapped(text, indent, kColumns).substr(indent.size());
}

std::string view_lines(const PlanAnswer& answer, const Row& row) {
  std::string text;
  for (std::size_t i = 0; i < row.views.size(); ++i)
    text += fmt::format("  {:<{}}{:>{}}{}\n", memory_views()[i].title, kTitle, peak_cell(row.views[i]),
                        kBytes, i == leading_view(answer.frame.memory) ? "  decides" : "");
  return text;
}

}  // namespace

std::string device_text(const DevicePreset& device, const RowFrame& frame) {
  const Budget& budget = frame.budget;
  const Budget own = device_budget(device, frame.memory);
  std::string text = fmt::format("On {}:", safe_display(device.name, 80));
  if (own.unified) text += fmt::format(" {} for everything", format_bytes(*own.unified));
  if (own.unified && own.device) text += ", of which";
  if (own.device)
    text += fmt::format(" {} {}", format_bytes(*own.device),
                        own.unified ? "may be the device's" : "of the device's own");
  if (own.host) text += fmt::format(", {} for the host", format_bytes(*own.host));
  const auto& asked = budget.unified ? budget.unified : budget.device;
  if (asked != (own.unified ? own.unified : own.device) && asked)
    text += fmt::format("; --device-budget counts instead: {}", format_bytes(*asked));
  if (own.host && budget.host && budget.host != own.host)
    text += fmt::format("; --host-budget counts instead: {}", format_bytes(*budget.host));
  return text;
}

std::string least_text(const PlanAnswer& answer) {
  const bool unified = answer.frame.memory == MemoryKind::unified;
  // what streams its weights is compared with others only where nothing else is
  const bool only_streams = std::all_of(answer.rows.begin(), answer.rows.end(), [](const Row& row) {
    return row.refusal || row.method->traits.streams;
  });
  const auto counts = [&](const Row& row) {
    return !row.refusal && (only_streams || !row.method->traits.streams);
  };
  std::uint64_t least = UINT64_MAX;
  for (const Row& row : answer.rows)
    if (counts(row)) least = std::min(least, row.leading.bytes);
  std::vector<std::string_view> ids;
  for (const Row& row : answer.rows)
    if (counts(row) && row.leading.bytes == least &&
        std::find(ids.begin(), ids.end(), row.method->id) == ids.end())
      ids.push_back(row.method->id);
  constexpr std::size_t kMostNamed = 4;
  const std::size_t named = std::min(ids.size(), kMostNamed);
  std::string by =
      fmt::format("{}", fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  if (ids.size() > named) by += fmt::format(" and {} more", ids.size() - named);
  const std::uint64_t bound = device_lower_bound(answer.graph, answer.options, answer.forward.pass());
  const std::string_view where = unified ? "in one memory" : "on the device";
  if (least == 0) return fmt::format("Least {}: nothing, by {}.", where, by);
  if (only_streams)
    return fmt::format("Least {}: {}, by {}; no weights stay there.", where, format_bytes(least), by);
  if (least == bound)
    return fmt::format("Least {}: {}, which is {}, by {}.", where, format_bytes(least), answer.held_name(),
                       by);
  return fmt::format("Least {}: {}, by {}; what stays there is {} = {}.", where, format_bytes(least), by,
                     answer.held_name(), format_bytes(bound));
}

std::string plan_table(const PlanAnswer& answer, bool colour) {
  const std::uint64_t weights = storage_bytes(answer.graph);
  std::string text = fmt::format("{}: {}, W = {} ({})", safe_display(model_name(answer.graph), 80),
                                 counted(answer.graph.tensors.size(), "tensor"), format_bytes(weights),
                                 counted(weights, "byte"));
  if (answer.options.cast || !answer.options.placement.all_on_device()) {
    MethodOptions weights_alone = answer.options;
    weights_alone.activation_bytes = 0;
    text += fmt::format(", V = {}", format_bytes(device_lower_bound(answer.graph, weights_alone)));
  }
  if (answer.options.activation_bytes > 0)
    text += fmt::format(", Q = {}", format_bytes(answer.options.activation_bytes));
  if (answer.device) text += "\n" + device_text(*answer.device, answer.frame);
  text += fmt::format("\n\n{}\n", rows_text(answer, colour));
  text += refused_text(answer) + least_text(answer);
  if (answer.frame.memory == MemoryKind::unified)
    text +=
        " What it must hold is device, host and staging together; unified also counts file pages, which "
        "the system can drop.\n";
  else
    text +=
        " Unified counts all four spaces as one memory; the page cache in it can be dropped by the "
        "system.\n";
  if (answer.several_orders)
    if (const std::string gain = gain_text(answer); !gain.empty()) text += gain + "\n";
  if (answer.options.cast)
    text += cast_text(cast_summary(answer.graph, *answer.options.cast), *answer.options.cast) + "\n";
  if (answer.frame.judged() && answer.options.allocator != AllocatorModel::exact)
    text += fmt::format("Verdicts are by what the allocator '{}' reserves{}.\n",
                        allocator_id(answer.options.allocator),
                        has_own_order(answer.rows) ? "; the order optimal is by the bytes asked for" : "");
  text += unproven_text(answer.rows);
  const bool mapped = std::any_of(answer.rows.begin(), answer.rows.end(),
                                  [](const Row& row) { return row.cache && row.cache->mapped > 0; });
  const bool again = std::any_of(answer.rows.begin(), answer.rows.end(),
                                 [](const Row& row) { return row.cache && row.cache->reread_bytes > 0; });
  if (answer.frame.cache_limit && mapped)
    text += fmt::format("The page cache holds at most {}: {}.\n", format_bytes(*answer.frame.cache_limit),
                        again ? "what was dropped is read again" : "what it drops is not needed again");
  if (const std::string pass = answer.forward.text(); !pass.empty()) text += "\n" + pass;
  if (answer.several_orders || answer.rates_asked || answer.advice || answer.frame.curve)
    text += rates_line(answer.rates) + "\n";
  if (!answer.any_fits()) text += no_fit_text(answer.frame);
  if (answer.advice) text += advice_text(*answer.advice);
  return text;
}

std::string plan_explanation(const PlanAnswer& answer, bool colour) {
  std::string text;
  std::vector<const Method*> told;
  for (const Row& row : answer.rows) {
    if (row.refusal || std::find(told.begin(), told.end(), row.method) != told.end()) continue;
    told.push_back(row.method);
    text += fmt::format("\n{}{}{} ({}): {}\n", colour ? "\033[1m" : "", row.method->id,
                        colour ? "\033[0m" : "", safe_display(row.order, 40), row.method->peak_law);
    text += wrapped(row.method->explanation, "  ", kColumns) + view_lines(answer, row);
  }
  text += fmt::format("\nWhat counts so, with {} memory:\n", memory_kind_name(answer.frame.memory));
  for (const MemoryView& view : memory_views()) text += beside(view.title, view.counted_by);
  return text;
}

}  // namespace loadline::cli
