// Writes steps as sections.
#include "app/lesson/exercises.h"
#include "app/report/markdown.h"
#include "app/report/page.h"
#include "app/report/page_parts.h"
#include "app/report/pictures.h"
#include "core/base/text.h"
#include "core/load/request/load_options.h"

#include <algorithm>

#include <fmt/core.h>

namespace loadline::lesson {
namespace {

constexpr double kPanel = 260;  // pixels: the page is narrow

using report::markdown_html;
using report::rich_html;

std::string choices_html(const AskChoice& choice) {
  std::string html = "<ol class=\"choices\">\n";
  for (const std::string& one : choice.choices) html += fmt::format("<li>{}</li>\n", rich_html(one));
  return html + "</ol>\n";
}

// `shown`: the pictures and figures that would give the answer away.
std::string ask_html(const Step& step, Sheet sheet, const std::string& shown, Figures& figures) {
  const Ask& ask = *step.ask;
  std::string html = fmt::format("<div class=\"ask\">\n<p><strong>{}</strong></p>\n",
                                 rich_html(fill(ask.prompt, step.scene, figures)));
  if (const auto* const choice = std::get_if<AskChoice>(&ask.kind)) html += choices_html(*choice);
  if (sheet == Sheet::worksheet) {
    // on paper nothing else says it
    html +=
        fmt::format("<p class=\"lead\">Given: {}, {}.</p>\n",
                    report::markup_text(figures.lesson().scenes[step.scene].model.name),
                    fill("weights of {weights|GiB}, the largest of them {largest|MiB}", step.scene, figures));
    const auto* const number = std::get_if<AskNumber>(&ask.kind);
    html += fmt::format(
        "<p class=\"blank\">Answer: <span>&nbsp;</span>{}</p>\n"
        "<p class=\"blank wide\">Why: <span>&nbsp;</span></p>\n",
        number != nullptr ? unit_name(number->unit).suffix : "");
    return html + "</div>\n";
  }
  const std::string answer =
      fmt::format("<p><strong>{}</strong></p>\n{}{}", rich_html(right_answer(ask, step.scene, figures)),
                  markdown_html(fill(step.answer, step.scene, figures), 3), shown);
  html += sheet == Sheet::key ? answer
                              : fmt::format("<details><summary>Answer</summary>\n{}</details>\n", answer);
  return html + "</div>\n";
}

std::string published_html(const Step& step, Figures& figures) {
  if (step.published.empty()) return "";
  std::string html =
      "<div class=\"scroll\"><table>\n<tr><th class=\"left\">source</th><th>published</th><th>computed</th>"
      "<th>off by</th></tr>\n";
  for (const Published& published : step.published) {
    const ComparedFigure compared = compared_figure(published, step.scene, figures);
    html += fmt::format("<tr><td class=\"left\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        report::markup_text(published.source), compared.printed_text, compared.computed_text,
                        compared.off_text);
  }
  return html + "</table></div>\n";
}

// The picture of a step as SVG or HTML; empty if it has none. `scale`: of bars, at least so many bytes.
std::string step_picture(const Step& step, const SceneAnswer& scene, std::uint64_t scale = 0) {
  switch (step.slider && step.picture == Picture::none ? Picture::bars : step.picture) {
    case Picture::none:
      return "";
    case Picture::bars: {
      report::Bars bars = step_bars(step, scene);
      bars.scale = scale;
      return report::bars_svg(bars);
    }
    case Picture::methods:
      return report::charts_html(scene.subject(), kPanel);
    case Picture::map:
      return report::treemap_legend(*scene.graph) + report::treemap_svg(*scene.graph);
  }
  return "";
}

// All positions are in the page; the script shows one of them.
std::string slider_html(const Step& step, Figures& figures) {
  const Slider& slider = *step.slider;
  const load::LoadOption* const option = load::find_load_option(slider.option);
  if (option == nullptr)
    throw Error(ErrorCode::malformed, "unknown option '{}'", safe_display(slider.option, 40));
  const std::string id = "slider-" + step.id;
  std::string html = fmt::format(
      "<div class=\"slider\">\n<p><label for=\"{0}\">{1}: <output id=\"{0}-value\">{2}</output></label>\n"
      "<input type=\"range\" id=\"{0}\" min=\"0\" max=\"{3}\" value=\"0\" step=\"1\"></p>\n",
      report::markup_text(id), report::markup_text(option->title), report::markup_text(slider.values.front()),
      slider.values.size() - 1);
  std::vector<SceneAnswer> scenes;
  std::uint64_t most = 0;  // one scale for all positions
  for (const std::string& value : slider.values) {
    scenes.push_back(figures.changed_scene(step.scene, slider.option, value));
    for (const report::Bar& bar : step_bars(step, scenes.back()).bars) most = std::max(most, bar.bytes);
  }
  for (std::size_t i = 0; i < slider.values.size(); ++i) {
    const SceneAnswer& scene = scenes[i];
    html += fmt::format(
        "<div class=\"position\" data-of=\"{}\" data-value=\"{}\"{}>\n<p class=\"printed\">{}: "
        "{}</p>\n{}</div>\n",
        report::markup_text(id), report::markup_text(slider.values[i]), i == 0 ? "" : " hidden",
        report::markup_text(option->title), report::markup_text(slider.values[i]),
        step_picture(step, scene, most));
  }
  return html + "</div>\n";
}

std::string run_html(const Lesson& lesson, const Step& step) {
  return fmt::format("<p>Do it on your machine:</p>\n<pre>loadline lesson run {} --step {}</pre>\n",
                     report::markup_text(lesson.id), report::markup_text(step.id));
}

std::string step_html(const Lesson& lesson, const Step& step, Sheet sheet, Figures& figures) {
  std::string html = fmt::format("<section>\n<h2>{}</h2>\n", report::markup_text(step.title));
  std::string shown;
  if (sheet == Sheet::lesson) {
    html += markdown_html(fill(step.text, step.scene, figures), 3);
    shown = step.slider ? slider_html(step, figures) : step_picture(step, figures.scene(step.scene));
    shown += published_html(step, figures);
  }
  html += step.ask ? ask_html(step, sheet, shown, figures) : shown;
  if (step.run && sheet == Sheet::lesson) html += run_html(lesson, step);
  return html + "</section>\n";
}

constexpr std::string_view kScript =
    "<script>\n"
    "document.querySelectorAll('.slider input').forEach(function (input) {\n"
    "  input.addEventListener('input', function () {\n"
    "    document.querySelectorAll('[data-of=\"' + input.id + '\"]').forEach(function (one, i) {\n"
    "      one.hidden = i !== Number(input.value);\n"
    "      if (!one.hidden) document.getElementById(input.id + '-value').textContent = one.dataset.value;\n"
    "    });\n"
    "  });\n"
    "});\n"
    "window.addEventListener('beforeprint', function () {\n"
    "  document.querySelectorAll('details').forEach(function (one) { one.open = true; });\n"
    "});\n"
    "</script>\n";

std::string_view sheet_title(Sheet sheet) {
  return sheet == Sheet::worksheet ? "Worksheet: " : sheet == Sheet::key ? "Answer key: " : "";
}

}  // namespace

report::Bars step_bars(const Step& step, const SceneAnswer& scene) {
  return report::method_bars(scene.answered.answer.rows, graph::storage_bytes(*scene.graph), step.space);
}

std::string handout_html(const Lesson& lesson, Sheet sheet, std::string_view version, Figures& figures) {
  const std::string title = std::string(sheet_title(sheet)) + lesson.title;
  std::string html = report::page_head(title, {"chart", "page", "treemap", "lesson"});
  html += fmt::format("<body>\n<main class=\"lesson\">\n<h1>{}</h1>\n<p class=\"question\">{}</p>\n",
                      report::markup_text(title), rich_html(lesson.question));
  if (sheet == Sheet::lesson) {
    html += "<p>After this lesson you can:</p>\n<ul>\n";
    for (const std::string& goal : lesson.goals) html += fmt::format("<li>{}</li>\n", rich_html(goal));
    html += "</ul>\n";
  } else if (sheet == Sheet::worksheet) {
    html += "<p class=\"blank\">Name: <span>&nbsp;</span></p>\n";
  }
  for (const Step& step : lesson.steps) {
    if (sheet != Sheet::lesson && !step.ask) continue;
    html += step_html(lesson, step, sheet, figures);
  }
  html += fmt::format(
      "<footer>Computed by Loadline {}. The same lesson in the program: loadline lesson run {}</footer>\n",
      report::markup_text(version), report::markup_text(lesson.id));
  html += "</main>\n";
  if (sheet == Sheet::lesson) html += kScript;
  return html + "</body>\n</html>\n";
}

}  // namespace loadline::lesson
