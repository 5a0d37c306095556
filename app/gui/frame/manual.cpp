// The manual: words to lines, blocks of a page, the sheet.

#include "app/report/manual.h"

#include "app/gui/frame/overlays.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/theme.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/workspace.h"
#include "app/gui/window/input.h"
#include "app/report/markdown.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <imgui_internal.h>

namespace loadline::gui {

// --- Draws texts whose words differ in emphasis, broken into lines.

namespace {

using report::Block;
using report::BlockKind;
using report::Emphasis;

// The width of a text in one line, and of its widest word, in pixels.
struct RichWidth {
  float line = 0;
  float word = 0;
};

// A part of a word in one font.
struct Piece {
  std::string_view text;
  Emphasis emphasis = Emphasis::none;
  float width = 0;
  bool same_run = false;  // as the piece before: the ground of code goes on between the two
};

// What no line break divides: "`a`," is one word of two pieces.
struct Word {
  std::vector<Piece> pieces;
  float width = 0;
};

ImFont* font_of(const Ui& ui, Emphasis emphasis) {
  if (emphasis == Emphasis::code) return ui.fonts.mono;
  return emphasis == Emphasis::strong ? ui.fonts.strong : ui.fonts.body;
}

float blank(ImFont* of) {
  const FontScope font(of);
  return text_width(" ");
}

float line_height(const Ui& ui) { return ui.fonts.body->FontSize + ui.px(5); }

void add_piece(const Ui& ui, std::vector<Word>& words, Piece piece, bool new_word) {
  const FontScope font(font_of(ui, piece.emphasis));
  piece.width = text_width(piece.text);
  if (new_word || words.empty()) words.emplace_back();
  words.back().width += piece.width;
  words.back().pieces.push_back(piece);
}

std::vector<Word> words_of(const Ui& ui, const report::RichText& text) {
  std::vector<Word> words;
  bool after_blank = false;
  for (const report::TextRun& run : text) {
    const std::string_view all = run.text;
    bool same_run = false;
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = std::min(all.find(' ', at), all.size());
      if (end > at) {
        add_piece(ui, words, {all.substr(at, end - at), run.emphasis, 0, same_run}, after_blank);
        after_blank = false;
        same_run = true;
      }
      after_blank = after_blank || end < all.size();
      at = end + 1;
    }
  }
  return words;
}

constexpr float kGround = 3;  // how far the ground of code reaches beyond its words

// The gap before a word; beside code it leaves room for the ground.
float gap_before(const Ui& ui, const Word& word, const Word& previous) {
  const Piece &first = word.pieces.front(), &last = previous.pieces.back();
  if (first.same_run) return blank(font_of(ui, first.emphasis));
  const bool beside = first.emphasis == Emphasis::code || last.emphasis == Emphasis::code;
  return blank(ui.fonts.body) + (beside ? ui.px(kGround) : 0);
}

// `from`: where the ground of code begins.
void draw_piece(const Ui& ui, const Piece& piece, ImVec2 at, float from) {
  const ImFont* body = ui.fonts.body;
  ImFont* font = font_of(ui, piece.emphasis);
  if (piece.emphasis == Emphasis::code)
    ImGui::GetWindowDrawList()->AddRectFilled(
        {from, at.y - ui.px(1)}, {at.x + piece.width + ui.px(kGround), at.y + body->FontSize + ui.px(1)},
        ui.theme->raised, ui.px(3));
  const FontScope scope(font);
  put_text({at.x, at.y + body->Ascent - font->Ascent}, ui.theme->text, piece.text);
}

float lay_out(const Ui& ui, const report::RichText& text, ImVec2 at, float width, bool draw) {
  ImVec2 pen = {0, 0};
  const Word* previous = nullptr;  // in the same line
  for (const std::vector<Word> words = words_of(ui, text); const Word& word : words) {
    const float gap = previous == nullptr ? 0 : gap_before(ui, word, *previous);
    const float end = pen.x;  // of the word before
    const bool breaks = previous != nullptr && pen.x + gap + word.width > width;
    pen = breaks ? ImVec2{0, pen.y + line_height(ui)} : ImVec2{pen.x + gap, pen.y};
    for (const Piece& piece : word.pieces) {
      const bool goes_on = piece.same_run && pen.x > 0;
      const float from = goes_on ? end : pen.x - ui.px(kGround);
      if (draw) draw_piece(ui, piece, at + pen, at.x + from);
      pen.x += piece.width;
    }
    previous = &word;
  }
  return pen.y + line_height(ui);
}

RichWidth rich_width(const Ui& ui, const report::RichText& text) {
  RichWidth width;
  const std::vector<Word> words = words_of(ui, text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    width.line += words[i].width + (i > 0 ? gap_before(ui, words[i], words[i - 1]) : 0);
    width.word = std::max(width.word, words[i].width);
  }
  return width;
}

// The height of a text in lines of `width` pixels; draw_rich_text() draws it there, and returns it too. Words
// that are wider stick out.
float rich_height(const Ui& ui, const report::RichText& text, float width) {
  return lay_out(ui, text, {}, width, false);
}

float draw_rich_text(const Ui& ui, const report::RichText& text, ImVec2 at, float width) {
  return lay_out(ui, text, at, width, true);
}

}  // namespace

// --- Draws the blocks of a page one below the other; what is out of sight only takes its place.

namespace {

// Takes `size` from the region; false if it is out of sight.
bool take(ImVec2 size) {
  ImGui::Dummy(size);
  return ImGui::IsItemVisible();
}

void draw_text_block(const Ui& ui, const report::RichText& text, float indent, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (take({width, rich_height(ui, text, width - indent)}))
    draw_rich_text(ui, text, {at.x + indent, at.y}, width - indent);
}

void draw_heading(const Ui& ui, const Block& block) {
  if (block.level > 1) ImGui::Dummy({0, ui.px(block.level == 2 ? 10 : 4)});
  const FontScope font(block.level < 3 ? ui.fonts.title : ui.fonts.strong);
  text_colored(block.level == 2 ? ui.theme->accent : ui.theme->text, report::plain_text(block.text));
}

void draw_item(const Ui& ui, const Block& block, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float indent = ui.px(22);
  draw_text_block(ui, block.text, indent, width);
  if (block.mark != "-") return put_text({at.x, at.y}, ui.theme->muted, block.mark);
  const ImVec2 middle = {at.x + ui.px(9), at.y + ui.fonts.body->FontSize / 2};
  ImGui::GetWindowDrawList()->AddCircleFilled(middle, ui.px(2.5f), ui.theme->muted);
}

void draw_code(const Ui& ui, std::string_view code, float width) {
  const FontScope font(ui.fonts.mono);
  const ImVec2 pad = {ui.px(12), ui.px(8)}, at = ImGui::GetCursorScreenPos();
  const ImVec2 size = ImGui::CalcTextSize(code.data(), code.data() + code.size());
  const ImVec2 whole = {std::max(width, size.x + 2 * pad.x), size.y + 2 * pad.y};
  if (!take(whole)) return;
  ImGui::GetWindowDrawList()->AddRectFilled(at, at + whole, ui.theme->raised, ui.px(6));
  put_text(at + pad, ui.theme->text, code);
}

// Each column as wide as its widest line; if the page is too narrow for all, the widest columns break lines.
std::vector<float> column_widths(const Ui& ui, const Block& table, float gap, float width) {
  std::vector<float> lines, words;
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == lines.size()) lines.push_back(0), words.push_back(0);
      const RichWidth cell = rich_width(ui, row[i]);
      lines[i] = std::max(lines[i], cell.line);
      words[i] = std::max(words[i], cell.word);
    }
  float room = width - gap * static_cast<float>(lines.size());
  std::vector<std::size_t> order(lines.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return lines[i]; });
  for (std::size_t done = 0; done < order.size(); ++done) {
    float& line = lines[order[done]];
    const float share = room / static_cast<float>(order.size() - done);
    line = std::max(std::min(line, share), words[order[done]]);
    room -= line;
  }
  return lines;
}

void draw_table(const Ui& ui, const Block& table, float width) {
  const float gap = ui.px(20), pad = ui.px(4);
  const std::vector<float> columns = column_widths(ui, table, gap, width);
  const float whole =
      std::accumulate(columns.begin(), columns.end(), gap * static_cast<float>(columns.size()));
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const auto& row = table.rows[r];
    const ImVec2 at = ImGui::GetCursorScreenPos();
    float height = 0;
    for (std::size_t i = 0; i < row.size(); ++i)
      height = std::max(height, rich_height(ui, row[i], columns[i]));
    if (!take({whole, height + 2 * pad})) continue;
    float x = at.x;
    for (std::size_t i = 0; i < row.size(); ++i) {
      draw_rich_text(ui, row[i], {x, at.y + pad}, columns[i]);
      x += columns[i] + gap;
    }
    const float bottom = at.y + height + 2 * pad;
    ImGui::GetWindowDrawList()->AddLine({at.x, bottom}, {at.x + whole, bottom},
                                        r == 0 ? ui.theme->border : ui.theme->grid);
  }
}

void draw_block(const Ui& ui, const Block& block, float width) {
  switch (block.kind) {
    case BlockKind::heading:
      return draw_heading(ui, block);
    case BlockKind::paragraph:
      return draw_text_block(ui, block.text, 0, width);
    case BlockKind::item:
      return draw_item(ui, block, width);
    case BlockKind::code:
      return draw_code(ui, block.code, width);
    case BlockKind::table:
      return draw_table(ui, block, width);
  }
}

}  // namespace

void draw_manual_page(const Ui& ui, std::string_view markdown, std::string_view to) {
  const std::vector<Block> blocks = report::markdown_blocks(markdown);
  const float margin = ui.px(4);  // the ground of code reaches into it
  ImGui::Indent(margin);
  const float width = ImGui::GetContentRegionAvail().x - 2 * margin;
  const StyleScope style(ImGuiStyleVar_ItemSpacing, ImVec2{0, 0});
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool list_goes_on =
        i > 0 && blocks[i].kind == BlockKind::item && blocks[i - 1].kind == BlockKind::item;
    if (i > 0) ImGui::Dummy({0, ui.px(list_goes_on ? 3 : 10)});
    if (!to.empty() && blocks[i].kind == BlockKind::heading && report::plain_text(blocks[i].text) == to)
      ImGui::SetScrollHereY(0);
    draw_block(ui, blocks[i], width);
  }
  ImGui::Unindent(margin);
}

// --- The sheet of the manual: the choice of a page, and the page.

std::string_view manual_section(const Workspace& workspace) {
  if (workspace.lesson.plays() && !workspace.document().model) return "Start page";
  const ImGuiWindow* const window = ImGui::GetCurrentContext()->NavWindow;
  const std::string_view name = window == nullptr ? "" : window->Name;
  struct WindowPart {
    std::string_view child, section;
  };
  constexpr auto kParts = std::to_array<WindowPart>(
      {{"/tree_", "Tree"}, {"/inspector_", "Inspector"}, {"/timeline_", "Timeline"}});
  if (workspace.document().model)
    for (const WindowPart& part : kParts)
      if ((focus_is_seen() || ImGui::IsAnyItemActive()) && name.find(part.child) != std::string_view::npos)
        return part.section;
  if (!workspace.document().model && workspace.settings.panel != "arena") return "Start page";
  return find_panel(workspace.settings.panel).title;
}

void ManualSheet::draw(Workspace& workspace, const Ui& ui) {
  if (auto wanted = workspace.services.requests.take<OpenManual>()) {
    const bool here = wanted->topic.empty();
    topic_ = here ? kWindowPage : wanted->topic;
    section_ = here ? std::string(manual_section(workspace)) : wanted->section;
    more_ = here && workspace.document().model ? find_panel(workspace.settings.panel).manual : "";
  }
  if (topic_.empty()) return;
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  const SheetScope sheet(ui, "manual", {ui.px(1000), screen.y - ui.px(80)});
  const auto pages = report::manual_pages();
  std::vector<std::string_view> titles;
  std::size_t now = 0;
  for (const report::ManualPage& page : pages) {
    if (page.id == topic_) now = titles.size();
    titles.push_back(page.title);
  }
  const auto picked = combo(ui, "##page", ui.px(260), titles[now], titles, now);
  ImGui::SameLine(0, ui.px(12));
  const bool closed = button(ui, "Close");
  bool more = false;
  if (!more_.empty() && topic_ == kWindowPage) {
    ImGui::SameLine(0, ui.px(12));
    more = button(ui, fmt::format("More: {}", report::find_manual_page(more_).title));
  }
  ImGui::SameLine(0, ui.px(12));
  control_text("Esc closes, Left and Right turn pages", ui.theme->muted);
  {
    const IdScope scope(now);  // each page keeps its own place
    const ChildScope child("page", {0, 0}, false, ImGuiWindowFlags_HorizontalScrollbar);
    if (!ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId)) scroll_by_keys();
    draw_manual_page(ui, pages[now].text, std::exchange(section_, {}));
  }
  if (!picked && list_key_pressed(ListKey::right)) topic_ = pages[(now + 1) % pages.size()].id;
  if (!picked && list_key_pressed(ListKey::left)) topic_ = pages[(now + pages.size() - 1) % pages.size()].id;
  if (picked) topic_ = pages[*picked].id;
  if (more) topic_ = more_;
  if (closed) topic_.clear();
}

}  // namespace loadline::gui
