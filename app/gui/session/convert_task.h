// A conversion and its target path.
#pragma once

#include "core/load/written_order.h"
#include "exporters/convert_options.h"

#include <string>

namespace loadline::gui {

struct ConvertTask {
  ConvertRequest request = {};  // `to` names an exporter
  std::string out = {};
};

// What the exporter needs to know for this model: the order by name becomes a list.
inline ExportOptions layout_options(const MetaGraph& graph, const ConvertRequest& request,
                                    const Progress& progress) {
  ExportOptions options = request.layout;
  if (!request.order.empty()) options.order = written_order(graph, request.order, progress);
  return options;
}

}  // namespace loadline::gui
