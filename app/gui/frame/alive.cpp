// Rows of what is alive, remade when the cursor moves.
#include "app/gui/frame/alive.h"

#include "app/gui/parts/timeline_data.h"
#include "app/gui/parts/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace loadline::gui {

void AliveList::refresh(const Document& document) {
  const std::size_t step = document.hovered_step.value_or(document.step());
  if (of_ == document.projection.value() && step_ == step) return;
  of_ = document.projection.value();
  step_ = step;
  blocks_ = alive_at(of_->timeline, of_->plan, step, kAllSpaces);
  bytes_ = usage_at(of_->timeline, step, kAllSpaces);
}

void AliveList::draw(Document& document, const Ui& ui) {
  if (!document.projection.value()) return;
  refresh(document);
  const bool peak = document.at_peak() && !document.hovered_step;
  const bool end = step_ >= of_->plan.steps.size();
  heading(ui, peak  ? "Alive at the peak"
              : end ? "Alive at the end"
                    : fmt::format("Alive at step {}", format_grouped(step_)));
  const FontScope font(ui.fonts.small);
  const std::string sum = fmt::format("{} in {}", format_bytes(bytes_), counted(blocks_.size(), "block"));
  const std::string sorted = sum + ", largest first";
  const ImVec2 room = ImGui::GetContentRegionAvail();
  muted(ui, text_width(sorted) <= room.x ? sorted : elided(sum, room.x));
  const float spacing = ui.px(2), row = marked_row_height(ui) + spacing;
  const float left = ImGui::GetContentRegionAvail().y + spacing;
  const ChildScope child("blocks", {0, std::max(row, row * std::floor(left / row)) - spacing});  // whole rows
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {ui.px(6), spacing});
  for_rows_in_sight(blocks_.size(), [&](std::size_t i) { draw_row(document, ui, blocks_[i]); });
}

void AliveList::draw_row(Document& document, const Ui& ui, BlockId id) {
  const Model& model = *document.model;
  const Block& block = of_->plan.block(id);
  const std::string label = block_label(block, *model.graph, model.owners);
  const auto owner = block.storage ? model.owners[index(*block.storage)] : std::nullopt;
  const auto tensor = document.selected_tensor();
  const bool selected = document.selected() == Selected(id) ||
                        (tensor && block.storage && model.tensor(*tensor).storage == *block.storage);
  const IdScope scope(index(id));
  // a copy in another space differs in its letter, too
  if (marked_row(ui, selected, ui.theme->spaces[index(block.space)], label, format_bytes(block.bytes),
                 ui.theme->muted, space_title(block.space).substr(0, 1)))
    document.select(tensor_or_block(owner, id));
  hover_card(ui, [&] {
    text(shown(label));
    muted(ui, fmt::format("{} bytes in {}", format_grouped(block.bytes), space_name(block.space)));
  });
}

}  // namespace loadline::gui
