// loadline rehearse, and how commands show measured loads.
#include "app/cli/plan/rehearsal.h"

#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/base/terminal.h"
#include "app/cli/plan/load_flags.h"
#include "app/report/markdown.h"
#include "app/report/measured_loads.h"
#include "app/report/page_parts.h"
#include "app/report/row_text.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/order/optimal_order.h"
#include "core/load/request/bind_request.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

// --- The table, the sentences and the plots of measured loads.

namespace {

using report::MeasuredCounter;
using report::MeasuredLoad;
using report::MeasuredLoads;
using report::near_enough;
using report::too_small_to_judge;

constexpr std::size_t kGutter = 11;  // fits "306.74 MiB "

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

std::string difference_cell(std::uint64_t projected, std::uint64_t measured) {
  if (projected == 0 && measured == 0) return "";
  const std::string_view sign = measured < projected ? "-" : "+";
  const std::string bytes = fmt::format("{}{}", sign, format_bytes(distance(projected, measured)));
  if (projected == 0 || too_small_to_judge(projected, measured)) return bytes;
  return fmt::format("{} ({:+.2f} %)", bytes,
                     100 * (static_cast<double>(measured) / static_cast<double>(projected) - 1));
}

std::string_view judgment(std::uint64_t projected, std::uint64_t measured) {
  if (too_small_to_judge(projected, measured)) return "too small to compare";
  return near_enough(projected, measured) ? "agrees" : "differs";
}

// Reduces `from` to fewer columns; each keeps the maximum of the columns it replaces.
std::vector<std::uint64_t> fewer(const std::vector<std::uint64_t>& from, std::size_t columns) {
  std::vector<std::uint64_t> to(columns, 0);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::uint64_t& most = to[i * columns / from.size()];
    most = std::max(most, from[i]);
  }
  return to;
}

std::string counter_plot(const MeasuredCounter& counter, std::size_t width, const PlotStyle& style) {
  constexpr std::size_t kLines = 6;
  const report::CounterCurve& curve = counter.curve;
  const std::uint64_t scale = std::max(curve.most(), std::uint64_t{1 << 20});
  const auto projected = fewer(curve.projected, width), measured = fewer(curve.measured, width);
  const auto line_of = [&](std::uint64_t bytes) {
    const double share = static_cast<double>(bytes) / static_cast<double>(scale);
    return static_cast<std::size_t>(std::lround(share * static_cast<double>(kLines)));
  };
  std::string text;
  for (std::size_t line = kLines; line > 0; --line) {
    std::string cells;
    std::size_t blanks = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const bool area = line_of(projected[i]) >= line, point = line_of(measured[i]) == line;
      if (!area && !point) {
        ++blanks;
        continue;
      }
      cells.append(std::exchange(blanks, 0), ' ');
      const std::string_view glyph = point ? (style.unicode ? "●" : "*") : style.unicode ? "░" : ".";
      cells += style.color ? fmt::format("\033[{}m{}\033[0m", point ? 33 : 34, glyph) : std::string(glyph);
    }
    text += fmt::format("{:>{}}{}{}\n", line == kLines ? format_bytes(scale) + " " : "", kGutter,
                        style.unicode ? "│" : "|", cells);
  }
  std::string rule;
  for (std::size_t i = 0; i < width; ++i) rule += style.unicode ? "─" : "-";
  return text + fmt::format("{:>{}}{}{}\n", fmt::format("{} ", counter.name), kGutter,
                            style.unicode ? "└" : "+", rule);
}

}  // namespace

void PictureFlags::add(CLI::App& app) {
  add_flag(app, "--curve", curve, "draw projection and measurement", {.excludes = "--json"});
  add_text(app, "--svg", svg, "write the curves as one picture", {.value_name = "FILE.svg"});
  add_text(app, "--html", html, "write curves and table as one page", {.value_name = "FILE.html"});
}

void PictureFlags::check() const {
  report::check_picture_path(svg, ".svg");
  report::check_picture_path(html, ".html");
}

void PictureFlags::write(const MeasuredLoads& loads, std::string_view text) const {
  if (!svg.empty()) report::write_file(svg, report::measured_svg(loads));
  if (!html.empty()) report::write_file(html, report::measured_page(loads, text));
}

std::string measured_table(const MeasuredLoads& loads, bool color) {
  Table table({"method", "order", "counter", "projected", "measured", "difference", "verdict"},
              {kLeft, kLeft, kLeft, kRight, kRight, kRight, kLeft});
  for (const MeasuredLoad& row : loads.rows) {
    bool first = true;
    for (const MeasuredCounter& counter : row.counters) {
      const std::uint64_t projected = counter.projected, measured = counter.measured;
      if (projected == 0 && too_small_to_judge(projected, measured)) continue;
      table.row({first ? std::string(row.method->id) : "", first ? safe_display(row.order, 40) : "",
                 std::string(counter.name), bytes_cell(projected), bytes_cell(measured),
                 difference_cell(projected, measured),
                 std::string(counter.own_count ? "own count" : judgment(projected, measured))});
      first = false;
    }
  }
  return table.text(color);
}

std::string too_high_text(const MeasuredLoads& loads) {
  std::string text;
  for (const MeasuredLoad& row : loads.rows)
    for (const MeasuredCounter& counter : row.counters)
      if (counter.beyond.samples > 0)
        text += fmt::format("{} ({}): {} was too high in {} of {}, first at step {} of {}.\n", row.method->id,
                            safe_display(row.order, 40), counter.name, format_grouped(counter.beyond.samples),
                            counted(row.samples, "sample"),
                            format_grouped(std::min(counter.beyond.first_step + 1, row.steps)),
                            format_grouped(row.steps));
  return text;
}

std::string refused_text(const MeasuredLoads& loads, std::string_view cannot) {
  std::vector<report::Refusal> refusals;
  for (const MeasuredLoads::Refused& row : loads.refused)
    refusals.push_back({row.method->id, safe_display(row.why)});
  return report::refusals_text(refusals, cannot);
}

void add_refused(Json& list, const MeasuredLoads& loads) {
  for (const MeasuredLoads::Refused& row : loads.refused)
    list.push_back(
        {{"method", row.method->id}, {"order", json_text(row.order)}, {"refused", json_text(row.why)}});
}

std::string measured_summary(const std::vector<MeasuredLoad>& rows) {
  std::uint64_t agreeing = 0, small = 0;
  for (const MeasuredLoad& row : rows) {
    const std::optional<bool> agrees = row.agrees();
    small += !agrees;
    agreeing += agrees.value_or(false);
  }
  const std::uint64_t judged = rows.size() - small;
  std::string text;
  if (judged > 0) text = fmt::format("{} of {} within 2 % or 16 MiB.", agreeing, counted(judged, "load"));
  if (small > 0)
    text += fmt::format("{}{} too small to compare: all counts are below 16 MiB.", text.empty() ? "" : " ",
                        counted(small, "load") + (small == 1 ? " is" : " are"));
  return text + "\n";
}

std::string measured_plots(const MeasuredLoads& loads, const PlotStyle& style) {
  constexpr std::size_t kLeast = 20;
  const std::size_t width =
      std::min(std::max(style.columns, kGutter + 2 + kLeast) - kGutter - 2, report::kMeasuredColumns);
  std::string text;
  for (const MeasuredLoad& row : loads.rows) {
    text += fmt::format("\n{} ({})\n", row.method->id, safe_display(row.order, 40));
    for (const MeasuredCounter& counter : row.counters)
      if (counter.shows()) text += counter_plot(counter, width, style);
    if (row.steps == 0) {
      text += "  nothing is loaded\n";
      continue;
    }
    const std::string end = counted(row.steps, "step");
    text += fmt::format("{}0{:>{}}\n", std::string(kGutter + 1, ' '), end, width - 1);
  }
  return text +
         fmt::format("{} projected   {} measured\n", style.unicode ? "░" : ".", style.unicode ? "●" : "*");
}

// --- The output of `rehearse`, for a terminal and as JSON.

namespace {

Json rehearsal_json(const MeasuredLoads& loads, bool cold) {
  Json json = {{"model", json_text(graph::model_name(loads.graph))},
               {"bytes", graph::storage_bytes(loads.graph)},
               {"cold", cold},
               {"measured", Json::array()}};
  for (const MeasuredLoad& row : loads.rows) {
    const std::optional<bool> agrees = row.agrees();
    Json one = {{"method", row.method->id},
                {"order", json_text(row.order)},
                {"projected_peak", Json::object()},
                {"measured_peak", Json::object()},
                {"agrees", agrees ? Json(*agrees) : Json()},
                {"page_cache",
                 {{"files", row.page_cache->files},
                  {"before", row.page_cache->before},
                  {"most", row.page_cache->most},
                  {"after", row.page_cache->after}}},
                {"seconds", row.seconds},
                {"samples", row.samples},
                {"samples_too_high", Json::object()}};
    for (const MeasuredCounter& counter : row.counters) {
      const std::string id(counter.id);
      one["projected_peak"][id] = counter.projected;
      one["measured_peak"][id] = counter.measured;
      one["samples_too_high"][id] = counter.beyond.samples;
    }
    json["measured"].push_back(std::move(one));
  }
  add_refused(json["measured"], loads);
  return json;
}

// Sentences are wrapped at `prose_columns`; the table is not.
std::string rehearsal_table(const MeasuredLoads& loads, bool color, std::size_t prose_columns) {
  const std::uint64_t weights = graph::storage_bytes(loads.graph);
  const std::string heading = fmt::format("{}: {}, weights = {} ({}), plans run in ordinary memory\n\n",
                                          safe_display(graph::model_name(loads.graph), 80),
                                          counted(loads.graph.tensors.size(), "tensor"),
                                          format_bytes(weights), counted(weights, "byte"));
  std::string text;
  for (const MeasuredLoad& row : loads.rows)
    text +=
        fmt::format("{} ({}): {}, {}; of {} in files the page cache held {} before, {} at most, {} after.\n",
                    row.method->id, safe_display(row.order, 40), format_seconds(row.seconds),
                    counted(row.samples, "sample"), format_bytes(row.page_cache->files),
                    format_bytes(row.page_cache->before), format_bytes(row.page_cache->most),
                    format_bytes(row.page_cache->after));
  text += too_high_text(loads);
  text += refused_text(loads, "cannot be rehearsed");
  text +=
      "\nPeaks are measured from the state just before each load. RssAnon counts what the plan holds on the "
      "host. RssShmem counts what it holds on the device and in staging: shared memory stands in for both. "
      "RssFile counts its mapped pages.\n" +
      measured_summary(loads.rows);
  return heading + measured_table(loads, color) + "\n" + report::reflowed(text, prose_columns);
}

}  // namespace

// --- Measures each method, and keeps the reasons of those that cannot be done.

report::MeasuredLoads rehearse_all(const Context& context, const graph::MetaGraphPtr& graph,
                                   const load::BoundRequest& bound, bool cold) {
  report::MeasuredLoads loads{*graph, "loaded in ordinary memory", {}, {}};
  std::optional<Error> refusal;
  for (const load::Method* const method : bound.methods)
    for (const load::OrderChoice& order : bound.orders) {
      Progress progress(context.stop);
      try {
        require_importable(*graph, *method);
        const plan::Plan plan = load::make_plan(
            *graph, *method, load::make_order(*graph, order, *method, bound, progress), bound);
        const ProgressLine line(context, fmt::format("rehearsing {}", method->id), progress);
        loads.rows.push_back(report::rehearsed_load(*method, order.name, plan,
                                                    load::measure_on_host(graph, plan, cold, progress)));
      } catch (const Error& error) {
        // a load that cannot be done here does not stop the others
        if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::limit &&
            error.code() != ErrorCode::no_fit)
          throw;
        if (!refusal) refusal = error;
        loads.refused.push_back({method, order.name, error.what()});
      }
    }
  if (loads.rows.empty()) throw *refusal;
  return loads;
}

// --- loadline rehearse: runs plans in ordinary memory and compares the system's memory counters with them.

namespace {

struct RehearseFlags {
  bool cold = false;
  PictureFlags picture;
};

int rehearse(const Context& context, const RehearseFlags& options, LoadFlags& flags) {
  options.picture.check();
  const load::LoadRequest request = flags.request(context.quiet);
  flags.require_used(request, load::find_methods(request.methods));
  const std::vector<std::string> orders = load::order_names(request.orders);
  for (const std::string& name : orders) load::check_order_choice(name);
  if (flags.was_given("memory") && std::ranges::find(orders, "optimal") == orders.end())
    throw Error(ErrorCode::usage, "--memory has no effect without --order optimal");
  const graph::MetaGraphPtr graph = open_for(context, flags.path(), request);
  const CliEnvironment environment(context, request);
  const load::BoundRequest bound = load::bind_request(*graph, request, environment.load);
  const report::MeasuredLoads loads = rehearse_all(context, graph, bound, options.cold);
  options.picture.write(loads, rehearsal_table(loads, false, context.prose_columns));
  if (context.json) {
    print_json(rehearsal_json(loads, options.cold));
    return kDone;
  }
  fmt::print("{}", rehearsal_table(loads, context.color, context.prose_columns));
  if (options.picture.curve)
    fmt::print("{}", measured_plots(loads, {context.columns, context.color, context.unicode}));
  return kDone;
}

}  // namespace

Action setup_rehearse(CLI::App& app) {
  auto options = std::make_shared<RehearseFlags>();
  auto flags = std::make_shared<LoadFlags>(app, load::LoadUser::rehearse);
  begin_group(app, "Run and output");
  add_flag(app, "--cold", options->cold, "drop the files' pages from memory first");
  options->picture.add(app);
  return [options, flags](Context& context) { return rehearse(context, *options, *flags); };
}

}  // namespace loadline::cli
