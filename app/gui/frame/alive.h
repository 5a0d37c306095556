// The list of blocks that are alive at one step of the load, largest first.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

#include <memory>
#include <vector>

namespace loadline::gui {

// Follows the time cursor. A click on a block selects its tensor, or the block if it has none.
class AliveList {
 public:
  // Fills the rest of the region.
  void draw(Document& document, const Ui& ui);
  void forget() { of_.reset(); }

 private:
  void refresh(const Document& document);
  void draw_row(Document& document, const Ui& ui, BlockId id);

  std::shared_ptr<const Projection> of_;
  std::size_t step_ = 0;
  std::vector<BlockId> blocks_;
  std::uint64_t bytes_ = 0;
};

}  // namespace loadline::gui
