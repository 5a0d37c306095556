// Shows one metadata entry in full: its text, or the elements of its array.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

#include <string>
#include <vector>

namespace loadline::gui {

class MetadataValue {
 public:
  // Draws the entry of the document's MetadataView, if any.
  void draw(Workspace& workspace, const Ui& ui);

 private:
  void draw_head(const Document& document, const Ui& ui);
  void draw_copy(const Ui& ui);
  void draw_text(const Ui& ui, const MetaValue& value);
  void lay_out(float width);
  void draw_array(Workspace& workspace, const Ui& ui);
  void draw_search(const Workspace& workspace, ArrayView& view, const Ui& ui);
  void draw_elements(ArrayView& view, const Ui& ui);
  void go_to(const ArrayView& view, std::uint64_t element);

  std::uint64_t seen_look_ = 0;
  std::string text_;                // escaped, as it is copied
  std::vector<std::string> lines_;  // of text_, broken to fit
  std::string joined_;              // the same in one
  float head_ = 0;                  // position of the key
  float width_ = 0;                 // the width for which lines_ were broken
  std::uint64_t left_out_ = 0;      // bytes of the value that are not shown

  std::string index_;  // as typed
  std::string words_;
  std::uint64_t base_ = 0;  // the list holds a window of a very long array
  std::optional<std::uint64_t> marked_;
  bool scroll_ = false;  // to the marked element, at the next frame
  std::size_t found_at_ = 0;
  std::size_t found_seen_ = 0;
};

}  // namespace loadline::gui
