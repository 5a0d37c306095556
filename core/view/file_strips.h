// The files of a model as strips of bytes: what lies where, broken into lines, with level of detail.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/view/layouts.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace loadline::view {

// --- What lies where in the files.

enum class StripKind : std::uint8_t {
  header,     // before the first tensor: names, shapes, metadata
  tensor,     // the bytes of a tensor, without those that an earlier one has already
  alignment,  // fewer bytes than every tensor of the file is aligned to
  hole,       // more bytes between two tensors, which nothing uses
  record,     // the same in a format that describes each tensor beside its bytes
  trailer,    // behind the last tensor
};
inline constexpr std::size_t kStripKinds = 6;

struct StripPart {
  StripKind kind = StripKind::header;
  graph::TensorId tensor{};  // of kind `tensor`
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
  bool operator==(const StripPart&) const = default;
};

struct FileStrip {
  std::uint64_t bytes = 0;       // of the file
  std::vector<StripPart> parts;  // in the order of their bytes, without gaps from the first byte to the last
  std::uint64_t tensors = 0;     // parts that are tensors
  std::uint64_t holes = 0;       // parts that are holes
  std::uint64_t hole_bytes = 0;
  std::uint64_t alignments = 0;  // parts that are alignment
  std::uint64_t alignment_bytes = 0;
};

// Parallel to graph.files. The graph obeys validate().
std::vector<FileStrip> file_strips(const graph::MetaGraph& graph);

// The bytes in its file that a tensor occupies: of an encoded storage, all that is stored. Nothing for a
// tensor without a file or without bytes.
struct FileRange {
  graph::FileId file{};
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool operator==(const FileRange&) const = default;
};
std::optional<FileRange> file_range(const graph::MetaGraph& graph, graph::TensorId id);

// The part that holds this byte of the strip; parts.size() behind the end.
std::size_t part_at(const FileStrip& strip, std::uint64_t byte);

// --- Lines: every strip is broken like a text, below its title. All lines have the same scale.

struct StripOptions {
  double width = 0;          // of a line
  double room = 0;           // height that is filled at zoom 1
  double line = 22;          // height of a line of bytes
  double gap = 4;            // below a line
  double title = 22;         // above the lines of a file
  double between = 12;       // below the lines of a file
  double least = 3;          // nothing narrower is drawn alone
  double most_height = 4e6;  // of all: what the caller can scroll over
};

struct StripLines {
  StripOptions options;
  std::uint64_t bytes_per_line = 1;
  std::vector<double> tops;  // of the titles, one for each strip, and the end of all
  double height() const { return tops.back(); }
  // The number of lines of a strip; an empty file has one.
  std::uint64_t lines(const FileStrip& strip) const;
  double line_top(std::size_t strip, std::uint64_t line) const {
    return tops[strip] + options.title + static_cast<double>(line) * (options.line + options.gap);
  }
};

// At zoom 1 as much as fits into the room, but at least a line for each file; at zoom 2 a line has half the
// bytes. A line has an even number of bytes, as its label says.
StripLines lay_out_strips(std::span<const FileStrip> strips, const StripOptions& options, double zoom);

// --- What is seen of a strip.

// One part of the strip, or several that are too narrow to be drawn alone. Of several, `first` is followed by
// `count` - 1 others, and `largest` has the most bytes of them.
struct StripTile {
  std::size_t first = 0;
  std::size_t count = 1;
  std::size_t largest = 0;
  bool holes = false;  // one of them is a hole
  Rect rect;
};

// The tiles of the lines of strip `at` that overlap the heights [low, high). Each is at least
// `options.least` wide, as long as its line is; neighbors do not overlap. O(lines + parts in them).
std::vector<StripTile> strip_tiles(const FileStrip& strip, std::size_t at, const StripLines& lines,
                                   double low, double high);

// The places of a range of bytes of strip `at` within the heights [low, high): one rectangle a line, each at
// least `options.least` wide.
std::vector<Rect> strip_places(const FileStrip& strip, std::size_t at, const StripLines& lines,
                               std::uint64_t offset, std::uint64_t bytes, double low, double high);

// The strip and the byte at a point; nothing on titles and gaps.
struct StripSpot {
  std::size_t strip = 0;
  std::uint64_t byte = 0;
  bool operator==(const StripSpot&) const = default;
};
std::optional<StripSpot> strip_spot(std::span<const FileStrip> strips, const StripLines& lines, double x,
                                    double y);

}  // namespace loadline::view
