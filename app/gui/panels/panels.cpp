// The table of panels.
#include "app/gui/panels/panels.h"

#include "app/gui/parts/widgets.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>

namespace loadline::gui {
namespace {

constexpr std::array<std::string_view, 7> kTabs = {"Map",   "Load",   "Methods", "Forward",
                                                   "Arena", "Values", "Files"};

constexpr auto kPanels = std::to_array<PanelRow>({
    {"map", "Map", "Map", "getting-started", false, make_map_panel},
    {"tensors", "Tensors", "Map", "getting-started", false, make_tensors_panel},
    {"load", "Load", "Load", "planning", false, make_load_panel},
    {"methods", "Methods", "Methods", "planning", false, make_methods_panel},
    {"operators", "Operators", "Forward", "forward-passes", false, make_operators_panel},
    {"graph", "Graph", "Forward", "forward-passes", false, make_graph_panel},
    {"lifetimes", "Lifetimes", "Forward", "forward-passes", false, make_lifetimes_panel},
    {"arena", "Arena", "Arena", "packing", false, make_arena_panel},
    {"values", "Values", "Values", "formats", false, make_values_panel},
    {"model", "Model", "Files", "formats", true, make_model_panel},
    {"bytes", "Bytes", "Files", "getting-started", false, make_bytes_panel},
    {"metadata", "Metadata", "Files", "formats", true, make_metadata_panel},
    {"findings", "Findings", "Files", "formats", true, make_findings_panel},
    {"convert", "Convert", "", "converting", true, make_convert_panel},
    {"upload", "Upload", "", "uploading", true, make_upload_panel},
    {"diff", "Diff", "", "comparing", true, make_diff_panel},
});

}  // namespace

void Panel::draw(Workspace& workspace, const Ui& ui) {
  if (promise_.empty() || workspace.document().model) return draw_content(workspace, ui);
  empty_state(ui, "No model is open", promise_);
}

std::span<const PanelRow> panels() { return kPanels; }

std::span<const std::string_view> tabs() { return kTabs; }

std::vector<const PanelRow*> panels_of(std::string_view tab) {
  std::vector<const PanelRow*> rows;
  for (const PanelRow& row : kPanels)
    if (row.tab == tab) rows.push_back(&row);
  return rows;
}

const PanelRow& find_panel(std::string_view id) {
  const auto found = std::ranges::find_if(kPanels, [&](const PanelRow& row) { return row.id == id; });
  if (found != kPanels.end()) return *found;
  // a tab that several share is called by its title
  const auto first =
      std::ranges::find_if(kPanels, [&](const PanelRow& row) { return lower_case(row.tab) == id; });
  if (first != kPanels.end() && !id.empty()) return *first;
  std::string ids;
  for (const PanelRow& row : kPanels) ids += (ids.empty() ? "" : ", ") + std::string(row.id);
  throw Error(ErrorCode::usage, "no panel '" + std::string(id) + "'; there are: " + ids);
}

}  // namespace loadline::gui
