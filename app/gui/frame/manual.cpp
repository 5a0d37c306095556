// Draws the blocks of a page one below the other; what is out of sight only takes its place.
#include "app/gui/frame/manual_page.h"
#include "app/gui/frame/rich_text.h"
#include "app/gui/parts/widgets.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace loadline::gui {
namespace {

using report::Block;
using report::BlockKind;

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
  std::string words;
  for (const report::TextRun& run : block.text) words += run.text;
  text_colored(block.level == 2 ? ui.theme->accent : ui.theme->text, words);
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

void draw_manual_page(const Ui& ui, std::string_view markdown) {
  const std::vector<Block> blocks = report::markdown_blocks(markdown);
  const float margin = ui.px(4);  // the ground of code reaches into it
  ImGui::Indent(margin);
  const float width = ImGui::GetContentRegionAvail().x - 2 * margin;
  const StyleScope style(ImGuiStyleVar_ItemSpacing, ImVec2{0, 0});
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool list_goes_on =
        i > 0 && blocks[i].kind == BlockKind::item && blocks[i - 1].kind == BlockKind::item;
    if (i > 0) ImGui::Dummy({0, ui.px(list_goes_on ? 3 : 10)});
    draw_block(ui, blocks[i], width);
  }
  ImGui::Unindent(margin);
}

}  // namespace loadline::gui
