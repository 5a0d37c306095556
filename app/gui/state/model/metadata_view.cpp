// Opens a metadata array while it is shown.
#include "app/gui/state/model/metadata_view.h"

#include <variant>

namespace loadline::gui {

void MetadataView::look_at(std::optional<std::size_t> entry) {
  array_.reset();
  entry_.reset();
  wants_element.reset();
  ++looks_;
  if (!graph_ || !entry || *entry >= graph_->metadata.size()) return;
  entry_ = entry;
  if (std::holds_alternative<MetaArray>(graph_->metadata[*entry].value))
    array_ = std::make_unique<ArrayView>(jobs_, graph_, *entry);
}

}  // namespace loadline::gui
