// Reads and writes load orders as text.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/name.h"
#include "core/io/source_file.h"
#include "core/load/request/bind_request.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/core.h>

namespace loadline::load {
namespace {

constexpr std::size_t kMostLine = 64 << 10;
constexpr std::uint64_t kMostFile = 256 << 20;

bool counts(std::string_view line) {
  return !line.starts_with('#') && line.find_first_not_of(" \t") != std::string_view::npos;
}

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = std::min(line.find_first_not_of(kBlanks), line.size());
  return line.substr(first, line.find_last_not_of(kBlanks) + 1 - first);
}

const Order* find_row_of(std::string_view name) {
  try {
    return &find_order(name);
  } catch (const Error&) {
    return nullptr;
  }
}

// Reads names line by line and remembers the line of each.
class OrderReader {
 public:
  OrderReader(const graph::MetaGraph& graph, const std::string& file)
      : graph_(graph), file_(file), line_of_(graph.tensors.size(), 0), placed_(graph.storages.size(), false) {
    names_.reserve(graph.tensors.size());
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) names_.emplace(graph.tensors[i].name.view(), i);
  }

  StorageOrder read(std::string_view text) {
    constexpr std::string_view kMark = "\xef\xbb\xbf";  // byte order mark that some editors write
    if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
    for (const std::string_view line : lines_of(text)) {
      ++line_;
      take(line);
    }
    if (order_.empty() && !graph_.tensors.empty())
      throw Error(ErrorCode::malformed, {.file = file_},
                  "names no tensor in its {}: an order lists tensors, one a line", counted(line_, "line"));
    for (const graph::StorageId id : find_order("file").make(graph_)) place(id);
    return std::move(order_);
  }

 private:
  void take(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > kMostLine)
      throw fault(ErrorCode::limit, {},
                  fmt::format("{} bytes, the limit of a line is {}", line.size(), kMostLine));
    if (line.find('\0') != std::string_view::npos)
      throw fault(ErrorCode::malformed, {}, "a NUL byte: this is not a list of names");
    if (!counts(line)) return;
    const auto found = names_.find(line);
    if (found == names_.end())
      throw fault(
          ErrorCode::malformed, std::string(line),
          fmt::format("not one of the model's {}{}", counted(graph_.tensors.size(), "tensor"),
                      names_.contains(trimmed(line)) ? ", but it is without the blanks around it" : ""));
    std::size_t& listed = line_of_[found->second];
    if (listed != 0)
      throw fault(ErrorCode::malformed, std::string(line), fmt::format("listed on line {} already", listed));
    listed = line_;
    place(graph_.tensors[found->second].storage);
  }

  void place(graph::StorageId id) {
    if (placed_[graph::index(id)]) return;
    placed_[graph::index(id)] = true;
    order_.push_back(id);
  }

  Error fault(ErrorCode code, std::optional<std::string> tensor, const std::string& text) const {
    return Error(code, {.file = file_, .tensor = std::move(tensor)}, "line {}: {}", line_, text);
  }

  const graph::MetaGraph& graph_;
  const std::string& file_;
  graph::TextViewMap<std::uint32_t> names_;
  std::vector<std::size_t> line_of_;  // by tensor; 0: not listed yet
  std::vector<bool> placed_;          // by storage
  StorageOrder order_;
  std::size_t line_ = 0;
};

}  // namespace

StorageOrder parse_order(const graph::MetaGraph& graph, std::string_view text, const std::string& file) {
  return OrderReader(graph, file).read(text);
}

StorageOrder read_order(const graph::MetaGraph& graph, const std::string& path) {
  const io::SourceFile file = io::SourceFile::open(path);
  if (file.size() > kMostFile)
    throw Error(ErrorCode::limit, {.file = path}, "{} bytes, the limit of a list of names is {}", file.size(),
                kMostFile);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return parse_order(graph, text, path);
}

std::string order_text(const graph::MetaGraph& graph, const StorageOrder& order) {
  const auto owners = graph::first_owner(graph);
  std::string text = "# One tensor per line, in the order in which they are loaded.\n";
  for (const graph::StorageId id : order) {
    const std::string_view name = graph.tensor(*owners[graph::index(id)]).name.view();
    constexpr std::string_view kBreaks("\n\0", 2);
    if (!counts(name) || name.find_first_of(kBreaks) != std::string_view::npos || name.ends_with('\r') ||
        name.size() > kMostLine)
      throw Error(ErrorCode::unsupported, {.tensor = std::string(name)},
                  "a line of a list cannot hold this name");
    text.append(name).push_back('\n');
  }
  return text;
}

void check_order_choice(const std::string& name) {
  std::error_code none;
  if (find_row_of(name) != nullptr || std::filesystem::exists(name, none)) return;
  if (name.find_first_of("./") != std::string::npos)
    throw Error(ErrorCode::usage, "there is no file '{}' with an order", safe_display(name));
  find_order(name);
}

OrderChoice choose_order(const graph::MetaGraph& graph, const std::string& name) {
  check_order_choice(name);
  if (const Order* row = find_row_of(name)) return {.name = name, .row = row};
  return {
      .name = name, .row = nullptr, .listed = std::make_shared<const StorageOrder>(read_order(graph, name))};
}

}  // namespace loadline::load
