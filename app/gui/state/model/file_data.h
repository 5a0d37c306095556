// What is read from the files while it is looked at: metadata, elements of arrays, values of tensors.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "core/graph/meta_graph.h"
#include "core/inspect/tensor_values.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- Metadata as text in a window: beginnings of long values, JSON with line breaks, substring search.

// At most `most` bytes, not cut inside a UTF-8 sequence.
std::string_view beginning(std::string_view text, std::size_t most);
// The value in one line, cut after about `most` bytes; runs of blanks and line breaks become one blank.
std::string meta_line(const graph::MetaValue& value, std::size_t most);
// The type as a person reads it: "u32", "string", "f32[32,000]".
std::string meta_type_text(const graph::MetaValue& value);

// Breaks JSON without line breaks into a line for each element, indented by two spaces a level. Any other
// text is returned unchanged. Text that only looks like JSON keeps all its characters except blanks.
std::string broken_json(std::string_view text);

// A text to search for in other texts, ignoring the case of ASCII letters.
class Needle {
 public:
  explicit Needle(std::string_view text);
  bool in(std::string_view text) const;  // an empty needle is in every text

 private:
  std::string lower_;
};

// --- A metadata array as the window shows it: pages of elements and a search, read from the file by jobs.

// Used from the thread that owns the jobs.
class ArrayView {
 public:
  // `entry` is the position of an array in the graph's metadata.
  ArrayView(Jobs& jobs, graph::MetaGraphPtr graph, std::size_t entry);

  const graph::MetaArray& array() const { return *array_; }

  // The element as text, not escaped, cut if it is long; null until it is read.
  const std::string* element(std::uint64_t i) const;
  // Starts reading the elements [first, last), unless they are read already.
  void want(std::uint64_t first, std::uint64_t last);
  bool reading() const { return read_.busy(); }
  // Why reading failed; nothing more is read before retry().
  std::string error() const { return read_.error_text(); }
  void retry() { read_.withdraw(); }

  // Searches all elements, in order, for those that contain `text`, ignoring case.
  void search(std::string text);
  void stop_search() { found_.cancel(); }
  const std::string& searched() const { return searched_; }
  bool searching() const { return found_.busy(); }
  JobId search_job() const { return found_.job(); }
  // Indices of matching elements, in order; only the first kMostFound. Empty during the search.
  const std::vector<std::uint64_t>& found() const { return found_.or_empty(); }
  std::string search_error() const;

  static constexpr std::size_t kMostFound = 10'000;
  static constexpr std::uint64_t kPage = 256;

 private:
  using Page = std::vector<std::string>;
  using Pages = std::map<std::uint64_t, Page>;  // by first element / kPage
  void take(const Pages& pages, std::uint64_t first);

  Jobs& jobs_;
  graph::MetaGraphPtr graph_;
  const graph::MetaArray* array_ = nullptr;
  Pages pages_;
  Latest<Pages> read_;  // the pages that were wanted last
  std::uint64_t reading_first_ = 0;
  std::uint64_t reading_last_ = 0;  // pages
  std::string searched_;
  Latest<std::vector<std::uint64_t>> found_;
};

// --- The metadata entry that the window shows.

class MetadataView {
 public:
  // `graph` may be null.
  MetadataView(Jobs& jobs, graph::MetaGraphPtr graph) : jobs_(jobs), graph_(std::move(graph)) {}

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
  graph::MetaGraphPtr graph_;
  std::optional<std::size_t> entry_;
  std::unique_ptr<ArrayView> array_;
  std::uint64_t looks_ = 0;
};

// --- The values of a tensor as the panel Values shows them, read from the files by jobs. No ImGui.

// Used from the thread that owns the jobs. Every function returns at once.
class ValuesView {
 public:
  // A null graph has no tensors.
  ValuesView(Jobs& jobs, graph::MetaGraphPtr graph) : jobs_(jobs), graph_(std::move(graph)) {}

  // Reads the values, unless they are read already.
  void read(graph::TensorId tensor);
  std::optional<graph::TensorId> shown() const { return shown_; }  // the tensor read last
  // The part of the matrix that the map shows; the whole at first.
  const inspect::CellRange& range() const { return range_; }
  void zoom(const inspect::CellRange& range);
  // The finest cells there are of range(): those of the part, else those of the whole, which cover it.
  const inspect::ValueCells* cells() const;

  // Keeps the tensor, to hold others against it.
  void keep(std::optional<graph::TensorId> tensor);
  std::optional<graph::TensorId> kept() const { return kept_; }
  // Compares the kept tensor with this one, unless that is known.
  void compare(graph::TensorId with);

  // Tensors of at most this size are read without being asked.
  static constexpr std::uint64_t kSmall = 64 << 20;
  static constexpr std::size_t kMostCells = 160;  // in each direction

  Latest<inspect::ValuePicture> picture;
  Latest<inspect::ValueComparison> comparison;

 private:
  std::shared_ptr<const io::StorageReader> reader();

  Jobs& jobs_;
  graph::MetaGraphPtr graph_;
  std::shared_ptr<const io::StorageReader> reader_;
  std::optional<graph::TensorId> shown_, kept_, compared_;
  inspect::CellRange range_;
  Latest<inspect::ValueCells> part_;
};

// --- The values of small tensors as text: what an operator's constants are.

// Used from the thread that owns the jobs. Every function returns at once.
class SmallValues {
 public:
  // A null graph has no tensors.
  SmallValues(Jobs& jobs, graph::MetaGraphPtr graph) : jobs_(jobs), graph_(std::move(graph)) {}

  // Reads those of few elements, unless they are read already.
  void want(std::span<const graph::TensorId> tensors);
  // "0.5", "[1, 0, -1]"; null for a tensor that is not small, cannot be read, or is not read yet.
  const std::string* of(graph::TensorId tensor) const;
  std::size_t known() const { return texts_.size(); }  // grows with what is read

  static constexpr std::uint64_t kMostElements = 64;

 private:
  Jobs& jobs_;
  graph::MetaGraphPtr graph_;
  std::map<graph::TensorId, std::string> texts_;  // empty: tried in vain
  Latest<std::map<graph::TensorId, std::string>> read_;
};

}  // namespace loadline::gui
