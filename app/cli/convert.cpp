// loadline convert: writes a flat file within a memory budget.
#include "exporters/convert.h"

#include "app/cli/commands.h"
#include "app/cli/table.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/left_out.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct Options {
  std::string in;
  std::string out;
  std::string to;
  std::string outtype;
  std::uint64_t align = 0;
  std::string max_shard_size;
  std::string memory_budget = "64MiB";
  bool dry_run = false;
  bool force = false;
  bool verify = false;
};

std::optional<DType> parse_outtype(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text == "f32" ? DType::f32 : text == "f16" ? DType::f16 : DType::bf16;
}

Json file_json(const WrittenFile& file) {
  return {{"path", json_text(file.path)}, {"bytes", file.bytes}, {"xxh3", fmt::format("{:016x}", file.xxh3)}};
}

// What would be written, without writing it.
int dry_run(const Context& context, const Layout& layout) {
  std::uint64_t total = 0;
  for (const LayoutFile& file : layout.files) total += file.bytes;
  if (context.json) {
    Json json = {{"dry_run", true}, {"files", Json::array()}, {"tensors", layout.result.tensors.size()}};
    for (const LayoutFile& file : layout.files)
      json["files"].push_back(
          {{"path", json_text(file.path)}, {"bytes", file.bytes}, {"tensors", file.slots.size()}});
    json["bytes_written"] = total;
    print_json(json);
    return kDone;
  }
  Table table({"file", "tensors", "header", "bytes"},
              {Align::left, Align::right, Align::right, Align::right});
  for (const LayoutFile& file : layout.files)
    table.row({safe_display(file.path, 100), fmt::format("{}", file.slots.size()),
               fmt::format("{}", header_bytes(file)), format_grouped(file.bytes)});
  fmt::print("{}Would write {} in {}.\n", table.text(context.colour), format_bytes(total),
             counted(layout.files.size(), "file"));
  return kDone;
}

// --to, else what OUT's name says; without both safetensors.
const Exporter& chosen_exporter(const Options& options) {
  if (options.to.empty())
    return options.out.empty() ? find_exporter("safetensors") : exporter_for_output(options.out);
  const Exporter& asked = find_exporter(options.to);
  if (const Exporter* const named = exporter_for(options.out); named != nullptr && named != &asked)
    throw Error(ErrorCode::usage, fmt::format("'{}' is named as {}, --to says {}: name it otherwise",
                                              safe_display(options.out, 200), named->id, asked.id));
  return asked;
}

int convert(const Context& context, const Options& options) {
  const Exporter& exporter = chosen_exporter(options);
  ExportOptions layout_options;
  layout_options.outtype = parse_outtype(options.outtype);
  layout_options.alignment = options.align;
  if (!options.max_shard_size.empty())
    layout_options.max_shard_bytes = parse_size(options.max_shard_size, "--max-shard-size");
  WriteOptions write;
  write.memory_budget = parse_size(options.memory_budget, "--memory-budget");
  write.overwrite = options.force;
  write.verify = options.verify;
  if (write.memory_budget < 128 << 10)
    throw Error(ErrorCode::usage, "--memory-budget: at least 128KiB are needed for buffers");

  const MetaGraphPtr graph = open_for(context, options.in);
  const OutputKind kind = layout_options.max_shard_bytes > 0 ? OutputKind::folder : OutputKind::file;
  const std::string out = options.out.empty() ? output_name(model_name(*graph), exporter, kind) : options.out;
  if (options.dry_run) {
    require_sound(*graph, "convert");
    return dry_run(context, exporter.layout(*graph, layout_options, out));
  }

  // said while the input is still there
  if (!context.quiet)
    for (const std::string& loss : left_out(*graph, exporter, layout_options)) complain("note: " + loss);
  Progress progress(context.stop);
  WriteReport report;
  {
    const ProgressLine line(context, "converting", progress);
    report = convert_model(graph, exporter, layout_options, out, write, progress);
  }
  if (context.json) {
    Json json = {{"files", Json::array()},
                 {"tensors", report.tensors},
                 {"bytes_read", report.bytes_read},
                 {"bytes_written", report.bytes_written},
                 {"seconds", report.seconds},
                 {"peak_host_bytes", report.peak_host_bytes},
                 {"memory_budget", write.memory_budget},
                 {"verified", report.verified}};
    for (const WrittenFile& file : report.files) json["files"].push_back(file_json(file));
    print_json(json);
    return kDone;
  }
  for (const WrittenFile& file : report.files)
    fmt::print("{}  {}  xxh3 {:016x}\n", safe_display(file.path), format_bytes(file.bytes), file.xxh3);
  fmt::print("{}, {} written in {} ({}), {} of memory{}\n", counted(report.tensors, "tensor"),
             format_bytes(report.bytes_written), format_seconds(report.seconds),
             format_rate(static_cast<double>(report.bytes_written) / report.seconds),
             format_bytes(report.peak_host_bytes), report.verified ? ", read back and equal" : "");
  return kDone;
}

}  // namespace

Action setup_convert(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("IN", options->in, "The model to read")->required();
  app.add_option(
      "OUT", options->out,
      "A file, or a folder for safetensors with config.json and shards; missing folders are made. By "
      "default the model's name with -loadline, in the current folder");
  std::vector<std::string> ids;
  for (const Exporter& exporter : exporters()) ids.emplace_back(exporter.id);
  app.add_option("--to", options->to, "Output format; by default what OUT's extension says")
      ->check(CLI::IsMember(ids));
  app.add_option("--outtype", options->outtype,
                 "Cast floating-point tensors; by default they stay as they are")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  app.add_option("--align", options->align,
                 "safetensors: data starts on this boundary; gguf: every tensor does. A power of two")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{2} << 20));
  app.add_option("--max-shard-size", options->max_shard_size,
                 "safetensors folder: split into files of at most this size; a larger tensor stands alone");
  app.add_option("--memory-budget", options->memory_budget, "Bytes of buffers")->capture_default_str();
  app.add_flag("--dry-run", options->dry_run, "Show the files that would be written");
  app.add_flag("--force", options->force, "Replace existing output");
  app.add_flag("--verify", options->verify, "Read the output back from disk and compare before it appears");
  return [options](Context& context) { return convert(context, *options); };
}

}  // namespace loadline::cli
