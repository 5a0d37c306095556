// Builds the object from a method's evidence.
#include "app/cli/plan/evidence_json.h"

#include "core/load/measure/evidence.h"

#include <nlohmann/json.hpp>

namespace loadline::cli {

Json evidence_json(std::string_view method) {
  const std::optional<Evidence> evidence = evidence_of(method);
  if (!evidence) return {{"kind", "construction"}};
  const std::string& first = evidence->frameworks.front();
  const std::size_t space = first.rfind(' ');
  Json json = {{"kind", "measured"},
               {"framework", first.substr(0, space)},
               {"version", first.substr(space + 1)},
               {"frameworks", evidence->frameworks},
               {"loads", evidence->pairs},
               {"in_range", evidence->ranged},
               {"beyond", Json::array()},
               {"error_percent", evidence->error_percent}};
  for (const TruthRow* row : evidence->beyond)
    json["beyond"].push_back({{"recipe", row->recipe},
                              {"model", row->model},
                              {"error_percent", row->error_percent ? Json(*row->error_percent) : Json()},
                              {"reason", row->reason}});
  return json;
}

}  // namespace loadline::cli
