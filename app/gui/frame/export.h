// Writes what is seen to files.
#pragma once

#include "app/gui/parts/theme.h"
#include "app/gui/state/base/window_requests.h"
#include "app/gui/window/picture.h"
#include "app/gui/window/window.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

class Document;
class Workspace;

// --- What a view shows as a table, in CSV (RFC 4180).

// The rows behind the panel with this id: those that pass the filter, in the order of the view. Names are
// escaped as on the screen. Throws Error{usage} for a view without rows, or whose rows are not there yet.
std::string view_csv(const Document& document, std::string_view panel);

// --- Writes what is seen to files: pictures, drawings, tables, and plays of a load.

// A rectangle of the window, in pixels.
struct ViewRect {
  ImVec2 low, high;
};

// Takes up an ExportRequest: some frames later the file is there, or a notice that says why not.
class ViewExport {
 public:
  // From the frame that takes the request up to the one that wrote the file.
  bool is_busy() const { return request_.has_value(); }
  // The theme of what is written, while another one than the window's was asked for.
  std::optional<bool> dark() const { return request_ ? request_->dark : std::nullopt; }
  // Around each frame. `panel` and `timeline` are their places in it.
  void before_frame(Workspace& workspace, Window& window);
  void after_frame(Workspace& workspace, Window& window, const Ui& ui, const ViewRect& panel,
                   const ViewRect& timeline);

 private:
  void begin(Workspace& workspace, Window& window, const ExportRequest& asked);
  bool fit(Workspace& workspace, Window& window, const ViewRect& part);
  bool write(Workspace& workspace, Window& window, const Ui& ui, const ViewRect& part);
  void write_view(const Workspace& workspace, Window& window, const Ui& ui, const ViewRect& part);
  bool write_frame(Workspace& workspace, Window& window);
  void end(Workspace& workspace, Window& window);

  std::optional<ExportRequest> request_;
  Window::PictureFrame frame_of_ = {};  // the window in which the part has the size asked for
  std::optional<float> height_;         // of the timeline, that a person chose
  int tries_ = 0;                       // to find it
  int wait_ = 0;                        // frames until what is seen is what was asked for
  std::size_t frame_ = 0;               // of a play
  std::optional<std::size_t> step_;     // where the time cursor was before the play
  std::vector<std::size_t> steps_;      // of each frame
  std::unique_ptr<GifFile> gif_;
};

// --- The sheet that asks what to write: the part, the format, its size and theme, the file or the clipboard.

class ExportSheet {
 public:
  // Draws it from an OpenExport until something is written or Escape is pressed; not while a path is browsed.
  void draw(Workspace& workspace, const Ui& ui, bool browses);

 private:
  void open(const Workspace& workspace);
  void draw_form(Workspace& workspace, const Ui& ui);
  void draw_buttons(Workspace& workspace, const Ui& ui);
  // The ends of names that the part can be written as: ".png".
  std::span<const std::string_view> kinds() const;
  void suggest(const Workspace& workspace);
  ExportRequest request() const;

  bool open_ = false, appearing_ = false, browses_ = false;
  std::size_t part_ = 0, kind_ = 0, size_ = 0, scale_ = 0, theme_ = 0;
  std::string path_, suggested_;
};

}  // namespace loadline::gui
