// Metadata as text, pages of arrays, cells of values.
#include "app/gui/state/model/file_data.h"

#include "core/base/text.h"
#include "core/io/graph_reader.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace loadline::gui {

// --- One pass over each text; nothing here knows what keys mean.

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

std::string_view beginning(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  // a sequence has at most three bytes after its first
  for (int i = 0; i < 3 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u; ++i) --end;
  return text.substr(0, end);
}

std::string meta_line(const graph::MetaValue& value, std::size_t most) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return graph::meta_text(value);
  const std::string_view kept = beginning(*text, most);
  std::string line;
  for (const char c : kept)
    if (!is_blank(c))
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  return kept.size() == text->size() ? line : line + "\xE2\x80\xA6";
}

std::string meta_type_text(const graph::MetaValue& value) {
  if (const auto* array = std::get_if<graph::MetaArray>(&value))
    return fmt::format("{}[{}]", graph::meta_type_name(array->element), format_grouped(array->count));
  return std::string(graph::meta_type_name(graph::meta_type(value)));
}

std::string broken_json(std::string_view text) {
  constexpr std::size_t kDeepest = 40;  // indents no further
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos || (text[first] != '{' && text[first] != '[') ||
      text.find('\n') != std::string_view::npos)
    return std::string(text);
  std::string out;
  std::size_t depth = 0;
  bool quoted = false;
  const auto new_line = [&] { out += "\n" + std::string(2 * std::min(depth, kDeepest), ' '); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      out += c;
      if (c == '\\' && i + 1 < text.size()) out += text[++i];
      quoted = c != '"';
      continue;
    }
    if (is_blank(c)) continue;
    const bool closes = c == '}' || c == ']';
    if (closes && depth > 0) --depth;
    // an empty pair stays together
    if (closes && !out.empty() && out.back() != (c == '}' ? '{' : '[')) new_line();
    if (!out.empty() && (out.back() == '{' || out.back() == '[') && !closes) new_line();
    out += c;
    if (c == '{' || c == '[') ++depth;
    if (c == ',') new_line();
    if (c == ':') out += ' ';
    quoted = c == '"';
  }
  return out;
}

Needle::Needle(std::string_view text) : lower_(lower_case(text)) {}

bool Needle::in(std::string_view text) const {
  return lower_.empty() || std::search(text.begin(), text.end(), lower_.begin(), lower_.end(),
                                       [](char a, char b) { return lower(a) == b; }) != text.end();
}

// --- Keeps the pages around the visible elements; other pages are read again when they become visible.

namespace {

constexpr std::size_t kMostPages = 64;
constexpr std::size_t kMostText = 400;  // bytes of an element that are kept
constexpr std::uint64_t kPulse = 1024;  // elements between looks at the request to stop

std::string kept_text(const graph::MetaValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    std::string kept(beginning(*text, kMostText));
    if (kept.size() < text->size()) kept += "\xE2\x80\xA6";
    return kept;
  }
  return graph::meta_text(value);
}

}  // namespace

ArrayView::ArrayView(Jobs& jobs, graph::MetaGraphPtr graph, std::size_t entry)
    : jobs_(jobs),
      graph_(std::move(graph)),
      array_(&std::get<graph::MetaArray>(graph_->metadata[entry].value)) {}

const std::string* ArrayView::element(std::uint64_t i) const {
  const auto page = pages_.find(i / kPage);
  if (page == pages_.end() || i % kPage >= page->second.size()) return nullptr;
  return &page->second[i % kPage];
}

void ArrayView::want(std::uint64_t first, std::uint64_t last) {
  last = std::min(last, array_->count);
  if (first >= last || read_.error() != nullptr) return;
  std::uint64_t from = first / kPage;
  const std::uint64_t to = (last - 1) / kPage + 1;
  while (from < to && pages_.contains(from)) ++from;
  if (from == to || (reading() && reading_first_ <= from && to <= reading_last_)) return;
  reading_first_ = from;
  reading_last_ = to;
  const auto work = [graph = graph_, array = *array_, from, to](Progress& progress) {
    io::MetaArrayReader reader(*graph, array);
    while (reader.at() < from * kPage && reader.remaining() > 0) {
      progress.check_canceled();
      reader.skip(std::min(from * kPage - reader.at(), kPulse * kPage));
    }
    Pages pages;
    while (reader.at() < to * kPage && reader.remaining() > 0) {
      if (reader.at() % kPulse == 0) progress.check_canceled();
      Page& page = pages[reader.at() / kPage];
      page.push_back(kept_text(reader.next()));
    }
    return pages;
  };
  read_.ask(jobs_, "Reading metadata", work, [this, from] {
    if (read_.value()) take(*read_.value(), from);
    read_.drop();
  });
}

void ArrayView::take(const Pages& pages, std::uint64_t first) {
  pages_.insert(pages.begin(), pages.end());
  while (pages_.size() > kMostPages) {  // drop the farthest page
    const bool low =
        first - std::min(first, pages_.begin()->first) > std::max(first, pages_.rbegin()->first) - first;
    pages_.erase(low ? pages_.begin() : std::prev(pages_.end()));
  }
}

void ArrayView::search(std::string text) {
  found_.reset();
  searched_ = std::move(text);
  if (searched_.empty()) return;
  const auto work = [graph = graph_, array = *array_, text = searched_](Progress& progress) {
    std::vector<std::uint64_t> found;
    const Needle needle(text);
    io::MetaArrayReader reader(*graph, array);
    progress.add_total(array.bytes);
    std::uint64_t reported = 0;
    while (reader.remaining() > 0 && found.size() < kMostFound) {
      if (reader.at() % kPulse == 0) {
        progress.check_canceled();
        progress.add(reader.bytes_passed() - reported);
        reported = reader.bytes_passed();
      }
      const std::uint64_t at = reader.at();
      const graph::MetaValue value = reader.next();
      const auto* string = std::get_if<std::string>(&value);
      if (string != nullptr ? needle.in(*string) : needle.in(graph::meta_text(value))) found.push_back(at);
    }
    return found;
  };
  found_.ask(jobs_, "Searching metadata", work);
}

std::string ArrayView::search_error() const {
  return found_.was_canceled() ? "The search was stopped." : found_.error_text();
}

// --- Opens a metadata array while it is shown.

void MetadataView::look_at(std::optional<std::size_t> entry) {
  array_.reset();
  entry_.reset();
  wants_element.reset();
  ++looks_;
  if (!graph_ || !entry || *entry >= graph_->metadata.size()) return;
  entry_ = entry;
  if (std::holds_alternative<graph::MetaArray>(graph_->metadata[*entry].value))
    array_ = std::make_unique<ArrayView>(jobs_, graph_, *entry);
}

// --- One job for each question; a newer one takes the place of an older.

std::shared_ptr<const io::StorageReader> ValuesView::reader() {
  if (!reader_) reader_ = std::make_shared<const io::StorageReader>(graph_);
  return reader_;
}

void ValuesView::read(graph::TensorId tensor) {
  if (!graph_ || shown_ == tensor) return;
  shown_ = tensor;
  const inspect::MatrixSides sides = inspect::matrix_sides(graph_->tensor(tensor));
  range_ = {0, sides.rows, 0, sides.columns};
  picture.reset();
  part_.reset();
  picture.ask(jobs_, "Reading " + safe_display(graph_->tensor(tensor).name, 60),
              [from = reader(), tensor](Progress& progress) {
                return inspect::picture_values(*from, tensor, kMostCells, kMostCells, progress);
              });
}

void ValuesView::zoom(const inspect::CellRange& range) {
  if (!shown_ || range == range_) return;
  range_ = range;
  const inspect::MatrixSides sides = inspect::matrix_sides(graph_->tensor(*shown_));
  if (range == inspect::CellRange{0, sides.rows, 0, sides.columns}) return part_.reset();
  part_.ask(jobs_, "Reading a part", [from = reader(), tensor = *shown_, range](Progress& progress) {
    return inspect::value_cells(*from, tensor, range, kMostCells, kMostCells, progress);
  });
}

const inspect::ValueCells* ValuesView::cells() const {
  if (part_.value() && part_.value()->range == range_) return part_.value().get();
  return picture.value() ? &picture.value()->cells : nullptr;
}

void ValuesView::keep(std::optional<graph::TensorId> tensor) {
  kept_ = tensor;
  compared_.reset();
  comparison.reset();
}

void ValuesView::compare(graph::TensorId with) {
  if (!kept_ || compared_ == with) return;
  compared_ = with;
  comparison.reset();
  comparison.ask(jobs_, "Comparing values", [from = reader(), first = *kept_, with](Progress& progress) {
    return inspect::compare_values(*from, first, with, progress);
  });
}

// --- The values of small tensors as text.

namespace {

// Whole numbers are read as they are: a float has no room for the largest.
std::string small_text(const io::StorageReader& reader, const graph::MetaGraph& graph, graph::TensorId id,
                       Progress& progress) {
  const graph::Tensor& tensor = graph.tensor(id);
  const std::uint64_t count = graph::elements(tensor);
  std::vector<std::string> words;
  if (tensor.dtype == graph::DType::i64 && tensor.strides.empty()) {
    std::vector<std::int64_t> numbers(count);
    reader.read(tensor.storage, tensor.offset, std::as_writable_bytes(std::span(numbers)));
    for (const std::int64_t number : numbers) words.push_back(fmt::format("{}", number));
  } else {
    const inspect::MatrixSides sides = inspect::matrix_sides(tensor);
    const auto cells = inspect::value_cells(reader, id, {0, sides.rows, 0, sides.columns}, sides.rows,
                                            sides.columns, progress);
    for (const float number : cells.mean) words.push_back(fmt::format("{:g}", number));
  }
  constexpr std::size_t kMostShown = 12;
  if (words.size() > kMostShown) {
    words.resize(kMostShown);
    words.push_back(fmt::format("\xE2\x80\xA6 {} in all", count));
  }
  const std::string text = fmt::format("{}", fmt::join(words, ", "));
  return tensor.shape.empty() ? text : "[" + text + "]";
}

}  // namespace

void SmallValues::want(std::span<const graph::TensorId> tensors) {
  constexpr std::size_t kMostAtOnce = 16;
  if (!graph_ || read_.busy()) return;
  std::vector<graph::TensorId> fresh;
  for (const graph::TensorId id : tensors) {
    const std::uint64_t count = graph::elements(graph_->tensor(id));
    if (fresh.size() < kMostAtOnce && count > 0 && count <= kMostElements && !texts_.contains(id) &&
        graph_->storage(graph_->tensor(id).storage).file != graph::kNoFile)
      fresh.push_back(id);
  }
  if (fresh.empty()) return;
  for (const graph::TensorId id : fresh) texts_[id];
  read_.ask(
      jobs_, "Reading constants",
      [graph = graph_, fresh](Progress& progress) {
        std::map<graph::TensorId, std::string> texts;
        const io::StorageReader reader(graph);
        for (const graph::TensorId id : fresh) try {
            texts[id] = small_text(reader, *graph, id, progress);
          } catch (const Error& error) {
            if (error.code() == ErrorCode::canceled) throw;  // what has no numbers has no text
          }
        return texts;
      },
      [this] {
        for (const auto& [id, text] : read_.or_empty()) texts_[id] = text;
      });
}

const std::string* SmallValues::of(graph::TensorId tensor) const {
  const auto found = texts_.find(tensor);
  return found == texts_.end() || found->second.empty() ? nullptr : &found->second;
}

}  // namespace loadline::gui
