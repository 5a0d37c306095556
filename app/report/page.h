// A comparison as one HTML page that needs nothing else.
#pragma once

#include "app/report/asked_for.h"
#include "app/report/chart.h"

#include <string>

namespace loadline::report {

// What the page says beside what it pictures; escaped here.
struct PageText {
  std::string lead = {};  // of the model, under the title
  OptionList options = {};
  std::string version = {};  // of the program
};

// Chart, table with verdicts, what each method does, what counts the memory, what was asked for.
std::string page_html(const ChartSubject& subject, const PageText& text);

}  // namespace loadline::report
