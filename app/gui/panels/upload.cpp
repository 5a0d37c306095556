// The real upload: its device and options, and the measured figures beside the projected ones.
#include "app/gui/panels/panels.h"
#include "app/gui/panels/plan_controls.h"
#include "app/gui/panels/timeline_data.h"
#include "app/gui/panels/timeline_plot.h"
#include "app/gui/session/fits.h"
#include "app/gui/widgets.h"
#include "app/report/manual.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <span>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

// The head of a table: titles of figures stand at the right, as the figures do.
void draw_titles(const Ui& ui, std::span<const std::string_view> titles) {
  const FontScope font(ui.fonts.small);
  ImGui::TableNextRow();
  for (std::size_t i = 0; i < titles.size(); ++i) {
    ImGui::TableNextColumn();
    if (i == 0)
      muted(ui, titles[i]);
    else
      right_aligned(titles[i], ui.theme->muted);
  }
}

void figure(const Ui& ui, std::uint64_t bytes) {
  ImGui::TableNextColumn();
  right_aligned(bytes == 0 ? "\xE2\x80\x93" : format_bytes(bytes),
                bytes == 0 ? ui.theme->muted : ui.theme->text);
  bytes_tooltip(ui, bytes);
}

constexpr float kName = 86;
constexpr float kFigure = 92;

bool room_for_bars(const Ui& ui, std::size_t columns) {
  constexpr float kBars = 150;
  return ImGui::GetContentRegionAvail().x > ui.px(kName + kFigure * static_cast<float>(columns - 2) + kBars);
}

// Names, bars where there is room for them, and columns of figures.
bool begin_figures(const Ui& ui, const char* id, std::span<const std::string_view> titles, bool bars) {
  constexpr float kNarrowFigure = 80;
  const std::string own = fmt::format("{}{}", id, bars ? " with bars" : "");  // ImGui keeps a table's widths
  if (!ImGui::BeginTable(own.c_str(), static_cast<int>(titles.size()),
                         ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_PadOuterX))
    return false;
  if (bars)
    fixed_column(ui, "name", kName);
  else
    stretched_column("name", 1);
  stretched_column("bars", 1, bars ? 0 : ImGuiTableColumnFlags_Disabled);
  for (std::size_t i = 2; i < titles.size(); ++i)
    fixed_column(ui, titles[i].data(), bars ? kFigure : kNarrowFigure);
  draw_titles(ui, titles);
  return true;
}

// A bar for the projected figure, and below it a bar for the measured one.
void draw_pair(const Ui& ui, double projected, std::optional<double> measured, ImU32 color) {
  if (!ImGui::TableNextColumn()) return;
  const float y = ImGui::GetCursorPosY();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::SetCursorPosY(y + ui.px(measured ? 3 : 6));
  bar(ui, projected, color, {width, ui.px(6)});
  if (!measured) return;
  ImGui::SetCursorPosY(y + ui.px(12));
  bar(ui, *measured, ui.theme->highlight, {width, ui.px(4)});
}

// False while no device is chosen.
bool draw_devices(Workspace& workspace, const Ui& ui, float width) {
  std::vector<std::string> labels = {"best device"};
  std::size_t current = 0;
  for (const gpu::DeviceInfo& device : workspace.devices())
    labels.push_back(fmt::format("{}: {}", device.index, device.name));
  const gpu::DeviceChoice choice = gpu::choose_device(workspace.devices(), workspace.shared.device);
  // a device may also be asked for by a part of its name
  const bool named = !workspace.shared.device.empty();
  if (named && choice.chosen) current = *choice.chosen + 1;
  const std::string preview = named && !choice.chosen ? shown(workspace.shared.device) : labels[current];
  if (const auto picked = combo(ui, "##device", width, preview, labels, current))
    workspace.choose_device(*picked == 0 ? "" : std::to_string(workspace.devices()[*picked - 1].index));
  if (!choice.chosen) {
    if (workspace.devices().empty()) return false;
    paragraph(ui,
              named ? fmt::format("There is no device called '{}' that can hold a model.",
                                  shown(workspace.shared.device))
                    : "No device here can hold a model: see `loadline devices`.",
              ui.theme->bad);
    return false;
  }
  const gpu::DeviceInfo& device = workspace.devices()[*choice.chosen];
  const FontScope font(ui.fonts.small);
  const gpu::DeviceHeap* heap = gpu::device_heap(device);
  std::string words = fmt::format("{} ({})", device.name, gpu::device_type_name(device.type));
  if (heap != nullptr)
    words += fmt::format(", {} {}", format_bytes(heap->budget.value_or(heap->bytes)),
                         heap->budget ? "available" : "in all");
  paragraph(ui, shown(words), ui.theme->muted);
  hover_card(ui, [&] {
    for (const std::string& reason : choice.reasons[*choice.chosen]) text(shown(reason));
  });
  return true;
}

// A row per space: projected, and once there was an upload what was allocated, which follows the plan
// by construction, and what the allocator took for it.
void draw_peaks(const Ui& ui, const Timeline& projected, const Timeline* measured) {
  constexpr std::array<std::string_view, 5> kTitles = {"Peak of", "", "Projected", "Allocated",
                                                       "Taken in all"};
  const bool taken = measured != nullptr && measured->reserved_peak;
  double most = 1;
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    most = std::max(most, static_cast<double>(projected.peaks[i].bytes));
    if (measured != nullptr) most = std::max(most, static_cast<double>(measured->peaks[i].bytes));
  }
  const std::size_t columns = measured == nullptr ? 3 : taken ? 5 : 4;
  const bool bars = room_for_bars(ui, columns);
  const FontScope font(bars ? ui.fonts.body : ui.fonts.small);
  const char* id = measured == nullptr ? "projected" : "allocated";
  if (!begin_figures(ui, id, std::span(kTitles).first(columns), bars)) return;
  for (const Space space : kStackOrder) {
    const std::size_t at = index(space);
    const std::uint64_t wanted = projected.peaks[at].bytes;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text(space_title(space));
    std::optional<double> share;
    if (measured != nullptr) share = static_cast<double>(measured->peaks[at].bytes) / most;
    draw_pair(ui, static_cast<double>(wanted) / most, share, ui.theme->spaces[at]);
    figure(ui, wanted);
    if (measured != nullptr) figure(ui, measured->peaks[at].bytes);
    if (taken) figure(ui, (*measured->reserved_peak)[at]);
  }
  ImGui::EndTable();
}

void draw_projected(const Document& document, const Ui& ui) {
  heading(ui, "Projected");
  if (!document.projection.value())
    return paragraph(ui,
                     document.projection.busy()
                         ? "The load is being projected."
                         : "This load could not be projected: the message above says why.",
                     ui.theme->muted);
  const std::string& misfit = document.upload_misfit();
  if (misfit.empty()) {
    paragraph(ui, "What the upload is going to take; what is measured will stand beside it.",
              ui.theme->muted);
  } else {
    std::string words = shown(misfit) + ". An upload would be refused.";
    words.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(words.front())));
    paragraph(ui, words, ui.theme->bad);
  }
  draw_peaks(ui, document.projection.value()->timeline, nullptr);
  const Method& method = *document.projection.value()->method;
  ImGui::Dummy({0, ui.px(6)});
  heading(ui, method.id);
  paragraph(ui, report::method_explanation(method.id), ui.theme->text);
}

// The measurement: the system's counters beside the plan's figures.
void draw_system_count(const Ui& ui, const UploadResult& result) {
  const gpu::UploadReport& report = result.report;
  constexpr std::array<std::string_view, 5> kTitles = {"Peak of", "", "Projected", "Counted", "Difference"};
  constexpr std::uint64_t kWorthComparing = 8 << 20;  // below it, the process itself is what is counted
  const auto wanted = static_cast<double>(report.projected_rss_anon);
  const auto got = static_cast<double>(report.rss_anon_peak);
  const double most = std::max({wanted, got, 1.0});
  const bool bars = room_for_bars(ui, kTitles.size());
  const FontScope font(bars ? ui.fonts.body : ui.fonts.small);
  if (begin_figures(ui, "counted", kTitles, bars)) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text("Process");
    tooltip(ui, "Growth of the private memory of this process (RssAnon)");
    draw_pair(ui, wanted / most, got / most, ui.theme->accent);
    figure(ui, report.projected_rss_anon);
    figure(ui, report.rss_anon_peak);
    ImGui::TableNextColumn();
    if (!result.alone || report.projected_rss_anon < kWorthComparing) {
      right_aligned("\xE2\x80\x93", ui.theme->muted);
    } else {
      const double error = (got / wanted - 1) * 100;
      right_aligned(fmt::format("{:+.1f} %", error),
                    std::abs(error) <= 5 ? ui.theme->good : ui.theme->warning);
    }
    ImGui::EndTable();
  }
  const FontScope small(ui.fonts.small);
  if (!result.alone)
    paragraph(ui, "Other work of this window ran at the same time: its memory is in the count.",
              ui.theme->warning);
  if (report.software_device)
    paragraph(
        ui, "A software device's memory is the process's own. It is taken when it is allocated, as on a GPU.",
        ui.theme->muted);
  for (const std::string& note : report.notes) paragraph(ui, shown(note), ui.theme->muted);
  const auto& taken = report.measured.reserved_peak;
  const std::size_t staging = index(Space::staging);
  if (taken && report.measured.peaks[staging].bytes == 0 && (*taken)[staging] > 0)
    paragraph(ui,
              fmt::format("{} of staging are the uploader's own buffer for copies from ordinary memory, "
                          "outside the plan.",
                          format_bytes((*taken)[staging])),
              ui.theme->muted);
}

void draw_progress(Workspace& workspace, const Ui& ui) {
  for (const JobView& job : workspace.shared.jobs.view()) {
    if (job.name != "Uploading") continue;
    heading(ui, "Uploading");
    bar(ui, job.fraction, ui.theme->accent, {ImGui::GetContentRegionAvail().x, ui.px(10)});
    muted(ui, fmt::format("{} of {}", format_bytes(job.done), format_bytes(job.total)));
    if (button(ui, "Cancel")) workspace.shared.jobs.cancel(job.id);
    ImGui::Dummy({0, ui.px(8)});
  }
}

class UploadPanel final : public Panel {
 public:
  UploadPanel() : Panel("Open one to move its weights to a GPU, for real.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void draw_form(Workspace& workspace, const Ui& ui);
  void draw_result(const Workspace& workspace, const Ui& ui, const UploadResult& result);

  OptionControls controls_;
  std::uint64_t seen_model_ = 0;  // what is available is asked anew for each
  TimelinePlot plot_;
  std::shared_ptr<const UploadResult> plotted_;
};

void UploadPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (seen_model_ != document.id) {
    seen_model_ = document.id;
    workspace.find_devices();
  }
  const float form = std::min(ui.px(340), ImGui::GetContentRegionAvail().x * 0.42f);
  {
    const CardScope card(ui, "form", {form, 0});
    draw_form(workspace, ui);
  }
  ImGui::SameLine(0, ui.px(12));
  const CardScope card(ui, "result", {0, 0});
  const auto result = workspace.uploaded();
  if (workspace.uploading.busy()) draw_progress(workspace, ui);
  if (result)
    draw_result(workspace, ui, *result);
  else
    draw_projected(document, ui);
}

void UploadPanel::draw_form(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const float width = ImGui::GetContentRegionAvail().x;
  heading(ui, "Upload to");
  const bool chosen = draw_devices(workspace, ui, width);
  method_and_order(workspace, ui, width * 0.62f, width * 0.38f - ui.px(6));
  upload_options(document, ui, controls_);
  checkbox(ui, "Read back and compare", &workspace.settings.verify_upload);
  tooltip(ui, "Every byte on the device is compared with the files");
  ImGui::Dummy({0, ui.px(4)});
  const Model& model = *document.model;
  // why it cannot be mapped stands beside the projection, as every misfit does
  const bool ready = chosen && document.projection.value() && !document.projection.busy() &&
                     !workspace.uploading.busy() && use_misfit(model).empty() &&
                     mapping_misfit(model, *document.projection.value()).empty();
  if (button(ui, workspace.uploading.busy() ? "Uploading" : "Upload", ButtonKind::primary, ready))
    workspace.attempt([&] { workspace.upload(); });
  if (const std::string why = use_misfit(model); !why.empty())
    paragraph(ui, "Cannot be uploaded: " + shown(why), ui.theme->bad);
}

void UploadPanel::draw_result(const Workspace& workspace, const Ui& ui, const UploadResult& result) {
  const gpu::UploadReport& report = result.report;
  heading(ui, "Uploaded");
  text(fmt::format("{} in {}, {}", format_bytes(report.bytes), format_seconds(report.seconds),
                   format_rate(report.bytes_per_second)));
  const auto [verdict, color] = !report.verified   ? std::pair("not verified", ui.theme->warning)
                                : *report.verified ? std::pair("every byte verified", ui.theme->good)
                                                   : std::pair("differs from the file", ui.theme->bad);
  continue_line(ui, 12, text_width(verdict) + ui.px(14));
  badge(ui, verdict, color);
  {
    const FontScope font(ui.fonts.small);
    name_text(ui, report.device, 0, ui.theme->muted);
  }
  if (report.verified == false) paragraph(ui, shown(report.mismatch), ui.theme->bad);
  ImGui::Dummy({0, ui.px(2)});
  heading(ui, "Counted by the system");
  draw_system_count(ui, result);
  ImGui::Dummy({0, ui.px(2)});
  heading(ui, "Allocated as planned");
  draw_peaks(ui, result.projection->timeline, &report.measured);
  if (plotted_ != workspace.uploaded()) {
    plotted_ = workspace.uploaded();
    plot_.set_curves(
        timeline_curves(*result.projection, plotted_.get(), {}, TimeAxis::steps, TimelineShape::stacked), {});
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (room.y < ui.px(110)) return;
  legend_entry(ui, ui.theme->highlight, "measured: allocated", "");
  ImGui::SameLine(0, ui.px(16));
  legend_entry(ui, ui.theme->good, "measured: process", "");
  plot_.draw(ui, {inside_axes(ui, at + ImVec2{0, ui.px(22)}, at + room, kPlotAxisWidth), {}});
}

}  // namespace

std::unique_ptr<Panel> make_upload_panel() { return std::make_unique<UploadPanel>(); }

}  // namespace loadline::gui
