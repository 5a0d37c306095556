// The table of panels.
#include "app/gui/panels/panels.h"

#include "app/gui/panel.h"
#include "core/base/error.h"

#include <algorithm>
#include <array>

namespace loadline::gui {
namespace {

constexpr std::array<PanelRow, 13> kPanels = {{
    {"explore", "Explore", make_explore_panel},
    {"treemap", "Map", make_treemap_panel},
    {"timeline", "Timeline", make_timeline_panel},
    {"methods", "Methods", make_compare_panel},
    {"operators", "Operators", make_operators_panel},
    {"lifetimes", "Lifetimes", make_lifetimes_panel},
    {"arena", "Arena", make_arena_panel},
    {"tensors", "Tensors", make_tensor_table_panel},
    {"overview", "Model", make_overview_panel},
    {"metadata", "Metadata", make_metadata_panel},
    {"findings", "Findings", make_findings_panel},
    {"convert", "Convert", make_convert_panel},
    {"upload", "Upload", make_upload_panel},
}};

}  // namespace

std::span<const PanelRow> panels() { return kPanels; }

const PanelRow& find_panel(std::string_view id) {
  const auto found =
      std::find_if(kPanels.begin(), kPanels.end(), [&](const PanelRow& row) { return row.id == id; });
  if (found != kPanels.end()) return *found;
  std::string ids;
  for (const PanelRow& row : kPanels) ids += (ids.empty() ? "" : ", ") + std::string(row.id);
  throw Error(ErrorCode::usage, "no panel '" + std::string(id) + "'; there are: " + ids);
}

}  // namespace loadline::gui
