// Advice as a list; the change under the mouse is drawn over the timeline.
#include "app/gui/frame/advice.h"

#include "app/gui/parts/timeline_data.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/summary.h"
#include "app/report/verdict.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::gui {
namespace {

std::string peaks_text(const PerSpace<std::uint64_t>& peaks) {
  std::string words;
  for (const Space space : kStackOrder)
    if (peaks[index(space)] > 0)
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", space_name(space),
                           format_bytes(peaks[index(space)]));
  return words;
}

PerSpace<std::uint64_t> peaks_of(const LoadRow& row) {
  PerSpace<std::uint64_t> peaks = {};
  for (std::size_t i = 0; i < kSpaceCount; ++i) peaks[i] = row.peaks[i].bytes;
  return peaks;
}

std::string change_text(const AdvisedLoad& load) {
  const std::string changes = fmt::format("{}", fmt::join(load.changes, " and "));
  return load.changes.empty() ? fmt::format("{} in {} order", load.method->id, load.order) : changes;
}

// True while the mouse is over it.
bool draw_change(Workspace& workspace, const Ui& ui, const AdvisedLoad& load, std::size_t at) {
  Document& document = workspace.document();
  const IdScope scope(at);
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const float left = ImGui::GetCursorPosX(), width = ImGui::GetContentRegionAvail().x;
  ImGui::SetCursorPosX(left + width - ui.px(72));
  if (button(ui, "Apply", ButtonKind::primary)) {
    workspace.attempt([&] { document.apply(load); });
    ImGui::CloseCurrentPopup();
  }
  const float below = ImGui::GetCursorPosY();
  ImGui::SetCursorScreenPos(start);
  ImGui::PushTextWrapPos(left + width - ui.px(84));
  text_colored(ui.theme->text, shown(change_text(load)));
  {
    const FontScope font(ui.fonts.small);
    muted(ui, fmt::format("{}, about {}", peaks_text(load.peaks), format_seconds(load.seconds)));
  }
  ImGui::PopTextWrapPos();
  ImGui::SetCursorPosY(std::max(below, ImGui::GetCursorPosY()) + ui.px(4));
  return ImGui::IsMouseHoveringRect(start, ImVec2{start.x + width, ImGui::GetCursorScreenPos().y});
}

void draw_found(Workspace& workspace, const Ui& ui, const LoadAdvice& found) {
  Document& document = workspace.document();
  const Advice& advice = found.advice;
  const AdvisedLoad* hovered = nullptr;
  heading(ui, advice.loads.empty() ? "Nothing makes it fit" : "What makes it fit");
  if (advice.loads.empty() && advice.nearest) muted(ui, "Nearest:");
  for (std::size_t i = 0; i < advice.loads.size(); ++i)
    if (draw_change(workspace, ui, advice.loads[i], i)) hovered = &advice.loads[i];
  if (advice.loads.empty() && advice.nearest) {
    if (draw_change(workspace, ui, *advice.nearest, 0)) hovered = &*advice.nearest;
    paragraph(ui, report::over_text(advice.nearest->verdict), ui.theme->bad);
  }
  document.preview(hovered);
  if (found.searched)
    small_text(ui,
               fmt::format("{} projected{}", counted(advice.tried, "other load"),
                           advice.complete ? "" : ", then the search ended at its limit"),
               ui.theme->muted);
}

}  // namespace

void draw_advice(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const Verdict verdict = verdict_of(document);
  if (document.judged_load() == nullptr) return muted(ui, "The load is being projected.");
  const LoadRow* const row = &document.judged_load()->row;
  heading(ui, fmt::format("{} in {} order", row->method->id, row->order));
  if (!row->refusal) muted(ui, peaks_text(peaks_of(*row)));
  text_colored(verdict.state == Verdict::State::over   ? ui.theme->bad
               : verdict.state == Verdict::State::fits ? ui.theme->good
                                                       : ui.theme->text,
               verdict.words);
  if (verdict.state != Verdict::State::unjudged &&
      document.asked().request.allocator != AllocatorModel::exact)
    paragraph(ui, "Held against what the allocator takes for it, which is more.", ui.theme->muted);
  if (!verdict.first.empty()) paragraph(ui, "First over: " + shown(verdict.first), ui.theme->text);
  if (document.can_take_back()) {
    if (button(ui, "Take the change back")) workspace.attempt([&] { document.take_back(); });
  }
  ImGui::Separator();
  if (verdict.state == Verdict::State::unjudged)
    return paragraph(ui,
                     "State a target or a budget in the toolbar: then this says whether the load fits, and "
                     "what would make it fit.",
                     ui.theme->muted);
  if (verdict.state == Verdict::State::fits)
    return paragraph(ui, "It fits. The panel Methods lists what else does.", ui.theme->muted);
  document.advise();
  if (document.advice.busy() || !document.advised()) return muted(ui, "Projecting other loads");
  if (document.advice.error() != nullptr) return paragraph(ui, document.advice.error_text(), ui.theme->bad);
  if (document.advice.value() && document.advice.value()->advice)
    draw_found(workspace, ui, *document.advice.value()->advice);
}

}  // namespace loadline::gui
