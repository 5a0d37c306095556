// Whether the load fits, in a few words. No ImGui.
#pragma once

#include "app/gui/state/document.h"

#include <cstdint>
#include <string>

namespace loadline::gui {

class Document;

struct Verdict {
  enum class State : std::uint8_t { unknown, unjudged, fits, over } state = State::unknown;
  std::string words = {};  // "fits, 2.20 GiB left"
  std::string first = {};  // the first block over the budget, or why the load cannot be done; escaped
};

// Of the load that the timeline shows; unknown while it is being projected.
Verdict verdict_of(const Document& document);

}  // namespace loadline::gui
