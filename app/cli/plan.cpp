// loadline plan: projected peaks, one row per method and order.
#include "app/cli/commands.h"
#include "app/cli/forward_options.h"
#include "app/cli/method_options.h"
#include "app/cli/order_gain.h"
#include "app/cli/table.h"
#include "core/base/error.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
#include "core/plan/compare.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct Options {
  std::string path;
  std::string memory = "discrete";
  std::vector<std::string> methods = {"all"};
  std::vector<std::string> orders = {"file"};
  MethodArguments method;
  ForwardArguments forward;
  std::string device_budget;
  std::string host_budget;
};

template <typename Row>
std::vector<std::string> all_or(const std::vector<std::string>& ids, std::span<const Row> table) {
  if (std::find(ids.begin(), ids.end(), "all") == ids.end()) return ids;
  std::vector<std::string> all;
  for (const Row& row : table) all.emplace_back(row.id);
  return all;
}

Budget budget_of(const Options& options) {
  Budget budget;
  if (!options.device_budget.empty()) budget.device = parse_size(options.device_budget, "--device-budget");
  if (!options.host_budget.empty()) budget.host = parse_size(options.host_budget, "--host-budget");
  return budget;
}

// The names that steps allocate, looked up once per graph.
class Labels {
 public:
  explicit Labels(const MetaGraph& graph) : graph_(graph), owners_(first_owner(graph)) {}
  std::string of(const Plan& plan, BlockId id) const { return block_label(plan.block(id), graph_, owners_); }
  std::string at_step(const Plan& plan, std::size_t step) const { return of(plan, plan.steps[step].block); }

 private:
  const MetaGraph& graph_;
  std::vector<std::optional<TensorId>> owners_;
};

Json row_json(const Projection& row, const Verdict& verdict, const Budget& budget, const Labels& labels) {
  const Timeline& timeline = row.timeline;
  Json json = {
      {"method", row.method->id},
      {"order", json_text(row.order)},
      {"peak", Json::object()},
      {"peak_at", Json::object()},
      {"final", Json::object()},
      {"reads", {{"bytes", row.reads.bytes}, {"jumps", row.reads.jumps}, {"distance", row.reads.distance}}},
      {"seconds", row.seconds}};
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    const std::string space(space_name(static_cast<Space>(i)));
    const Peak& peak = timeline.peaks[i];
    json["peak"][space] = peak.bytes;
    if (peak.bytes > 0)
      json["peak_at"][space] = {{"step", peak.step},
                                {"tensor", json_text(labels.at_step(row.plan, peak.step))}};
    json["final"][space] = timeline.final_bytes[i];
  }
  json["peak"]["unified"] = timeline.unified.bytes;
  if (timeline.unified.bytes > 0)
    json["peak_at"]["unified"] = {{"step", timeline.unified.step},
                                  {"tensor", json_text(labels.at_step(row.plan, timeline.unified.step))}};
  json["fits"] = {{"host", budget.host ? Json(verdict.host_fits) : Json()},
                  {"device", budget.device ? Json(verdict.device_fits) : Json()}};
  if (timeline.reserved_peak)
    for (std::size_t i = 0; i < kSpaceCount; ++i)
      json["reserved"][std::string(space_name(static_cast<Space>(i)))] = (*timeline.reserved_peak)[i];
  if (timeline.allocated_peak) json["allocated"] = {{"device", *timeline.allocated_peak}};
  if (verdict.step)
    json["first_over_budget"] = {{"step", *verdict.step},
                                 {"tensor", json_text(labels.of(row.plan, *verdict.block))}};
  return json;
}

constexpr std::ptrdiff_t kDeviceColumn = 2;

std::string peak_cell(std::uint64_t bytes) { return bytes == 0 ? "-" : format_bytes(bytes); }

std::string verdict_cell(const Projection& row, const Verdict& verdict, const Labels& labels) {
  if (verdict.fits()) return "fits";
  return fmt::format("{} over at {}",
                     verdict.device_fits ? "host"
                     : verdict.host_fits ? "device"
                                         : "device and host",
                     safe_display(labels.of(row.plan, *verdict.block), 48));
}

// What is kept of a projection: its plan and timeline can be large, one is alive at a time.
struct Row {
  Json json;
  std::vector<std::string> cells;
  const Method* method = nullptr;
  std::string order;
  std::uint64_t device_peak = 0;
  std::uint64_t unified_peak = 0;
  std::uint64_t jumps = 0;
  double seconds = 0;
  bool fits = true;
  std::optional<Error> refusal;  // why the load cannot be done at all: then there are no figures
};

// With several orders the columns are what orders change, with one the method's law.
Row make_row(const Projection& projection, const Budget& budget, const Labels& labels, bool several_orders) {
  const Verdict verdict = check_budget(projection, budget);
  const Timeline& timeline = projection.timeline;
  const auto at = [&](Space space) { return peak_cell(timeline.peaks[index(space)].bytes); };
  Row row;
  row.json = row_json(projection, verdict, budget, labels);
  row.cells = {std::string(projection.method->id),
               safe_display(projection.order, 40),
               at(Space::device),
               at(Space::host),
               at(Space::page_cache),
               at(Space::staging),
               peak_cell(timeline.unified.bytes)};
  if (several_orders)
    row.cells.insert(row.cells.end(),
                     {format_grouped(projection.reads.jumps), format_seconds(projection.seconds)});
  else
    row.cells.emplace_back(projection.method->peak_law);
  row.cells.push_back(budget.device || budget.host ? verdict_cell(projection, verdict, labels) : "");
  if (timeline.allocated_peak) {
    const auto behind_device = row.cells.begin() + kDeviceColumn + 1;
    row.cells.insert(behind_device, {peak_cell(*timeline.allocated_peak),
                                     peak_cell((*timeline.reserved_peak)[index(Space::device)])});
  }
  row.method = projection.method;
  row.order = projection.order;
  row.device_peak = timeline.peaks[index(Space::device)].bytes;
  row.unified_peak = timeline.unified.bytes;
  row.jumps = projection.reads.jumps;
  row.seconds = projection.seconds;
  row.fits = verdict.fits();
  return row;
}

Row refused_row(const Method& method, const std::string& order, const Error& refusal, bool books,
                bool several_orders) {
  Row row;
  row.json = {{"method", method.id}, {"order", json_text(order)}, {"refused", json_text(refusal.what())}};
  row.cells = {std::string(method.id), safe_display(order, 40), "-", "-", "-", "-", "-"};
  if (several_orders)
    row.cells.insert(row.cells.end(), {"-", "-"});
  else
    row.cells.emplace_back(method.peak_law);
  row.cells.emplace_back("cannot be done");
  if (books) row.cells.insert(row.cells.begin() + kDeviceColumn + 1, {"-", "-"});
  row.method = &method;
  row.order = order;
  row.fits = false;
  row.refusal = refusal;
  return row;
}

// In the order of `methods`, and of `orders` within each. What cannot be done is a row that says so; a wrong
// option stops the command.
std::vector<Row> make_rows(const Context& context, const MetaGraph& graph,
                           const std::vector<const Method*>& methods, const std::vector<OrderChoice>& orders,
                           const MethodOptions& options, const ForwardPass* pass, const Budget& budget) {
  const Labels labels(graph);
  const std::string unmapped = mapping_refusal(graph);
  const bool several = orders.size() > 1;
  std::vector<Row> rows(methods.size() * orders.size());
  const auto refuse = [&](std::size_t at, const Error& error) {
    rows[at] = refused_row(*methods[at / orders.size()], orders[at % orders.size()].name, error,
                           options.allocator != AllocatorModel::exact, several);
  };
  const auto take = [&](std::size_t at, const Projection& projection) {
    if (!unmapped.empty() && projection.timeline.peaks[index(Space::page_cache)].bytes > 0)
      return refuse(at, Error(ErrorCode::unsupported, unmapped));
    rows[at] = make_row(projection, budget, labels, several);
  };
  Progress progress(context.stop);
  compare(graph, methods, orders, options, pass, {take, refuse}, progress);
  return rows;
}

// What the best order gains, where there are several.
std::string gain_text(const std::vector<Row>& rows, const MethodOptions& options) {
  const bool unified = options.spaces == kAllSpaces;
  std::vector<OrderFigures> figures;
  for (const Row& row : rows)
    if (!row.refusal)
      figures.push_back({row.method->id, row.order, row.order == "file" || row.order == "offset",
                         unified ? row.unified_peak : row.device_peak, row.jumps, row.seconds});
  return order_gain_text(figures, unified ? "over all spaces" : "on the device");
}

// The least device peak, whose it is, and how it stands to what stays there.
std::string least_text(const MetaGraph& graph, const std::vector<Row>& rows, const MethodOptions& method,
                       const ForwardAnswer& forward) {
  std::uint64_t least = UINT64_MAX;
  for (const Row& row : rows)
    if (!row.refusal) least = std::min(least, row.device_peak);
  std::vector<std::string_view> ids;
  for (const Row& row : rows)
    if (!row.refusal && row.device_peak == least &&
        std::find(ids.begin(), ids.end(), row.method->id) == ids.end())
      ids.push_back(row.method->id);
  constexpr std::size_t kMostNamed = 4;
  const std::size_t named = std::min(ids.size(), kMostNamed);
  std::string by =
      fmt::format("{}", fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  if (ids.size() > named) by += fmt::format(" and {} more", ids.size() - named);
  const std::uint64_t bound = device_lower_bound(graph, method, forward.pass());
  const std::string_view held = forward.pass() != nullptr     ? "W and the forward pass"
                                : method.activation_bytes > 0 ? "W + Q"
                                                              : "W";
  if (least == bound)
    return fmt::format("Least on the device: {}, which is {}, by {}.", format_bytes(least), held, by);
  return fmt::format("Least on the device: {}, by {}; what stays there is {} = {}.", format_bytes(least), by,
                     held, format_bytes(bound));
}

void print_table(const Context& context, const MetaGraph& graph, const std::vector<Row>& rows,
                 const Budget& budget, const MethodOptions& method, const ForwardAnswer& forward,
                 bool several_orders) {
  const std::uint64_t weights = storage_bytes(graph);
  fmt::print("{}: {}, W = {} ({} bytes)", safe_display(model_name(graph), 80),
             counted(graph.tensors.size(), "tensor"), format_bytes(weights), format_grouped(weights));
  if (method.activation_bytes > 0) fmt::print(", Q = {}", format_bytes(method.activation_bytes));
  fmt::print("\n\n");

  const bool refusals =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.refusal.has_value(); });
  std::vector<std::string> header = {"method", "order", "device", "host", "page cache", "staging", "unified"};
  std::vector<Align> alignment(header.size(), Align::right);
  alignment[0] = alignment[1] = Align::left;
  if (several_orders) {
    header.insert(header.end(), {"jumps", "time"});
    alignment.insert(alignment.end(), 2, Align::right);
  } else {
    header.emplace_back("law");
    alignment.push_back(Align::left);
  }
  alignment.push_back(Align::left);
  header.emplace_back(budget.device || budget.host || refusals ? "verdict" : "");
  if (method.allocator != AllocatorModel::exact) {
    header.insert(header.begin() + kDeviceColumn + 1, {"allocated", "reserved"});
    alignment.insert(alignment.begin() + kDeviceColumn + 1, 2, Align::right);
  }
  Table table(header, alignment);
  for (const Row& row : rows) table.row(row.cells);
  fmt::print("{}\n", table.text(context.colour));
  const Method* told = nullptr;
  for (const Row& row : rows)
    if (row.refusal && std::exchange(told, row.method) != row.method)
      fmt::print("{} cannot be done: {}.\n", row.method->id, row.refusal->what());
  fmt::print(
      "{} Unified counts all four spaces as one memory; the page cache in it can be dropped by the system.\n",
      least_text(graph, rows, method, forward));
  if (several_orders)
    if (const std::string text = gain_text(rows, method); !text.empty()) fmt::print("{}\n", text);
  if (const std::string text = forward.text(); !text.empty()) fmt::print("\n{}", text);
  if (std::none_of(rows.begin(), rows.end(), [](const Row& row) { return row.fits; }))
    fmt::print("Nothing here fits the budget.\n");
}

Json summary_json(const MetaGraph& graph, const Budget& budget, const MethodOptions& method,
                  const ForwardAnswer& forward) {
  const std::uint64_t least = device_lower_bound(graph, method, forward.pass());
  Json json = {{"model", json_text(model_name(graph))},
               {"bytes", storage_bytes(graph)},
               {"options",
                {{"memory", method.spaces == kAllSpaces ? "unified" : "discrete"},
                 {"staging_bytes", method.staging_bytes},
                 {"slots", method.slots},
                 {"memory_limit", method.memory_limit},
                 {"activation_bytes", method.activation_bytes},
                 {"device_budget", budget.device ? Json(*budget.device) : Json()},
                 {"host_budget", budget.host ? Json(*budget.host) : Json()}}},
               {"rows", Json::array()},
               {"lower_bound",
                {{"host", 0}, {"page_cache", 0}, {"staging", 0}, {"device", least}, {"unified", least}}}};
  if (Json pass = forward.json(); !pass.is_null()) json["forward"] = std::move(pass);
  return json;
}

int plan(const Context& context, const Options& options) {
  std::vector<const Method*> methods_asked;
  for (const std::string& id : all_or(options.methods, methods())) methods_asked.push_back(&find_method(id));
  const std::vector<std::string> order_names = all_or(options.orders, orders());
  for (const std::string& name : order_names) check_order_choice(name);
  MethodOptions method = parse_method_arguments(options.method);
  if (options.memory == "unified") method.spaces = kAllSpaces;
  const Budget budget = budget_of(options);
  const MetaGraphPtr graph = open_for(context, options.path);
  const ForwardAnswer forward(context, *graph, options.forward);
  if (forward.pass() != nullptr && method.activation_bytes > 0)
    throw Error(ErrorCode::usage, "--activations and --seq exclude each other: a forward pass has its own");

  std::vector<OrderChoice> orders_asked;
  for (const std::string& name : order_names) orders_asked.push_back(choose_order(*graph, name));

  std::vector<Row> rows =
      make_rows(context, *graph, methods_asked, orders_asked, method, forward.pass(), budget);
  if (std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.refusal.has_value(); }))
    throw *rows.front().refusal;

  if (context.json) {
    Json json = summary_json(*graph, budget, method, forward);
    for (Row& row : rows) json["rows"].push_back(std::move(row.json));
    print_json(json);
  } else {
    print_table(context, *graph, rows, budget, method, forward, orders_asked.size() > 1);
  }
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.fits; }) ? kDone : kNoFit;
}

std::string explanations() {
  std::string text =
      "Methods (w: a tensor, W: all of them, w*: the largest, S*: the largest file, Q: activations, r*c: the "
      "ring):\n";
  for (const Method& method : methods())
    text += fmt::format("  {:<20} {}: {}\n", method.id, method.peak_law, method.summary);
  text += "Orders:\n";
  for (const Order& order : orders()) text += fmt::format("  {:<20} {}\n", order.id, order.summary);
  return text;
}

}  // namespace

Action setup_plan(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_path_option(app, options->path);
  app.add_option("--method", options->methods, "Methods, separated by commas, or all: " + id_list(methods()))
      ->delimiter(',')
      ->default_str("all");
  app.add_option("--order", options->orders,
                 "Orders, separated by commas, or all: " + id_list(orders()) +
                     "; or a file that lists tensors, one a line")
      ->delimiter(',')
      ->default_str("file");
  app.add_option("--memory", options->memory,
                 "discrete: the order optimal, the least and the verdicts are about the device's memory; "
                 "unified: about the sum of all spaces")
      ->check(CLI::IsMember({"discrete", "unified"}))
      ->capture_default_str();
  add_method_options(app, options->method);
  add_forward_options(app, options->forward);
  app.add_option("--device-budget", options->device_budget, "What the device may hold, such as 8GiB");
  app.add_option("--host-budget", options->host_budget, "What host and staging memory may hold together");
  app.footer(fmt::format("{}\n{}", explanations(), app.get_footer()));
  return [options](Context& context) { return plan(context, *options); };
}

}  // namespace loadline::cli
