// Escapes, style sheets, facts, and whole files or none.
#include "app/report/page_parts.h"

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/load/request/load_options.h"
#include "embedded/report_files.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <span>

#include <fmt/core.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

namespace loadline::report {

// --- Escapes text for markup, and finds the embedded style sheets.

namespace {

std::string escaped(std::string_view shown) {
  constexpr std::string_view kMarks = "&<>\"'";
  constexpr std::array<std::string_view, kMarks.size()> kEntities = {"&amp;", "&lt;", "&gt;", "&quot;",
                                                                     "&#39;"};
  std::string text;
  text.reserve(shown.size());
  for (const char c : shown)
    if (const std::size_t mark = kMarks.find(c); mark == std::string_view::npos)
      text += c;
    else
      text += kEntities[mark];
  return text;
}

}  // namespace

std::string markup_text(std::string_view raw) { return escaped(safe_display(raw)); }

std::string markup_text(std::string_view raw, std::size_t columns) {
  return escaped(safe_display(raw, columns));
}

std::string_view style_sheet(std::string_view name) {
  for (const embedded::File& file : embedded::report_files())
    if (file.name.substr(0, file.name.find('.')) == name) return file.bytes;
  return {};
}

std::string page_head(std::string_view title, std::initializer_list<std::string_view> sheets) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{}</title>\n"
      "<style>\n{}@media(prefers-color-scheme:dark){{\n{}}}\n",
      markup_text(title), style_sheet("light"), style_sheet("dark"));
  for (const std::string_view sheet : sheets) html += style_sheet(sheet);
  return html + "</style>\n</head>\n";
}

// --- Writes through a temporary file.

void check_picture_path(const std::string& path, std::string_view extension) {
  if (path.empty() || path.ends_with(extension)) return;
  throw Error(ErrorCode::usage, "'{}' does not end in {}: Loadline overwrites only such files",
              safe_display(path, 120), extension);
}

void write_file(const std::string& path, std::string_view text, bool replace) {
  io::AtomicFile file(path);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.sync();
  file.rename_into_place(replace);
}

// --- Lists options from the table of load options.

OptionList asked_for(const load::LoadRequest& request, plan::MemoryKind memory) {
  load::LoadRequest in_force = request;
  in_force.memory = memory;
  const load::LoadRequest defaults;
  OptionList list;
  for (const load::LoadOption& option : load::load_options()) {
    const bool always = option.id == "memory" || option.id == "staging" || option.id == "slots";
    if (always || !same_option(option, in_force, defaults))
      list.emplace_back(option.title, show_option(option.kind, option.get(in_force), option.separator));
  }
  return list;
}

// --- Asks the system about itself.

namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown";
}

}  // namespace

OptionList machine_facts() {
  OptionList list;
  utsname system{};
  if (::uname(&system) == 0)
    list.push_back({"System", fmt::format("{} {} {}", system.sysname, system.release, system.machine)});
  list.push_back({"Processor", fmt::format("{}, {}", processor_name(), counted(cores(), "core"))});
  struct sysinfo memory {};
  if (::sysinfo(&memory) == 0)
    list.push_back({"Memory", format_bytes(std::uint64_t{memory.totalram} * memory.mem_unit)});
  return list;
}

}  // namespace loadline::report
