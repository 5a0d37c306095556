// Tab Files: the bytes of each file as a strip, every tensor where it lies.
#include "app/gui/panels/panels.h"
#include "app/gui/parts/plot.h"
#include "app/gui/parts/widgets.h"
#include "core/base/text.h"
#include "core/view/file_strips.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

using view::FileStrip;
using view::StripKind;
using view::StripPart;
using view::StripTile;

// --- When the load reads each storage first.

struct ReadOrder {
  std::vector<std::size_t> step;    // per storage; kNever: it is not read
  std::vector<std::uint32_t> rank;  // per storage: how many are read before it
  std::uint32_t count = 0;          // of storages that are read
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);
};

ReadOrder read_order(const graph::MetaGraph& graph, const plan::Plan& plan) {
  ReadOrder order{std::vector<std::size_t>(graph.storages.size(), ReadOrder::kNever),
                  std::vector<std::uint32_t>(graph.storages.size(), 0)};
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto* const storage = std::get_if<graph::StorageId>(&plan.steps[i].from);
    if (plan.steps[i].verb != plan::Verb::copy || storage == nullptr) continue;
    std::size_t& first = order.step[graph::index(*storage)];
    if (first != ReadOrder::kNever) continue;
    first = i;
    order.rank[graph::index(*storage)] = order.count++;
  }
  return order;
}

// --- The panel.

// A range of bytes of one strip.
struct StripRun {
  std::size_t strip = 0;
  std::uint64_t offset = 0, bytes = 0;
};

std::string base_name(const Model& model, std::size_t file) {
  return std::filesystem::path(model.graph->files[file].path).filename().string();
}

std::string_view kind_words(StripKind kind) {
  switch (kind) {
    case StripKind::header:
      return "names, shapes and metadata";
    case StripKind::alignment:
      return "alignment of the tensor behind it";
    case StripKind::hole:
      return "a hole: nothing uses these bytes";
    case StripKind::record:
      return "the format's record of the tensor behind it";
    case StripKind::trailer:
      return "behind the last tensor";
    case StripKind::tensor:
      break;
  }
  return "";
}

// In all tiles the same part of a name, or less where that does not fit: from the number of its layer on,
// without ".weight"; else the last part alone.
std::string tile_label(const Model& model, graph::TensorId tensor, float room) {
  constexpr std::string_view kWeight = ".weight";
  const std::string whole = shown(model.tensor(tensor).name);
  std::string_view name = whole;
  const auto fits = [&] { return text_width(name) <= room; };
  if (const auto layer = model.layers[graph::index(tensor)]; layer >= 0)
    if (const std::size_t at = name.find(fmt::format(".{}.", layer)); at != std::string_view::npos)
      name.remove_prefix(at + 1);
  if (name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
  if (fits()) return std::string(name);
  name.remove_prefix(name.rfind('.') + 1);
  return fits() ? std::string(name) : "";
}

class BytesPanel final : public Panel {
 public:
  BytesPanel() : Panel("Shows the bytes of each file as a strip, every tensor where it lies.") {}
  void forget() override {
    seen_model_ = 0;
    strips_.clear();
    by_bytes_.clear();
    has_kind_ = {};
    read_of_.reset();
  }

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void refresh(const Document& document);
  std::vector<StripRun> runs_of(const Document& document, graph::NodeId module) const;
  static std::vector<StripRun> runs_of(const Document& document, graph::TensorId tensor);
  void mark_selection(const Document& document);
  void lay_out(const Ui& ui, ImVec2 room);
  void zoom_by(double factor, float window_y);
  void draw_head(const Document& document, const Ui& ui);
  void draw_strips(Workspace& workspace, const Ui& ui);
  void refresh_tiles(double low, double high);
  void draw_titles(const Document& document, const Ui& ui, ImVec2 at, double low, double high) const;
  void draw_tile(const Workspace& workspace, const Ui& ui, std::size_t strip, const StripTile& tile,
                 ImVec2 at) const;
  void draw_runs(const Ui& ui, const std::vector<StripRun>& runs, ImVec2 at, bool strong) const;
  void draw_legend(const Workspace& workspace, const Ui& ui);
  void handle_mouse(Workspace& workspace, const Ui& ui, ImVec2 at);
  void handle_keys(Workspace& workspace, const Ui& ui);
  void follow_selection(const Document& document);
  bool is_lit(const Document& document, const FileStrip& strip, const StripTile& tile) const;
  Selected meant_by(const Document& document, const FileStrip& strip, const StripTile& tile) const;
  const StripTile* tile_at(std::size_t strip, double x, double y) const;
  const StripPart& part(std::size_t strip, std::size_t at) const { return strips_[strip].parts[at]; }

  struct Key {
    float width = 0, height = 0, scale = 0;
    double zoom = 1;
    bool operator==(const Key&) const = default;
  };
  struct Drawn {
    std::size_t strip = 0;
    StripTile tile;
  };
  std::uint64_t seen_model_ = 0, seen_selection_ = 0;
  std::vector<FileStrip> strips_;
  std::vector<graph::TensorId> by_bytes_;              // every tensor that has bytes of its own, file by file
  std::array<bool, view::kStripKinds> has_kind_ = {};  // by StripKind
  std::shared_ptr<const load::Projection> read_of_;
  ReadOrder reads_;
  Key key_;
  view::StripLines lines_;
  bool compact_ = false;           // titles stand in the margin: there are many files
  float margin_ = 0, legend_ = 0;  // widths of the margin, height of the legend in the last frame
  double zoom_ = 1;
  std::optional<float> scroll_to_;
  double tiles_low_ = 0, tiles_high_ = -1;
  std::vector<Drawn> tiles_;  // in sight
  std::vector<StripRun> selected_;
  std::vector<StripRun> hovered_;
  std::optional<graph::NodeId> hovered_of_;
};

void BytesPanel::refresh(const Document& document) {
  if (seen_model_ != document.id) {
    forget();
    seen_model_ = document.id;
    seen_selection_ = document.history.count() - 1;
    strips_ = view::file_strips(*document.model->graph);
    for (const FileStrip& strip : strips_)
      for (const StripPart& part : strip.parts) {
        has_kind_[static_cast<std::size_t>(part.kind)] = true;
        if (part.kind == StripKind::tensor) by_bytes_.push_back(part.tensor);
      }
    key_ = {};
    zoom_ = 1;
    hovered_of_.reset();
    hovered_.clear();
  }
  if (const auto& projection = document.load.projection.value(); read_of_ != projection) {
    read_of_ = projection;
    reads_ = projection ? read_order(*document.model->graph, projection->plan) : ReadOrder();
  }
}

// The bytes of all tensors below a module; neighbors joined.
std::vector<StripRun> BytesPanel::runs_of(const Document& document, graph::NodeId module) const {
  const Model& model = *document.model;
  const graph::ModuleNode& node = model.tree.node(module);
  if (node.tensor && node.children.empty()) return runs_of(document, *node.tensor);
  if (module == graph::kRootNode) return {};
  // a node comes before its children
  std::vector<bool> below(model.tree.nodes.size(), false);
  below[graph::index(module)] = true;
  for (std::size_t i = graph::index(module) + 1; i < below.size(); ++i)
    below[i] = below[graph::index(model.tree.nodes[i].parent)];
  std::vector<StripRun> runs;
  for (std::size_t strip = 0; strip < strips_.size(); ++strip)
    for (const StripPart& part : strips_[strip].parts) {
      if (part.kind != StripKind::tensor || !below[graph::index(model.nodes[graph::index(part.tensor)])])
        continue;
      if (!runs.empty() && runs.back().strip == strip &&
          runs.back().offset + runs.back().bytes == part.offset)
        runs.back().bytes += part.bytes;
      else
        runs.push_back({strip, part.offset, part.bytes});
    }
  return runs;
}

std::vector<StripRun> BytesPanel::runs_of(const Document& document, graph::TensorId tensor) {
  const auto range = view::file_range(*document.model->graph, tensor);
  if (!range) return {};
  return {{graph::index(range->file), range->offset, range->bytes}};
}

void BytesPanel::mark_selection(const Document& document) {
  seen_selection_ = document.history.count();
  selected_.clear();
  if (const auto tensor = document.selected_tensor())
    selected_ = runs_of(document, *tensor);
  else if (const auto* const module = std::get_if<graph::NodeId>(&document.selected()))
    selected_ = runs_of(document, *module);
}

void BytesPanel::lay_out(const Ui& ui, ImVec2 room) {
  const Key key = {room.x, room.y, ui.scale, zoom_};
  if (key == key_) return;
  key_ = key;
  const auto files = static_cast<float>(strips_.size());
  compact_ = files * ui.px(64) > room.y;
  margin_ = compact_ ? std::min(ui.px(220), room.x * 0.3f) : ui.px(76);
  const double px = static_cast<double>(ui.px(1));
  const view::StripOptions options = {
      .width = static_cast<double>(std::max(room.x - margin_ - ui.px(4), ui.px(20))),
      .room = static_cast<double>(room.y),
      .line = (compact_ ? 19 : 24) * px,
      .gap = (compact_ ? 2 : 5) * px,
      .title = compact_ ? 0 : 24 * px,
      .between = (compact_ ? 1 : 10) * px,
      .least = 3 * px};
  lines_ = view::lay_out_strips(strips_, options, zoom_);
  tiles_high_ = tiles_low_ - 1;
}

// What lies at that height of the window stays there.
void BytesPanel::zoom_by(double factor, float window_y) {
  constexpr double kMost = 1e6;
  const double y = static_cast<double>(ImGui::GetScrollY() + window_y);
  const auto spot = view::strip_spot(strips_, lines_, 0, y);
  const std::uint64_t before = lines_.bytes_per_line;
  zoom_ = std::clamp(zoom_ * factor, 1.0, kMost);
  view::StripLines next = view::lay_out_strips(strips_, lines_.options, zoom_);
  if (next.bytes_per_line == before) {
    if (factor > 1) zoom_ = std::max(1.0, zoom_ / factor);  // nothing is smaller
    return;
  }
  const double to = spot ? next.line_top(spot->strip, spot->byte / next.bytes_per_line) +
                               (y - lines_.line_top(spot->strip, spot->byte / before))
                         : y * next.height() / std::max(lines_.height(), 1.0);
  scroll_to_ = static_cast<float>(std::max(0.0, to)) - window_y;
  lines_ = std::move(next);
  key_.zoom = zoom_;
  tiles_high_ = tiles_low_ - 1;
}

void BytesPanel::draw_head(const Document& document, const Ui& ui) {
  const Model& model = *document.model;
  std::uint64_t holes = 0, hole_bytes = 0, aligned = 0;
  for (const FileStrip& strip : strips_) {
    holes += strip.holes;
    hole_bytes += strip.hole_bytes;
    aligned += strip.alignment_bytes;
  }
  const float buttons = ui.px(112);
  std::string words = fmt::format("{}, {}", counted(strips_.size(), "file"), format_bytes(model.disk_bytes));
  if (holes > 0) words += fmt::format(", {} in {}", format_bytes(hole_bytes), counted(holes, "hole"));
  if (aligned > 0) words += fmt::format(", {} of alignment", format_bytes(aligned));
  if (read_of_)
    words +=
        fmt::format(". {} reads in {} order, {}", read_of_->method->id, read_of_->order,
                    read_of_->reads.jumps == 0 ? "without a jump" : counted(read_of_->reads.jumps, "jump"));
  control_text(elided(shown(words), ImGui::GetContentRegionAvail().x - buttons), ui.theme->muted);
  ImGui::SameLine(ImGui::GetWindowContentRegionMax().x - buttons);
  const float middle = key_.height / 2;
  if (button(ui, "\xE2\x88\x92", ButtonKind::normal, zoom_ > 1)) zoom_by(0.5, middle);
  tooltip(ui, "Zoom out (Ctrl and the wheel)");
  ImGui::SameLine(0, ui.px(4));
  if (button(ui, "+")) zoom_by(2, middle);
  tooltip(ui, "Zoom in (Ctrl and the wheel)");
  ImGui::SameLine(0, ui.px(4));
  if (button(ui, "Fit", ButtonKind::normal, zoom_ > 1)) zoom_ = 1;
  tooltip(ui, "Show the whole files");
}

void BytesPanel::refresh_tiles(double low, double high) {
  if (low == tiles_low_ && high == tiles_high_) return;
  tiles_low_ = low;
  tiles_high_ = high;
  tiles_.clear();
  for (std::size_t i = 0; i < strips_.size(); ++i) {
    if (lines_.tops[i + 1] <= low || lines_.tops[i] >= high) continue;
    for (const StripTile& tile : view::strip_tiles(strips_[i], i, lines_, low, high))
      tiles_.push_back({i, tile});
  }
}

const StripTile* BytesPanel::tile_at(std::size_t strip, double x, double y) const {
  const auto found = std::ranges::find_if(
      tiles_, [&](const Drawn& one) { return one.strip == strip && one.tile.rect.contains(x, y); });
  return found == tiles_.end() ? nullptr : &found->tile;
}

// Names and figures of the files, and the byte at which each line begins.
void BytesPanel::draw_titles(const Document& document, const Ui& ui, ImVec2 at, double low,
                             double high) const {
  const FontScope font(ui.fonts.small);
  const float right = at.x + margin_ + static_cast<float>(lines_.options.width);
  const auto line_text = static_cast<float>(lines_.options.line) / 2 - ImGui::GetFontSize() / 2 - ui.px(2);
  for (std::size_t i = 0; i < strips_.size(); ++i) {
    if (lines_.tops[i + 1] <= low || lines_.tops[i] >= high) continue;
    const FileStrip& strip = strips_[i];
    const std::string name = shown(base_name(*document.model, i));
    const float top = at.y + static_cast<float>(lines_.tops[i]);
    if (compact_) {
      // the format is the same for all of them
      const std::string stem = shown(std::filesystem::path(name).stem().string());
      put_text({at.x, top + line_text}, ui.theme->text, elided_front(stem, margin_ - ui.px(10)));
      continue;
    }
    std::string figures = fmt::format("{}, {}", format_bytes(strip.bytes), counted(strip.tensors, "tensor"));
    if (strip.holes > 0)
      figures =
          fmt::format("{} in {},  {}", format_bytes(strip.hole_bytes), counted(strip.holes, "hole"), figures);
    put_text_before(right, top + ui.px(4), ui.theme->muted, figures);
    put_text({at.x, top + ui.px(4)}, ui.theme->text,
             elided_front(name, right - at.x - text_width(figures) - ui.px(16)));
    const std::uint64_t count = lines_.lines(strip);
    const double step = lines_.options.line + lines_.options.gap, first = lines_.line_top(i, 0);
    for (auto line = static_cast<std::uint64_t>(std::max(0.0, std::floor((low - first) / step)));
         line < count; ++line) {
      const double y = lines_.line_top(i, line);
      if (y > high) break;
      put_text_before(at.x + margin_ - ui.px(8), at.y + static_cast<float>(y) + line_text, ui.theme->muted,
                      tick_label(line * lines_.bytes_per_line));
    }
  }
}

bool BytesPanel::is_lit(const Document& document, const FileStrip& strip, const StripTile& tile) const {
  const std::vector<bool>& lit = document.table.view().lit;
  if (lit.empty()) return true;
  for (std::size_t i = tile.first; i < tile.first + tile.count; ++i)
    if (strip.parts[i].kind == StripKind::tensor &&
        lit[graph::index(document.model->nodes[graph::index(strip.parts[i].tensor)])])
      return true;
  return false;
}

void BytesPanel::draw_tile(const Workspace& workspace, const Ui& ui, std::size_t at_strip,
                           const StripTile& tile, ImVec2 at) const {
  const Document& document = workspace.document();
  const Model& model = *document.model;
  const FileStrip& strip = strips_[at_strip];
  const StripPart& largest = strip.parts[tile.largest];
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float band = ui.px(4), gap = std::max(1.0f, std::round(ui.scale));
  const auto edge = [](double place) { return std::round(static_cast<float>(place)); };
  const ImVec2 low = at + ImVec2{margin_ + edge(tile.rect.x), edge(tile.rect.y)};
  const ImVec2 end = at + ImVec2{margin_ + edge(tile.rect.x + tile.rect.w), edge(tile.rect.y + tile.rect.h)};
  const ImVec2 high = {end.x - (end.x - low.x > 2 * gap ? gap : 0), end.y - band - gap};
  if (largest.kind != StripKind::tensor) {
    const bool hole = largest.kind == StripKind::hole;
    draw->AddRectFilled(low, high,
                        hole || largest.kind == StripKind::alignment ? ui.theme->sea : ui.theme->active);
    if (hole) {
      draw->AddRect(low, high, ui.theme->warning, 0, 0, gap);
    } else if (largest.kind != StripKind::alignment && high.x - low.x > ui.px(60)) {
      const FontScope font(ui.fonts.small);
      put_text(low + ImVec2{ui.px(5), (high.y - low.y - ImGui::GetFontSize()) / 2}, ui.theme->text,
               largest.kind == StripKind::header ? "header" : "trailer");
    }
    return;
  }
  const graph::StorageId storage = model.tensor(largest.tensor).storage;
  const bool timed = read_of_ && (!document.time.at_peak() || document.hover.step);
  const bool read =
      !timed || reads_.step[graph::index(storage)] < document.hover.step.value_or(document.time.step());
  const auto diff = document.diff.result.value();
  const Paint paint = workspace.settings.color_by == ColorBy::diff && diff
                          ? paint_of_difference(*diff, *ui.theme, largest.tensor)
                          : paint_of(model, *ui.theme, workspace.settings.color_by, largest.tensor);
  const bool dim = !read || !is_lit(document, strip, tile);
  const ImU32 color = dim ? mix(ui.theme->panel, paint.color, 0.25f) : paint.color;
  draw->AddRectFilled(low, high, color);
  if (tile.holes) draw->AddRectFilled({high.x - ui.px(1.5f), low.y}, high, ui.theme->warning);
  if (reads_.count > 0 && reads_.step[graph::index(storage)] != ReadOrder::kNever) {
    const float late = static_cast<float>(reads_.rank[graph::index(storage)]) /
                       static_cast<float>(std::max<std::uint32_t>(1, reads_.count - 1));
    draw->AddRectFilled({low.x, end.y - band}, end, mix(ui.theme->grid, ui.theme->text, 0.08f + 0.8f * late));
  }
  if (tile.count > 1 || high.x - low.x < ui.px(26)) return;
  const FontScope font(ui.fonts.small);
  const std::string name = tile_label(model, largest.tensor, high.x - low.x - ui.px(8));
  put_text(low + ImVec2{ui.px(4), (high.y - low.y - ImGui::GetFontSize()) / 2},
           dim ? ui.theme->muted : text_on(color), name);
}

void BytesPanel::draw_runs(const Ui& ui, const std::vector<StripRun>& runs, ImVec2 at, bool strong) const {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  for (const StripRun& run : runs)
    for (const view::Rect& place : view::strip_places(strips_[run.strip], run.strip, lines_, run.offset,
                                                      run.bytes, tiles_low_, tiles_high_)) {
      ImVec2 low = at + ImVec2{margin_ + static_cast<float>(place.x), static_cast<float>(place.y)};
      ImVec2 high = low + ImVec2{static_cast<float>(place.w), static_cast<float>(place.h)};
      low = low - ImVec2{ui.px(1), ui.px(1)};
      high = high + ImVec2{ui.px(1), ui.px(1)};
      if (strong) draw->AddRect(low, high, ui.theme->sea, ui.px(2), 0, ui.px(5));
      draw->AddRect(low, high, strong ? ui.theme->highlight : with_alpha(ui.theme->highlight, 0.7f), ui.px(2),
                    0, ui.px(strong ? 2.5f : 1.5f));
    }
}

// What a click on the tile selects: its tensor; of several the module that they share, else the largest.
Selected BytesPanel::meant_by(const Document& document, const FileStrip& strip, const StripTile& tile) const {
  const graph::ModuleTree& tree = document.model->tree;
  std::optional<graph::NodeId> shared;
  const auto depth = [&](graph::NodeId node) {
    std::size_t levels = 0;
    for (; node != graph::kRootNode; node = tree.node(node).parent) ++levels;
    return levels;
  };
  for (std::size_t i = tile.first; i < tile.first + tile.count; ++i) {
    if (strip.parts[i].kind != StripKind::tensor) continue;
    graph::NodeId node = document.model->nodes[graph::index(strip.parts[i].tensor)];
    if (!shared) shared = node;
    for (std::size_t a = depth(*shared), b = depth(node); *shared != node;) {
      if (a >= b)
        shared = tree.node(*shared).parent, --a;
      else
        node = tree.node(node).parent, --b;
    }
  }
  const StripPart& largest = strip.parts[tile.largest];
  if (!shared || (tile.count == 1 && largest.kind != StripKind::tensor)) return {};
  if (tile.count == 1 || *shared == graph::kRootNode) return largest.tensor;
  return *shared;
}

void BytesPanel::handle_mouse(Workspace& workspace, const Ui& ui, ImVec2 at) {
  if (!ImGui::IsItemHovered()) return;
  Document& document = workspace.document();
  const ImGuiIO& io = ImGui::GetIO();
  if (io.KeyCtrl && std::abs(io.MouseWheel) > 0)
    return zoom_by(std::pow(1.25, static_cast<double>(io.MouseWheel)),
                   io.MousePos.y - ImGui::GetWindowPos().y);
  const double x = static_cast<double>(io.MousePos.x - at.x - margin_),
               y = static_cast<double>(io.MousePos.y - at.y);
  const auto spot = view::strip_spot(strips_, lines_, x, y);
  const StripTile* const tile = spot ? tile_at(spot->strip, x, y) : nullptr;
  if (tile == nullptr) return;
  const FileStrip& strip = strips_[spot->strip];
  const StripPart& largest = strip.parts[tile->largest];
  const Selected meant = meant_by(document, strip, *tile);
  if (largest.kind == StripKind::tensor)
    document.hover.set(document.model->nodes[graph::index(largest.tensor)]);
  hover_card(ui, [&] {
    const StripPart& last = strip.parts[tile->first + tile->count - 1];
    const std::uint64_t from = strip.parts[tile->first].offset, bytes = last.offset + last.bytes - from;
    const bool tensor = largest.kind == StripKind::tensor;
    {
      const FontScope font(ui.fonts.mono);
      if (tile->count > 1) text(counted(tile->count, "part") + ", the largest is");
      text(tensor ? shown(document.model->tensor(largest.tensor).name)
                  : capitalized(kind_words(largest.kind)));
    }
    muted(ui, fmt::format("{} ({} bytes) at byte {} of {}", format_bytes(bytes), format_grouped(bytes),
                          format_grouped(from), shown(base_name(*document.model, spot->strip))));
    if (tensor && reads_.count > 0) {
      const std::size_t storage = graph::index(document.model->tensor(largest.tensor).storage);
      if (reads_.step[storage] != ReadOrder::kNever)
        muted(ui, fmt::format("Read as number {} of {}", format_grouped(reads_.rank[storage] + 1),
                              format_grouped(reads_.count)));
    }
    if (tile->count > 1) muted(ui, "Ctrl and the wheel look closer");
  });
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    if (std::holds_alternative<graph::TensorId>(meant) && tile->count == 1)
      workspace.settings.panel = "values";
    else if (tile->count > 1)
      zoom_by(4, io.MousePos.y - ImGui::GetWindowPos().y);
  } else if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    document.select(meant);
    mark_selection(document);  // it is in sight
  } else if (is_right_clicked()) {
    document.select_for_menu(meant);
  }
}

// Up and down walk over the tensors as they lie in the files.
void BytesPanel::handle_keys(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  std::optional<std::size_t> at;
  if (const auto tensor = document.selected_tensor(); tensor)
    if (const auto found = std::ranges::find(by_bytes_, *tensor); found != by_bytes_.end())
      at = static_cast<std::size_t>(found - by_bytes_.begin());
  if (const auto now = row_by_keys(ui, at, by_bytes_.size())) document.select(by_bytes_[*now]);
  if (at && row_is_entered()) workspace.settings.panel = "values";
}

// Scrolls to what was selected elsewhere.
void BytesPanel::follow_selection(const Document& document) {
  if (seen_selection_ == document.history.count()) return;
  mark_selection(document);
  if (selected_.empty()) return;
  const StripRun& first = selected_.front();
  const auto top = static_cast<float>(lines_.line_top(first.strip, first.offset / lines_.bytes_per_line));
  const auto line = static_cast<float>(lines_.options.line);
  if (top < ImGui::GetScrollY() || top + line > ImGui::GetScrollY() + ImGui::GetWindowHeight())
    scroll_to_ = top - (ImGui::GetWindowHeight() - line) / 2;
}

void BytesPanel::draw_strips(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (scroll_to_) ImGui::SetScrollY(std::max(0.0f, std::round(*scroll_to_)));
  scroll_to_.reset();
  handle_keys(workspace, ui);
  follow_selection(document);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const double low = static_cast<double>(ImGui::GetScrollY());
  plot_area("files", {std::max(1.0f, ImGui::GetContentRegionAvail().x), static_cast<float>(lines_.height())});
  refresh_tiles(low, low + static_cast<double>(ImGui::GetWindowHeight()));
  draw_titles(document, ui, at, tiles_low_, tiles_high_);
  for (const Drawn& one : tiles_) draw_tile(workspace, ui, one.strip, one.tile, at);
  const auto module = document.hover.module();
  if (module != hovered_of_) {
    hovered_of_ = module;
    hovered_.clear();
    if (module) hovered_ = runs_of(document, *module);
  }
  draw_runs(ui, hovered_, at, false);
  draw_runs(ui, selected_, at, true);
  handle_mouse(workspace, ui, at);
}

void BytesPanel::draw_legend(const Workspace& workspace, const Ui& ui) {
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {ui.px(6), ui.px(4)});
  const float top = ImGui::GetCursorScreenPos().y;
  const Document& document = workspace.document();
  bool first = true;
  const auto entry = [&](bool drawn, ImU32 color, std::string_view words) {
    if (!drawn) return;
    if (!first) continue_line(ui, 16, legend_width(ui, words, ""));
    first = false;
    legend_entry(ui, color, words, "");
  };
  const auto has = [&](StripKind kind) { return has_kind_[static_cast<std::size_t>(kind)]; };
  entry(has(StripKind::header) || has(StripKind::trailer), ui.theme->active,
        has(StripKind::record)    ? "header, records"
        : has(StripKind::trailer) ? "header, trailer"
                                  : "header");
  entry(has(StripKind::hole), ui.theme->warning, "hole");
  entry(has(StripKind::alignment), ui.theme->sea, "alignment");
  entry(reads_.count > 1, mix(ui.theme->grid, ui.theme->text, 0.08f), "line below: read first");
  entry(reads_.count > 1, mix(ui.theme->grid, ui.theme->text, 0.88f), "read last");
  coloring_legend(ui, *document.model, workspace.settings.color_by, document.diff.result.value().get(), first,
                  2);
  legend_ = ImGui::GetItemRectMax().y - top + ui.px(4);
}

void BytesPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (document.model->graph->files.empty())
    return empty_state(ui, "No file holds this model", "Only its configuration is known.");
  refresh(document);
  const float legend = legend_ > 0 ? legend_ : ui.px(24);
  const ImVec2 all = ImGui::GetContentRegionAvail();
  const float head = ImGui::GetFrameHeightWithSpacing();
  const ImVec2 room = {all.x - ui.px(12), all.y - head - legend - ui.px(4)};
  if (room.x < ui.px(120) || room.y < ui.px(50)) return;
  lay_out(ui, room);
  draw_head(document, ui);
  lay_out(ui, room);
  {
    const ChildScope child("strips", {all.x, room.y});
    draw_strips(workspace, ui);
  }
  draw_legend(workspace, ui);
}

}  // namespace

std::unique_ptr<Panel> make_bytes_panel() { return std::make_unique<BytesPanel>(); }

}  // namespace loadline::gui
