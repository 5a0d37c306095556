// Finds pages and reduces their Markdown.
#include "app/report/manual.h"

#include "core/base/lookup.h"
#include "embedded/manual_files.h"

#include <algorithm>
#include <vector>

namespace loadline::report {
namespace {

std::vector<ManualPage> load_pages() {
  constexpr std::string_view kFirst = "getting-started";
  std::vector<ManualPage> pages;
  for (const embedded::File& file : embedded::manual_files()) {
    const std::string_view line = file.bytes.substr(0, file.bytes.find('\n'));
    pages.push_back({file.name.substr(0, file.name.rfind('.')),
                     line.substr(std::min<std::size_t>(2, line.size())), file.bytes});
  }
  std::stable_sort(pages.begin(), pages.end(), [&](const ManualPage& a, const ManualPage& b) {
    return (a.id == kFirst) != (b.id == kFirst) ? a.id == kFirst : a.id < b.id;
  });
  return pages;
}

// "[words](place)" -> "words".
std::string without_links(std::string_view line) {
  std::string text;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t middle = line.find("](", at);
    const std::size_t open = middle == std::string_view::npos ? middle : line.rfind('[', middle);
    const std::size_t close = middle == std::string_view::npos ? middle : line.find(')', middle);
    if (close == std::string_view::npos || open == std::string_view::npos || open < at)
      return text.append(line.substr(at));
    text.append(line.substr(at, open - at)).append(line.substr(open + 1, middle - open - 1));
    at = close + 1;
  }
  return text;
}

}  // namespace

std::span<const ManualPage> manual_pages() {
  static const std::vector<ManualPage> pages = load_pages();
  return pages;
}

const ManualPage& find_manual_page(std::string_view id) { return find_row(manual_pages(), id, "page"); }

std::string manual_plain_text(std::string_view markdown) {
  std::string text;
  bool code = false;
  for (std::size_t at = 0; at < markdown.size();) {
    const std::size_t end = std::min(markdown.find('\n', at), markdown.size());
    const std::string_view line = markdown.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("![")) continue;
    if (line.starts_with("```")) {
      code = !code;
      continue;
    }
    text += code ? "    " + std::string(line) : without_links(line);
    text += '\n';
  }
  return text;
}

}  // namespace loadline::report
