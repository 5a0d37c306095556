// Writes what is seen to files.
#pragma once

#include "app/gui/parts/theme.h"
#include "app/gui/state/base/window_requests.h"
#include "app/gui/window/picture.h"
#include "app/gui/window/window.h"

#include <memory>
#include <optional>
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
  // Around each frame. `panel` and `timeline` are their places in it.
  void before_frame(Workspace& workspace);
  void after_frame(Workspace& workspace, Window& window, const Ui& ui, const ViewRect& panel,
                   const ViewRect& timeline);

 private:
  void begin(Workspace& workspace, const ExportRequest& asked);
  void write_view(const Workspace& workspace, Window& window, const Ui& ui, const ViewRect& part);
  bool write_frame(Workspace& workspace, Window& window);
  void end(Workspace& workspace);

  std::optional<ExportRequest> request_;
  int wait_ = 0;                     // frames until what is seen is what was asked for
  std::size_t frame_ = 0;            // of a play
  std::optional<std::size_t> step_;  // where the time cursor was before the play
  std::vector<std::size_t> steps_;   // of each frame
  std::unique_ptr<GifFile> gif_;
};

}  // namespace loadline::gui
