// Draws bars and treemaps.
#include "app/report/pictures.h"

#include "app/report/page_parts.h"
#include "app/report/row_text.h"
#include "core/base/text.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "core/view/layouts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

namespace loadline::report {

// --- Bars for a page and for a terminal.

namespace {

constexpr double kBarsWidth = 720, kBarsLabels = 150, kBarsRow = 26, kBarsHead = 40, kBarHeight = 15;

std::uint64_t greatest(const Bars& bars) {
  std::uint64_t most = std::max<std::uint64_t>(bars.scale, 1);
  for (const Bar& bar : bars.bars) most = std::max(most, bar.bytes);
  return most;
}

// The lines at the weights and twice the weights that bars come near.
std::vector<std::pair<std::uint64_t, std::string_view>> weight_lines(const Bars& bars) {
  std::vector<std::pair<std::uint64_t, std::string_view>> lines;
  const std::uint64_t most = greatest(bars);
  if (bars.weights == 0) return lines;
  if (bars.weights <= most + most / 8) lines.emplace_back(bars.weights, "weights");
  if (bars.weights <= most / 2 + most / 8) lines.emplace_back(2 * bars.weights, "twice");
  return lines;
}

// The part of a law that is about the space with this id.
std::string law_part(const load::Method& method, std::string_view space) {
  if (space == "held" || space == "unified") return load::law_text(method, std::nullopt);
  for (std::size_t i = 0; i < plan::kSpaceCount; ++i)
    if (plan::space_name(plan::Space(i)) == space) return load::law_text(method, plan::Space(i));
  return "";
}

}  // namespace

Bars method_bars(const std::vector<load::LoadRow>& rows, std::uint64_t weights, std::string_view asked) {
  std::vector<const load::LoadRow*> possible;
  for (const load::LoadRow& row : rows)
    if (!row.refusal) possible.push_back(&row);
  const RowSpace& space = asked.empty() ? widest_space(possible) : find_row_space(asked);
  const bool orders = std::ranges::any_of(
      possible, [&](const load::LoadRow* row) { return row->order != possible.front()->order; });
  Bars bars;
  bars.weights = weights;
  bars.title = fmt::format("Most {}", space.words);
  for (const load::LoadRow* const row : possible) {
    bars.bars.push_back(
        {orders ? fmt::format("{}, {}", row->method->id, row->order) : std::string(row->method->id),
         row->context_max ? counted(*row->context_max, "token") : law_part(*row->method, space.id),
         space.peak(*row).bytes, space.id == "host" ? "host" : "device"});
  }
  return bars;
}

std::string bars_svg(const Bars& bars) {
  const double height = kBarsHead + kBarsRow * static_cast<double>(bars.bars.size()) + 8;
  const double room = kBarsWidth - kBarsLabels - 300;  // figure and law stand behind the bars
  const double scale = room / static_cast<double>(greatest(bars));
  const auto x = [&](std::uint64_t bytes) { return kBarsLabels + static_cast<double>(bytes) * scale; };
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\" class=\"bars\">\n"
      "<text x=\"0\" y=\"13\" class=\"method\">{}</text>\n",
      kBarsWidth, height, markup_text(bars.title), markup_text(bars.title));
  for (const auto& [bytes, name] : weight_lines(bars))
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1:.0f}\" x2=\"{0:.1f}\" y2=\"{2:.0f}\" class=\"weights\"/>"
        "<text x=\"{0:.1f}\" y=\"{3:.0f}\" class=\"tick middle\">{4}</text>\n",
        x(bytes), kBarsHead - 6, height - 4, kBarsHead - 10, name);
  for (std::size_t i = 0; i < bars.bars.size(); ++i) {
    const Bar& bar = bars.bars[i];
    const double top = kBarsHead + kBarsRow * static_cast<double>(i);
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"end\">{}</text>"
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" class=\"area {}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"figure\">{}<tspan class=\"where\"> {}</tspan></text>\n",
        kBarsLabels - 8, top + 12, markup_text(bar.label, 24), kBarsLabels, top,
        std::max(x(bar.bytes) - kBarsLabels, 1.0), kBarHeight, bar.color, x(bar.bytes) + 7, top + 12,
        format_bytes(bar.bytes), markup_text(bar.note, 36));
  }
  return svg + "</svg>\n";
}

std::string bars_text(const Bars& bars, std::size_t columns, bool unicode) {
  std::size_t label = 0;
  for (const Bar& bar : bars.bars) label = std::max(label, display_width(safe_display(bar.label, 28)));
  constexpr std::size_t kFigure = 13;                   // "1002.00 MiB" and blanks
  const std::size_t letters = columns < 100 ? 24 : 36;  // of a law
  std::size_t note = 0;
  for (const Bar& bar : bars.bars) note = std::max(note, std::min(bar.note.size(), letters) + 2);
  const std::size_t taken = label + 2 + kFigure + note;
  const std::size_t room = std::clamp<std::size_t>(columns > taken ? columns - taken : 0, 10, 60);
  const std::uint64_t most = greatest(bars);
  const auto cells = [&](std::uint64_t bytes) {
    return static_cast<std::size_t>(
        std::llround(static_cast<double>(bytes) / static_cast<double>(most) * static_cast<double>(room)));
  };
  std::string text = bars.title + "\n";
  std::string ruler(room + 4, ' ');
  std::size_t free = 0;
  for (const auto& [bytes, name] : weight_lines(bars)) {
    const std::size_t at = std::min(cells(bytes), room);
    if (at < free) continue;
    ruler.replace(at, name.size(), name);
    free = at + name.size() + 1;
  }
  while (ruler.ends_with(' ')) ruler.pop_back();
  if (!ruler.empty()) text += fmt::format("{:<{}}  {}\n", "", label, ruler);
  for (const Bar& bar : bars.bars) {
    const std::string shown = safe_display(bar.label, 28);
    std::string strip;
    for (std::size_t i = 0; i < std::max<std::size_t>(cells(bar.bytes), bar.bytes > 0 ? 1 : 0); ++i)
      strip += unicode ? "\xE2\x96\x88" : "#";
    text +=
        fmt::format("{}{:<{}}  {} {}{}{}\n", shown, "", label - display_width(shown), strip,
                    format_bytes(bar.bytes), bar.note.empty() ? "" : "  ", safe_display(bar.note, letters));
  }
  return text;
}

// --- Draws the tiles of a treemap.

namespace {

constexpr double kMapWidth = 960, kMapHeight = 420, kMapLetter = 6.2;

std::string tile_svg(const graph::ModuleTree& tree, const view::Tile& tile, graph::Role role) {
  const graph::ModuleNode& node = tree.node(tile.node);
  const double width = tile.rect.w, height = tile.rect.h;
  const std::string path = graph::module_path(tree, tile.node);
  std::string svg;
  const std::string title = tile.kind == view::TileKind::aggregate
                                ? fmt::format("{} small parts of {}", format_grouped(tile.tensors), path)
                                : path;
  svg += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"><title>{}: "
      "{}</title></rect>\n",
      tile.rect.x, tile.rect.y, std::max(width - 1, 0.5), std::max(height - 1, 0.5),
      tile.kind == view::TileKind::module ? std::string("frame")
                                          : fmt::format("role{}", static_cast<int>(role)),
      markup_text(title, 100), format_bytes(tile.bytes));
  // "weight" says nothing: its module does
  const bool nameless = node.children.empty() && tile.node != graph::kRootNode &&
                        (node.name == "weight" || node.name == "bias");
  const std::string& label = nameless ? tree.node(node.parent).name : node.name;
  const auto letters = static_cast<std::size_t>(std::max(0.0, (width - 6) / kMapLetter));
  const bool titled = tile.kind == view::TileKind::module ? tile.header : height >= 16;
  if (titled && letters >= 3 && tile.kind != view::TileKind::aggregate && !node.name.empty())
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"tile\">{}</text>\n", tile.rect.x + 3,
                       tile.rect.y + 12, markup_text(label, letters));
  return svg;
}

}  // namespace

std::string treemap_svg(const graph::MetaGraph& graph) {
  const graph::ModuleTree tree = graph::module_tree(graph);
  const view::TreemapOrder order(tree);
  const std::vector<graph::Role> roles = graph::tensor_roles(graph);
  const std::vector<graph::Role> of_modules = graph::module_roles(graph, tree, roles);
  view::TreemapOptions options;
  options.min_side = 10;
  options.header = 16;
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"what is in the model\" "
      "class=\"treemap\">\n",
      kMapWidth, kMapHeight);
  for (const view::Tile& tile :
       view::layout_treemap(tree, order, graph::kRootNode, {0, 0, kMapWidth, kMapHeight}, options)) {
    const auto tensor = tree.node(tile.node).tensor;
    const graph::Role module = of_modules[graph::index(tile.node)];
    svg += tile_svg(tree, tile,
                    tile.kind == view::TileKind::tensor && tensor ? roles[graph::index(*tensor)]
                    // of what is mixed, as the module is called
                    : module == graph::Role::other
                        ? graph::tensor_role(graph::module_path(tree, tile.node) + ".")
                        : module);
  }
  return svg + "</svg>\n";
}

std::string treemap_legend(const graph::MetaGraph& graph) {
  std::array<std::uint64_t, graph::kRoleCount> bytes{};
  const std::vector<graph::Share> parts = graph::shares(graph);
  const std::vector<graph::Role> roles = graph::tensor_roles(graph);
  for (std::size_t i = 0; i < parts.size(); ++i) bytes[graph::index(roles[i])] += parts[i].bytes;
  std::string html = "<div class=\"legend\">";
  for (std::size_t i = 0; i < graph::kRoleCount; ++i)
    if (bytes[i] > 0)
      html += fmt::format("<span><i class=\"role{}\">&nbsp;</i>{} {}</span>", i,
                          graph::role_name(static_cast<graph::Role>(i)), format_bytes(bytes[i]));
  return html + "</div>\n";
}

}  // namespace loadline::report
