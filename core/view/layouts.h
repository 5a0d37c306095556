// Rectangles: rows of lifetimes, a squarified treemap of a module tree.
#pragma once

#include "core/graph/names/tensor_names.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace loadline::view {

// --- Plain shapes in whatever unit the caller draws in.

// Half-open: contains its left and top edges, not its right and bottom ones.
struct Rect {
  double x = 0;
  double y = 0;
  double w = 0;
  double h = 0;

  double area() const { return w * h; }
  bool contains(double px, double py) const { return px >= x && px < x + w && py >= y && py < y + h; }
  bool operator==(const Rect&) const = default;
};

// --- Draws many lifetimes in little space: one row each, or several rows per line if they do not all fit.

// The time range [from, to) of one lifetime.
struct Span {
  double from = 0;
  double to = 0;
};

struct LaneOptions {
  double tallest = 18;  // maximal height of a row
  double gap = 1;       // between rows; left out if rows are lower than four times this
};

// A rectangle in a lane: one span, or several spans of a line merged.
struct LaneBar {
  std::size_t first = 0;  // position in LaneLayout::rows
  std::size_t count = 1;  // number of rows merged
  Rect rect;
};

struct LaneLayout {
  std::vector<std::size_t> rows;  // positions of the drawn spans, top to bottom
  double row_height = 0;          // below 1: several rows share a line of height 1
  std::vector<LaneBar> bars;      // in the order of rows
};

// Lays out the spans that overlap [x0, x1), in the given order, in a rectangle of width x height with x0 at
// its left edge. If rows share a line, spans in it merge unless a gap of one unit or more is between them.
// Every bar is at least one unit wide, so that no overlapping span is left out. O(spans + bars); this holds
// for shared lines only if the spans are sorted by `from`.
LaneLayout layout_lane(std::span<const Span> spans, double x0, double x1, double width, double height,
                       const LaneOptions& options = {});

// The row at height `y` of the layout, as a position in `rows`; rows.size() if there is none.
std::size_t lane_row_at(const LaneLayout& layout, double y);

// --- Squarified treemap of a module tree: tile area is proportional to bytes, at any zoom, but for
// layers that would have no room for their number.

// Rectangles that tile `bounds` with areas in proportion to `weights`, kept near-square by a greedy choice.
// Parallel to `weights`, which should be descending for good shapes; weights that are not positive get empty
// rectangles. O(n). Source: Bruls, Huizing, van Wijk, Squarified Treemaps, 2000.
std::vector<Rect> squarify(std::span<const double> weights, const Rect& bounds);

// For repeated layers: columns filled downwards in the given order, where equal weights have equal shapes, in
// proportion but for 2 %; what is left at the ends of columns stays free. All weights must be > 0.
std::vector<Rect> even_columns(std::span<const double> weights, const Rect& bounds);

// The children of every node by decreasing bytes, sorted once per model so that each layout takes linear
// time.
class TreemapOrder {
 public:
  TreemapOrder() = default;
  explicit TreemapOrder(const graph::ModuleTree& tree);

  std::span<const graph::NodeId> children(graph::NodeId id) const;
  // Bytes of the node's own tensor, without its children's; 0 for a pure module.
  std::uint64_t own_bytes(graph::NodeId id) const { return own_bytes_[graph::index(id)]; }

 private:
  std::vector<graph::NodeId> sorted_;
  std::vector<std::size_t> first_;  // one entry more than there are nodes
  std::vector<std::uint64_t> own_bytes_;
};

struct TreemapOptions {
  double min_side = 4;       // siblings with less area than min_side squared share one aggregate tile
  double padding = 3;        // between frame and children of a titled module; a third for others
  double header = 18;        // height of a module's title strip, if there is enough room
  double header_width = 48;  // modules narrower than this get no title strip
  double number_width = 24;  // unless their name is a number, as a layer's is: down to this width
};

enum class TileKind : std::uint8_t { module, tensor, aggregate };

struct Tile {
  TileKind kind = TileKind::tensor;
  bool header = false;      // modules: the title strip is inside `rect`, at its top
  std::uint16_t depth = 0;  // number of frames around the tile
  graph::NodeId node{};     // aggregate: the module whose smallest children it stands for
  Rect rect;
  std::uint64_t bytes = 0;
  std::uint64_t tensors = 0;
};

// Tiles in drawing order, each frame before its contents. A module with a single child and no bytes of its
// own gets no frame: its child takes its place. Siblings that are numbered or of nearly equal size are laid
// out in even columns, in their natural order, and much smaller ones among many as one tile with room for
// their number; all others are squarified. Equal siblings are drawn equally: in the same arrangement and to
// the same depth. The work is proportional to the tiles made, not to the tree.
std::vector<Tile> layout_treemap(const graph::ModuleTree& tree, const TreemapOrder& order, graph::NodeId root,
                                 const Rect& bounds, const TreemapOptions& options);

// The topmost tile at a point: the last one in `tiles` that contains it; null if there is none.
const Tile* tile_at(std::span<const Tile> tiles, double x, double y);

}  // namespace loadline::view
