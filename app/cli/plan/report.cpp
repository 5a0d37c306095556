// loadline report: what is known of a model, or what differs between two, as a page to pass around.
#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/base/terminal.h"
#include "app/cli/plan/load_flags.h"
#include "app/cli/plan/rehearsal.h"
#include "app/report/match_models.h"
#include "app/report/page.h"
#include "app/report/page_parts.h"
#include "app/report/row_text.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/inspect/doctor.h"
#include "core/io/graph_reader.h"

#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

struct ReportFlags {
  std::string other;
  std::string out;
  bool measured = false;
  bool values = false;
};

report::OptionList machine() {
  report::OptionList list = {{"Loadline", LOADLINE_VERSION}};
  for (auto& fact : report::machine_facts()) list.push_back(std::move(fact));
  return list;
}

// "loadline COMMAND PATH --flag value ...", which gives the same figures.
std::string command_line(std::string_view command, const std::string& path,
                         const load::LoadRequest& request) {
  return fmt::format("loadline {} {}{}", command, shell_word(path), request_words(request));
}

report::AnswerWithCurves answer_for(const Context& context, const graph::MetaGraph& graph,
                                    const load::LoadRequest& request,
                                    const load::LoadEnvironment& environment) {
  auto forward = std::make_shared<const load::RequestPass>(graph, request, environment.assets);
  auto bound = std::make_shared<const load::BoundRequest>(load::bind_request(graph, request, environment));
  report::CurveOptions curve;
  if (forward->pass() != nullptr) curve.axis = view::RunAxis::steps;
  Progress progress(context.stop);
  const ProgressLine line(context, "projecting", progress);
  return report::answer_with_curves(graph, std::move(bound), {}, curve, std::move(forward), progress);
}

std::string model_report(const Context& context, const ReportFlags& options, const std::string& path,
                         const graph::MetaGraphPtr& graph, const load::LoadRequest& request,
                         const CliEnvironment& environment) {
  load::LoadEnvironment known = environment.load;
  known.claims = std::make_shared<const forward::ClaimsOnce>(graph, known.assets);
  const report::AnswerWithCurves answered = answer_for(context, *graph, request, known);
  const load::LoadAnswer& answer = answered.answer;
  report::ModelPage page{.graph = *graph,
                         .claims = *known.claims->get(),
                         .subject = answered.subject(*graph),
                         .answer = answer,
                         .findings = {},
                         .rehearsal = nullptr,
                         .options = report::asked_for(request, answer.bound->memory.kind),
                         .foot = {}};
  if (!graph->files.empty() && !graph::shapes_only(*graph)) {
    Progress progress(context.stop);
    const ProgressLine line(context, "checking the files", progress);
    page.findings = inspect::diagnose(io::StorageReader(graph), conversion_trial(context, graph), progress);
  }
  std::optional<report::MeasuredLoads> rehearsal;
  if (options.measured) {
    rehearsal.emplace(rehearse_all(context, graph, *answer.bound, false));
    page.rehearsal = &*rehearsal;
  }
  page.foot = {{command_line("plan", path, request),
                command_line("report", path, request) + (options.measured ? " --measured" : "")},
               machine()};
  return report::model_page_html(page);
}

std::string difference_report(const Context& context, const ReportFlags& options, const std::string& path,
                              const graph::MetaGraphPtr& a, const graph::MetaGraphPtr& b,
                              const load::LoadRequest& request, const CliEnvironment& environment) {
  const report::AnswerWithCurves of_a = answer_for(context, *a, request, environment.load);
  const report::AnswerWithCurves of_b = answer_for(context, *b, request, environment.load);
  report::MatchedModels match = report::match_models(*a, *b);
  Progress progress(context.stop);
  const ProgressLine line(context, "comparing", progress);
  std::string problem;
  std::vector<inspect::MetadataDifference> metadata =
      report::diff_model_metadata(*a, *b, match.mapped, progress, problem);
  inspect::CompareOptions compare;
  compare.values = options.values;
  const bool mapped = match.mapped;
  const inspect::Comparison comparison =
      inspect::compare_models(a, b, std::move(match.match), compare, progress);
  const std::string words = shell_word(path) + " " + shell_word(options.other);
  return report::difference_page_html(
      {.a = *a,
       .b = *b,
       .path_a = path,
       .path_b = options.other,
       .comparison = comparison,
       .mapped = mapped,
       .metadata = std::move(metadata),
       .metadata_problem = std::move(problem),
       .subject_a = of_a.subject(*a),
       .subject_b = of_b.subject(*b),
       .foot = {{"loadline diff " + words + (options.values ? "" : " --no-values"),
                 "loadline report " + words + (options.values ? " --values" : "")},
                machine()}});
}

int report_on(const Context& context, const ReportFlags& options, LoadFlags& flags) {
  report::check_picture_path(options.out, ".html");
  const load::LoadRequest request = flags.request(context.quiet);
  flags.require_used(request, load::find_methods(request.methods));
  if (options.values && options.other.empty())
    throw Error(ErrorCode::usage, "--values has no effect without a second model");
  if (options.measured && !options.other.empty())
    throw Error(ErrorCode::usage, "--measured is for one model");
  const CliEnvironment environment(context, request);
  const graph::MetaGraphPtr graph = open_for(context, flags.path(), request);
  const std::string html =
      options.other.empty()
          ? model_report(context, options, flags.path(), graph, request, environment)
          : difference_report(context, options, flags.path(), graph,
                              open_for(context, options.other, request), request, environment);
  const std::string out = options.out.empty() ? graph::model_name(*graph) + "-report.html" : options.out;
  report::write_file(out, html);
  if (context.json)
    print_json({{"file", json_text(out)}, {"bytes", html.size()}});
  else
    fmt::print("{}  {}\n", safe_display(out), format_bytes(html.size()));
  return kDone;
}

}  // namespace

Action setup_report(CLI::App& app) {
  auto options = std::make_shared<ReportFlags>();
  auto flags = std::make_shared<LoadFlags>(app, load::LoadUser::plan);
  add_text(app, "OTHER", options->other, "a second model: the page says what differs");
  begin_group(app, "Output");
  add_text(app, "-o,--out", options->out, "the page to write [NAME-report.html]",
           {.value_name = "FILE.html"});
  add_flag(app, "--measured", options->measured, "also load the files by each method, and count");
  add_flag(app, "--values", options->values, "of two models: compare the numbers too");
  return [options, flags](Context& context) { return report_on(context, *options, *flags); };
}

}  // namespace loadline::cli
