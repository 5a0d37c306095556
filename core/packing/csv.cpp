// Parses the text in one pass; every error names its line.
#include "core/packing/csv.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::size_t kMostBuffers = std::size_t{1} << 24;
constexpr std::size_t kMostGaps = std::size_t{1} << 16;
constexpr std::size_t kMostColumns = 64;  // the header may repeat `hint`

enum class Column : std::uint8_t { id, lower, upper, size, alignment, offset, gaps, group, arena, ignored };

std::optional<Column> column_named(std::string_view name) {
  struct Name {
    std::string_view name;
    Column column;
  };
  constexpr Name kNames[] = {
      {"id", Column::id},        {"buffer", Column::id},           {"lower", Column::lower},
      {"start", Column::lower},  {"upper", Column::upper},         {"end", Column::upper},
      {"size", Column::size},    {"alignment", Column::alignment}, {"offset", Column::offset},
      {"gaps", Column::gaps},    {"group", Column::group},         {"arena", Column::arena},
      {"hint", Column::ignored},
  };
  for (const Name& known : kNames)
    if (known.name == name) return known.column;
  return std::nullopt;
}

// Reads line by line; every error names the current line.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  [[noreturn]] void refuse(std::string_view what, ErrorCode code = ErrorCode::malformed) const {
    throw Error(code, {.file = file_}, "line {}: {}", line_, what);
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
      refuse(fmt::format("{} '{}' is no whole number below 2^64", what, safe_display(text, 40)));
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
    std::size_t to = at_;
    if (to > from && text_[to - 1] == '\r') --to;
    while (to > from && text_[to - 1] == ' ') --to;
    std::size_t begin = from;
    while (begin < to && text_[begin] == ' ') ++begin;
    return std::string(text_.substr(begin, to - begin));
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
        const bool ends =
            at_ >= text_.size() || text_[at_] == ',' || text_[at_] == '\n' || text_[at_] == '\r';
        if (!ends) refuse("something follows a closing quote");
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
  const auto surplus = [&] {
    reader.refuse(fmt::format("more than {} columns", kMostColumns), ErrorCode::limit);
  };
  if (!reader.next(names, kMostColumns, surplus)) reader.refuse("no line that names the columns");
  std::vector<Column> columns;
  for (const std::string& name : names) {
    const auto column = column_named(name);
    if (!column)
      reader.refuse(
          fmt::format("column '{}' is unknown: lower, upper, size, id, alignment, offset, gaps, group "
                      "and arena are known",
                      safe_display(name, 40)));
    if (*column != Column::ignored && std::ranges::count(columns, *column) > 0)
      reader.refuse(fmt::format("a second column for '{}'", safe_display(name, 40)));
    columns.push_back(*column);
  }
  for (const auto& [column, name] : {std::pair(Column::lower, "lower"), std::pair(Column::upper, "upper"),
                                     std::pair(Column::size, "size")})
    if (std::ranges::count(columns, column) == 0) reader.refuse(fmt::format("no column '{}'", name));
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
    if (dash == std::string::npos)
      reader.refuse(fmt::format("gap '{}' is not FROM-TO", safe_display(part, 40)));
    if (gaps.size() >= kMostGaps)
      reader.refuse(fmt::format("more than {} gaps in one buffer", kMostGaps), ErrorCode::limit);
    gaps.push_back({reader.number(part.substr(0, dash), "gap"), reader.number(part.substr(dash + 1), "gap")});
  }
  return gaps;
}

// Numbers group names in the order of their first use.
class GroupNames {
 public:
  std::uint32_t number(const std::string& name) {
    return numbers_.emplace(name, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

void set_field(const CsvReader& reader, Column column, const std::string& text, GroupNames& groups,
               Buffer& buffer, std::string& id) {
  switch (column) {
    case Column::id:
      id = text;
      return;
    case Column::lower:
      buffer.lower = reader.number(text, "lower");
      return;
    case Column::upper:
      buffer.upper = reader.number(text, "upper");
      return;
    case Column::size:
      buffer.size = reader.number(text, "size");
      return;
    case Column::ignored:
      return;
    default:
      break;
  }
  if (text.empty()) return;
  switch (column) {
    case Column::alignment:
      buffer.alignment = reader.number(text, "alignment");
      return;
    case Column::offset:
      buffer.offset = reader.number(text, "offset");
      return;
    case Column::gaps:
      buffer.gaps = gaps_in(reader, text);
      return;
    case Column::group:
      buffer.group = groups.number(text);
      return;
    default:
      break;
  }
  const std::uint64_t arena = reader.number(text, "arena");
  if (arena >= kMostPackingArenas)
    reader.refuse(fmt::format("arena {} is over the limit of {}", arena, kMostPackingArenas - 1),
                  ErrorCode::limit);
  buffer.arena = static_cast<std::uint32_t>(arena);
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
  const bool named = std::ranges::count(columns, Column::id) > 0;
  Problem problem;
  GroupNames groups;
  std::vector<std::string> fields;
  const auto surplus = [&] {
    reader.refuse(fmt::format("more than {} fields, {} columns", columns.size(), columns.size()));
  };
  while (reader.next(fields, columns.size(), surplus)) {
    if (fields.size() != columns.size())
      reader.refuse(fmt::format("{} fields, {} columns", fields.size(), columns.size()));
    if (problem.buffers.size() >= kMostBuffers)
      reader.refuse(fmt::format("more than {} buffers", kMostBuffers), ErrorCode::limit);
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

}  // namespace loadline
