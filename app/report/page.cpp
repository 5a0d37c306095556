// Writes the sections of these pages.
#include "app/report/page.h"

#include "app/report/manual.h"
#include "app/report/page_parts.h"
#include "app/report/pictures.h"
#include "app/report/row_text.h"
#include "core/base/text.h"
#include "core/graph/meta_graph.h"
#include "core/load/measure/evidence.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::report {

// --- Head, chart, table and explanations of the page.

namespace {

std::string legend(const ChartSubject& subject) {
  const bool unified = subject.bound.memory.kind == plan::MemoryKind::unified;
  std::string html = "<div class=\"legend\">";
  for (const plan::Space space : plan::kSpaceOrder)
    if (std::ranges::any_of(
            subject.rows, [&](const load::LoadRow& row) { return row.peaks[plan::index(space)].bytes > 0; }))
      html += fmt::format("<span><i style=\"background:var(--{})\">&nbsp;</i>{}</span>", space_class(space),
                          plan::space_title(space));
  html += fmt::format("<span><i class=\"ring\">&nbsp;</i>{}</span>",
                      unified ? "unified peak" : "peak on the device");
  if (const auto& budget = subject.bound.memory.deciding_budget())
    html += fmt::format("<span><i class=\"dash\">&nbsp;</i>budget {}</span>", format_bytes(*budget));
  html += unified ? "<span>The system can drop the page cache on top: it does not count.</span>"
                  : "<span>Device memory is above the line, host memory below it.</span>";
  return html + "</div>\n";
}

std::string bytes_cell(std::uint64_t bytes) { return bytes == 0 ? "&ndash;" : format_bytes(bytes); }

std::string verdict_cell(const load::LoadRow& row, const load::BoundRequest& bound) {
  const std::string text =
      row.refusal ? fmt::format("not possible: {}", row.refusal->what()) : verdict_text(row, bound);
  return fmt::format("<td class=\"left verdict {}\">{}</td>", row.fits() ? "good" : "bad", markup_text(text));
}

std::string explanations(const ChartSubject& subject) {
  std::string html = "<h2>What each method does</h2>\n<dl>\n";
  const load::Method* last = nullptr;
  for (const load::LoadRow& row : subject.rows) {
    if (row.method == last) continue;
    last = row.method;
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", markup_text(row.method->id),
                        markup_text(method_explanation(row.method->id)));
  }
  html += "</dl>\n<h2>Memory counters</h2>\n<dl>\n";
  for (const plan::MemoryView& view : plan::memory_views())
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", markup_text(view.title), markup_text(view.counted_by));
  return html + "</dl>\n";
}

std::string options_list(const OptionList& options) {
  std::string html = "<h2>Options</h2>\n<dl>\n";
  for (const auto& [name, value] : options)
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", markup_text(name), markup_text(value));
  return html + "</dl>\n";
}

}  // namespace

std::string charts_html(const ChartSubject& subject, double widest) {
  const std::vector<DrawnRow> rows = drawn_rows(subject);
  const ChartScale scale = chart_scale(subject, rows);
  // few panels are drawn large; many fill the width of a 1280-pixel slide
  const double least =
      std::clamp(1224.0 / static_cast<double>(std::max<std::size_t>(rows.size(), 1)) - 16, 188.0, widest);
  std::string html =
      legend(subject) + fmt::format("<div class=\"charts\" style=\"--least:min({:.0f}px,100%)\">\n", least);
  for (const DrawnRow& one : rows)
    html += fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}: {}\">\n{}</svg>\n",
                        PanelSize{}.width, PanelSize{}.height, markup_text(one.row->method->id),
                        format_bytes(one.row->deciding_peak.bytes), panel_svg(one, subject.bound, scale));
  html += "</div>\n";
  for (const std::string& note : chart_notes(subject, rows))
    html += fmt::format("<p class=\"lead\">{}</p>\n", markup_text(note));
  return html;
}

std::string peaks_html(const ChartSubject& subject) {
  const load::BoundRequest& bound = subject.bound;
  const bool unified = bound.memory.kind == plan::MemoryKind::unified;
  const auto is_set = [](const auto& member) { return member.has_value(); };
  const bool verdicts = bound.judged() || std::ranges::any_of(subject.rows, is_set, &load::LoadRow::refusal);
  std::string html =
      "<h2>Peaks</h2>\n<div class=\"scroll\"><table>\n<tr><th class=\"left\">method</th>"
      "<th class=\"left\">order</th>";
  if (unified) html += "<th>unified peak</th>";
  html += "<th>device</th><th>host</th><th>staging</th><th>page cache</th>";
  if (bound.request.page_cache_budget) html += "<th>reread</th>";
  html += "<th>unified</th><th class=\"left\">law</th><th class=\"left\">compared with</th>";
  html += verdicts ? "<th class=\"left\">verdict</th></tr>\n" : "</tr>\n";
  for (const load::LoadRow& row : subject.rows) {
    html += fmt::format("<tr><td class=\"left\">{}</td><td class=\"left\">{}</td>",
                        markup_text(row.method->id), markup_text(row.order, 40));
    const auto cell = [&](std::uint64_t bytes) { html += fmt::format("<td>{}</td>", bytes_cell(bytes)); };
    if (unified) cell(row.deciding_peak.bytes);
    cell(row.peaks[plan::index(plan::Space::device)].bytes);
    cell(row.peaks[plan::index(plan::Space::host)].bytes);
    cell(row.peaks[plan::index(plan::Space::staging)].bytes);
    cell(row.cache ? row.cache->peak : row.peaks[plan::index(plan::Space::page_cache)].bytes);
    if (bound.request.page_cache_budget) cell(row.cache ? row.cache->reread_bytes : 0);
    cell(row.unified_peak.bytes);
    html += fmt::format("<td class=\"left\">{}</td>", markup_text(load::law_text(*row.method)));
    html += fmt::format("<td class=\"left\">{}</td>", markup_text(load::evidence_brief(row.method->id)));
    html += (verdicts ? verdict_cell(row, bound) : "") + "</tr>\n";
  }
  html += "</table></div>\n";
  const bool reserved = std::ranges::any_of(subject.rows, is_set, &load::LoadRow::reserved);
  const bool own_order = std::ranges::any_of(subject.rows, is_set, &load::LoadRow::order_proven);
  if (bound.judged() && reserved)
    html +=
        fmt::format("<p class=\"lead\">Verdicts are by what the allocator reserves for these peaks{}.</p>\n",
                    own_order ? "; the order \"optimal\" is by the requested bytes" : "");
  std::vector<const load::Method*> methods;
  for (const load::LoadRow& row : subject.rows) methods.push_back(row.method);
  if (methods.empty()) return html;
  return html + fmt::format("<p class=\"lead\">{}</p>\n", markup_text(law_legend(methods)));
}

std::string page_html(const ChartSubject& subject, const PageText& text) {
  std::string html = page_head(chart_title(subject), {"chart", "page"});
  html += fmt::format("<body>\n<main>\n<h1>{}</h1>\n", markup_text(chart_title(subject)));
  html += fmt::format("<p class=\"lead\">{}</p>\n", markup_text(text.lead));
  html += charts_html(subject) + peaks_html(subject);
  html += explanations(subject) + options_list(text.options);
  html += fmt::format(
      "<footer>Projected by Loadline {}. Peaks are exact for the plan; times are modeled.</footer>\n",
      markup_text(text.version));
  return html + "</main>\n</body>\n</html>\n";
}

// --- Writes the sections of a report.

namespace {

constexpr std::size_t kLargest = 10, kMostRows = 200;

std::string row_html(std::initializer_list<std::string> cells, bool titles = false) {
  std::string html = "<tr>";
  bool first = true;
  for (const std::string& cell : cells) {
    html += fmt::format("<{0}{1}>{2}</{0}>", titles ? "th" : "td", first ? " class=\"left\"" : "", cell);
    first = false;
  }
  return html + "</tr>\n";
}

std::string table_html(const std::string& rows) {
  return "<div class=\"scroll\"><table>\n" + rows + "</table></div>\n";
}

std::string list_html(const OptionList& items) {
  std::string html = "<dl>\n";
  for (const auto& [name, value] : items)
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", markup_text(name), markup_text(value));
  return html + "</dl>\n";
}

// Types by bytes; bytes that several tensors share count for one of them.
std::string types_text(const graph::MetaGraph& graph) {
  std::map<std::string_view, std::uint64_t> bytes;
  const std::vector<graph::Share> parts = graph::shares(graph);
  for (std::size_t i = 0; i < parts.size(); ++i)
    bytes[graph::dtype_info(graph.tensors[i].dtype).name] += parts[i].bytes;
  std::vector<std::pair<std::string_view, std::uint64_t>> types(bytes.begin(), bytes.end());
  std::ranges::stable_sort(types, std::greater<>(), [](const auto& type) { return type.second; });
  std::vector<std::string> words;
  for (const auto& [name, size] : types) words.push_back(fmt::format("{} {}", name, format_bytes(size)));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string contents_html(const ModelPage& page) {
  const graph::MetaGraph& graph = page.graph;
  OptionList facts = {
      {"Format", graph.format},
      {"Weights", fmt::format("{} ({})", format_bytes(graph::storage_bytes(graph)),
                              counted(graph::storage_bytes(graph), "byte"))},
      {"Parameters", format_grouped(page.claims.parameters) + forward::without_text(page.claims)},
      {"Tensors", format_grouped(graph.tensors.size())},
      {"Types", types_text(graph)},
      {"Files", format_grouped(graph.files.size())}};
  if (!page.claims.family.empty())
    facts.push_back({"Family", page.claims.family + forward::but_for_text(page.claims)});
  std::string html = "<h2>Contents</h2>\n" + list_html(facts) + treemap_legend(graph) + treemap_svg(graph);
  std::vector<std::uint32_t> order(graph.tensors.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto bytes = [&](std::uint32_t i) { return graph.storage(graph.tensors[i].storage).bytes; };
  const std::size_t shown = std::min(order.size(), kLargest);
  std::ranges::partial_sort(
      order, order.begin() + static_cast<std::ptrdiff_t>(shown),
      [&](std::uint32_t a, std::uint32_t b) { return bytes(a) != bytes(b) ? bytes(a) > bytes(b) : a < b; });
  std::string rows = row_html({"largest tensors", "type", "shape", "bytes"}, true);
  for (std::size_t i = 0; i < shown; ++i) {
    const graph::Tensor& tensor = graph.tensors[order[i]];
    rows += row_html({markup_text(tensor.name.view(), 80), std::string(graph::dtype_info(tensor.dtype).name),
                      fmt::format("{}", fmt::join(tensor.shape, " x ")), format_bytes(bytes(order[i]))});
  }
  return html + table_html(rows);
}

std::string pass_html(const ModelPage& page) {
  const load::RequestPass& pass = *page.answer.forward;
  std::string html;
  const auto per_token = pass.model().cache_bytes_per_token;
  if (pass.figures()) {
    const forward::ForwardPeak& peak = pass.figures()->peak;
    html += list_html({{"New tokens", format_grouped(pass.sequence())},
                       {"Activations at most", format_bytes(peak.bytes)},
                       {"Cache after the pass", format_bytes(peak.cache_bytes)},
                       {"Profile", pass.model().profile}});
  }
  if (per_token && *per_token > 0) {
    std::string rows = row_html({"context", "cache of one sequence, while no window is full"}, true);
    for (const std::uint64_t tokens : {1024u, 8192u, 32768u, 131072u})
      if (*per_token <= UINT64_MAX / tokens)
        rows += row_html({counted(tokens, "token"), format_bytes(*per_token * tokens)});
    html += table_html(rows);
  }
  for (const load::LoadRow& row : page.answer.rows)
    if (row.context_max)
      html += fmt::format("<p>{}: context of up to {}.</p>\n", markup_text(row.method->id),
                          counted(*row.context_max, "token"));
  return html.empty() ? "" : "<h2>Forward pass and context</h2>\n" + html;
}

std::string findings_html(const std::optional<std::vector<inspect::Finding>>& findings) {
  if (!findings) return "";
  std::string html = "<h2>Findings in the files</h2>\n";
  if (findings->empty()) return html + "<p>No problems found: nothing in the files slows down loading.</p>\n";
  html += "<dl>\n";
  for (const inspect::Finding& finding : *findings)
    html += fmt::format("<dt>{}</dt><dd>{}: {}<small>{}</small></dd>\n", markup_text(finding.id),
                        markup_text(finding.text), markup_text(finding.cost), markup_text(finding.remedy));
  return html + "</dl>\n";
}

std::string advice_html(const load::LoadAnswer& answer) {
  if (!answer.advice) return "";
  const load::Advice& advice = answer.advice->advice;
  std::string html = "<h2>Changes that make it fit</h2>\n";
  if (advice.loads.empty()) html += "<p>No load that fits was found.</p>\n";
  html += "<ul>\n";
  const auto line = [&](const load::AdvisedLoad& load) {
    const std::string changes = load.changes.empty()
                                    ? fmt::format("{} in {} order", load.method->id, load.order)
                                    : fmt::format("{}", fmt::join(load.changes, " and "));
    html += fmt::format("<li>{}: {} by {}</li>\n", markup_text(changes), format_bytes(load.held),
                        markup_text(load.method->id));
  };
  for (const load::AdvisedLoad& load : advice.loads) line(load);
  if (advice.loads.empty() && advice.nearest) line(*advice.nearest);
  return html + "</ul>\n";
}

std::string measured_html(const MeasuredLoads* rehearsal) {
  if (rehearsal == nullptr) return "";
  std::string rows = row_html({"method", "counter", "projected", "measured"}, true);
  for (const MeasuredLoad& row : rehearsal->rows)
    for (const MeasuredCounter& counter : row.counters)
      if (!too_small_to_judge(counter.projected, counter.measured))
        rows += row_html({markup_text(row.method->id), std::string(counter.name),
                          format_bytes(counter.projected), format_bytes(counter.measured)});
  std::string html =
      "<h2>Projected and measured</h2>\n<p>Each method loaded the files in ordinary memory, and the kernel "
      "counted. "
      "Device memory is shared memory here (RssShmem).</p>\n" +
      table_html(rows);
  for (const MeasuredLoads::Refused& refused : rehearsal->refused)
    html += fmt::format("<p class=\"lead\">{}: {}</p>\n", markup_text(refused.method->id),
                        markup_text(refused.why));
  return html;
}

std::string foot_html(const PageFoot& foot) {
  std::string html = "<h2>Commands for this page</h2>\n<pre>";
  for (const std::string& command : foot.commands) html += markup_text(command) + "\n";
  html += "</pre>\n<h2>Machine and versions</h2>\n" + list_html(foot.machine);
  return html + "<footer>Peaks are exact for each plan; times are modeled.</footer>\n";
}

std::string begin_html(const std::string& title) {
  return page_head(title, {"chart", "page", "treemap"}) +
         fmt::format("<body>\n<main>\n<h1>{}</h1>\n", markup_text(title));
}

std::string_view state_words(inspect::PairState state) {
  switch (state) {
    case inspect::PairState::equal:
      return "equal";
    case inspect::PairState::other_shape:
      return "other shape";
    case inspect::PairState::other_type:
      return "other type";
    case inspect::PairState::other_values:
      return "other values";
    case inspect::PairState::refused:
      return "cannot be compared";
    case inspect::PairState::not_looked:
      return "same shape and type";
  }
  return "";
}

Bars held_bars(const graph::MetaGraph& graph, const ChartSubject& subject) {
  return method_bars({subject.rows.begin(), subject.rows.end()}, graph::storage_bytes(graph), "held");
}

std::string side_html(const graph::MetaGraph& graph, const std::string& path, Bars bars, std::uint64_t scale,
                      std::string_view letter) {
  bars.scale = scale;
  return fmt::format(
             "<h2>{}: {}</h2>\n<p>{}</p>\n", letter, markup_text(path),
             markup_text(fmt::format("{}, {}, {}", graph.format, counted(graph.tensors.size(), "tensor"),
                                     format_bytes(graph::storage_bytes(graph))))) +
         bars_svg(bars);
}

std::string pairs_html(const inspect::Comparison& comparison) {
  std::map<inspect::PairState, std::uint64_t> counts;
  for (const inspect::PairResult& result : comparison.results) ++counts[result.state];
  std::string html = "<h2>Weights</h2>\n<ul>\n";
  for (const auto& [state, count] : counts)
    html += fmt::format("<li>{}: {}</li>\n", state_words(state), format_grouped(count));
  for (const auto& [only, letter] :
       {std::pair{&comparison.match.only_a, "A"}, {&comparison.match.only_b, "B"}})
    if (!only->empty())
      html += fmt::format("<li>only in {}: {}</li>\n", letter, format_grouped(only->size()));
  html += "</ul>\n";
  std::string rows = row_html({"weight", "", "A", "B"}, true);
  std::size_t shown = 0, all = 0;
  for (std::size_t i = 0; i < comparison.results.size(); ++i) {
    const inspect::PairState state = comparison.results[i].state;
    if (state == inspect::PairState::equal || state == inspect::PairState::not_looked) continue;
    if (++all > kMostRows) continue;
    ++shown;
    const inspect::Weight& a = comparison.match.a[comparison.match.pairs[i].a];
    const inspect::Weight& b = comparison.match.b[comparison.match.pairs[i].b];
    const auto side = [](const inspect::Weight& weight) {
      return fmt::format("{} {}", graph::dtype_info(weight.dtype).name, fmt::join(weight.shape, " x "));
    };
    rows += row_html({markup_text(a.name.view(), 80), std::string(state_words(state)), side(a), side(b)});
  }
  if (all > 0) html += table_html(rows);
  if (all > shown) html += fmt::format("<p class=\"lead\">and {} more</p>\n", format_grouped(all - shown));
  return html;
}

std::string metadata_html(const std::vector<inspect::MetadataDifference>& metadata,
                          const std::string& problem) {
  const std::string said =
      problem.empty() ? "" : fmt::format("<p class=\"lead\">{}</p>\n", markup_text(problem));
  if (metadata.empty()) return said.empty() ? "" : "<h2>Metadata</h2>\n" + said;
  constexpr std::size_t kColumns = 60;
  std::string rows = row_html({"key", "A", "B"}, true);
  for (std::size_t i = 0; i < std::min(metadata.size(), kMostRows); ++i)
    rows += row_html({markup_text(metadata[i].key, 80), markup_text(metadata[i].a.value_or("-"), kColumns),
                      markup_text(metadata[i].b.value_or("-"), kColumns)});
  std::string html = "<h2>Metadata</h2>\n" + said + table_html(rows);
  if (metadata.size() > kMostRows)
    html += fmt::format("<p class=\"lead\">and {} more</p>\n", format_grouped(metadata.size() - kMostRows));
  return html;
}

}  // namespace

std::string model_page_html(const ModelPage& page) {
  std::string html = begin_html(graph::model_name(page.graph));
  html += contents_html(page);
  html += "<h2>Load methods</h2>\n" + charts_html(page.subject, 280) + peaks_html(page.subject);
  html += advice_html(page.answer) + pass_html(page) + findings_html(page.findings) +
          measured_html(page.rehearsal);
  html += "<h2>Options</h2>\n" + list_html(page.options) + foot_html(page.foot);
  return html + "</main>\n</body>\n</html>\n";
}

std::string difference_page_html(const DifferencePage& page) {
  std::string html =
      begin_html(fmt::format("{} and {}", graph::model_name(page.a), graph::model_name(page.b)));
  if (page.mapped)
    html += "<p class=\"lead\">Compared as a GGUF file holds them: llama.cpp's names, norms in F32.</p>\n";
  const Bars of_a = held_bars(page.a, page.subject_a), of_b = held_bars(page.b, page.subject_b);
  std::uint64_t most = 0;  // both on one scale
  for (const Bars* const bars : {&of_a, &of_b})
    for (const Bar& bar : bars->bars) most = std::max(most, bar.bytes);
  html += side_html(page.a, page.path_a, of_a, most, "A") + side_html(page.b, page.path_b, of_b, most, "B");
  html += pairs_html(page.comparison) + metadata_html(page.metadata, page.metadata_problem) +
          foot_html(page.foot);
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace loadline::report
