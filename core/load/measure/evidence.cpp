// Reads the runs and sums them up by method.
#include "core/load/measure/evidence.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "embedded/truth_files.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace loadline::load {
namespace {

using Json = nlohmann::json;

std::optional<std::uint64_t> size_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? std::nullopt : std::optional(found->get<std::uint64_t>());
}

TruthRow row_of(const Json& json) {
  TruthRow row;
  row.recipe = json.at("recipe");
  row.about = json.at("about");
  row.framework = json.at("framework");
  row.version = json.at("version");
  row.model = json.at("model");
  row.model_bytes = json.at("model_bytes");
  row.method = json.at("method");
  row.options = json.at("options").get<std::vector<std::string>>();
  row.law = json.at("law").is_null() ? "" : json.at("law").get<std::string>();
  for (const auto& [name, counter] : json.at("counters").items())
    row.counters.push_back({name, size_at(counter, "projected"), size_at(counter, "low"),
                            size_at(counter, "high"), counter.at("measured").get<std::uint64_t>()});
  if (const Json& error = json.at("error_percent"); !error.is_null()) row.error_percent = error.get<double>();
  row.range = json.at("range");
  row.ok = json.at("ok");
  row.reason = json.at("reason");
  return row;
}

}  // namespace

Truth parse_truth(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Truth truth;
    truth.date = json.at("date");
    truth.tolerance_bytes = json.at("tolerance").at("bytes");
    truth.tolerance_percent = json.at("tolerance").at("percent");
    for (const Json& row : json.at("rows")) truth.rows.push_back(row_of(row));
    return truth;
  } catch (const Json::exception&) {
    throw Error(ErrorCode::malformed, "truth.json: is not a table of measured loads");
  }
}

const Truth& built_in_truth() {
  static const Truth truth = parse_truth(embedded::truth_files().front().bytes);
  return truth;
}

std::optional<Evidence> evidence_of(std::string_view method, const Truth& truth) {
  Evidence evidence;
  for (const TruthRow& row : truth.rows) {
    if (row.method != method) continue;
    ++evidence.pairs;
    const std::string framework = fmt::format("{} {}", row.framework, row.version);
    if (std::ranges::find(evidence.frameworks, framework) == evidence.frameworks.end())
      evidence.frameworks.push_back(framework);
    if (!row.ok)
      evidence.beyond.push_back(&row);
    else if (row.range)
      ++evidence.ranged;
    else
      evidence.error_percent = std::max(evidence.error_percent, row.error_percent.value_or(0));
  }
  return evidence.pairs == 0 ? std::nullopt : std::optional(std::move(evidence));
}

std::string evidence_text(std::string_view method) {
  const std::optional<Evidence> evidence = evidence_of(method);
  if (!evidence) return "By construction, not measured.";
  const std::size_t exact = evidence->pairs - evidence->ranged - evidence->beyond.size();
  std::string text = fmt::format("Held against {}: {}", fmt::join(evidence->frameworks, ", "),
                                 counted(evidence->pairs, "load"));
  if (exact > 0)
    text += fmt::format(", {}at most {:.1f} % off",
                        exact < evidence->pairs ? std::to_string(exact) + " " : "", evidence->error_percent);
  if (evidence->ranged > 0) text += fmt::format(", {} inside a range", evidence->ranged);
  if (!evidence->beyond.empty()) text += fmt::format(", {} beyond the tolerance", evidence->beyond.size());
  text += '.';
  for (const TruthRow* row : evidence->beyond)
    text += fmt::format(" {} on {}: {}.", row->recipe, row->model, deviation_text(*row));
  return text;
}

std::string deviation_text(const TruthRow& row) {
  std::string text =
      row.range && row.error_percent == 0.0
          ? "inside a range that is wider than twice its low end"
          : fmt::format("{} % off", row.error_percent ? fmt::format("{:.1f}", *row.error_percent) : "?");
  return row.reason.empty() ? text : fmt::format("{} ({})", text, row.reason);
}

std::string evidence_brief(std::string_view method) {
  const std::optional<Evidence> evidence = evidence_of(method);
  if (!evidence) return "by construction";
  const std::string beyond = evidence->beyond.empty() ? ""
                                                      : fmt::format(", {} of {} off by more",
                                                                    evidence->beyond.size(), evidence->pairs);
  return fmt::format("{}{}: {:.1f} % off{}", evidence->frameworks.front(),
                     evidence->frameworks.size() > 1 ? " ..." : "", evidence->error_percent, beyond);
}

}  // namespace loadline::load
