// What moves when: every block of the load as a bar from its allocation to its end, a lane for each space.
#include "app/gui/panels/panels.h"
#include "app/gui/parts/plot.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/parts/widgets.h"
#include "core/base/text.h"
#include "core/view/layouts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

struct BlockLane {
  plan::Space space = plan::Space::device;
  std::vector<plan::BlockId> blocks;  // by their first step
  std::vector<view::Span> spans;      // parallel to blocks, in steps
  view::LaneLayout layout;
  float top = 0, height = 0;  // inside the plot, in pixels
};

class LoadPanel final : public Panel {
 public:
  LoadPanel() : Panel("Shows each block of memory over the steps of the load.") {}
  void forget() override {
    of_.reset();
    lanes_.clear();
  }

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void refresh(const Document& document);
  void arrange(const Ui& ui, const PlotArea& area);
  void draw_lane(const Document& document, const Ui& ui, const PlotArea& area, const BlockLane& lane) const;
  void draw_label(const Document& document, const Ui& ui, const BlockLane& lane, const view::LaneBar& bar,
                  ImVec2 low, ImVec2 high) const;
  void handle_mouse(Document& document, const Ui& ui, const PlotArea& area);
  float pixel_of(const PlotArea& area, double step) const;

  std::shared_ptr<const load::Projection> of_;
  std::vector<BlockLane> lanes_;
  double steps_ = 1;
  PlotRange range_;
  PlotRange arranged_range_;
  PlotArea arranged_;
};

void LoadPanel::refresh(const Document& document) {
  if (of_ == document.load.projection.value()) return;
  of_ = document.load.projection.value();
  range_ = {};
  arranged_ = {};
  lanes_.clear();
  steps_ = std::max(1.0, static_cast<double>(of_->plan.steps.size()));
  const plan::Plan& plan = of_->plan;
  for (const plan::Space space : plan::kSpaceOrder) {
    BlockLane lane;
    lane.space = space;
    for (std::uint32_t i = 0; i < plan.blocks.size(); ++i)
      if (plan.blocks[i].space == space && of_->timeline.lifetimes[i].from_step != plan::kNever)
        lane.blocks.push_back(plan::BlockId{i});
    if (lane.blocks.empty()) continue;
    std::ranges::stable_sort(lane.blocks, {}, [&](plan::BlockId id) {
      return of_->timeline.lifetimes[graph::index(id)].from_step;
    });
    for (const plan::BlockId id : lane.blocks) {
      const plan::Lifetime& life = of_->timeline.lifetimes[graph::index(id)];
      const double end = life.to_step == plan::kNever ? steps_ : static_cast<double>(life.to_step);
      lane.spans.push_back(
          {static_cast<double>(life.from_step), std::max(end, static_cast<double>(life.from_step) + 1)});
    }
    lanes_.push_back(std::move(lane));
  }
}

float LoadPanel::pixel_of(const PlotArea& area, double step) const {
  return pixel_of_share(area, range_, step / steps_);
}

// A lane of few blocks takes no more than its rows need; the others share the rest.
void LoadPanel::arrange(const Ui& ui, const PlotArea& area) {
  if (arranged_ == area && arranged_range_ == range_) return;
  arranged_ = area;
  arranged_range_ = range_;
  const float gap = ui.px(10), row = ui.px(16);
  float room = area.height() - gap * static_cast<float>(lanes_.size() - 1);
  std::vector<std::size_t> by_rows(lanes_.size());
  std::iota(by_rows.begin(), by_rows.end(), std::size_t{0});
  std::ranges::sort(by_rows, {}, [&](std::size_t i) { return lanes_[i].blocks.size(); });
  std::size_t left = lanes_.size();
  for (const std::size_t i : by_rows) {
    const float wanted = row * static_cast<float>(lanes_[i].blocks.size());
    lanes_[i].height = std::floor(std::max(ui.px(8), std::min(wanted, room / static_cast<float>(left))));
    room -= lanes_[i].height;
    --left;
  }
  float top = area.low.y;
  for (BlockLane& lane : lanes_) {
    lane.top = top;
    top += lane.height + gap;
    lane.layout = view::layout_lane(lane.spans, range_.from * steps_, range_.to * steps_, area.width(),
                                    lane.height, {.tallest = static_cast<double>(row)});
  }
}

void LoadPanel::draw_label(const Document& document, const Ui& ui, const BlockLane& lane,
                           const view::LaneBar& bar, ImVec2 low, ImVec2 high) const {
  if (bar.count > 1 || high.y - low.y < ImGui::GetFontSize() || high.x - low.x < ui.px(40)) return;
  const plan::Block& block = of_->plan.block(lane.blocks[lane.layout.rows[bar.first]]);
  const std::string name = shown(plan::block_label(block, *document.model->graph, document.model->owners));
  put_text({low.x + ui.px(5), (low.y + high.y - ImGui::GetFontSize()) / 2},
           text_on(ui.theme->spaces[plan::index(lane.space)]), elided(name, high.x - low.x - ui.px(10)));
}

void LoadPanel::draw_lane(const Document& document, const Ui& ui, const PlotArea& area,
                          const BlockLane& lane) const {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(ui.fonts.small);
  const ImVec2 corner = {area.low.x, lane.top};
  draw->AddRectFilled(corner, {area.high.x, lane.top + lane.height},
                      mix(ui.theme->panel, ui.theme->raised, 0.5f), ui.px(3));
  put_text_before(area.low.x - ui.px(8), lane.top, ui.theme->text,
                  capitalized(plan::space_title(lane.space)));
  if (lane.height > 2.4f * ImGui::GetFontSize())
    put_text_before(area.low.x - ui.px(8), lane.top + ImGui::GetFontSize() + ui.px(2), ui.theme->muted,
                    format_grouped(lane.blocks.size()));
  const auto tensor = document.selected_tensor();
  const std::optional<graph::StorageId> storage =
      tensor ? std::optional(document.model->tensor(*tensor).storage) : std::nullopt;
  const ImU32 color = ui.theme->spaces[plan::index(lane.space)];
  std::optional<std::pair<ImVec2, ImVec2>> outlined;
  for (const view::LaneBar& bar : lane.layout.bars) {
    const ImVec2 low = corner + ImVec2{static_cast<float>(bar.rect.x), static_cast<float>(bar.rect.y)};
    const ImVec2 high = low + ImVec2{static_cast<float>(bar.rect.w), static_cast<float>(bar.rect.h)};
    draw->AddRectFilled(low, high, color, bar.rect.h > 6 ? ui.px(2) : 0);
    draw_label(document, ui, lane, bar, low, high);
    for (std::size_t i = 0; storage && i < bar.count; ++i)
      if (of_->plan.block(lane.blocks[lane.layout.rows[bar.first + i]]).storage == storage)
        outlined = {low, high};
  }
  if (!outlined) return;
  draw->AddRect(outlined->first, outlined->second, ui.theme->sea, ui.px(2), 0, ui.px(4));
  draw->AddRect(outlined->first, outlined->second, ui.theme->highlight, ui.px(2), 0, ui.px(2));
}

void LoadPanel::handle_mouse(Document& document, const Ui& ui, const PlotArea& area) {
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const double share = share_at_pixel(area, range_, mouse.x);
  zoom_with_mouse(range_, share, area.width());
  for (const BlockLane& lane : lanes_) {
    if (mouse.y < lane.top || mouse.y >= lane.top + lane.height) continue;
    const std::size_t row = view::lane_row_at(lane.layout, static_cast<double>(mouse.y - lane.top));
    if (row >= lane.layout.rows.size()) return;
    const std::size_t at = lane.layout.rows[row];
    const plan::BlockId id = lane.blocks[at];
    const plan::Block& block = of_->plan.block(id);
    hover_card(ui, [&] {
      text(shown(plan::block_label(block, *document.model->graph, document.model->owners)));
      muted(ui, fmt::format("{}, {}, from step {} to {}", format_bytes(block.bytes),
                            plan::space_title(block.space),
                            format_grouped(static_cast<std::uint64_t>(lane.spans[at].from)),
                            lane.spans[at].to >= steps_
                                ? "the end"
                                : "step " + format_grouped(static_cast<std::uint64_t>(lane.spans[at].to))));
    });
    if (!ImGui::IsMouseClicked(ImGuiMouseButton_Left)) return;
    const auto owner = block.storage ? document.model->owners[graph::index(*block.storage)] : std::nullopt;
    document.select(tensor_or_block(owner, id));
    return;
  }
}

void LoadPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (!document.load.projection.value())
    return empty_state(
        ui, document.load.projection.busy() ? "Projecting the load" : "This load could not be projected",
        document.load.projection.busy() ? "The plan is being run on the modeled machine."
                                        : "The message above says why.");
  refresh(document);
  small_text(ui,
             fmt::format("{} in {} order: {} in {}, each from its allocation to its end", of_->method->id,
                         of_->order, counted(of_->plan.blocks.size(), "block"),
                         counted(of_->plan.steps.size(), "step")),
             ui.theme->muted);
  const ImVec2 size = ImGui::GetContentRegionAvail();
  if (size.x < ui.px(160) || size.y < ui.px(60) || lanes_.empty()) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  plot_area("lanes", size);
  const PlotArea area = inside_axes(ui, at, at + size, kPlotAxisWidth);
  handle_mouse(document, ui, area);
  arrange(ui, area);
  ImGui::PushClipRect(at, at + size, true);
  for (const BlockLane& lane : lanes_) draw_lane(document, ui, area, lane);
  const auto mark = [&](std::size_t step, ImU32 color) {
    const float x = pixel_of(area, static_cast<double>(step));
    if (x >= area.low.x && x <= area.high.x) paint_mark(ui, area, x, color, std::nullopt);
  };
  mark(document.time.step(), ui.theme->text);
  if (document.hover.step) mark(*document.hover.step, ui.theme->muted);
  for (const double tick : view::decimal_ticks(range_.from * steps_, range_.to * steps_, tick_room(ui, area)))
    paint_tick(ui, area, pixel_of(area, tick),
               tick < 1 ? "start" : "step " + format_grouped(static_cast<std::uint64_t>(tick)));
  ImGui::PopClipRect();
}

}  // namespace

std::unique_ptr<Panel> make_load_panel() { return std::make_unique<LoadPanel>(); }

}  // namespace loadline::gui
