// loadline help, methods, targets and formats: prints the manual and the tables that the program has.

#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/base/terminal.h"
#include "app/cli/plan/load_flags.h"
#include "app/cli/plan/plan_display.h"
#include "app/report/manual.h"
#include "app/report/markdown.h"
#include "core/base/text.h"
#include "core/graph/names/file_names.h"
#include "core/load/measure/evidence.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/load_options.h"
#include "exporters/convert.h"
#include "importers/importer.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

// --- loadline help: shows the manual on a terminal.

namespace {

using report::ManualPage;

int help(const Context& context, const std::string& topic) {
  if (!topic.empty()) {
    const ManualPage& page = report::find_manual_page(topic);
    if (context.json)
      print_json({{"topic", page.id}, {"title", page.title}, {"markdown", page.text}});
    else
      fmt::print("{}", report::markdown_text(page.text, context.prose_columns, context.color));
    return kDone;
  }
  if (context.json) {
    Json json = {{"topics", Json::array()}};
    for (const ManualPage& page : report::manual_pages())
      json["topics"].push_back({{"id", page.id}, {"title", page.title}});
    print_json(json);
    return kDone;
  }
  fmt::print("Pages of the manual:\n");
  for (const ManualPage& page : report::manual_pages()) fmt::print("  {:<18}{}\n", page.id, page.title);
  fmt::print("`loadline help TOPIC` prints one. `loadline COMMAND --help` lists the options of a command.\n");
  return kDone;
}

}  // namespace

Action setup_help(CLI::App& app) {
  auto topic = std::make_shared<std::string>();
  add_text(app, "TOPIC", *topic, "the page to print");
  return [topic](Context& context) { return help(context, *topic); };
}

// --- loadline methods: shows what each load method does, its peak law and the options that it supports.

namespace {

std::string flags_text(const load::Method& method) {
  std::string text;
  for (const load::LoadOption* option : load::supported_options(method))
    text += (text.empty() ? "" : ", ") + flag_of(option->id);
  return text;
}

Json method_json(const load::Method& method) {
  Json json = {{"id", method.id},
               {"summary", method.summary},
               {"law", load::law_text(method)},
               {"explanation", report::method_explanation(method.id)},
               {"default", method.common},
               {"opens", load::opened_text(method.traits.opens)},
               {"options", Json::array()}};
  for (const load::LoadOption* option : load::supported_options(method))
    json["options"].push_back(option->id);
  json["evidence"] = evidence_json(method.id);
  return json;
}

void print_one(const Context& context, const load::Method& method) {
  fmt::print("{}{}{}: {}\n", context.color ? "\033[1m" : "", method.id, context.color ? "\033[0m" : "",
             method.summary);
  fmt::print("{}", report::wrapped(report::method_explanation(method.id), "  ", context.prose_columns));
  fmt::print("{}", report::wrapped("Law: " + load::law_text(method), "  ", context.prose_columns));
  fmt::print("{}", report::wrapped(load::evidence_text(method.id), "  ", context.prose_columns));
  fmt::print(
      "{}", report::wrapped("Opens: " + load::opened_text(method.traits.opens), "  ", context.prose_columns));
  if (const std::string flags = flags_text(method); !flags.empty()) fmt::print("  Options: {}\n", flags);
}

std::string off_by(const load::Method& method) {
  const std::optional<load::Evidence> evidence = load::evidence_of(method.id);
  if (!evidence) return "-";
  return fmt::format("{:.1f} %{}", evidence->error_percent, evidence->beyond.empty() ? "" : "+");
}

int print_methods(const Context& context, const std::vector<std::string>& ids) {
  std::vector<const load::Method*> chosen;
  for (const std::string& id : ids) chosen.push_back(&load::find_method(id));
  if (context.json) {
    Json json = {{"methods", Json::array()}};
    if (ids.empty())
      for (const load::Method& method : load::methods()) json["methods"].push_back(method_json(method));
    for (const load::Method* method : chosen) json["methods"].push_back(method_json(*method));
    print_json(json);
    return kDone;
  }
  if (!chosen.empty()) {
    for (const load::Method* method : chosen) print_one(context, *method);
    fmt::print(
        "{}", report::wrapped("Words of the laws: " + report::law_legend(chosen), "", context.prose_columns));
    return kDone;
  }
  Table table({"method", "", "off by", "what it does"}, {kLeft, kLeft, kRight, kLeft});
  for (const load::Method& method : load::methods())
    table.row(
        {std::string(method.id), method.common ? "*" : "", off_by(method), std::string(method.summary)});
  const std::string legend =
      "* shown by `plan` unless --method says otherwise. `off by`: the most that a framework's own load "
      "differed "
      "from the projection; - by construction, not measured; + some loads differ by more. "
      "`loadline methods ID` explains one.\n";
  fmt::print("{}{}", table.text(context.color), report::wrapped(legend, "", context.prose_columns));
  return kDone;
}

}  // namespace

Action setup_methods(CLI::App& app) {
  auto ids = std::make_shared<std::vector<std::string>>();
  add_list(app, "ID", *ids, "the methods to explain");
  return [ids](Context& context) { return print_methods(context, *ids); };
}

// --- loadline truth: shows the loads that real frameworks ran, each beside its projection.

namespace {

constexpr std::array<std::string_view, 3> kCounters = {"anonymous", "file", "device"};

const load::TruthCounter* counter_of(const load::TruthRow& row, std::string_view name) {
  const auto found = std::ranges::find(row.counters, name, &load::TruthCounter::name);
  return found == row.counters.end() ? nullptr : &*found;
}

Json truth_json(const load::TruthRow& row) {
  Json json = {{"recipe", row.recipe},
               {"about", row.about},
               {"framework", row.framework},
               {"version", row.version},
               {"model", row.model},
               {"model_bytes", row.model_bytes},
               {"method", row.method},
               {"options", row.options},
               {"law", row.law},
               {"counters", Json::object()},
               {"range", row.range},
               {"within_tolerance", row.ok},
               {"error_percent", row.error_percent ? Json(*row.error_percent) : Json()},
               {"reason", row.reason}};
  for (const load::TruthCounter& counter : row.counters) {
    Json& one = json["counters"][counter.name];
    one = {{"projected", counter.projected ? Json(*counter.projected) : Json()},
           {"measured", counter.measured}};
    if (counter.low) one["low"] = *counter.low;
    if (counter.high) one["high"] = *counter.high;
  }
  return json;
}

// One line a load; a projection that is a range is given by its ends.
std::string truth_csv(const load::Truth& truth) {
  std::string text = "recipe,framework,version,model,model_bytes,method";
  for (const std::string_view name : kCounters)
    text += fmt::format(",{0}_projected,{0}_low,{0}_high,{0}_measured", name);
  text += ",error_percent,within_tolerance\n";
  const auto figure = [](const std::optional<std::uint64_t>& bytes) {
    return bytes ? fmt::format("{}", *bytes) : std::string();
  };
  for (const load::TruthRow& row : truth.rows) {
    text += fmt::format("{},{},{},{},{},{}", row.recipe, row.framework, row.version, row.model,
                        row.model_bytes, row.method);
    for (const std::string_view name : kCounters) {
      const load::TruthCounter* const counter = counter_of(row, name);
      text += counter == nullptr
                  ? ",,,,"
                  : fmt::format(",{},{},{},{}", figure(counter->projected), figure(counter->low),
                                figure(counter->high), counter->measured);
    }
    text += fmt::format(",{},{}\n", row.error_percent ? fmt::format("{:.1f}", *row.error_percent) : "",
                        row.ok ? "yes" : "no");
  }
  return text;
}

int show_truth(const Context& context, bool csv) {
  const load::Truth& truth = load::built_in_truth();
  if (context.json) {
    Json json = {{"date", truth.date},
                 {"tolerance", {{"bytes", truth.tolerance_bytes}, {"percent", truth.tolerance_percent}}},
                 {"rows", Json::array()}};
    for (const load::TruthRow& row : truth.rows) json["rows"].push_back(truth_json(row));
    print_json(json);
    return kDone;
  }
  if (csv) {
    fmt::print("{}", truth_csv(truth));
    return kDone;
  }
  return help(context, "truth");
}

}  // namespace

Action setup_truth(CLI::App& app) {
  auto csv = std::make_shared<bool>(false);
  add_flag(app, "--csv", *csv, "one line a load, with bytes", {.excludes = "--json"});
  return [csv](Context& context) { return show_truth(context, *csv); };
}

// --- loadline targets: lists the data sheets of devices for --target.

namespace {

Json target_json(const load::Target& target) {
  Json json = {{"id", json_text(target.id)},
               {"name", json_text(target.name)},
               {"class", json_text(target.device_class)},
               {"memory", plan::memory_kind_name(target.memory)}};
  const auto add = [&](const char* key, const std::optional<std::uint64_t>& value) {
    json[key] = value ? Json(*value) : Json();
  };
  add("device_bytes", target.device_bytes);
  add("host_bytes", target.host_bytes);
  add("device_bandwidth", target.device_bandwidth);
  add("link_bandwidth", target.link_bandwidth);
  json["options"] = Json::object();
  for (const auto& [id, value] : target.options) json["options"][id] = json_text(value);
  json["source"] = json_text(target.source);
  return json;
}

void print_one(const load::Target& target) {
  fmt::print("{}: {}, {}, {} memory\n", safe_display(target.id, 60), safe_display(target.name, 80),
             safe_display(target.device_class, 20), plan::memory_kind_name(target.memory));
  const auto line = [](const char* title, const std::optional<std::uint64_t>& bytes) {
    if (bytes) fmt::print("  {:<18}{}\n", title, format_bytes(*bytes));
  };
  line("device memory", target.device_bytes);
  line(target.memory == plan::MemoryKind::unified ? "memory" : "host memory", target.host_bytes);
  if (target.device_bandwidth)
    fmt::print("  {:<18}{}\n", "memory bandwidth",
               format_rate(static_cast<double>(*target.device_bandwidth)));
  if (target.link_bandwidth)
    fmt::print("  {:<18}{}\n", "link bandwidth", format_rate(static_cast<double>(*target.link_bandwidth)));
  for (const auto& [id, value] : target.options) fmt::print("  {:<18}{}\n", id, safe_display(value, 40));
  fmt::print("  {:<18}{}\n", "source", safe_display(target.source));
}

int print_targets(const Context& context, const std::vector<std::string>& ids) {
  const load::Targets targets = cli_targets(context, std::ranges::find(ids, load::kThisMachine) != ids.end());
  std::vector<const load::Target*> chosen;
  for (const std::string& id : ids) chosen.push_back(&load::find_target(targets.rows, id));
  if (ids.empty())
    for (const load::Target& target : targets.rows)
      if (target.id != load::kThisMachine) chosen.push_back(&target);
  if (context.json) {
    Json json = {{"targets", Json::array()}};
    for (const load::Target* target : chosen) json["targets"].push_back(target_json(*target));
    print_json(json);
    return kDone;
  }
  if (!ids.empty()) {
    for (const load::Target* target : chosen) print_one(*target);
    return kDone;
  }
  Table table({"target", "name", "memory", "device", "host"}, {kLeft, kLeft, kLeft, kRight, kRight});
  const auto cell = [](const std::optional<std::uint64_t>& bytes) {
    return bytes ? format_bytes(*bytes) : std::string("-");
  };
  for (const load::Target* target : chosen)
    table.row({safe_display(target->id, 40), safe_display(target->name, 40),
               std::string(plan::memory_kind_name(target->memory)), cell(target->device_bytes),
               cell(target->host_bytes)});
  fmt::print(
      "{}`this` is this machine with what it can give now: `loadline targets this`.\n"
      "A file NAME.json in the folder targets/ of the configuration adds one: see `loadline help "
      "targets`.\n",
      table.text(context.color));
  return kDone;
}

}  // namespace

Action setup_targets(CLI::App& app) {
  auto ids = std::make_shared<std::vector<std::string>>();
  add_list(app, "ID", *ids, "the data sheets to print in full");
  return [ids](Context& context) { return print_targets(context, *ids); };
}

// --- loadline formats: lists the formats that can be read and written.

namespace {

Json dtypes_of(const exporters::Exporter& exporter) {
  Json names = Json::array();
  for (const graph::DTypeInfo& info : graph::dtype_table())
    if (exporter.supports(info.id)) names.push_back(info.name);
  return names;
}

std::vector<std::string_view> option_ids(const exporters::Exporter& exporter) {
  std::vector<std::string_view> ids;
  for (const auto& option : exporters::convert_options())
    if (("," + std::string(exporter.options) + ",").find("," + std::string(option.id) + ",") !=
        std::string::npos)
      ids.push_back(option.id);
  return ids;
}

std::string flags_of(const exporters::Exporter& exporter) {
  std::string text;
  for (const std::string_view id : option_ids(exporter)) text += (text.empty() ? "" : ", ") + flag_of(id);
  return text;
}

int formats(const Context& context) {
  if (context.json) {
    Json json = {{"importers", Json::array()}, {"exporters", Json::array()}};
    for (const importers::Importer& importer : importers::importers())
      json["importers"].push_back(
          {{"id", importer.id}, {"name", importer.name}, {"extensions", graph::file_endings(importer.id)}});
    for (const exporters::Exporter& exporter : exporters::exporters())
      json["exporters"].push_back({{"id", exporter.id},
                                   {"name", exporter.name},
                                   {"extension", exporter.extension},
                                   {"options", option_ids(exporter)},
                                   {"dtypes", dtypes_of(exporter)}});
    print_json(json);
    return kDone;
  }
  Table read({"reads", "extension", "what"}, {kLeft, kLeft, kLeft});
  for (const importers::Importer& importer : importers::importers())
    read.row({std::string(importer.id), graph::file_endings(importer.id), std::string(importer.name)});
  Table write({"writes", "extension", "what", "options"}, {kLeft, kLeft, kLeft, kLeft});
  for (const exporters::Exporter& exporter : exporters::exporters())
    write.row({std::string(exporter.id), std::string(exporter.extension), std::string(exporter.name),
               flags_of(exporter)});
  fmt::print("{}\n{}", read.text(context.color), write.text(context.color));
  return kDone;
}

}  // namespace

Action setup_formats(CLI::App&) {
  return [](Context& context) { return formats(context); };
}

}  // namespace loadline::cli
