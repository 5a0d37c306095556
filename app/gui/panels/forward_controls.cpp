// Every change goes to the document at once: sizes are evaluated within a frame.
#include "app/gui/panels/forward_controls.h"

#include "app/gui/meta_text.h"
#include "app/gui/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

// The first entry leaves it to the profile.
constexpr std::array<DType, 6> kTypes = {DType::f32,     DType::f16,     DType::bf16,
                                         DType::f8_e4m3, DType::f8_e5m2, DType::i8};

// Controls follow one another on a line as long as they fit.
class Row {
 public:
  explicit Row(const Ui& ui) : ui_(ui) {}
  // Before a control with that label and width.
  void next(std::string_view label, float width) {
    if (!first_) continue_line(ui_, 14, text_width(label) + ui_.px(6) + width);
    first_ = false;
  }
  // The same, and the label.
  void labelled(std::string_view label, float width) {
    next(label, width);
    ImGui::AlignTextToFramePadding();
    muted(ui_, label);
    ImGui::SameLine(0, ui_.px(6));
  }

 private:
  const Ui& ui_;
  bool first_ = true;
};

void size_control(Document& document, const Ui& ui, Row& row, SymbolId symbol, std::string_view label,
                  std::uint64_t ForwardChoice::*member, std::uint64_t least, std::uint64_t most,
                  std::string_view hint) {
  const ForwardScene& scene = *document.forward.value();
  if (!scene.symbols_matter[static_cast<std::size_t>(symbol)]) return;
  const float width = ui.px(112);
  row.next(label, width);
  ForwardChoice choice = document.forward_choice();
  if (size_slider(ui, label, width, choice.*member, least, most, hint)) document.set_forward(choice);
}

void profile_control(Document& document, const Ui& ui, Row& row) {
  const ForwardScene& scene = *document.forward.value();
  ForwardChoice choice = document.forward_choice();
  std::vector<std::string_view> ids;
  std::string about;
  std::size_t at = 0;
  for (const Profile& profile : scene.assets->profiles) {
    if (!runs(profile, *scene.graph)) continue;
    if (profile.id == scene.model.profile) {
      at = ids.size();
      about = profile.about;
    }
    ids.push_back(profile.id);
  }
  if (ids.empty()) return;  // operators of a format that no profile is for
  const float width = ui.px(136);
  row.labelled("Profile", width);
  const auto picked = combo(ui, "##profile", width, scene.model.profile, ids, at);
  tooltip(ui, about);
  if (!picked) return;
  choice.options.profile = ids[*picked];
  document.set_forward(choice);
}

void type_control(Document& document, const Ui& ui, Row& row, std::string_view label,
                  std::optional<DType> ForwardOptions::*member, std::optional<DType> Profile::*otherwise,
                  std::string_view hint) {
  ForwardChoice choice = document.forward_choice();
  std::optional<DType>& chosen = choice.options.*member;
  const ForwardModel& model = document.forward.value()->model;
  const DType own =
      (document.forward.value()->assets->profile(model.profile).*otherwise).value_or(model.bound->dtype);
  const std::string of_profile = fmt::format("profile's: {}", dtype_info(own).name);
  std::vector<std::string_view> names = {of_profile};
  std::size_t at = 0;
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (chosen == kTypes[i]) at = i + 1;
    names.push_back(dtype_info(kTypes[i]).name);
  }
  const float width = ui.px(96);
  row.labelled(label, width);
  ImGui::PushID(label.data(), label.data() + label.size());
  const auto picked = combo(ui, "##type", width, dtype_info(chosen.value_or(own)).name, names, at);
  tooltip(ui, hint);
  ImGui::PopID();
  if (!picked) return;
  chosen = *picked == 0 ? std::nullopt : std::optional(kTypes[*picked - 1]);
  document.set_forward(choice);
}

void logits_control(Document& document, const Ui& ui, Row& row) {
  ForwardChoice choice = document.forward_choice();
  constexpr std::array<std::string_view, 2> kRows = {"Last", "All"};
  row.labelled("Logits", segmented_width(ui, kRows));
  const ForwardScene& scene = *document.forward.value();
  const bool all = choice.options.all_logits.value_or(scene.assets->profile(scene.model.profile).all_logits);
  const bool now = segmented(ui, "logits", kRows, all ? 1 : 0) == 1;
  if (now == all) return;
  choice.options.all_logits = now;
  document.set_forward(choice);
}

// Of the symbols that the file itself names.
void other_sizes(Document& document, const Ui& ui, Row& row) {
  constexpr std::size_t kFirst = index(kPast) + 1, kMostShown = 6, kMostName = 60;
  constexpr std::uint64_t kMost = 1 << 24;
  const ForwardScene& scene = *document.forward.value();
  const std::vector<std::string>& names = scene.forward()->symbols;
  ForwardChoice choice = document.forward_choice();
  std::size_t drawn = 0;
  for (std::size_t symbol = kFirst; symbol < names.size() && drawn < kMostShown; ++symbol) {
    if (!scene.symbols_matter[symbol]) continue;
    ++drawn;
    const float input = ui.px(64);
    row.labelled(elided(shown(beginning(names[symbol], kMostName)), ui.px(120)), input);
    ImGui::SetNextItemWidth(input);
    ImGui::PushID(static_cast<int>(symbol));
    choice.others.resize(std::max(choice.others.size(), symbol - kFirst + 1), 1);
    std::uint64_t& size = choice.others[symbol - kFirst];
    const bool changed = ImGui::InputScalar("##size", ImGuiDataType_U64, &size);
    size = std::min(size, kMost);
    tooltip(ui, "A size that the file leaves open; 1 until it is set");
    ImGui::PopID();
    if (changed) document.set_forward(choice);
  }
}

}  // namespace

void forward_controls(Document& document, const Ui& ui) {
  if (!document.forward.value() || document.forward.value()->forward() == nullptr) return;
  Row row(ui);
  size_control(document, ui, row, kBatch, "Batch", &ForwardChoice::batch, 1, kMostBatch,
               "Sequences in the pass");
  size_control(document, ui, row, kSequence, "New tokens", &ForwardChoice::sequence, 1, kMostSequence,
               "New tokens of each sequence");
  size_control(document, ui, row, kPast, "Past", &ForwardChoice::past, 0, kMostPast,
               "Tokens of each sequence that the cache already holds");
  other_sizes(document, ui, row);
  profile_control(document, ui, row);
  if (document.forward.value()->model.source != ForwardSource::architecture)
    return;  // a file's types and shapes are its own
  type_control(document, ui, row, "Activations", &ForwardOptions::activation, &Profile::activation,
               "The type of activations");
  if (!document.forward.value()->cache.empty())
    type_control(document, ui, row, "Cache", &ForwardOptions::cache, &Profile::cache,
                 "The type of cached keys and values");
  if (document.forward.value()->has_logits) logits_control(document, ui, row);
}

bool forward_absent(Document& document, const Ui& ui, std::string_view what) {
  if (!document.model) {
    empty_state(ui, "No model is open", what);
    return true;
  }
  if (!document.forward.value()) {
    if (document.forward.busy())
      empty_state(ui, "Working out the forward pass", "Its architecture is being applied to the tensors.");
    else
      empty_state(ui, "The forward pass could not be worked out", shown(forward_error(document)));
    return true;
  }
  if (document.forward.value()->forward() != nullptr) return false;
  const ForwardModel& model = document.forward.value()->model;
  std::string known = "The file holds weights only.";
  if (!model.remark.empty()) {
    known = shown(model.remark) + ".";
    known[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(known[0])));
  }
  if (model.cache_bytes_per_token)
    known += fmt::format(" From the usual keys of its configuration: about {} bytes of cache per token.",
                         format_grouped(*model.cache_bytes_per_token));
  empty_state(ui, "No operators are known of this model", known);
  return true;
}

std::string_view pass_lane_name(PassLane lane) {
  constexpr std::array<std::string_view, kPassLanes> kNames = {"Weights", "Cache", "Activations",
                                                               "Temporaries"};
  return kNames[static_cast<std::size_t>(lane)];
}

ImU32 pass_lane_color(const Theme& theme, PassLane lane) {
  constexpr std::array<std::size_t, kPassLanes> kCategories = {0, 2, 1, 3};
  return theme.category(kCategories[static_cast<std::size_t>(lane)]);
}

}  // namespace loadline::gui
