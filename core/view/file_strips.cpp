// Sorts tensors by their bytes and names what lies between; breaks strips into lines and merges what is
// narrow.
#include "core/view/file_strips.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace loadline::view {

// --- What lies where in the files.

std::optional<FileRange> file_range(const graph::MetaGraph& graph, graph::TensorId id) {
  const graph::Tensor& tensor = graph.tensor(id);
  const graph::Storage& storage = graph.storage(tensor.storage);
  if (storage.file == graph::kNoFile) return std::nullopt;
  if (storage.encoding != graph::Encoding::plain)
    return storage.stored_bytes > 0
               ? std::optional(FileRange{storage.file, storage.offset, storage.stored_bytes})
               : std::nullopt;
  const std::uint64_t begin = std::min(tensor.offset, storage.bytes);
  const std::uint64_t size =
      std::min(graph::spanned_bytes(tensor).value_or(storage.bytes), storage.bytes - begin);
  return size > 0 ? std::optional(FileRange{storage.file, storage.offset + begin, size}) : std::nullopt;
}

namespace {

struct Placed {
  graph::TensorId tensor{};
  std::uint64_t offset = 0, bytes = 0;
};

// What is between tensors counts as alignment below the power of two by which all of them are aligned.
std::uint64_t alignment_of(const std::vector<Placed>& placed) {
  constexpr std::uint64_t kMost = 64 << 10;
  std::uint64_t all = kMost;
  for (const Placed& one : placed) all |= one.offset;
  return std::uint64_t{1} << std::countr_zero(all);
}

// Whether the file holds tensors alone behind its header: what else is between them is of no use.
bool holds_tensors_alone(const graph::MetaGraph& graph, std::size_t file) {
  return graph.format == "safetensors" || graph.format == "gguf" || (graph.format == "onnx" && file > 0);
}

FileStrip make_strip(std::uint64_t bytes, std::vector<Placed> placed, bool alone) {
  FileStrip strip;
  strip.bytes = bytes;
  // of those that begin at the same byte the longest comes first, and then the first of the model
  std::ranges::stable_sort(placed, [](const Placed& a, const Placed& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes > b.bytes;
  });
  const std::uint64_t alignment = alignment_of(placed);
  std::uint64_t reached = 0;
  const auto between = [&](std::uint64_t end, StripKind kind) {
    if (end <= reached) return;
    strip.parts.push_back({kind, {}, reached, end - reached});
    if (kind == StripKind::hole) ++strip.holes, strip.hole_bytes += end - reached;
    if (kind == StripKind::alignment) ++strip.alignments, strip.alignment_bytes += end - reached;
    reached = end;
  };
  for (const Placed& one : placed) {
    const std::uint64_t end = std::min(bytes, one.offset + one.bytes);
    if (end <= reached) continue;  // a tie, or a view inside an earlier one
    if (one.offset > reached)
      between(one.offset, strip.tensors == 0                 ? StripKind::header
                          : one.offset - reached < alignment ? StripKind::alignment
                          : alone                            ? StripKind::hole
                                                             : StripKind::record);
    strip.parts.push_back({StripKind::tensor, one.tensor, reached, end - reached});
    ++strip.tensors;
    reached = end;
  }
  between(bytes, strip.tensors == 0 ? StripKind::header : StripKind::trailer);
  return strip;
}

}  // namespace

std::vector<FileStrip> file_strips(const graph::MetaGraph& graph) {
  std::vector<std::vector<Placed>> placed(graph.files.size());
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i)
    if (const auto range = file_range(graph, graph::TensorId{i}))
      placed[graph::index(range->file)].push_back({graph::TensorId{i}, range->offset, range->bytes});
  std::vector<FileStrip> strips;
  strips.reserve(placed.size());
  for (std::size_t i = 0; i < placed.size(); ++i)
    strips.push_back(make_strip(graph.files[i].bytes, std::move(placed[i]), holds_tensors_alone(graph, i)));
  return strips;
}

std::size_t part_at(const FileStrip& strip, std::uint64_t byte) {
  const auto behind = std::ranges::upper_bound(strip.parts, byte, {}, &StripPart::offset);
  if (behind == strip.parts.begin() || byte >= strip.bytes) return strip.parts.size();
  return static_cast<std::size_t>(behind - strip.parts.begin()) - 1;
}

// --- Lines.

namespace {

std::uint64_t lines_of(std::uint64_t bytes, std::uint64_t per_line) {
  return std::max<std::uint64_t>(1, bytes / per_line + (bytes % per_line > 0 ? 1 : 0));
}

double height_of(std::span<const FileStrip> strips, const StripOptions& options, std::uint64_t per_line) {
  double height = 0;
  for (const FileStrip& strip : strips)
    height += options.title + options.between +
              static_cast<double>(lines_of(strip.bytes, per_line)) * (options.line + options.gap);
  return height;
}

// The next number of the form 8 to 15 times a power of two: its label is short.
std::uint64_t even_above(std::uint64_t bytes) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(bytes)) - 4);
  const std::uint64_t unit = std::uint64_t{1} << shift;
  return (bytes + unit - 1) / unit * unit;
}

// The fewest bytes a line with which all lines are at most `height` high; a line for each file if they never
// are.
std::uint64_t bytes_within(std::span<const FileStrip> strips, const StripOptions& options, double height) {
  std::uint64_t low = 1, high = 1;
  for (const FileStrip& strip : strips) high = std::max(high, strip.bytes);
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (height_of(strips, options, middle) <= height)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace

std::uint64_t StripLines::lines(const FileStrip& strip) const {
  return lines_of(strip.bytes, bytes_per_line);
}

StripLines lay_out_strips(std::span<const FileStrip> strips, const StripOptions& options, double zoom) {
  constexpr std::uint64_t kLeast = 64;  // bytes of a line: tiny files are not torn apart
  const auto fitting = static_cast<double>(bytes_within(strips, options, options.room));
  const auto wanted = static_cast<std::uint64_t>(std::max(1.0, std::ceil(fitting / std::max(zoom, 1.0))));
  const std::uint64_t least = std::max(kLeast, bytes_within(strips, options, options.most_height));
  StripLines lines{.options = options, .bytes_per_line = even_above(std::max(wanted, least)), .tops = {}};
  double top = 0;
  for (const FileStrip& strip : strips) {
    lines.tops.push_back(top);
    top += options.title + options.between +
           static_cast<double>(lines.lines(strip)) * (options.line + options.gap);
  }
  lines.tops.push_back(top);
  return lines;
}

// --- What is seen of a strip.

namespace {

struct LineRange {
  std::uint64_t first = 0, end = 0;
};

// The lines of strip `at` between two heights.
LineRange lines_between(const FileStrip& strip, std::size_t at, const StripLines& lines, double low,
                        double high) {
  const double step = lines.options.line + lines.options.gap, top = lines.line_top(at, 0);
  const auto count = static_cast<double>(lines.lines(strip));
  const double first = std::clamp(std::floor((low - top) / step), 0.0, count);
  const double end = std::clamp(std::ceil((high - top) / step), first, count);
  return {static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(end)};
}

// Lays the parts of one line side by side.
class LineTiler {
 public:
  LineTiler(const FileStrip& strip, const StripLines& lines, std::uint64_t line, double top,
            std::vector<StripTile>& out)
      : strip_(strip), lines_(lines), begin_(line * lines.bytes_per_line), top_(top), out_(out) {
    end_ = std::min(strip.bytes, begin_ + lines.bytes_per_line);
  }

  void run() {
    first_tile_ = out_.size();
    for (std::size_t i = part_at(strip_, begin_); i < strip_.parts.size(); ++i) {
      const StripPart& part = strip_.parts[i];
      if (part.offset >= end_) break;
      take(i, x_of(std::max(part.offset, begin_)), x_of(std::min(part.offset + part.bytes, end_)));
    }
    flush();
  }

 private:
  double x_of(std::uint64_t byte) const {
    return static_cast<double>(byte - begin_) / static_cast<double>(lines_.bytes_per_line) *
           lines_.options.width;
  }
  // A part that is wide enough stands alone; others are gathered until they are, together.
  void take(std::size_t part, double left, double right) {
    if (right - left >= lines_.options.least) {
      flush();
      if (right - std::max(left, reached_) >= lines_.options.least)
        return push({part, 1, part, strip_.parts[part].kind == StripKind::hole, {}}, std::max(left, reached_),
                    right);
    }
    if (gathered_.count == 0) gathered_ = {part, 0, part, false, {}}, left_ = std::max(left, reached_);
    ++gathered_.count;
    if (strip_.parts[part].bytes > strip_.parts[gathered_.largest].bytes) gathered_.largest = part;
    gathered_.holes = gathered_.holes || strip_.parts[part].kind == StripKind::hole;
    right_ = right;
    if (right_ - left_ >= lines_.options.least) flush();
  }
  // What is still too narrow takes what it lacks from its neighbors' places; at the end of the line, where
  // they have none to give, it joins the tile before.
  void flush() {
    if (gathered_.count == 0) return;
    const StripTile tile = gathered_;
    gathered_.count = 0;
    const double right = std::min(lines_.options.width, std::max(right_, left_ + lines_.options.least));
    const double left = std::max(std::min(left_, right - lines_.options.least), reached_ - stolen());
    if (right - left >= lines_.options.least || out_.size() == first_tile_) return push(tile, left, right);
    StripTile& before = out_.back();
    before.count = tile.first + tile.count - before.first;
    before.holes = before.holes || tile.holes;
    if (strip_.parts[tile.largest].bytes > strip_.parts[before.largest].bytes) before.largest = tile.largest;
    before.rect.w = right - before.rect.x;
    reached_ = right;
  }
  // How much the tile before can give.
  double stolen() const {
    if (out_.size() == first_tile_) return 0;
    return std::clamp(out_.back().rect.w - lines_.options.least, 0.0, lines_.options.least);
  }
  void push(StripTile tile, double left, double right) {
    if (left < reached_) out_.back().rect.w -= reached_ - left;
    tile.rect = {left, top_, std::max(right - left, 0.0), lines_.options.line};
    reached_ = std::max(right, left);
    out_.push_back(tile);
  }

  const FileStrip& strip_;
  const StripLines& lines_;
  std::uint64_t begin_ = 0, end_ = 0;
  double top_ = 0;
  std::vector<StripTile>& out_;
  std::size_t first_tile_ = 0;
  StripTile gathered_{0, 0, 0, false, {}};
  double left_ = 0, right_ = 0;  // of what is gathered
  double reached_ = 0;
};

}  // namespace

std::vector<StripTile> strip_tiles(const FileStrip& strip, std::size_t at, const StripLines& lines,
                                   double low, double high) {
  std::vector<StripTile> tiles;
  if (strip.bytes == 0) return tiles;
  const LineRange seen = lines_between(strip, at, lines, low, high);
  for (std::uint64_t line = seen.first; line < seen.end; ++line)
    LineTiler(strip, lines, line, lines.line_top(at, line), tiles).run();
  return tiles;
}

std::vector<Rect> strip_places(const FileStrip& strip, std::size_t at, const StripLines& lines,
                               std::uint64_t offset, std::uint64_t bytes, double low, double high) {
  std::vector<Rect> places;
  if (bytes == 0 || offset >= strip.bytes) return places;
  const LineRange seen = lines_between(strip, at, lines, low, high);
  const std::uint64_t last = (std::min(strip.bytes, offset + bytes) - 1) / lines.bytes_per_line;
  const double scale = lines.options.width / static_cast<double>(lines.bytes_per_line);
  for (std::uint64_t line = std::max(seen.first, offset / lines.bytes_per_line);
       line < std::min(seen.end, last + 1); ++line) {
    const std::uint64_t begin = line * lines.bytes_per_line;
    const std::uint64_t from = std::max(begin, offset) - begin;
    const std::uint64_t to =
        std::min(begin + lines.bytes_per_line, std::min(strip.bytes, offset + bytes)) - begin;
    const double width = std::max(static_cast<double>(to - from) * scale, lines.options.least);
    const double left = std::min(static_cast<double>(from) * scale, lines.options.width - width);
    places.push_back({left, lines.line_top(at, line), width, lines.options.line});
  }
  return places;
}

std::optional<StripSpot> strip_spot(std::span<const FileStrip> strips, const StripLines& lines, double x,
                                    double y) {
  if (x < 0 || x >= lines.options.width || y < 0 || y >= lines.height()) return std::nullopt;
  const auto behind = std::ranges::upper_bound(lines.tops, y);
  const auto at = static_cast<std::size_t>(behind - lines.tops.begin()) - 1;
  const double below = y - lines.line_top(at, 0), step = lines.options.line + lines.options.gap;
  if (below < 0) return std::nullopt;
  const auto line = static_cast<std::uint64_t>(below / step);
  if (line >= lines.lines(strips[at]) || below - static_cast<double>(line) * step >= lines.options.line)
    return std::nullopt;
  const double share = x / lines.options.width * static_cast<double>(lines.bytes_per_line);
  const std::uint64_t byte = line * lines.bytes_per_line + static_cast<std::uint64_t>(share);
  return byte < strips[at].bytes ? std::optional(StripSpot{at, byte}) : std::nullopt;
}

}  // namespace loadline::view
