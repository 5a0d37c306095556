// The choice of a forward pass, as several panels offer it: sizes, profile, types, logits.
#pragma once

#include "app/gui/panels/option_controls.h"
#include "app/gui/ui.h"
#include "app/gui/workspace.h"

#include <string_view>

namespace loadline::gui {

// The options of the pass, on as many lines as they need; those that nothing depends on are left out.
void forward_controls(Document& document, const Ui& ui, OptionControls& controls);
// Instead of what a panel would show where no operators are known: why, and what is known. True if it did.
bool forward_absent(const Document& document, const Ui& ui);

// What is drawn of a pass, in the colours of its lanes.
enum class PassLane { weights, cache, activations, temporaries };
inline constexpr std::size_t kPassLanes = 4;
std::string_view pass_lane_name(PassLane lane);
ImU32 pass_lane_color(const Theme& theme, PassLane lane);

}  // namespace loadline::gui
