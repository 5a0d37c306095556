// Draws the tiles of a treemap.
#include "app/report/treemap_svg.h"

#include "app/report/page_parts.h"
#include "core/base/text.h"
#include "core/graph/names/module_tree.h"
#include "core/graph/names/role.h"
#include "core/graph/shares.h"
#include "core/view/layouts.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline::report {
namespace {

constexpr double kMapWidth = 960, kMapHeight = 420, kMapLetter = 6.2;

std::string tile_svg(const MetaGraph& graph, const ModuleTree& tree, const view::Tile& tile) {
  const ModuleNode& node = tree.node(tile.node);
  const double width = tile.rect.w, height = tile.rect.h;
  const std::string path = module_path(tree, tile.node);
  std::string svg;
  const std::string title = tile.kind == view::TileKind::aggregate
                                ? fmt::format("{} small parts of {}", format_grouped(tile.tensors), path)
                                : path;
  const bool tensor = tile.kind == view::TileKind::tensor && node.tensor;
  // of small parts together, what their module is for
  const Role role = tensor ? tensor_role(graph.tensor(*node.tensor).name.view()) : tensor_role(path + ".");
  svg += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"><title>{}: "
      "{}</title></rect>\n",
      tile.rect.x, tile.rect.y, std::max(width - 1, 0.5), std::max(height - 1, 0.5),
      tile.kind == view::TileKind::module ? std::string("frame")
                                          : fmt::format("role{}", static_cast<int>(role)),
      markup_text(title, 100), format_bytes(tile.bytes));
  // "weight" says nothing: its module does
  const bool nameless =
      node.children.empty() && tile.node != kRootNode && (node.name == "weight" || node.name == "bias");
  const std::string& label = nameless ? tree.node(node.parent).name : node.name;
  const auto letters = static_cast<std::size_t>(std::max(0.0, (width - 6) / kMapLetter));
  const bool titled = tile.kind == view::TileKind::module ? tile.header : height >= 16;
  if (titled && letters >= 3 && tile.kind != view::TileKind::aggregate && !node.name.empty())
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"tile\">{}</text>\n", tile.rect.x + 3,
                       tile.rect.y + 12, markup_text(label, letters));
  return svg;
}

}  // namespace

std::string treemap_svg(const MetaGraph& graph) {
  const ModuleTree tree = module_tree(graph);
  const view::TreemapOrder order(tree);
  view::TreemapOptions options;
  options.min_side = 10;
  options.header = 16;
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"what is in the model\" "
      "class=\"treemap\">\n",
      kMapWidth, kMapHeight);
  for (const view::Tile& tile :
       view::layout_treemap(tree, order, kRootNode, {0, 0, kMapWidth, kMapHeight}, options))
    svg += tile_svg(graph, tree, tile);
  return svg + "</svg>\n";
}

std::string treemap_legend(const MetaGraph& graph) {
  std::array<std::uint64_t, kRoleCount> bytes{};
  const std::vector<Share> parts = shares(graph);
  for (std::size_t i = 0; i < parts.size(); ++i)
    bytes[static_cast<std::size_t>(tensor_role(graph.tensors[i].name.view()))] += parts[i].bytes;
  std::string html = "<div class=\"legend\">";
  for (std::size_t i = 0; i < kRoleCount; ++i)
    if (bytes[i] > 0)
      html += fmt::format("<span><i class=\"role{}\">&nbsp;</i>{} {}</span>", i,
                          role_name(static_cast<Role>(i)), format_bytes(bytes[i]));
  return html + "</div>\n";
}

}  // namespace loadline::report
