// The real upload: where to, how, and what it measured beside what was projected.
#include "app/gui/panels/panels.h"
#include "app/gui/panels/plan_controls.h"
#include "app/gui/panels/timeline_data.h"
#include "app/gui/panels/timeline_plot.h"
#include "app/gui/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

class UploadPanel final : public Panel {
 public:
  void draw(Session& session, const Ui& ui) override;

 private:
  void draw_form(Session& session, const Ui& ui);
  void draw_devices(Session& session, const Ui& ui, float width);
  void draw_projected(const Session& session, const Ui& ui);
  void draw_result(const Session& session, const Ui& ui, const UploadResult& result);
  void draw_peaks(const Ui& ui, const Timeline& projected, const Timeline* measured);
  void draw_progress(Session& session, const Ui& ui);

  bool asked_for_devices_ = false;
  TimelinePlot plot_;
  std::shared_ptr<const UploadResult> plotted_;
};

void UploadPanel::draw(Session& session, const Ui& ui) {
  if (!session.model()) {
    empty_state(ui, "No model is open", "Open one to move its weights to a GPU, for real.");
    return;
  }
  if (!asked_for_devices_) {
    asked_for_devices_ = true;
    session.find_devices();
  }
  const float form = std::min(ui.px(340), ImGui::GetContentRegionAvail().x * 0.45f);
  begin_card(ui, "form", {form, 0});
  draw_form(session, ui);
  end_card();
  ImGui::SameLine(0, ui.px(12));
  begin_card(ui, "result", {0, 0});
  const auto result = session.upload_result();
  if (session.uploading()) draw_progress(session, ui);
  if (result)
    draw_result(session, ui, *result);
  else
    draw_projected(session, ui);
  end_card();
}

void UploadPanel::draw_devices(Session& session, const Ui& ui, float width) {
  std::vector<std::string> labels = {"best device"};
  std::size_t current = 0;
  for (const gpu::DeviceInfo& device : session.devices()) {
    labels.push_back(fmt::format("{}: {}", device.index, device.name));
    if (session.device() == std::to_string(device.index)) current = labels.size() - 1;
  }
  const std::vector<std::string_view> views(labels.begin(), labels.end());
  if (const auto picked = combo(ui, "##device", width, labels[current], views, current))
    session.set_device(*picked == 0 ? "" : std::to_string(session.devices()[*picked - 1].index));
  const gpu::DeviceChoice choice = gpu::choose_device(session.devices(), session.device());
  if (!choice.chosen) return;
  const gpu::DeviceInfo& device = session.devices()[*choice.chosen];
  const FontScope font(ui.fonts.small);
  const gpu::DeviceHeap* heap = gpu::device_heap(device);
  std::string words = fmt::format("{}, {}", device.name, gpu::device_type_name(device.type));
  if (heap != nullptr && heap->budget) words += fmt::format(", {} available", format_bytes(*heap->budget));
  paragraph(ui, shown(words), ui.theme->muted);
  for (const std::string& reason : choice.reasons[*choice.chosen])
    paragraph(ui, shown(reason), ui.theme->muted);
}

void UploadPanel::draw_form(Session& session, const Ui& ui) {
  const float width = ImGui::GetContentRegionAvail().x;
  heading(ui, "Upload to");
  draw_devices(session, ui, width);
  muted(ui, "Method and order");
  method_and_order(session, ui, width * 0.62f, width * 0.38f - ui.px(6));
  ring_controls(session, ui, width);
  bool verify = session.verify_upload();
  if (checkbox(ui, "Read back and compare every byte", &verify)) session.set_verify_upload(verify);
  ImGui::Dummy({0, ui.px(4)});
  const bool ready = session.projection() && !session.uploading() && session.model()->errors == 0;
  if (button(ui, session.uploading() ? "Uploading" : "Upload", ButtonKind::primary, ready))
    session.attempt([&] { session.upload(); });
  if (session.model()->errors > 0)
    paragraph(ui, "This model has errors (see Model): it can be looked at, not uploaded.", ui.theme->bad);
}

void UploadPanel::draw_progress(Session& session, const Ui& ui) {
  for (const JobView& job : session.jobs()) {
    if (job.name != "Uploading") continue;
    heading(ui, "Uploading");
    bar(ui, job.fraction, ui.theme->accent, {ImGui::GetContentRegionAvail().x, ui.px(10)});
    muted(ui, fmt::format("{} of {}", format_bytes(job.done), format_bytes(job.total)));
    if (button(ui, "Cancel")) session.cancel(job.id);
    ImGui::Dummy({0, ui.px(8)});
  }
}

// The head of the table: titles of figures stand at the right, as the figures do.
void draw_titles(const Ui& ui, int columns) {
  ImGui::TableNextRow();
  for (const std::string_view title : {"Peak of", "", "Projected", "Measured", "Error"}) {
    if (ImGui::TableGetColumnIndex() + 1 >= columns) break;
    ImGui::TableNextColumn();
    const FontScope font(ui.fonts.small);
    if (ImGui::TableGetColumnIndex() < 2)
      muted(ui, title);
    else
      right_aligned(title, ui.theme->muted);
  }
}

// A row per space: projected, and measured with the error once there is something measured.
void UploadPanel::draw_peaks(const Ui& ui, const Timeline& projected, const Timeline* measured) {
  double most = 1;
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    most = std::max(most, static_cast<double>(projected.peaks[i].bytes));
    if (measured != nullptr) most = std::max(most, static_cast<double>(measured->peaks[i].bytes));
  }
  const int columns = measured != nullptr ? 5 : 3;
  if (!ImGui::BeginTable("peaks", columns, ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_PadOuterX)) return;
  ImGui::TableSetupColumn("Peak of", ImGuiTableColumnFlags_WidthFixed, ui.px(96));
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupColumn("Projected", ImGuiTableColumnFlags_WidthFixed, ui.px(104));
  if (measured != nullptr) {
    ImGui::TableSetupColumn("Measured", ImGuiTableColumnFlags_WidthFixed, ui.px(104));
    ImGui::TableSetupColumn("Error", ImGuiTableColumnFlags_WidthFixed, ui.px(72));
  }
  draw_titles(ui, columns);
  for (const Space space : kStackOrder) {
    const std::uint64_t wanted = projected.peaks[index(space)].bytes;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const float y = ImGui::GetCursorPosY();
    text(space_title(space));
    ImGui::TableNextColumn();
    const float width = ImGui::GetContentRegionAvail().x;
    ImGui::SetCursorPosY(y + ui.px(measured != nullptr ? 2 : 5));
    bar(ui, static_cast<double>(wanted) / most, ui.theme->spaces[index(space)], {width, ui.px(6)});
    if (measured != nullptr) {
      ImGui::SetCursorPosY(y + ui.px(11));
      bar(ui, static_cast<double>(measured->peaks[index(space)].bytes) / most, ui.theme->highlight,
          {width, ui.px(4)});
    }
    ImGui::TableNextColumn();
    ImGui::SetCursorPosY(y);
    right_aligned(format_bytes(wanted), ui.theme->text);
    tooltip(ui, format_grouped(wanted) + " bytes");
    if (measured == nullptr) continue;
    const std::uint64_t got = measured->peaks[index(space)].bytes;
    ImGui::TableNextColumn();
    right_aligned(format_bytes(got), ui.theme->text);
    tooltip(ui, format_grouped(got) + " bytes");
    ImGui::TableNextColumn();
    if (wanted == 0) {
      right_aligned(got == 0 ? "\xE2\x80\x93" : "new", got == 0 ? ui.theme->muted : ui.theme->warning);
      continue;
    }
    const double error = (static_cast<double>(got) / static_cast<double>(wanted) - 1) * 100;
    right_aligned(fmt::format("{:+.2f}%", error), std::abs(error) <= 2 ? ui.theme->good : ui.theme->warning);
  }
  ImGui::EndTable();
}

void UploadPanel::draw_projected(const Session& session, const Ui& ui) {
  heading(ui, "Projected");
  if (!session.projection()) {
    muted(ui, "The load is being projected.");
    return;
  }
  paragraph(
      ui,
      "What the upload is going to take. Press Upload to run it and see the measured figures beside these.",
      ui.theme->muted);
  draw_peaks(ui, session.projection()->timeline, nullptr);
  const Method& method = *session.projection()->method;
  ImGui::Dummy({0, ui.px(6)});
  heading(ui, method.id);
  paragraph(ui, method.explanation, ui.theme->text);
}

void UploadPanel::draw_result(const Session& session, const Ui& ui, const UploadResult& result) {
  const gpu::UploadReport& report = result.report;
  heading(ui, "Projected beside measured");
  draw_peaks(ui, result.projection->timeline, &report.measured);
  ImGui::Dummy({0, ui.px(2)});
  text(fmt::format("{} in {}, {}", format_bytes(report.bytes), format_seconds(report.seconds),
                   format_rate(report.bytes_per_second)));
  ImGui::SameLine(0, ui.px(12));
  if (report.verified == true)
    badge(ui, "every byte verified", ui.theme->good);
  else if (report.verified == false)
    badge(ui, "differs from the file", ui.theme->bad);
  else
    badge(ui, "not verified", ui.theme->warning);
  {
    const FontScope font(ui.fonts.small);
    paragraph(ui,
              fmt::format("{}: process private memory rose by {}{}", shown(report.device),
                          format_bytes(report.rss_anon_peak),
                          report.software_device ? ", which holds this device's memory too" : ""),
              ui.theme->muted);
  }
  if (report.verified == false) paragraph(ui, shown(report.mismatch), ui.theme->bad);
  if (plotted_ != session.upload_result()) {
    plotted_ = session.upload_result();
    plot_.set_curves(timeline_curves(*result.projection, plotted_.get(), TimeAxis::steps));
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (room.y < ui.px(110)) return;
  legend_entry(ui, ui.theme->highlight, "measured: allocated", "");
  ImGui::SameLine(0, ui.px(16));
  legend_entry(ui, ui.theme->accent, "measured: process", "");
  plot_.draw(ui, {{at.x, at.y + ui.px(22)}, {at.x + room.x, at.y + room.y}, {}, false});
}

}  // namespace

std::unique_ptr<Panel> make_upload_panel() { return std::make_unique<UploadPanel>(); }

}  // namespace loadline::gui
