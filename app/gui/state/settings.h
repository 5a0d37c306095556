// The settings of the window, and which of them it remembers from one start to the next.
#pragma once

#include "core/load/answer/rows.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// How the map colors tensors; without another model to differ from, `diff` is `role`.
enum class ColorBy { role, dtype, layer, shard, diff };
inline constexpr std::array<std::string_view, 5> kColorNames = {"role", "dtype", "layer", "shard", "diff"};

// How the comparison is shown; `order` is where the order itself is arranged.
enum class CompareView : std::uint8_t { table, curves, overlay, order };
inline constexpr std::array<std::string_view, 4> kCompareViewNames = {"table", "curves", "overlay", "order"};
struct CompareSort {
  load::RowSort by = load::RowSort::fit;
  bool ascending = true;
  bool operator==(const CompareSort&) const = default;
};

// The parts of the window. Sizes are logical; 0 follows the window until the user drags the part.
struct Layout {
  float tree = 0, inspector = 0, timeline = 0;
  bool show_tree = true, show_inspector = true, show_timeline = true;
  bool operator==(const Layout&) const = default;
};

// What the window remembers from one start to the next.
struct Remembered {
  Layout layout;
  float scale = 0;  // pixels per logical unit that the user chose; 0: the monitor's
  bool dark = true;
  bool follows_desktop = false;                          // dark is what the desktop wants, once that is known
  std::vector<std::string> recent = {}, favorites = {};  // paths of models, the newest first
  std::vector<std::string> folders = {};                 // in which the start page looks for models
  std::map<std::string, std::int64_t> used = {};         // when a path was opened last, seconds since 1970
  // What the start page asks of models: tokens of the prompt, and in all; 0: no more than the prompt.
  std::uint64_t prompt = 512, context = 0;
  bool operator==(const Remembered&) const = default;
};
inline constexpr std::size_t kMostRecent = 12, kMostFavorites = 50, kMostUsedPaths = 500;

// Display settings that do not depend on the model.
struct Settings : Remembered {
  std::string panel = "map";
  std::map<std::string, std::string, std::less<>> last_in_tab =
      {};                 // the panel of each tab that was shown last
  float shown_scale = 1;  // that of the last frame
  bool full_screen = false;
  ColorBy color_by = ColorBy::role;
  CompareView compare_view = CompareView::table;
  CompareSort compare_sort;
  bool fits_only = false;          // the comparison leaves out what does not fit
  bool operators_as_list = false;  // else as modules
  bool fold_operators = true;      // repeated modules share one line
};

// --- The file of what is remembered.

struct WindowState : Remembered {
  WindowState() { follows_desktop = true; }  // the theme of a window that was never shown before
  int width = 0, height = 0;                 // logical; 0: never shown
  bool operator==(const WindowState&) const = default;
};

// The state as a file's text, and back. What a text does not say, or says wrongly, is as it is by default: a
// state is no reason not to start.
std::string state_text(const WindowState& state);
WindowState parse_state(std::string_view text);

// As parse_state(), of a file that may be missing.
WindowState read_state(const std::string& path);
// Writes the file and its folder. Throws Error{io}.
void write_state(const WindowState& state, const std::string& path);

// Puts a path of the recent ones first, once, and notes when that was.
void remember(Remembered& remembered, const std::string& path, std::int64_t now);

}  // namespace loadline::gui
