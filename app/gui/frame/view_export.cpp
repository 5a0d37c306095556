// The end of the file's name says what is written.
#include "app/gui/frame/export.h"
#include "app/gui/frame/view_csv.h"
#include "app/gui/window/draw_svg.h"
#include "app/report/write_file.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

constexpr unsigned kHundredths = 10;       // that a frame of a play is shown
constexpr unsigned kLastHundredths = 150;  // and the last one

FontFace face_of(const Ui& ui, const ImFont& font) {
  constexpr float kInterEm = 1 / 1.2102f, kMonoEm = 1 / 1.32f;  // ascent and descent of their tables
  if (&font == ui.fonts.mono) return {"JetBrains Mono, monospace", 400, kMonoEm};
  const bool strong = &font == ui.fonts.strong || &font == ui.fonts.title || &font == ui.fonts.hero;
  return {"Inter, sans-serif", strong ? 600 : 400, kInterEm};
}

// "play.png" becomes "play-0007.png".
std::string numbered(const std::string& path, std::size_t frame) {
  return fmt::format("{}-{:04}.png", path.substr(0, path.size() - 4), frame);
}

}  // namespace

void ViewExport::before_frame(Workspace& workspace) {
  if (!request_ && workspace.wants_export) {
    workspace.attempt([&] { begin(workspace); });
    if (!request_) workspace.wants_export.reset();
  }
  // viewers of drawings smooth edges themselves
  const bool plain = request_ && request_->path.ends_with(".svg");
  ImGuiStyle& style = ImGui::GetStyle();
  style.AntiAliasedLines = style.AntiAliasedFill = !plain;
}

void ViewExport::begin(Workspace& workspace) {
  constexpr int kSettle = 3;  // the palette closes, and what depends on the layout finds its place
  const ExportRequest& asked = *workspace.wants_export;
  Document& document = workspace.document();
  if (asked.frames > 0) {
    if (!document.projection.value()) throw Error(ErrorCode::usage, "no load is projected");
    const std::size_t last = document.projection.value()->plan.steps.size();
    step_ = document.at_peak() ? std::nullopt : std::optional(document.step());
    steps_.clear();
    for (std::size_t i = 0; i < asked.frames; ++i)
      steps_.push_back(last * i / std::max<std::size_t>(1, asked.frames - 1));
    document.play(false);
    document.set_step(steps_.front());
  }
  frame_ = 0;
  gif_.reset();
  wait_ = kSettle;
  request_ = asked;
}

void ViewExport::after_frame(Workspace& workspace, Window& window, const Ui& ui, const ViewRect& panel,
                             const ViewRect& timeline) {
  if (!request_ || --wait_ > 0) return;
  bool done = true;  // also where it fails
  workspace.attempt([&] {
    if (request_->frames > 0) {
      done = write_frame(workspace, window);
    } else {
      const ImVec2 screen = ImGui::GetIO().DisplaySize;
      write_view(workspace, window, ui,
                 request_->part == ViewPart::panel      ? panel
                 : request_->part == ViewPart::timeline ? timeline
                                                        : ViewRect{{0, 0}, screen});
    }
    // with the folder, which nobody has typed
    std::error_code failed;
    const std::string whole = std::filesystem::absolute(request_->path, failed).string();
    if (done) workspace.done = fmt::format("Written: {}", safe_display(failed ? request_->path : whole, 120));
  });
  if (done) end(workspace);
}

void ViewExport::end(Workspace& workspace) {
  if (request_->frames > 0) workspace.document().set_step(step_);
  request_.reset();
  gif_.reset();
  workspace.wants_export.reset();
}

void ViewExport::write_view(const Workspace& workspace, Window& window, const Ui& ui, const ViewRect& part) {
  const std::string& path = request_->path;
  if (path.ends_with(".csv"))
    return report::write_file(
        path, view_csv(workspace.document(),
                       request_->part == ViewPart::timeline ? "timeline" : workspace.settings.panel));
  if (path.ends_with(".svg"))
    return report::write_file(path, draw_svg(*ImGui::GetDrawData(), part.low, part.high,
                                             [&](const ImFont& font) { return face_of(ui, font); }));
  const auto pixel = [](float at) { return static_cast<std::uint32_t>(std::max(0.0f, at)); };
  write_png(cropped(window.picture(), pixel(part.low.x), pixel(part.low.y), pixel(part.high.x - part.low.x),
                    pixel(part.high.y - part.low.y)),
            path);
}

// One frame of a play, and the cursor on for the next; true after the last.
bool ViewExport::write_frame(Workspace& workspace, Window& window) {
  const Picture picture = window.picture();
  const bool last = frame_ + 1 == steps_.size();
  if (request_->path.ends_with(".png")) {
    write_png(picture, numbered(request_->path, frame_ + 1));
  } else {
    if (!gif_) gif_ = std::make_unique<GifFile>(picture.width, picture.height);
    gif_->add(picture, last ? kLastHundredths : kHundredths);
    if (last) gif_->write(request_->path);
  }
  if (last) return true;
  workspace.document().set_step(steps_[++frame_]);
  wait_ = 1;
  return false;
}

}  // namespace loadline::gui
