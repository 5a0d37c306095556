// loadline targets: lists the data sheets of devices for --target.
#include "app/cli/base/commands.h"
#include "app/cli/base/terminal.h"
#include "core/base/text.h"
#include "core/load/request/bind_request.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

Json target_json(const Target& target) {
  Json json = {{"id", json_text(target.id)},
               {"name", json_text(target.name)},
               {"class", json_text(target.device_class)},
               {"memory", memory_kind_name(target.memory)}};
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

void print_one(const Target& target) {
  fmt::print("{}: {}, {}, {} memory\n", safe_display(target.id, 60), safe_display(target.name, 80),
             safe_display(target.device_class, 20), memory_kind_name(target.memory));
  const auto line = [](const char* title, const std::optional<std::uint64_t>& bytes) {
    if (bytes) fmt::print("  {:<18}{}\n", title, format_bytes(*bytes));
  };
  line("device memory", target.device_bytes);
  line(target.memory == MemoryKind::unified ? "memory" : "host memory", target.host_bytes);
  if (target.device_bandwidth)
    fmt::print("  {:<18}{}\n", "memory bandwidth",
               format_rate(static_cast<double>(*target.device_bandwidth)));
  if (target.link_bandwidth)
    fmt::print("  {:<18}{}\n", "link bandwidth", format_rate(static_cast<double>(*target.link_bandwidth)));
  for (const auto& [id, value] : target.options) fmt::print("  {:<18}{}\n", id, safe_display(value, 40));
  fmt::print("  {:<18}{}\n", "source", safe_display(target.source));
}

int print_targets(const Context& context, const std::vector<std::string>& ids) {
  const Targets targets = load_targets(context.config_folder);
  if (!context.quiet)
    for (const std::string& fault : targets.faults) complain("left out: " + fault);
  std::vector<const Target*> chosen;
  for (const std::string& id : ids) chosen.push_back(&find_target(targets.rows, id));
  if (ids.empty())
    for (const Target& target : targets.rows) chosen.push_back(&target);
  if (context.json) {
    Json json = {{"targets", Json::array()}};
    for (const Target* target : chosen) json["targets"].push_back(target_json(*target));
    print_json(json);
    return kDone;
  }
  if (!ids.empty()) {
    for (const Target* target : chosen) print_one(*target);
    return kDone;
  }
  Table table({"target", "name", "memory", "device", "host"}, {kLeft, kLeft, kLeft, kRight, kRight});
  const auto cell = [](const std::optional<std::uint64_t>& bytes) {
    return bytes ? format_bytes(*bytes) : std::string("-");
  };
  for (const Target* target : chosen)
    table.row({safe_display(target->id, 40), safe_display(target->name, 40),
               std::string(memory_kind_name(target->memory)), cell(target->device_bytes),
               cell(target->host_bytes)});
  fmt::print(
      "{}A file NAME.json in the folder targets/ of the configuration adds one: see `loadline help "
      "targets`.\n",
      table.text(context.colour));
  return kDone;
}

}  // namespace

Action setup_targets(CLI::App& app) {
  auto ids = std::make_shared<std::vector<std::string>>();
  app.add_option("ID", *ids, "the data sheets to print in full");
  return [ids](Context& context) { return print_targets(context, *ids); };
}

}  // namespace loadline::cli
