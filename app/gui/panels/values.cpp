// The values of the selected tensor: figures, histogram, heat map, and a comparison with a kept one.
#include "app/gui/panels/panels.h"
#include "app/gui/panels/values_map.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/fits.h"
#include "core/base/text.h"
#include "core/inspect/tensor_stats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

std::string number_text(const std::optional<Number>& number) {
  if (!number) return "none";
  return std::visit([](auto value) { return fmt::format("{:.6g}", static_cast<double>(value)); }, *number);
}

class ValuesPanel final : public Panel {
 public:
  ValuesPanel() : Panel("The numbers of the selected tensor will be drawn here.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void draw_toolbar(Document& document, const Ui& ui, TensorId id);
  void draw_figures(const ValueStats& stats, const Ui& ui) const;
  void draw_histogram(const ValueHistogram& histogram, const Ui& ui, ImVec2 size) const;
  void draw_comparison(Document& document, const Ui& ui, TensorId id);

  CellValue show_ = CellValue::mean;
  bool logarithmic_ = false;
};

void ValuesPanel::draw_toolbar(Document& document, const Ui& ui, TensorId id) {
  constexpr std::array<std::string_view, 2> kShows = {"Mean", "Largest"};
  show_ = static_cast<CellValue>(segmented(ui, "show", kShows, static_cast<std::size_t>(show_)));
  tooltip(ui, "What a cell of the map shows of its values");
  ImGui::SameLine(0, ui.px(8));
  checkbox(ui, "Logarithmic counts", &logarithmic_);
  ImGui::SameLine(0, ui.px(10));
  const auto kept = document.values.kept();
  if (button(ui, kept == id ? "Kept" : "Keep to compare", ButtonKind::normal, kept != id))
    document.values.keep(id);
  tooltip(ui, "Holds the next tensors that are selected against this one");
  if (!kept) return;
  continue_line(ui, 8, ui.px(180));
  control_text(elided("against " + shown(document.model->tensor(*kept).name), ui.px(220)), ui.theme->muted);
  ImGui::SameLine(0, ui.px(6));
  if (button(ui, "Let go", ButtonKind::ghost)) document.values.keep(std::nullopt);
}

void ValuesPanel::draw_figures(const ValueStats& stats, const Ui& ui) const {
  bool first = true;
  const auto put = [&](std::string_view label, const std::string& value) {
    if (!std::exchange(first, false)) continue_line(ui, 22, std::max(text_width(label), text_width(value)));
    fact(ui, label, value, ui.theme->text, ui.fonts.body, 2);
  };
  put("Values", format_grouped(stats.count));
  put("Least", number_text(stats.min));
  put("Largest", number_text(stats.max));
  put("Mean", fmt::format("{:.4g}", stats.mean));
  put("Deviation", fmt::format("{:.4g}", stats.deviation));
  put("Zeros", percent_text(share_of(stats.zeros, stats.count)));
  if (stats.groups > 0) put("2:4 sparse", percent_text(share_of(stats.sparse_groups, stats.groups)));
  if (stats.nans > 0) put("Not a number", format_grouped(stats.nans));
  if (stats.infs() > 0) put("Infinite", format_grouped(stats.infs()));
}

void ValuesPanel::draw_histogram(const ValueHistogram& histogram, const Ui& ui, ImVec2 size) const {
  ImVec2 at = ImGui::GetCursorScreenPos();
  plot_area("histogram", size);
  if (histogram.counts.empty()) return;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(ui.fonts.small);
  const float axis = ImGui::GetFontSize() + ui.px(4);
  put_text(at, ui.theme->muted, fmt::format("up to {} in a bar", counted(histogram.most(), "value")));
  at.y += axis;
  const float height = size.y - 2 * axis;
  const auto level = [&](std::uint64_t count) {
    return logarithmic_ ? std::log1p(static_cast<double>(count)) : static_cast<double>(count);
  };
  const double most = std::max(level(histogram.most()), 1e-9);
  const auto bins = static_cast<float>(histogram.counts.size());
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    const auto x = static_cast<float>(i);
    const float top = height * static_cast<float>(1 - level(histogram.counts[i]) / most);
    draw->AddRectFilled({std::floor(at.x + size.x * x / bins), at.y + top},
                        {std::floor(at.x + size.x * (x + 1) / bins) - 1, at.y + height}, ui.theme->accent);
  }
  draw->AddLine({at.x, at.y + height}, {at.x + size.x, at.y + height}, ui.theme->muted, ui.px(1));
  put_text({at.x, at.y + height + ui.px(3)}, ui.theme->muted, fmt::format("{:.4g}", histogram.low));
  put_text_before(at.x + size.x, at.y + height + ui.px(3), ui.theme->muted,
                  fmt::format("{:.4g}", histogram.high));
  if (histogram.low < 0 && histogram.high > 0) {
    const auto zero = static_cast<float>(-histogram.low / (histogram.high - histogram.low));
    draw->AddLine({at.x + size.x * zero, at.y}, {at.x + size.x * zero, at.y + height},
                  with_alpha(ui.theme->text, 0.5f), ui.px(1));
    put_text({at.x + size.x * zero - text_width("0") / 2, at.y + height + ui.px(3)}, ui.theme->muted, "0");
  }
  if (!ImGui::IsItemHovered()) return;
  const auto bin = static_cast<std::size_t>(
      std::clamp((ImGui::GetIO().MousePos.x - at.x) / size.x * bins, 0.0f, bins - 1));
  const double width = (histogram.high - histogram.low) / static_cast<double>(histogram.counts.size());
  const double from = histogram.low + width * static_cast<double>(bin);
  hover_card(ui, [&] {
    text(
        fmt::format("{} from {:.4g} to {:.4g}", counted(histogram.counts[bin], "value"), from, from + width));
  });
}

void ValuesPanel::draw_comparison(Document& document, const Ui& ui, TensorId id) {
  ValuesView& values = document.values;
  const Tensor &kept = document.model->tensor(*values.kept()), &now = document.model->tensor(id);
  heading(ui, "Against the kept tensor");
  if (elements(kept) != elements(now))
    return paragraph(ui,
                     fmt::format("Cannot be compared: this tensor is {}, the kept one is {}. Both must have "
                                 "equally many values.",
                                 shape_text(now), shape_text(kept)),
                     ui.theme->warning);
  values.compare(id);
  if (values.comparison.busy()) return muted(ui, "Comparing");
  if (values.comparison.error() != nullptr)
    return paragraph(ui, shown(values.comparison.error_text()), ui.theme->bad);
  if (!values.comparison.value()) return;
  const ValueComparison& found = *values.comparison.value();
  const FontScope font(ui.fonts.small);
  if (kept.shape != now.shape)
    muted(ui, fmt::format("shapes differ, {} and {}: compared in the order of the file", shape_text(now),
                          shape_text(kept)));
  text(fmt::format("{} of {} equal", format_grouped(found.equal), counted(found.count, "value")));
  text(fmt::format("largest difference {:.4g}, mean {:.4g}", found.largest, found.mean));
  text(fmt::format("relative error {:.4g}, cosine {:.6f}", found.relative, found.cosine));
  const ImVec2 room = ImGui::GetContentRegionAvail();
  draw_scatter(found, ui, room.x, room.y - ui.px(6));
}

void ValuesPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const auto selected = document.selected_tensor();
  if (!selected)
    return empty_state(ui, "No tensor is selected", "Select one in the tree, the map or the table.");
  const TensorId id = *selected;
  const Tensor& tensor = document.model->tensor(id);
  if (const std::string misfit = reading_misfit(*document.model); !misfit.empty())
    return empty_state(ui, "Its values cannot be read", misfit);
  if (const auto why = measure_refusal(tensor.dtype))
    return empty_state(ui, "Its values cannot be shown", *why);
  ValuesView& values = document.values;
  const std::uint64_t bytes = document.model->bytes[index(id)];
  if (values.shown() != id && bytes > ValuesView::kSmall) {
    heading(ui, shown(tensor.name));
    muted(ui, fmt::format("{} would be read, twice.", format_bytes(bytes)));
    if (button(ui, "Read the values", ButtonKind::primary)) values.read(id);
    return;
  }
  values.read(id);
  if (!values.picture.value()) {
    if (values.picture.error() != nullptr)
      return empty_state(ui, "Its values could not be read", values.picture.error_text());
    return empty_state(ui, "Reading the values", shown(tensor.name));
  }
  draw_toolbar(document, ui, id);
  const ValuePicture& picture = *values.picture.value();
  draw_figures(picture.stats, ui);
  if (picture.cells.mean.empty()) return;
  const bool compares = values.kept() && *values.kept() != id;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float width = compares ? room.x * 0.6f : room.x;
  {
    const ChildScope child("pictures", {width, room.y});
    const ImVec2 inside = ImGui::GetContentRegionAvail();
    const float low = std::clamp(inside.y * 0.36f, ui.px(70), ui.px(190));
    draw_histogram(picture.histogram, ui, {inside.x, low});
    const float rest = inside.y - low - ImGui::GetStyle().ItemSpacing.y;
    if (rest > ui.px(30)) draw_values_map(values, ui, {inside.x, rest}, show_);
  }
  if (!compares) return;
  ImGui::SameLine(0, ui.px(14));
  const ChildScope child("comparison", {0, room.y});
  draw_comparison(document, ui, id);
}

}  // namespace

std::unique_ptr<Panel> make_values_panel() { return std::make_unique<ValuesPanel>(); }

}  // namespace loadline::gui
