// Shows a conversion before it begins, runs it, and reports it.
#include "app/cli/convert/conversion.h"

#include "app/cli/base/command.h"
#include "app/cli/base/rates.h"
#include "app/cli/base/terminal.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/io/file_system.h"
#include "core/load/order/optimal_order.h"
#include "exporters/convert.h"
#include "exporters/exporter.h"
#include "exporters/preflight.h"
#include "exporters/writer/consume.h"
#include "exporters/writer/forecast.h"
#include "exporters/writer/work_folder.h"
#include "importers/gguf/gguf.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

// --- Shows which tensors of a new file get which type.

namespace {

// "0-3, 6, 9-12"
std::string ranges_text(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string bits_text(const exporters::TypeShare& share) {
  return fmt::format("{:.2f}", exporters::bits_per_weight(share.bytes, share.weights));
}

exporters::TypeShare together(const std::vector<exporters::TypeShare>& shares) {
  exporters::TypeShare sum;
  for (const exporters::TypeShare& share : shares) {
    sum.tensors += share.tensors;
    sum.weights += share.weights;
    sum.bytes += share.bytes;
  }
  return sum;
}

Json share_json(const exporters::TypeShare& share) {
  return {{"type", graph::dtype_info(share.type).name},
          {"tensors", share.tensors},
          {"weights", share.weights},
          {"bytes", share.bytes},
          {"bits_per_weight", exporters::bits_per_weight(share.bytes, share.weights)}};
}

// Two tables: by type, with the bits of a weight, and by kind of tensor.
void print_type_tables(const Context& context, const graph::MetaGraph& graph,
                       const exporters::Layout& layout) {
  const std::vector<exporters::TypeShare> shares = exporters::type_shares(layout);
  const exporters::TypeShare all = together(shares);
  Table types({"type", "tensors", "weights", "bits per weight", "bytes"},
              {kLeft, kRight, kRight, kRight, kRight});
  const auto row = [&](std::string name, const exporters::TypeShare& share) {
    types.row({std::move(name), format_grouped(share.tensors), format_grouped(share.weights),
               bits_text(share), format_grouped(share.bytes)});
  };
  for (const exporters::TypeShare& share : shares)
    row(std::string(graph::dtype_info(share.type).name), share);
  row("total", all);
  fmt::print("{}", types.text(context.color));
  Table kinds({"tensors", "number", "from", "to", "bytes", "layers"},
              {kLeft, kRight, kLeft, kLeft, kRight, kLeft});
  for (const exporters::TensorGroup& group : exporters::tensor_groups(graph, layout))
    kinds.row({safe_display(group.pattern, 60), format_grouped(group.share.tensors),
               std::string(graph::dtype_info(group.from).name),
               std::string(graph::dtype_info(group.share.type).name), format_grouped(group.share.bytes),
               group.alone ? "" : ranges_text(group.layers)});
  fmt::print("{}", kinds.text(context.color));
}

// The same as JSON, with a row for each tensor: the keys types, groups, tensor_types and bits_per_weight.
Json type_tables_json(const graph::MetaGraph& graph, const exporters::Layout& layout) {
  Json json = {{"types", Json::array()}, {"groups", Json::array()}, {"tensor_types", Json::array()}};
  const std::vector<exporters::TypeShare> shares = exporters::type_shares(layout);
  const exporters::TypeShare all = together(shares);
  json["bits_per_weight"] = exporters::bits_per_weight(all.bytes, all.weights);
  for (const exporters::TypeShare& share : shares) json["types"].push_back(share_json(share));
  for (const exporters::TensorGroup& group : exporters::tensor_groups(graph, layout)) {
    Json row = {{"pattern", json_text(group.pattern)},
                {"from", graph::dtype_info(group.from).name},
                {"layers", group.layers}};
    row.update(share_json(group.share));
    json["groups"].push_back(std::move(row));
  }
  for (const exporters::LayoutFile& file : layout.files)
    for (const exporters::Slot& slot : file.slots)
      json["tensor_types"].push_back({{"name", json_text(slot.name.view())},
                                      {"from", graph::dtype_info(exporters::stored_dtype(graph, slot)).name},
                                      {"type", graph::dtype_info(slot.dtype).name},
                                      {"shape", slot.shape.vector()},
                                      {"bytes", slot.bytes}});
  return json;
}

}  // namespace

// --- Shows a conversion before it begins, runs it, and reports it.

namespace {

const std::string& output_of(const exporters::Layout& layout) {
  return layout.folder.empty() ? layout.files.front().path : layout.folder;
}

std::string change_text(const exporters::TypeChange& change) {
  const std::string_view from = graph::dtype_info(change.from).name, to = graph::dtype_info(change.to).name;
  const std::string tensors = counted(change.tensors, "tensor");
  if (change.unpacked)
    return fmt::format("{} packed as {} to {}", counted(change.tensors, "packed weight"), from, to);
  return change.from == change.to ? fmt::format("{} of {} as stored", tensors, from)
                                  : fmt::format("{} from {} to {}", tensors, from, to);
}

// How long a conversion takes at these rates: reading, computing and writing overlap.
double seconds_for(const exporters::WriteForecast& forecast, const plan::CostModel& costs) {
  return std::max(static_cast<double>(forecast.bytes_read) / costs.disk_read,
                  static_cast<double>(forecast.bytes_written) / costs.disk_write);
}

Json all_notes_json(const exporters::Preflight& planned, const graph::MetaGraph& graph) {
  Json notes = notes_json(graph.notes);
  for (const Json& note : notes_json(planned.layout.notes)) notes.push_back(note);
  return notes;
}

void print_layout(const Context& context, const exporters::Preflight& planned,
                  const graph::MetaGraph& graph) {
  Table table({"file", "tensors", "header", "bytes"}, {kLeft, kRight, kRight, kRight});
  for (const exporters::LayoutFile& file : planned.layout.files)
    table.row({safe_display(file.path, 100), fmt::format("{}", file.slots.size()),
               fmt::format("{}", exporters::header_bytes(file)), format_grouped(file.bytes)});
  fmt::print("{}", table.text(context.color));
  for (const exporters::TypeChange& change : planned.changes)
    fmt::print("{}, {}\n", change_text(change), format_bytes(change.bytes));
  if (exporters::has_blocks(planned.layout)) print_type_tables(context, graph, planned.layout);
}

// The source's files that go once the output is in place.
std::vector<std::string> files_to_go(const exporters::Conversion& conversion) {
  const exporters::WriteOptions& write = conversion.write;
  return write.consume ? exporters::consumed_files(*conversion.graph, write.consumable_files)
                       : std::vector<std::string>();
}

// Reports what would be written, and writes nothing. Fails where the conversion would.
int dry_run(const Context& context, const exporters::Conversion& conversion,
            const exporters::Preflight& planned, const Json& more) {
  const graph::MetaGraph& graph = *conversion.graph;
  const exporters::Layout& layout = planned.layout;
  // the files are shown even where there is no room for them
  if (!context.json) print_layout(context, planned, graph);
  const exporters::WriteForecast forecast = exporters::forecast_write(layout, graph, conversion.write);
  const auto rates = kept_rates(context);
  const double seconds = seconds_for(forecast, rates ? rates->costs() : plan::CostModel());
  const auto& disk = forecast.output.disk;
  if (context.json) {
    Json json = {{"dry_run", true},
                 {"files", Json::array()},
                 {"tensors", layout.result.tensors.size()},
                 {"changes", Json::array()},
                 {"notes", all_notes_json(planned, graph)},
                 {"left_out", json_texts(planned.left_out)}};
    for (const exporters::LayoutFile& file : layout.files)
      json["files"].push_back(
          {{"path", json_text(file.path)}, {"bytes", file.bytes}, {"tensors", file.slots.size()}});
    for (const exporters::TypeChange& change : planned.changes)
      json["changes"].push_back({{"from", graph::dtype_info(change.from).name},
                                 {"to", graph::dtype_info(change.to).name},
                                 {"unpacked", change.unpacked},
                                 {"tensors", change.tensors},
                                 {"bytes", change.bytes}});
    json.update(type_tables_json(graph, layout));
    json["bytes_read"] = forecast.bytes_read;
    json["bytes_written"] = forecast.bytes_written;
    json["disk_bytes"] = forecast.disk_bytes;
    json["removes"] = json_texts(files_to_go(conversion));
    json["supersedes"] = Json::array();
    for (const auto& path : forecast.output.superseded)
      json["supersedes"].push_back(json_text(path.string()));
    if (disk) json["disk_available"] = disk->available;
    json["memory_bytes"] = forecast.memory_bytes;
    json["seconds"] = seconds;
    json["rates"] = rates_json(rates ? rates->costs() : plan::CostModel(), rates);
    json.update(more);
    print_json(json);
    return kDone;
  }
  // the rates are the disk's
  fmt::print("Would read {} and write {} in {}, in {} {}.\n", format_bytes(forecast.bytes_read),
             format_bytes(forecast.bytes_written), counted(layout.files.size(), "file"),
             exporters::quantizes(layout) ? "at least" : "about", format_seconds(seconds));
  fmt::print("{}\n", load::rates_line(rates));
  fmt::print("Needs about {} of memory and {} of free disk", format_bytes(forecast.memory_bytes),
             format_bytes(forecast.disk_bytes));
  fmt::print("{}.\n", disk ? fmt::format("; the disk has {} free", format_bytes(disk->available)) : "");
  for (const std::string& path : files_to_go(conversion))
    fmt::print("Would remove {}, which is consumed.\n", safe_display(path));
  for (const auto& path : forecast.output.superseded)
    fmt::print("Would remove {}, which is of another model.\n", safe_display(path.string()));
  return kDone;
}

// Names what interrupted conversions to other outputs left in the same folder.
void tell_of_remains(const Context& context, const exporters::Layout& layout) {
  const std::string folder = exporters::output_folder(layout);
  if (context.quiet || !io::is_folder(folder)) return;
  std::uint64_t bytes = 0;
  std::string only_copy;
  bool pending = false;
  for (const exporters::Remains& remains : exporters::find_remains(folder)) {
    if (remains.alive || remains.path == exporters::WorkFolder::path_of(layout)) continue;
    pending |= remains.pending;
    if (!remains.pending && remains.is_only_copy()) only_copy = exporters::only_copy_text(remains);
    if (!remains.pending && !remains.is_only_copy()) bytes += remains.written;
  }
  const std::string place = safe_display(folder, 100);
  if (bytes > 0)
    complain(fmt::format("note: interrupted conversions left {} in '{}'; remove them: loadline clean {}",
                         format_bytes(bytes), place, shell_word(folder)));
  if (!only_copy.empty())
    complain(
        fmt::format("note: an interrupted conversion in '{}' holds the only copy of {} of its source; "
                    "continue it with --consume --resume",
                    place, only_copy));
  if (pending)
    complain(
        fmt::format("note: a conversion in '{}' was interrupted while it put its files in place; end it: "
                    "loadline clean {}",
                    place, shell_word(folder)));
}

}  // namespace

exporters::ConvertEnvironment convert_environment(const Context& context) {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  return {.policies = context.assets()->type_policies,
          .order =
              [stop = context.stop](const graph::MetaGraph& graph, const std::string& order) {
                return load::written_order(graph, order, Progress(stop));
              },
          .importance = importers::read_importance_file,
          .share = [variable] { return share_from_environment(variable); },
          .follow_links = context.open.follow_links};
}

void tell_of_kept(const Context& context, const exporters::Layout& layout) {
  const std::string work = exporters::WorkFolder::path_of(layout);
  if (context.quiet || !io::is_folder(work)) return;
  const exporters::Remains remains = exporters::examine_remains(work);
  if (remains.alive || !remains.record) return;
  complain(fmt::format("note: '{}' holds {}; {}", safe_display(work, 100),
                       remains.pending          ? "files that are not all in place"
                       : remains.is_only_copy() ? "the only copy of a part of the source"
                                                : "what was written until then",
                       remains.is_only_copy() && !remains.pending
                           ? "another run with --consume --resume continues"
                           : "another run with --resume continues, `loadline clean` ends it"));
}

int write_conversion(const Context& context, const exporters::Conversion& conversion,
                     const exporters::Preflight& planned, bool only_show, const Json& more) {
  // warns before anything is written
  if (!context.quiet)
    for (const std::string& remark : exporters::remarks(planned)) complain("note: " + remark);
  tell_of_remains(context, planned.layout);
  if (only_show) return dry_run(context, conversion, planned, more);
  Progress progress(context.stop);
  exporters::WriteReport report;
  {
    const ProgressLine line(context, "converting", progress);
    try {
      report = exporters::write_model(conversion, planned.layout, progress);
    } catch (const Error&) {
      tell_of_kept(context, planned.layout);
      throw;
    }
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
                 {"memory_budget", conversion.write.memory_budget},
                 {"verified", report.verified},
                 {"complete", report.complete},
                 {"faulty", faulty_json(report)},
                 {"notes", all_notes_json(planned, *conversion.graph)},
                 {"left_out", json_texts(planned.left_out)}};
    json.update(more);
    print_json(json);
    return kDone;
  }
  print_files(report);
  if (report.bytes_resumed > 0)
    fmt::print("{} were already written and are verified\n", format_bytes(report.bytes_resumed));
  fmt::print("{}, {} written in {} ({}), peak memory {}{}\n", counted(report.tensors, "tensor"),
             format_bytes(report.bytes_written), format_seconds(report.seconds),
             format_rate(static_cast<double>(report.bytes_written) / report.seconds),
             format_bytes(report.peak_rss_bytes), report.verified ? ", read back and equal" : "");
  if (const std::string faults = exporters::faults_text(report); !faults.empty())
    complain(fmt::format("warning: {}", faults));
  if (!report.complete)
    fmt::print("This part is written. When all parts are: loadline join {}\n",
               shell_word(output_of(planned.layout)));
  return kDone;
}

// --- Names, sizes and hashes; faulty numbers.

Json faulty_json(const exporters::WriteReport& report) {
  Json list = Json::array();
  for (const exporters::FaultyTensor& tensor : report.faulty)
    list.push_back({{"tensor", json_text(tensor.name)},
                    {"type", graph::dtype_info(tensor.dtype).name},
                    {"overflowed", tensor.faults.overflowed},
                    {"special", tensor.faults.special}});
  return list;
}

Json files_json(const exporters::WriteReport& report) {
  Json files = Json::array();
  for (const exporters::WrittenFile& file : report.files)
    files.push_back(
        {{"path", json_text(file.path)}, {"bytes", file.bytes}, {"xxh3", fmt::format("{:016x}", file.xxh3)}});
  return files;
}

void print_files(const exporters::WriteReport& report) {
  for (const exporters::WrittenFile& file : report.files)
    fmt::print("{}  {}  xxh3 {:016x}\n", safe_display(file.path), format_bytes(file.bytes), file.xxh3);
}

// --- A row for each scheduler: the variables for rank, first rank and number of ranks.

namespace {

struct Scheduler {
  const char* rank;
  const char* size;
  const char* first;  // null: ranks begin at 0
};

// The task of a job array comes first: each task of an array has a SLURM_PROCID of its own, which is 0. MPI
// comes before Slurm's tasks: mpirun inside a Slurm job starts more processes than Slurm knows.
constexpr std::array<Scheduler, 4> kSchedulers = {{
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
    {"PMI_RANK", "PMI_SIZE", nullptr},
    {"SLURM_PROCID", "SLURM_NTASKS", nullptr},
}};

}  // namespace

exporters::WriteShare share_from_environment(const std::function<std::string(const char*)>& variable) {
  const auto number = [&](const char* name) {
    const std::string text = variable(name);
    const auto value = text_as<std::uint32_t>(text);
    if (!value)
      throw Error(ErrorCode::usage, "{} is '{}', which is not a number", name, safe_display(text, 40));
    return *value;
  };
  for (const Scheduler& scheduler : kSchedulers) {
    if (variable(scheduler.rank).empty()) continue;
    const std::uint32_t first = scheduler.first == nullptr ? 0 : number(scheduler.first);
    const exporters::WriteShare share{number(scheduler.rank) - first, number(scheduler.size)};
    if (share.index >= share.count)
      throw Error(ErrorCode::usage, "{} is {}, {} is {}: the rank must be less than the number of ranks",
                  scheduler.rank, share.index + first, scheduler.size, share.count);
    return share;
  }
  throw Error(ErrorCode::usage, "this process was not started by Slurm or MPI: name its part, such as 1/4");
}

}  // namespace loadline::cli
