// Parses the text in one pass; every error names its line.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/packing/problem.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace loadline::packing {
namespace {

constexpr std::size_t kMostBuffers = std::size_t{1} << 24;
constexpr std::size_t kMostGaps = std::size_t{1} << 16;
constexpr std::size_t kMostColumns = 64;  // the header may repeat `hint`

// Fields of the first three must not be empty.
enum class Column : std::uint8_t { lower, upper, size, id, alignment, offset, gaps, group, arena, ignored };

// The names of columns; the first three rows are required.
constexpr std::pair<std::string_view, Column> kColumns[] = {
    {"lower", Column::lower},         {"upper", Column::upper},   {"size", Column::size},
    {"start", Column::lower},         {"end", Column::upper},     {"id", Column::id},
    {"buffer", Column::id},           {"gaps", Column::gaps},     {"group", Column::group},
    {"alignment", Column::alignment}, {"offset", Column::offset}, {"arena", Column::arena},
    {"hint", Column::ignored},
};

bool has(const std::vector<Column>& columns, Column column) {
  return std::ranges::find(columns, column) != columns.end();
}

// Reads line by line; every error names the current line.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  template <typename... Values>
  [[noreturn]] void refuse(ErrorCode code, fmt::format_string<Values...> what,
                           const Values&... values) const {
    throw Error(code, {.file = file_}, "line {}: {}", line_,
                fmt::vformat(what, fmt::make_format_args(values...)));
  }
  template <typename... Values>
  [[noreturn]] void refuse(fmt::format_string<Values...> what, const Values&... values) const {
    refuse(ErrorCode::malformed, what, values...);
  }

  // Reads the fields of the next non-empty line; false at the end of the text. Calls `surplus`, which throws,
  // at the first field beyond `most`, so that no line takes more memory than its columns.
  template <typename Surplus>
  bool next(std::vector<std::string>& fields, std::size_t most, const Surplus& surplus) {
    fields.clear();
    while (at_ < text_.size()) {
      ++line_;
      if (skip_end()) continue;
      while (true) {
        if (fields.size() == most) surplus();
        fields.push_back(field());
        if (at_ < text_.size() && text_[at_] == ',') {
          ++at_;
          continue;
        }
        skip_end();
        return true;
      }
    }
    return false;
  }

  std::uint64_t number(const std::string& text, std::string_view what) const {
    std::uint64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc() || end != text.data() + text.size() || text.empty())
      refuse("{} '{}' is not a whole number below 2^64", what, safe_display(text, 40));
    return value;
  }

 private:
  bool skip_end() {
    if (at_ >= text_.size()) return true;
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    if (text_[at_] != '\n') return false;
    ++at_;
    return true;
  }

  std::string field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    const std::size_t from = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') ++at_;
    std::string_view value = text_.substr(from, at_ - from);
    if (value.ends_with('\r')) value.remove_suffix(1);
    while (value.ends_with(' ')) value.remove_suffix(1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    return std::string(value);
  }

  std::string quoted() {
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') break;
      if (text_[at_] != '"') {
        value += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        value += '"';
        ++at_;
      } else {
        ++at_;
        if (at_ < text_.size() && std::string_view(",\n\r").find(text_[at_]) == std::string_view::npos)
          refuse("there are characters after a closing quote");
        return value;
      }
    }
    refuse("a quote is not closed on its line");
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
};

std::vector<Column> header_of(CsvReader& reader) {
  std::vector<std::string> names;
  const auto surplus = [&] { reader.refuse(ErrorCode::limit, "more than {} columns", kMostColumns); };
  if (!reader.next(names, kMostColumns, surplus)) reader.refuse("there is no header line");
  std::vector<Column> columns;
  for (const std::string& name : names) {
    const auto known = std::ranges::find(kColumns, name, &std::pair<std::string_view, Column>::first);
    if (known == std::end(kColumns))
      reader.refuse(
          "column '{}' is unknown: lower, upper, size, id, alignment, offset, gaps, group and arena are "
          "known",
          safe_display(name, 40));
    if (known->second != Column::ignored && has(columns, known->second))
      reader.refuse("a second column for '{}'", safe_display(name, 40));
    columns.push_back(known->second);
  }
  for (const auto& [name, column] : std::span(kColumns).first<3>())
    if (!has(columns, column)) reader.refuse("no column '{}'", name);
  return columns;
}

// Parses "7-9 12-14".
std::vector<Lifespan> gaps_in(const CsvReader& reader, const std::string& text) {
  std::vector<Lifespan> gaps;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    if (part.empty()) continue;
    const std::size_t dash = part.find('-');
    if (dash == std::string::npos) reader.refuse("gap '{}' is not FROM-TO", safe_display(part, 40));
    if (gaps.size() >= kMostGaps)
      reader.refuse(ErrorCode::limit, "more than {} gaps in one buffer", kMostGaps);
    gaps.push_back({reader.number(part.substr(0, dash), "gap"), reader.number(part.substr(dash + 1), "gap")});
  }
  return gaps;
}

// Numbers in the order of first use.
using GroupNames = std::unordered_map<std::string, std::uint32_t>;

std::uint32_t arena_in(const CsvReader& reader, const std::string& text) {
  const std::uint64_t arena = reader.number(text, "arena");
  if (arena >= kMostPackingArenas)
    reader.refuse(ErrorCode::limit, "arena {} is over the limit of {}", arena, kMostPackingArenas - 1);
  return static_cast<std::uint32_t>(arena);
}

void set_field(const CsvReader& reader, Column column, const std::string& text, GroupNames& groups,
               Buffer& buffer, std::string& id) {
  if (text.empty() && column > Column::size) return;
  switch (column) {
    case Column::lower:
      buffer.lower = reader.number(text, "lower");
      break;
    case Column::upper:
      buffer.upper = reader.number(text, "upper");
      break;
    case Column::size:
      buffer.size = reader.number(text, "size");
      break;
    case Column::id:
      id = text;
      break;
    case Column::alignment:
      buffer.alignment = reader.number(text, "alignment");
      break;
    case Column::offset:
      buffer.offset = reader.number(text, "offset");
      break;
    case Column::gaps:
      buffer.gaps = gaps_in(reader, text);
      break;
    case Column::group:
      buffer.group = groups.emplace(text, static_cast<std::uint32_t>(groups.size())).first->second;
      break;
    case Column::arena:
      buffer.arena = arena_in(reader, text);
      break;
    case Column::ignored:
      break;
  }
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r ") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c == '\n' || c == '\r' ? ' ' : c;
  }
  return quoted + '"';
}

std::string gaps_text(const std::vector<Lifespan>& gaps) {
  std::string text;
  for (const Lifespan& gap : gaps)
    text += fmt::format("{}{}-{}", text.empty() ? "" : " ", gap.lower, gap.upper);
  return text;
}

}  // namespace

Problem read_packing_csv(std::string_view text, const std::string& file) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // written by spreadsheets
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  CsvReader reader(text, file);
  const std::vector<Column> columns = header_of(reader);
  const bool named = has(columns, Column::id);
  Problem problem;
  GroupNames groups;
  std::vector<std::string> fields;
  const auto surplus = [&] {
    reader.refuse("more than {} fields, {} columns", columns.size(), columns.size());
  };
  while (reader.next(fields, columns.size(), surplus)) {
    if (fields.size() != columns.size())
      reader.refuse("{} fields, {} columns", fields.size(), columns.size());
    if (problem.buffers.size() >= kMostBuffers)
      reader.refuse(ErrorCode::limit, "more than {} buffers", kMostBuffers);
    Buffer buffer;
    std::string id;
    for (std::size_t i = 0; i < columns.size(); ++i)
      set_field(reader, columns[i], fields[i], groups, buffer, id);
    problem.buffers.push_back(std::move(buffer));
    if (named) problem.ids.push_back(std::move(id));
  }
  return problem;
}

std::string packing_csv(const Problem& problem, std::span<const std::uint64_t> offsets) {
  const auto any = [&](auto&& uses) { return std::ranges::any_of(problem.buffers, uses); };
  const bool alignments = any([](const Buffer& b) { return b.alignment != 1; });
  const bool gaps = any([](const Buffer& b) { return !b.gaps.empty(); });
  const bool groups = any([](const Buffer& b) { return b.group != kNoGroup; });
  const bool arenas = any([](const Buffer& b) { return b.arena != 0; });
  std::string text = fmt::format("id,lower,upper,size{}{}{}{},offset\n", alignments ? ",alignment" : "",
                                 gaps ? ",gaps" : "", groups ? ",group" : "", arenas ? ",arena" : "");
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    fmt::format_to(std::back_inserter(text), "{},{},{},{}", csv_field(problem.id_of(i)), buffer.lower,
                   buffer.upper, buffer.size);
    if (alignments) fmt::format_to(std::back_inserter(text), ",{}", buffer.alignment);
    if (gaps) text += "," + gaps_text(buffer.gaps);
    if (groups) text += buffer.group == kNoGroup ? "," : fmt::format(",{}", buffer.group);
    if (arenas) fmt::format_to(std::back_inserter(text), ",{}", buffer.arena);
    fmt::format_to(std::back_inserter(text), ",{}\n", offsets[i]);
  }
  return text;
}

}  // namespace loadline::packing
