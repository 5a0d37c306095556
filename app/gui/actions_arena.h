// The actions that are about the arena panel: what the mouse does there, by name.
#pragma once

#include "app/gui/workspace.h"

#include <string>

namespace loadline::gui {

void choose_arena(Workspace& workspace, const std::string& id);
void set_arena_time(Workspace& workspace, const std::string& seconds);
void set_arena_threads(Workspace& workspace, const std::string& number);
void set_arena_capacity(Workspace& workspace, const std::string& size);
void set_arena_number(Workspace& workspace, const std::string& number);
void zoom_arena(Workspace& workspace, const std::string& shares);  // TIME0 TIME1 [LOW HIGH]
void show_arena_view(Workspace& workspace, const std::string& view);
void set_arena_rule(Workspace& workspace, const std::string& id);
void set_arena_step(Workspace& workspace, const std::string& number);
void play_arena(Workspace& workspace, const std::string& word);

}  // namespace loadline::gui
