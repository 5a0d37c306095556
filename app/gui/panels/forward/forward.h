// Tab Forward: controls of the pass, operators and modules in words, rows and plot of the
// lifetimes, plot of the graph.
#pragma once

#include "app/gui/parts/option_controls.h"
#include "app/gui/parts/plot.h"
#include "app/gui/parts/theme.h"
#include "app/gui/state/workspace.h"
#include "core/forward/model/forward_model.h"
#include "core/graph/meta_graph.h"
#include "core/plan/block_contents.h"
#include "core/plan/plan.h"
#include "core/view/curves.h"
#include "core/view/layouts.h"
#include "core/view/operator_graph.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::gui {

// --- Controls for the forward pass, shared by several panels: sizes, profile, types, logits.

// Draws the options of the pass, on as many lines as they need. Options without effect are left out.
void forward_controls(Workspace& workspace, const Ui& ui, OptionControls& controls);
// If no operators are known, draws the reason and the known figures in place of a panel's content, and
// returns true.
bool forward_absent(const Document& document, const Ui& ui);

// The lanes in which a pass is drawn, with their names and colors. A training step alone has optimizer states
// (beside them the weights of adapters), gradients, and activations that are kept for its backward pass.
enum class PassLane { weights, cache, states, gradients, kept, activations, temporaries };
inline constexpr std::size_t kPassLanes = 7;
std::string_view pass_lane_name(PassLane lane);   // one word, at the left of a lane
std::string_view pass_lane_title(PassLane lane);  // in a legend
ImU32 pass_lane_color(const Theme& theme, PassLane lane);

// --- The data of the operators panel: texts of values, search, counts by kind.

// The shape of a value: "[B, S, 768]", or "[?]" if it is unknown. Not escaped.
std::string sides_text(const graph::ForwardGraph& forward, graph::ValueId id);
// Name, shape and dtype of a value: "hidden [B, S, 768] F32". Not escaped.
std::string value_text(const graph::ForwardGraph& forward, graph::ValueId id);
// Bytes with the sizes chosen; "?" where they are unknown or there are no figures.
std::string value_size_text(const forward::ForwardFigures* figures, graph::ValueId id);
// The formula of a value's size: "4*B*S*768 bytes". Empty if the size is a fixed number.
std::string value_size_formula(const graph::ForwardGraph& forward, graph::ValueId id);

// Whether the weight is one of the operator's.
bool reads(const graph::Op& op, graph::TensorId weight);

struct OperatorSummary {
  std::vector<std::pair<std::string, std::uint64_t>> kinds;  // the most frequent first
  std::uint64_t operators = 0;  // an operator that is_part_of_next() is not counted
  bool named = false;           // some operator has a name of its own
  std::uint64_t values = 0;
  std::uint64_t unknown = 0;  // values whose shape the file does not say
};
OperatorSummary summarize(const graph::ForwardGraph& forward);

// The operators whose kind or name holds `text`, in any case; those in bodies behind the one that holds them.
std::vector<graph::OpPlace> operators_with(const graph::ForwardGraph& forward, std::string_view text);
// By what the action "graph" finds it: its name, or that of a value that it makes; empty if by neither.
std::string word_of(const ForwardScene& scene, graph::OpPlace place);

// Positions of operators whose kind, name, weights or values hold `text`, in any case.
std::vector<std::uint32_t> matching_operators(const graph::MetaGraph& graph,
                                              const graph::ForwardGraph& forward, std::string_view text);

// --- The modules of a forward pass with their operators, as a list that unfolds; repeated modules on one
// line.

class ModuleLines {
 public:
  // For a document with operators.
  void draw(Workspace& workspace, const Ui& ui, float height);
  void forget();

 private:
  // A line: one operator, or a group of repeated modules.
  struct Line {
    std::string name;
    graph::OpGroup group;             // no members: an operator that shares its name with others
    std::optional<std::uint32_t> op;  // also for a module that is one operator and nothing else
    std::uint16_t depth = 0;
    bool branch = false;
  };
  void refresh(const Workspace& workspace);
  void unfold();
  // Unfolds the modules around an operator that was chosen elsewhere, except for folded repetitions.
  void reveal(const Document& document);
  void mark(const Document& document);
  std::vector<Line> inside(graph::OpNodeId node, std::uint16_t depth) const;
  std::vector<graph::OpGroup> groups_inside(graph::OpNodeId node) const;
  Line line_of(graph::OpGroup group, std::uint16_t depth) const;
  void move(Document& document, const Ui& ui);
  void choose(Document& document, const Line& line);
  void draw_line(Document& document, const Ui& ui, const Line& line, bool selected);
  void draw_name(Document& document, const Ui& ui, const Line& line, bool selected);
  void describe(const Ui& ui, const Line& line) const;

  std::shared_ptr<const ForwardScene> scene_;
  std::shared_ptr<const forward::ForwardFigures> figures_;
  std::vector<std::uint64_t> peaks_;  // per node
  std::vector<bool> open_;            // per node; a group uses the flag of its first member
  std::vector<Line> lines_;
  std::optional<std::size_t> seen_;    // the operator that was revealed
  std::optional<std::size_t> marked_;  // the innermost line that holds the operator shown
  std::optional<std::size_t> at_;      // the line that the arrows came to
  bool scroll_ = false;                // to what is marked
  bool folded_ = true;
  bool stale_ = true;
};

// --- The data of the lifetimes plot: a row with its bytes for each value, in lanes, and the curve above the
// lanes.

// A row: a tensor of the graph, or a value of its forward pass.
struct PassRow {
  PassLane lane = PassLane::activations;
  std::uint32_t id = 0;  // TensorId or ValueId
  std::uint64_t bytes = 0;
  forward::OpRange ops = {};
};

struct LaneRows {
  std::vector<PassRow> rows;
  std::vector<view::Span> spans;  // parallel to rows
  std::uint64_t most_bytes = 0;   // of a row
  std::uint64_t bytes = 0;        // of all rows
};

// The data for one scene with one set of sizes. On the x axis, operator i lasts from xs[i] to xs[i + 1].
struct PassData {
  std::shared_ptr<const ForwardScene> scene;
  std::shared_ptr<const forward::ForwardFigures> figures;
  std::array<LaneRows, kPassLanes> lanes;  // by PassLane; values of unknown or no size have no row
  // The stack from the bottom, in the order of the lanes; weights and cache with `everything` only.
  std::array<std::vector<view::CurvePoint>, kPassLanes> curves;  // by PassLane, each the sum up to it
  std::vector<std::array<std::uint64_t, kPassLanes>> alive;      // bytes during each operator
  double most_passing = 0, most_everything = 0;
  std::uint64_t weight_bytes = 0;
  std::vector<double> xs;
  double length = 0;     // of the axis: operators, or the steps of a load that the pass follows
  bool on_load = false;  // the latter
};

// With null `figures`, the rows have lifetimes but no bytes. With `steps`, the step of a load at which each
// operator begins, and at which the last one ends, the axis is that of the load.
std::shared_ptr<const PassData> pass_data(std::shared_ptr<const ForwardScene> scene,
                                          std::shared_ptr<const forward::ForwardFigures> figures,
                                          bool everything, std::vector<double> steps = {});
// Where the pass stands in the plan of the load that it follows; nothing if it follows none.
std::optional<plan::PassPlaces> places_of_pass(const Document& document);

// The rows alive during an operator, largest first in each lane. Of the weights, only those that it uses.
std::vector<PassRow> alive_rows(const PassData& data, std::uint32_t op);

std::string_view row_name(const PassData& data, const PassRow& row);
// "[B, S, 768] F32", as the file or the architecture says it.
std::string row_shape(const PassData& data, const PassRow& row);

// --- Draws a forward pass into a rectangle: the curve, then the lanes that have rows, with the model's
// layers as bands behind them.

class AxisLabels;

inline constexpr float kLanesAxisWidth = 88;  // room for the names of the lanes, at the left

class LifetimesPlot {
 public:
  struct Frame {
    PlotArea area;  // around curve and lanes, inside the axes
    PlotRange range;
    bool everything = false;                       // the curve includes weights and cache
    std::optional<graph::TensorId> selected = {};  // outlined in the lane of weights
  };

  void set_data(std::shared_ptr<const PassData> data);
  const PassData& data() const { return *data_; }
  const std::shared_ptr<const PassData>& shared_data() const { return data_; }

  void draw(const Ui& ui, const Frame& frame);
  // Draws a line through curve and lanes at the middle of an operator; for a peak, dashed with dot and label.
  void mark(const Ui& ui, const Frame& frame, std::uint32_t op, ImU32 color, std::string_view label);

  // The operator at a pixel.
  std::uint32_t op_at(const Frame& frame, float pixel) const;
  // The row under the mouse, of the lanes last drawn.
  const PassRow* row_at(const Frame& frame, ImVec2 at) const;

 private:
  struct Lane {
    PassLane lane = PassLane::weights;
    float top = 0, bottom = 0;
    view::LaneLayout layout;
  };
  float pixel_of(const Frame& frame, double x) const;
  PlotArea curve_area(const Frame& frame) const;
  double top_of_curve(const Frame& frame) const;
  void arrange(const Ui& ui, const Frame& frame);
  void arrange_lanes(const Ui& ui, const PlotArea& area, double x0, double x1);
  void draw_bands(const Ui& ui, const Frame& frame) const;
  void draw_curve(const Ui& ui, const Frame& frame) const;
  void draw_lane(const Ui& ui, const Frame& frame, const Lane& lane) const;
  void draw_label(const Ui& ui, const PassRow& row, ImVec2 low, ImVec2 high, float right, ImU32 color) const;
  void draw_gutter(const Ui& ui, float right, const Lane& lane) const;
  void draw_axis(const Ui& ui, const Frame& frame) const;
  bool draw_layers(const Ui& ui, const Frame& frame, double x0, double x1, AxisLabels& labels) const;

  std::shared_ptr<const PassData> data_;
  std::vector<Lane> lanes_;
  std::array<std::vector<view::CurveColumn>, kPassLanes> columns_;  // by PassLane
  float curve_bottom_ = 0;
  // what the lanes were arranged for
  std::shared_ptr<const PassData> arranged_;
  PlotRange range_;
  PlotArea area_;
  std::vector<PlotArea> flags_;  // of this frame
};

// --- Draws a part of the operators as a graph: boxes in layers, edges with the sizes of what flows.

// The operators of one picture: those of the model, or those inside one of its operators.
struct GraphLevel {
  std::shared_ptr<const ForwardScene> scene;
  std::vector<graph::OpPlace> inside;  // as ForwardWork::inside
  view::InnerGraph inner = {};         // if that is not empty
  graph::OpTree inner_tree = {};
  std::vector<graph::OpNodeId> nodes = {};                 // per operator
  std::vector<bool> folded = {};                           // per operator: a constant, which its users show
  std::map<graph::ValueId, std::uint32_t> constants = {};  // those that make values of this level

  const graph::ForwardGraph& forward() const { return inside.empty() ? *scene->drawn() : inner.forward; }
  const graph::OpTree& tree() const { return inside.empty() ? scene->drawn_tree() : inner_tree; }
  // Between its operators and those of ForwardScene::drawn().
  graph::OpPlace place_of(std::uint32_t op) const;
  std::optional<std::uint32_t> op_at(graph::OpPlace place) const;
  // The operator that stands for this one: for a constant, the first that uses it.
  std::uint32_t shown_by(std::uint32_t op) const;
  // The weights of an operator with those of the constants that it uses.
  std::vector<graph::TensorId> weights_of(std::uint32_t op) const;
};
// `scene` has operators.
std::shared_ptr<const GraphLevel> graph_level(std::shared_ptr<const ForwardScene> scene,
                                              std::vector<graph::OpPlace> inside);
// The operators around the bodies around an operator, as ForwardWork::inside.
std::vector<graph::OpPlace> operators_around(const ForwardScene& scene, graph::OpPlace place);

// What can be done with a module of the level, and with what flows along an edge.
AskedMenu menu_of_module(const Document& document, const GraphLevel& level, graph::OpNodeId module);
AskedMenu menu_of_values(const Document& document, const GraphLevel& level,
                         std::span<const graph::ValueId> values);

class GraphPlot {
 public:
  // Places the part; text is measured at the scale of `ui`. `figures` may be null.
  void set_part(const Document& document, const Ui& ui, std::shared_ptr<const GraphLevel> level,
                view::GraphPart part);
  void forget();
  const view::GraphPart& part() const { return part_; }
  const view::GraphPlaces& places() const { return places_; }

  // The rectangle of the window to draw in. True if it is another one.
  bool set_area(PlotArea area);
  const PlotArea& area() const { return area_; }
  void move(ImVec2 pixels) { pan_ = pan_ + pixels; }
  // The point under the pixel stays where it is.
  void zoom_at(ImVec2 pixel, float factor);
  // Shows all of the graph; if `readable`, not so small that its words cannot be read: then it begins at the
  // box, else at the first.
  void fit(bool readable, std::optional<std::size_t> at = {});
  // Moves the picture, if it must, so that the box is inside.
  void keep_in_sight(std::size_t box);
  std::optional<std::size_t> box_at(ImVec2 pixel) const;
  std::optional<std::size_t> edge_at(const Ui& ui, ImVec2 pixel) const;

  void draw(const Document& document, const Ui& ui, std::optional<std::size_t> chosen,
            std::optional<std::size_t> hovered_edge) const;
  // The content of a tooltip.
  void describe_edge(const Document& document, const Ui& ui, std::size_t edge) const;
  void describe_box(const Document& document, const Ui& ui, std::size_t box) const;
  void describe_operator(const Document& document, const Ui& ui, std::uint32_t op) const;

 private:
  struct BoxWords {
    std::string title = {};
    std::string beside = {};  // the title, in the same line
    std::vector<std::string> lines = {};
    std::optional<graph::TensorId> weight = {};  // the largest, for the color of its role
  };
  const graph::ForwardGraph& forward() const { return level_->forward(); }
  std::optional<std::uint64_t> bytes_of(const Document& document, graph::ValueId id) const;
  std::string size_text(const Document& document, graph::ValueId id) const;
  BoxWords words_of(const Document& document, const view::GraphBox& box) const;
  BoxWords operator_words(const view::GraphBox& box) const;
  view::BoxSize size_of(const Ui& ui, const BoxWords& words) const;
  ImVec2 pixel_of(double x, double y) const;
  PlotArea pixels_of(std::size_t box) const;
  void draw_edge(const Document& document, const Ui& ui, std::size_t edge, bool hot, bool marked) const;
  std::vector<ImVec2> points_of_edges(const Ui& ui) const;
  void draw_sizes(const Document& document, const Ui& ui) const;
  void draw_box(const Document& document, const Ui& ui, std::size_t box, bool chosen) const;
  void draw_words(const Ui& ui, std::size_t box, const PlotArea& at) const;
  void draw_hidden(const Ui& ui, std::size_t box, const PlotArea& at) const;

  std::shared_ptr<const GraphLevel> level_;
  view::GraphPart part_;
  std::vector<BoxWords> words_;  // per box
  view::GraphPlaces places_;     // in pixels at a zoom of 1
  PlotArea area_;
  float zoom_ = 1;
  ImVec2 pan_ = {};
};

}  // namespace loadline::gui
