// Shows a conversion before it begins, runs it, and reports it.
#include "app/cli/convert/conversion.h"

#include "app/cli/base/rates.h"
#include "app/cli/base/shell.h"
#include "app/cli/base/terminal.h"
#include "app/cli/convert/ranks.h"
#include "app/cli/convert/type_tables.h"
#include "app/cli/convert/written_files.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/file_system.h"
#include "core/load/order/written_order.h"
#include "exporters/convert.h"
#include "exporters/type_table.h"
#include "exporters/writer/forecast_2.h"
#include "exporters/writer/work_folder.h"
#include "importers/gguf/importance.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

const std::string& output_of(const Layout& layout) {
  return layout.folder.empty() ? layout.files.front().path : layout.folder;
}

std::string change_text(const TypeChange& change) {
  const std::string_view from = dtype_info(change.from).name, to = dtype_info(change.to).name;
  const std::string tensors = counted(change.tensors, "tensor");
  if (change.unpacked)
    return fmt::format("{}, codes of {}, to {}", counted(change.tensors, "packed weight"), from, to);
  return change.from == change.to ? fmt::format("{} of {} as stored", tensors, from)
                                  : fmt::format("{} from {} to {}", tensors, from, to);
}

// How long a conversion takes at these rates: reading, computing and writing overlap.
double seconds_for(const WriteForecast& forecast, const CostModel& costs) {
  return std::max(static_cast<double>(forecast.bytes_read) / costs.disk_read,
                  static_cast<double>(forecast.bytes_written) / costs.disk_write);
}

Json all_notes_json(const Preflight& planned, const MetaGraph& graph) {
  Json notes = notes_json(graph.notes);
  for (const Json& note : notes_json(planned.layout.notes)) notes.push_back(note);
  return notes;
}

void print_layout(const Context& context, const Preflight& planned, const MetaGraph& graph) {
  Table table({"file", "tensors", "header", "bytes"}, {kLeft, kRight, kRight, kRight});
  for (const LayoutFile& file : planned.layout.files)
    table.row({safe_display(file.path, 100), fmt::format("{}", file.slots.size()),
               fmt::format("{}", header_bytes(file)), format_grouped(file.bytes)});
  fmt::print("{}", table.text(context.colour));
  for (const TypeChange& change : planned.changes)
    fmt::print("{}, {}\n", change_text(change), format_bytes(change.bytes));
  if (has_blocks(planned.layout)) print_type_tables(context, graph, planned.layout);
}

// Reports what would be written, and writes nothing. Fails where the conversion would.
int dry_run(const Context& context, const Preflight& planned, const MetaGraph& graph,
            const WriteOptions& write, const Json& more) {
  const Layout& layout = planned.layout;
  // the files are shown even where there is no room for them
  if (!context.json) print_layout(context, planned, graph);
  const WriteForecast forecast = forecast_write(layout, graph, write);
  const auto rates = kept_rates(context);
  const double seconds = seconds_for(forecast, rates ? rates->costs() : CostModel());
  const auto& disk = forecast.output.disk;
  if (context.json) {
    Json json = {{"dry_run", true},
                 {"files", Json::array()},
                 {"tensors", layout.result.tensors.size()},
                 {"changes", Json::array()},
                 {"notes", all_notes_json(planned, graph)},
                 {"left_out", json_texts(planned.left_out)}};
    for (const LayoutFile& file : layout.files)
      json["files"].push_back(
          {{"path", json_text(file.path)}, {"bytes", file.bytes}, {"tensors", file.slots.size()}});
    for (const TypeChange& change : planned.changes)
      json["changes"].push_back({{"from", dtype_info(change.from).name},
                                 {"to", dtype_info(change.to).name},
                                 {"unpacked", change.unpacked},
                                 {"tensors", change.tensors},
                                 {"bytes", change.bytes}});
    json.update(type_tables_json(graph, layout));
    json["bytes_read"] = forecast.bytes_read;
    json["bytes_written"] = forecast.bytes_written;
    json["disk_bytes"] = forecast.disk_bytes;
    if (disk) json["disk_available"] = disk->available;
    json["memory_bytes"] = forecast.memory_bytes;
    json["seconds"] = seconds;
    json["rates"] = rates_json(rates ? rates->costs() : CostModel(), rates);
    json.update(more);
    print_json(json);
    return kDone;
  }
  // the rates are the disk's
  fmt::print("Would read {} and write {} in {}, in {} {}.\n", format_bytes(forecast.bytes_read),
             format_bytes(forecast.bytes_written), counted(layout.files.size(), "file"),
             quantises(layout) ? "at least" : "about", format_seconds(seconds));
  fmt::print("{}\n", rates_line(rates));
  fmt::print("Needs about {} of memory and {} of free disk", format_bytes(forecast.memory_bytes),
             format_bytes(forecast.disk_bytes));
  fmt::print("{}.\n", disk ? fmt::format("; the disk has {} free", format_bytes(disk->available)) : "");
  return kDone;
}

// Names what interrupted conversions to other outputs left in the same folder.
void tell_of_remains(const Context& context, const Layout& layout) {
  const std::string folder = output_folder(layout);
  if (context.quiet || !is_folder(folder)) return;
  std::uint64_t bytes = 0;
  for (const Remains& remains : find_remains(folder))
    if (!remains.alive && remains.path != WorkFolder::path_of(layout)) bytes += remains.written;
  if (bytes > 0)
    complain(fmt::format("note: interrupted conversions left {} in '{}'; remove them: loadline clean {}",
                         format_bytes(bytes), safe_display(folder, 100), shell_word(folder)));
}

}  // namespace

const Exporter& chosen_exporter(const std::string& to, const std::string& out) {
  if (to.empty()) return out.empty() ? find_exporter("safetensors") : exporter_for_output(out);
  const Exporter& asked = find_exporter(to);
  if (const Exporter* const named = exporter_for(out); named != nullptr && named != &asked)
    throw Error(ErrorCode::usage, "'{}' is named as {}, --to says {}: name it otherwise",
                safe_display(out, 200), named->id, asked.id);
  return asked;
}

void complete_request(const Context& context, const MetaGraph& graph, ConvertRequest& request) {
  if (request.write.share && request.write.share->count == 0)
    request.write.share = share_from_environment([](const char* name) {
      const char* const value = std::getenv(name);
      return std::string(value == nullptr ? "" : value);
    });
  if (!request.order.empty())
    request.layout.order = written_order(graph, request.order, Progress(context.stop));
  if (request.layout.policy != nullptr)
    request.layout.policy = find_type_policy(context.assets()->type_policies, request.layout.policy->name);
  request.layout.follow_links = context.follow_links;
  if (!request.imatrix.empty()) request.layout.importance = read_importance_file(request.imatrix);
}

int write_conversion(const Context& context, const MetaGraphPtr& graph, const Preflight& planned,
                     const WriteOptions& write, bool only_show, const Json& more) {
  // warns before anything is written
  if (!context.quiet)
    for (const std::string& remark : remarks(planned)) complain("note: " + remark);
  tell_of_remains(context, planned.layout);
  if (only_show) return dry_run(context, planned, *graph, write, more);
  Progress progress(context.stop);
  WriteReport report;
  {
    const ProgressLine line(context, "converting", progress);
    report = write_model(graph, planned.layout, write, progress);
  }
  if (context.json) {
    Json json = {{"files", files_json(report)},
                 {"tensors", report.tensors},
                 {"bytes_read", report.bytes_read},
                 {"bytes_written", report.bytes_written},
                 {"resumed", report.bytes_resumed},
                 {"seconds", report.seconds},
                 {"peak_host_bytes", report.peak_host_bytes},
                 {"peak_rss_bytes", report.peak_rss_bytes},
                 {"memory_budget", write.memory_budget},
                 {"verified", report.verified},
                 {"complete", report.complete},
                 {"notes", all_notes_json(planned, *graph)},
                 {"left_out", json_texts(planned.left_out)}};
    json.update(more);
    print_json(json);
    return kDone;
  }
  print_files(report);
  if (report.bytes_resumed > 0)
    fmt::print("{} were there already and are verified\n", format_bytes(report.bytes_resumed));
  fmt::print("{}, {} written in {} ({}), the process took at most {} of memory{}\n",
             counted(report.tensors, "tensor"), format_bytes(report.bytes_written),
             format_seconds(report.seconds),
             format_rate(static_cast<double>(report.bytes_written) / report.seconds),
             format_bytes(report.peak_rss_bytes), report.verified ? ", read back and equal" : "");
  if (!report.complete)
    fmt::print("This part is written. When all parts are: loadline join {}\n",
               shell_word(output_of(planned.layout)));
  return kDone;
}

}  // namespace loadline::cli
