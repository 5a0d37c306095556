// The sheet that asks what to export, where to and how.
#include "app/gui/frame/export.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/workspace.h"
#include "app/gui/window/input.h"

#include <array>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

constexpr std::string_view kAsker = "export";
constexpr std::array<std::string_view, 4> kPartTitles = {"This panel", "Timeline", "Window", "Animation"};
constexpr std::size_t kAnimation = 3;
constexpr std::array<std::string_view, 3> kViewKinds = {".png", ".svg", ".csv"};
constexpr std::array<std::string_view, 2> kWindowKinds = {".png", ".svg"};
constexpr std::array<std::string_view, 2> kPlayKinds = {".gif", ".png"};
constexpr std::size_t kPlayFrames = 80;

struct NamedSize {
  std::string_view title;
  int width = 0, height = 0;  // 0: as it is seen
};
constexpr auto kSizes = std::to_array<NamedSize>({{"As on the screen"},
                                                  {"1280 x 720", 1280, 720},
                                                  {"1600 x 900", 1600, 900},
                                                  {"1920 x 1080", 1920, 1080},
                                                  {"2560 x 1440", 2560, 1440}});
constexpr std::array<std::string_view, 3> kScaleTitles = {"1x", "2x", "3x"};
constexpr std::array<std::string_view, 3> kThemeTitles = {"As on the screen", "Dark", "Light"};

}  // namespace

std::span<const std::string_view> ExportSheet::kinds() const {
  if (part_ == kAnimation) return kPlayKinds;
  if (part_ == static_cast<std::size_t>(ViewPart::window)) return kWindowKinds;
  return kViewKinds;
}

// "gpt2-xl-map.png", in the current folder; a path that was typed or picked keeps all but its end.
void ExportSheet::suggest(const Workspace& workspace) {
  const bool own = path_ != suggested_;
  std::error_code failed;
  const ModelPtr& model = workspace.document().model;
  const std::string_view of = part_ == kAnimation ? "load"
                              : part_ == 0        ? std::string_view(workspace.settings.panel)
                              : part_ == 1        ? "timeline"
                                                  : "window";
  const std::string name =
      fmt::format("{}-{}{}", model ? std::filesystem::path(model->name).filename().string() : "loadline", of,
                  kinds()[kind_]);
  suggested_ = (std::filesystem::current_path(failed) / name).string();
  if (own)
    path_ = std::filesystem::path(path_).replace_extension(kinds()[kind_]).string();
  else
    path_ = suggested_;
}

void ExportSheet::open(const Workspace& workspace) {
  open_ = appearing_ = true;
  path_ = suggested_;
  suggest(workspace);
}

ExportRequest ExportSheet::request() const {
  ExportRequest request{.path = path_};
  request.part = part_ == kAnimation ? ViewPart::window : static_cast<ViewPart>(part_);
  if (part_ == kAnimation) request.frames = kPlayFrames;
  const float scale = static_cast<float>(scale_ + 1);
  if (kSizes[size_].width > 0) request.size = PictureSize{kSizes[size_].width, kSizes[size_].height, scale};
  if (theme_ > 0) request.dark = theme_ == 1;
  return request;
}

void ExportSheet::draw_form(Workspace& workspace, const Ui& ui) {
  const auto choice = [&](std::string_view label, const char* id, std::span<const std::string_view> titles,
                          std::size_t& at) {
    field(ui, label, 0.2f);
    const std::size_t before = at;
    at = segmented(ui, id, titles, at);
    return at != before;
  };
  bool changed = choice("What", "part", kPartTitles, part_);
  std::vector<std::string_view> kind_titles;
  if (kind_ >= kinds().size()) kind_ = 0;
  for (const std::string_view kind : kinds())
    kind_titles.push_back(kind == ".png"   ? (part_ == kAnimation ? "PNG series" : "PNG picture")
                          : kind == ".svg" ? "SVG drawing"
                          : kind == ".csv" ? "CSV table"
                                           : "GIF");
  changed |= choice("Format", "kind", kind_titles, kind_);
  if (kinds()[kind_] != ".csv") {
    const float width = field(ui, "Size", 0.2f);
    std::vector<std::string> sizes;
    for (const NamedSize& size : kSizes) sizes.emplace_back(size.title);
    if (const auto picked = combo(ui, "##size", width, sizes[size_], sizes, size_)) size_ = *picked;
    if (size_ > 0) choice("Pixels", "scale", kScaleTitles, scale_);
    choice("Theme", "theme", kThemeTitles, theme_);
  }
  if (changed) suggest(workspace);
  if (path_field(ui, "File", 0.2f, path_)) {
    browses_ = true;
    workspace.services.requests.add(OpenBrowser{std::string(kAsker), "Export to", path_});
  }
}

void ExportSheet::draw_buttons(Workspace& workspace, const Ui& ui) {
  const bool right_end = path_.ends_with(kinds()[kind_]);
  if (button(ui, "Write", ButtonKind::primary, right_end)) {
    workspace.services.requests.add(request());
    open_ = false;
  }
  ImGui::SameLine();
  if (button(ui, "Copy", ButtonKind::normal, part_ != kAnimation)) {
    ExportRequest copied = request();
    copied.path = std::string("clipboard") + std::string(kinds()[kind_]);
    copied.copies = true;
    workspace.services.requests.add(std::move(copied));
    open_ = false;
  }
  tooltip(ui, "Puts it on the clipboard");
  ImGui::SameLine();
  if (button(ui, "Cancel", ButtonKind::ghost)) open_ = false;
  if (right_end) return;
  ImGui::SameLine(0, ui.px(16));
  control_text(fmt::format("The file's name has to end with {}", kinds()[kind_]), ui.theme->bad);
}

void ExportSheet::draw(Workspace& workspace, const Ui& ui, bool browses) {
  if (workspace.services.requests.take<OpenExport>()) open(workspace);
  if (auto picked = workspace.services.requests.take_picked(kAsker)) {
    const std::string_view end = kinds()[kind_];
    path_ = picked->ends_with(end) ? *picked : *picked + std::string(end);
  }
  if (!open_ || browses) return;
  if (std::exchange(browses_, false)) appearing_ = !workspace.services.requests.holds<OpenBrowser>();
  if (workspace.services.requests.holds<OpenBrowser>()) return void(browses_ = true);
  ModalScope modal(ui, "export", "Export", {ui.px(640), 0}, std::exchange(appearing_, false));
  if (!modal.visible()) return;
  ImGui::Dummy({0, ui.px(4)});
  draw_form(workspace, ui);
  ImGui::Dummy({0, ui.px(8)});
  draw_buttons(workspace, ui);
  if (list_key_pressed(ListKey::escape) && !ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId)) open_ = false;
  if (!open_ || browses_) modal.close();
}

}  // namespace loadline::gui
