// Which entry of a model's metadata is looked at.
#pragma once

#include "app/gui/array_view.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace loadline::gui {

class MetadataView {
 public:
  // `graph` may be null.
  MetadataView(Jobs& jobs, MetaGraphPtr graph) : jobs_(jobs), graph_(std::move(graph)) {}

  // Shows an entry; an array is opened for reading. No such entry: nothing is shown.
  void look_at(std::optional<std::size_t> entry);
  std::optional<std::size_t> entry() const { return entry_; }
  // Null unless the entry is an array.
  ArrayView* array() const { return array_.get(); }
  // Rises with every look_at(): lists scroll to it.
  std::uint64_t looks() const { return looks_; }

  std::string search;
  std::optional<std::uint64_t> wants_element;  // the metadata panel shows it, of the array looked at

 private:
  Jobs& jobs_;
  MetaGraphPtr graph_;
  std::optional<std::size_t> entry_;
  std::unique_ptr<ArrayView> array_;
  std::uint64_t looks_ = 0;
};

}  // namespace loadline::gui
