// A comparison of loads as one self-contained HTML page.
#pragma once

#include "app/report/asked_for.h"
#include "app/report/chart.h"

#include <string>

namespace loadline::report {

// The texts of the page besides the chart; escaped here.
struct PageText {
  std::string lead = {};  // on the model, below the title
  OptionList options = {};
  std::string version = {};  // program version
};

// The legend and a panel for each method, for any page; the style sheets `chart` and `page` have its classes.
// No panel becomes wider than `widest` pixels unless the page is too narrow for two.
std::string charts_html(const ChartSubject& subject, double widest = 520);

// The peaks of all rows as a table with verdicts, and the symbols of the laws.
std::string peaks_html(const ChartSubject& subject);

// The page: chart, table with verdicts, explanation of each method, memory counters, options of the request.
std::string page_html(const ChartSubject& subject, const PageText& text);

}  // namespace loadline::report
