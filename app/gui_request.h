// What the command line asks of the window: the only type that app/cli and app/gui share.
#pragma once

#include "app/report/does_it_run.h"
#include "core/forward/model/assets_loader.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/rates.h"
#include "importers/stores.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace loadline {

struct GuiRequest {
  std::vector<std::string> paths = {};  // models to open; none = start page
  std::string request;            // file of a load request, for the last of them or the model that it names
  std::string screenshot;         // PNG to write offscreen instead of opening a window; needs no display
  std::string script;             // file of commands to play (app/gui/frame/gui_app.h)
  bool offscreen = false;         // play the script without a window and without a display
  std::string panel;              // id of the panel to show first; empty = the default
  std::string lesson;             // id of a lesson to play; empty = none
  std::string lesson_folder;      // of the user's own lessons; empty: there are none
  importers::StorePlaces stores;  // where models lie; the hub cache also for org/name
  report::KeptFacts facts;        // what was read of them before, not read yet
  std::string state_file;         // what the window remembers; empty: nothing
  std::shared_ptr<const forward::ForwardAssets>
      assets;                                // what a configuration alone may be of; null: what is built in
  std::vector<load::Target> targets;         // data sheets to choose a budget from; empty: those built in
  std::optional<load::MeasuredRates> rates;  // what times are estimated with; absent: assumed ones
  int width = 1280;  // logical size; the picture has width*scale by height*scale pixels
  int height = 800;
  std::stop_token stop;  // requested by Ctrl-C: the window closes as if its close button was pressed
  bool dark = true;
  bool follows_desktop = false;  // the theme is the desktop's, dark until that is known
  bool theme_given = false;      // else the theme is the one remembered
  bool size_given = false;
  float scale = 0;  // 0 = what the monitor says (1 for a screenshot)
};

namespace gui {

// Opens a window and returns when it is closed; with a screenshot or a script to play without a display,
// draws offscreen instead. Returns the exit code. Throws Error. Only in programs with the window.
int run_gui(const GuiRequest& request);

}  // namespace gui
}  // namespace loadline
