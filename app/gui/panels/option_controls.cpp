// One control for each kind of option.
#include "app/gui/panels/option_controls.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

// Few words of a choice stand side by side.
bool is_segmented(const LoadOption& option, const OptionLook& look) {
  return option.kind == OptionKind::choice && look.words.size() == 2;
}

std::string capital(std::string word) {
  if (!word.empty() && word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return word;
}

std::string unset_words(const LoadOption& option, const OptionLook& look) {
  if (look.in_force.empty()) return option.default_text.empty() ? "none" : std::string(option.default_text);
  if (option.kind == OptionKind::bytes || option.default_text.empty()) return look.in_force;
  return fmt::format("{}: {}", option.default_text, look.in_force);
}

// What the control shows: empty where nothing is set.
std::string current_word(const LoadRequest& request, const LoadOption& option) {
  if (std::holds_alternative<std::monostate>(option.get(request))) return "";
  return load_option_text(request, option);
}

std::string hint_of(const LoadOption& option) {
  return option.default_text.empty() ? std::string(option.help)
                                     : fmt::format("{} Default: {}.", option.help, option.default_text);
}

float arrow_width() { return ImGui::GetFrameHeight() * 0.8f; }

float width_of(const Ui& ui, const LoadOption& option, const OptionLook& look) {
  const float frame = ImGui::GetFrameHeight();
  if (option.kind == OptionKind::flag) return frame + ui.px(6) + text_width(option.title);
  if (is_segmented(option, look)) {
    const std::array<std::string, 2> words = {capital(look.words[0].shown), capital(look.words[1].shown)};
    const std::array<std::string_view, 2> labels = {words[0], words[1]};
    return segmented_width(ui, labels);
  }
  if (!look.words.empty()) {
    float widest = ui.px(40);
    for (const OptionLook::Word& row : look.words) widest = std::max(widest, text_width(row.shown));
    return std::min(widest + frame + ui.px(8), ui.px(150));
  }
  if (option.kind == OptionKind::bytes) return ui.px(78) + arrow_width();
  if (option.kind == OptionKind::count) return ui.px(112);
  return ui.px(option.kind == OptionKind::names ? 300 : 130);
}

// The new word.
std::optional<std::string> segments(const Ui& ui, const LoadOption& option, const OptionLook& look,
                                    const std::string& now) {
  const std::array<std::string, 2> words = {capital(look.words[0].shown), capital(look.words[1].shown)};
  const std::array<std::string_view, 2> labels = {words[0], words[1]};
  const std::string& word = now.empty() ? look.in_force : now;
  const std::size_t before = word == look.words[1].word ? 1 : 0;
  const std::size_t picked = segmented(ui, option.id.data(), labels, before);
  tooltip(ui, option.help);
  return picked == before ? std::nullopt : std::optional(look.words[picked].word);
}

std::optional<std::string> word_combo(const Ui& ui, const LoadOption& option, const OptionLook& look,
                                      float width, const std::string& now) {
  const std::string unset = unset_words(option, look);
  std::vector<std::string_view> labels;
  if (option.can_be_unset) labels.push_back(unset);
  const std::size_t first = labels.size();
  std::size_t at = 0;
  for (std::size_t i = 0; i < look.words.size(); ++i) {
    if (look.words[i].word == now) at = labels.size();
    labels.push_back(look.words[i].shown);
  }
  const bool known = at >= first && !now.empty();
  const std::string preview = known         ? std::string(labels[at])
                              : now.empty() ? (look.in_force.empty() ? "none" : look.in_force)
                                            : now;
  const auto picked = combo(ui, "##word", width, preview, labels, at);
  tooltip(ui, hint_of(option));
  if (!picked) return std::nullopt;
  return *picked < first ? "none" : look.words[*picked - first].word;
}

// Words for sizes: half of what is set and twice that, or what is common.
std::vector<std::string> common_sizes(const LoadOption& option, const LoadRequest& request) {
  constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
  std::vector<std::uint64_t> sizes = {64 * kMiB, 256 * kMiB, kGiB,      4 * kGiB, 8 * kGiB,
                                      16 * kGiB, 24 * kGiB,  48 * kGiB, 80 * kGiB};
  const OptionValue value = option.get(request);
  if (const auto* const now = std::get_if<std::uint64_t>(&value); now != nullptr && *now >= kMiB)
    sizes = {*now / 4, *now / 2, *now, *now * 2, *now * 4};
  std::vector<std::string> words;
  const std::string unset = option.can_be_unset ? "none" : load_option_text(LoadRequest(), option);
  words.push_back(unset);
  for (const std::uint64_t size : sizes)
    if (size >= option.least && size <= option.most)
      if (std::string word = print_option(OptionKind::bytes, size); word != unset)
        words.push_back(std::move(word));
  return words;
}

std::optional<std::string> size_field(const Ui& ui, const LoadOption& option, const OptionLook& look,
                                      float width, TypedField& field, const LoadRequest& request) {
  const float arrow = arrow_width();
  const bool typed = typed_field(ui, "##size", width - arrow, field, current_word(request, option),
                                 unset_words(option, look), hint_of(option));
  ImGui::SameLine(0, 0);
  const std::vector<std::string> words = common_sizes(option, request);
  const std::vector<std::string_view> labels(words.begin(), words.end());
  const auto picked = combo(ui, "##sizes", arrow, "", labels, labels.size());
  if (picked) return words[*picked];
  return typed ? std::optional(field.typed) : std::nullopt;
}

}  // namespace

bool is_offered(const Document& document, const LoadOption& option) {
  return supports(shown_method(document.asked()), option) ||
         !same_option(option, document.asked().request, LoadRequest());
}

void OptionControls::set(Document& document, const LoadOption& option, std::string_view word) {
  const bool back = word.empty();
  const std::string unset = option.can_be_unset ? "none" : load_option_text(LoadRequest(), option);
  std::string& error = states_[option.id].error;
  error.clear();
  try {
    document.set_option(option.id, back ? unset : word);
  } catch (const Error& fault) {
    error = fault.what();
  }
}

void OptionControls::draw_control(Document& document, const Ui& ui, const LoadOption& option,
                                  const OptionLook& look, float width) {
  const LoadRequest& request = document.asked().request;
  const std::string now = current_word(request, option);
  std::optional<std::string> word;
  ImGui::PushID(option.id.data(), option.id.data() + option.id.size());
  TypedField& field = states_[option.id].field;
  if (option.kind == OptionKind::flag) {
    bool on = now == "on";
    if (checkbox(ui, std::string(option.title).c_str(), &on)) word = on ? "on" : "off";
    tooltip(ui, option.help);
  } else if (is_segmented(option, look)) {
    word = segments(ui, option, look, now);
  } else if (!look.words.empty()) {
    word = word_combo(ui, option, look, width, now);
  } else if (option.kind == OptionKind::bytes) {
    word = size_field(ui, option, look, width, field, request);
  } else if (option.kind == OptionKind::count) {
    const OptionValue value = option.get(request);
    const auto* const count = std::get_if<std::uint64_t>(&value);
    std::uint64_t number = std::clamp(count == nullptr ? look.least : *count, look.least, look.most);
    if (number_slider(ui, "##count", width, number, look.least, look.most, option.help))
      word = std::to_string(number);
  } else if (typed_field(ui, "##text", width, field, now, unset_words(option, look), hint_of(option))) {
    word = field.typed;
  }
  ImGui::PopID();
  if (word) set(document, option, *word);
}

void OptionControls::draw_error(const Ui& ui, const LoadOption& option) {
  const std::string& error = states_[option.id].error;
  if (error.empty()) return;
  const FontScope font(ui.fonts.small);
  const float width = std::min(text_width(error), ui.px(280));
  continue_line(ui, 8, width);
  ImGui::AlignTextToFramePadding();
  name_text(ui, error, width, ui.theme->bad);
}

void OptionControls::draw(Document& document, const Ui& ui, const LoadOption& option, bool first) {
  const std::optional<OptionLook> look = look_of(document, option);
  if (!look) return;
  const float width = width_of(ui, option, *look);
  const bool labelled = option.kind != OptionKind::flag;
  label_before(ui, labelled ? option.title : "", width, !first);
  draw_control(document, ui, option, *look, width);
  draw_error(ui, option);
}

void OptionControls::draw_line(Document& document, const Ui& ui, const LoadOption& option) {
  const std::optional<OptionLook> look = look_of(document, option);
  if (!look) return;
  const float width = option.kind == OptionKind::flag ? 0 : field(ui, option.title);
  draw_control(document, ui, option, *look, width);
  if (const std::string& error = states_[option.id].error; !error.empty())
    paragraph(ui, shown(error), ui.theme->bad);
}

void OptionControls::draw_bare(Document& document, const Ui& ui, const LoadOption& option) {
  const std::optional<OptionLook> look = look_of(document, option);
  if (!look) return;
  const float width = width_of(ui, option, *look);
  continue_line(ui, 8, width);
  draw_control(document, ui, option, *look, width);
  draw_error(ui, option);
}

}  // namespace loadline::gui
