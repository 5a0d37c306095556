// Tab Load: the timeline unfolded. A row for each block or each module, in the memory that holds it.
#include "app/gui/panels/load_rows.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/plot.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/window/input.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

// --- The panel.

constexpr float kGutter = 164;  // names and sums, at the left
constexpr float kTitle = 20, kLaneGap = 8;
constexpr float kLeastRow = 6, kReadableRow = 15, kTallestBlock = 18, kTallestModule = 52;
constexpr float kMostModule = 240;  // where nothing else needs the room

struct LoadRow {
  RowKey key;
  std::size_t space = 0;       // position in the panel's lanes
  std::size_t parent = kNone;  // the row that it was unfolded from
  int depth = 0;
  bool open = false;
  std::uint64_t most = 0;                            // bytes at once
  double scale = 1;                                  // bytes at its top: the most of a row beside it
  double from = 0, full = 0, to = 0;                 // of a block: allocated, arrived, freed; on the axis
  std::vector<view::CurvePoint> allocated, arrived;  // of several blocks
  std::vector<view::CurveColumn> columns, filled;
  float top = 0, height = 0;  // from the top of the rows
};

struct BlockLane {
  plan::Space space = plan::Space::device;
  std::shared_ptr<const SpaceBlocks> blocks;
  std::size_t first = 0, end = 0;  // rows
  std::size_t fit = 1;             // rows that have room
  float top = 0, height = 0;
};

class LoadPanel final : public Panel {
 public:
  LoadPanel() : Panel("Shows each block of memory over the steps of the load.") {}
  void forget() override {
    key_ = {};
    lanes_.clear();
    rows_.clear();
    open_.clear();
  }

 private:
  // What the rows were made of.
  struct Key {
    std::shared_ptr<const load::Projection> run;
    std::shared_ptr<const Arrivals> arrivals;
    view::RunAxis unit = view::RunAxis::steps;
    double length = 1;
    PlotRange range;
    PlotArea area;
    std::set<RowKey> open;
    bool operator==(const Key&) const = default;
  };
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void draw_header(Workspace& workspace, const Ui& ui);
  void refresh(const Workspace& workspace, const Ui& ui, const PlotArea& area);
  void make_lanes(const Model& model);
  void make_rows(const Ui& ui, float room);
  void add_row(std::size_t lane, const RowKey& key, std::size_t parent, int depth);
  void place_rows(const Ui& ui, float room);
  void measure_rows();
  void fill_curves();
  void draw_rows(const Document& document, const Ui& ui, ImVec2 at) const;
  void draw_title(const Ui& ui, const BlockLane& lane, ImVec2 at) const;
  void draw_row(const Ui& ui, const LoadRow& row, float top) const;
  void draw_sum(const Ui& ui, const LoadRow& row, float top, float bottom) const;
  void draw_name(const Document& document, const Ui& ui, const LoadRow& row, ImVec2 at) const;
  bool holds(const Document& document, const LoadRow& row) const;
  void draw_marks(const Document& document, const Ui& ui) const;
  void handle_mouse(Document& document, const Ui& ui, float top);
  void describe(const Document& document, const Ui& ui, const LoadRow& row) const;
  // Nothing for a row that stands for no one thing.
  std::optional<Selected> meant_by(const Document& document, const LoadRow& row) const;
  void click(Document& document, const LoadRow& row, bool in_gutter);
  std::size_t row_at(float y) const;
  std::string name_of(const Document& document, const LoadRow& row) const;
  double x_of(std::uint32_t step) const;
  float pixel_of(double x) const { return pixel_of_share(key_.area, key_.range, x / key_.length); }

  Key key_;
  std::vector<BlockLane> lanes_;
  std::vector<LoadRow> rows_;
  std::set<RowKey> open_;
  float total_ = 0;  // height of all rows
};

double LoadPanel::x_of(std::uint32_t step) const {
  const std::size_t steps = key_.run->plan.steps.size();
  if (step >= steps) return view::length_of(key_.run->timeline, steps, key_.unit);
  return view::x_of_step(key_.run->timeline, steps, key_.unit, step);
}

void LoadPanel::refresh(const Workspace& workspace, const Ui& ui, const PlotArea& area) {
  const Document& document = workspace.document();
  const Key key = {document.load.projection.value(),
                   document.load.arrivals,
                   document.axis_unit(),
                   axis_length(workspace),
                   document.axis.range,
                   area,
                   open_};
  if (key == key_) return;
  if (key.run != key_.run) open_.clear();
  key_ = key;
  key_.open = open_;
  make_lanes(*document.model);
  make_rows(ui, area.height());
  place_rows(ui, area.height());
  measure_rows();
}

// Zooming in leaves fewer blocks in sight, and the rows of modules unfold.
void LoadPanel::make_lanes(const Model& model) {
  const std::size_t steps = key_.run->plan.steps.size();
  const auto step_at = [&](double share) {
    return static_cast<double>(view::step_at_x(key_.run->timeline, steps, key_.unit, share * key_.length));
  };
  const double from = step_at(key_.range.from), to = step_at(key_.range.to) + 1;
  lanes_.clear();
  for (const plan::Space space : plan::kSpaceOrder) {
    BlockLane lane;
    lane.space = space;
    lane.blocks = std::make_shared<const SpaceBlocks>(model, *key_.run, space, from, to);
    if (lane.blocks->size() > 0) lanes_.push_back(std::move(lane));
  }
}

// Heights of parts that want `wanted`, where all have `room`: those that want little get it, the others
// share.
std::vector<float> shared_room(const std::vector<float>& wanted, float room) {
  std::vector<std::size_t> by_need(wanted.size());
  std::iota(by_need.begin(), by_need.end(), std::size_t{0});
  std::ranges::sort(by_need, {}, [&](std::size_t i) { return wanted[i]; });
  std::vector<float> given(wanted.size());
  std::size_t left = wanted.size();
  for (const std::size_t i : by_need) {
    given[i] = std::max(0.0f, std::min(wanted[i], room / static_cast<float>(left--)));
    room -= given[i];
  }
  return given;
}

void LoadPanel::make_rows(const Ui& ui, float room) {
  rows_.clear();
  room -= ui.px(kTitle + kLaneGap) * static_cast<float>(lanes_.size());
  std::vector<float> wanted;
  for (const BlockLane& lane : lanes_)
    wanted.push_back(ui.px(kReadableRow) * static_cast<float>(lane.blocks->size()));
  const std::vector<float> given = shared_room(wanted, room);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].fit = static_cast<std::size_t>(std::max(1.0f, given[i] / ui.px(kLeastRow)));
    lanes_[i].first = rows_.size();
    for (const RowKey& key : rows_that_fit(*lanes_[i].blocks, lanes_[i].fit)) add_row(i, key, kNone, 0);
    lanes_[i].end = rows_.size();
  }
}

void LoadPanel::add_row(std::size_t lane, const RowKey& key, std::size_t parent, int depth) {
  const std::size_t at = rows_.size();
  const bool folds = !std::holds_alternative<plan::BlockId>(key);
  LoadRow& row = rows_.emplace_back();
  row.key = key;
  row.space = lane;
  row.parent = parent;
  row.depth = depth;
  row.open = folds && open_.contains(key);
  if (!row.open) return;
  for (const RowKey& inside : lanes_[lane].blocks->inside(key)) add_row(lane, inside, at, depth + 1);
}

// What was unfolded by hand has rows that can be read, and scrolls.
void LoadPanel::place_rows(const Ui& ui, float room) {
  std::vector<float> wanted;
  for (const BlockLane& lane : lanes_) {
    float sum = 0;
    for (std::size_t i = lane.first; i < lane.end; ++i)
      sum += ui.px(std::holds_alternative<plan::BlockId>(rows_[i].key) ? kTallestBlock : kTallestModule);
    wanted.push_back(sum);
  }
  const float titles = ui.px(kTitle + kLaneGap) * static_cast<float>(lanes_.size());
  const std::vector<float> given = shared_room(wanted, room - titles);
  // what is left makes the rows of modules taller: they are pictures of many blocks
  const auto modules = static_cast<float>(std::ranges::count_if(
      rows_, [](const LoadRow& row) { return !std::holds_alternative<plan::BlockId>(row.key); }));
  const float left = room - titles - std::accumulate(given.begin(), given.end(), 0.0f);
  const float module_height =
      std::min(ui.px(kMostModule), ui.px(kTallestModule) + std::max(0.0f, left) / std::max(1.0f, modules));
  float top = 0;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    BlockLane& lane = lanes_[i];
    // where not all have what they want, all have the same
    const bool crowded = given[i] < wanted[i];
    const float each = given[i] / static_cast<float>(std::max<std::size_t>(1, lane.end - lane.first));
    const bool opened = std::any_of(rows_.begin() + static_cast<std::ptrdiff_t>(lane.first),
                                    rows_.begin() + static_cast<std::ptrdiff_t>(lane.end),
                                    [](const LoadRow& row) { return row.open; });
    const float least = ui.px(opened ? kReadableRow : kLeastRow);
    lane.top = top;
    top += ui.px(kTitle);
    const float start = top;
    for (std::size_t at = lane.first; at < lane.end; ++at) {
      LoadRow& row = rows_[at];
      const bool block = std::holds_alternative<plan::BlockId>(row.key);
      const float tallest = block ? ui.px(kTallestBlock) : module_height;
      row.height = std::max(least, crowded ? std::min(each, tallest) : tallest);
      row.top = top;
      top += row.height;
    }
    lane.height = top - start;
    top += ui.px(kLaneGap);
  }
  total_ = top;
}

void LoadPanel::measure_rows() {
  const std::vector<plan::Lifetime>& lives = key_.run->timeline.lifetimes;
  for (LoadRow& row : rows_) {
    const auto* const block = std::get_if<plan::BlockId>(&row.key);
    if (block == nullptr) continue;
    const std::size_t at = graph::index(*block);
    row.from = x_of(lives[at].from_step);
    row.to = x_of(lives[at].to_step);
    row.full = key_.arrivals ? std::min(row.to, x_of(key_.arrivals->full_at[at])) : row.from;
    row.most = key_.run->plan.block(*block).bytes;
  }
  fill_curves();
  const auto columns = static_cast<std::size_t>(std::max(1.0f, key_.area.width()));
  const double x0 = key_.range.from * key_.length, x1 = key_.range.to * key_.length;
  for (LoadRow& row : rows_) {
    if (std::holds_alternative<plan::BlockId>(row.key)) continue;
    row.columns = view::step_columns(row.allocated, x0, x1, columns);
    row.filled = view::step_columns(row.arrived, x0, x1, columns);
    for (const view::CurvePoint& point : row.allocated)
      row.most = std::max(row.most, static_cast<std::uint64_t>(point.y));
  }
}

// The sums of the rows of several blocks, in one walk over the steps.
void LoadPanel::fill_curves() {
  const plan::Plan& plan = key_.run->plan;
  std::vector<std::size_t> row_of(plan.blocks.size(), kNone);
  bool any = false;
  for (const BlockLane& lane : lanes_) {
    std::map<RowKey, std::size_t> row_of_key;
    for (std::size_t i = lane.first; i < lane.end; ++i)
      if (!std::holds_alternative<plan::BlockId>(rows_[i].key)) row_of_key[rows_[i].key] = i;
    if (row_of_key.empty()) continue;
    any = true;
    lane.blocks->find_rows(row_of_key, row_of);
  }
  if (!any) return;
  BlockFill fill(plan);
  const auto push = [](std::vector<view::CurvePoint>& curve, double x, double change) {
    curve.push_back({x, (curve.empty() ? 0 : curve.back().y) + change});
  };
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    const BlockFill::Change change = fill.apply(step);
    std::size_t at = row_of[graph::index(step.block)];
    if (at == kNone) continue;
    const plan::Block& block = plan.block(step.block);
    const double arrived = static_cast<double>(filled_bytes(block, change.now)) -
                           static_cast<double>(filled_bytes(block, change.before));
    const double x = x_of(i);
    for (; at != kNone; at = rows_[at].parent) {
      if (step.verb != plan::Verb::copy)
        push(rows_[at].allocated, x,
             (step.verb == plan::Verb::alloc ? 1 : -1) * static_cast<double>(block.bytes));
      if (arrived != 0) push(rows_[at].arrived, x, arrived);
    }
  }
}

// --- What is drawn.

// Without what it has in common with those beside it.
std::string LoadPanel::name_of(const Document& document, const LoadRow& row) const {
  const Model& model = *document.model;
  if (const auto* const use = std::get_if<plan::BlockUse>(&row.key)) return std::string(use_title(*use));
  graph::NodeId base = lanes_[row.space].blocks->base();
  if (row.parent != kNone)
    if (const auto* const module = std::get_if<graph::NodeId>(&rows_[row.parent].key)) base = *module;
  const auto* const node = std::get_if<graph::NodeId>(&row.key);
  std::string name = node != nullptr
                         ? graph::module_path(model.tree, *node)
                         : plan::block_label(key_.run->plan.block(std::get<plan::BlockId>(row.key)),
                                             *model.graph, model.owners);
  const std::string prefix = graph::module_path(model.tree, base);
  if (!prefix.empty() && name.starts_with(prefix + ".")) name.erase(0, prefix.size() + 1);
  return name.empty() ? model.name : name;
}

bool LoadPanel::holds(const Document& document, const LoadRow& row) const {
  const Model& model = *document.model;
  const auto tensor = document.selected_tensor();
  if (const auto* const block = std::get_if<plan::BlockId>(&row.key)) {
    if (document.selected() == Selected(*block)) return true;
    const auto storage = key_.run->plan.block(*block).storage;
    return tensor && storage && model.tensor(*tensor).storage == *storage;
  }
  const auto* const module = std::get_if<graph::NodeId>(&row.key);
  const auto* const chosen = std::get_if<graph::NodeId>(&document.selected());
  if (module == nullptr || row.open || (!tensor && chosen == nullptr)) return false;
  graph::NodeId at = tensor ? model.nodes[graph::index(*tensor)] : *chosen;
  while (at != *module && at != graph::kRootNode) at = model.tree.node(at).parent;
  return at == *module && *module != graph::kRootNode;
}

void LoadPanel::draw_sum(const Ui& ui, const LoadRow& row, float top, float bottom) const {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const plan::Space space = lanes_[row.space].space;
  const auto y = [&](double bytes) {
    if (bytes <= 0) return bottom;
    return std::min(bottom - 1,
                    std::round(bottom - static_cast<float>(std::min(
                                            1.0, bytes / std::max(1.0, static_cast<double>(row.most)))) *
                                            (bottom - top)));
  };
  const auto paint = [&](const std::vector<view::CurveColumn>& columns, ImU32 body, ImU32 teeth) {
    for (std::size_t i = 0; i < columns.size();) {
      std::size_t end = i + 1;
      while (end < columns.size() && columns[end] == columns[i]) ++end;
      const float x0 = key_.area.low.x + static_cast<float>(i),
                  x1 = key_.area.low.x + static_cast<float>(end);
      const float low = y(columns[i].low), high = y(columns[i].high);
      if (low < bottom) draw->AddRectFilled({x0, low}, {x1, bottom}, body);
      if (high < low) draw->AddRectFilled({x0, high}, {x1, low}, teeth);
      i = end;
    }
  };
  const ImU32 dense = arrived_color(*ui.theme, space);
  if (key_.arrivals) {
    const ImU32 pale = allocated_color(*ui.theme, space);
    paint(row.columns, pale, pale);
    paint(row.filled, dense, with_alpha(dense, 0.6f));
  } else {
    paint(row.columns, dense, with_alpha(dense, 0.6f));
  }
}

void LoadPanel::draw_row(const Ui& ui, const LoadRow& row, float top) const {
  const float gap = row.height >= ui.px(4) ? std::max(1.0f, std::round(ui.px(1))) : 0;
  const float bottom = std::max(top + 1, std::round(top + row.height - gap));
  if (!std::holds_alternative<plan::BlockId>(row.key)) return draw_sum(ui, row, top, bottom);
  const PlotArea& area = key_.area;
  const float left = std::max(area.low.x, pixel_of(row.from));
  const float right = std::min(area.high.x, std::max(pixel_of(row.to), left + std::max(1.0f, ui.px(1.5f))));
  const float full = std::clamp(pixel_of(row.full), left, right);
  if (right <= left) return;
  const plan::Space space = lanes_[row.space].space;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled({left, top}, {right, bottom}, allocated_color(*ui.theme, space));
  // what is narrower than a pixel has arrived: pale alone would not be true
  draw->AddRectFilled({full - left < 1 ? left : full, top}, {right, bottom}, arrived_color(*ui.theme, space));
}

void LoadPanel::draw_name(const Document& document, const Ui& ui, const LoadRow& row, ImVec2 at) const {
  const float right = key_.area.low.x - ui.px(8), line = ImGui::GetFontSize();
  const float y = std::round(at.y + (row.height - line) / 2);
  const std::string figure = format_bytes(row.most);
  put_text_before(right, y, ui.theme->muted, figure);
  const bool folds = !std::holds_alternative<plan::BlockId>(row.key);
  float left = key_.area.low.x - ui.px(kGutter) + ui.px(10) * static_cast<float>(std::min(row.depth, 3));
  if (folds && row.height >= ui.px(9)) fold_arrow(ui, {left + ui.px(6), y + line / 2}, row.open);
  left += ui.px(14);
  const float room = right - text_width(figure) - ui.px(8) - left;
  if (room > ui.px(14))
    put_text({left, y}, holds(document, row) ? ui.theme->highlight : ui.theme->text,
             elided_name(shown(name_of(document, row)), room));
}

void LoadPanel::draw_title(const Ui& ui, const BlockLane& lane, ImVec2 at) const {
  const std::uint64_t most = key_.run->timeline.peaks[plan::index(lane.space)].bytes;
  {
    const FontScope font(ui.fonts.strong);
    put_text({key_.area.low.x - ui.px(kGutter), at.y}, ui.theme->text,
             capitalized(plan::space_title(lane.space)));
  }
  const bool folded =
      std::any_of(rows_.begin() + static_cast<std::ptrdiff_t>(lane.first),
                  rows_.begin() + static_cast<std::ptrdiff_t>(lane.end),
                  [](const LoadRow& row) { return !std::holds_alternative<plan::BlockId>(row.key); });
  std::string words =
      fmt::format("{} at most, {} in sight", format_bytes(most), counted(lane.blocks->size(), "block"));
  if (folded) words += ", by module: a click on a name unfolds it";
  const FontScope font(ui.fonts.small);
  const std::string line = elided(words, key_.area.width());
  const ImVec2 low = {key_.area.low.x, at.y};
  ImGui::GetWindowDrawList()->AddRectFilled(low, low + ImVec2{text_width(line) + ui.px(6), ui.px(kTitle - 2)},
                                            ui.theme->panel);  // no mark goes through it
  put_text(low + ImVec2{0, ui.px(1)}, ui.theme->muted, line);
}

void LoadPanel::draw_rows(const Document& document, const Ui& ui, ImVec2 at) const {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const PlotArea& area = key_.area;
  const auto in_sight = [&](float top, float height) {
    return at.y + top + height > area.low.y && at.y + top < area.high.y;
  };
  std::vector<std::pair<ImVec2, ImVec2>> outlined;
  for (const BlockLane& lane : lanes_) {
    const float first = at.y + lane.top + ui.px(kTitle);
    draw->AddRectFilled({area.low.x, first}, {area.high.x, first + lane.height},
                        mix(ui.theme->panel, ui.theme->raised, 0.5f), ui.px(3));
    const FontScope font(ui.fonts.small);
    float labeled = -1e9f;  // where the last name ends: rows may be lower than names
    for (std::size_t i = lane.first; i < lane.end; ++i) {
      const LoadRow& row = rows_[i];
      if (!in_sight(row.top, row.height)) continue;
      const float top = std::round(at.y + row.top);
      draw_row(ui, row, top);
      if (holds(document, row)) outlined.push_back({{area.low.x, top}, {area.high.x, top + row.height}});
      const float middle = at.y + row.top + row.height / 2, half = ImGui::GetFontSize() / 2;
      if (middle - half < labeled) continue;
      labeled = middle + half;
      draw_name(document, ui, row, {at.x, at.y + row.top});
    }
  }
  for (const auto& [low, high] : outlined) {
    draw->AddRect(low, high, ui.theme->sea, ui.px(2), 0, ui.px(4));
    draw->AddRect(low, high, ui.theme->highlight, ui.px(2), 0, ui.px(2));
  }
}

void LoadPanel::draw_marks(const Document& document, const Ui& ui) const {
  const auto mark = [&](std::size_t step, ImU32 color) {
    const float x = pixel_of(x_of(static_cast<std::uint32_t>(step)));
    if (x >= key_.area.low.x && x <= key_.area.high.x) paint_mark(ui, key_.area, x, color, std::nullopt);
  };
  if (const auto failure = document.failure()) mark(failure->step, ui.theme->bad);
  mark(document.time.step(), ui.theme->text);
  if (document.hover.step) mark(*document.hover.step, ui.theme->muted);
}

// --- The mouse, and the panel as a whole.

std::size_t LoadPanel::row_at(float y) const {
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (y >= rows_[i].top && y < rows_[i].top + rows_[i].height) return i;
  return kNone;
}

void LoadPanel::describe(const Document& document, const Ui& ui, const LoadRow& row) const {
  const std::string_view space = plan::space_title(lanes_[row.space].space);
  const auto* const block = std::get_if<plan::BlockId>(&row.key);
  if (block == nullptr) {
    const auto* const module = std::get_if<graph::NodeId>(&row.key);
    const std::string path = module != nullptr ? graph::module_path(document.model->tree, *module) : "";
    text(shown(path.empty() ? name_of(document, row) : path));
    return muted(ui, fmt::format("{} at once, {}, {}", format_bytes(row.most), space,
                                 counted(lanes_[row.space].blocks->count(row.key), "block")));
  }
  const plan::Block& held = key_.run->plan.block(*block);
  text(shown(plan::block_label(held, *document.model->graph, document.model->owners)));
  const bool stays = row.to >= view::length_of(key_.run->timeline, key_.run->plan.steps.size(), key_.unit);
  muted(ui,
        fmt::format("{}, {}, from {} to {}", format_bytes(held.bytes), space,
                    moment_text(key_.unit, row.from), stays ? "the end" : moment_text(key_.unit, row.to)));
  if (row.full > row.from)
    muted(ui, fmt::format("its bytes have arrived at {}", moment_text(key_.unit, row.full)));
}

std::optional<Selected> LoadPanel::meant_by(const Document& document, const LoadRow& row) const {
  if (const auto* const module = std::get_if<graph::NodeId>(&row.key)) return *module;
  const auto* const block = std::get_if<plan::BlockId>(&row.key);
  if (block == nullptr) return std::nullopt;
  const auto storage = key_.run->plan.block(*block).storage;
  const auto owner = storage ? document.model->owners[graph::index(*storage)] : std::nullopt;
  return tensor_or_block(owner, *block);
}

void LoadPanel::click(Document& document, const LoadRow& row, bool in_gutter) {
  if (in_gutter && !std::holds_alternative<plan::BlockId>(row.key)) {
    const RowKey key = row.key;
    if (!open_.erase(key)) open_.insert(key);
  } else if (const auto meant = meant_by(document, row)) {
    document.select(*meant);
  }
}

// The wheel scrolls over the names, and everywhere with Shift; else it zooms, as on the timeline.
void LoadPanel::handle_mouse(Document& document, const Ui& ui, float top) {
  if (!ImGui::IsItemHovered() && !ImGui::IsItemActive()) return;
  const ImGuiIO& io = ImGui::GetIO();
  const bool in_gutter = io.MousePos.x < key_.area.low.x;
  const double share = share_at_pixel(key_.area, key_.range, io.MousePos.x);
  if (in_gutter || io.KeyShift)
    ImGui::SetScrollY(ImGui::GetScrollY() - io.MouseWheel * ui.px(3 * kReadableRow));
  else
    zoom_with_mouse(document.axis.range, share, key_.area.width());
  if (!in_gutter) {
    const std::size_t step = view::step_at_x(key_.run->timeline, key_.run->plan.steps.size(), key_.unit,
                                             std::clamp(share, 0.0, 1.0) * key_.length);
    if (ImGui::IsItemActive() && ImGui::IsMouseDown(ImGuiMouseButton_Left)) document.time.set_step(step);
    document.hover.set_step(step);
  }
  const std::size_t at = row_at(io.MousePos.y - top);
  if (at == kNone || !ImGui::IsItemHovered()) return;
  const LoadRow& row = rows_[at];
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) hover_card(ui, [&] { describe(document, ui, row); });
  if (const auto meant = is_right_clicked() ? meant_by(document, row) : std::nullopt)
    return document.select_for_menu(*meant);
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) click(document, row, in_gutter);
}

void LoadPanel::draw_header(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const load::Projection& run = *document.load.projection.value();
  const FontScope font(ui.fonts.small);
  const std::string_view pale = "pale: not yet arrived";
  const float start = ImGui::GetCursorPosX(), room = ImGui::GetContentRegionAvail().x;
  const bool alone = !workspace.settings.layout.show_timeline;
  const float legend = legend_width(ui, pale, "") + (alone ? segmented_width(ui, kAxisUnits) + ui.px(12) : 0);
  muted(ui, elided(fmt::format("{} in {} order: {} in {}, each from its allocation to its end",
                               run.method->id, run.order, counted(run.plan.blocks.size(), "block"),
                               counted(run.plan.steps.size(), "step")),
                   room - legend - ui.px(16)));
  ImGui::SameLine(0, 0);
  ImGui::SetCursorPosX(start + room - legend);
  legend_entry(ui, allocated_color(*ui.theme, largest_space(run)), pale, "");
  tooltip(ui, "A block is allocated at once and its bytes arrive copy by copy");
  if (!alone) return;
  ImGui::SameLine(0, ui.px(12));
  unit_switch(ui, document);
}

void LoadPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (!document.load.projection.value())
    return empty_state(
        ui, document.load.projection.busy() ? "Projecting the load" : "This load could not be projected",
        document.load.projection.busy() ? "The plan is being run on the modeled machine."
                                        : "The message above says why.");
  draw_header(workspace, ui);
  const ImVec2 size = ImGui::GetContentRegionAvail();
  if (size.x < ui.px(kGutter + 90) || size.y < ui.px(80)) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float bar = ImGui::GetStyle().ScrollbarSize;
  const PlotArea area = on_time_axis(ui, document, inside_axes(ui, at, at + size - ImVec2{bar, 0}, kGutter));
  refresh(workspace, ui, area);
  {
    ImGui::SetCursorScreenPos({at.x, area.low.y});
    const ChildScope child("rows", {size.x, area.height()}, false, ImGuiWindowFlags_NoScrollWithMouse);
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    plot_area("lanes", {size.x - bar, std::max(std::floor(total_), area.height() - 1)});
    handle_mouse(document, ui, origin.y);
    refresh(workspace, ui, area);
    draw_rows(document, ui, origin);
    draw_marks(document, ui);
    for (const BlockLane& lane : lanes_) draw_title(ui, lane, origin + ImVec2{0, lane.top});
    if (total_ > area.height() + 1) scroll_by_keys();
  }
  paint_time_axis(ui, area, document.axis.range, key_.unit, key_.length);
}

}  // namespace

std::unique_ptr<Panel> make_load_panel() { return std::make_unique<LoadPanel>(); }

}  // namespace loadline::gui
