// A document in words: whether the load fits, and what is selected.
#pragma once

#include "app/gui/state/document.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace loadline::gui {

// --- Whether the load that is asked for fits, in a few words. No ImGui.

class Document;

struct Verdict {
  enum class State : std::uint8_t { unknown, unjudged, fits, over } state = State::unknown;
  std::string words = {};  // "fits, 2.20 GiB left"
  std::string first = {};  // the first block over the budget, or why the load cannot be done; escaped
};

// Of the load that the timeline shows; unknown while it is being projected.
Verdict verdict_of(const Document& document);

// --- What is selected as text that can be pasted elsewhere.

enum class CopyForm : std::uint8_t { text, json, markdown };
inline constexpr std::array<std::string_view, 3> kCopyFormNames = {"text", "json", "markdown"};

// Facts about the selected tensor, module, block, operator or load; about the model if nothing is selected.
// Text has a line "name: value" for each, Markdown a table. Empty without a model.
std::string selection_text(const Document& document, CopyForm form);

}  // namespace loadline::gui
