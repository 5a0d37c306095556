// What lies over the window: the sheet of the verdict, the menu of the selection, palette, keys, manual, file
// browser.
#pragma once

#include "app/gui/parts/theme.h"
#include "app/gui/state/base/coordinates.h"
#include "app/gui/state/base/window_requests.h"
#include "app/report/does_it_run.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

class Document;
struct FolderListing;
class Workspace;

// --- The sheet behind the verdict (advice.cpp).

struct Ui;
ImU32 verdict_color(const Ui& ui, const report::RunVerdict& verdict);
// Whether tokens can be chosen, and the slider that does so.
bool has_context(const Document& document);
void draw_context(Workspace& workspace, const Ui& ui, float width);
// The verdict, each change with its figures before and after, smaller files, and buttons that take them over.
// Searches for them while it is drawn.
void draw_advice(Workspace& workspace, const Ui& ui);

// --- What can be done with what is selected (menu.cpp).

// All that makes sense now. `selected` may be of an earlier state of the document, which has a model.
std::vector<Offer> offers_of(const Workspace& workspace, const Selected& selected);
// Throws what its actions throw.
void run_offer(Workspace& workspace, const Offer& offer);

// Opens when the document wants it: where the mouse is, or for the keyboard at `place`.
class SelectionMenu {
 public:
  void draw(Workspace& workspace, const Ui& ui, ImVec2 place);

 private:
  std::vector<Offer> offers_;
  std::string title_;
  bool by_key_ = false;  // a key opened it
};

// --- What the palette offers for what was typed: actions, options with values, panels, tensors and modules.

struct PaletteItem {
  std::string title;        // "Show the panel Methods"
  std::string hint;         // a shortcut, or what kind of thing it is
  std::string word;         // of a script: an action, or an option of the load
  std::string argument;     // of that word
  bool needs_more = false;  // the argument is still to be typed: `word` goes into the field
  std::string takes = {};   // what that is, as in the manual: "FORMAT FILE", "on|off"
};

// The best `most` of what matches, best first: its words begin like those typed, or contain their letters in
// order. A whole line of a script is an item of its own.
std::vector<PaletteItem> palette_items(const Workspace& workspace, std::string_view typed, std::size_t most);
// How well `text` matches what was typed: the less the better; nothing if it does not.
std::optional<int> match_rank(std::string_view text, std::string_view typed);
// Runs an item. Throws Error.
void run_item(Workspace& workspace, const PaletteItem& item);

// --- The palette, which runs everything by its name, and the sheet of keys.

class Palette {
 public:
  bool is_open() const { return open_; }
  // Draws it from an OpenPalette until something is run or Escape is pressed.
  void draw(Workspace& workspace, const Ui& ui);

 private:
  void refresh(const Workspace& workspace);
  void run(Workspace& workspace, std::size_t at);
  void put_used_first();

  bool open_ = false;
  bool to_end_ = false;  // the caret goes behind a text that was put into the field
  std::string typed_, listed_;
  std::vector<PaletteItem> items_, used_;  // used_: run before, the last one first
  std::size_t current_ = 0;
  std::uint64_t document_ = 0;
};

// The keys of all actions.
class KeySheet {
 public:
  bool is_open() const { return open_; }
  // Draws it from an OpenKeys until it is left.
  void draw(Workspace& workspace, const Ui& ui);

 private:
  bool open_ = false;
};

// --- Draws a page of the manual.

// Markdown in lines as wide as the region; code and tables may be wider. Scrolls to the heading `to`, if
// there is one.
void draw_manual_page(const Ui& ui, std::string_view markdown, std::string_view to = {});

inline constexpr std::string_view kWindowPage = "window";
// The heading on that page of what has the keyboard: "Timeline", or the title of the panel shown.
std::string_view manual_section(const Workspace& workspace);

// --- The manual, drawn over the window.

class ManualSheet {
 public:
  bool is_open() const { return !topic_.empty(); }
  void close() { topic_.clear(); }
  // Draws the page of an OpenManual, with a way to close it.
  void draw(Workspace& workspace, const Ui& ui);

 private:
  std::string topic_;           // empty: closed
  std::string section_;         // to which the page is scrolled once
  std::string_view more_ = {};  // the page that has more about the panel
};

// --- The dialog that opens a model, or finds a path to write to: places, a path line, a list of the folder.

// What is typed filters the list, and leads into other folders; Tab completes it.
class FileBrowser {
 public:
  // Draws it from an OpenBrowser until a path is picked or Escape is pressed.
  void draw(Workspace& workspace, const Ui& ui);
  bool is_open() const { return open_; }

 private:
  void open(Workspace& workspace, OpenBrowser asked);
  bool writes() const { return !asked_.asker.empty(); }
  void draw_places(Workspace& workspace, const Ui& ui, ImVec2 size);
  bool draw_path(Workspace& workspace, const Ui& ui);
  void draw_list(Workspace& workspace, const Ui& ui, ImVec2 size);
  void draw_entry(Workspace& workspace, const Ui& ui, std::size_t i);
  void draw_buttons(Workspace& workspace, const Ui& ui, bool typing);
  void handle_keys(Workspace& workspace, bool typing);
  void take_listing(const Workspace& workspace);
  void follow_typing(Workspace& workspace);
  void filter(const Workspace& workspace);
  void complete(ImGuiInputTextCallbackData& field) const;
  void go(Workspace& workspace, const std::string& folder);
  void enter(Workspace& workspace, std::size_t row);
  void accept(Workspace& workspace);
  void pick(Workspace& workspace, const std::string& path);
  // The last part of the path line, which filters the list; and the folder before it.
  std::string last_part() const;
  std::string folder_part() const;
  std::string path_of(const Workspace& workspace, std::size_t row) const;

  OpenBrowser asked_;
  bool open_ = false;
  bool appearing_ = false;
  bool focus_ = false;             // the path gets the keyboard at the next frame
  std::string path_;               // the line at the top
  std::string seen_;               // path_ of the last frame
  std::string listed_;             // the folder of the list
  std::string asked_folder_;       // the one that was asked for last
  std::string name_;               // of the file to write
  bool typed_ = false;             // path_ is a person's, and stays when a list arrives
  std::vector<std::size_t> rows_;  // the entries that are listed
  std::size_t current_ = 0;        // among rows_
  bool scroll_ = false;
  std::shared_ptr<const FolderListing> filtered_;  // the one that rows_ are of
};

}  // namespace loadline::gui
