// Whether the load fits, in a few words. No ImGui.
#pragma once

#include "app/gui/state/document.h"

#include <cstdint>
#include <string>

namespace loadline::gui {

class Document;

struct Verdict {
  enum class State : std::uint8_t { unknown, unjudged, fits, incomplete, over } state = State::unknown;
  std::string words = {};  // "fits, 2.20 GiB left"
  // The first block over the budget, why the load cannot be done, or what is missing; escaped.
  std::string first = {};
};

// Of the load that the timeline shows; unknown while it is being projected.
Verdict verdict_of(const Document& document);

}  // namespace loadline::gui
