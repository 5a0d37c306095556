// The table of panels.
#include "app/gui/panels/panels.h"

#include "app/gui/widgets.h"
#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <utility>

namespace loadline::gui {
namespace {

constexpr auto kPanels = std::to_array<PanelRow>({
    {"explore", "Explore", "getting-started", true, make_explore_panel},
    {"map", "Map", "getting-started", false, make_map_panel},
    {"timeline", "Timeline", "planning", false, make_timeline_panel},
    {"methods", "Methods", "planning", false, make_methods_panel},
    {"operators", "Operators", "forward-passes", false, make_operators_panel},
    {"lifetimes", "Lifetimes", "forward-passes", false, make_lifetimes_panel},
    {"arena", "Arena", "packing", false, make_arena_panel},
    {"tensors", "Tensors", "getting-started", false, make_tensors_panel},
    {"model", "Model", "formats", true, make_model_panel},
    {"metadata", "Metadata", "formats", true, make_metadata_panel},
    {"findings", "Findings", "formats", true, make_findings_panel},
    {"convert", "Convert", "converting", true, make_convert_panel},
    {"upload", "Upload", "uploading", true, make_upload_panel},
});

// Former ids of panels, and their present ids.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kFormerIds = {
    {{"treemap", "map"}, {"overview", "model"}}};

}  // namespace

void Panel::draw(Workspace& workspace, const Ui& ui) {
  if (promise_.empty() || workspace.document().model) return draw_content(workspace, ui);
  empty_state(ui, "No model is open", promise_);
}

std::span<const PanelRow> panels() { return kPanels; }

const PanelRow& find_panel(std::string_view id) {
  const auto found = std::ranges::find_if(kPanels, [&](const PanelRow& row) { return row.id == id; });
  if (found != kPanels.end()) return *found;
  const std::string unknown = "no panel '" + std::string(id) + "'";
  for (const auto& [former, now] : kFormerIds)
    if (id == former) throw Error(ErrorCode::usage, unknown + ": it is called " + std::string(now));
  std::string ids;
  for (const PanelRow& row : kPanels) ids += (ids.empty() ? "" : ", ") + std::string(row.id);
  throw Error(ErrorCode::usage, unknown + "; there are: " + ids);
}

}  // namespace loadline::gui
