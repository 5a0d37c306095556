// Self-contained HTML pages: a comparison of loads, a model, two models.
#pragma once

#include "app/report/chart.h"
#include "app/report/measured_loads.h"
#include "app/report/page_parts.h"
#include "core/forward/model/expected_tensors.h"
#include "core/inspect/compare_models.h"
#include "core/inspect/doctor.h"
#include "core/inspect/model_differences.h"
#include "core/load/answer/answer.h"

#include <optional>
#include <string>
#include <vector>

namespace loadline::report {

// --- A comparison of loads as one self-contained HTML page.

// The texts of the page besides the chart; escaped here.
struct PageText {
  std::string lead = {};  // on the model, below the title
  OptionList options = {};
  std::string version = {};  // program version
};

// The legend and a panel for each method, for any page; the style sheets `chart` and `page` have its classes.
// No panel becomes wider than `widest` pixels unless the page is too narrow for two.
std::string charts_html(const ChartSubject& subject, double widest = 520);

// The peaks of all rows as a table with verdicts, and the words of their laws.
std::string peaks_html(const ChartSubject& subject);

// The page: chart, table with verdicts, explanation of each method, memory counters, options of the request.
std::string page_html(const ChartSubject& subject, const PageText& text);

// --- What is known of a model, on one page that can be passed around: self-contained HTML.

// Two runs on one machine give the same page but for what was measured: no clock time, and all that depends
// on the machine stands in one block at the end.
struct PageFoot {
  std::vector<std::string> commands = {};  // that give the same figures; safe to paste
  OptionList machine = {};                 // program version, system, processor, memory
};

struct ModelPage {
  const graph::MetaGraph& graph;
  forward::ModelClaims claims = {};
  ChartSubject subject;
  const load::LoadAnswer& answer;
  std::optional<std::vector<inspect::Finding>> findings = {};  // absent: the model has no files to look into
  const MeasuredLoads* rehearsal = nullptr;
  OptionList options = {};
  PageFoot foot = {};
};
std::string model_page_html(const ModelPage& page);

// Two models, and what differs between them.
struct DifferencePage {
  const graph::MetaGraph& a;
  const graph::MetaGraph& b;
  std::string path_a = {}, path_b = {};
  const inspect::Comparison& comparison;
  bool mapped = false;  // match_models()
  std::vector<inspect::MetadataDifference> metadata = {};
  std::string metadata_problem = {};  // why some of it is not compared
  ChartSubject subject_a, subject_b;
  PageFoot foot = {};
};
std::string difference_page_html(const DifferencePage& page);

}  // namespace loadline::report
