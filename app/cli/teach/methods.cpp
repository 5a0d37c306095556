// loadline methods: shows what each load method does, its peak law and the options that it supports.
#include "app/cli/base/commands.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/base/terminal.h"
#include "app/cli/plan/evidence_json.h"
#include "app/report/manual.h"
#include "app/report/wrap.h"
#include "core/load/measure/evidence.h"
#include "core/load/request/load_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

std::string flags_text(const Method& method) {
  std::string text;
  for (const LoadOption* option : supported_options(method))
    text += (text.empty() ? "" : ", ") + flag_of(option->id);
  return text;
}

Json method_json(const Method& method) {
  Json json = {{"id", method.id},          {"summary", method.summary},
               {"law", method.peak_law},   {"explanation", report::method_explanation(method.id)},
               {"default", method.common}, {"options", Json::array()}};
  for (const LoadOption* option : supported_options(method)) json["options"].push_back(option->id);
  json["evidence"] = evidence_json(method.id);
  return json;
}

void print_one(const Context& context, const Method& method) {
  fmt::print("{}{}{}: {}\n", context.colour ? "\033[1m" : "", method.id, context.colour ? "\033[0m" : "",
             method.summary);
  fmt::print("{}", report::wrapped(report::method_explanation(method.id), "  ", context.prose_columns));
  fmt::print("{}", report::wrapped(fmt::format("Law: {}", method.peak_law), "  ", context.prose_columns));
  fmt::print("{}", report::wrapped(evidence_text(method.id), "  ", context.prose_columns));
  if (const std::string flags = flags_text(method); !flags.empty()) fmt::print("  Options: {}\n", flags);
}

std::string off_by(const Method& method) {
  const std::optional<Evidence> evidence = evidence_of(method.id);
  if (!evidence) return "-";
  return fmt::format("{:.1f} %{}", evidence->error_percent, evidence->beyond.empty() ? "" : "+");
}

int print_methods(const Context& context, const std::vector<std::string>& ids) {
  std::vector<const Method*> chosen;
  for (const std::string& id : ids) chosen.push_back(&find_method(id));
  if (context.json) {
    Json json = {{"methods", Json::array()}};
    if (ids.empty())
      for (const Method& method : methods()) json["methods"].push_back(method_json(method));
    for (const Method* method : chosen) json["methods"].push_back(method_json(*method));
    print_json(json);
    return kDone;
  }
  if (!chosen.empty()) {
    for (const Method* method : chosen) print_one(context, *method);
    fmt::print("{}", report::wrapped("Symbols: " + report::law_symbols(), "", context.prose_columns));
    return kDone;
  }
  Table table({"method", "", "off by", "what it does"}, {kLeft, kLeft, kRight, kLeft});
  for (const Method& method : methods())
    table.row(
        {std::string(method.id), method.common ? "*" : "", off_by(method), std::string(method.summary)});
  const std::string legend =
      "* shown by `plan` unless --method says otherwise. `off by`: the most that a framework's own load "
      "differed "
      "from the projection; - by construction, not measured; + some loads differ by more. "
      "`loadline methods ID` explains one.\n";
  fmt::print("{}{}", table.text(context.colour), report::wrapped(legend, "", context.prose_columns));
  return kDone;
}

}  // namespace

Action setup_methods(CLI::App& app) {
  auto ids = std::make_shared<std::vector<std::string>>();
  app.add_option("ID", *ids, "the methods to explain");
  return [ids](Context& context) { return print_methods(context, *ids); };
}

}  // namespace loadline::cli
