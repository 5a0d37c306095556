// loadline inspect, and a tensor's statistics as a row.

#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/base/terminal.h"
#include "app/cli/inspect/inspect_views.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "core/io/system_memory.h"
#include "importers/importer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

// --- loadline inspect: shows the contents of a model.

namespace {

struct InspectFlags {
  std::string path;
  bool tree = false;
  bool tensors = false;
  bool metadata = false;
  bool doctor = false;
  bool stats = false;
  std::string filter;
  std::string sort = "file";
  std::size_t limit = 0;
};

// What a merge of this adapter would read, refuse, and not account for.
void add_adapter(const Context& context, const std::string& path, OpenedModel& opened) {
  const importers::Source source = importers::resolve(path, context.resolve_options());
  const auto config = source.open_sibling(std::string(exporters::kLoraConfig));
  if (!config) return;
  try {
    opened.adapter = exporters::parse_lora_config(config->head(exporters::kMostLoraConfig), config->path());
    opened.claims.unaccounted = opened.adapter->unaccounted;
  } catch (const Error& error) {
    opened.claims.notes.push_back(
        {graph::Severity::warning, {}, fmt::format("a merge refuses it: {}", error.what())});
  }
}

OpenedModel open_timed(const Context& context, const std::string& path) {
  const std::uint64_t read_before = io::read_bytes_counter();
  const auto start = std::chrono::steady_clock::now();
  OpenedModel opened;
  // notes are part of the answer, so they are not shown on stderr too
  opened.graph =
      std::make_shared<const graph::MetaGraph>(importers::open_model(path, context.resolve_options()));
  opened.open_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  opened.bytes_read = io::read_bytes_counter() - read_before;
  opened.claims = forward::model_claims(*opened.graph, *context.assets());
  if (std::ranges::any_of(opened.graph->tensors, [](const graph::Tensor& tensor) {
        return tensor.name.view().find(".lora_") != std::string_view::npos;
      }))
    add_adapter(context, path, opened);
  return opened;
}

Selection select(const graph::MetaGraph& graph, const graph::TensorFilter& filter,
                 const InspectFlags& options) {
  Selection selection = {filter.empty() ? "" : options.filter, filter.select(graph), 0};
  selection.bytes = graph::sum(graph::shares(graph, selection.tensors)).bytes;
  const auto sort = [&](auto before) { std::ranges::stable_sort(selection.tensors, before); };
  if (options.sort == "size")
    sort([&](graph::TensorId a, graph::TensorId b) {
      return graph::tensor_bytes(graph, graph.tensor(a)) > graph::tensor_bytes(graph, graph.tensor(b));
    });
  else if (options.sort == "name")
    sort([&](graph::TensorId a, graph::TensorId b) {
      return natural_less(graph.tensor(a).name, graph.tensor(b).name);
    });
  return selection;
}

std::vector<inspect::Finding> find(const Context& context, const graph::MetaGraphPtr& graph) {
  Progress progress(context.stop);
  const ProgressLine line(context, "checking for slow loading", progress);
  return inspect::diagnose(io::StorageReader(graph), conversion_trial(context, graph), progress);
}

// Makes one `Row` for each tensor shown, as soon as the tensor is measured.
template <typename Row>
std::vector<Row> measure(const Context& context, const graph::MetaGraphPtr& graph, const Selection& selection,
                         std::size_t limit,
                         Row (*make_row)(const graph::Tensor&, const inspect::MeasuredTensor&)) {
  const auto tensors = shown(selection, limit);
  std::vector<Row> rows(tensors.size());
  Progress progress(context.stop);
  const ProgressLine line(context, "measuring values", progress);
  inspect::measure_tensors(io::StorageReader(graph), tensors, progress,
                           [&](std::size_t i, const inspect::MeasuredTensor& measured) {
                             rows[i] = make_row(graph->tensor(tensors[i]), measured);
                           });
  return rows;
}

int inspect(const Context& context, const InspectFlags& options) {
  const graph::TensorFilter filter(options.filter);  // reports a wrong filter before anything is opened
  const OpenedModel opened = open_timed(context, options.path);
  const graph::MetaGraph& graph = *opened.graph;
  const Selection selection = select(graph, filter, options);
  const bool filtered = !filter.empty();
  if (context.json) {
    Json json = summary_json(opened);
    if (filtered)
      json["filter"] = {{"text", json_text(selection.filter)},
                        {"tensors", selection.tensors.size()},
                        {"bytes", selection.bytes}};
    if (options.metadata) json["metadata"] = metadata_json(graph);
    if (options.stats) json["stats"] = measure(context, opened.graph, selection, options.limit, stats_json);
    if (options.doctor) json["findings"] = findings_json(graph, find(context, opened.graph));
    if (options.tensors) {
      const JsonRows rows = tensors_json(context, graph, selection, options.limit);
      print_json(std::move(json), &rows);
    } else {
      print_json(std::move(json));
    }
    return kDone;
  }
  print_summary(opened);
  if (filtered)
    fmt::print("  filter      {} of {} match, {}\n", format_grouped(selection.tensors.size()),
               counted(graph.tensors.size(), "tensor"), format_bytes(selection.bytes));
  if (options.tree) print_tree(graph, selection);
  if (options.tensors || (filtered && !options.tree && !options.stats))
    print_tensors(context, graph, selection, options.limit);
  if (options.metadata) print_metadata(context, graph);
  if (options.stats)
    print_stats(context, graph, selection,
                measure(context, opened.graph, selection, options.limit, stats_row));
  if (options.doctor) print_findings(graph, find(context, opened.graph));
  return kDone;
}

}  // namespace

Action setup_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectFlags>();
  add_path_option(app, options->path);
  add_flag(app, "--tree", options->tree, "modules with subtotals");
  add_flag(app, "--tensors", options->tensors, "every tensor");
  add_text(app, "--filter", options->filter, "only what matches: " + std::string(graph::filter_help()),
           {.value_name = "EXPR"});
  add_text(app, "--sort", options->sort, "of --tensors and --stats: size, name or file",
           {.value_name = "KEY", .show_default = true, .check = one_of({"size", "name", "file"})});
  add_number(app, "--limit", options->limit, "of --tensors and --stats: at most N",
             {.value_name = "N", .check = whole_range(1, kMostNumber)});
  add_flag(app, "--metadata", options->metadata, "keys and values that the files hold beside tensors");
  add_flag(app, "--stats", options->stats, "read every value: extremes, mean, zeros, NaN, 2:4 sparsity");
  add_flag(app, "--doctor", options->doctor, "what slows down loading, its cost and its fix");
  return [options, &app](Context& context) {
    const bool lists = options->tensors || options->stats || (!options->filter.empty() && !options->tree);
    for (const char* const flag : {"--sort", "--limit"})
      if (was_given(app, flag) && !lists)
        throw Error(ErrorCode::usage, "{} has no effect without --tensors or --stats", flag);
    return inspect(context, *options);
  };
}

// --- inspect --stats: a tensor's statistics as a row of a table and as JSON.

namespace {

std::string number_text(const convert::Number& number) {
  if (const double* const value = std::get_if<double>(&number)) return fmt::format("{:.5g}", *value);
  return std::visit([](auto value) { return fmt::format("{}", value); }, number);
}

// A share as text: "0", "<0.01 %", "12.34 %".
std::string share_text(std::uint64_t part, std::uint64_t whole) {
  if (part == 0) return "0";
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  return percent < 0.01 ? "<0.01 %" : fmt::format("{:.2f} %", percent);
}

// A histogram of the sixteen highest octaves of |x|, from few to many values as . : - = + * # @; smaller
// values count in the first octave: "2^-17 |  ..:-=+*#@*:. | 2^-2".
std::string octaves_text(const convert::ValueStats& stats) {
  constexpr std::size_t kColumns = 16;
  constexpr std::string_view kRamp = ".:-=+*#@";
  std::size_t end = convert::kOctaves;
  const auto count = [&](std::size_t place) { return stats.positive[place] + stats.negative[place]; };
  while (end > 0 && count(end - 1) == 0) --end;
  if (end == 0) return "";
  const std::size_t begin = end > kColumns ? end - kColumns : 0;
  std::uint64_t columns[kColumns] = {};
  for (std::size_t place = 0; place < end; ++place) columns[std::max(place, begin) - begin] += count(place);
  const std::uint64_t most = *std::max_element(std::begin(columns), std::end(columns));
  std::string bars;
  for (const std::uint64_t column : columns) {
    const double height = static_cast<double>(column) / static_cast<double>(most) * (kRamp.size() - 1);
    bars += column == 0 ? ' ' : kRamp[static_cast<std::size_t>(std::lround(height))];
  }
  const int first = convert::kFirstOctave + static_cast<int>(begin);
  return fmt::format("2^{} |{}| 2^{}", first, bars, convert::kFirstOctave + static_cast<int>(end));
}

Json number_json(const std::optional<convert::Number>& number) {
  if (!number) return nullptr;
  return std::visit([](auto value) { return Json(value); }, *number);
}

}  // namespace

StatsRow stats_row(const graph::Tensor& tensor, const inspect::MeasuredTensor& measured) {
  if (!measured.stats) return {{}, measured.refusal};
  const convert::ValueStats& stats = *measured.stats;
  const bool known = stats.min.has_value();
  return {
      {tensor.name.empty() ? "(no name)" : safe_display(tensor.name, 60),
       std::string(graph::dtype_info(tensor.dtype).name), format_grouped(stats.count),
       known ? number_text(*stats.min) : "-", known ? number_text(*stats.max) : "-",
       known ? fmt::format("{:.4g}", stats.mean) : "-", known ? fmt::format("{:.4g}", stats.deviation) : "-",
       share_text(stats.zeros, stats.count), format_grouped(stats.nans), format_grouped(stats.infs()),
       share_text(stats.sparse_groups, stats.groups), octaves_text(stats)},
      {}};
}

void print_stats(const Context& context, const graph::MetaGraph& graph, const Selection& selection,
                 const std::vector<StatsRow>& rows) {
  Table table(
      {"name", "dtype", "count", "min", "max", "mean", "std", "zeros", "nan", "inf", "2:4", "octaves of |x|"},
      {kLeft, kLeft, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kLeft});
  std::size_t refused = 0;
  for (const StatsRow& row : rows) {
    if (row.refusal.empty())
      table.row(row.cells);
    else
      ++refused;
  }
  fmt::print("\n{}", refused < rows.size() ? table.text(context.color) : "");
  if (rows.size() < selection.tensors.size())
    fmt::print("... and {} more\n", selection.tensors.size() - rows.size());
  constexpr std::size_t kMostNamed = 50;
  std::size_t named = 0;
  for (std::size_t i = 0; i < rows.size() && named < kMostNamed; ++i) {
    if (rows[i].refusal.empty()) continue;
    ++named;
    fmt::print("not measured: '{}': {}\n", safe_display(graph.tensor(selection.tensors[i]).name, 80),
               rows[i].refusal);
  }
  if (refused > named) fmt::print("and {} more not measured; --json has them all\n", refused - named);
}

Json stats_json(const graph::Tensor& tensor, const inspect::MeasuredTensor& measured) {
  Json json = {{"name", json_text(tensor.name)}, {"dtype", graph::dtype_info(tensor.dtype).name}};
  if (!measured.stats) {
    json["refusal"] = json_text(measured.refusal);
    return json;
  }
  const convert::ValueStats& stats = *measured.stats;
  json["count"] = stats.count;
  json["min"] = number_json(stats.min);
  json["max"] = number_json(stats.max);
  json["mean"] = stats.min ? Json(stats.mean) : Json();
  json["std"] = stats.min ? Json(stats.deviation) : Json();
  json["zeros"] = stats.zeros;
  json["nans"] = stats.nans;
  json["infs"] = stats.infs();
  json["groups"] = stats.groups;
  json["sparse_groups"] = stats.sparse_groups;
  json["histogram"] = Json::array();
  for (std::size_t place = 0; place < convert::kOctaves; ++place)
    if (stats.negative[place] + stats.positive[place] > 0)
      json["histogram"].push_back(Json::array(
          {convert::kFirstOctave + static_cast<int>(place), stats.negative[place], stats.positive[place]}));
  return json;
}

}  // namespace loadline::cli
