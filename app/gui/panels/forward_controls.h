// Controls for the forward pass, shared by several panels: sizes, profile, types, logits.
#pragma once

#include "app/gui/parts/option_controls.h"
#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

#include <string_view>

namespace loadline::gui {

// Draws the options of the pass, on as many lines as they need. Options without effect are left out.
void forward_controls(Document& document, const Ui& ui, OptionControls& controls);
// If no operators are known, draws the reason and the known figures in place of a panel's content, and
// returns true.
bool forward_absent(const Document& document, const Ui& ui);

// The lanes in which a pass is drawn, with their names and colours.
enum class PassLane { weights, cache, activations, temporaries };
inline constexpr std::size_t kPassLanes = 4;
std::string_view pass_lane_name(PassLane lane);
ImU32 pass_lane_color(const Theme& theme, PassLane lane);

}  // namespace loadline::gui
