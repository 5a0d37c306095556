// Cuts runs into words, and words into lines.
#include "app/gui/frame/rich_text.h"

#include "app/gui/parts/widgets.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace loadline::gui {
namespace {

using report::Emphasis;

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

}  // namespace

RichWidth rich_width(const Ui& ui, const report::RichText& text) {
  RichWidth width;
  const std::vector<Word> words = words_of(ui, text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    width.line += words[i].width + (i > 0 ? gap_before(ui, words[i], words[i - 1]) : 0);
    width.word = std::max(width.word, words[i].width);
  }
  return width;
}

float rich_height(const Ui& ui, const report::RichText& text, float width) {
  return lay_out(ui, text, {}, width, false);
}

float draw_rich_text(const Ui& ui, const report::RichText& text, ImVec2 at, float width) {
  return lay_out(ui, text, at, width, true);
}

}  // namespace loadline::gui
