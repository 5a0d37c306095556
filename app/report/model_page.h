// What is known of a model, on one page that can be passed around: self-contained HTML.
#pragma once

#include "app/report/asked_for.h"
#include "app/report/chart.h"
#include "app/report/measured_loads.h"
#include "core/forward/model/claims.h"
#include "core/inspect/compare_models.h"
#include "core/inspect/diff_metadata.h"
#include "core/inspect/doctor.h"
#include "core/load/answer/answer.h"

#include <optional>
#include <string>
#include <vector>

namespace loadline::report {

// Two runs on one machine give the same page but for what was measured: no clock time, and all that depends
// on the machine stands in one block at the end.
struct PageFoot {
  std::vector<std::string> commands = {};  // that give the same figures; safe to paste
  OptionList machine = {};                 // program version, system, processor, memory
};

struct ModelPage {
  const MetaGraph& graph;
  ModelClaims claims = {};
  ChartSubject subject;
  const LoadAnswer& answer;
  std::optional<std::vector<Finding>> findings = {};  // absent: the model has no files to look into
  const MeasuredLoads* rehearsal = nullptr;
  OptionList options = {};
  PageFoot foot = {};
};
std::string model_page_html(const ModelPage& page);

// Two models, and what differs between them.
struct DifferencePage {
  const MetaGraph& a;
  const MetaGraph& b;
  std::string path_a = {}, path_b = {};
  const Comparison& comparison;
  bool mapped = false;  // match_models()
  std::vector<MetadataDifference> metadata = {};
  std::string metadata_problem = {};  // why some of it is not compared
  ChartSubject subject_a, subject_b;
  PageFoot foot = {};
};
std::string difference_page_html(const DifferencePage& page);

}  // namespace loadline::report
