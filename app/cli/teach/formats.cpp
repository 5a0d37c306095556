// loadline formats: lists the formats that can be read and written.
#include "app/cli/base/commands.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/base/terminal.h"
#include "exporters/convert_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

Json dtypes_of(const Exporter& exporter) {
  Json names = Json::array();
  for (const DTypeInfo& info : dtype_table())
    if (exporter.supports(info.id)) names.push_back(info.name);
  return names;
}

std::vector<std::string_view> option_ids(const Exporter& exporter) {
  std::vector<std::string_view> ids;
  for (const auto& option : convert_options())
    if (("," + std::string(exporter.options) + ",").find("," + std::string(option.id) + ",") !=
        std::string::npos)
      ids.push_back(option.id);
  return ids;
}

std::string flags_of(const Exporter& exporter) {
  std::string text;
  for (const std::string_view id : option_ids(exporter)) text += (text.empty() ? "" : ", ") + flag_of(id);
  return text;
}

int formats(const Context& context) {
  if (context.json) {
    Json json = {{"importers", Json::array()}, {"exporters", Json::array()}};
    for (const Importer& importer : importers())
      json["importers"].push_back(
          {{"id", importer.id}, {"name", importer.name}, {"extensions", importer.extensions}});
    for (const Exporter& exporter : exporters())
      json["exporters"].push_back({{"id", exporter.id},
                                   {"name", exporter.name},
                                   {"extension", exporter.extension},
                                   {"options", option_ids(exporter)},
                                   {"dtypes", dtypes_of(exporter)}});
    print_json(json);
    return kDone;
  }
  Table read({"reads", "extension", "what"}, {kLeft, kLeft, kLeft});
  for (const Importer& importer : importers())
    read.row({std::string(importer.id), std::string(importer.extensions), std::string(importer.name)});
  Table write({"writes", "extension", "what", "options"}, {kLeft, kLeft, kLeft, kLeft});
  for (const Exporter& exporter : exporters())
    write.row({std::string(exporter.id), std::string(exporter.extension), std::string(exporter.name),
               flags_of(exporter)});
  fmt::print("{}\n{}", read.text(context.colour), write.text(context.colour));
  return kDone;
}

}  // namespace

Action setup_formats(CLI::App&) {
  return [](Context& context) { return formats(context); };
}

}  // namespace loadline::cli
