// The map above the timeline: what the model is, over what loading it does.
#include "app/gui/panels/panels.h"
#include "app/gui/widgets.h"

#include <algorithm>

namespace loadline::gui {
namespace {

class ExplorePanel final : public Panel {
 public:
  void draw_content(Workspace& workspace, const Ui& ui) override {
    const float room = ImGui::GetContentRegionAvail().y;
    const float gap = ui.px(8);
    // a curve needs some height to be read; the map can be opened on its own
    const float most = std::max(ui.px(120), room - gap - ui.px(210));
    const float map = std::clamp(room * share_, ui.px(120), most);
    {
      const CardScope card(ui, "map", {0, map});
      map_->draw(workspace, ui);
    }
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() - ImGui::GetStyle().ItemSpacing.y);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    share_ = splitter(ui, "split", map, ui.px(120), most, false) / std::max(room, 1.0f);
    ImGui::PopStyleVar();
    const CardScope card(ui, "time", {0, 0});
    timeline_->draw(workspace, ui);
  }

 private:
  std::unique_ptr<Panel> map_ = make_map_panel();
  std::unique_ptr<Panel> timeline_ = make_timeline_panel();
  float share_ = 0.56f;
};

}  // namespace

std::unique_ptr<Panel> make_explore_panel() { return std::make_unique<ExplorePanel>(); }

}  // namespace loadline::gui
