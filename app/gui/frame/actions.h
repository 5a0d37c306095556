// What a user can do besides load options, as one table; how the arguments are read: numbers, names,
// conversions, exports.
#pragma once

#include "app/gui/state/document.h"
#include "app/gui/state/workspace.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::gui {

// --- What a user can do besides load options, as one table. Buttons, shortcuts, the palette and scripts run
// its rows.

enum class Argument : std::uint8_t { none, optional, required };

// `run` throws Error if the action cannot be done, even if `enabled` is true. A later failure becomes a
// notice.
struct Action {
  std::string_view id;  // the word in a script
  std::string_view title;
  // "Ctrl+O", or a single key, which is ignored while the user types text; empty: no shortcut.
  std::string_view shortcut;
  Argument argument;                  // one line of text
  bool (*enabled)(const Workspace&);  // whether the action makes sense now
  void (*run)(Workspace&, const std::string& argument);
};

std::span<const Action> actions();
// The action with this id; null for an unknown id.
const Action* find_action(std::string_view id);
// Runs an action for a button: a failure becomes a notice. The id must be in the table.
void run_action(Workspace& workspace, std::string_view id);

// --- What the two tables of actions share.

// The rows that actions() lists last: those of model_actions.cpp.
std::span<const Action> model_actions();

// For `enabled`.
bool always(const Workspace& workspace);
bool has_model(const Workspace& workspace);
// The model shown. Throws Error{usage} if there is none.
const Model& model_of(const Workspace& workspace);
// Whether a COLUMN is not followed by "descending", which is taken off. Throws Error{usage} for another word.
bool ascending(std::string_view& column);

// --- Parses the arguments of script lines: numbers, names from a list, pairs of words, on or off.

[[noreturn]] inline void refuse(std::string_view detail) { throw Error(ErrorCode::usage, detail); }

template <typename Number>
Number parse_number(std::string_view text, Number least, Number most) {
  const std::optional<Number> value = text_as<Number>(text);
  // in this form a NaN is out of range
  if (!value || !(*value >= least && *value <= most))
    refuse(fmt::format("'{}' is not a number between {} and {}", text, least, most));
  return *value;
}

// The position of a word in a list of names.
inline std::size_t position(std::string_view word, std::span<const std::string_view> names,
                            std::string_view what) {
  const auto found = std::ranges::find(names, word);
  if (found == names.end())
    refuse(fmt::format("no {} '{}'; there are: {}", what, word, fmt::join(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

// The two words of an argument.
inline std::array<std::string_view, 2> two_words(std::string_view argument, std::string_view what) {
  const std::size_t space = argument.find(' ');
  if (space == std::string_view::npos) refuse(fmt::format("'{}' is not {}", argument, what));
  return {argument.substr(0, space), argument.substr(space + 1)};
}

inline bool on_or_off(const std::string& word) {
  if (word != "on" && word != "off") refuse(fmt::format("'{}' is neither on nor off", word));
  return word == "on";
}

// --- The words that ask for a conversion: "gguf out.gguf --outtype q8_0".

// FORMAT FILE [--OPTION VALUE]..., with the options of `loadline convert`; the file may hold blanks. What is
// written replaces the file that is there, and is verified. Throws Error{usage}.
ConvertTask convert_words(std::string_view words);

// --- What the actions "export" and "export-play" are told, in words.

// "map.png", "timeline plan.svg", "window all.png --size 1920x1080 --scale 2 --theme light": the size of the
// part, logical, and the pixels of each unit. Throws Error{usage} for another kind of file.
ExportRequest view_request(const std::string& words);
// "load.gif", "load.png 40": with the number of frames behind it. Throws likewise.
ExportRequest play_request(const std::string& words);

}  // namespace loadline::gui
