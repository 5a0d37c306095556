// Choices become options, orders and frames; rows become sorted.
#include "app/gui/plan_choice.h"

#include "core/base/text.h"
#include "core/load/optimal_order.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

auto option_values(const MethodOptions& o) {
  return std::tie(o.staging_bytes, o.slots, o.activation_bytes, o.allocator, o.memory_limit, o.cast,
                  o.shard_bytes, o.flush_bytes, o.doubled_ties);
}

std::uint64_t bytes_of(const report::PlanRow& row, CompareColumn column) {
  switch (column) {
    case CompareColumn::held:
      return row.leading.bytes;
    case CompareColumn::device:
      return row.peaks[index(Space::device)].bytes;
    case CompareColumn::host:
      return row.peaks[index(Space::host)].bytes;
    case CompareColumn::page_cache:
      return row.peaks[index(Space::page_cache)].bytes;
    case CompareColumn::staging:
      return row.peaks[index(Space::staging)].bytes;
    case CompareColumn::unified:
      return row.unified.bytes;
    case CompareColumn::jumps:
      return row.reads.jumps;
    case CompareColumn::verdict:
      return row.fits()
                 ? 0
                 : std::max({row.verdict.device_over, row.verdict.host_over, row.verdict.unified_over});
    default:
      return 0;
  }
}

bool comes_before(const report::PlanRow& a, const report::PlanRow& b, CompareColumn column) {
  switch (column) {
    case CompareColumn::table:
      return false;
    case CompareColumn::method:
      return a.method->id < b.method->id;
    case CompareColumn::order:
      return a.order < b.order;
    case CompareColumn::time:
      return a.seconds < b.seconds;
    default:
      return bytes_of(a, column) < bytes_of(b, column);
  }
}

}  // namespace

bool same_placement(const PlanChoice& a, const PlanChoice& b) {
  return a.gpu_layers == b.gpu_layers && a.memory_map == b.memory_map && a.place == b.place &&
         (!a.memory_map || a.options.cast == b.options.cast);
}

bool same_load(const PlanChoice& a, const PlanChoice& b) {
  return a.method == b.method && a.order == b.order && option_values(a.options) == option_values(b.options) &&
         same_placement(a, b) && a.preset == b.preset && a.memory == b.memory &&
         a.first_token == b.first_token;
}

bool same_comparison(const PlanChoice& a, const PlanChoice& b) {
  PlanChoice other = b;
  other.method = a.method;
  return same_load(a, other) && a.every_order == b.every_order && a.budget.device == b.budget.device &&
         a.budget.host == b.budget.host && a.budget.unified == b.budget.unified;
}

PlanChoice on_device(PlanChoice choice, const DevicePreset& preset) {
  choice.preset = preset.id;
  choice.memory = preset.memory;
  choice.budget = device_budget(preset, preset.memory);
  return choice;
}

PlanChoice with_memory(PlanChoice choice, MemoryKind memory) {
  if (memory == choice.memory) return choice;
  const Budget& old = choice.budget;
  if (memory == MemoryKind::unified)
    choice.budget = {.unified = old.device};
  else
    choice.budget = {.device = old.unified};
  choice.memory = memory;
  return choice;
}

bool has_placement(const PlanChoice& choice) {
  return choice.gpu_layers || choice.memory_map || !choice.place.empty();
}

PlanChoice without_placement(PlanChoice choice) {
  choice.gpu_layers.reset();
  choice.memory_map.reset();
  choice.place.clear();
  return choice;
}

Placement choice_placement(const MetaGraph& graph, const PlanChoice& choice) {
  if (choice.gpu_layers) return place_gpu_layers(graph, *choice.gpu_layers);
  if (choice.memory_map)
    return place_automatically(graph, choice.memory_map->device, choice.memory_map->host,
                               choice.options.cast);
  return choice.place.empty() ? Placement() : place_by_rules(graph, choice.place);
}

std::string place_text(std::span<const PlaceRule> rules) {
  std::string text;
  for (const PlaceRule& rule : rules)
    text += fmt::format("{}{}={}", text.empty() ? "" : "; ", rule.filter, home_id(rule.place));
  return text;
}

std::vector<PlaceRule> parse_place_text(std::string_view text) {
  std::vector<PlaceRule> rules;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    std::string_view rule = text.substr(at, end - at);
    while (rule.starts_with(' ')) rule.remove_prefix(1);
    while (rule.ends_with(' ')) rule.remove_suffix(1);
    if (!rule.empty()) rules.push_back(parse_place_rule(rule));
    at = end + 1;
  }
  return rules;
}

MethodOptions task_options(const PlanTask& task, bool with_pass) {
  MethodOptions options = task.choice.options;
  if (with_pass) options.activation_bytes = 0;
  options.placement = choice_placement(*task.graph, task.choice);
  options.spaces = deciding_spaces(task.choice.memory);
  if (task.rates) options.costs = task.rates->costs(options.costs);
  if (task.preset) options.costs = device_costs(*task.preset, options.costs);
  return options;
}

OrderChoice task_order(const PlanTask& task) {
  OrderChoice order;
  order.name = task.choice.order;
  if (task.choice.order == kCustomOrder)
    order.listed = *task.custom;
  else
    order.row = &find_order(task.choice.order);
  return order;
}

report::RowFrame task_frame(const PlanChoice& choice, bool with_pass) {
  constexpr std::size_t kSlices = 48;
  report::RowFrame frame;
  frame.memory = choice.memory;
  frame.budget = choice.budget;
  frame.curve = report::CurveOptions{.axis = with_pass ? view::CurveAxis::steps : view::CurveAxis::seconds,
                                     .slices = kSlices};
  return frame;
}

std::vector<report::PlanRow> compare_methods(const PlanTask& task, const ForwardPass* pass,
                                             Progress& progress) {
  std::vector<OrderChoice> asked;
  if (task.choice.every_order) {
    for (const Order& order : orders()) asked.push_back({std::string(order.id), &order, {}});
    if (task.custom) asked.push_back({std::string(kCustomOrder), nullptr, *task.custom});
  } else {
    asked.push_back(task_order(task));
  }
  std::vector<const Method*> all;
  for (const Method& method : methods()) all.push_back(&method);
  return report::compare_rows(*task.graph, all, asked, task_options(task, pass != nullptr), pass,
                              task_frame(task.choice, pass != nullptr), progress);
}

report::PageText task_page_text(const PlanTask& task) {
  const PlanChoice& choice = task.choice;
  const MethodOptions& options = choice.options;
  report::PageText page;
  page.version = LOADLINE_VERSION;
  page.lead = fmt::format("{}, W = {}", counted(task.graph->tensors.size(), "tensor"),
                          counted(storage_bytes(*task.graph), "byte"));
  const auto add = [&](const char* name, std::string value) {
    page.options.emplace_back(name, std::move(value));
  };
  const auto budget = [&](const char* name, const std::optional<std::uint64_t>& bytes) {
    if (bytes) add(name, format_bytes(*bytes));
  };
  add("order", choice.every_order ? "every one" : choice.order);
  add("memory", std::string(memory_kind_name(choice.memory)));
  if (task.preset) add("device", task.preset->name);
  budget("device budget", choice.budget.device);
  budget("host budget", choice.budget.host);
  budget("budget", choice.budget.unified);
  add("staging ring",
      fmt::format("{} in {}", format_bytes(options.staging_bytes), counted(options.slots, "slot")));
  if (options.cast) add("cast", std::string(dtype_info(*options.cast).name));
  if (options.shard_bytes > 0) add("shards", format_bytes(options.shard_bytes));
  if (options.allocator != AllocatorModel::exact)
    add("allocator", std::string(allocator_id(options.allocator)));
  if (options.memory_limit != MethodOptions{}.memory_limit)
    add("runai's buffer", format_bytes(options.memory_limit));
  if (options.flush_bytes > 0) add("staging is sent from", format_bytes(options.flush_bytes));
  if (options.doubled_ties) add("ties prepacked twice", "yes");
  if (choice.gpu_layers) add("layers on the device", std::to_string(*choice.gpu_layers));
  if (choice.memory_map)
    add("filled up to", format_bytes(choice.memory_map->device) +
                            (choice.memory_map->host ? ", " + format_bytes(*choice.memory_map->host) : ""));
  if (!choice.place.empty()) add("placed", place_text(choice.place));
  if (choice.first_token)
    add("forward pass", "follows the load");
  else if (options.activation_bytes > 0)
    add("activations", format_bytes(options.activation_bytes));
  add("times", rates_line(task.rates));
  return page;
}

std::string_view compare_column_name(CompareColumn column) {
  constexpr std::array<std::string_view, kCompareColumns> kNames = {
      "table",      "method",  "order",   "must-hold", "device", "host",
      "page-cache", "staging", "unified", "jumps",     "time",   "verdict"};
  return kNames[static_cast<std::size_t>(column)];
}

std::vector<std::size_t> sorted_rows(std::span<const report::PlanRow> rows, const CompareSort& sort) {
  std::vector<std::size_t> at(rows.size());
  std::iota(at.begin(), at.end(), std::size_t{0});
  const bool words = sort.column == CompareColumn::method || sort.column == CompareColumn::order;
  std::stable_sort(at.begin(), at.end(), [&](std::size_t a, std::size_t b) {
    if (!words && rows[a].refusal.has_value() != rows[b].refusal.has_value())
      return rows[b].refusal.has_value();
    return sort.ascending ? comes_before(rows[a], rows[b], sort.column)
                          : comes_before(rows[b], rows[a], sort.column);
  });
  return at;
}

std::string_view compare_view_name(CompareView view) {
  constexpr std::array<std::string_view, kCompareViews> kNames = {"table", "curves", "overlay", "order"};
  return kNames[static_cast<std::size_t>(view)];
}

}  // namespace loadline::gui
