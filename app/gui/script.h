// A small language that drives the window: how tests and demos do what a user does.
#pragma once

#include "app/gui/gui_app.h"

#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// One command per line; empty lines and lines that begin with # say nothing. The argument is the rest
// of the line.
//   open PATH | demo | close        wait                      until no job is left
//   panel ID                        theme dark|light
//   size WxH                        scale N
//   select NAME                     deselect
//   zoom MODULE                     color role|dtype|layer|shard       zoom alone: the whole model
//   filter TERMS                    sort COLUMN [descending]          the grammar of core/graph/filter.h
//   find TEXT                       types into the search box of the panel: tensors, metadata, operators
//   metadata KEY                    looks at an entry of the metadata
//   element N                       scrolls the array looked at to an element
//   search TEXT                     through all elements of the array looked at
//   operator N                      shows an operator by its number
//   doctor                          looks into the files for what makes loading dear
//   method ID | order ID            ring SIZE | slots N | activations SIZE
//   device ID                       upload
//   convert EXPORTER FILE           browse [FOLDER]
//   mouse X Y | click X Y | double-click X Y      offscreen, in logical units
//   screenshot FILE.png             frames N
//   expect-notice TEXT              fails unless a notice contains TEXT
//   quit                            ends the script and a real window
struct ScriptLine {
  int number = 0;
  std::string command;
  std::string argument;
};

// Throws Error{usage} `FILE: line N: ...` for unknown commands and missing arguments.
std::vector<ScriptLine> parse_script(std::string_view text, const std::string& file);

// Plays the lines in order, drawing as it goes. A failing command throws its Error with the line's
// number. Returns true if the script asked to quit.
bool play_script(GuiApp& app, const std::vector<ScriptLine>& lines, const std::string& file);

}  // namespace loadline::gui
