// loadline inspect: shows the contents of a model.
#include "app/cli/base/commands.h"
#include "app/cli/inspect/inspect_views.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/names/filter.h"
#include "core/graph/shares.h"
#include "core/io/system_memory.h"

#include <algorithm>
#include <chrono>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
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

OpenedModel open_timed(const Context& context, const std::string& path) {
  warn_of_interrupted_edit(context, path);
  const std::uint64_t read_before = read_bytes_counter();
  const auto start = std::chrono::steady_clock::now();
  OpenedModel opened;
  // notes are part of the answer, so they are not shown on stderr too
  opened.graph = std::make_shared<const MetaGraph>(open_model(path, context.resolve_options()));
  opened.open_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  opened.bytes_read = read_bytes_counter() - read_before;
  opened.claims = model_claims(*opened.graph, *context.assets());
  return opened;
}

Selection select(const MetaGraph& graph, const TensorFilter& filter, const InspectFlags& options) {
  Selection selection = {filter.empty() ? "" : options.filter, filter.select(graph), 0};
  selection.bytes = sum(shares(graph, selection.tensors)).bytes;
  const auto sort = [&](auto before) { std::ranges::stable_sort(selection.tensors, before); };
  if (options.sort == "size")
    sort([&](TensorId a, TensorId b) {
      return tensor_bytes(graph, graph.tensor(a)) > tensor_bytes(graph, graph.tensor(b));
    });
  else if (options.sort == "name")
    sort([&](TensorId a, TensorId b) { return natural_less(graph.tensor(a).name, graph.tensor(b).name); });
  return selection;
}

std::vector<Finding> find(const Context& context, const MetaGraphPtr& graph) {
  Progress progress(context.stop);
  const ProgressLine line(context, "looking for what loading would pay for", progress);
  return diagnose(StorageReader(graph), progress);
}

// Makes one `Row` for each tensor shown, as soon as the tensor is measured.
template <typename Row>
std::vector<Row> measure(const Context& context, const MetaGraphPtr& graph, const Selection& selection,
                         std::size_t limit, Row (*make_row)(const Tensor&, const MeasuredTensor&)) {
  const auto tensors = shown(selection, limit);
  std::vector<Row> rows(tensors.size());
  Progress progress(context.stop);
  const ProgressLine line(context, "measuring values", progress);
  measure_tensors(StorageReader(graph), tensors, progress,
                  [&](std::size_t i, const MeasuredTensor& measured) {
                    rows[i] = make_row(graph->tensor(tensors[i]), measured);
                  });
  return rows;
}

int inspect(const Context& context, const InspectFlags& options) {
  const TensorFilter filter(options.filter);  // reports a wrong filter before anything is opened
  const OpenedModel opened = open_timed(context, options.path);
  const MetaGraph& graph = *opened.graph;
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
    fmt::print("  filter      {} of {} pass, {}\n", format_grouped(selection.tensors.size()),
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
  app.add_flag("--tree", options->tree, "modules with subtotals");
  app.add_flag("--tensors", options->tensors, "every tensor");
  app.add_option("--filter", options->filter, "only what matches: " + std::string(filter_help()))
      ->type_name("EXPR");
  auto* const sort = app.add_option("--sort", options->sort, "of --tensors and --stats: size, name or file")
                         ->check(CLI::IsMember({"size", "name", "file"}))
                         ->type_name("KEY")
                         ->capture_default_str();
  auto* const limit = app.add_option("--limit", options->limit, "of --tensors and --stats: at most N")
                          ->check(CLI::Range(std::int64_t{1}, kMostNumber))
                          ->type_name("N");
  app.add_flag("--metadata", options->metadata, "keys and values that the files hold beside tensors");
  app.add_flag("--stats", options->stats, "read every value: extremes, mean, zeros, NaN, 2:4 sparsity");
  app.add_flag("--doctor", options->doctor, "what slows down loading, its cost, what mends it");
  return [options, sort, limit](Context& context) {
    const bool lists = options->tensors || options->stats || (!options->filter.empty() && !options->tree);
    for (const CLI::Option* option : {sort, limit})
      if (option->count() > 0 && !lists)
        throw Error(ErrorCode::usage, option->get_name() + " changes nothing without --tensors or --stats");
    return inspect(context, *options);
  };
}

}  // namespace loadline::cli
