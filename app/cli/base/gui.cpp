// loadline gui: opens the window, or draws one frame of it into a picture file.
#include "app/cli/base/commands.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/base/rates.h"
#include "app/gui_request.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct GuiFlags {
  GuiRequest request;
  std::string theme = "dark";
  std::string size = "1280x800";
};

void parse_window_size(const std::string& text, GuiRequest& request) {
  int width = 0, height = 0, used = 0;
  if (std::sscanf(text.c_str(), "%5dx%5d%n", &width, &height, &used) != 2 ||
      static_cast<std::size_t>(used) != text.size() || width < 1024 || height < 600 || width > 7680 ||
      height > 4320)
    throw Error(ErrorCode::usage, "--size {}: write WIDTHxHEIGHT, from 1024x600 to 7680x4320", text);
  request.width = width;
  request.height = height;
}

}  // namespace

Action setup_gui(CLI::App& app) {
  auto options = std::make_shared<GuiFlags>();
  GuiRequest& request = options->request;
  app.add_option("PATH", request.paths, "models to open, each in a tab");
  app.add_option("--request", request.request, "open a saved request: its model, or the last PATH");
  app.add_option("--screenshot", request.screenshot, "draw one frame into this PNG, without a display");
  auto* const script = app.add_option("--script", request.script, "play a file of commands");
  app.add_flag("--offscreen", request.offscreen, "play the script without a display")->needs(script);
  app.add_option("--panel", request.panel, "panel to show first");
  app.add_option("--lesson", request.lesson, "play this lesson (`loadline lesson list`)")->type_name("ID");
  auto* const size = app.add_option("--size", options->size, "logical size of the window [as remembered]");
  auto* const theme =
      app.add_option("--theme", options->theme, "dark, light, or the system's [as remembered]")
          ->check(CLI::IsMember({"dark", "light", "system"}));
  app.add_option("--scale", request.scale, "pixels per logical pixel [the monitor's]")
      ->check(number_range(0.5, 4));
  app.footer("`loadline help scripting` lists the words of a script.");
  return [options, size, theme](Context& context) {
    if (context.run_gui == nullptr) throw Error(ErrorCode::unsupported, "built without the window");
    GuiRequest& wanted = options->request;
    parse_window_size(options->size, wanted);
    if (!wanted.screenshot.empty() && !wanted.screenshot.ends_with(".png"))
      throw Error(ErrorCode::usage, "--screenshot {}: pictures are PNG files",
                  safe_display(wanted.screenshot));
    wanted.dark = options->theme != "light";
    wanted.follows_desktop = options->theme == "system";
    wanted.size_given = size->count() > 0;
    wanted.theme_given = theme->count() > 0;
    wanted.hub_cache = context.hub_cache;
    if (!context.config_folder.empty()) {
      wanted.state_file = context.config_folder + "/window.json";
      wanted.lesson_folder = context.config_folder + "/lessons";
    }
    wanted.assets = context.assets();
    const Targets targets = load_targets(context.config_folder);
    if (!context.quiet)
      for (const std::string& fault : targets.faults) complain("left out: " + fault);
    wanted.targets = targets.rows;
    wanted.rates = kept_rates(context);
    wanted.stop = context.stop;
    const int code = context.run_gui(wanted);
    if (context.json && !wanted.screenshot.empty())
      print_json({{"screenshot", json_text(wanted.screenshot)}});
    return code;
  };
}

}  // namespace loadline::cli
