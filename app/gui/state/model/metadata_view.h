// The metadata entry that the window shows.
#pragma once

#include "app/gui/state/model/file_data.h"

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

  // Shows an entry, and opens an array for reading. Shows nothing for nothing or an unknown entry.
  void look_at(std::optional<std::size_t> entry);
  std::optional<std::size_t> entry() const { return entry_; }
  // Null unless the entry is an array.
  ArrayView* array() const { return array_.get(); }
  // Counts the calls of look_at(). Lists scroll to the entry when it changes.
  std::uint64_t looks() const { return looks_; }

  std::string search;
  std::optional<std::uint64_t> wants_element;  // the element that the metadata panel shows next

 private:
  Jobs& jobs_;
  MetaGraphPtr graph_;
  std::optional<std::size_t> entry_;
  std::unique_ptr<ArrayView> array_;
  std::uint64_t looks_ = 0;
};

}  // namespace loadline::gui
