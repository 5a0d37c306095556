// loadline plan: projected peaks, one row per method and order.
#include "app/cli/commands.h"
#include "app/cli/forward_options.h"
#include "app/cli/method_options.h"
#include "app/cli/table.h"
#include "core/base/error.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
#include "core/plan/order_file.h"
#include "core/plan/projection.h"

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
  Json json = {{"method", row.method->id},
               {"order", json_text(row.order)},
               {"peak", Json::object()},
               {"peak_at", Json::object()},
               {"final", Json::object()}};
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
  std::uint64_t device_peak = 0;
  bool fits = true;
  std::optional<Error> refusal;  // why the load cannot be done at all: then there are no figures
};

Row make_row(const Projection& projection, const Budget& budget, const Labels& labels) {
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
               peak_cell(timeline.unified.bytes),
               std::string(projection.method->peak_law)};
  row.cells.push_back(budget.device || budget.host ? verdict_cell(projection, verdict, labels) : "");
  if (timeline.allocated_peak) {
    const auto behind_device = row.cells.begin() + kDeviceColumn + 1;
    row.cells.insert(behind_device, {peak_cell(*timeline.allocated_peak),
                                     peak_cell((*timeline.reserved_peak)[index(Space::device)])});
  }
  row.method = projection.method;
  row.device_peak = timeline.peaks[index(Space::device)].bytes;
  row.fits = verdict.fits();
  return row;
}

Row refused_row(const Method& method, const OrderChoice& order, const Error& refusal, bool books) {
  Row row;
  row.json = {
      {"method", method.id}, {"order", json_text(order.name)}, {"refused", json_text(refusal.what())}};
  row.cells = {std::string(method.id),
               safe_display(order.name, 40),
               "-",
               "-",
               "-",
               "-",
               "-",
               std::string(method.peak_law),
               "cannot be done"};
  if (books) row.cells.insert(row.cells.begin() + kDeviceColumn + 1, {"-", "-"});
  row.method = &method;
  row.fits = false;
  row.refusal = refusal;
  return row;
}

// What cannot be done is a row that says so; a wrong option stops the command.
Row plan_row(const Context& context, const MetaGraph& graph, const Method& method, const OrderChoice& order,
             const MethodOptions& options, const ForwardPass* pass, const Budget& budget,
             const Labels& labels) {
  const bool books = options.allocator != AllocatorModel::exact;
  try {
    Progress progress(context.stop);
    const Projection projection =
        project(graph, method, order.name, make_order(graph, order, method, options, progress), options,
                progress, pass);
    if (projection.timeline.peaks[index(Space::page_cache)].bytes > 0)
      if (const std::string refusal = mapping_refusal(graph); !refusal.empty())
        return refused_row(method, order, Error(ErrorCode::unsupported, refusal), books);
    return make_row(projection, budget, labels);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::limit && error.code() != ErrorCode::unsupported) throw;
    return refused_row(method, order, error, books);
  }
}

// The least device peak, whose it is, and how it stands to what stays there.
std::string least_text(const MetaGraph& graph, const std::vector<Row>& rows, const MethodOptions& method,
                       const ForwardAnswer& forward) {
  // what streams its weights is compared with others only where nothing else is
  const bool only_streams = std::all_of(
      rows.begin(), rows.end(), [](const Row& row) { return row.refusal || row.method->traits.streams; });
  const auto counts = [&](const Row& row) {
    return !row.refusal && (only_streams || !row.method->traits.streams);
  };
  std::uint64_t least = UINT64_MAX;
  for (const Row& row : rows)
    if (counts(row)) least = std::min(least, row.device_peak);
  std::vector<std::string_view> ids;
  for (const Row& row : rows)
    if (counts(row) && row.device_peak == least &&
        std::find(ids.begin(), ids.end(), row.method->id) == ids.end())
      ids.push_back(row.method->id);
  constexpr std::size_t kMostNamed = 4;
  const std::size_t named = std::min(ids.size(), kMostNamed);
  std::string by =
      fmt::format("{}", fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  if (ids.size() > named) by += fmt::format(" and {} more", ids.size() - named);
  const std::uint64_t bound = device_lower_bound(graph, method, forward.pass());
  std::string held = method.cast ? "V, the weights as cast" : "W";
  if (!method.placement.all_on_device()) held = "what is placed there";
  if (forward.pass() != nullptr)
    held += " and the forward pass";
  else if (method.activation_bytes > 0)
    held += " + Q";
  if (least == bound)
    return fmt::format("Least on the device: {}, which is {}, by {}.", format_bytes(least), held, by);
  return fmt::format("Least on the device: {}, by {}; what stays there is {} = {}.", format_bytes(least), by,
                     held, format_bytes(bound));
}

void print_table(const Context& context, const MetaGraph& graph, const std::vector<Row>& rows,
                 const Budget& budget, const MethodOptions& method, const ForwardAnswer& forward) {
  const std::uint64_t weights = storage_bytes(graph);
  fmt::print("{}: {}, W = {} ({} bytes)", safe_display(model_name(graph), 80),
             counted(graph.tensors.size(), "tensor"), format_bytes(weights), format_grouped(weights));
  if (method.activation_bytes > 0) fmt::print(", Q = {}", format_bytes(method.activation_bytes));
  fmt::print("\n\n");

  const bool refusals =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.refusal.has_value(); });
  std::vector<std::string> header = {"method",     "order",   "device",  "host",
                                     "page cache", "staging", "unified", "law"};
  std::vector<Align> alignment(header.size() + 1, Align::right);
  alignment[0] = alignment[1] = alignment[7] = alignment[8] = Align::left;
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
  if (const std::string text = forward.text(); !text.empty()) fmt::print("\n{}", text);
  if (std::none_of(rows.begin(), rows.end(), [](const Row& row) { return row.fits; }))
    fmt::print("Nothing here fits the budget.\n");
}

Json summary_json(const MetaGraph& graph, const Budget& budget, const MethodOptions& method,
                  const ForwardAnswer& forward) {
  const std::uint64_t least = device_lower_bound(graph, method, forward.pass());
  Json json = {{"model", json_text(model_name(graph))},
               {"bytes", storage_bytes(graph)},
               {"options", method_options_json(method, graph)},
               {"rows", Json::array()},
               {"lower_bound",
                {{"host", 0}, {"page_cache", 0}, {"staging", 0}, {"device", least}, {"unified", least}}}};
  json["options"]["device_budget"] = budget.device ? Json(*budget.device) : Json();
  json["options"]["host_budget"] = budget.host ? Json(*budget.host) : Json();
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
  method.placement = parse_placement(options.method, *graph);
  const Labels labels(*graph);
  const ForwardAnswer forward(context, *graph, options.forward);
  if (forward.pass() != nullptr && method.activation_bytes > 0)
    throw Error(ErrorCode::usage, "--activations and --seq exclude each other: a forward pass has its own");

  std::vector<OrderChoice> orders_asked;
  for (const std::string& name : order_names) orders_asked.push_back(choose_order(*graph, name));

  std::vector<Row> rows;
  for (const Method* m : methods_asked)
    for (const OrderChoice& o : orders_asked)
      rows.push_back(plan_row(context, *graph, *m, o, method, forward.pass(), budget, labels));
  if (std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.refusal.has_value(); }))
    throw *rows.front().refusal;

  if (context.json) {
    Json json = summary_json(*graph, budget, method, forward);
    for (Row& row : rows) json["rows"].push_back(std::move(row.json));
    print_json(json);
  } else {
    print_table(context, *graph, rows, budget, method, forward);
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
