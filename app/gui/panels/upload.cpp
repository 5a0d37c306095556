// The real upload: its device and options, and the measured figures beside the projected ones.
#include "app/gui/panels/panels.h"
#include "app/gui/parts/option_controls.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/model.h"
#include "app/gui/state/transfers.h"
#include "app/report/manual.h"
#include "app/report/measured_loads.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include <fmt/core.h>

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
  constexpr float kNarrowFigure = 68;
  ImVec2 padding = ImGui::GetStyle().CellPadding;
  if (!bars) padding.x /= 2;
  const StyleScope narrow(ImGuiStyleVar_CellPadding, padding);
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

// A line for each heap: its purpose, and the memory that this process may use of it.
void draw_heaps(const Ui& ui, const gpu::DeviceInfo& device) {
  constexpr float kGap = 8;
  const FontScope font(ui.fonts.small);
  for (const gpu::DeviceHeap& heap : device.heaps) {
    const bool system = device.type == gpu::DeviceType::cpu;
    const std::string_view name = system               ? "System memory"
                                  : !heap.device_local ? "Host memory"
                                  : heap.host_visible  ? "Device memory, mappable"
                                                       : "Device memory";
    muted(ui, name);
    const std::string room =
        !heap.budget ? format_bytes(heap.bytes)
        : system     ? format_bytes(*heap.budget) + " available"
                 : fmt::format("{} of {} available", format_bytes(*heap.budget), format_bytes(heap.bytes));
    continue_line(ui, kGap, text_width(room));
    right_aligned(room, ui.theme->text);
  }
}

// False while no device is chosen.
bool draw_devices(Workspace& workspace, const Ui& ui, float width) {
  std::vector<std::string> labels = {"best device"};
  std::size_t current = 0;
  const std::vector<std::string>& misfits = workspace.document().checks.device_misfits();
  for (const gpu::DeviceInfo& device : workspace.devices()) {
    const std::size_t at = labels.size() - 1;
    const std::string_view fit = at >= misfits.size()  ? ""
                                 : misfits[at].empty() ? ", fits"
                                                       : ", does not fit";
    labels.push_back(fmt::format("{}: {}{}", device.index, device.name, fit));
  }
  const gpu::DeviceChoice choice = gpu::choose_device(workspace.devices(), workspace.services.device);
  // a device may also be asked for by a part of its name
  const bool named = !workspace.services.device.empty();
  if (named && choice.chosen) current = *choice.chosen + 1;
  const std::string preview = named && !choice.chosen ? shown(workspace.services.device) : labels[current];
  if (const auto picked = combo(ui, "##device", width, preview, labels, current))
    workspace.choose_device(*picked == 0 ? "" : std::to_string(workspace.devices()[*picked - 1].index));
  if (!choice.chosen) {
    if (workspace.devices().empty()) return false;
    paragraph(ui,
              named ? fmt::format("No device '{}' can hold a model.", shown(workspace.services.device))
                    : "No device here can hold a model: see `loadline devices`.",
              ui.theme->bad);
    return false;
  }
  const gpu::DeviceInfo& device = workspace.devices()[*choice.chosen];
  const std::string name = shown(fmt::format("{} ({})", device.name, gpu::device_type_name(device.type)));
  const bool weighed = *choice.chosen < misfits.size();
  const std::string_view misfit = weighed ? misfits[*choice.chosen] : std::string_view();
  {
    const FontScope font(ui.fonts.small);
    if (weighed)
      badge_line(ui, misfit.empty() ? "fits" : "does not fit",
                 misfit.empty() ? ui.theme->good : ui.theme->bad, name, ui.theme->muted);
    else
      paragraph(ui, name, ui.theme->muted);
  }
  hover_card(ui, [&] {
    if (!misfit.empty()) text(shown(misfit));
    for (const std::string& reason : choice.reasons[*choice.chosen]) text(shown(reason));
  });
  draw_heaps(ui, device);
  return true;
}

// A row per space: projected, and once there was an upload what was allocated, which follows the plan
// by construction, and what the allocator took for it.
void draw_peaks(const Ui& ui, const plan::Timeline& projected, const plan::Timeline* measured) {
  constexpr std::array<std::string_view, 5> kTitles = {"Peak of", "", "Projected", "Allocated", "Reserved"};
  const bool taken = measured != nullptr && measured->reserved_peak;
  double most = 1;
  for (std::size_t i = 0; i < plan::kSpaceCount; ++i) {
    most = std::max(most, static_cast<double>(projected.peaks[i].bytes));
    if (measured != nullptr) most = std::max(most, static_cast<double>(measured->peaks[i].bytes));
  }
  const std::size_t columns = measured == nullptr ? 3 : taken ? 5 : 4;
  const bool bars = room_for_bars(ui, columns);
  const FontScope font(bars ? ui.fonts.body : ui.fonts.small);
  const char* id = measured == nullptr ? "projected" : "allocated";
  if (!begin_figures(ui, id, std::span(kTitles).first(columns), bars)) return;
  for (const plan::Space space : plan::kSpaceOrder) {
    const std::size_t at = plan::index(space);
    const std::uint64_t wanted = projected.peaks[at].bytes;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text(capitalized(plan::space_title(space)));
    std::optional<double> share;
    if (measured != nullptr) share = static_cast<double>(measured->peaks[at].bytes) / most;
    draw_pair(ui, static_cast<double>(wanted) / most, share, ui.theme->spaces[at]);
    figure(ui, wanted);
    if (measured != nullptr) figure(ui, measured->peaks[at].bytes);
    if (taken) figure(ui, (*measured->reserved_peak)[at]);
  }
  ImGui::EndTable();
}

// How fast the upload should be; nothing for a target's rates, which are not this machine's.
void draw_projected_time(const Document& document, const Ui& ui) {
  const load::LoadAnswer* const judged = document.load.judged_load();
  if (judged == nullptr || judged->bound->memory.target) return;
  const FontScope font(ui.fonts.small);
  paragraph(ui,
            fmt::format("About {}. {}", format_seconds(document.load.projection.value()->seconds),
                        load::rates_line(judged->bound->rates)),
            ui.theme->muted);
}

void draw_projected(const Document& document, const Ui& ui) {
  heading(ui, "Projected");
  if (!document.load.projection.value())
    return paragraph(ui,
                     document.load.projection.busy()
                         ? "The load is being projected."
                         : "This load could not be projected: the message above says why.",
                     ui.theme->muted);
  const std::string& misfit = document.checks.upload_misfit();
  if (misfit.empty()) {
    paragraph(ui, "The memory that the upload will use. Measured figures will be shown beside it.",
              ui.theme->muted);
  } else {
    paragraph(ui, capitalized(shown(misfit)) + ". An upload would be refused.", ui.theme->bad);
  }
  draw_peaks(ui, document.load.projection.value()->timeline, nullptr);
  draw_projected_time(document, ui);
  const load::Method& method = *document.load.projection.value()->method;
  ImGui::Dummy({0, ui.px(6)});
  heading(ui, method.id);
  paragraph(ui, report::method_explanation(method.id), ui.theme->text);
}

// The measurement: the system's counters beside the plan's figures.
void draw_system_count(const Ui& ui, const UploadResult& result) {
  const gpu::UploadReport& report = result.report;
  constexpr std::array<std::string_view, 5> kTitles = {"Peak of", "", "Projected", "Counted", "Difference"};
  constexpr std::uint64_t kWorthComparing = 8 << 20;  // below it, the process itself is what is counted
  const std::uint64_t device = report.projected_device_budget;
  const std::uint64_t most = std::max({report.projected_rss_anon, report.rss_anon_peak, device,
                                       report.device_budget_peak.value_or(0), std::uint64_t{1}});
  const bool bars = room_for_bars(ui, kTitles.size());
  const FontScope font(bars ? ui.fonts.body : ui.fonts.small);
  const auto row = [&](std::string_view name, std::string_view hint, std::uint64_t wanted, std::uint64_t got,
                       bool alone) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text(name);
    tooltip(ui, hint);
    draw_pair(ui, share_of(wanted, most), share_of(got, most), ui.theme->accent);
    figure(ui, wanted);
    figure(ui, got);
    ImGui::TableNextColumn();
    if (!alone || wanted < kWorthComparing) return right_aligned("\xE2\x80\x93", ui.theme->muted);
    const double error = report::error_percent(wanted, got);
    right_aligned(fmt::format("{:+.1f} %", error), std::abs(error) <= 5 ? ui.theme->good : ui.theme->warning);
  };
  if (begin_figures(ui, "counted", kTitles, bars)) {
    row("Process", "Growth of the private memory of this process (RssAnon)", report.projected_rss_anon,
        report.rss_anon_peak, result.alone);
    if (report.device_budget_peak)
      row("Device", "Growth of the device memory by the driver's count (VK_EXT_memory_budget)", device,
          *report.device_budget_peak, true);
    ImGui::EndTable();
  }
  const FontScope small(ui.fonts.small);
  if (!result.alone)
    paragraph(ui, "Other jobs of this window ran during the upload: their memory is counted too.",
              ui.theme->warning);
  if (report.software_device)
    paragraph(
        ui,
        "A software device's memory is the process's own. It is reserved when it is allocated, as on a GPU.",
        ui.theme->muted);
  for (const std::string& note : report.notes) paragraph(ui, shown(note), ui.theme->muted);
  const auto& taken = report.measured.reserved_peak;
  const std::size_t staging = plan::index(plan::Space::staging);
  if (taken && report.measured.peaks[staging].bytes == 0 && (*taken)[staging] > 0)
    paragraph(ui,
              fmt::format("{} of staging are the uploader's own buffer for copies from ordinary memory, "
                          "outside the plan.",
                          format_bytes((*taken)[staging])),
              ui.theme->muted);
}

class UploadPanel final : public Panel {
 public:
  UploadPanel() : Panel("Open a model to upload its weights to a GPU.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void draw_form(Workspace& workspace, const Ui& ui);
  void draw_running(Workspace& workspace, const Ui& ui);
  void draw_result(const Workspace& workspace, const Ui& ui, const UploadResult& result);
  void draw_plot(const Ui& ui, bool allocated);

  OptionControls controls_;
  std::uint64_t seen_model_ = 0;  // what is available is asked anew for each
  JobProgress progress_;
  TimelinePlot plot_;
  std::shared_ptr<const void> plotted_;  // the result, or the upload that runs
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
  const auto result = workspace.transfers.uploaded(workspace.document());
  if (workspace.transfers.uploading.busy())
    draw_running(workspace, ui);
  else if (result)
    draw_result(workspace, ui, *result);
  else
    draw_projected(document, ui);
}

void UploadPanel::draw_form(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const Model& model = *document.model;
  const float line = ImGui::GetFrameHeightWithSpacing();
  bool chosen = false;
  {
    // what begins the upload stays in sight, however many options the method has
    const ChildScope options("options", {0, -line});
    const float width = ImGui::GetContentRegionAvail().x;
    heading(ui, "Upload to");
    chosen = draw_devices(workspace, ui, width);
    method_and_order(workspace, ui, width * 0.62f, width * 0.38f - ui.px(6));
    upload_options(document, ui, controls_);
    if (const std::string why = use_misfit(model); !why.empty())
      paragraph(ui, "Cannot be uploaded: " + shown(why), ui.theme->bad);
  }
  // why it cannot be mapped stands beside the projection, as every misfit does
  const bool ready = chosen && document.load.projection.value() && !document.load.projection.busy() &&
                     !workspace.transfers.uploading.busy() && use_misfit(model).empty() &&
                     mapping_misfit(model, *document.load.projection.value()).empty();
  if (button(ui, workspace.transfers.uploading.busy() ? "Uploading" : "Upload", ButtonKind::primary, ready))
    workspace.attempt([&] { workspace.transfers.upload(workspace.document()); });
  ImGui::SameLine(0, ui.px(14));
  checkbox(ui, "Verify", &workspace.transfers.verify);
  tooltip(ui, "Every byte on the device is read back and compared with the files");
}

// The curves as they grow: projected for the whole upload, measured up to now.
void UploadPanel::draw_running(Workspace& workspace, const Ui& ui) {
  heading(ui, "Uploading");
  if (const auto job = workspace.services.jobs.find(workspace.transfers.uploading.job()))
    if (progress_.draw(ui, *job)) workspace.transfers.uploading.cancel();
  ImGui::Dummy({0, ui.px(2)});
  const std::shared_ptr<const LiveUpload>& live = workspace.transfers.live_upload;
  if (plotted_ != live) {
    plotted_ = live;
    plot_.set_curves(
        timeline_curves(*live->projection(), nullptr, {}, view::RunAxis::steps, TimelineShape::stacked), {});
  }
  const load::SampleLog::Entries samples = live->samples();
  plot_.take_samples(samples);
  heading(ui, "Measured so far");
  draw_plot(ui, false);
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
  {
    const FontScope font(ui.fonts.small);
    const report::UploadTime time = report::upload_time(report, result.rates);
    paragraph(ui, report::upload_time_text(time) + " " + load::rates_line(result.rates), ui.theme->text);
    tooltip(ui, report::upload_rates_text(time, result.rates, report.device));
  }
  ImGui::Dummy({0, ui.px(2)});
  heading(ui, report.device_budget_peak ? "Counted by the system and the driver" : "Counted by the system");
  draw_system_count(ui, result);
  ImGui::Dummy({0, ui.px(2)});
  heading(ui, "Allocated as planned");
  draw_peaks(ui, result.projection->timeline, &report.measured);
  if (const auto shown = workspace.transfers.uploaded(workspace.document()); plotted_ != shown) {
    plotted_ = shown;
    plot_.set_curves(
        timeline_curves(*result.projection, shown.get(), {}, view::RunAxis::steps, TimelineShape::stacked),
        {});
  }
  draw_plot(ui, true);
}

// Measured curves over the projected ones, as high as there is room, and never too flat to be read.
void UploadPanel::draw_plot(const Ui& ui, bool allocated) {
  constexpr float kLeastHeight = 170;
  constexpr float kGap = 16;
  bool first = true;
  const auto entry = [&](ImU32 color, std::string_view words) {
    if (!first) continue_line(ui, kGap, legend_width(ui, words, ""));
    first = false;
    legend_entry(ui, color, words, "");
  };
  const TimelineCurves& curves = plot_.curves();
  for (const plan::Space space : curves.sides[0].spaces)
    entry(ui.theme->spaces[plan::index(space)], capitalized(plan::space_title(space)));
  if (allocated) entry(ui.theme->highlight, "measured: allocated");
  entry(ui.theme->good, "measured: process");
  if (!curves.driver.empty()) entry(ui.theme->accent, "measured: driver");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const ImVec2 size = {room.x, std::max(room.y, ui.px(kLeastHeight))};
  plot_area("plot", size);
  plot_.draw(ui, {inside_axes(ui, at, at + size, kPlotAxisWidth), {}});
}

}  // namespace

std::unique_ptr<Panel> make_upload_panel() { return std::make_unique<UploadPanel>(); }

}  // namespace loadline::gui
