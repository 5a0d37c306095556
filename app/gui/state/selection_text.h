// What is selected as text that can be pasted elsewhere.
#pragma once

#include "app/gui/state/document.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace loadline::gui {

enum class CopyForm : std::uint8_t { text, json, markdown };
inline constexpr std::array<std::string_view, 3> kCopyFormNames = {"text", "json", "markdown"};

// Facts about the selected tensor, module, block, operator or load; about the model if nothing is selected.
// Text has a line "name: value" for each, Markdown a table. Empty without a model.
std::string selection_text(const Document& document, CopyForm form);

}  // namespace loadline::gui
