// What a control shows of an option for this model, and the control itself.
#include "app/gui/parts/option_controls.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/architecture.h"
#include "core/forward/model/known_models.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace loadline::gui {

// --- An option in its context: the model that is open, and what is asked.

load::LoadContext load_context(const Document& document) {
  load::LoadContext context{.memory = document.load.memory(), .targets = document.load.targets()};
  context.pass_follows = document.load.asked().first_token && document.forward.figures();
  if (document.model) {
    context.layers = static_cast<std::uint64_t>(document.model->layer_count);
    context.weight_bytes = document.model->weight_bytes;
  }
  const ForwardScene* const scene = document.forward.scene.value().get();
  if (scene != nullptr && scene->forward() != nullptr)
    context.pass.emplace(load::PassContext{*scene->graph, scene->model, *scene->assets, scene->symbols_matter,
                                           !scene->cache.empty(), scene->has_logits});
  return context;
}

std::optional<OptionLook> look_of(const Document& document, const load::LoadOption& option) {
  OptionLook look = plain_look(option, document.load.asked().request);
  if (const load::OptionInContext* const in = option.terms.in_context; in != nullptr) {
    const load::LoadContext context = load_context(document);
    if (in->applies != nullptr && !in->applies(context)) return std::nullopt;
    if (in->words != nullptr) look.words = in->words(context);
    if (in->shown != nullptr)
      for (load::OptionWord& row : look.words) row.shown = in->shown(row.word);
    if (in->in_force != nullptr) look.in_force = in->in_force(context);
    if (in->why_in_force != nullptr) look.why_in_force = in->why_in_force(context);
    if (in->most != nullptr) look.most = std::min(look.most, in->most(context));
  }
  if (look.kind == OptionKind::choice && look.words.size() == 2)  // they stand side by side
    for (load::OptionWord& row : look.words) row.shown = capitalized(row.shown);
  if (option.spelled != nullptr)
    for (load::OptionWord& row : look.words)
      if (row.shown == row.word) row.shown = report::type_title(row.word);
  return look;
}

std::string OptionLook::shown(std::string_view word) const {
  const auto row = std::ranges::find(words, word, &load::OptionWord::word);
  if (row != words.end()) return row->shown;
  if (kind != OptionKind::bytes || word.empty() || !is_digit(word.front())) return std::string(word);
  const std::uint64_t bytes = parse_size(word, "");
  const std::string text = format_bytes(bytes);
  return parse_size(text, "") == bytes ? text : std::string(word);  // typed again it means the same
}

// --- One control for each kind of option.

namespace {

// Few words of a choice stand side by side, if one of them always holds.
bool is_segmented(const OptionLook& look) {
  return look.kind == OptionKind::choice && look.words.size() == 2 &&
         (!look.can_be_unset || !look.in_force.empty());
}

std::array<std::string_view, 2> segment_labels(const OptionLook& look) {
  return {look.words[0].shown, look.words[1].shown};
}

std::string unset_words(const OptionLook& look) {
  if (look.in_force.empty()) return look.default_text.empty() ? "none" : std::string(look.default_text);
  const std::string in_force = look.shown(look.in_force);
  if (look.kind == OptionKind::bytes || look.default_text.empty()) return in_force;
  return fmt::format("{}: {}", look.default_text, in_force);
}

std::string hint_of(const OptionLook& look) {
  std::string hint(look.help);
  if (!look.default_text.empty()) hint += fmt::format(" Default: {}.", look.default_text);
  if (look.now.empty() && !look.why_in_force.empty())
    hint += "\n" + look.why_in_force + " (Reserve, in Options).";
  return hint;
}

float arrow_width() { return ImGui::GetFrameHeight() * 0.8f; }

float width_of(const Ui& ui, const OptionLook& look) {
  const float frame = ImGui::GetFrameHeight();
  if (look.kind == OptionKind::flag) return frame + ui.px(6) + text_width(look.title);
  if (is_segmented(look)) return segmented_width(ui, segment_labels(look));
  if (!look.words.empty()) {
    float widest = ui.px(40);
    for (const load::OptionWord& row : look.words) widest = std::max(widest, text_width(row.shown));
    return std::min(widest + frame + ui.px(8), ui.px(150));
  }
  if (look.kind == OptionKind::bytes)
    return std::max(ui.px(86), text_width("no budget") + 2 * ImGui::GetStyle().FramePadding.x) +
           arrow_width();
  if (look.kind == OptionKind::count) return ui.px(112);
  return ui.px(look.kind == OptionKind::names ? 300 : 130);
}

// The new word.
std::optional<std::string> segments(const Ui& ui, const OptionLook& look) {
  const std::string& word = look.now.empty() ? look.in_force : look.now;
  const std::size_t before = word == look.words[1].word ? 1 : 0;
  const std::size_t picked = segmented(ui, look.id.data(), segment_labels(look), before);
  tooltip(ui, look.help);
  return picked == before ? std::nullopt : std::optional(look.words[picked].word);
}

std::optional<std::string> word_combo(const Ui& ui, const OptionLook& look, float width) {
  const std::string unset = unset_words(look);
  std::vector<ComboRow> labels;
  if (look.can_be_unset) labels.push_back({unset, "", look.unset_beside});
  const std::size_t first = labels.size();
  std::size_t at = 0;
  const std::string preview = !look.now.empty()       ? look.shown(look.now)
                              : look.in_force.empty() ? unset
                                                      : look.shown(look.in_force);
  for (const load::OptionWord& row : look.words) {
    if (row.word == look.now) at = labels.size();
    labels.push_back({row.shown, capitalized(row.heading), row.beside});
  }
  const auto picked = combo(ui, "##word", width, preview, labels, at);
  tooltip(ui, hint_of(look));
  if (!picked) return std::nullopt;
  return *picked < first ? look.unset : look.words[*picked - first].word;
}

// Words for sizes: half of what is set and twice that, or what is common.
std::vector<std::string> common_sizes(const OptionLook& look) {
  constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
  std::vector<std::uint64_t> sizes = {64 * kMiB, 256 * kMiB, kGiB,      4 * kGiB, 8 * kGiB,
                                      16 * kGiB, 24 * kGiB,  48 * kGiB, 80 * kGiB};
  if (look.most < sizes.front())
    sizes = {look.most >> 15, look.most >> 9, look.most >> 5, look.most};
  else if (const auto* const now = std::get_if<std::uint64_t>(&look.value); now != nullptr && *now >= kMiB)
    sizes = {*now / 4, *now / 2, *now, *now * 2, *now * 4};
  std::vector<std::string> words = {look.unset};
  for (const std::uint64_t size : sizes)
    if (size >= look.least && size <= look.most)
      if (std::string word = print_option(OptionKind::bytes, size); word != look.unset)
        words.push_back(std::move(word));
  return words;
}

std::optional<std::string> size_field(const Ui& ui, const OptionLook& look, float width, TypedField& field) {
  const float arrow = arrow_width();
  const bool typed =
      typed_field(ui, "##size", width - arrow, field, look.shown(look.now), unset_words(look), hint_of(look));
  ImGui::SameLine(0, 0);
  const std::vector<std::string> words = common_sizes(look);
  std::vector<std::string> labels;
  for (const std::string& word : words) labels.push_back(look.shown(word));
  if (const auto picked = combo(ui, "##sizes", arrow, "", labels, words.size())) return words[*picked];
  if (!typed) return std::nullopt;
  return is_bare_size(field.typed) ? with_unit(field.typed, look) : field.typed;
}

}  // namespace

bool is_bare_size(std::string_view text) {
  constexpr std::size_t kMostDigits = 4;
  return !text.empty() && text.size() <= kMostDigits && text != "0" &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string with_unit(std::string_view number, const OptionLook& look) {
  const std::string shown = look.now.empty() ? unset_words(look) : look.now;
  for (const char* const unit : {"KiB", "MiB"})
    if (shown.find(unit) != std::string::npos) return std::string(number) + unit;
  return std::string(number) + "GiB";
}

bool is_offered(const Document& document, const load::LoadOption& option) {
  return load::supports(shown_method(document.load.asked()), option) ||
         !same_option(option, document.load.asked().request, load::LoadRequest());
}

bool is_offered(const Document& document, const load::Method& method) {
  return !document.model || load::can_open(method, *document.model->graph);
}

void OptionControls::draw_control(const Ui& ui, const OptionLook& look, float width, const Set& set) {
  std::optional<std::string> word;
  const IdScope scope(look.id);
  auto& [field, error] = states_[look.id];
  if (look.kind == OptionKind::flag) {
    bool on = look.now == "on";
    if (checkbox(ui, std::string(look.title).c_str(), &on)) word = on ? "on" : "off";
    tooltip(ui, look.help);
  } else if (is_segmented(look)) {
    word = segments(ui, look);
  } else if (!look.words.empty()) {
    word = word_combo(ui, look, width);
  } else if (look.kind == OptionKind::bytes) {
    word = size_field(ui, look, width, field);
  } else if (look.kind == OptionKind::count) {
    const auto* const count = std::get_if<std::uint64_t>(&look.value);
    std::uint64_t number = std::clamp(count == nullptr ? look.least : *count, look.least, look.most);
    const std::string words = count == nullptr ? elided(unset_words(look), width - ui.px(12)) : "";
    if (number_slider(ui, "##count", width, number, look.least, look.most, look.help, words))
      word = std::to_string(number);
  } else if (typed_field(ui, "##text", width, field, look.now, unset_words(look), hint_of(look))) {
    word = field.typed;
  }
  if (!word) return;
  error.clear();
  try {
    set(word->empty() ? look.unset : *word);
  } catch (const Error& fault) {
    error = fault.what();
  }
}

void OptionControls::draw_in_line(Document& document, const Ui& ui, const OptionLook& look, float width) {
  draw_control(ui, look, width, [&](std::string_view word) { document.load.set_option(look.id, word); });
  const std::string& error = states_[look.id].error;
  if (error.empty()) return;
  const FontScope font(ui.fonts.small);
  const float room = std::min(text_width(error), ui.px(280));
  continue_line(ui, 8, room);
  ImGui::AlignTextToFramePadding();
  name_text(ui, error, room, ui.theme->bad);
}

void OptionControls::draw(Document& document, const Ui& ui, const load::LoadOption& option, bool first) {
  const std::optional<OptionLook> look = look_of(document, option);
  if (!look) return;
  const float width = width_of(ui, *look);
  label_before(ui, look->kind == OptionKind::flag ? "" : look->title, width, !first);
  draw_in_line(document, ui, *look, width);
}

void OptionControls::draw_bare(Document& document, const Ui& ui, const load::LoadOption& option,
                               std::string_view unset) {
  std::optional<OptionLook> look = look_of(document, option);
  if (!look) return;
  if (!unset.empty() && look->in_force.empty()) look->default_text = unset;
  const float width = width_of(ui, *look);
  continue_line(ui, 8, width);
  draw_in_line(document, ui, *look, width);
}

void OptionControls::draw_line(const Ui& ui, const OptionLook& look, const Set& set, float label_share) {
  draw_control(ui, look, look.kind == OptionKind::flag ? 0 : field(ui, look.title, label_share), set);
  if (const std::string& error = states_[look.id].error; !error.empty())
    paragraph(ui, shown(error), ui.theme->bad);
}

}  // namespace loadline::gui
