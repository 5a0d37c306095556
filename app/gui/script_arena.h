// The commands of a script that are about the arena panel; kScriptHelp says what they do.
#pragma once

#include "app/gui/gui_app.h"

#include <string>

namespace loadline::gui {

void choose_arena(GuiApp& app, const std::string& id);
void set_arena_time(GuiApp& app, const std::string& text);
void set_arena_threads(GuiApp& app, const std::string& text);
void set_arena_capacity(GuiApp& app, const std::string& size);
void set_arena_number(GuiApp& app, const std::string& text);
void zoom_arena(GuiApp& app, const std::string& text);
void show_arena_view(GuiApp& app, const std::string& view);
void set_arena_rule(GuiApp& app, const std::string& id);
void set_arena_step(GuiApp& app, const std::string& text);
void play_arena(GuiApp& app, const std::string& word);

}  // namespace loadline::gui
