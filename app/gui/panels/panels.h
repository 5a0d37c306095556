// The functions that make each panel, for the table of panels and for panels made of others.
#pragma once

#include "app/gui/panels/panel.h"

namespace loadline::gui {

std::unique_ptr<Panel> make_map_panel();
std::unique_ptr<Panel> make_lifetimes_panel();
std::unique_ptr<Panel> make_arena_panel();
std::unique_ptr<Panel> make_load_panel();
std::unique_ptr<Panel> make_methods_panel();
std::unique_ptr<Panel> make_tensors_panel();
std::unique_ptr<Panel> make_model_panel();
std::unique_ptr<Panel> make_metadata_panel();
std::unique_ptr<Panel> make_operators_panel();
std::unique_ptr<Panel> make_findings_panel();
std::unique_ptr<Panel> make_convert_panel();
std::unique_ptr<Panel> make_upload_panel();
std::unique_ptr<Panel> make_diff_panel();
std::unique_ptr<Panel> make_values_panel();
// Not in the table of tabs: they have fixed places in the window.
std::unique_ptr<Panel> make_tree_panel();
std::unique_ptr<Panel> make_inspector_panel();
std::unique_ptr<Panel> make_timeline_panel();
std::unique_ptr<Panel> make_start_panel();
std::unique_ptr<Panel> make_lesson_panel();

}  // namespace loadline::gui
