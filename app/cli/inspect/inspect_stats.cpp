// inspect --stats: a tensor's statistics as a row of a table and as JSON.
#include "app/cli/base/terminal.h"
#include "app/cli/inspect/inspect_views.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

std::string number_text(const Number& number) {
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
std::string octaves_text(const ValueStats& stats) {
  constexpr std::size_t kColumns = 16;
  constexpr std::string_view kRamp = ".:-=+*#@";
  std::size_t end = kOctaves;
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
  const int first = kFirstOctave + static_cast<int>(begin);
  return fmt::format("2^{} |{}| 2^{}", first, bars, kFirstOctave + static_cast<int>(end));
}

Json number_json(const std::optional<Number>& number) {
  if (!number) return nullptr;
  return std::visit([](auto value) { return Json(value); }, *number);
}

}  // namespace

StatsRow stats_row(const Tensor& tensor, const MeasuredTensor& measured) {
  if (!measured.stats) return {{}, measured.refusal};
  const ValueStats& stats = *measured.stats;
  const bool known = stats.min.has_value();
  return {
      {tensor.name.empty() ? "(no name)" : safe_display(tensor.name, 60),
       std::string(dtype_info(tensor.dtype).name), format_grouped(stats.count),
       known ? number_text(*stats.min) : "-", known ? number_text(*stats.max) : "-",
       known ? fmt::format("{:.4g}", stats.mean) : "-", known ? fmt::format("{:.4g}", stats.deviation) : "-",
       share_text(stats.zeros, stats.count), format_grouped(stats.nans), format_grouped(stats.infs()),
       share_text(stats.sparse_groups, stats.groups), octaves_text(stats)},
      {}};
}

void print_stats(const Context& context, const MetaGraph& graph, const Selection& selection,
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
  fmt::print("\n{}", refused < rows.size() ? table.text(context.colour) : "");
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

Json stats_json(const Tensor& tensor, const MeasuredTensor& measured) {
  Json json = {{"name", json_text(tensor.name)}, {"dtype", dtype_info(tensor.dtype).name}};
  if (!measured.stats) {
    json["refusal"] = json_text(measured.refusal);
    return json;
  }
  const ValueStats& stats = *measured.stats;
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
  for (std::size_t place = 0; place < kOctaves; ++place)
    if (stats.negative[place] + stats.positive[place] > 0)
      json["histogram"].push_back(Json::array(
          {kFirstOctave + static_cast<int>(place), stats.negative[place], stats.positive[place]}));
  return json;
}

}  // namespace loadline::cli
