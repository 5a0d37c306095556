// What the actions "export" and "export-play" are told, in words.
#pragma once

#include "app/gui/state/export_request.h"

#include <string>

namespace loadline::gui {

// "map.png", "timeline plan.svg", "window all.png". Throws Error{usage} for another kind of file.
ExportRequest view_request(const std::string& words);
// "load.gif", "load.png 40": with the number of frames behind it. Throws likewise.
ExportRequest play_request(const std::string& words);

}  // namespace loadline::gui
