// Frames that are built and thrown away.
#include "tests/gui/null_window.h"

#include "app/gui/window/still_window.h"
#include "core/base/error.h"

#include <imgui.h>

namespace loadline::gui {
namespace {

class NullWindow final : public StillWindow {
 public:
  using StillWindow::StillWindow;

  void frame(const std::function<void()>& build) override {
    if (!ImGui::GetIO().Fonts->IsBuilt()) upload_fonts();
    build_frame(build);
  }
  Picture picture() override { throw Error(ErrorCode::unsupported, "window: this window draws nothing"); }
  void upload_fonts() override {
    unsigned char* pixels = nullptr;
    int width = 0;
    int height = 0;
    ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  }
};

}  // namespace

std::unique_ptr<Window> open_null_window(const WindowOptions& options) {
  return std::make_unique<NullWindow>(options);
}

}  // namespace loadline::gui
