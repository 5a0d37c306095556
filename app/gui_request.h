// What the command line asks of the window: the only type that app/cli and app/gui share.
#pragma once

#include "core/forward/assets.h"
#include "core/load/rates.h"
#include "core/load/targets.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// What a script may hold (app/gui/script.h plays it); loadline gui --help prints it.
inline constexpr std::string_view kScriptHelp =
    R"(Commands of a script, one per line; the argument is the rest of the line, # begins a comment:
  open PATH, demo, close      another model, the built-in one, none
  wait                        until no job is left
  panel ID                    shows a panel; a wrong name lists them
  theme [dark|light]          alone: the other one; size WxH, scale N: of the window
  select NAME, deselect       a tensor
  zoom [MODULE], zoom-out     of the map; zoom alone: the whole model
  color role|dtype|layer|shard
  filter [TERMS]              as inspect --filter
  sort COLUMN [descending]    of the tensors
  find [TEXT]                 types into the search box of the panel; find-tensor: shows the one of tensors
  metadata KEY                looks at an entry; element N scrolls its array there, search TEXT looks through it
  doctor                      looks into the files for what makes loading dear
  batch N, seq N, past N      of the forward pass
  profile ID                  how its operators are run
  operators modules|list      how they are shown; fold on|off: repeated modules as one
  operator N                  shows one, in Operators and Lifetimes
  method ID, order ID         of the load; ring SIZE, slots N, activations SIZE
  cast DTYPE|none             shards SIZE|none, flush SIZE|none, limit SIZE, gpu-layers N|all: where the method knows them
  max-memory DEVICE[,HOST]|none               accelerate's automatic map; place EXPR=PLACE[; ...]|none: rules, as plan --place
  memory discrete|unified     preset ID|none, device-budget SIZE|none, host-budget SIZE|none, allocator ID
  every-order on|off          whether the methods are compared in every order
  methods-view table|curves|overlay|order     of the comparison; overlay METHOD: shows or hides its curve
  methods-sort COLUMN [descending]            a wrong column lists them
  move-item FROM TO, unfold-item N            rows of the order as it is listed, from 1
  load-order FILE, save-order FILE            names of tensors, one a line; save-chart FILE.svg|FILE.html: the comparison
  arena device|host|staging|pass|file|example   what the panel Arena packs; open FILE.csv opens a problem
  arena-time SECONDS          arena-threads N, arena-capacity SIZE|none, arena-number N: of several arenas
  arena-zoom [TIME0 TIME1 [LOW HIGH]]         shares of the plot; alone: everything
  arena-view packing|steps    arena-rule ID, arena-step N|end, arena-play on|off: greedy beside search
  first-token on|off          whether the timeline goes on to the first token
  device ID, upload           to a GPU
  convert EXPORTER FILE       browse [FOLDER]: the dialog that opens files
  mouse X Y, click X Y, double-click X Y      offscreen, in logical units
  screenshot FILE.png         frames N: draws so many
  expect-notice TEXT          fails unless a notice contains it
  quit                        ends the script, and a window
)";

struct GuiRequest {
  std::string path;        // model to open; empty = start page
  std::string screenshot;  // PNG to write offscreen instead of opening a window; needs no display
  std::string script;      // file of commands to play (app/gui/script.h)
  bool offscreen = false;  // play the script without a window and without a display
  std::string panel;       // id of the panel to show first; empty = the default
  std::string hub_cache;   // for org/name
  std::shared_ptr<const ForwardAssets>
      assets;                          // what a configuration alone may be of; null: what is built in
  std::vector<DevicePreset> presets;   // devices to choose a budget from; empty: those built in
  std::optional<MeasuredRates> rates;  // what times are estimated with; absent: assumed ones
  int width = 1280;                    // logical size; the picture has width*scale by height*scale pixels
  int height = 800;
  std::stop_token stop;  // requested by Ctrl-C: the window closes as if its close button was pressed
  bool dark = true;
  float scale = 0;  // 0 = what the monitor says (1 for a screenshot)
};

}  // namespace loadline
