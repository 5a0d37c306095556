// loadline help: shows the manual on a terminal.
#include "app/cli/base/commands.h"
#include "app/report/manual.h"
#include "app/report/markdown_text.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

using report::ManualPage;

int help(const Context& context, const std::string& topic) {
  if (!topic.empty()) {
    const ManualPage& page = report::find_manual_page(topic);
    if (context.json)
      print_json({{"topic", page.id}, {"title", page.title}, {"markdown", page.text}});
    else
      fmt::print("{}", report::markdown_text(page.text, context.prose_columns, context.colour));
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
  app.add_option("TOPIC", *topic, "the page to print");
  return [topic](Context& context) { return help(context, *topic); };
}

}  // namespace loadline::cli
