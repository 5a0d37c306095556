// The sheet behind the verdict: what would make the load fit that is asked for, and the context.

#include "app/gui/frame/facts.h"
#include "app/gui/frame/overlays.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/summary.h"
#include "app/gui/state/workspace.h"
#include "app/report/row_text.h"
#include "core/base/text.h"
#include "core/forward/pass/lifetimes.h"
#include "core/load/request/option_context.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace loadline::gui {

// --- The verdict.

ImU32 verdict_color(const Ui& ui, const Verdict& verdict) {
  switch (verdict.state) {
    case Verdict::State::over:
      return ui.theme->bad;
    case Verdict::State::incomplete:
    case Verdict::State::estimated:
    case Verdict::State::tight:
      return ui.theme->warning;
    case Verdict::State::fits:
      return ui.theme->good;
    default:
      return ui.theme->muted;
  }
}

// --- The context: the tokens of the pass that follows the load.

bool has_context(const Document& document) {
  return document.forward.evaluated() != nullptr && document.forward.graph() != nullptr &&
         forward::depends_on_tokens(*document.forward.graph());
}

namespace {

void set_context(Workspace& workspace, std::uint64_t tokens) {
  Asked asked = workspace.document().load.asked();
  asked.first_token = tokens > 0;
  if (tokens > 0) {
    asked.request.sequence = std::min<std::uint64_t>(tokens, kFirstSequence);
    asked.request.past = tokens - asked.request.sequence;
  }
  workspace.attempt([&] { workspace.document().load.ask(asked); });
}

}  // namespace

void draw_context(Workspace& workspace, const Ui& ui, float width) {
  const Document& document = workspace.document();
  const Asked& asked = document.load.asked();
  constexpr std::uint64_t kUsualMost = 131'072;
  const load::LoadAnswer* const judged = document.load.judged_load();
  const bool known = judged != nullptr && judged->context && judged->context->positions;
  const std::uint64_t most = known ? *judged->context->positions : kUsualMost;
  std::uint64_t tokens = asked.first_token ? asked.request.sequence + asked.request.past : 0;
  std::string hint =
      "Tokens of the context: a prompt runs behind the load, with those before it in the cache";
  if (known) hint += fmt::format(". The model has {}: more is lowered to that", counted(most, "position"));
  // said where it stands: more is lowered to that
  const std::string all = known && tokens == most ? fmt::format("{} (all)", format_grouped(most)) : "";
  if (!number_slider(ui, "##context", width, tokens, 0, std::max(most, tokens), hint, all)) return;
  if (known && tokens == most)
    workspace.services.done = fmt::format("The context is all {} of the model", counted(most, "position"));
  set_context(workspace, tokens);
}

// --- Changes of the load, and smaller files.

namespace {

std::string peaks_text(const plan::PerSpace<std::uint64_t>& peaks) {
  std::string words;
  for (const plan::Space space : plan::kSpaceOrder)
    if (peaks[plan::index(space)] > 0)
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", plan::space_title(space),
                           format_bytes(peaks[plan::index(space)]));
  return words;
}

plan::PerSpace<std::uint64_t> peaks_of(const load::LoadRow& row) {
  plan::PerSpace<std::uint64_t> peaks = {};
  for (std::size_t i = 0; i < plan::kSpaceCount; ++i) peaks[i] = row.peaks[i].bytes;
  return peaks;
}

// The largest context with the change: ", room for about 70k tokens".
std::string room_text(const load::AdvisedLoad& load) {
  if (!load.context_max || *load.context_max == 0 || *load.context_max >= load::kMostTokens) return "";
  return ", room for " + report::tokens_text(*load.context_max);
}

// Loads with a change in common, which differ in their method: one suggestion in several variants.
struct Suggestion {
  std::vector<const load::AdvisedLoad*> loads = {};
  std::vector<std::string> shared = {};  // changes of all of them

  std::string title() const {
    const load::AdvisedLoad& first = *loads.front();
    if (first.changes.empty()) return fmt::format("{} in {} order", first.method->id, first.order);
    if (shared.size() == 1) return capitalized(shared.front());
    return loads.size() > 1 ? counted(shared.size(), "change")
                            : fmt::format("{} with {}", first.method->id, counted(shared.size(), "change"));
  }
};

std::vector<Suggestion> suggestions(const std::vector<load::AdvisedLoad>& loads) {
  using Settings = std::vector<std::pair<std::string_view, std::string>>;
  const auto besides_method = [](const load::AdvisedLoad& load) {
    Settings settings = load.settings;
    std::erase_if(settings, [](const auto& one) { return one.first == "method" || one.first == "order"; });
    return settings;
  };
  std::vector<Suggestion> found;
  for (const load::AdvisedLoad& load : loads) {
    const Settings own = besides_method(load);
    const auto same = std::ranges::find_if(found, [&](const Suggestion& one) {
      return !own.empty() && besides_method(*one.loads.front()) == own;
    });
    if (same == found.end()) {
      found.push_back({{&load}, load.changes});
      continue;
    }
    same->loads.push_back(&load);
    std::erase_if(same->shared, [&](const std::string& change) {
      return std::ranges::find(load.changes, change) == load.changes.end();
    });
  }
  return found;
}

// What the mouse is over, and what was taken. That is applied when all is drawn: it ends the suggestions.
struct Pointed {
  const load::AdvisedLoad* hovered = nullptr;
  const load::AdvisedLoad* taken = nullptr;
};

// A button at the right of words that break before it.
void draw_offer(const Ui& ui, const load::AdvisedLoad& load, Pointed& pointed,
                const std::function<void()>& words) {
  const IdScope scope(load.method->id);
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const float left = ImGui::GetCursorPosX(), width = ImGui::GetContentRegionAvail().x;
  ImGui::SetCursorPosX(left + width - text_width("Apply") - 2 * ImGui::GetStyle().FramePadding.x);
  if (button(ui, "Apply", ButtonKind::primary)) pointed.taken = &load;
  const float below = ImGui::GetCursorPosY();
  ImGui::SetCursorScreenPos(start);
  ImGui::PushTextWrapPos(left + width - ui.px(84));
  words();
  {
    const FontScope font(ui.fonts.small);
    muted(ui, fmt::format("{}, {}{}", peaks_text(load.peaks), report::time_text(load), room_text(load)));
  }
  ImGui::PopTextWrapPos();
  ImGui::SetCursorPosY(std::max(below, ImGui::GetCursorPosY()) + ui.px(4));
  if (ImGui::IsMouseHoveringRect(start, ImVec2{start.x + width, ImGui::GetCursorScreenPos().y}))
    pointed.hovered = &load;
}

void draw_suggestion(const Ui& ui, const Suggestion& one, std::size_t at, Pointed& pointed) {
  const IdScope scope(at);
  const auto list = [&](const std::vector<std::string>& changes) {
    for (std::size_t i = 0; i < changes.size() && changes.size() > 1; ++i) {
      ImGui::Bullet();
      text_colored(ui.theme->text, shown(changes[i]));
    }
  };
  const auto head = [&] {
    text_colored(ui.theme->text, shown(one.title()));
    list(one.shared);
  };
  if (one.loads.size() == 1) return draw_offer(ui, *one.loads.front(), pointed, head);
  ImGui::PushTextWrapPos(0);
  head();
  ImGui::PopTextWrapPos();
  ImGui::Indent(ui.px(14));
  for (const load::AdvisedLoad* const load : one.loads)
    draw_offer(ui, *load, pointed,
               [&] { text_colored(ui.theme->text, fmt::format("by {}", load->method->id)); });
  ImGui::Unindent(ui.px(14));
}

void draw_found(Workspace& workspace, const Ui& ui, const load::LoadAdvice& found) {
  Document& document = workspace.document();
  const load::Advice& advice = found.advice;
  Pointed pointed;
  heading(ui, advice.loads.empty() ? "No change makes it fit" : "Changes that make it fit");
  if (advice.loads.empty() && advice.nearest) muted(ui, "Closest:");
  const std::vector<Suggestion> all = suggestions(advice.loads);
  for (std::size_t i = 0; i < all.size(); ++i) draw_suggestion(ui, all[i], i, pointed);
  if (advice.loads.empty() && advice.nearest) {
    draw_suggestion(ui, {{&*advice.nearest}, advice.nearest->changes}, 0, pointed);
    paragraph(ui, report::over_text(advice.nearest->verdict), ui.theme->bad);
  }
  document.advice.preview(pointed.hovered);
  if (found.searched)
    small_text(ui,
               fmt::format("{} projected{}", counted(advice.tried, "other load"),
                           advice.complete ? "" : ", search limit reached"),
               ui.theme->muted);
  if (pointed.taken == nullptr) return;
  const load::AdvisedLoad taken = *pointed.taken;
  workspace.attempt([&] { document.advice.apply(taken); });
  ImGui::CloseCurrentPopup();
}

// GGUF files of the model, each with a button that leads to its conversion.
void draw_quantizations(Workspace& workspace, const Ui& ui) {
  const auto& tried = workspace.document().advice.quantizations;
  if (tried.busy()) return muted(ui, "Trying quantizations");
  if (tried.or_empty().models.empty()) return;
  heading(ui, "Smaller files");
  const report::QuantizedModel& smallest = tried.or_empty().models.back();
  if (std::ranges::none_of(tried.or_empty().models, [](const auto& model) { return model.verdict.fits(); }))
    return paragraph(
        ui,
        fmt::format("None fits. The smallest, {}, has {}: {}.", report::type_title(smallest.policy),
                    format_bytes(smallest.bytes), smallest.verdict.words),
        ui.theme->muted);
  for (const report::QuantizedModel& model : tried.or_empty().models) {
    const IdScope scope(model.policy.c_str());
    const bool fits = model.verdict.fits();
    const ImVec2 start = ImGui::GetCursorScreenPos();
    const float left = ImGui::GetCursorPosX(), width = ImGui::GetContentRegionAvail().x;
    ImGui::SetCursorPosX(left + width - text_width("Convert") - 2 * ImGui::GetStyle().FramePadding.x);
    if (button(ui, "Convert", fits ? ButtonKind::primary : ButtonKind::normal)) {
      workspace.attempt([&] { workspace.mend({{"to", "gguf"}, {"outtype", model.policy}}); });
      ImGui::CloseCurrentPopup();
    }
    const float below = ImGui::GetCursorPosY();
    ImGui::SetCursorScreenPos(start);
    text_colored(ui.theme->text,
                 fmt::format("{}, {}", report::type_title(model.policy), format_bytes(model.bytes)));
    small_text(ui, model.verdict.words, fits ? ui.theme->muted : verdict_color(ui, model.verdict));
    ImGui::SetCursorPosY(std::max(below, ImGui::GetCursorPosY()) + ui.px(4));
  }
}

}  // namespace

// The content of the sheet behind the chip: the verdict, each change with its figures before and after, and
// buttons that take it over or back. Searches for changes while it is drawn.
void draw_advice(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const Verdict verdict = verdict_of(document);
  if (document.load.judged_load() == nullptr) return muted(ui, "The load is being projected.");
  const load::LoadRow* const row = &document.load.judged_load()->rows.front();
  heading(ui, fmt::format("{} in {} order", row->method->id, row->order));
  if (!row->refusal) muted(ui, peaks_text(peaks_of(*row)));
  if (const auto& figures = document.forward.figures(); figures && document.load.asked().first_token)
    muted(ui, fmt::format("Of the pass: cache {}, activations {}", format_bytes(figures->peak.cache_bytes),
                          format_bytes(figures->peak.bytes)));
  text_colored(verdict_color(ui, verdict), verdict.words);
  if (const std::string reserve = load::reserve_words(document.load.memory()); !reserve.empty())
    paragraph(ui, "Budget: " + reserve + ". Reserve, in Options, sets how much.", ui.theme->muted);
  if (verdict.state != Verdict::State::unjudged &&
      allocators::reserves(document.load.asked().request.allocator))
    paragraph(ui, "Checked against the memory that the allocator reserves, which is more.", ui.theme->muted);
  if (!verdict.about.empty()) paragraph(ui, shown(verdict.about), ui.theme->text);
  if (document.advice.can_take_back()) {
    if (button(ui, "Undo suggestion")) workspace.attempt([&] { document.advice.take_back(); });
    if (document.load.judged_load() == nullptr) return;
  }
  if (has_context(document)) {
    draw_context(workspace, ui, field(ui, "Context"));
    if (document.load.judged_load() == nullptr) return;  // it was for another request
    if (const auto& context = document.load.judged_load()->context; context && context->positions)
      small_text(ui,
                 fmt::format("The model has {}: a larger context is lowered to that.",
                             counted(*context->positions, "position")),
                 ui.theme->muted);
  }
  ImGui::Separator();
  if (verdict.state == Verdict::State::unjudged)
    return paragraph(ui, "Choose a target or a budget in the toolbar to see whether the load fits.",
                     ui.theme->muted);
  if (verdict.state == Verdict::State::estimated)
    return paragraph(ui, "It fits by the figures above, which do not account for all that they depend on.",
                     ui.theme->muted);
  if (verdict.state == Verdict::State::incomplete && !document.load.judged_load()->bound->judged())
    return paragraph(ui, "Its figures are of what is here. No budget says that this fits.", ui.theme->muted);
  if (verdict.state == Verdict::State::incomplete)
    return paragraph(ui, "The part of the model that is here fits. What is missing may not.",
                     ui.theme->muted);
  if (verdict.state == Verdict::State::fits)
    return paragraph(ui, "It fits. The panel Methods lists what else does.", ui.theme->muted);
  if (!document.load.judged_load()->bound->incomplete.empty())
    return paragraph(ui, "Of a model that is not whole, no change is known to fit.", ui.theme->muted);
  if (verdict.too_long) {
    if (button(ui, fmt::format("Context of {}", counted(*verdict.positions, "token")), ButtonKind::primary))
      set_context(workspace, *verdict.positions);
    return;
  }
  document.advice.search();
  if (document.advice.answer.busy() || !document.advice.is_current())
    return muted(ui, "Projecting other loads");
  if (document.advice.answer.error() != nullptr)
    return paragraph(ui, document.advice.answer.error_text(), ui.theme->bad);
  if (document.advice.answer.value() && document.advice.answer.value()->advice)
    draw_found(workspace, ui, *document.advice.answer.value()->advice);
  draw_quantizations(workspace, ui);
}

}  // namespace loadline::gui
