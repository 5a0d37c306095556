// Reads elements of metadata arrays from their file on demand.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/io/cursor.h"
#include "core/io/source_file.h"

#include <cstdint>
#include <vector>

namespace loadline {

// Longer string elements are cut at this many bytes.
inline constexpr std::uint64_t kMostElementText = 1 << 20;

// Reads a bool or a number; another `type` is a caller's bug. Throws Error{malformed} past the cursor's end.
MetaValue read_meta_number(Cursor& cursor, MetaType type);

// Reads an array's elements front to back, each once.
class MetaArrayReader {
 public:
  // Opens the file by the path in the graph. Throws Error{io}.
  MetaArrayReader(const MetaGraph& graph, const MetaArray& array);
  // Of a file that is open already, or that is in memory. Throws Error{io | malformed}.
  MetaArrayReader(const SourceFile& file, const MetaArray& array);
  MetaArrayReader(const MetaArrayReader&) = delete;
  MetaArrayReader& operator=(const MetaArrayReader&) = delete;

  std::uint64_t at() const { return at_; }  // the index of the next element
  std::uint64_t remaining() const { return array_.count - at_; }
  std::uint64_t bytes_passed() const { return cursor_.at() - array_.offset; }
  // Steps over at most `count` elements. Strings are stepped over one by one.
  void skip(std::uint64_t count);
  // The next element, of the array's element type. Call it only while remaining() > 0. Throws
  // Error{io | malformed}.
  MetaValue next();

 private:
  MetaArrayReader(SourceFile&& file, const MetaArray& array);

  MetaArray array_;
  SourceFile file_;
  Cursor cursor_;
  std::uint64_t at_ = 0;
};

// Elements [first, first + count) in order, fewer at the array's end. Throws as MetaArrayReader does.
std::vector<MetaValue> read_meta_array(const MetaGraph& graph, const MetaArray& array, std::uint64_t first,
                                       std::uint64_t count);

}  // namespace loadline
