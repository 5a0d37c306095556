// Writes the sections of a report.
#include "app/report/model_page.h"

#include "app/report/page.h"
#include "app/report/page_parts.h"
#include "app/report/pictures.h"
#include "app/report/treemap_svg.h"
#include "app/report/verdict.h"
#include "core/base/text.h"
#include "core/graph/shares.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::report {
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
std::string types_text(const MetaGraph& graph) {
  std::map<std::string_view, std::uint64_t> bytes;
  const std::vector<Share> parts = shares(graph);
  for (std::size_t i = 0; i < parts.size(); ++i)
    bytes[dtype_info(graph.tensors[i].dtype).name] += parts[i].bytes;
  std::vector<std::pair<std::string_view, std::uint64_t>> types(bytes.begin(), bytes.end());
  std::ranges::stable_sort(types, std::greater<>(), [](const auto& type) { return type.second; });
  std::vector<std::string> words;
  for (const auto& [name, size] : types) words.push_back(fmt::format("{} {}", name, format_bytes(size)));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string contents_html(const ModelPage& page) {
  const MetaGraph& graph = page.graph;
  OptionList facts = {{"Format", graph.format},
                      {"Weights", fmt::format("{} ({})", format_bytes(storage_bytes(graph)),
                                              counted(storage_bytes(graph), "byte"))},
                      {"Parameters", format_grouped(page.claims.parameters)},
                      {"Tensors", format_grouped(graph.tensors.size())},
                      {"Types", types_text(graph)},
                      {"Files", format_grouped(graph.files.size())}};
  if (!page.claims.family.empty()) facts.push_back({"Family", page.claims.family});
  std::string html =
      "<h2>What is in it</h2>\n" + list_html(facts) + treemap_legend(graph) + treemap_svg(graph);
  std::vector<std::uint32_t> order(graph.tensors.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto bytes = [&](std::uint32_t i) { return graph.storage(graph.tensors[i].storage).bytes; };
  const std::size_t shown = std::min(order.size(), kLargest);
  std::ranges::partial_sort(
      order, order.begin() + static_cast<std::ptrdiff_t>(shown),
      [&](std::uint32_t a, std::uint32_t b) { return bytes(a) != bytes(b) ? bytes(a) > bytes(b) : a < b; });
  std::string rows = row_html({"largest tensors", "type", "shape", "bytes"}, true);
  for (std::size_t i = 0; i < shown; ++i) {
    const Tensor& tensor = graph.tensors[order[i]];
    rows += row_html({markup_text(tensor.name.view(), 80), std::string(dtype_info(tensor.dtype).name),
                      fmt::format("{}", fmt::join(tensor.shape, " x ")), format_bytes(bytes(order[i]))});
  }
  return html + table_html(rows);
}

std::string pass_html(const ModelPage& page) {
  const RequestPass& pass = *page.answer.forward;
  std::string html;
  const auto per_token = pass.model().cache_bytes_per_token;
  if (pass.figures()) {
    const ForwardPeak& peak = pass.figures()->peak;
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
  for (const LoadRow& row : page.answer.rows)
    if (row.context_max)
      html += fmt::format("<p>{}: room for a context of {}.</p>\n", markup_text(row.method->id),
                          counted(*row.context_max, "token"));
  return html.empty() ? "" : "<h2>Forward pass and context</h2>\n" + html;
}

std::string findings_html(const std::optional<std::vector<Finding>>& findings) {
  if (!findings) return "";
  std::string html = "<h2>Findings in the files</h2>\n";
  if (findings->empty()) return html + "<p>Nothing in the files makes loading cost more than it must.</p>\n";
  html += "<dl>\n";
  for (const Finding& finding : *findings)
    html += fmt::format("<dt>{}</dt><dd>{}: {}<small>{}</small></dd>\n", markup_text(finding.id),
                        markup_text(finding.text), markup_text(finding.cost), markup_text(finding.remedy));
  return html + "</dl>\n";
}

std::string advice_html(const LoadAnswer& answer) {
  if (!answer.advice) return "";
  const Advice& advice = answer.advice->advice;
  std::string html = "<h2>What makes it fit</h2>\n";
  if (advice.loads.empty()) html += "<p>No load was found that fits.</p>\n";
  html += "<ul>\n";
  const auto line = [&](const AdvisedLoad& load) {
    const std::string changes = load.changes.empty()
                                    ? fmt::format("{} in {} order", load.method->id, load.order)
                                    : fmt::format("{}", fmt::join(load.changes, " and "));
    html += fmt::format("<li>{}: {} by {}</li>\n", markup_text(changes), format_bytes(load.held),
                        markup_text(load.method->id));
  };
  for (const AdvisedLoad& load : advice.loads) line(load);
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
  std::string html = "<h2>The same again</h2>\n<pre>";
  for (const std::string& command : foot.commands) html += markup_text(command) + "\n";
  html += "</pre>\n<h2>Machine and versions</h2>\n" + list_html(foot.machine);
  return html + "<footer>Peaks are exact for each plan; times are modelled.</footer>\n";
}

std::string begin_html(const std::string& title) {
  return page_head(title, {"chart", "page", "treemap"}) +
         fmt::format("<body>\n<main>\n<h1>{}</h1>\n", markup_text(title));
}

std::string_view state_words(PairState state) {
  switch (state) {
    case PairState::equal:
      return "equal";
    case PairState::other_shape:
      return "other shape";
    case PairState::other_type:
      return "other type";
    case PairState::other_values:
      return "other values";
    case PairState::refused:
      return "cannot be compared";
    case PairState::not_looked:
      return "same shape and type";
  }
  return "";
}

Bars held_bars(const MetaGraph& graph, const ChartSubject& subject) {
  return method_bars({subject.rows.begin(), subject.rows.end()}, storage_bytes(graph), "held");
}

std::string side_html(const MetaGraph& graph, const std::string& path, Bars bars, std::uint64_t scale,
                      std::string_view letter) {
  bars.scale = scale;
  return fmt::format(
             "<h2>{}: {}</h2>\n<p>{}</p>\n", letter, markup_text(path),
             markup_text(fmt::format("{}, {}, {}", graph.format, counted(graph.tensors.size(), "tensor"),
                                     format_bytes(storage_bytes(graph))))) +
         bars_svg(bars);
}

std::string pairs_html(const Comparison& comparison) {
  std::map<PairState, std::uint64_t> counts;
  for (const PairResult& result : comparison.results) ++counts[result.state];
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
    const PairState state = comparison.results[i].state;
    if (state == PairState::equal || state == PairState::not_looked) continue;
    if (++all > kMostRows) continue;
    ++shown;
    const Weight& a = comparison.match.a[comparison.match.pairs[i].a];
    const Weight& b = comparison.match.b[comparison.match.pairs[i].b];
    const auto side = [](const Weight& weight) {
      return fmt::format("{} {}", dtype_info(weight.dtype).name, fmt::join(weight.shape, " x "));
    };
    rows += row_html({markup_text(a.name.view(), 80), std::string(state_words(state)), side(a), side(b)});
  }
  if (all > 0) html += table_html(rows);
  if (all > shown) html += fmt::format("<p class=\"lead\">and {} more</p>\n", format_grouped(all - shown));
  return html;
}

std::string metadata_html(const std::vector<MetadataDifference>& metadata, const std::string& problem) {
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
  std::string html = begin_html(model_name(page.graph));
  html += contents_html(page);
  html += "<h2>Loading it</h2>\n" + charts_html(page.subject, 280) + peaks_html(page.subject);
  html += advice_html(page.answer) + pass_html(page) + findings_html(page.findings) +
          measured_html(page.rehearsal);
  html += "<h2>Asked for</h2>\n" + list_html(page.options) + foot_html(page.foot);
  return html + "</main>\n</body>\n</html>\n";
}

std::string difference_page_html(const DifferencePage& page) {
  std::string html = begin_html(fmt::format("{} and {}", model_name(page.a), model_name(page.b)));
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
