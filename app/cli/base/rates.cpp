// Measures rates, and stores them in the user's configuration folder.
#include "app/cli/base/rates.h"

#include "app/cli/base/option_flags.h"
#include "app/cli/base/terminal.h"
#include "app/report/page_parts.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/file_system.h"
#include "core/load/measure/rehearse.h"

#ifdef LOADLINE_HAS_GPU
#include "core/gpu/measure_link.h"
#endif

#include <chrono>
#include <ctime>
#include <filesystem>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

namespace fs = std::filesystem;

std::string rate_cell(const load::RateRow& row, double value) {
  if (value == plan::CostModel::kUncounted) return "not counted";
  return row.member == &plan::CostModel::seek_seconds ? fmt::format("{:.0f} us", value * 1e6)
                                                      : format_rate(value);
}

// "0 draws and computes: 19.00 GB/s, 1 only copies: 24.00 GB/s".
std::string queues_text(const std::map<std::string, double, std::less<>>& rates) {
  std::string text;
  for (const auto& [family, rate] : rates)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", safe_display(family, 60), format_rate(rate));
  return text;
}

// Measures the device's rates. Returns why they are missing; empty if they were measured.
std::string measure_device(load::MeasuredRates& rates, Progress& progress) {
#ifdef LOADLINE_HAS_GPU
  constexpr std::uint64_t kBytes = 128 << 20;
  try {
    gpu::measure_device(gpu::DeviceOptions{}, kBytes, rates, progress);
    return "";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::canceled) throw;
    return error.what();
  }
#else
  (void)rates, (void)progress;
  return "built without Vulkan";
#endif
}

void keep(const std::string& path, const load::MeasuredRates& rates) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error)
    throw Error(ErrorCode::io, "{}: cannot make the folder: {}",
                safe_display(fs::path(path).parent_path().string()), error.message());
  report::write_file(path, load::rates_text(rates));
}

// The file in which `devices --measure` stores rates; empty if there is no folder for it.
std::string rates_path(const Context& context) {
  return context.config_folder.empty() ? "" : context.config_folder + "/rates.json";
}

}  // namespace

std::optional<load::MeasuredRates> kept_rates(const Context& context) {
  const std::string path = rates_path(context);
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored)) return std::nullopt;
  try {
    return load::read_rates(path);
  } catch (const Error& error) {
    if (!context.quiet) complain(fmt::format("ignored: {}", error.what()));
    return std::nullopt;
  }
}

Json rates_json(const plan::CostModel& costs, const std::optional<load::MeasuredRates>& rates) {
  Json json = {{"measured", rates ? Json(json_text(rates->measured)) : Json()},
               {"device", rates && !rates->device.empty() ? Json(json_text(rates->device)) : Json()}};
  for (const load::RateRow& row : load::rate_rows()) {
    const double rate = costs.*row.member;
    json[std::string(row.key)] = rate == plan::CostModel::kUncounted ? Json() : Json(rate);
  }
  return json;
}

void add_measure_options(CLI::App& app, MeasureArguments& arguments) {
  add_flag(app, "--measure", arguments.measure, "measure memory, GPU and the disk of a folder for times");
  add_text(app, "--measure-dir", arguments.folder, "folder whose disk is measured",
           {.value_name = "FOLDER", .default_text = "the working directory", .needs = "--measure"});
}

RatesAnswer measure_rates(const Context& context, const MeasureArguments& arguments) {
  constexpr std::uint64_t kFile = 512 << 20, kMemory = 256 << 20;
  RatesAnswer answer;
  Progress progress(context.stop);
  {
    const ProgressLine line(context, "measuring", progress);
    try {
      answer.disk_in_memory = io::file_system_of(arguments.folder).memory;
      load::measure_disk(arguments.folder, kFile, answer.rates, progress);
    } catch (const Error& error) {
      // a folder that was named must be one; the working directory may be any
      if (error.code() != ErrorCode::io || arguments.folder != MeasureArguments().folder) throw;
      const std::string what = error.what();
      answer.disk_missing = "the working directory" + what.substr(std::min(what.find(':'), what.size()));
    }
    load::measure_memory(kMemory, answer.rates, progress);
    answer.missing = measure_device(answer.rates, progress);
  }
  const std::time_t time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  answer.rates.measured = fmt::format("{:%Y-%m-%dT%H:%MZ}", fmt::gmtime(time));
  answer.path = rates_path(context);
  if (answer.path.empty()) {
    answer.not_kept = "there is no configuration folder";
    return answer;
  }
  try {
    keep(answer.path, answer.rates);
  } catch (const Error& error) {
    answer.path.clear();  // the measurement took a while, and is shown
    answer.not_kept = error.what();
  }
  return answer;
}

std::string measure_text(const Context& context, const RatesAnswer& answer) {
  const plan::CostModel assumed;
  Table table({"rate", "measured", "assumed", "with"}, {kLeft, kRight, kRight, kLeft});
  for (const load::RateRow& row : load::rate_rows()) {
    const auto value = answer.rates.values.find(row.key);
    const auto how = answer.rates.how.find(row.key);
    table.row({std::string(row.title),
               value == answer.rates.values.end() ? "-" : rate_cell(row, value->second),
               rate_cell(row, assumed.*row.member),
               how == answer.rates.how.end() ? "" : safe_display(how->second, 80)});
  }
  std::string text = table.text(context.color);
  if (!answer.rates.device.empty())
    text += fmt::format("The device is {}.\n", safe_display(answer.rates.device, 60));
  if (!answer.rates.queues.empty())
    text += fmt::format("Link rates by queue family: {}.\n", queues_text(answer.rates.queues));
  if (!answer.disk_missing.empty())
    text += fmt::format("The disk keeps its assumed rates: {}. --measure-dir names another folder.\n",
                        answer.disk_missing);
  if (answer.disk_in_memory) text += "The folder is in memory, not on a disk. --measure-dir names another.\n";
  if (!answer.missing.empty())
    text += fmt::format("The device keeps its assumed rates: {}.\n", answer.missing);
  text += answer.path.empty()
              ? fmt::format("Not saved: {}.\n", answer.not_kept)
              : fmt::format("Saved in {} for estimates of time.\n", safe_display(answer.path));
  return text;
}

Json measure_json(const RatesAnswer& answer) {
  Json json = {{"measured", answer.rates.measured},
               {"device", answer.rates.device.empty() ? Json() : Json(json_text(answer.rates.device))},
               {"kept", answer.path.empty() ? Json() : Json(json_text(answer.path))}};
  if (!answer.not_kept.empty()) json["not_kept"] = json_text(answer.not_kept);
  if (!answer.missing.empty()) json["missing"] = json_text(answer.missing);
  if (!answer.disk_missing.empty()) json["disk_missing"] = json_text(answer.disk_missing);
  for (const auto& [key, value] : answer.rates.values) json[key] = value;
  for (const auto& [family, rate] : answer.rates.queues) json["queues"][json_text(family)] = rate;
  for (const auto& [key, text] : answer.rates.how) json["how"][key] = json_text(text);
  return json;
}

}  // namespace loadline::cli
