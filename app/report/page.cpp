// Head, chart, table and explanations of the page.
#include "app/report/page.h"

#include "app/report/manual.h"
#include "app/report/page_parts.h"
#include "app/report/verdict.h"
#include "core/base/text.h"
#include "core/load/measure/evidence.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline::report {
namespace {

std::string legend(const ChartSubject& subject) {
  const bool unified = subject.bound.memory == MemoryKind::unified;
  std::string html = "<div class=\"legend\">";
  for (const Space space : stack_of(kAllSpaces))
    if (std::ranges::any_of(subject.rows,
                            [&](const LoadRow& row) { return row.peaks[index(space)].bytes > 0; }))
      html += fmt::format("<span><i style=\"background:var(--{})\">&nbsp;</i>{}</span>", space_class(space),
                          space_title(space));
  html += fmt::format("<span><i class=\"ring\">&nbsp;</i>{}</span>",
                      unified ? "most that one memory must hold" : "most on the device");
  if (const auto& budget = leading_budget(subject.bound))
    html += fmt::format("<span><i class=\"dash\">&nbsp;</i>budget {}</span>", format_bytes(*budget));
  html += unified ? "<span>The page cache on top can be dropped: it does not count.</span>"
                  : "<span>The device stands above the line, the host's memory hangs below it.</span>";
  return html + "</div>\n";
}

std::string bytes_cell(std::uint64_t bytes) { return bytes == 0 ? "&ndash;" : format_bytes(bytes); }

std::string verdict_cell(const LoadRow& row, const BoundRequest& bound) {
  const std::string text =
      row.refusal ? fmt::format("cannot be done: {}", row.refusal->what()) : verdict_text(row, bound);
  return fmt::format("<td class=\"left verdict {}\">{}</td>", row.fits() ? "good" : "bad", markup_text(text));
}

std::string explanations(const ChartSubject& subject) {
  std::string html = "<h2>What each method does</h2>\n<dl>\n";
  const Method* last = nullptr;
  for (const LoadRow& row : subject.rows) {
    if (row.method == last) continue;
    last = row.method;
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", markup_text(row.method->id),
                        markup_text(method_explanation(row.method->id)));
  }
  html += "</dl>\n<h2>What counts the memory</h2>\n<dl>\n";
  for (const MemoryView& view : memory_views())
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", markup_text(view.title), markup_text(view.counted_by));
  return html + "</dl>\n";
}

std::string options_list(const OptionList& options) {
  std::string html = "<h2>Asked for</h2>\n<dl>\n";
  for (const auto& [name, value] : options)
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", markup_text(name), markup_text(value));
  return html + "</dl>\n";
}

}  // namespace

std::string charts_html(const ChartSubject& subject, double widest) {
  const std::vector<PicturedRow> rows = pictured_rows(subject);
  const ChartScale scale = chart_scale(subject, rows);
  // few panels are drawn large; many fill the width of a 1280-pixel slide
  const double least =
      std::clamp(1224.0 / static_cast<double>(std::max<std::size_t>(rows.size(), 1)) - 16, 188.0, widest);
  std::string html =
      legend(subject) + fmt::format("<div class=\"charts\" style=\"--least:min({:.0f}px,100%)\">\n", least);
  for (const PicturedRow& one : rows)
    html += fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}: {}\">\n{}</svg>\n",
                        PanelSize{}.width, PanelSize{}.height, markup_text(one.row->method->id),
                        format_bytes(one.row->leading.bytes), panel_svg(one, subject.bound, scale));
  html += "</div>\n";
  for (const std::string& note : chart_notes(subject, rows))
    html += fmt::format("<p class=\"lead\">{}</p>\n", markup_text(note));
  return html;
}

std::string peaks_html(const ChartSubject& subject) {
  const BoundRequest& bound = subject.bound;
  const bool unified = bound.memory == MemoryKind::unified;
  const auto is_set = [](const auto& member) { return member.has_value(); };
  const bool verdicts = bound.judged() || std::ranges::any_of(subject.rows, is_set, &LoadRow::refusal);
  std::string html =
      "<h2>Peaks</h2>\n<div class=\"scroll\"><table>\n<tr><th class=\"left\">method</th>"
      "<th class=\"left\">order</th>";
  if (unified) html += "<th>must hold</th>";
  html += "<th>device</th><th>host</th><th>page cache</th>";
  if (bound.request().page_cache_budget) html += "<th>read again</th>";
  html += "<th>staging</th><th>unified</th><th class=\"left\">law</th><th class=\"left\">held against</th>";
  html += verdicts ? "<th class=\"left\">verdict</th></tr>\n" : "</tr>\n";
  for (const LoadRow& row : subject.rows) {
    html += fmt::format("<tr><td class=\"left\">{}</td><td class=\"left\">{}</td>",
                        markup_text(row.method->id), markup_text(row.order, 40));
    const auto cell = [&](std::uint64_t bytes) { html += fmt::format("<td>{}</td>", bytes_cell(bytes)); };
    if (unified) cell(row.leading.bytes);
    cell(row.peaks[index(Space::device)].bytes);
    cell(row.peaks[index(Space::host)].bytes);
    cell(row.cache ? row.cache->peak : row.peaks[index(Space::page_cache)].bytes);
    if (bound.request().page_cache_budget) cell(row.cache ? row.cache->reread_bytes : 0);
    cell(row.peaks[index(Space::staging)].bytes);
    cell(row.unified.bytes);
    html += fmt::format("<td class=\"left\">{}</td>", markup_text(row.method->peak_law));
    html += fmt::format("<td class=\"left\">{}</td>", markup_text(evidence_brief(row.method->id)));
    html += (verdicts ? verdict_cell(row, bound) : "") + "</tr>\n";
  }
  html += "</table></div>\n";
  const bool reserved = std::ranges::any_of(subject.rows, is_set, &LoadRow::reserved);
  const bool own_order = std::ranges::any_of(subject.rows, is_set, &LoadRow::order_proven);
  if (bound.judged() && reserved)
    html +=
        fmt::format("<p class=\"lead\">Verdicts are by what the allocator reserves for these peaks{}.</p>\n",
                    own_order ? "; the order optimal is by the bytes asked for" : "");
  return html + fmt::format("<p class=\"lead\">{}</p>\n", markup_text(law_symbols()));
}

std::string page_html(const ChartSubject& subject, const PageText& text) {
  std::string html = page_head(chart_title(subject), {"chart", "page"});
  html += fmt::format("<body>\n<main>\n<h1>{}</h1>\n", markup_text(chart_title(subject)));
  html += fmt::format("<p class=\"lead\">{}</p>\n", markup_text(text.lead));
  html += charts_html(subject) + peaks_html(subject);
  html += explanations(subject) + options_list(text.options);
  html += fmt::format(
      "<footer>Projected by Loadline {}. Peaks are exact for the plan; times are modelled.</footer>\n",
      markup_text(text.version));
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace loadline::report
