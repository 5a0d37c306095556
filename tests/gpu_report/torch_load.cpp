// Starts python3 with torch_load.py as its program text.
#include "tests/gpu_report/torch_load.h"

#include "core/base/text.h"
#include "embedded/torch_load_files.h"
#include "tests/gpu_report/child.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::bench {
namespace {

constexpr int kTorchSeconds = 30;  // for the warm and for the cold loads

std::optional<Result> result_of(const nlohmann::json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  auto seconds = json.at(key).get<std::vector<double>>();
  std::ranges::sort(seconds);
  return Result{"load_file", seconds.at(seconds.size() / 2), seconds.front(), seconds.back(),
                static_cast<int>(seconds.size())};
}

}  // namespace

TorchFigures measure_torch(const std::string& path, std::uint64_t bytes, int rounds) {
  TorchFigures figures{.bytes = bytes};
  const std::string program(embedded::torch_load_files().front().bytes);
  std::string last;
  const std::string ending = run_child({.words = {"python3", "-c", program, path, fmt::format("{}", rounds),
                                                  fmt::format("{}", kTorchSeconds)}},
                                       [&](std::string_view line) {
                                         if (!line.empty()) last = line;
                                       });
  if (!ending.empty()) {
    figures.absent = fmt::format("python3 {}{}{}", ending, last.empty() ? "" : ": ", safe_display(last));
    return figures;
  }
  try {
    const nlohmann::json json = nlohmann::json::parse(last);
    if (json.contains("absent")) {
      figures.absent = json.at("absent");
      return figures;
    }
    figures.versions = json.at("versions");
    figures.device = json.at("device");
    figures.pinned_rate = json.at("pinned_rate");
    figures.peak = json.at("peak");
    figures.cold_absent = json.value("cold_absent", "");
    figures.warm = result_of(json, "warm");
    figures.cold = result_of(json, "cold");
  } catch (const nlohmann::json::exception&) {
    figures.absent = fmt::format("python3 printed something else: {}", safe_display(last, 200));
  }
  return figures;
}

}  // namespace loadline::bench
